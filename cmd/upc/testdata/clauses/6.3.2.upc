// MYTHREAD is an expression of type int, from 0 to THREADS - 1, of each thread another one.
#include <upc.h>
#include "clause.h"

shared int seen[THREADS];

int main(void) {
  int i;
  CHECK(0 <= MYTHREAD && MYTHREAD < THREADS && sizeof MYTHREAD == sizeof(int) && -1 < MYTHREAD);
  for (i = 0; i < THREADS; i++)
    if (i == MYTHREAD)
      seen[i] = i + 1;
  upc_barrier;
  for (i = 0; i < THREADS; i++)
    CHECK(seen[i] == i + 1);
  return clause_done();
}
