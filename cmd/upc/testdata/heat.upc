// Heat conduction in one dimension by Jacobi iteration, beside the same in private memory.
#include <upc_relaxed.h>
#include <stdio.h>

#define B 8
#define STEPS 50

shared [B] double grids[2][B * THREADS];
double priv[2][B * 64];

int main(void) {
  int i, t, n = B * THREADS, now = 0, bad = 0;
  shared [B] double *left = &grids[0][0];
  upc_forall (i = 0; i < n; i++; &grids[0][i]) {
    grids[0][i] = i == 0 ? 100.0 : 0.0;
    grids[1][i] = grids[0][i];
  }
  upc_barrier;
  for (t = 0; t < STEPS; t++) {
    upc_forall (i = 1; i < n - 1; i++; &grids[0][i])
      grids[1 - now][i] = 0.25 * grids[now][i - 1] + 0.5 * grids[now][i] + 0.25 * grids[now][i + 1];
    now = 1 - now;
    upc_barrier t;
  }
  if (MYTHREAD == 0) {
    int was = 0;
    priv[0][0] = priv[1][0] = 100.0;
    for (t = 0; t < STEPS; t++, was = 1 - was)
      for (i = 1; i < n - 1; i++)
        priv[1 - was][i] = 0.25 * priv[was][i - 1] + 0.5 * priv[was][i] + 0.25 * priv[was][i + 1];
    for (i = 0; i < n; i++)
      if (grids[now][i] != priv[was][i])
        bad++;
    printf("heat: %d wrong, %.6f %.6f, left %.1f\n", bad, grids[now][1], grids[now][n / 2], *left);
  }
  return 0;
}
