#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <ctype.h>
#include <math.h>
/* Functions of the library, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define MYTHREAD 0
#endif
#define P(e) printf("%d: %s = %lld\n", __LINE__, #e, (long long)(e))
#define D(e) printf("%d: %s = %.13g\n", __LINE__, #e, (double)(e))
#define T(e) printf("%d: %s = [%s]\n", __LINE__, #e, (e))
static int ci(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return x < y ? -1 : x > y; }
int main(void) {
  if (MYTHREAD != 0)
    return 0;
  char b[64] = "ab"; T(strncat(b, "cdef", 2)); T(strncat(b, "gh", 10)); P(strspn("aabbc", "ab")); P(strcspn("hello, x", ", ")); P(strpbrk("hello", "xl") - (char *)0 != 0); P(strpbrk("hello", "xyz") == NULL); T(strpbrk("hello", "l"));
  char line[] = "  one, two,,three  "; for (char *t = strtok(line, " ,"); t; t = strtok(NULL, " ,")) T(t); char l2[] = "a=1;b=2"; T(strtok(l2, "=")); T(strtok(NULL, ";")); T(strtok(NULL, "=")); T(strtok(NULL, "")); P(strtok(NULL, "x") == NULL); char l3[] = ",,"; P(strtok(l3, ",") == NULL);
  P(strcasecmp("HeLLo", "hEllO")); P(strcasecmp("abc", "ABD") < 0); P(strncasecmp("ABCx", "abcy", 3)); P(strcasecmp("\xff", "\xfe") > 0); P(strcasecmp("\xc3\x89", "\xc3\xa9") < 0); P(strcasecmp("abc", "AB") > 0); P(strcasecmp("_", "A") < 0); P((char *)memchr("hello", 'l', 5) - (char *)0 != 0); P(memchr("hello", 'z', 5) == NULL); T((char *)memchr("hello", 'l', 5));
  for (int i = 0; i < 128; i++) printf("%d%d%d%d%d%d ", !!isblank(i), !!iscntrl(i), !!isgraph(i), !!isprint(i), !!ispunct(i), !!isxdigit(i)); puts("");
  int v[] = { 1, 3, 5, 7, 9, 11 }; for (int k = 0; k < 13; k++) { int *p = bsearch(&k, v, 6, sizeof *v, ci); printf("%d ", p ? (int)(p - v) : -1); } puts("");
  P(strtoll("-123456789012", NULL, 10)); P(strtoull("0xffffffffffffffff", NULL, 0)); D(strtof("0.1", NULL)); D(strtof("1.0000000596046447753906251", NULL) - 1); P(llabs(-5LL)); P(div(17, -5).quot); P(div(17, -5).rem); ldiv_t q = ldiv(-17, 5); P(q.quot * 10 + q.rem);
  srand48(42); for (int i = 0; i < 5; i++) D(drand48()); for (int i = 0; i < 5; i++) P(lrand48());
  D(acosh(2)); D(asinh(-1)); D(atanh(.5)); D(rint(2.5)); D(rint(-1.5)); D(nearbyint(3.5)); D(erf(.5)); D(erfc(.5)); D(tgamma(5)); D(lgamma(10)); D(logb(10)); D(copysign(3, -0.0)); D(nextafter(1, 2) - 1); P(nextafterf(1, 2) > 1); D(nextafterf(1, 0) - 1); D(nextafterf(0, 1)); D(fdim(INFINITY, INFINITY)); D(fdim(-INFINITY, INFINITY)); D(remainder(7, 4)); D(fdim(5, 3)); D(fdim(3, 5)); D(fma(2, 3, 4)); D(ldexp(1.5, 4)); D(scalbn(1, -3)); int e; D(frexp(40, &e)); P(e); double w; D(modf(-3.75, &w)); D(w); P(ilogb(1000)); P(lround(-2.5)); P(lround(2.4)); P(lrint(2.5)); P(llround(1e10)); P(isfinite(1.0)); P(isfinite(1 / 0.0)); P(isfinite(NAN)); P(!!signbit(-0.0)); P(!!signbit(1.0)); D(rintf(2.5f)); D(copysignf(2, -1)); D(M_LN2 + M_1_PI + M_SQRT1_2);
  return 0;
}
