// Pointer-to-shared manipulation.
#include <upc.h>
#include "clause.h"

shared [3] long a[12 * THREADS];
shared [] char flat[9];

int main(void) {
  int i, t;
  size_t n = 0;
  for (i = 0; i < 12 * THREADS; i++) {
    CHECK(upc_threadof(&a[i]) == i / 3 % THREADS); /* 7.2.3.1 */
    CHECK(upc_phaseof(&a[i]) == i % 3);            /* 7.2.3.2 */
    /* 7.2.3.3 */
    CHECK(upc_phaseof(upc_resetphase(&a[i])) == 0 && upc_resetphase(&a[i]) == &a[i]);
    CHECK(upc_threadof(upc_resetphase(&a[i])) == upc_threadof(&a[i]) && upc_addrfield(upc_resetphase(&a[i])) == upc_addrfield(&a[i]));
    /* 7.2.3.4 */
    if (i % (3 * THREADS) / 3 == MYTHREAD) {
      int first = 3 * MYTHREAD;
      CHECK((ptrdiff_t)upc_addrfield(&a[i]) - (ptrdiff_t)upc_addrfield(&a[first]) == ((long *)&a[i] - (long *)&a[first]) * sizeof(long));
    }
  }
  CHECK(upc_threadof(NULL) == 0 && upc_phaseof(NULL) == 0 && upc_resetphase(NULL) == NULL);
  CHECK(sizeof(upc_threadof(a)) == sizeof(size_t) && sizeof upc_addrfield(a) == sizeof(size_t));
  /* 7.2.3.5: the exact size of each thread's part. */
  for (t = 0; t < THREADS; t++) {
    size_t real = 0;
    for (i = 0; i < 12 * THREADS - 5; i++)
      real += sizeof(long) * (upc_threadof(&a[i]) == t);
    CHECK(upc_affinitysize((12 * THREADS - 5) * sizeof(long), 3 * sizeof(long), t) == real);
    n += upc_affinitysize(sizeof a, 3 * upc_elemsizeof(a), t);
    CHECK(upc_affinitysize(9, 0, t) == (t == 0 ? 9 : 0));
    CHECK(upc_affinitysize(0, 4, t) == 0);
  }
  CHECK(n == sizeof a);
  return clause_done();
}
