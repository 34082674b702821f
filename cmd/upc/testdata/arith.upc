#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <limits.h>
#include <stdint.h>
/* Arithmetic, conversions, order of evaluation and statements of C, against a compiler of C. */
typedef struct { int a; char b[6]; double c; } rec;
typedef struct tree { int key; struct tree *kid[2]; } tree;
static unsigned hash(const char *s) { unsigned h = 5381; while (*s) h = h * 33 ^ (unsigned char)*s++; return h; }
static tree *insert(tree *t, int key) {
  if (!t) { t = calloc(1, sizeof *t); t->key = key; return t; }
  t->kid[key > t->key] = insert(t->kid[key > t->key], key);
  return t;
}
static int depth(const tree *t) { int l, r; if (!t) return 0; l = depth(t->kid[0]); r = depth(t->kid[1]); return 1 + (l > r ? l : r); }
static void walk(tree *t, void (*f)(int, long *), long *acc) { if (t) { walk(t->kid[0], f, acc); f(t->key, acc); walk(t->kid[1], f, acc); } }
static void fold(int k, long *acc) { *acc = *acc * 31 + k; }
static rec make(int a, const char *s) { rec r; memset(&r, 0, sizeof r); r.a = a; strncpy(r.b, s, 5); r.c = a / 4.0; return r; }
static int order(int *log, int v) { *log = *log * 10 + v; return v; }
static int find(int m[3][4], int want) {
  int i, j;
  for (i = 0; i < 3; i++)
    for (j = 0; j < 4; j++)
      if (m[i][j] == want) goto found;
  return -1;
found:
  return i * 10 + j;
}
static int duff(int n) { int s = 0; switch (n & 3) { default: s += 100; case 2: s += 2; case 1: { s += 1; break; } case 0: s = -1; } return s; }
int (*ops[3])(int);
enum bits { LOW = 1, TOP = 0x80000000, NEXT, ALL = -1 };
enum high { NONE, HIGH = 0x80000000, HIGHER };
static long half(int x) { return sizeof x > 4 ? x >> 32 : x >> 1; }
static int inc(int x) { return x + 1; }
static int dbl(int x) { return x * 2; }
static int neg(int x) { return -x; }
static long collatz(long n) { long k = 0; while (n != 1 && ++k < 1000) n = n & 1 ? 3 * n + 1 : n / 2; return k; }
int main(void) {
  int i, log = 0, m[3][4] = {{1, 2}, {3, 4, 5, 6}, [2][3] = 9};
  signed char sc = (signed char)200; unsigned char uc = (unsigned char)-1; short sh = (short)70000; unsigned short us = 65535;
  unsigned u = 3000000000u; long l = -5; int big = INT_MAX;
  int64_t x64 = INT64_C(1) << 40; float f = 0.1f; double d = 0.1;
  tree *t = NULL; long acc = 7; rec r = make(7, "abcdefgh"), q; rec *p = &q; char text[64], *s; int **pp, *vec;
  printf("%d %d %d %d\n", sc, uc, sh, us);
  printf("%d %d %u %u\n", sc + uc, us * 2, u + u, -u);
  printf("%ld %ld %d %d\n", l / 2, l % 3, -7 / 2, -7 % 3);
  printf("%d %d %d\n", (unsigned)l > 5, l > u, sc < uc);
  printf("%d %u %ld\n", big + (log = 0) - 1, 1u - 2, x64 >> 3);
  printf("%d %d\n", -16 >> 2, (int)(0xffffffffu >> 28));
  printf("%.9g %.17g %d %d\n", f, d, f == d, (int)(float)16777217);
  printf("%d %d %d\n", (int)3.99, (int)-3.99, (unsigned char)300);
  i = order(&log, 1) && order(&log, 0) && order(&log, 2) || order(&log, 3);
  printf("%d %d\n", i, log);
  i = (log = 0, order(&log, 4)) ? order(&log, 5) : order(&log, 6); printf("%d %d\n", i, log);
  for (i = 0; i < 100; i++) t = insert(t, (i * 37) % 101);
  walk(t, fold, &acc); printf("%d %ld\n", depth(t), acc);
  q = r; p->a *= 3; p->b[1] = 'X'; printf("%d %s %g %d %s\n", q.a, q.b, p->c, r.a, r.b);
  printf("%d %d %d %d\n", find(m, 5), find(m, 9), find(m, 42), (int)sizeof m);
  for (i = 0; i < 5; i++) printf("%d ", duff(i)); printf("\n");
  ops[0] = inc; ops[1] = dbl; ops[2] = neg; for (i = 0, log = 5; i < 6; i++) log = ops[i % 3](log); printf("%d\n", log);
  printf("%u %ld\n", hash("the quick brown fox"), collatz(27));
  s = text; for (i = 0; i < 10; i++) *s++ = 'a' + i; *s = 0; printf("%s %c %d\n", text, text[3], (int)(s - text));
  while (s-- > text) if (!(*s & 1)) *s -= 32; printf("%s\n", text);
  pp = malloc(3 * sizeof *pp); for (i = 0; i < 3; i++) { int k; pp[i] = malloc(4 * sizeof **pp); for (k = 0; k < 4; k++) pp[i][k] = i * k; }
  for (vec = pp[2], i = 0; vec < pp[2] + 4; vec++) i += *vec; printf("%d %d\n", i, *(*(pp + 1) + 3));
  do { i -= 3; if (i == 6) continue; if (i < 0) break; } while (i); printf("%d\n", i);
  { int v = 5; { int v = 6; v++; i = v; } i += v; } printf("%d\n", i);
  i = 1; i <<= 5; i |= 3; i ^= 0xff; i %= 100; i += i++ * 0; printf("%d %d\n", i & ~1, !i);
  uc += 2; sc >>= 1; us <<= 4; sh /= -3; f *= 3; printf("%d %d %d %d %g\n", uc, sc, us, sh, f);
  printf("[%5d|%-5d|%05d|%+d|%x|%#x|%o|%c|%5.1f|%-8s|%.2s|%e|%g|%%|%5s]\n", 42, 42, 42, 42, 255, 255, 8, 'z', 3.14159, "ab", "abcdef", 12345.678, 1e-10, "r");
  printf("%lu %lld %hd %hhu %ld\n", ULONG_MAX, LLONG_MIN, (short)-3, (unsigned char)7, strtol("0x1f", &s, 16));
  { static int arr[] = {3, 1, 2}; int *a = arr, *b = arr + 2; int tmp = *a; *a = *b; *b = tmp; printf("%d%d%d %d\n", arr[0], arr[1], arr[2], (int)(sizeof arr / sizeof *arr)); }
  sc = (i++, 0xED); uc = (sc = (i = 7, 300), -1); f = (float)(i++, 1.0); us = (us = 5, 0x1ffff) << (i--, 3); printf("%d %d %g %d %d\n", sc, uc, f, us, (i = 2, 1) ? (i, 40) / (i, -3) : 0);
  { int *ip = &i; unsigned *up = ip; const short *hp = &sh; unsigned short *vp = &us; *up += 5; printf("%d %d %d\n", i, up == ip, hp < vp || vp < hp); }
  { enum bits b = TOP; enum high h = HIGHER; printf("%d %d %d %ld %d %d\n", TOP > ALL, b > 0, h > NONE, (long)h, (int)sizeof b, (int)(sizeof h + sizeof LOW + sizeof TOP)); }
  { enum bits b = TOP; printf("%d %d %u %d %d %ld", TOP > 0, b == TOP, NEXT, ALL, (b & TOP) != 0, half(9)); switch (b) { case TOP: printf(" top\n"); default: break; } }
  printf("%d %s\n", (int)strlen("a\0b"), "con" "cat\t\x41\101");
  return 0;
}
