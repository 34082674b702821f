// Pointer-to-shared arithmetic.
#include <upc_relaxed.h>
#include <stddef.h>
#include "clause.h"

#define B 3
#define N 20
shared [B] int a[N * THREADS];
shared [] long flat[N];
shared [4] short grid[N * THREADS][6];
shared [B] int *shared kept;
shared [3] int planes[5][2 * THREADS][3];
shared int lines[4][THREADS];

/* Division that rounds towards negative infinity, and its remainder. */
static long div(long a, long b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
static long mod(long a, long b) { return a - b * div(a, b); }

int main(void) {
  long i, d, n = N * THREADS;
  shared [B] int *p, *p1;
  /* 4: phase and thread of p + i. */
  for (i = 0; i < n; i += 2)
    for (d = -i; i + d < n; d += 3) {
      ptrdiff_t elem = d * (sizeof(int) / upc_elemsizeof(*p));
      p = &a[i];
      p1 = p + d;
      CHECK(upc_phaseof(p1) == mod(upc_phaseof(p) + elem, B));
      CHECK(upc_threadof(p1) == mod(upc_threadof(p) + div(upc_phaseof(p) + elem, B), THREADS));
      CHECK(p1 == &a[i + d] && p1 - p == d); /* 3, 8 */
      CHECK((p1 > p) == (p1 - p > 0) && (p1 <= p) == (p1 - p <= 0)); /* 9 */
    }
  /* 4, of an array of arrays: rows are 6 elements. */
  for (i = 0; i < N * THREADS - 3; i++) {
    shared [4] short (*r)[6] = &grid[i], (*r1)[6] = r + 3;
    ptrdiff_t elem = 3 * (sizeof(short[6]) / upc_elemsizeof(*r));
    CHECK(elem == 18 && r1 - r == 3 && upc_phaseof(r1) == mod(upc_phaseof(r) + elem, 4));
    CHECK(upc_threadof(r1) == mod(upc_threadof(r) + div(upc_phaseof(r) + elem, 4), THREADS));
  }
  /* 4 and 8, of rows whose length has THREADS in it. */
  {
    shared [3] int (*r)[2 * THREADS][3] = planes;
    shared int (*l)[THREADS] = lines;
    for (i = 0; i < 4; i++, r++, l++) {
      CHECK(r == &planes[i] && r - planes == i && &planes[i] - &planes[4] == i - 4 && (planes < r) == (i > 0));
      CHECK(l == lines + i && *l == &lines[i][0] && l - lines == i && upc_threadof(l) == 0);
    }
    CHECK(--l == &lines[3] && l-- - 1 == &lines[2] && l == lines + 2 && r - 4 == planes);
  }
  /* 3: with indefinite blocks the thread stays, and the phase is zero. */
  for (i = 0; i < N; i++)
    CHECK(upc_threadof(flat + i) == upc_threadof(flat) && upc_phaseof(flat + i) == 0 && &flat[i] - flat == i);
  /* 5, 6: local pointers to elements of one thread. */
  {
    int *first = NULL;
    shared [] int *s1 = NULL;
    for (i = 0; i < n; i++)
      if (upc_threadof(&a[i]) == MYTHREAD) {
        shared [] int *s = (shared [] int *)&a[i];
        int *l = (int *)s;
        if (!first)
          first = l, s1 = s;
        CHECK(first + (s - s1) == l);
        *l = 7 * i;
        CHECK(*s == 7 * i && a[i] == 7 * i);
      }
  }
  /* 7: phases do not matter to equality. */
  {
    shared [B] int *q = (shared [B] int *)upc_resetphase(&a[4]);
    CHECK(q == &a[4] && !(q != &a[4]) && upc_phaseof(q) == 0 && upc_phaseof(&a[4]) == 1);
  }
  upc_barrier;
  if (MYTHREAD == 0)
    kept = a;
  upc_barrier;
  CHECK(kept + 5 == &a[5] && kept[5] == 35);
  return clause_done();
}
