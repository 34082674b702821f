#include <stdio.h>
/* What programs take for C because gcc has it. */
#define SWAP(a, b) do { __typeof__(a) t_ = (a); (a) = (b); (b) = t_; } while (0)
typedef typeof(1 + 2L) sum;
static typeof(sum *) to;
static typeof(int[3]) three = {1, 2, 3};
static const typeof(three) four = {4};
static int calls;
static int once(int v) {
  calls++;
  return v;
}
static int never(int n) {
  if (n > 5) return n / 0;
  if (n > 6) n %= 0;
  return n > 7 ? 1 % 0 : n;
}
static const char *name(const char *s) { return s ?: "none"; }
/* Which function is called is computed before its arguments. */
static int plus(int a, int b) { return a + b; }
static int minus(int a, int b) { return a - b; }
static int (*const ops[])(int, int) = {['+'] = plus, ['-'] = minus};
static int digit(const char **s) { return *(*s)++ - '0'; }
static int sum_of(const char *s) {
  int v = digit(&s);
  while (*s) v = ops[(int)*s++](v, digit(&s));
  return v;
}
%:define DIGRAPHS(a, b) a%:%:b
_Pragma("pack(push, 1)") struct small <% char c; int DIGRAPHS(i, 1); %>; _Pragma("pack(pop)")
void asGCC(void) {
  double a = 1.5, b = 2.5;
  int x = 'ab', z = '\377a';
  unsigned q = 0;
  typeof(three[0]) *p = three;
  sum s = 5;
  to = &s;
  SWAP(a, b);
  switch (x) {
  case 'ab': printf("ab %d %d %d\n", z, 'abcd', 'a');
  }
  printf("%g %g %d %ld %d %zu\n", a, b, p[2], *to, four[0], sizeof(typeof(four)));
  x = once(7) ?: once(8);
  z = once(0) ?: once(9);
  printf("%d %d %d %s %s %d\n", x, z, calls, name(0), name("x"), never(3));
  for (int i = 0; i < 3; i++) printf("%d ", q ?: i ?: -1);
  printf("%d %zu %d %s\n", sum_of("9-2+5-1"), sizeof(struct small), three<:1:>, "\u00e9\U0001f600\x41");
  printf("%g %u %d\n", 0.0 ?: 2.5, (q + 3) ?: 1u, __builtin_expect(x > 3, 1));
}
