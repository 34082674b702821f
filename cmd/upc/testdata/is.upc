// The integer sort of the NAS Parallel Benchmarks (RNR-94-007, 2.5): ranks keys in ten
// iterations, checks some ranks in each, and at last puts all keys in order.
//
//	is [KEYS [RANGE]]    as powers of two; 16 and 11 are class S
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define ITERATIONS 10
#define TESTS 5
#define MASK ((1ul << 46) - 1)

typedef shared [] int *ints;

shared ints hists[THREADS], bases[THREADS]; /* of each thread: how many keys, and their first rank */
shared int ranges[THREADS];                 /* keys in each thread's range of values */
shared int *sorted;
shared int wrong[THREADS];

/* Places and ranks in class S that the benchmark gives. */
static const int place[TESTS] = { 48427, 17148, 23627, 62548, 4431 };
static const int rank[TESTS] = { 0, 18, 346, 64917, 65463 };

static long total, values, first, after; /* this thread has keys first to after - 1 */
static int *keys;

static double uniform(unsigned long *x) {
  *x = *x * 1220703125ul & MASK;
  return *x * 0x1p-46;
}

static void generate(void) {
  unsigned long x = 314159265ul;
  long i;
  int j;
  for (i = 0; i < after; i++) {
    double r = 0;
    for (j = 0; j < 4; j++)
      r += uniform(&x);
    if (i >= first)
      keys[i - first] = (values / 4) * r;
  }
}

static void set(long i, int key) {
  if (first <= i && i < after)
    keys[i - first] = key;
}

/* The values that a thread adds up: low to high - 1. */
static void part(int t, int *low, int *high) {
  *low = values * t / THREADS;
  *high = values * (t + 1) / THREADS;
}

/* Leaves in this thread's base, for each value, the rank of its first key with it. */
static void rank_keys(void) {
  int *hist = (int *)hists[MYTHREAD], low, high, t, v, n;
  int *columns, *sums, before = 0;
  long i;
  for (v = 0; v < values; v++)
    hist[v] = 0;
  for (i = 0; i < after - first; i++)
    hist[keys[i]]++;
  upc_barrier;

  part(MYTHREAD, &low, &high);
  n = high - low;
  columns = malloc((size_t)n * THREADS * sizeof(int) + 1);
  sums = calloc(n + 1, sizeof(int));
  for (t = 0; t < THREADS; t++)
    upc_memget(columns + t * n, hists[t] + low, n * sizeof(int));
  ranges[MYTHREAD] = 0;
  for (t = 0; t < THREADS; t++)
    for (v = 0; v < n; v++)
      ranges[MYTHREAD] += columns[t * n + v];
  upc_barrier;

  for (t = 0; t < MYTHREAD; t++)
    before += ranges[t];
  for (v = 0; v < n; v++)
    for (t = 0; t < THREADS; t++) {
      int c = columns[t * n + v];
      columns[t * n + v] = before;
      before += c;
    }
  for (t = 0; t < THREADS; t++)
    upc_memput(&bases[t][low], &columns[t * n], n * sizeof(int));
  free(columns);
  free(sums);
  upc_barrier;
}

static void check_ranks(int iteration) {
  int i;
  for (i = 0; i < TESTS; i++)
    if (first <= place[i] && place[i] < after) {
      int want = i < 3 ? rank[i] + iteration : rank[i] - iteration;
      int got = bases[0][keys[place[i] - first]]; /* thread 0's keys come first among equal ones */
      if (got != want) {
        printf("iteration %d: key %d has rank %d, not %d\n", iteration, place[i], got, want);
        wrong[MYTHREAD]++;
      }
    }
}

int main(int argc, char *argv[]) {
  int log_keys = argc > 1 ? atoi(argv[1]) : 12, log_range = argc > 2 ? atoi(argv[2]) : 9;
  int it, t, *next, bad = 0;
  long i;
  total = 1L << log_keys;
  values = 1L << log_range;
  first = total * MYTHREAD / THREADS;
  after = total * (MYTHREAD + 1) / THREADS;
  keys = malloc((after - first) * sizeof *keys);
  hists[MYTHREAD] = upc_alloc(values * sizeof(int));
  bases[MYTHREAD] = upc_alloc(values * sizeof(int));
  sorted = upc_all_alloc(total, sizeof(int));
  generate();
  upc_barrier;
  for (it = 1; it <= ITERATIONS; it++) {
    set(it, it);
    set(it + ITERATIONS, values - it);
    rank_keys();
    if (log_keys == 16 && log_range == 11)
      check_ranks(it);
    upc_barrier it;
  }
  next = (int *)bases[MYTHREAD];
  for (i = 0; i < after - first; i++)
    sorted[next[keys[i]]++] = keys[i];
  upc_barrier;
  upc_forall (i = 1; i < total; i++; &sorted[i])
    if (sorted[i - 1] > sorted[i])
      wrong[MYTHREAD]++;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (t = 0; t < THREADS; t++)
      bad += wrong[t];
    printf("is: %ld keys below %ld: %s\n", total, values, bad ? "wrong" : "verified");
  }
  upc_all_free(sorted);
  return 0;
}
