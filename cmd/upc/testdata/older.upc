#include <upc.h>
extern char *malloc();
extern int printf();
extern char *optarg;
extern int errno;
double drand48();
char *strcpy();
int (*handler)();
int (*table[2])();
int add(), twice();
double scale();
static helper();
float square(float);
short half(short), third(int);
register_it(f) int (*f)(); { return f(3); }

main(argc, argv)
  int argc;
  char **argv;
{
  char *p = (char *)malloc(10);
  int (*g)(int, int) = add;
  double (*s)() = scale;
  if (MYTHREAD) exit(0);
  strcpy(p, "abc");
  puts(p);
  table[0] = add;
  table[1] = twice;
  printf("%d %d %d %g\n", add(1, 2), table[0](3, 4), (*table[1])(5), scale(2, 1.5f));
  printf("%d %g %d\n", g(7, 8), s(3, 0.5), helper('a', 1.5));
  later(4);
  handler = later;
  handler(5);
  printf("%d %d\n", later2(1, 2L), abs(-3));
  printf("%d %d\n", register_it(twice), errno);
  noargs(1, argc++);
  printf("%d %g\n", argc, 1.0);
  printf("proto %g %d %d\n", square(3), half(9), third(10));
  return 0;
}
float square(x) float x; { return x * x; }
short half(n) short n; { return n / 2; }
short third(n) short n; { return n / 3; }
int add(a, b) int a, b; { return a + b; }
twice(x) { return 2 * x; }
double scale(n, x) int n; float x; { float *q = &x; return n * *q; }
static helper(c, f) char c; float f; { return c + (int)f; }
later(n) { printf("later %d\n", n); return 0; }
int later2(int a, long b) { return a + (int)b; }
int noargs() { return 1; }
double sum3(a, b, c) double b; char c; { return a + b + c; }
