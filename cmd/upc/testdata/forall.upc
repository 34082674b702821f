// Every form of affinity: what each thread visits is counted, and compared with the rule of
// UPC 1.3, 6.6.2, by threadof.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <stdio.h>

#define N 37

shared int cyc[N * THREADS];
shared [5] int blk[N * THREADS];
shared [4] int rows[N * THREADS][4];
shared [] int ind[N];
shared [3] int deep[2][N * THREADS][3]; /* each half begins on thread 0 */
shared [3] int odd[THREADS][5][3];      /* and need not here */
shared int wrong[THREADS], seen[THREADS], one;

static void visit(int i, int owner) {
  seen[MYTHREAD] += 1;
  if (owner != MYTHREAD)
    wrong[MYTHREAD] += i + 1;
}

static int inner(void) {
  int i, n = 0;
  upc_forall (i = 0; i < 8; i++; i) n++;
  return n;
}

int main(void) {
  int i, k = 0, lo;
  long j;
  for (lo = 0; lo < 12; lo++) {
    upc_forall (i = lo; i < N * THREADS - lo; i++; &cyc[i]) { cyc[i] = i; visit(i, upc_threadof(&cyc[i])); }
    if (i != N * THREADS - lo) wrong[MYTHREAD] += 1000;
    upc_forall (i = lo; i <= N - 1; i++; &blk[i]) { blk[i] = 2 * i; blk[i] += cyc[0]; visit(i, upc_threadof(&blk[i])); }
    if (i != N) wrong[MYTHREAD] += 1000;
    upc_forall (int r = lo; r < N * THREADS; r++; &rows[r][0])
      for (k = 0; k < 4; k++) { rows[r][k] = 10 * r + k; visit(r, upc_threadof(&rows[r][k])); }
    upc_forall (i = lo; i < N * THREADS; i++; &deep[lo % 2][i][1]) {
      for (k = 0; k < 3; k++) deep[lo % 2][i][k] = 10 * i + k;
      visit(i, upc_threadof(&deep[lo % 2][i][1]));
    }
    if (i != N * THREADS) wrong[MYTHREAD] += 1000;
    upc_forall (i = 0; i < N; i++; deep[1][i]) visit(i, upc_threadof(&deep[1][i][2]));
    upc_forall (i = 0; i < 5; i++; &odd[THREADS - 1][i][2]) visit(i, upc_threadof(&odd[THREADS - 1][i][2]));
    upc_forall (j = -lo; j < N; j++; j) visit(j, ((int)j % THREADS + THREADS) % THREADS);
    upc_forall (i = lo; i < N; i += 3; &blk[i]) visit(i, upc_threadof(&blk[i]));
    upc_forall (i = N - 1; i >= lo; i--; i + 1) visit(i, (i + 1) % THREADS);
    upc_forall (i = lo; i < N; i++; &ind[i]) visit(i, 0);
    upc_forall (i = 9; i < lo; i++; i) visit(i, i % THREADS);
    if (i != (lo > 9 ? lo : 9)) wrong[MYTHREAD] += 1000;
  }
  /* The outermost loop with an affinity controls, in called functions, too. */
  upc_forall (i = 0; i < THREADS; i++; i) wrong[MYTHREAD] += inner() != 8;
  upc_forall (i = 0; i < THREADS; i++; continue) k = inner();
  wrong[MYTHREAD] += k != (8 - MYTHREAD + THREADS - 1) / THREADS;
  upc_barrier;
  if (MYTHREAD == 0) {
    int bad = 0, sum = 0;
    for (i = 0; i < THREADS; i++) { bad += wrong[i]; sum += seen[i]; }
    for (i = 0; i < N * THREADS; i++) {
      bad += cyc[i] != i;
      for (k = 0; k < 4; k++) bad += rows[i][k] != 10 * i + k;
      for (k = 0; k < 6; k++) bad += deep[k % 2][i][k / 2] != (i || k % 2 == 0 ? 10 * i + k / 2 : 0);
      if (i < N) bad += blk[i] != 2 * i;
    }
    printf("forall: %d wrong, %d visits\n", bad, sum);
    one = 7;
  }
  upc_barrier;
  upc_all_broadcast(seen, &one, sizeof(int), UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC);
  if (MYTHREAD == 1)
    printf("broadcast %d\n", seen[1] + seen[THREADS - 1]);
  return 0;
}
