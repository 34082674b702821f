// What the flags of collective functions say of when they touch memory.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

shared int from[THREADS], to[THREADS];
shared [] int source[1];

/* Each thread writes and reads what has affinity to it alone, before the call and after it. */
static void mine(upc_flag_t flags, int round) {
  if (MYTHREAD == 0)
    source[0] = round;
  upc_all_broadcast(to, source, sizeof(int), flags);
  CHECK(to[MYTHREAD] == round);
  to[MYTHREAD] = -1;
}

/* Each thread writes what has affinity to the next before the call, and reads after it what
 * all have got. */
static void all(upc_flag_t flags, shared int *perm, int round) {
  int i, next = (MYTHREAD + 1) % THREADS;
  from[next] = 1000 * round + next;
  upc_all_permute(to, from, perm, sizeof(int), flags);
  for (i = 0; i < THREADS; i++)
    CHECK(to[i] == 1000 * round + (i + THREADS - 1) % THREADS);
}

int main(void) {
  int r;
  shared int *perm = upc_all_alloc(THREADS, sizeof(int));
  perm[MYTHREAD] = (MYTHREAD + 1) % THREADS;
  upc_barrier;
  /* 2 and 3: MY; no barrier is between the rounds. */
  for (r = 1; r <= 20; r++)
    mine(UPC_IN_MYSYNC | UPC_OUT_MYSYNC, r);
  /* 4: one flag alone has the other ALL. */
  for (r = 1; r <= 10; r++)
    mine(UPC_IN_MYSYNC, r);
  upc_barrier;
  for (r = 1; r <= 10; r++)
    mine(UPC_OUT_MYSYNC, r);
  upc_barrier;
  /* 2 and 3: ALL. */
  for (r = 1; r <= 10; r++)
    all(UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC, perm, r);
  /* 4: none is both ALL. */
  for (r = 1; r <= 10; r++)
    all(0, perm, r);
  for (r = 1; r <= 5; r++) {
    all(UPC_IN_ALLSYNC, perm, r);
    all(UPC_OUT_ALLSYNC, perm, r + 100);
  }
  upc_barrier;
  /* 2 and 3: NO; what orders the accesses are barriers. */
  for (r = 1; r <= 10; r++) {
    int i;
    from[(MYTHREAD + 1) % THREADS] = 7 * r;
    upc_barrier;
    upc_all_permute(to, from, perm, sizeof(int), UPC_IN_NOSYNC | UPC_OUT_NOSYNC);
    upc_barrier;
    for (i = 0; i < THREADS; i++)
      CHECK(to[i] == 7 * r);
    upc_barrier;
  }
  return clause_done();
}
