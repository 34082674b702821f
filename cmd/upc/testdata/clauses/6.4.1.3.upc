// upc_blocksizeof: the block size of the ultimate element type, 1 by default, 0 if indefinite.
#include <upc.h>
#include "clause.h"

shared int a[3 * THREADS];
shared [5] double b[5 * THREADS][2];
shared [] short flat[11];
shared [0] short zero[11];
shared [*] char star[7 * THREADS];
shared [3] int y;
typedef shared [6] int six_t;
six_t *p;
int constant[upc_blocksizeof(b)];

int main(void) {
  int i = 0;
  CHECK(upc_blocksizeof(a) == 1 && upc_blocksizeof b == 5 && upc_blocksizeof b[1] == 5 && upc_blocksizeof(b[0][0]) == 5);
  CHECK(upc_blocksizeof(flat) == 0 && upc_blocksizeof(zero) == 0 && upc_blocksizeof(star) == 7);
  CHECK(upc_blocksizeof(y) == 3 && upc_blocksizeof(six_t) == 6 && upc_blocksizeof(*p) == 6);
  CHECK(upc_blocksizeof(shared [] char) == 0 && upc_blocksizeof(shared char) == 1 && upc_blocksizeof(shared [2] int[4 * THREADS]) == 2);
  CHECK(upc_blocksizeof(a[i++]) == 1 && i == 0);
  CHECK(sizeof upc_blocksizeof(a) == sizeof(size_t) && sizeof constant == 20);
  return clause_done();
}
