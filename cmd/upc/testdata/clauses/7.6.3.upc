// Domains of atomic operations: 7.6.2 and 7.6.3 their values and types, 7.6.4.1 and 7.6.4.2 their
// allocation, 7.6.4.4 upc_atomic_isfast.
#include <upc_relaxed.h>
#include <upc_atomic.h>
#include <stdint.h>
#include "clause.h"

#if !defined(__UPC_ATOMIC__) || __UPC_ATOMIC__ != 1
#error __UPC_ATOMIC__
#endif

static const upc_op_t ops[] = { UPC_GET, UPC_SET, UPC_CSWAP, UPC_SUB, UPC_INC, UPC_DEC, UPC_ADD, UPC_MULT, UPC_AND, UPC_OR, UPC_XOR, UPC_MIN, UPC_MAX };
enum { nops = sizeof ops / sizeof ops[0] };
upc_atomicdomain_t *shared published;
shared int64_t words[THREADS];
shared float single[THREADS];

int main(void) {
  int i, j;
  int64_t old, three = 3;
  float half = 0.5f;
  upc_atomicdomain_t *d, *e;
  upc_atomichint_t hint = UPC_ATOMIC_HINT_DEFAULT;
  /* 7.6.2, 4 and 7.6.4.1, 5: each operation has a value of its own under &. */
  for (i = 0; i < nops; i++)
    for (j = 0; j < nops; j++)
      CHECK(ops[i] != 0 && (i == j) == ((ops[i] & ops[j]) != 0));
  /* 7.6.3.2, 2 */
  CHECK(hint == 0 && UPC_ATOMIC_HINT_LATENCY > 0 && UPC_ATOMIC_HINT_THROUGHPUT > 0 && UPC_ATOMIC_HINT_LATENCY != UPC_ATOMIC_HINT_THROUGHPUT);
  /* 7.6.4.1, 3: all threads have the same; 7.6.3.1, 3: its pointers are equal. */
  d = upc_all_atomicdomain_alloc(UPC_INT64, UPC_ADD | UPC_GET, hint);
  e = upc_all_atomicdomain_alloc(UPC_FLOAT, UPC_ADD | UPC_MAX, UPC_ATOMIC_HINT_LATENCY);
  CHECK(d != NULL && e != NULL && d != e);
  if (MYTHREAD == THREADS - 1)
    published = d;
  upc_barrier;
  CHECK(published == d);
  upc_atomic_relaxed(published, NULL, UPC_ADD, &words[0], &three, NULL);
  upc_atomic_relaxed(e, NULL, UPC_ADD, &single[THREADS - 1], &half, NULL);
  upc_barrier;
  upc_atomic_relaxed(d, &old, UPC_GET, &words[0], NULL, NULL);
  CHECK(old == 3 * THREADS && single[THREADS - 1] == 0.5f * THREADS);
  upc_barrier;
  /* 7.6.4.2, 3: a null pointer is nothing; 4: a domain is valid until all threads are there. */
  upc_all_atomicdomain_free(NULL);
  for (i = 0; i < 5 * MYTHREAD; i++)
    upc_atomic_relaxed(d, &old, UPC_ADD, &words[1 % THREADS], &three, NULL);
  upc_all_atomicdomain_free(d);
  upc_all_atomicdomain_free(e);
  upc_barrier;
  CHECK(words[1 % THREADS] == 3 * 5 * (THREADS * (THREADS - 1) / 2) + (THREADS == 1 ? 3 : 0));
  /* Domains come again after others have gone. */
  for (i = 0; i < 20; i++) {
    d = upc_all_atomicdomain_alloc(i % 2 ? UPC_DOUBLE : UPC_UINT, UPC_SET, UPC_ATOMIC_HINT_THROUGHPUT);
    CHECK(d != NULL);
    upc_all_atomicdomain_free(d);
  }
  /* 7.6.4.4: a word of this thread is as fast as any. */
  CHECK(upc_atomic_isfast(UPC_INT64, UPC_ADD | UPC_GET, &words[MYTHREAD]) != 0);
  return clause_done();
}
