// THREADS is an expression of type int, the same on every thread.
#include <upc.h>
#include "clause.h"

shared int seen[THREADS];

int main(void) {
  int i;
  CHECK(THREADS > 0 && sizeof(THREADS) == sizeof(int) && THREADS - THREADS - 1 < 0);
  seen[MYTHREAD] = THREADS;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK(seen[i] == THREADS);
#if defined(__UPC_STATIC_THREADS__)
#if THREADS < 1
#error THREADS is no constant
#endif
  switch (THREADS) { /* an integer constant, which labels and dimensions may have */
  case THREADS:
    break;
  default:
    CHECK(0);
  }
  {
    int a[THREADS + 1];
    CHECK(sizeof a == (THREADS + 1) * sizeof(int));
  }
#endif
  return clause_done();
}
