// Shared memory allocation.
#include <upc_relaxed.h>
#include <string.h>
#include "clause.h"

shared [] int *shared box[THREADS];
shared void *shared all[THREADS];

int main(void) {
  int i, next = (MYTHREAD + 1) % THREADS;
  shared [8] char *a;
  shared void *p, *q;
  shared [] int *mine;
  struct big { shared void *p; double d; } shared *aligned;

  /* 7.2.2.2: the same on all threads, as shared [8] char[5 * THREADS * 8]. */
  a = upc_all_alloc(5 * THREADS, 8);
  CHECK(upc_phaseof(a) == 0 && upc_threadof(a) == 0);
  all[MYTHREAD] = a;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK(all[i] == a);
  for (i = 0; i < 40 * THREADS; i++)
    CHECK(upc_threadof(&a[i]) == i / 8 % THREADS);
  upc_forall (i = 0; i < 40 * THREADS; i++; &a[i])
    a[i] = i % 100;
  upc_barrier;
  for (i = next; i < 40 * THREADS; i += 7)
    CHECK(a[i] == i % 100);
  CHECK(upc_all_alloc(0, 8) == NULL && upc_all_alloc(8, 0) == NULL);
  /* 7.2.2.5 */
  upc_all_free(a);
  upc_all_free(NULL);

  /* 7.2.2.1: another one to each thread that calls. */
  p = upc_global_alloc(THREADS, 16);
  CHECK(p && upc_phaseof(p) == 0 && upc_threadof(p) == 0 && upc_global_alloc(0, 3) == NULL && upc_global_alloc(3, 0) == NULL);
  all[MYTHREAD] = p;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK(i == MYTHREAD || all[i] != p);
  /* Not collective: one thread alone. */
  if (MYTHREAD == THREADS / 2) {
    q = upc_global_alloc(2, 8);
    CHECK(q && q != p);
    upc_free(q);
  }

  /* 7.2.2.3: with affinity to the caller. */
  mine = upc_alloc(10 * sizeof(int));
  CHECK(upc_threadof(mine) == MYTHREAD && upc_threadof(mine + 9) == MYTHREAD && upc_phaseof(mine) == 0 && upc_alloc(0) == NULL);
  for (i = 0; i < 10; i++)
    mine[i] = 10 * MYTHREAD + i;
  box[MYTHREAD] = mine;
  upc_barrier;
  CHECK(box[next][9] == 10 * next + 9);
  upc_barrier;
  /* 7.2.2.4: any thread frees. */
  upc_free(box[next]);
  upc_free(all[next]);
  upc_free(NULL);

  /* 1: aligned for every type, and zero phase. */
  aligned = upc_alloc(sizeof *aligned);
  CHECK(upc_addrfield(aligned) % sizeof(double) == 0);
  aligned->d = 1.5;
  aligned->p = aligned;
  CHECK(aligned->p == aligned && aligned->d == 1.5);
  upc_free(aligned);
  /* 2: either function frees what any other has allocated. */
  p = upc_all_alloc(THREADS, 4);
  upc_barrier;
  if (MYTHREAD == 0)
    upc_free(p);
  if (MYTHREAD == 0)
    all[0] = upc_alloc(12);
  upc_barrier;
  upc_all_free(all[0]);
  /* Space is used again: more than the heap is allocated in turn. */
  for (i = 0; i < 300; i++) {
    p = upc_alloc(1 << 16);
    CHECK(p != NULL);
    upc_free(p);
  }
  return clause_done();
}
