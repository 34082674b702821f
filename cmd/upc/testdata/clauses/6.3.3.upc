// UPC_MAX_BLOCK_SIZE is an integer constant for #if and for layout qualifiers.
#include <upc.h>
#include "clause.h"

#if UPC_MAX_BLOCK_SIZE < 1
#error no block size
#endif

shared [UPC_MAX_BLOCK_SIZE] char *p;

int main(void) {
  CHECK(upc_blocksizeof(*p) == UPC_MAX_BLOCK_SIZE);
  CHECK(sizeof(char[UPC_MAX_BLOCK_SIZE > 0 ? 3 : 1]) == 3);
  return clause_done();
}
