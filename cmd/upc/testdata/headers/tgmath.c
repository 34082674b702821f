#include <stdio.h>
#include <tgmath.h>

#define KIND(x) _Generic((x), char *: "char *", const char *: "const char *", int: "int", unsigned long: "unsigned long", float: "float", double: "double", default: "other")

/* As a compiler of C has it. */
void typeGeneric(void) {
  float f = 2, g = 3, h = 7.5f;
  double d = 2;
  int i = 2, n, m, e;
  char text[2] = "t";
  const char *s = "x";
  double q = remquo(-29.0, 3.0, &n), x = frexp(d, &e);
  float r = remquo(h, f, &m);
  printf("%zu %zu %zu %zu %zu %zu\n", sizeof sqrt(f), sizeof sqrt(d), sizeof sqrt(i), sizeof pow(f, g), sizeof pow(f, i), sizeof pow(f, d));
  printf("%.17g %.17g %.17g\n", (double)sqrt(f), sqrt(d), sqrt(i));
  printf("%.17g %.17g %.17g %.17g\n", (double)pow(f, 0.5f), pow(f, 0.5), pow(i, 0.5f), (double)fma(f, g, 0.1f));
  printf("%zu %zu %zu %zu %.9g %d\n", sizeof ldexp(f, 2), sizeof scalbln(f, 3L), sizeof frexp(f, &e), sizeof remquo(f, g, &m), (double)ldexp(f, 3), (int)lround(f + 0.6f));
  printf("%.9g %d %.9g %d %.9g %d\n", q, n % 8, (double)r, m % 8, x, e);
  printf("%.9g %.17g %zu %.9g\n", (double)nexttoward(f, 3.0), nexttoward(d, 1.0), sizeof nexttoward(f, 1.0), (double)atan2(f, g));
  printf("%s, %s, %s, %s, %s, %s, %s\n", KIND(s), KIND(text), KIND('a'), KIND(sizeof 1), KIND(f), KIND(f + d), KIND(&i));
}
