#include <upc_relaxed.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <math.h>
/* What programs seldom write: each line of what it prints was wrong once. */
int tentative = 5;
extern int tentative;
int tentative;
#if ULONG_MAX > 4294967295UL && -1 > 0u && !(0 && 1 / 0)
int wide = 1;
#else
int wide = 0;
#endif
int twice(void) {
  int i, n = 0;
  for (i = 0; i < 10; i++, i++) n++;
  return n;
}
int past(void) {
  int a[10], b[2][3], n = 10, s = 0, *p;
  for (p = &a[0]; p < &a[10]; p++) *p = 1;
  for (p = &a[0]; p != &a[n]; p++) s += *p;
  for (p = b[0]; p < &b[1][3]; p++) *p = 2;
  for (p = &b[0][0]; p < &b[n / 5 - 1][n - 7]; p++) s += *p;
  return s;
}
int part(int x) { int x0 = 7, *p = &x; ++*p; return x * 10 + x0; }
int os(int getAny) { return getAny; }
struct pair { int a; double b; };
struct nested { char c; struct pair in[2]; };
int offsets[offsetof(struct pair, b)];
int offset(int n) {
  switch (n) {
  case offsetof(struct pair, a): return 1;
  case offsetof(struct nested, in[1].b): return 2;
  }
  return 0;
}
shared struct pair pairs[THREADS];
shared [8] char bytes[8 * THREADS];
shared int xs[THREADS];
int unread(int n) {
  int rc = 0; /* été in Latin-1 */
  for (int k = 0;;) {
    if (n++ > 3) return n;
    continue;
    k++;
    n += k;
  }
  return rc;
}
/* Pointers-to-shared whose own address is taken. */
int through(void) {
  shared int *p = xs, **pp = &p;
  p += 3, p -= 1, (*pp)--, --*pp, (*pp)++;
  *pp += THREADS;
  return 10 * (int)upc_threadof(p) + (int)upc_phaseof(*pp) + (int)(p - xs) - THREADS;
}
static int *file_literal = (int[]){7, 8, 9};
static int last(const int *v, int n) { return v[n - 1]; }
static struct pair pack(int a) { return (struct pair){a, .b = a / 2.0}; }
int literals(void) {
  int i, n = 0;
  for (i = 0; i < 3; i++) {
    struct pair *p = &(struct pair){.a = 5};
    n += last((int[4]){i, [3] = 2}, 4) + p->a++ + (int)pack(i).b + (struct pair){i}.a;
  }
  return 100 * file_literal[2] + n + ((int[]){4, 5, 6})[1] + (int)sizeof (char[]){"four"} + (n ? (struct pair){1} : pack(2)).a;
}
/* Bit-fields of enum types, and ++ and -- of what Go has not. */
enum color { RED, GREEN, BLUE, WHITE };
typedef enum { BELOW = -1, LEVEL, ABOVE } side;
struct fields { enum color c : 2; side s : 2; unsigned u : 3; int i : 3; _Bool b : 1; long l : 40; };
shared struct fields sf[THREADS];
shared _Bool sb[THREADS];
int fields(void) {
  struct fields v = {0}, *p = &v;
  _Bool b = 0, *q = &b, old;
  enum color { INNER = -1 };
  int n;
  v.c = WHITE; v.s = BELOW; v.u = 7; v.i = 3; v.l = -1;
  n = (v.c == WHITE) + 2 * (v.s == BELOW);
  n += 4 * (p->c-- == WHITE && v.c == BLUE);
  n += 8 * (++v.s == LEVEL);
  n += 16 * (v.u++ == 7);
  n += 32 * (p->u == 0 && --p->u == 7);
  n += 64 * (--v.i == 2) + 128 * (++v.l == 0);
  n += 256 * (v.b++ == 0);
  n += 512 * (v.b-- == 1);
  n += 1024 * (--p->b == 1);
  old = b++;
  n += 2048 * (!old && b);
  n += 4096 * ++*q;
  n += 8192 * (--b == 0);
  n += 16384 * ((*q)-- == 0);
  n += 32768 * b;
  { struct { enum color c : 2; } w; w.c = INNER; n += 65536 * (w.c == INNER); }
  sf[MYTHREAD].c = BLUE; sf[MYTHREAD].c++; ++sf[MYTHREAD].b; sb[MYTHREAD]--; sb[MYTHREAD]++;
  n += 131072 * (sf[MYTHREAD].c == WHITE && sf[MYTHREAD].b-- == 1);
  return n + 262144 * (sb[MYTHREAD]-- == 1 && --sb[MYTHREAD] == 1);
}
void numbers(void) {
  double none = NAN, one = 1;
  float nonef = NAN, onef = 1;
  printf("nan %g %g %g %g %d", fmax(none, one), fmin(none, one), fmax(one, none), fmin(one, NAN), !!isnan(fmax(none, none)));
  printf(" %g %g %g %g %d\n", fmaxf(nonef, onef), fminf(nonef, onef), fmax(-INFINITY, 2), fmin(one, -INFINITY), NAN != NAN && INFINITY == 1e300 * 1e300);
}
/* What ends inside an item does not match; what ends before it is the end. */
void ends(void) {
  int a = 0, b = 0;
  float f = 0;
  char w[4];
  printf("ends %d %d %d %d %d", sscanf("-", "%d", &a), sscanf("", "%d", &a), sscanf("  ", "%d", &a), sscanf("0x", "%i", &a), sscanf("+", "%f", &f));
  printf(" %d %d %d %d %d\n", sscanf("1e", "%f", &f), sscanf("7", "%d%d", &a, &b), sscanf("7 -", "%*d%d", &b), sscanf("7", "%*d%d", &b), sscanf("", "%s", w));
}
/* A wait for a relaxed write, which has to answer messages. */
shared int turn[THREADS];
int ring(int me) {
  int spins = 0;
  if (me) while (!turn[me]) spins++;
  turn[(me + 1) % THREADS] = me + 1;
  if (!me) do ; while (!turn[me]);
  return turn[me];
}
/* A name's scope begins before its initialiser, 6.2.1p7. */
static int itself(void) {
  int size = 3, sum = size;
  {
    int size = sizeof size;
    sum += size;
  }
  {
    int sum = 5 + 0 * sum;
    size = sum;
  }
  return sum * 10 + size;
}

