// Array declarators.
#include <upc_relaxed.h>
#include "clause.h"

shared int x1[10 * THREADS]; /* example 1 */
shared int x2[THREADS * (100 * 20)];
shared [] int x3[10];
shared int x4[3][THREADS][2];
#ifdef __UPC_STATIC_THREADS__
shared [*] int counted[] = { 5, 6, 7, 8, 9, 10 }; /* 4: an initializer, which gives the size */
shared int y1[10 + THREADS]; /* example 2 */
shared [] int y2[THREADS];
shared int y3[10];
shared int y4[THREADS][4 * THREADS];
shared int y5[THREADS * THREADS];
shared [3] int y6[10]; /* example 3 */
#endif
typedef int S[10]; /* example 4 */
shared [3] S T[3 * THREADS];
shared [] double D[100];
shared [] long *p;

int main(void) {
  int i, j;
  /* 5: the i-th element, of arrays of arrays too, has affinity to i / block % THREADS. */
  for (i = 0; i < 3 * THREADS; i++)
    for (j = 0; j < 10; j++)
      CHECK(upc_threadof(&T[i][j]) == (10 * i + j) / 3 % THREADS && upc_phaseof(&T[i][j]) == (10 * i + j) % 3);
  for (i = 0; i < 3; i++)
    for (j = 0; j < 2 * THREADS; j++)
      CHECK(upc_threadof(&x4[i][j / 2][j % 2]) == (2 * THREADS * i + j) % THREADS);
  /* 7 */
  CHECK(upc_phaseof(&T) == 0 && upc_phaseof(&x1) == 0 && upc_phaseof(&x4[1]) == 0);
  CHECK(sizeof T == 30 * THREADS * sizeof(int) && upc_blocksizeof(T) == 3 && sizeof x2 == 8000 * THREADS);
  for (i = 0; i < 100; i++)
    CHECK(upc_threadof(&D[i]) == 0);
  p = upc_alloc(5 * sizeof(long));
  for (i = 0; i < 5; i++)
    CHECK(upc_threadof(&p[i]) == MYTHREAD);
  upc_free(p);
#ifdef __UPC_STATIC_THREADS__
  for (i = 0; i < 6; i++)
    CHECK(counted[i] == 5 + i && upc_blocksizeof(counted) == (6 + THREADS - 1) / THREADS);
  CHECK(sizeof y1 == (10 + THREADS) * 4 && sizeof y4 == 16 * THREADS * THREADS && sizeof y5 == 4 * THREADS * THREADS);
  for (i = 0; i < 10; i++)
    CHECK(upc_threadof(&y6[i]) == i / 3 % THREADS && upc_threadof(&y3[i]) == i % THREADS);
  for (i = 0; i < THREADS; i++)
    for (j = 0; j < 4 * THREADS; j++)
      CHECK(upc_threadof(&y4[i][j]) == j % THREADS && upc_threadof(&y2[i]) == 0);
#endif
  upc_barrier;
  /* Every element is a place of its own. */
  if (MYTHREAD == 0) {
    for (i = 0; i < 3 * THREADS; i++)
      for (j = 0; j < 10; j++)
        T[i][j] = 100 * i + j;
    for (i = 0; i < 6 * THREADS; i++)
      (&x4[0][0][0])[i] = i;
  }
  upc_barrier;
  for (i = 0; i < 3 * THREADS; i++)
    for (j = 0; j < 10; j++)
      CHECK(T[i][j] == 100 * i + j);
  CHECK(x4[2][THREADS - 1][1] == 6 * THREADS - 1 && x4[1][0][0] == 2 * THREADS);
  return clause_done();
}
