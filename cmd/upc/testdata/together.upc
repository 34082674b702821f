// Loops whose accesses to other threads go on together: gathers, scatters with indices that come
// again, updates, and reads of what the loop itself has written, which see it in the order of the
// program. The other side of each comparison is private memory.
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define N 600
#define B 5

shared int a[N * THREADS];
shared [B] long b[N * THREADS];
shared [B] long d[N * THREADS];
shared double x[N * THREADS];
shared int slots[16 * THREADS];
shared int wrong[THREADS];

static int idx[N];
static long copy[N], model[N * 64];
static unsigned seed;

static int next(int n) {
  seed = seed * 1103515245u + 12345u;
  return (int)(seed >> 16) % n;
}

static void check(int ok, int what) {
  if (!ok) {
    wrong[MYTHREAD] += 1;
    printf("thread %d: %d\n", MYTHREAD, what);
  }
}

/* Thread t alone, while the others wait. */
static void alone(void) {
  int i, n = N * THREADS;
  long sum = 0, want = 0;
  double dot = 0;
  double *val = malloc(N * sizeof(double));
  for (i = 0; i < N; i++) {
    idx[i] = next(n);
    val[i] = i % 7;
  }
  /* A gather, a sum of products by a list, and one with a bound and a pointer. */
  for (i = 0; i < N; i++)
    copy[i] = b[idx[i]];
  for (i = 0; i < N; i++)
    check(copy[i] == model[idx[i]], 1);
  for (i = 0; i < N; i++)
    dot += val[i] * x[idx[i]];
  for (i = 0; i < N; i++)
    dot -= val[i] * (2.0 * idx[i]);
  check(dot == 0, 2);
  shared [B] long *p = &b[7];
  for (i = 0; i <= N - 8; i++)
    sum += p[i] - b[i];
  for (i = 0; i <= N - 8; i++)
    want += model[i + 7] - model[i];
  check(sum == want, 3);
  /* A scatter with indices that come again: the last one counts. */
  for (i = 0; i < N; i++)
    idx[i] = next(n / 8);
  for (i = 0; i < N; i++)
    b[idx[i]] = 1000 * i + MYTHREAD;
  check(b[idx[N - 1]] == 1000 * (N - 1) + MYTHREAD, 13);
  for (i = 0; i < N; i++)
    model[idx[i]] = 1000 * i + MYTHREAD;
  for (i = 0; i < n; i++)
    check(b[i] == model[i], 4);
  /* Updates, and reads of what has been written in the same loop and iteration. */
  for (i = 0; i < N; i++)
    b[idx[i]] += i;
  for (i = 0; i < N; i++)
    model[idx[i]] += i;
  sum = want = 0;
  for (i = 0; i < N; i++) {
    b[idx[i]] = i;
    sum += b[idx[i]] + b[(idx[i] + i) % (n / 8)];
  }
  for (i = 0; i < N; i++) {
    model[idx[i]] = i;
    want += model[idx[i]] + model[(idx[i] + i) % (n / 8)];
  }
  check(sum == want, 5);
  for (i = 0; i < n; i++)
    check(b[i] == model[i], 6);
  /* Halves of one word. */
  shared [] int *half = (shared [] int *)&b[n - 1];
  for (i = 0; i < 10; i++) {
    half[i % 2] = i;
    check(half[i % 2] == i, 7);
  }
  b[n - 1] = model[n - 1];
  /* From one array to another, by a chain, and where reads are conditional. */
  for (i = 0; i < n; i++)
    d[i] = b[n - 1 - i] + (i % 3 == 0 ? b[i] : 0);
  for (i = 0; i < n; i++)
    check(d[i] == model[n - 1 - i] + (i % 3 == 0 ? model[i] : 0), 8);
  for (i = 0; i < n - 1; i++)
    d[i + 1] = d[i] + 1;
  for (i = 0; i < n; i++)
    check(d[i] == d[0] + i, 9);
  /* The index is what the loop writes, and what it has read. */
  for (i = 0; i < N; i++)
    idx[i] = i;
  for (i = 0; i < N - 1; i++)
    idx[i + 1] = a[idx[i]];
  for (i = 0; i < N; i++)
    check(idx[i] == (i == 0 ? 0 : (3 * idx[i - 1] + 1) % N), 10);
  for (i = 0; i < N; i++)
    copy[i] = b[a[i]];
  for (i = 0; i < N; i++)
    check(copy[i] == model[(3 * i + 1) % N], 11);
  /* By locals, of which one is read from what the loop before has written. */
  for (i = sum = want = 0; i < N; i++) {
    int j = a[idx[i]], k = (j + 3) % N;
    long v = b[j] - b[k];
    sum += i % 3 ? v : 2 * v;
  }
  i = 0;
  while (i < N) {
    int j = (3 * i + 1) % N;
    j = idx[i] % N;
    j = (3 * j + 1) % N;
    long v = model[j] - model[(j + 3) % N];
    want += i % 3 ? v : 2 * v;
    i++;
  }
  check(sum == want, 14);
  for (i = 5; i < 5; i++)
    d[i] = 0;
  check(i == 5, 12);
  free(val);
}

int main(void) {
  int i, t, bad = 0;
  seed = 17;
  for (i = 0; i < N * THREADS; i++)
    model[i] = 5 * i;
  if (MYTHREAD == 0)
    for (i = 0; i < N * THREADS; i++) {
      a[i] = (3 * i + 1) % N;
      b[i] = 5 * i;
      x[i] = 2.0 * i;
    }
  upc_barrier;
  for (t = 0; t < THREADS; t++) {
    if (t == MYTHREAD)
      alone();
    upc_barrier;
    for (i = 0; i < N * THREADS; i++)
      model[i] = b[i];
    upc_barrier;
  }
  /* upc_forall, all at once: gathers by rows of blocks and by single elements, from what nothing writes. */
  upc_forall (i = 2; i < N * THREADS - B; i++; &d[i]) {
    int j = (7 * i + 3) % (N * THREADS);
    d[i] = b[j] + b[i + B - 1];
  }
  bad += i != N * THREADS - B;
  upc_barrier;
  upc_forall (i = 0; i < N * THREADS - B; i++; i) {
    int j = (7 * i + 3) % (N * THREADS);
    if (i >= 2)
      bad += d[i] != model[j] + model[i + B - 1];
  }
  upc_barrier;
  upc_forall (i = 0; i < N * THREADS; i++; &a[i])
    d[(i + B) % (N * THREADS)] = i - a[i];
  upc_barrier;
  upc_forall (i = 0; i < N * THREADS; i++; i / 7)
    bad += d[(i + B) % (N * THREADS)] != i - (3 * i + 1) % N;
  upc_barrier;
  /* All at once, each in words of its own. */
  for (i = 0; i < 16; i++)
    slots[i * THREADS + MYTHREAD] = 0;
  upc_barrier;
  for (t = 0; t < 4; t++)
    for (i = 0; i < 16; i++)
      slots[i * THREADS + (MYTHREAD + 1) % THREADS] += i + t;
  upc_barrier;
  for (i = 0; i < 16; i++)
    bad += slots[i * THREADS + MYTHREAD] != 4 * i + 6;
  wrong[MYTHREAD] += bad;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 0, bad = 0; i < THREADS; i++)
      bad += wrong[i];
    printf("together: %d wrong\n", bad);
  }
  return 0;
}
