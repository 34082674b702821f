#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Functions with variable arguments, against a compiler of C. */
#ifdef __UPC__
#include <upc.h>
#else
#define MYTHREAD 0
#endif
typedef double row[2];
struct sink { char text[200]; int used; };
static struct sink all;
static int sum(int n, ...) {
  va_list ap;
  int s = 0;
  va_start(ap, n);
  while (n-- > 0) s += va_arg(ap, int);
  va_end(ap);
  return s;
}
static void put(struct sink *to, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  to->used += vsnprintf(to->text + to->used, sizeof to->text - to->used, format, ap);
  va_end(ap);
}
static int say(const char *format, ...) {
  va_list ap, again;
  int n, m;
  va_start(ap, format);
  va_copy(again, ap);
  n = vprintf(format, ap);
  m = vfprintf(stdout, format, again);
  va_end(again);
  va_end(ap);
  return n * 100 + m;
}
static double next(va_list *ap, char kind) {
  short *p;
  switch (kind) {
  case 'i': return va_arg(*ap, int);
  case 'u': return va_arg(*ap, unsigned);
  case 'l': return va_arg(*ap, long);
  case 'd': return va_arg(*ap, double);
  case 's': return strlen(va_arg(*ap, const char *));
  case 'f': return va_arg(*ap, row *)[0][1];
  case 'p': p = va_arg(*ap, short *); return p ? *p : -1;
  }
  return 0;
}
static double mixed(const char *kinds, ...) {
  double s = 0;
  va_list ap;
  for (va_start(ap, kinds); *kinds; kinds++) s = s * 2 + next(&ap, *kinds);
  va_end(ap);
  return s;
}
static int deep(int n, ...) {
  va_list ap;
  int a, b;
  va_start(ap, n);
  a = va_arg(ap, int);
  b = n == 0 ? a : deep(n - 1, a + n, deep(n / 2, n, 3)) + va_arg(ap, int) % 7;
  va_end(ap);
  return b;
}
/* Structures and unions, of all sizes, from variables and from calls. */
struct point { double x, y; };
struct flag { char c; };
struct big { int n, list[20]; const char *name; };
union either { int i; double d; };
typedef int (*function)(int, ...);
static struct point point(double x, double y) { struct point p; p.x = x; p.y = y; return p; }
static double shapes(const char *kinds, ...) {
  va_list ap;
  double s = 0;
  struct point p, corner = {0, 0};
  va_start(ap, kinds);
  for (; *kinds; kinds++)
    switch (*kinds) {
    case 'p':
      p = va_arg(ap, struct point);
      s += (p.x - corner.x) * (p.y + corner.y);
      corner = p;
      break;
    case 'y': s += va_arg(ap, struct point).y; break;
    case 'c': s += va_arg(ap, struct flag).c; break;
    case 'b': { struct big b = va_arg(ap, struct big); s += b.list[b.n] + strlen(b.name); b.n = 0; break; }
    case 'e': s += va_arg(ap, union either).d; break;
    case 'i': s += va_arg(ap, int); break;
    case 'f': s += va_arg(ap, function)(2, 30, 40); break;
    }
  va_end(ap);
  return s;
}
#ifdef __UPC__
shared struct point far;
#else
static struct point far;
#endif
static int (*through)(int, ...) = sum;
int main(void) {
  float f = 1.5f;
  char c = -3;
  unsigned char u = 200;
  short h = 7;
  double pair[2] = {0.25, 0.5};
  int i, k = 0;
  if (MYTHREAD != 0)
    return 0;
  printf("%d %d %d\n", sum(0), sum(3, 1, c, u), through(2, sum(2, 3, 4), sum(1, -5)));
  for (i = 0; i < 4; i++) put(&all, "%d:%s;", i, i & 1 ? "odd" : "even");
  put(&all, "%5.1f|%-4ld|%c%%|%*d|%.*f", f, -9L, 'x', 4, i, 2, 3.14159); printf("%s %d\n", all.text, all.used);
  printf("%d\n", say("%s %u %lld %x %g %p\n", "said", 4000000000u, 1LL << 40, -1, 2.5f, (void *)0)); say("no more\n");
  printf("%g %g\n", mixed("iuldsfp", -1, -1, -1L, f, "four", &pair, &h), mixed("p", (short *)NULL));
  for (i = 0; i < 2000000; i++) k += sum(2, i, 1) & 1; /* the stack has as much as before */
  printf("%d %d\n", k, deep(12, 1, 2));
  {
    struct big b = {3, {1, 2, 3, 400}, "big"};
    struct flag x = {'x'};
    union either e;
    struct point p = {5, 6}, list[3] = {{1, 2}, {3, 4}, {8, 1}};
    double s = 0;
    e.d = 0.125;
    far = point(100, 200);
    printf("%g %g\n", shapes("ppp", p, list[2], point(1, -1)), shapes("cbiefy", x, b, 7, e, through, far));
    for (i = 0; i < 3; i++) s += shapes("pip", list[i], b.n = i, point(shapes("p", list[(i + 1) % 3]), i));
    printf("%g %d %d\n", s, b.n, b.list[3]);
  }
  return 0;
}