int main(void) {
  shared void *gp = upc_all_alloc(THREADS, 4);
  int i;
  struct pair one = {1, 2.5};
  upc_all_free(gp);
  pairs[MYTHREAD] = one;
  upc_memset(&bytes[8 * MYTHREAD], -1, 8);
  upc_forall (i = 0; i < THREADS; i++; &xs[i]) xs[i] = i;
  upc_barrier;
  i = ring(MYTHREAD);
  if (MYTHREAD == 0) {
    printf("ring %d\n", i);
    printf("fields %d\n", fields());
    numbers();
    ends();
    printf("tentative %d %d\n", tentative, wide);
    printf("twice %d\n", twice());
    printf("strtoul %lx %lx %lx %ld\n", strtoul("18446744073709551615", NULL, 10), strtoul("-1", NULL, 10), strtoul("99999999999999999999", NULL, 10), strtol("-9223372036854775808", NULL, 10));
    printf("width [%10c] [%-3c] [%010d] [%-10s]\n", 'x', 'y', 10, "z");
    printf("past %d\n", past());
    printf("names %d %d %g %d\n", part(1), os(3), pairs[0].b, xs[THREADS - 1]);
    printf("unread %d\n", unread(1));
    printf("offsetof %d %d %d\n", (int)sizeof offsets, offset(0), offset(32));
    printf("through %d\n", through());
    printf("literals %d\n", literals());
    printf("itself %d\n", itself());
    printf("memset %d\n", bytes[8 * THREADS - 1]);
  }
  return 0;
}
