// A gather, a scatter and updates of random elements of another thread by thread 0, issued together and one by
// one: the least time of each, ns, of PASSES in turn, and a sum of what was read and is there at last.
#include <upc_relaxed.h>
#include <upc_tick.h>
#include <stdio.h>
#include <stdlib.h>

#define N 10000
#define SIZE (1 << 16)
#define PASSES 5

shared [SIZE] double x[SIZE * THREADS];
shared [SIZE] long t[SIZE * THREADS];

static int idx[N];
static double val[N];

/* A loop that goes down is none whose accesses are issued together. */
static void pass(int kind) {
  int i;
  switch (kind) {
  case 0:
    for (i = 0; i < N; i++)
      val[i] = x[idx[i]];
    break;
  case 1:
    for (i = N - 1; i >= 0; i--)
      val[i] = x[idx[i]];
    break;
  case 2:
    for (i = 0; i < N; i++)
      x[idx[i]] = val[i];
    break;
  case 3:
    for (i = N - 1; i >= 0; i--)
      x[idx[i]] = val[i];
    break;
  case 4:
    for (i = 0; i < N; i++)
      t[idx[i]] ^= i;
    break;
  default:
    for (i = N - 1; i >= 0; i--)
      t[idx[i]] ^= i;
  }
}

int main(void) {
  int i, k;
  double sum = 0;
  upc_forall (i = 0; i < SIZE * THREADS; i++; &x[i])
    x[i] = i % SIZE % 1000;
  upc_barrier;
  if (MYTHREAD == 0) {
    double least[6] = {1e30, 1e30, 1e30, 1e30, 1e30, 1e30};
    unsigned seed = 1;
    /* Another place for each i. */
    for (i = 0; i < N; i++)
      idx[i] = (THREADS - 1) * SIZE + (i * 25717u + 12345u) % SIZE;
    for (k = 0; k < 6 * PASSES; k++) {
      upc_tick_t begun = upc_ticks_now();
      double took;
      pass(k % 6);
      took = upc_ticks_to_ns(upc_ticks_now() - begun);
      if (took < least[k % 6])
        least[k % 6] = took;
      for (i = 0; i < N; i++)
        val[i] += seed = seed * 5 % 1021;
    }
    pass(0);
    pass(4); /* or two of each would leave nothing */
    for (i = 0; i < N; i++)
      sum += val[i] * (i % 7) + t[idx[i]] * (i % 5);
    for (k = 0; k < 6; k++)
      printf("%.0f ", least[k]);
    printf("%.0f\n", sum);
  }
  upc_barrier;
  return 0;
}
