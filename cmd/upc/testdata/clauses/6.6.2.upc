// upc_forall.
#include <upc_relaxed.h>
#include "clause.h"

#define N 40
shared int one[N * THREADS], visits[N * THREADS];
shared [3] int three[N * THREADS];
shared [] int flat[N];
shared [3] int rows[8][3 * THREADS];
shared float fa[N * THREADS], fb[N * THREADS], fc[N * THREADS];
shared int total[THREADS];
static int c1, c2, c3, c4;

static int foo1(void) { return ++c1; }
static int foo2(void) { return ++c2; }
static int foo3(void) { return ++c3; }
static int foo4(int i) { return ++c4 + i; }

static int outer(int n) {
  int i, k = 0;
  upc_forall (i = 0; i < n; i++; i)
    k++;
  return k;
}

static shared int *at(int i) { return &one[i]; }

int main(void) {
  int i, j, k, n = N * THREADS;
  /* 7: affinity is a pointer. */
  upc_forall (i = 0; i < n; i++; &three[i]) {
    CHECK(upc_threadof(&three[i]) == MYTHREAD);
    visits[i]++;
  }
  upc_barrier;
  for (i = MYTHREAD; i < n; i += THREADS)
    CHECK(visits[i] == 1);
  upc_forall (i = 0; i < N; i++; flat)
    CHECK(MYTHREAD == 0);
  k = 0;
  upc_forall (i = 0; i < 8; i++; rows[i]) /* each begins on thread 0 */
    k++;
  upc_forall (i = 0; i < 8; i++; &rows[i][0])
    rows[i][0] = i, k++;
  CHECK(k == (MYTHREAD == 0 ? 16 : 0));
  upc_barrier;
  for (i = 0; i < 8; i++)
    CHECK(rows[i][0] == i);
  upc_forall (i = 0; i < n; i++; at(n - 1 - i))
    CHECK((n - 1 - i) % THREADS == MYTHREAD);
  /* 8: affinity is an integer. */
  upc_forall (i = 0; i < n; i++; 2 * i + 1)
    CHECK((2 * i + 1) % THREADS == MYTHREAD);
  upc_forall (unsigned long u = 0; u < 10; u++; u)
    CHECK(u % THREADS == MYTHREAD);
  for (unsigned long u = k = j = 0; u < 20; u++) {
    unsigned long most = ~0UL - u; /* mod THREADS as unsigned */
    upc_forall (i = 0; i < 1; i++; most)
      k++;
    j += most % THREADS == MYTHREAD;
  }
  CHECK(k == j);
  upc_forall (char c = 'a'; c <= 'z'; c += 2; c)
    CHECK(c % THREADS == MYTHREAD);
  /* 9: continue, or none. */
  for (k = 0, i = 0; k < 2; k++) {
    j = 0;
    if (k)
      upc_forall (i = 0; i < 9; i++; continue) j++;
    else
      upc_forall (i = 0; i < 9; i++;) j++;
    CHECK(j == 9 && i == 9);
  }
  /* 10: of nested loops the outermost with an affinity controls. */
  upc_forall (i = 0; i < THREADS; i++; i) {
    CHECK(i == MYTHREAD && outer(10) == 10);
    j = 0;
    upc_forall (k = 0; k < 7; k++; &one[k])
      j++;
    CHECK(j == 7);
  }
  /* Example 1. */
  upc_forall (i = 0; i < 3; i++; continue)
    upc_forall (j = 0; j < n; j++; &fa[j])
      upc_forall (k = 0; k < n; k++; &fb[k]) {
        CHECK(upc_threadof(&fa[j]) == MYTHREAD);
        fa[j] = fb[k] * fc[i] + j;
      }
  upc_barrier;
  CHECK(fa[n - 1] == n - 1);
  /* 11, example 2: every thread evaluates the first three clauses. */
  upc_forall ((foo1(), i = 0); (foo2(), i < 10); (foo3(), i++); i)
    foo4(i);
  CHECK(i == 10 && c1 == 1 && c2 == 11 && c3 == 10);
  total[MYTHREAD] = c4;
  upc_barrier;
  for (i = 0, k = 0; i < THREADS; i++)
    k += total[i];
  CHECK(k == 10);
  /* 13: continue ends a pass through the body. */
  k = 0;
  upc_forall (i = 0; i < n; i++; &one[i]) {
    if (i / THREADS % 2)
      continue;
    k++;
  }
  CHECK(k == N / 2 && i == n);
  upc_forall (i = 0, j = n; i < j; i++, j--; i)
    ;
  CHECK(i == j);
  return clause_done();
}
