// The collective library (UPC 1.3, 7.4) beside loops over what the text says of each call.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include <stdio.h>
#include <stdlib.h>
#define N 3
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)
#define L (11 * THREADS)

shared [N] int a[N * THREADS], b[N * THREADS];
shared int *wide, *wider; /* THREADS blocks of N on each thread, as dynamic memory */
shared int perm[THREADS];
shared [4] long longs[11 * THREADS], sums[11 * THREADS];
shared double reals[11 * THREADS];
shared long total;
shared double mean;
shared [5] short words[11 * THREADS];
shared signed char tiny;
shared unsigned char many[3 * THREADS], small;
int bad;
#define CHECK(e) ((e) ? (void)0 : (void)(bad++, printf("thread %d: line %d\n", MYTHREAD, __LINE__)))

static long last(long x, long y) { (void)x; return y; }
static double longest(double x, double y) { return x > y ? x : y; }
static int order(shared void *x, shared void *y) { return *(shared short *)x - *(shared short *)y; }
static shared [] int *row(shared int *p, int t) { return (shared [] int *)&p[t]; }

static void move(void) {
  int i, j, k;
  shared [] int *mine;
  wide = upc_all_alloc(THREADS * THREADS, N * sizeof(int));
  wider = upc_all_alloc(THREADS * THREADS, N * sizeof(int));
  mine = row(wide, MYTHREAD);
  for (i = 0; i < N; i++) a[N * MYTHREAD + i] = 100 * MYTHREAD + i;
  for (i = 0; i < N * THREADS; i++) mine[i] = 1000 * MYTHREAD + i;
  perm[MYTHREAD] = (MYTHREAD + 1) % THREADS;

  upc_all_broadcast(b, row(wide, THREADS - 1), N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++) CHECK(b[i] == 1000 * (THREADS - 1) + i % N);
  upc_barrier;
  upc_all_broadcast(b, &a[1], 2 * sizeof(int), 0);
  for (i = 0; i < N * THREADS; i++) CHECK(i % N == 2 || b[i] == 1 + i % N);
  upc_barrier;
  upc_all_scatter(b, row(wide, 1), N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++) CHECK(b[i] == 1000 + i);
  upc_barrier;
  upc_all_gather(row(wider, 2), a, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++) CHECK(row(wider, 2)[i] == 100 * (i / N) + i % N);
  upc_barrier;
  upc_all_gather_all(wider, a, N * sizeof(int), ALL);
  for (j = 0; j < THREADS; j++)
    for (i = 0; i < N * THREADS; i++) CHECK(row(wider, j)[i] == 100 * (i / N) + i % N);
  upc_barrier;
  upc_all_exchange(wider, wide, N * sizeof(int), ALL);
  for (j = 0; j < THREADS; j++)
    for (k = 0; k < THREADS; k++)
      for (i = 0; i < N; i++) CHECK(row(wider, j)[k * N + i] == 1000 * k + j * N + i);
  upc_all_permute(b, a, perm, N * sizeof(int), ALL);
  for (i = 0; i < N * THREADS; i++) CHECK(b[(i + N) % (N * THREADS)] == a[i]);
  upc_all_free(wide);
  upc_all_free(wider);
}

static void reduce(void) {
  int i;
  long sum, (*f)(long, long) = last;
  upc_forall (i = 0; i < L; i++; &longs[i]) longs[i] = i * 7 % 13 - 3;
  upc_forall (i = 0; i < L; i++; &reals[i]) reals[i] = i / 4.0;
  upc_forall (i = 0; i < L; i++; &words[i]) words[i] = i * 29 % 101;
  upc_forall (i = 0; i < 3 * THREADS; i++; &many[i]) many[i] = i + 1;
  for (sum = 0, i = 0; i < L; i++) sum += i * 7 % 13 - 3;
  upc_all_reduceL(&total, longs, UPC_ADD, L, 4, NULL, ALL);
  CHECK(total == sum);
  upc_barrier;
  /* An array that begins inside a block: the phase is respected. */
  upc_all_reduceL(&total, &longs[6], UPC_ADD, L - 6, 4, NULL, ALL);
  for (i = 0; i < 6; i++) sum -= longs[i];
  CHECK(total == sum);
  upc_barrier;
  upc_all_reduceL(&total, longs, UPC_MIN, L, 4, NULL, ALL);
  CHECK(total == -3);
  upc_barrier;
  upc_all_reduceL(&total, longs, UPC_NONCOMM_FUNC, L, 4, f, ALL);
  CHECK(total == longs[L - 1]);
  upc_barrier;
  upc_all_reduceL(&total, &longs[2], UPC_NONCOMM_FUNC, 4, 4, last, ALL);
  CHECK(total == longs[5]);
  upc_all_reduceD(&mean, reals, UPC_FUNC, L, 1, longest, ALL);
  CHECK(mean == (L - 1) / 4.0);
  upc_all_reduceUC(&small, many, UPC_XOR, 4, 1, NULL, ALL);
  CHECK(small == (1 ^ 2 ^ 3 ^ 4));
  upc_all_reduceC(&tiny, &a[0], UPC_LOGAND, 4, 0, NULL, ALL);
  CHECK(tiny == 0);
  upc_all_prefix_reduceL(sums, longs, UPC_ADD, L, 4, NULL, ALL);
  for (sum = 0, i = 0; i < L; i++) { sum += longs[i]; CHECK(sums[i] == sum); }
  upc_barrier;
  upc_all_prefix_reduceL(&sums[5], &longs[5], UPC_NONCOMM_FUNC, L - 5, 4, last, UPC_IN_ALLSYNC);
  for (i = 5; i < L; i++) CHECK(sums[i] == longs[i]);
  upc_barrier;
  upc_all_sort(words, sizeof(short), L, 5, order, ALL);
  for (i = 1; i < L; i++) CHECK(words[i - 1] <= words[i]);
  CHECK(words[0] == 0);
}

int main(void) {
#if !defined(__UPC_COLLECTIVE__) || UPC_ADD == UPC_MULT || UPC_FUNC <= UPC_MAX || UPC_IN_ALLSYNC == UPC_OUT_ALLSYNC
#error the macros of the library
#endif
  move();
  upc_barrier;
  reduce();
  printf("thread %d: %d wrong\n", MYTHREAD, bad);
  return 0;
}
