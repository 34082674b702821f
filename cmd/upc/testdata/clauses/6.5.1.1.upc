// The shared and reference type qualifiers.
#include <upc_relaxed.h>
#include <stdarg.h>
#include "clause.h"

shared [5] int def[10 * THREADS];
shared [] int indef[10];
shared [0] int zero[10];
shared int one[10 * THREADS];
shared [*] int star[3 * THREADS][2];
strict shared int y; /* example 1 */
shared [10] int A[10 * THREADS];

struct s { shared char *p1; shared [3] int *(*f)(shared int *); };

static shared [3] int *f(shared int *p) { return (shared [3] int *)p; }

/* The last of n pointers; pointers-to-shared are variable arguments as others are. */
static shared int *last(int n, ...) {
  shared int *p = 0;
  va_list ap;
  va_start(ap, n);
  while (--n > 0)
    p = va_arg(ap, shared int *);
  p = (shared int *)va_arg(ap, shared [5] int *);
  va_end(ap);
  return p;
}

int main(void) {
  int i;
  struct s v = { 0, f };
  shared [5] int *p5 = def;
  shared void *generic;
  strict shared [5] int *strictly = def; /* an access is strict by the type that it goes by */
  /* 11: consecutive elements with affinity to the same thread. */
  for (i = 0; i < 10 * THREADS; i++) {
    CHECK(upc_threadof(&def[i]) == i / 5 % THREADS);
    CHECK(upc_threadof(&one[i]) == i % THREADS);
  }
  for (i = 0; i < 10; i++)
    CHECK(upc_threadof(&indef[i]) == 0 && upc_threadof(&zero[i]) == 0);
  /* 16: [*] gives every thread as many. */
  CHECK(upc_blocksizeof(star) == 6);
  for (i = 0; i < 6 * THREADS; i++)
    CHECK(upc_threadof(&star[0][0] + i) == i / 6);
  /* 14: generic pointers take all block sizes. */
  generic = def;
  generic = indef;
  CHECK(generic == indef && (p5 = generic) == (shared [5] int *)generic);
  /* 15: the effective type is without shared. */
  if (MYTHREAD == 0) {
    A[0] = 11;
    CHECK(*(int *)&A[0] == 11 && *(shared [] int *)&A[0] == 11);
  }
  CHECK(last(3, one, &one[1], &def[7]) == (shared int *)&def[7]);
  CHECK(v.f(one) == (shared [3] int *)one && upc_phaseof(v.f(one + 1)) == 0);
  if (MYTHREAD == 0)
    strictly[6] = 3, y = 4;
  upc_barrier;
  CHECK(def[6] == 3 && y == 4);
  return clause_done();
}
