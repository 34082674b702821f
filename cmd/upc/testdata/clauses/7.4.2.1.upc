// Relocalization from one thread: 7.4.2.1 upc_all_broadcast, 7.4.2.2 upc_all_scatter.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

#if !defined(__UPC_COLLECTIVE__) || __UPC_COLLECTIVE__ != 1
#error __UPC_COLLECTIVE__
#endif
#define N 5
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)

shared [N] int a[N * THREADS], b[N * THREADS];
shared char one[THREADS], got[THREADS];
shared [] int *shared rows;

int main(void) {
  int i, last = THREADS - 1;
  shared [] int *r;
  for (i = 0; i < N; i++)
    a[N * MYTHREAD + i] = 100 * MYTHREAD + i, b[N * MYTHREAD + i] = -1;
  one[MYTHREAD] = 'a' + MYTHREAD;
  /* 7.4.2.1, 2 to 5: the block of any thread, to all and its own among them. */
  upc_all_broadcast(b, &a[N * last], N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++)
    CHECK(b[i] == 100 * last + i % N);
  /* 7.4.2.1, 2 and 3: one byte. */
  upc_all_broadcast(got, &one[last], 1, ALL);
  CHECK(got[MYTHREAD] == 'a' + last && got[0] == 'a' + last);
  upc_barrier;
  /* 7.4.2.1, 4 to 7: dst has phase 0 whatever its phase is, src is not blocked: parts of blocks. */
  upc_all_broadcast(&b[1], &a[3], 2 * sizeof(int), ALL);
  for (i = 0; i < N; i++)
    CHECK(b[N * MYTHREAD + i] == (i == 1 || i == 2 ? i + 2 : 100 * last + i));
  upc_barrier;
  /* 7.4.2.2, 2 to 8: block i of an area of one thread goes to thread i. */
  if (MYTHREAD == last) {
    rows = upc_alloc(N * THREADS * sizeof(int));
    for (i = 0; i < N * THREADS; i++)
      rows[i] = 1000 + i;
  }
  upc_barrier;
  r = rows;
  upc_all_scatter(b, r, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++)
    CHECK(b[i] == 1000 + i);
  upc_barrier;
  /* 7.4.2.2, 4 to 7: blocks smaller than those of dst's type. */
  upc_all_scatter(&b[2], r + 1, sizeof(int), ALL);
  for (i = 0; i < N; i++)
    CHECK(b[N * MYTHREAD + i] == 1000 + (i == 2 ? 1 + MYTHREAD : N * MYTHREAD + i));
  /* The source is as it was. */
  CHECK(r[0] == 1000 && r[N * THREADS - 1] == 1000 + N * THREADS - 1);
  return clause_done();
}
