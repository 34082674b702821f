// Programs without a data race that look like those of wrong.upc: argument N runs number N.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <upc_atomic.h>
#include <stdlib.h>

#define NEXT ((MYTHREAD + 1) % THREADS)
#define FIRST (MYTHREAD == 0)

shared int n, cells[THREADS], out[THREADS], start = 5;
shared [4] int rows[THREADS][4];
shared struct { char low, high, next; } bytes;
shared struct pair { int a, b; } pair, got[THREADS];
strict shared struct pair box;
strict shared int flag;
upc_lock_t *lock;
upc_lock_t *shared common;

/* A lock, waited for in either way. */
void update(void) {
  if (FIRST) upc_lock(lock); else while (!upc_lock_attempt(lock)) ;
  n++;
  upc_unlock(lock);
}

/* Barriers before and after a neighbour's element is read. */
void neighbour(void) {
  int i;
  for (i = 0; i < 3; i++) {
    upc_barrier;
    cells[MYTHREAD] = i;
    upc_barrier i;
    out[MYTHREAD] = cells[NEXT];
  }
}

/* Writer and reader have the lock. */
void both(void) {
  upc_lock(lock);
  if (FIRST) pair.b = 1;
  else got[MYTHREAD] = pair;
  upc_unlock(lock);
}

/* One lock under two names. */
void locks(void) {
  upc_lock_t *l = FIRST ? lock : common;
  upc_lock(l);
  n += 2;
  upc_unlock(l);
}

/* What is written before the notify is there after the wait; what is between is the thread's own. */
void split(void) {
  cells[MYTHREAD] = 5;
  upc_notify;
  rows[MYTHREAD][0]++;
  upc_wait;
  out[MYTHREAD] = cells[NEXT] + rows[MYTHREAD][0];
}

/* Strict accesses say that something is there, by a word and by a structure. */
void said(void) {
  struct pair p = {1, 2}, q;
  if (FIRST) {
    n = 7;
    flag = 1;
    pair.a = 8;
    box = p;
  } else {
    while (!flag) ;
    out[MYTHREAD] = n;
    do q = box; while (q.b != 2);
    out[MYTHREAD] += pair.a;
  }
}

/* Rows that one thread fills, each its own, and memory that is allocated anew. */
void fill(void) {
  int i, row[2] = {1, 2};
  shared int *p;
  upc_memput(&rows[NEXT][2 * (MYTHREAD % 2)], row, sizeof row);
  for (i = 0; i < 2; i++) {
    upc_lock(lock);
    p = upc_global_alloc(THREADS, sizeof(int));
    upc_unlock(lock);
    p[NEXT] = i;
    upc_lock(lock);
    upc_free(p);
    upc_unlock(lock);
  }
}

/* A broadcast after which all have the data; and one whose result each thread reads where it has it. */
void bring(void) {
  if (FIRST) n = 3;
  upc_all_broadcast(cells, &n, sizeof n, UPC_IN_MYSYNC | UPC_OUT_ALLSYNC);
  out[MYTHREAD] = cells[NEXT];
  upc_barrier;
  if (FIRST) pair.a = n = 4;
  upc_all_broadcast(cells, &n, sizeof n, UPC_IN_MYSYNC | UPC_OUT_MYSYNC);
  out[MYTHREAD] = cells[MYTHREAD] + pair.a; /* the data came after it */
}

/* Elements that come from the ones before, elsewhere. */
void place(void) {
  int i;
  upc_forall (i = 1; i < THREADS; i++; &cells[i])
    out[i] = cells[i - 1] + 1;
}

/* Members of one word, and atomics at one place. */
void words(void) {
  upc_atomicdomain_t *d = upc_all_atomicdomain_alloc(UPC_INT, UPC_INC | UPC_GET, 0);
  int got;
  if (FIRST) bytes.low = 1;
  else if (MYTHREAD == 1) bytes.high = 2;
  else bytes.next = 3;
  upc_atomic_relaxed(d, NULL, UPC_INC, &n, NULL, NULL);
  upc_atomic_relaxed(d, &got, UPC_GET, &n, NULL, NULL);
  upc_barrier;
  out[MYTHREAD] = n + got;
}

/* What is initialised is there on all threads. */
void initial(void) { out[MYTHREAD] = start; }

int main(int argc, char **argv) {
  void (*all[])(void) = {update, neighbour, both, locks, split, said, fill, bring, place, words, initial};
  lock = upc_all_lock_alloc();
  if (FIRST) common = lock;
  upc_barrier;
  all[atoi(argv[1]) - 1]();
  upc_barrier;
  return 0;
}
