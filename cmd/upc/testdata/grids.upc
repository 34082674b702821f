/* Loops over shared grids that go by strips, and such as must not: in blocks of all kinds, with neighbours in other blocks, indices that wrap
   round or stand behind conditions, and writes to what the loop reads. gcc -x c prints the same. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __UPC__
#include <upc_relaxed.h>
#define SHARED(b) shared [b]
#define FORALL(a, b, c, of) upc_forall (a; b; c; of)
#define EACH THREADS
#define MINE(of) (upc_threadof(of) == MYTHREAD)
#else
#define SHARED(b)
#define FORALL(a, b, c, of) for (a; b; c)
#define THREADS 1
#define MYTHREAD 0
#define EACH 1
#define MINE(of) 1
#define upc_barrier
#define upc_fence
#endif
#define N 15
#define LINE (N * N * N)

static SHARED(1) long visits[LINE * EACH];
static int plane, none;
static volatile int seven = 7;

static void show(const char *name, const char *of, double sum) {
  if (MYTHREAD == 0)
    printf("%s %s %.17g\n", name, of, sum);
}

/* A grid, another one, and what loops do with them; T is the type of elements, B the block size. */
#define GRID(name, T, B, ANY)                                                                                                \
  static SHARED(B) T name##a[2][N * ANY][N][N], name##v[LINE * ANY];                                                         \
  static void name##_fill(void) {                                                                                            \
    int i, j, k;                                                                                                             \
    upc_barrier;                                                                                                             \
    if (MYTHREAD == 0) {                                                                                                     \
      for (i = 0; i < N; i++)                                                                                                \
        for (j = 0; j < N; j++)                                                                                              \
          for (k = 0; k < N; k++)                                                                                            \
            name##a[0][i][j][k] = name##a[1][i][j][k] = (T)((i * 7 + j * 3 + k * 5) % 13);                                   \
      for (k = 0; k < LINE; k++)                                                                                             \
        name##v[k] = (T)(k % 17), visits[k] = 0;                                                                             \
    }                                                                                                                        \
    upc_barrier;                                                                                                             \
  }                                                                                                                          \
  static void name##_sum(const char *of) {                                                                                   \
    int i, j, k;                                                                                                             \
    double sum = 0;                                                                                                          \
    upc_barrier;                                                                                                             \
    for (i = 0; i < N; i++)                                                                                                  \
      for (j = 0; j < N; j++)                                                                                                \
        for (k = 0; k < N; k++)                                                                                              \
          sum += (double)name##a[1][i][j][k] * ((i + 2 * j + 3 * k) % 5) - visits[(i * N + j) * N + k];                      \
    for (k = 0; k < LINE; k++)                                                                                               \
      sum += (double)name##v[k] * (k % 3);                                                                                   \
    show(#name, of, sum);                                                                                                    \
  }                                                                                                                          \
  /* Neighbours in all directions, by elements, rows and planes. */                                                          \
  static void name##_stencils(void) {                                                                                        \
    int i, j, k, m = seven;                                                                                                  \
    name##_fill();                                                                                                           \
    for (i = 1; i < N - 1; i++)                                                                                              \
      for (j = 1; j < N - 1; j++)                                                                                            \
        FORALL (k = 1, k < N - 1, k++, &name##a[1][i][j][k]) {                                                               \
          name##a[1][i][j][k] = (name##a[0][i - 1][j][k] + name##a[0][i + 1][j][k] + name##a[0][i][j - 1][k] +               \
                                 name##a[0][i][j + 1][k] + name##a[0][i][j][k - 1] + name##a[0][i][j][k + 1]) * (T)0.25;     \
          visits[(i * N + j) * N + k] += 1 + 10 * !MINE(&name##a[1][i][j][k]);                                               \
        }                                                                                                                    \
    name##_sum("elements");                                                                                                  \
    name##_fill();                                                                                                           \
    FORALL (i = 1, i < N - 1, i++, &name##a[1][i][0][0])                                                                     \
      for (j = 2; j < N; j++)                                                                                                \
        for (k = 0; k < N - 9; k++)                                                                                          \
          name##a[1][i][j][k + m] = name##a[0][i][j][k + m - 1] + name##a[0][i][j - 2][1 + k + m] / (T)4 +                   \
                                    name##a[0][i + 1][j][k + 9] * (T)0.1 - name##a[0][i - 1][j][k] * (T)2;                   \
    name##_sum("planes");                                                                                                    \
    name##_fill();                                                                                                           \
    FORALL (k = 2, k < LINE - 2, k++, &name##v[k])                                                                           \
      name##v[k] += (T)((k + visits[k]) % 3);                                                                                \
    upc_barrier;                                                                                                             \
    if (MYTHREAD == THREADS - 1)                                                                                             \
      for (k = 2; k < LINE - 2; k++)                                                                                         \
        name##a[1][0][0][k % N] += name##v[k - 2] - name##v[k + 2] * 2;                                                      \
    name##_sum("line");                                                                                                      \
  }                                                                                                                          \
  /* What the loop writes it reads in the next iteration; other pointers write it, and functions change where it reads. */   \
  static int name##_until(int end) {                                                                                         \
    int k;                                                                                                                   \
    for (k = 0; k < end; k++)                                                                                                \
      if (name##v[k + 1] == 11)                                                                                              \
        return k;                                                                                                            \
    return -1;                                                                                                               \
  }                                                                                                                          \
  static void name##_change(int k) {                                                                                         \
    plane = k & 1;                                                                                                           \
    name##v[k + 2] += 1;                                                                                                     \
  }                                                                                                                          \
  static void name##_aliases(void) {                                                                                         \
    int i, j, k, m = seven;                                                                                                  \
    SHARED(B) T *p = &name##v[3];                                                                                            \
    name##_fill();                                                                                                           \
    if (MYTHREAD == THREADS / 2) {                                                                                           \
      for (k = 1; k < LINE; k++)                                                                                             \
        name##v[k] = name##v[k - 1] + (T)(k & 1);                                                                            \
      for (i = 1; i < 4; i++)                                                                                                \
        for (k = 0; k < N - 1; k++)                                                                                          \
          name##a[1][i][3][k + 1] = name##a[1][i][3][k] - name##a[1][i - 1][3][k + 1];                                       \
    }                                                                                                                        \
    name##_sum("own writes");                                                                                                \
    name##_fill();                                                                                                           \
    if (MYTHREAD == 0)                                                                                                       \
      for (k = 0; k < 90; k++) {                                                                                             \
        p[k] = name##v[k + 2] + 1;                                                                                           \
        upc_fence;                                                                                                           \
        name##v[k + 4] -= name##v[k + 3];                                                                                    \
      }                                                                                                                      \
    name##_sum("pointers");                                                                                                  \
    name##_fill();                                                                                                           \
    if (MYTHREAD == 0)                                                                                                       \
      for (k = 0; k < N; k++) {                                                                                              \
        name##a[1][2][k][plane] += name##v[k + 2];                                                                           \
        name##a[plane][2][1][k] += 1;                                                                                        \
        name##_change(k);                                                                                                    \
        name##a[1][m][2][k] += name##v[k + 3];                                                                               \
        m = (m + 1) % N;                                                                                                     \
      }                                                                                                                      \
    name##_sum("calls");                                                                                                     \
    show(#name, "until", name##_until(LINE - 1) + name##_until(3) + name##_until(none) + name##_until(-4));                  \
    for (k = 0, j = 0; k < N; k++) {                                                                                         \
      if (name##v[k] == 4)                                                                                                   \
        continue;                                                                                                            \
      j += k + (int)name##v[k + m - 5 < 0 ? k : k + 1];                                                                      \
    }                                                                                                                        \
    show(#name, "continue", j + k);                                                                                          \
  }                                                                                                                          \
  /* Indices before the grid that no iteration uses, and numbers that wrap round. */                                         \
  static long name##_far(int k) {                                                                                            \
    long i;                                                                                                                  \
    for (i = 0; i < LONG_MAX; i++)                                                                                           \
      if (name##v[i] == name##v[k] && name##v[i + 1] == name##v[k + 1])                                                      \
        return i;                                                                                                            \
    return -1;                                                                                                               \
  }                                                                                                                          \
  static size_t name##_size(int k) {                                                                                         \
    size_t i;                                                                                                                \
    for (i = 0; i < SIZE_MAX; i++)                                                                                           \
      if (name##v[i] == name##v[k] && name##v[i + 2] == name##v[k + 2])                                                      \
        return i;                                                                                                            \
    return 0;                                                                                                                \
  }                                                                                                                          \
  static void name##_indices(void) {                                                                                         \
    int i, k, from = -seven;                                                                                                 \
    unsigned u, w = 0u - 1u;                                                                                                 \
    unsigned char c = (unsigned char)(seven + 250);                                                                          \
    unsigned long z = 0ul - (unsigned long)seven;                                                                            \
    double sum = 0;                                                                                                          \
    name##_fill();                                                                                                           \
    for (k = from; k < N; k++)                                                                                               \
      if (k > 0)                                                                                                             \
        sum += name##a[0][0][0][k - 1] + name##v[k];                                                                         \
    for (k = 0; k < N; k++)                                                                                                  \
      sum += k > 1 ? name##a[0][0][0][k - 2] : 0;                                                                            \
    for (k = LINE - 30; k < LINE + 400000; k++)                                                                              \
      if (k < LINE - 1)                                                                                                      \
        sum += name##v[k + 1] * (k % 7);                                                                                     \
    for (u = 1; u < N; u++)                                                                                                  \
      sum += name##v[u + w] * u + name##v[u - 1];                                                                            \
    for (u = 5; u < N; u++)                                                                                                  \
      sum += name##v[u + (w - 3) + 1] * u;                                                                                   \
    for (k = 10; k < N; k++)                                                                                                 \
      sum += name##v[k + z] * k - name##v[(unsigned char)(k + c)];                                                           \
    for (k = N; k > 4; k--)                                                                                                  \
      sum += name##v[N - k] - name##v[k - 4];                                                                                \
    for (i = 0; i < 3; i++)                                                                                                  \
      for (k = 0; k < none + i; k++)                                                                                         \
        sum += name##a[0][i][k][k] * 100 + name##a[1][N - 1][N - 1 - k][N - 1] + (int)sizeof name##v[k];                     \
    sum += name##_far(7) + name##_size(9) * 3;                                                                               \
    show(#name, "indices", sum);                                                                                             \
    upc_barrier;                                                                                                             \
  }                                                                                                                          \
  static void name##_all(void) {                                                                                             \
    name##_stencils();                                                                                                       \
    name##_aliases();                                                                                                        \
    name##_indices();                                                                                                        \
  }

GRID(cyclic, double, 1, EACH)
GRID(three, long, 3, EACH)
GRID(sixteen, double, 16, EACH)
GRID(row, double, N, EACH)
GRID(across, float, N + 4, EACH)
GRID(block, short, N * N, EACH)
GRID(two, double, 2 * N * N, EACH)
GRID(whole, int, , 1)

int main(void) {
  cyclic_all();
  three_all();
  sixteen_all();
  row_all();
  across_all();
  block_all();
  two_all();
  whole_all();
  return 0;
}
