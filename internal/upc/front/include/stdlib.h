#ifndef _STDLIB_H
#define _STDLIB_H
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *ptr, size_t size);
void free(void *ptr);
void exit(int status);
void abort(void);
int rand(void);
void srand(unsigned int seed);
int abs(int v);
long labs(long v);
int atoi(const char *s);
long atol(const char *s);
long long atoll(const char *s);
double atof(const char *s);
long strtol(const char *s, char **end, int base);
unsigned long strtoul(const char *s, char **end, int base);
double strtod(const char *s, char **end);
float strtof(const char *s, char **end);
long long strtoll(const char *s, char **end, int base);
unsigned long long strtoull(const char *s, char **end, int base);
long long llabs(long long v);
double drand48(void);
long lrand48(void);
void srand48(long seed);
char *getenv(const char *name);
void qsort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *));
void *bsearch(const void *key, const void *base, size_t n, size_t size, int (*cmp)(const void *, const void *));
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;
static inline div_t div(int a, int b) {
  div_t d = {a / b, a % b};
  return d;
}
static inline ldiv_t ldiv(long a, long b) {
  ldiv_t d = {a / b, a % b};
  return d;
}
#define MB_CUR_MAX 1
static inline size_t mbstowcs(wchar_t *to, const char *from, size_t n) {
  size_t i;
  for (i = 0; to == NULL || i < n; i++) {
    if ((unsigned char)from[i] > 127) return -1;
    if (to) to[i] = from[i];
    if (from[i] == 0) break;
  }
  return i;
}
static inline size_t wcstombs(char *to, const wchar_t *from, size_t n) {
  size_t i;
  for (i = 0; to == NULL || i < n; i++) {
    if (from[i] < 0 || from[i] > 127) return -1;
    if (to) to[i] = from[i];
    if (from[i] == 0) break;
  }
  return i;
}
static inline int mbtowc(wchar_t *to, const char *s, size_t n) {
  if (s == NULL) return 0;
  if (n == 0 || (unsigned char)*s > 127) return -1;
  if (to) *to = *s;
  return *s != 0;
}
#define mblen(s, n) mbtowc(NULL, s, n)
static inline int wctomb(char *to, wchar_t c) {
  if (to == NULL) return 0;
  if (c < 0 || c > 127) return -1;
  *to = c;
  return 1;
}
typedef struct { long long quot, rem; } lldiv_t;
static inline lldiv_t lldiv(long long a, long long b) {
  lldiv_t d = {a / b, a % b};
  return d;
}
#define strtold strtod
#define cfree free
void *alloca(size_t size);
int atexit(void (*f)(void));
int system(const char *command);
void _Exit(int status);
long random(void);
void srandom(unsigned seed);
int rand_r(unsigned *seed);
double erand48(unsigned short state[3]);
long nrand48(unsigned short state[3]);
long jrand48(unsigned short state[3]);
long mrand48(void);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
int putenv(char *text);
void *aligned_alloc(size_t align, size_t size);
void *memalign(size_t align, size_t size);
int posix_memalign(void **to, size_t align, size_t size);
#endif
