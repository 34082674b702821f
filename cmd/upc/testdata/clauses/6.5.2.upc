// Declarators.
#include <upc_relaxed.h>
#include "clause.h"

/* 9: shared objects that are not arrays have affinity to thread zero. */
shared int scalar = 4;
shared [3] int y;
shared struct { int v; } s;
shared int *shared pp;                   /* a shared pointer to shared */
int *shared lp;                          /* a shared pointer to private memory */
shared [2] char *shared table[THREADS];  /* an array of them */
shared int *(*fn)(shared int *, int);    /* a function */
static shared int *step(shared int *p, int n) { return p + n; }
shared int cells[4 * THREADS];

static int count(void) {
  static shared int calls; /* static in a function is allowed */
  static int mine;
  upc_barrier;
  if (MYTHREAD == 0)
    calls++;
  upc_barrier;
  return 10 * calls + ++mine;
}

int main(void) {
  CHECK(upc_threadof(&scalar) == 0 && upc_threadof(&y) == 0 && upc_threadof(&s) == 0 && upc_threadof(&pp) == 0);
  CHECK(upc_threadof(&table[THREADS - 1]) == THREADS - 1 && scalar == 4 && lp == NULL);
  fn = step;
  if (MYTHREAD == THREADS - 1)
    pp = &cells[3];
  upc_barrier;
  *pp = 9; /* all write the same */
  upc_barrier;
  CHECK(cells[3] == 9 && *fn(pp, -3) == cells[0] && fn(&cells[0], 3) == pp);
  CHECK(count() == 11 && count() == 22);
  return clause_done();
}
