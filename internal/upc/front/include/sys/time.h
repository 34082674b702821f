#ifndef _SYS_TIME_H
#define _SYS_TIME_H
struct timeval { long tv_sec; long tv_usec; };
int gettimeofday(void *tv, void *tz);
#endif
