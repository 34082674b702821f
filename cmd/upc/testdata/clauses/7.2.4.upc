// Locks.
#include <upc_relaxed.h>
#include "clause.h"

upc_lock_t *l, *own;
upc_lock_t *shared locks[THREADS];
shared int counter, held, tries;
shared [] int pair[2];

int main(void) {
  int i;
  /* 7.2.4.3: the same lock on all threads, unlocked. */
  l = upc_all_lock_alloc();
  /* 7.2.4.2: another lock to each thread. */
  own = upc_global_lock_alloc();
  locks[MYTHREAD] = own;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK((locks[i] == own) == (i == MYTHREAD) && locks[i] != l && locks[i] != NULL);
  /* 7.2.4.6 and 8: one thread at a time, and its accesses are seen by the next. */
  for (i = 0; i < 20; i++) {
    upc_lock(l);
    CHECK(held == 0 && pair[0] == pair[1]);
    held = 1;
    counter++;
    pair[0]++;
    pair[1]++;
    held = 0;
    upc_unlock(l);
  }
  upc_barrier;
  CHECK(counter == 20 * THREADS && pair[1] == counter);
  /* 7.2.4.7: 1 and the lock, or 0. */
  if (MYTHREAD == 0)
    CHECK(upc_lock_attempt(l) == 1);
  upc_barrier;
  if (MYTHREAD != 0)
    CHECK(upc_lock_attempt(l) == 0);
  upc_barrier;
  if (MYTHREAD == 0)
    upc_unlock(l);
  upc_barrier;
  while (!upc_lock_attempt(l))
    ;
  tries++;
  upc_unlock(l);
  upc_barrier;
  CHECK(tries == THREADS);
  /* Several locks at once, and other threads' locks. */
  if (MYTHREAD == THREADS - 1) {
    for (i = 0; i < THREADS; i++)
      upc_lock(locks[i]);
    for (i = 0; i < THREADS; i++)
      upc_unlock(locks[i]);
    upc_lock(locks[0]); /* it is freed while it is locked */
  }
  upc_barrier;
  /* 7.2.4.4: whether it is locked or not; null is nothing. */
  if (MYTHREAD == 0)
    for (i = 0; i < THREADS; i++)
      upc_lock_free(locks[i]);
  upc_lock_free(NULL);
  upc_all_lock_free(l); /* 7.2.4.5 */
  upc_all_lock_free(NULL);
  return clause_done();
}
