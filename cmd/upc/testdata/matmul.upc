// Matrix multiplication: rows of a and c in blocks, columns of b, which all threads read.
#include <upc_relaxed.h>
#include <stdio.h>

#define N 12
#define P 8
#define M 8

shared [P] int a[N * THREADS][P];
shared [M] int c[N * THREADS][M];
shared int b[P][M * THREADS];

void init(void) {
  int i, j;
  upc_forall (i = 0; i < N * THREADS; i++; &a[i][0])
    for (j = 0; j < P; j++)
      a[i][j] = i + j;
  upc_forall (i = 0; i < P; i++; continue)
    for (j = 0; j < M * THREADS; j++)
      if (MYTHREAD == 0)
        b[i][j] = i - j;
}

int main(void) {
  int i, j, l;
  long sum = 0, want = 0;
  init();
  upc_barrier;
  upc_forall (i = 0; i < N * THREADS; i++; &c[i][0]) {
    for (j = 0; j < M; j++) {
      c[i][j] = 0;
      for (l = 0; l < P; l++)
        c[i][j] += a[i][l] * b[l][j];
    }
  }
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 0; i < N * THREADS; i++)
      for (j = 0; j < M; j++) {
        int v = 0;
        for (l = 0; l < P; l++)
          v += (i + l) * (l - j);
        want += v;
        sum += c[i][j];
        if (c[i][j] != v)
          printf("c[%d][%d] is %d, not %d\n", i, j, c[i][j], v);
      }
    printf("matmul %ld %d\n", sum, sum == want);
  }
  return 0;
}
