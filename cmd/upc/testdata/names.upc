/* What the compiler makes is not found by its text: names of its own in comments, strings and identifiers of the program. */
#include <upc_relaxed.h>
#include <stdio.h>
#define N 16

shared [] int flags[N];
shared int cyclic[N * THREADS];
shared [4] int blocks[4 * THREADS];

static int waits(void) {
  int i, n = 0;
  shared [] int *p = flags;
  for (i = 0; i < N; i++) {
    // see tmp1.Get and tmp2.Within, tmp1[0]
    while (p[i] != 0) // tmp1.
      n++;
    printf("%s", n > 99 ? "tmp1.Get tmp2.Put tmp3[0]" : ""); // tmp1.Get
  }
  return n;
}

static int parts(void) {
  int i, n = 0;
  upc_forall (i = 0; i < N * THREADS; i++; &cyclic[i]) {
    // tmp2[0], tmp3[i] and tmp1[1]: no part of cyclic is wanted
    n += printf("%s", i < 0 ? "tmp2[0]" : "");
    if (i < 0)
      while (cyclic[i + 1] != 0) // tmp2[
        n++;
  }
  upc_forall (i = 0; i < 4 * THREADS; i++; &blocks[i]) {
    // tmp1. tmp2. tmp3. tmp4. tmp5. tmp6. tmp7. tmp8. tmp9.
    while (blocks[i] != 0) // tmp9.
      n++;
  }
  return n;
}

/* An else if whose condition takes two statements, in a function with labels. */
static int chains(int a, int b) {
  int n = 0;
again:
  if (a > 2)
    n += 1;
  else if (b ? a == 1 : a == 2)
    n += 10;
  else
    n += 100;
  if (++a < 5)
    goto again;
  return n;
}

/* Values of functions that are conversions in Go, as statements. */
static void statements(void) {
  upc_threadof(&cyclic[1]);
  upc_phaseof(&blocks[1]);
  (void)upc_resetphase(&blocks[1]);
  upc_all_lock_alloc();
}

int main(void) {
  statements();
  upc_barrier;
  if (MYTHREAD == 0)
    printf("waits %d, chains %d %d\n", waits(), chains(0, 0), chains(0, 1));
  if (parts() != 0)
    printf("parts: wrong\n");
  return 0;
}
