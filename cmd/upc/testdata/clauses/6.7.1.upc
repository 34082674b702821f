// UPC pragmas: where they apply is seen by what the compiler makes of accesses.
#include <upc.h>
#include "clause.h"
#define upc nothing
#define strict_ 1
shared int x;
relaxed shared int rx;
strict shared int sx;
static void by_default(void) { x = 1; rx = 1; sx = 1; } /* 3: relaxed */
#pragma upc strict
static void stricter(void) {
  x = 2;
  rx = 2; /* 2: the type decides */
  {
#pragma upc relaxed
    x = 3;
    sx = 3;
  }
  x = 4; /* 4: as before the compound statement */
}
#pragma upc relaxed
static void relaxing(void) { x = 5; }

int main(void) {
  if (MYTHREAD == 0) {
    by_default();
    CHECK(x == 1 && rx == 1 && sx == 1);
    stricter();
    CHECK(x == 4 && rx == 2 && sx == 3);
    relaxing();
    CHECK(x == 5);
  }
  upc_barrier;
  CHECK(x == 5);
  return clause_done();
}
