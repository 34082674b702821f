// Program execution: what strict accesses order.
#include <upc_relaxed.h>
#include "clause.h"

strict shared int flags[2 * THREADS];
shared int data[THREADS];
strict shared int x, y;
shared int rx, ry;

int main(void) {
  int next = (MYTHREAD + 1) % THREADS, before = (MYTHREAD + THREADS - 1) % THREADS, r;
  /* 5: relaxed accesses before a strict one are seen before it, those after it after. */
  for (r = 1; r <= 20; r++) {
    data[next] = 100 * r + MYTHREAD;
    flags[next] = r;
    while (flags[MYTHREAD] != r)
      ;
    CHECK(data[MYTHREAD] == 100 * r + before);
    flags[THREADS + before] = r; /* it is read */
    while (flags[THREADS + MYTHREAD] != r)
      ;
  }
  /* 4: one order of all strict accesses: of two threads that each write one word and read the
   * other, one at least sees what the other has written. */
  for (r = 0; r < 20; r++) {
    if (MYTHREAD == 0)
      x = y = 0, rx = ry = 1;
    upc_barrier;
    if (MYTHREAD == 0)
      x = 1, rx = y;
    else if (MYTHREAD == 1)
      y = 1, ry = x;
    upc_barrier;
    CHECK(rx || ry);
    upc_barrier;
  }
  /* 3: a thread's own accesses to one place stay in order. */
  for (r = 0; r < 10; r++) {
    data[next] = r;
    CHECK(data[next] == r);
  }
  return clause_done();
}
