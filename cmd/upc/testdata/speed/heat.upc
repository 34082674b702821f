// A stencil of five points on rows that are blocks, and one of three points on a vector with one
// block for each thread: the least time of a pass, ns, and a sum.
#include <upc_relaxed.h>
#include <upc_tick.h>
#include <stdio.h>

#define N 256
#define M 8192
#define PASSES 40

shared [N] double grid[2][N * THREADS][N];
shared [M] double line[2][M * THREADS];

static void plane(int now) {
  int i, j;
  upc_forall (i = 1; i < N * THREADS - 1; i++; &grid[0][i][0])
    for (j = 1; j < N - 1; j++)
      grid[1 - now][i][j] = 0.25 * (grid[now][i - 1][j] + grid[now][i + 1][j] + grid[now][i][j - 1] + grid[now][i][j + 1]);
}

static void vector(int now) {
  int i;
  upc_forall (i = 1; i < M * THREADS - 1; i++; &line[0][i])
    line[1 - now][i] = 0.25 * line[now][i - 1] + 0.5 * line[now][i] + 0.25 * line[now][i + 1];
}

int main(int argc, char **argv) {
  int i, j, k;
  double sum = 0;
  upc_tick_t least = ~(upc_tick_t)0;
  for (k = 0; k < 2; k++) {
    upc_forall (i = 0; i < N * THREADS; i++; &grid[k][i][0])
      for (j = 0; j < N; j++)
        grid[k][i][j] = i % 7 + j % 5;
    upc_forall (i = 0; i < M * THREADS; i++; &line[k][i])
      line[k][i] = i % 11;
  }
  upc_barrier;
  for (k = 0; k < PASSES; k++) {
    upc_tick_t now = upc_ticks_now();
    if (argc > 1)
      vector(k % 2);
    else
      plane(k % 2);
    now = upc_ticks_now() - now;
    if (now < least)
      least = now;
    upc_barrier;
  }
  for (i = 0; i < N; i++)
    for (j = 0; j < N; j++)
      sum += grid[0][i][j];
  for (i = 0; i < M; i++)
    sum += line[0][i];
  if (MYTHREAD == 0)
    printf("%llu %.6e\n", (unsigned long long)upc_ticks_to_ns(least), sum);
  return 0;
}
