// Relocalization between all: 7.4.2.5 upc_all_exchange, 7.4.2.6 upc_all_permute.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

#define N 3
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)

shared [N] int a[N * THREADS], b[N * THREADS];
shared int perm[THREADS];

int main(void) {
  int i, j, k;
  shared int *src = upc_all_alloc(THREADS, N * THREADS * sizeof(int)), *dst = upc_all_alloc(THREADS, N * THREADS * sizeof(int));
  shared [] int *mine = (shared [] int *)&src[MYTHREAD];
  for (i = 0; i < N * THREADS; i++)
    mine[i] = 100 * MYTHREAD + i;
  /* 7.4.2.5, 2 to 6: block i of thread j is block j of thread i. */
  upc_all_exchange(dst, src, N * sizeof(int), ALL);
  for (i = 0; i < THREADS; i++)
    for (j = 0; j < THREADS; j++)
      for (k = 0; k < N; k++)
        CHECK(((shared [] int *)&dst[i])[N * j + k] == 100 * j + N * i + k);
  upc_barrier;
  /* Twice is where it was. */
  upc_all_exchange(src, dst, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++)
    CHECK(mine[i] == 100 * MYTHREAD + i);
  /* 7.4.2.6, 2 to 7: the block of thread i goes to thread perm[i]. */
  for (i = 0; i < N; i++)
    a[N * MYTHREAD + i] = 10 * MYTHREAD + i, b[N * MYTHREAD + i] = -1;
  perm[MYTHREAD] = THREADS - 1 - MYTHREAD;
  upc_all_permute(b, a, perm, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++)
    CHECK(b[i] == 10 * (THREADS - 1 - i / N) + i % N);
  upc_barrier;
  perm[MYTHREAD] = (MYTHREAD + 1) % THREADS;
  /* 7.4.2.6, 7: phases of src and dst are taken as 0. */
  upc_all_permute(&b[2], &a[1], perm, sizeof(int), ALL);
  CHECK(b[N * MYTHREAD + 2] == 10 * ((MYTHREAD + THREADS - 1) % THREADS) + 1);
  CHECK(b[N * MYTHREAD + 1] == 10 * (THREADS - 1 - MYTHREAD) + 1);
  /* 7.4, 4: a thread that stays where it is. */
  upc_barrier;
  perm[MYTHREAD] = MYTHREAD;
  upc_all_permute(b, a, perm, N * sizeof(int), ALL);
  CHECK(b[N * MYTHREAD + 2] == 10 * MYTHREAD + 2);
  return clause_done();
}
