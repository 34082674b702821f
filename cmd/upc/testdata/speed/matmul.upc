// Matrix multiplication, all matrices shared, a row a block: the least time of a pass, ns, and a
// sum of what came out.
#include <upc_relaxed.h>
#include <upc_tick.h>
#include <stdio.h>

#define N 192
#define PASSES 12

shared [N] double a[N * THREADS][N], b[N * THREADS][N], c[N * THREADS][N];

static void pass(void) {
  int i, j, l;
  upc_forall (i = 0; i < N * THREADS; i++; &c[i][0]) {
    for (j = 0; j < N; j++)
      c[i][j] = 0;
    for (l = 0; l < N; l++) {
      double v = a[i][l];
      for (j = 0; j < N; j++)
        c[i][j] += v * b[l][j];
    }
  }
}

int main(void) {
  int i, j, k;
  double sum = 0;
  upc_tick_t least = ~(upc_tick_t)0;
  upc_forall (i = 0; i < N * THREADS; i++; &a[i][0])
    for (j = 0; j < N; j++) {
      a[i][j] = i % 7 + j % 5;
      b[i][j] = i % 3 - j % 4;
    }
  upc_barrier;
  for (k = 0; k < PASSES; k++) {
    upc_tick_t now = upc_ticks_now();
    pass();
    now = upc_ticks_now() - now;
    if (now < least)
      least = now;
  }
  upc_barrier;
  for (i = 0; i < N; i++)
    for (j = 0; j < N; j++)
      sum += c[i][j];
  if (MYTHREAD == 0)
    printf("%llu %.6e\n", (unsigned long long)upc_ticks_to_ns(least), sum);
  return 0;
}
