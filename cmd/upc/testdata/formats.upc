#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <float.h>
#include <math.h>
/* What is printed and how numbers are read, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define MYTHREAD 0
#endif
#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
static const char *ints[] = {"%d", "%-5d|", "%05d", "%+d", "% 05d", "%8.3d", "%08.3d", "%.0d|", "%+.2d", "%u", "%#x", "%#X", "%#o", "%#010x", "%-#8x|", "%#.5x", "%#.3o", "%.x|", "% x", "%+u", "%hhd", "%hu"};
static const char *longs[] = {"%ld", "%llu", "%lx", "%zd", "%020ld", "%+lld", "%#lo", "%.15ld", "%hhd", "%#20.10lx", "%-22jd|"};
static const char *doubles[] = {"%f", "%.0f", "%010.3f", "%-10.2f|", "%+f", "% f", "%e", "%12.4E", "%g", "%.0g", "%.10G", "%#g", "%#.0f", "%010g", "%a", "%.2a", "%A", "%020e", "%F"};
static int is[] = {0, 1, -1, 42, 65536, -2147483647 - 1};
static long ls[] = {0, -1, 1234567890123L, INT64_MIN};
static double ds[] = {0.0, -0.0, 1, -0.5, 2.5, 0.1, 1234567, 99999.95, 1e15, 1e100, 0.00001234, 1.0 / 3};
static const char *numbers[] = {"42", "  -17abc", "0x1F", "0xg", "077", "+5", "", "99999999999999999999", "08", ".5", "5.", "1e+", "-inf", "0x1.8p1", "0x.8", "1e400", "-.", "1.2.3", "-nan", "+NaN"};
static void integers(void) {
  int i, k;
  for (i = 0; i < COUNT(ints); i++) {
    printf("%s:", ints[i]);
    for (k = 0; k < COUNT(is); k++) { printf(" ["); printf(ints[i], is[k]); printf("]"); }
    printf("\n");
  }
  for (i = 0; i < COUNT(longs); i++) {
    printf("%s:", longs[i]);
    for (k = 0; k < COUNT(ls); k++) { printf(" ["); printf(longs[i], ls[k]); printf("]"); }
    printf("\n");
  }
}
static void floats(void) {
  double inf = HUGE_VAL;
  int i, k;
  for (i = 0; i < COUNT(doubles); i++) {
    printf("%s:", doubles[i]);
    for (k = 0; k < COUNT(ds); k++) { printf(" ["); printf(doubles[i], ds[k]); printf("]"); }
    printf(" ["); printf(doubles[i], -inf); printf("] ["); printf(doubles[i], fabs(inf - inf)); printf("] ["); printf(doubles[i], copysign(inf - inf, -1)); printf("]\n");
  }
}
static void reading(void) {
  char *end;
  int i;
  for (i = 0; i < COUNT(numbers); i++) {
    const char *s = numbers[i];
    long a = strtol(s, &end, 10); printf("'%s' %ld %d", s, a, (int)(end - s));
    a = strtol(s, &end, 0); printf(" %ld %d", a, (int)(end - s));
    a = strtol(s, &end, 16); printf(" %ld %d", a, (int)(end - s));
    double d = strtod(s, &end); printf(" %g %d %g\n", d, (int)(end - s), atof(s));
  }
}
static void others(void) {
  char text[40];
  int n = 0, *p = &n;
  const char all[3] = {'a', 'b', 'c'};
  printf("[%*d|%-*d|%*d|%.*d|%*.*f|%.*s]\n", 5, 42, 5, 42, -5, 42, 3, 7, 7, 2, 3.14159, 2, "hello");
  printf("[%.*d|%.*f|%.*s|%.*s|%.3s]\n", -1, 5, -1, 1.5, -1, "neg", 3, all, all);
  printf("[%5%|%c|%-3c|%3c|%10.3s|%-10s|%.0s]\n", 'a', 'b', 'c', "abcdef", "left", "none");
  printf("[%p|%10p|%-10p|%p]\n", (void *)0, (void *)0x12, (void *)0x12, (void *)0xffff0000);
  printf("count%n of", &n); printf(" %d\n", *p);
  n = snprintf(text, 5, "%s", "abcdefgh"); printf("%d %s", n, text);
  n = snprintf(NULL, 0, "%d", 12345); printf(" %d\n", n);
}
int main(void) {
  if (MYTHREAD != 0)
    return 0;
  integers();
  floats();
  reading();
  others();
  printf("%g %g %g\n", 0x1p-3f, 0x1.8p1F, 0x.8p0);
  printf("%d %d %d %ld %lu %ld\n", INT8_MIN, INT16_MIN, UINT16_MAX, INTPTR_MIN, UINTMAX_MAX, (long)INT_FAST16_MAX);
  printf("%d %d %d %d\n", DBL_DIG, FLT_DIG, DBL_MAX_EXP, FLT_MANT_DIG);
  return 0;
}
