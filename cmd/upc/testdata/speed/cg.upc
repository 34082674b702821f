// Conjugate gradients with a sparse matrix of nine diagonals, whose rows are spread by blocks: the
// least time of an iteration, ns, and what is left of the residual.
#include <upc_relaxed.h>
#include <upc_tick.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

#define B 4096
#define NZ 9
#define PASSES 25

shared [B] double x[B * THREADS], r[B * THREADS], p[B * THREADS], q[B * THREADS];
shared double part[THREADS];

static double *val;
static int *col, *start;

static void matrix(void) {
  static const int off[NZ] = {-640, -64, -8, -1, 0, 1, 8, 64, 640};
  int i, k, n = 0, first = MYTHREAD * B;
  val = malloc(B * NZ * sizeof(double));
  col = malloc(B * NZ * sizeof(int));
  start = malloc((B + 1) * sizeof(int));
  for (i = 0; i < B; i++) {
    start[i] = n;
    for (k = 0; k < NZ; k++) {
      int j = first + i + off[k];
      if (j >= 0 && j < B * THREADS) {
        val[n] = off[k] == 0 ? 9.5 : -1;
        col[n++] = j;
      }
    }
  }
  start[B] = n;
}

static void multiply(void) {
  int i, k, first = MYTHREAD * B;
  upc_forall (i = 0; i < B * THREADS; i++; &q[i]) {
    double sum = 0;
    for (k = start[i - first]; k < start[i - first + 1]; k++)
      sum += val[k] * p[col[k]];
    q[i] = sum;
  }
}

static double sum_of(double mine) {
  int i;
  double all = 0;
  part[MYTHREAD] = mine;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    all += part[i];
  upc_barrier;
  return all;
}

int main(void) {
  int i, k;
  double rr = 0, pq, alpha, beta;
  upc_tick_t least = ~(upc_tick_t)0;
  matrix();
  upc_forall (i = 0; i < B * THREADS; i++; &x[i]) {
    x[i] = 0;
    r[i] = p[i] = 1 + i % 3;
    rr += r[i] * r[i];
  }
  rr = sum_of(rr);
  for (k = 0; k < PASSES; k++) {
    double was = rr;
    upc_tick_t now = upc_ticks_now();
    multiply();
    pq = 0;
    upc_forall (i = 0; i < B * THREADS; i++; &p[i])
      pq += p[i] * q[i];
    pq = sum_of(pq);
    alpha = rr / pq;
    rr = 0;
    upc_forall (i = 0; i < B * THREADS; i++; &x[i]) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      rr += r[i] * r[i];
    }
    rr = sum_of(rr);
    beta = rr / was;
    upc_forall (i = 0; i < B * THREADS; i++; &p[i])
      p[i] = r[i] + beta * p[i];
    now = upc_ticks_now() - now;
    if (now < least)
      least = now;
    upc_barrier;
  }
  if (MYTHREAD == 0)
    printf("%llu %.6e\n", (unsigned long long)upc_ticks_to_ns(least), sqrt(rr));
  return 0;
}
