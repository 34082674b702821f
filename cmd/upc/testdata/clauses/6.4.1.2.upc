// upc_localsizeof: bytes of a thread's part, a constant, an upper bound, of type size_t.
#include <upc.h>
#include "clause.h"

shared int a[3 * THREADS];
shared [4] double b[5 * THREADS];
shared [] short flat[11];
shared char one;
int constant[upc_localsizeof(a) + upc_localsizeof(flat)];

int main(void) {
  int i = 0, t;
  CHECK(upc_localsizeof(a) == 3 * sizeof(int) && upc_localsizeof flat == 22 && upc_localsizeof one >= 1);
  CHECK(sizeof constant == 34 * sizeof(int));
  for (t = 0; t < THREADS; t++)
    CHECK(upc_localsizeof(b) >= upc_affinitysize(sizeof b, 4 * sizeof(double), t));
  CHECK(upc_localsizeof(shared int) == sizeof(int) && upc_localsizeof(shared [2] char[6 * THREADS]) >= 6);
  CHECK(upc_localsizeof(a[i++]) == 4 && i == 0);
  CHECK(sizeof(upc_localsizeof(a)) == sizeof(size_t) && upc_localsizeof(a) - 13 > 0);
  return clause_done();
}
