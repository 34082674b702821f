#include <stdio.h>
#include <string.h>
/* What programs have of gcc's C beside the standard, against gcc. */
#ifdef __UPC__
#include <upc_relaxed.h>
#else
#define shared
#define upc_barrier
#define THREADS 1
#define MYTHREAD 0
#endif
#define MAX(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define MIN(a, b) ({ __auto_type _a = (a); __auto_type const _b = (b); _a < _b ? _a : _b; })
#define SWAP(a, b) do { __typeof__(a) _t = (a); (a) = (b); (b) = _t; } while (0)
#define CHECK(c, v) ({ if (!(c)) return (v); 1; })
#define likely(x) __builtin_expect(!!(x), 1)
shared int here[8 * THREADS];
struct pair { int a; double b; };
static int calls;
static int count(int n) { calls++; return n; }
static int checked(int n) {
  int sum = CHECK(n > 0, -1);
  sum += CHECK(n < 100, -2) + n;
  return sum;
}
static int heads(int n) {
  int i, sum = 0, m = 3;
  for (i = ({ int k = n / 2; k; }); i < MAX(n, m); i += ({ m++; 1; }))
    sum += i;
  while (MIN(sum, 40) > ({ int k = 20; do k--; while (k > 10); k; }))
    sum -= MAX(count(3), 2);
  do {
    sum++;
  } while (({ int again = sum < 12; if (sum == 8) again = 0; again; }));
  return sum + m * 100;
}
static int letters(const char *s) {
  int digits = 0, small = 0, big = 0, other = 0;
  for (; *s; s++)
    switch (*s) {
    case '0' ... '9': digits++; break;
    case 'a' ... 'z': small++; /* and */
    case '_': other++; break;
    case 'A' ... 'Y':
    case 'Z': big++; break;
    default: other += 100;
    }
  return digits + 10 * small + 100 * big + 1000 * other;
}
static const char *range(unsigned long v) {
  switch (v) {
  case 0: return "zero";
  case 1 ... 0x7f: return "one byte";
  case 0x80 ... 0x7ff: return "two bytes";
  case 0x800 ... 0xffff: return "three bytes";
  case 0x8000000000000000 ... 0xffffffffffffffff: return "huge";
  }
  return "large";
}
static int nested(int v) {
  int r = 0;
  switch (v) {
  case -100 ... -1:
    if (v & 1) {
  case 50 ... 60:
      r = 7;
    }
    r++;
    break;
  default: r = -1;
  }
  return r;
}
static struct pair made(int n) { return ({ struct pair p = {n, n / 2.0}; p.a++; p; }); }
static int jumps(int n) {
  int v = ({ if (n > 5) goto out; if (n > 3) return 30; int i, s = 0; for (i = 0; i < 9; i++) { if (i == 2) continue; if (i > n) break; s += i; } s; });
  return v;
out:
  return -n;
}
static int nowhere(int n) {
  switch (n & 1) {
  case 0: return 10;
  case 1: return 11;
  }
  __builtin_unreachable();
}
int main(void) {
  int i, a = 3, b = 7, sum = 0, *p = &a;
  double d = 2.5;
  char text[20];
  upc_barrier;
  for (i = 0; i < 8; i++)
    here[i * THREADS + MYTHREAD] = i * 5 % 8;
  upc_barrier;
  sum = MAX(a, b) * 1000 + MIN(d, a) * 10 + MAX(MIN(a, 5), MIN(b, 4));
  SWAP(a, b);
  printf("%d %d %d %d\n", sum, a, b, ({ int x = *p; *p = 9; x; }));
  printf("%d %d %d %d\n", checked(0), checked(100), checked(5), heads(6));
  sum = 0;
#ifdef __UPC__
  upc_forall (i = 0; i < 8 * THREADS; i++; &here[i])
#else
  for (i = 0; i < 8; i++)
#endif
    sum += MAX(here[i], 3) + ({ int v = here[i] & 1; v ? v + 1 : 0; });
  if (a && ({ sum += 1000; b == 3; }) || count(1))
    sum += 5000;
  printf("%d %d %d\n", sum, calls, a > 100 ? ({ calls = 50; 1; }) : ({ calls += 10; calls; }));
  ({ sum = 4; calls++; });
  (void)({ sum; });
  printf("%d %d %s\n", sum, letters("ab_09ZYA-q"), ({ strcpy(text, "text"); text; }));
  printf("%s %s %s %s %s %s %s\n", range(0), range(0x7f), range(0x80), range(0x7ff), range(0x800), range(1UL << 40), range(~0UL));
  printf("%d %d %d %d %d %d\n", nested(-3), nested(-4), nested(50), nested(60), nested(61), nested(-101));
  printf("%d %g %g\n", made(6).a, made(7).b, ({ made(1); }).b);
  printf("%d %d %d %d %d\n", jumps(1), jumps(3), jumps(5), jumps(6), nowhere(2) * nowhere(3));
  printf("%d %d %d %d\n", __builtin_popcount(0xff00ffu), __builtin_popcountl(-1L), __builtin_parity(7), __builtin_parityll(1ULL << 60 | 1));
  printf("%d %d %d %d\n", __builtin_clz(1), __builtin_clzl(1), __builtin_ctz(8), __builtin_ctzll(1ULL << 40));
  printf("%d %d %x %lx %x\n", __builtin_ffs(0), __builtin_ffsl(1L << 33), __builtin_bswap32(0x12345678), (unsigned long)__builtin_bswap64(0x123456789abcdef0), __builtin_bswap16(0x1234));
  printf("%d %d %d\n", __builtin_constant_p(3 + 4), __builtin_constant_p(a), __builtin_types_compatible_p(int, __typeof__(a)));
  printf("%g %d %d %lu %d\n", __builtin_choose_expr(1, 2.5, "no"), __builtin_abs(-4), (int)__builtin_strlen("four"), __builtin_offsetof(struct pair, b), likely(a > 0));
  __builtin_memcpy(text, "copied", 7);
  __builtin_prefetch(text);
  printf("%s %d %d %g\n", text, __builtin_isnan(d), __builtin_isinf(__builtin_inf()), __builtin_fabs(-d) + __builtin_sqrt(16));
  if (a < 0)
    __builtin_trap();
  return 0;
}
