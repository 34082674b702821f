#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "aligned/pair.h"
/* Alignments of variables, structures as arguments without prototypes, and functions that are called as the library's. */
#ifdef __UPC__
#include <upc_relaxed.h>
#define FOUR [4]
#else
#define shared
#define FOUR
#define upc_barrier
#define THREADS 1
#define MYTHREAD 0
#endif
#define HERE(x) ((void *)&(x)[MYTHREAD])
#define LINE __attribute__((aligned(64)))
typedef struct { long count; } LINE padded;
struct line { double d[3]; char c; } __attribute__((aligned(128)));
static char odd = 'o';
static double vector[10] LINE = {1, 2, 3};
char buffer[40] __attribute__((aligned(8))) = "buffer", after = 'a';
_Alignas(32) int counter = 5;
extern int elsewhere;
struct line lines[3] = {{{1, 2, 3}, 'x'}}, *pointer = &lines[1];
double *third = &vector[2];
shared char small[THREADS];
shared int flags[THREADS] LINE;
shared char between[THREADS];
shared FOUR double page[4 * THREADS] __attribute__((aligned(4096)));
shared padded counts[THREADS];
double summed(), mixed();
int (*take)();
static int off(volatile void *p, int n) { return (int)((uintptr_t)p % n); }
static int second(struct pair p, int k, struct big b) { return p.a * 100 + k * 10 + b.v[4]; }
static int kr(p, f, q) struct pair p, *q; float f; { return p.a + f * 2 + q->b * 100; }
static int deep(int n) {
  char c = 'c', d[3] = "de";
  _Alignas(256) char wide[5] = {1, 2};
  padded mine = {n}, *p = &mine;
  struct line l = {{n}, 'l'};
  static short kept LINE = 3;
  p->count += strlen(d) + c;
  kept++;
  return (n ? deep(n - 1) : 0) + off(wide, 256) + off(p, 64) + off(&l, 128) + off(&kept, 64) + (mine.count != n + 2 + 'c') + (l.d[0] != n) + (wide[1] != 2) + 1000 * kept;
}
int main(void) {
  struct pair p = {3, 4.5};
  struct big g = {{1, 2, 3, 4, 5}};
  int i;
  take = second;
  printf("%d %d %d %d %d %d\n", off(vector, 64), off(buffer, 8), off(&counter, 32), off(lines, 128), off(&lines[1], 128), off(&elsewhere, 64));
  printf("%d %d %d %d\n", off(HERE(flags), 64), off(HERE(counts), 64), off((void *)&page[4 * MYTHREAD], 4096), (int)sizeof(padded));
  for (i = 0; i < 10; i++)
    vector[i] += i + *third;
  pointer->d[1] = vector[9];
  counter += elsewhere++ + sizeof lines;
  flags[MYTHREAD] = small[MYTHREAD] = between[MYTHREAD] = 7;
  counts[MYTHREAD].count = flags[MYTHREAD];
  page[4 * MYTHREAD + 3] = counts[MYTHREAD].count;
  upc_barrier;
  printf("%g %g %d %d %c %s %c %g %d\n", lines[1].d[1], vector[1], counter, elsewhere, odd, buffer, after, page[4 * MYTHREAD + 3] + page[4 * MYTHREAD], small[MYTHREAD] + between[MYTHREAD]);
  printf("%d\n", deep(3));
  printf("%g %g %d %d %d\n", summed(p, 2), mixed(g, p, 1.5f), take(p, 7, g), kr(p, 1.5f, &p), later(p, g));
  return 0;
}
int later(struct pair p, struct big g) { return p.a * g.v[4]; }
