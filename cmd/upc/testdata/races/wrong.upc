// Programs with one data race each: argument N runs number N. Both places are marked.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <upc_atomic.h>
#include <stdlib.h>

#define NEXT ((MYTHREAD + 1) % THREADS)
#define FIRST (MYTHREAD == 0)

shared int n, cells[THREADS], out[THREADS];
shared [4] int rows[THREADS][4];
shared struct { unsigned low : 4, high : 4; } fields;
shared struct pair { int a, b; } pair, got[THREADS];
strict shared int flag;
upc_lock_t *lock, *other;

/* An update without a lock. */
void update(void) { n++; /* race 1 */ }

/* A neighbour's element, without a barrier. */
void neighbour(void) {
  int i;
  for (i = 0; i < 2; i++) {
    upc_barrier;
    cells[MYTHREAD] = i; /* race 2 */
    out[MYTHREAD] = cells[NEXT]; /* race 2 */
  }
}

/* The reader has no lock. */
void half(void) {
  if (FIRST) {
    upc_lock(lock);
    pair.b = 1; /* race 3 */
    upc_unlock(lock);
  } else
    got[MYTHREAD] = pair; /* race 3 */
}

/* Two locks. */
void locks(void) {
  upc_lock_t *l = FIRST ? lock : other;
  if (MYTHREAD > 1) return;
  upc_lock(l);
  n += 2; /* race 4 */
  upc_unlock(l);
}

/* What is written after the notify need not be there after the wait. */
void split(void) {
  upc_notify 1;
  cells[MYTHREAD] = 5; /* race 5 */
  upc_wait 1;
  out[MYTHREAD] = cells[NEXT]; /* race 5 */
}

/* A flag that is written before what it says is there. */
void early(void) {
  if (FIRST) {
    flag = 1;
    n = 7; /* race 6 */
  } else {
    while (!flag) ;
    out[MYTHREAD] = n; /* race 6 */
  }
}

/* A row that another thread fills. */
void fill(void) {
  int i, row[4] = {1, 2, 3, 4};
  upc_memput(&rows[NEXT][0], row, sizeof row); /* race 7 */
  for (i = 3; i < 4; i++) out[MYTHREAD] += rows[MYTHREAD][i]; /* race 7 */
}

/* Another thread's part of what a broadcast brings, which need not be there. */
void bring(void) {
  upc_all_broadcast(cells, &n, sizeof n, UPC_IN_ALLSYNC | UPC_OUT_MYSYNC); /* race 8 */
  out[MYTHREAD] = cells[NEXT]; /* race 8 */
}

/* Elements that come from the ones before, in place. */
void place(void) {
  int i;
  upc_forall (i = 1; i < THREADS; i++; &cells[i])
    cells[i] = cells[i - 1] + 1; /* race 9 */
}

/* Two bit-fields of a word; a fence orders a thread's own accesses only. */
void bits(void) {
  if (FIRST) {
    fields.low = 1; /* race 10 */
    upc_fence;
  } else if (MYTHREAD == 1) {
    upc_fence;
    fields.high = 2; /* race 10 */
  }
}

int main(int argc, char **argv) {
  void (*all[])(void) = {update, neighbour, half, locks, split, early, fill, bring, place, bits};
  lock = upc_all_lock_alloc(), other = upc_all_lock_alloc();
  upc_barrier;
  all[atoi(argv[1]) - 1]();
  upc_barrier;
  return 0;
}
