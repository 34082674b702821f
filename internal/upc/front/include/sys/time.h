#ifndef _SYS_TIME_H
#define _SYS_TIME_H
#include <sys/types.h>
#ifndef __timeval
#define __timeval
struct timeval { time_t tv_sec; suseconds_t tv_usec; };
#endif
struct timezone { int tz_minuteswest; int tz_dsttime; };
int gettimeofday(void *tv, void *tz);
#define timerclear(t) ((t)->tv_sec = (t)->tv_usec = 0)
#define timerisset(t) ((t)->tv_sec || (t)->tv_usec)
#define timeradd(a, b, to) \
  do { \
    (to)->tv_sec = (a)->tv_sec + (b)->tv_sec; \
    if (((to)->tv_usec = (a)->tv_usec + (b)->tv_usec) >= 1000000) { \
      (to)->tv_sec++; \
      (to)->tv_usec -= 1000000; \
    } \
  } while (0)
#define timersub(a, b, to) \
  do { \
    (to)->tv_sec = (a)->tv_sec - (b)->tv_sec; \
    if (((to)->tv_usec = (a)->tv_usec - (b)->tv_usec) < 0) { \
      (to)->tv_sec--; \
      (to)->tv_usec += 1000000; \
    } \
  } while (0)
#endif
