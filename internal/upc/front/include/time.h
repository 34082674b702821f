#ifndef _TIME_H
#define _TIME_H
#include <stddef.h>
#ifndef __time_t
#define __time_t
typedef long time_t;
#endif
typedef long clock_t;
typedef int clockid_t;
#define CLOCKS_PER_SEC 1000000L
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define CLOCK_MONOTONIC_RAW 4
struct timespec { time_t tv_sec; long tv_nsec; };
struct tm {
  int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
  long tm_gmtoff;
  const char *tm_zone;
};
time_t time(time_t *t);
clock_t clock(void);
double difftime(time_t a, time_t b);
time_t mktime(struct tm *t);
struct tm *gmtime(const time_t *t);
struct tm *localtime(const time_t *t);
struct tm *gmtime_r(const time_t *t, struct tm *to);
struct tm *localtime_r(const time_t *t, struct tm *to);
char *asctime(const struct tm *t);
char *ctime(const time_t *t);
size_t strftime(char *to, size_t max, const char *format, const struct tm *t);
int nanosleep(const struct timespec *t, struct timespec *left);
int clock_gettime(clockid_t clock, struct timespec *to);
int clock_getres(clockid_t clock, struct timespec *to);
#endif
