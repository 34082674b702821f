// Relocalization that collects: 7.4.2.3 upc_all_gather, 7.4.2.4 upc_all_gather_all.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

#define N 3
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)

shared [N] int a[N * THREADS];
shared [] int *shared rows;

int main(void) {
  int i, j, last = THREADS - 1;
  shared [] int *r;
  shared int *every;
  for (i = 0; i < N; i++)
    a[N * MYTHREAD + i] = 10 * MYTHREAD + i;
  if (MYTHREAD == last) {
    rows = upc_alloc((N * THREADS + 1) * sizeof(int));
    rows[N * THREADS] = -1;
  }
  upc_barrier;
  r = rows;
  /* 7.4.2.3, 2 to 7: the block of thread i is block i of an area of one thread. */
  upc_all_gather(r, a, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++)
    CHECK(r[i] == 10 * (i / N) + i % N);
  CHECK(r[N * THREADS] == -1);
  upc_barrier;
  /* 7.4.2.3, 4 to 7: src has phase 0 whatever its phase is. */
  upc_all_gather(r + 1, &a[2], sizeof(int), ALL);
  CHECK(r[0] == 0);
  for (i = 0; i < THREADS; i++)
    CHECK(r[1 + i] == 10 * i + 2);
  /* 7.4.2.4: every thread has the whole. dst is an area of each thread, so that THREADS * N
   * elements follow each other on a thread. */
  every = upc_all_alloc(THREADS, N * THREADS * sizeof(int));
  upc_all_gather_all(every, a, N * sizeof(int), ALL);
  for (i = 0; i < THREADS; i++) {
    shared [] int *part = (shared [] int *)&every[i];
    for (j = 0; j < N * THREADS; j++)
      CHECK(part[j] == 10 * (j / N) + j % N);
  }
  upc_barrier;
  upc_all_gather_all(every, &a[1], sizeof(int), ALL);
  for (j = 0; j < THREADS; j++)
    CHECK(((shared [] int *)&every[MYTHREAD])[j] == 10 * j + 1);
  CHECK(a[N * MYTHREAD + 2] == 10 * MYTHREAD + 2);
  return clause_done();
}
