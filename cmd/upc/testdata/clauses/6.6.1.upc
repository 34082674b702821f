// Barrier statements.
#include <upc_relaxed.h>
#include "clause.h"

shared int a[THREADS], b[THREADS];

int main(void) {
  int i, next = (MYTHREAD + 1) % THREADS, n = 0;
  double d = 7.9;
  upc_notify;
  upc_wait;
  for (i = 1; i <= 5; i++) {
    a[next] = i;
    upc_barrier i; /* 6: what is accessed before it is seen after it */
    CHECK(a[MYTHREAD] == i);
    /* 4: accesses between notify and wait stand in either phase. */
    b[next] = 10 * i;
    upc_notify 3 * i;
    /* A thread that has waited may write what it writes in the next phase. */
    CHECK(a[MYTHREAD] == i || a[MYTHREAD] == i + 1);
    upc_wait i + i + i;
    CHECK(b[MYTHREAD] == 10 * i);
  }
  /* 7: an expression that is missing matches all; thread zero alone gives one. */
  if (MYTHREAD == 0)
    upc_barrier 17;
  else
    upc_barrier;
  upc_notify;
  upc_wait;
  upc_notify 5;
  upc_wait;
  /* 8: the expression is evaluated once. */
  upc_barrier n++;
  CHECK(n == 1);
  /* 2: its type may be any that an int may be assigned. */
  upc_barrier d;
  upc_barrier 'c';
  upc_barrier(long long)1;
  upc_barrier - 3;
  upc_fence; /* 5 */
  { upc_fence; }
  return clause_done();
}
