/* Stencils on shared grids by elements, which gcc has as private ones (docs/upc.md): the time of the passes, the least, and a sum. */
#include <stdio.h>
#include <time.h>
#ifdef __UPC__
#include <upc_relaxed.h>
#define SHARED(b) shared [b]
#define FORALL(a, b, c, of) upc_forall (a; b; c; of)
#else
#define SHARED(b)
#define FORALL(a, b, c, of) for (a; b; c)
#define THREADS 1
#define MYTHREAD 0
#define upc_barrier
#endif
#ifndef N
#define N 64
#endif
#ifndef B
#define B N
#endif
#ifdef __UPC_STATIC_THREADS__
#define ROWS N
#elif defined __UPC__
#define ROWS N * THREADS
#else
#define ROWS N
#endif

static SHARED(B) double a[2][ROWS][N][N];
static SHARED(B) double p[2][ROWS][N];

/* Seven points of planes that a thread has. */
static void planes(int f, int t)
{
  int i, j, k;
  FORALL (i = 1, i < N - 1, i++, &a[t][i][0][0])
    for (j = 1; j < N - 1; j++)
      for (k = 1; k < N - 1; k++)
        a[t][i][j][k] = a[f][i][j][k] + 0.1 * (a[f][i - 1][j][k] + a[f][i + 1][j][k] + a[f][i][j - 1][k] + a[f][i][j + 1][k]
                                               + a[f][i][j][k - 1] + a[f][i][j][k + 1] - 6 * a[f][i][j][k]);
}

/* Six points of the elements that a thread has. */
static void elements(int f, int t)
{
  int i, j, k;
  for (i = 1; i < N - 1; i++)
    for (j = 1; j < N - 1; j++)
      FORALL (k = 1, k < N - 1, k++, &a[t][i][j][k])
        a[t][i][j][k] = (a[f][i - 1][j][k] + a[f][i + 1][j][k] + a[f][i][j - 1][k] + a[f][i][j + 1][k]
                         + a[f][i][j][k - 1] + a[f][i][j][k + 1]) / 6;
}

/* Six points, and the largest change. */
static double changes(int f, int t)
{
  int i, j, k;
  double most = 0;
  for (i = 1; i < N - 1; i++)
    for (j = 1; j < N - 1; j++)
      FORALL (k = 1, k < N - 1, k++, &a[t][i][j][k]) {
        double v = (a[f][i - 1][j][k] + a[f][i + 1][j][k] + a[f][i][j - 1][k] + a[f][i][j + 1][k]
                    + a[f][i][j][k - 1] + a[f][i][j][k + 1]) / 6;
        double d = v - a[f][i][j][k];
        if (d < 0)
          d = -d;
        if (d > most)
          most = d;
        a[t][i][j][k] = v;
      }
  return most;
}

/* Five points in two dimensions. */
static void rows(int f, int t)
{
  int i, j;
  FORALL (i = 1, i < N - 1, i++, &p[t][i][0])
    for (j = 1; j < N - 1; j++)
      p[t][i][j] = 0.25 * (p[f][i - 1][j] + p[f][i + 1][j] + p[f][i][j - 1] + p[f][i][j + 1]);
}

/* The same by elements. */
static void points(int f, int t)
{
  int i, j;
  for (i = 1; i < N - 1; i++)
    FORALL (j = 1, j < N - 1, j++, &p[t][i][j])
      p[t][i][j] = 0.25 * (p[f][i - 1][j] + p[f][i + 1][j] + p[f][i][j - 1] + p[f][i][j + 1]);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
  static const char *const names[] = {"planes", "elements", "changes", "rows", "points"};
  int i, j, k, of, pass;
  for (of = 0; of < 5; of++) {
    double sum = 0, most = 0, least = 1e9, begun;
    int passes = of < 3 ? 1 + 60 * 64 * 64 / N / N * 64 / N : 1 + 4000 * 64 / N * 64 / N;
    if (MYTHREAD == 0)
      for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
          p[0][i][j] = p[1][i][j] = (i * 7 + j * 3) % 11;
          for (k = 0; k < N; k++)
            a[0][i][j][k] = a[1][i][j][k] = (i * 7 + j * 3 + k) % 11;
        }
    upc_barrier;
    begun = now();
    for (pass = 0; pass < passes; pass++) {
      double at = now();
      switch (of) {
      case 0: planes(pass & 1, !(pass & 1)); break;
      case 1: elements(pass & 1, !(pass & 1)); break;
      case 2: most += changes(pass & 1, !(pass & 1)); break;
      case 3: rows(pass & 1, !(pass & 1)); break;
      case 4: points(pass & 1, !(pass & 1)); break;
      }
      at = now() - at;
      if (at < least)
        least = at;
      upc_barrier;
    }
    begun = now() - begun;
    if (MYTHREAD == 0) {
      for (i = 0; i < N; i++)
        for (j = 0; j < N; j++) {
          sum += p[0][i][j] * ((i + j) % 3);
          for (k = 0; k < N; k++)
            sum += a[0][i][j][k] * ((i + j + k) % 3);
        }
      printf("%-8s %8.1f ms, a pass %8.1f us, %.10g %.10g\n", names[of], begun * 1e3, least * 1e6, sum, most);
    }
    upc_barrier;
  }
  return 0;
}
