// Termination of all threads: output is written, and no thread goes on.
#include <upc.h>
#include "clause.h"

upc_lock_t *l;

int main(void) {
  l = upc_all_lock_alloc();
  CHECK(l != NULL);
  printf("line of thread %d\n", MYTHREAD);
  fflush(stdout);
  upc_barrier;
  if (MYTHREAD == THREADS - 1) {
    clause_done();
    upc_global_exit(clause_failures);
  }
  upc_barrier; /* which one thread never reaches */
  printf("thread %d goes on\n", MYTHREAD);
  return 1;
}
