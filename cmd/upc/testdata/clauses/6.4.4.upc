// Address operators.
#include <upc.h>
#include "clause.h"

struct s { int a; struct { short h[3]; } in; };
shared [2] struct s many[4 * THREADS];
shared [5] int row[5 * THREADS];

int main(void) {
  int i;
  for (i = 0; i < 4 * THREADS; i++) {
    /* 1: the address of a member has an indefinite block size. */
    shared [] int *p = &many[i].a;
    shared [] short *h = &many[i].in.h[1];
    CHECK(upc_blocksizeof(*&many[i].a) == 0 && upc_blocksizeof(*&many[i].in.h[2]) == 0);
    CHECK(upc_threadof(p) == i / 2 % THREADS && upc_phaseof(h) == 0);
    CHECK(upc_addrfield(h) == upc_addrfield(&many[i]) + sizeof(int) + sizeof(short));
    CHECK(upc_threadof(h + 1) == upc_threadof(&many[i]) && h + 1 == &many[i].in.h[2]);
  }
  /* 2: the address of an array is one of its type. */
  {
    shared [5] int (*all)[5 * THREADS] = &row;
    CHECK(sizeof *all == sizeof row && *all == row && &(*all)[7 % (5 * THREADS)] == &row[7 % (5 * THREADS)]);
    CHECK(upc_phaseof(&row) == 0 && upc_threadof(&row) == 0);
  }
  return clause_done();
}
