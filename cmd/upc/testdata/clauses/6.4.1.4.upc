// upc_elemsizeof: the size of the ultimate element type.
#include <upc.h>
#include "clause.h"

struct s { int v[5]; };
shared int a[3 * THREADS];
shared [5] double b[5 * THREADS][2];
shared struct s one, many[THREADS];
int constant[upc_elemsizeof(b)];

int main(void) {
  int i = 0;
  CHECK(upc_elemsizeof(a) == sizeof(int) && upc_elemsizeof b == 8 && upc_elemsizeof(b[1]) == 8);
  CHECK(upc_elemsizeof(one) == 20 && upc_elemsizeof many == sizeof(struct s) && upc_elemsizeof(shared struct s) == 20);
  CHECK(upc_elemsizeof(shared char[3 * THREADS]) == 1);
  CHECK(upc_elemsizeof(a[i++]) == 4 && i == 0);
  CHECK(sizeof upc_elemsizeof(a) == sizeof(size_t) && sizeof constant == 32);
  return clause_done();
}
