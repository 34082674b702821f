#include <upc_relaxed.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
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
/* A wait for a relaxed write, which has to answer messages. */
shared int turn[THREADS];
int ring(int me) {
  int spins = 0;
  if (me) while (!turn[me]) spins++;
  turn[(me + 1) % THREADS] = me + 1;
  if (!me) do ; while (!turn[me]);
  return turn[me];
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
    printf("memset %d\n", bytes[8 * THREADS - 1]);
  }
  return 0;
}
