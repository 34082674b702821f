// Sample sort: the threads sort their keys, agree on splitters from samples, and fetch from
// each other what lies between two splitters.
//
//	samplesort [KEYS]    of each thread
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define OVER 8 /* samples of each thread */

typedef unsigned int value_t;
typedef shared [] value_t *keys_t;

shared keys_t input[THREADS], output[THREADS]; /* a directory of the threads' keys */
shared [] size_t *shared cuts[THREADS];        /* where each thread's keys are cut for all */
shared size_t counts[THREADS];
shared [OVER] value_t samples[OVER * THREADS];
shared unsigned long sums[2][THREADS]; /* check sums before and after */

static int ascending(const void *a, const void *b) {
  value_t x = *(const value_t *)a, y = *(const value_t *)b;
  return (x > y) - (x < y);
}

/* The first place at or after which the keys are not less than a splitter. */
static size_t lower(const value_t *v, size_t n, value_t splitter) {
  size_t lo = 0, hi = n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (v[mid] < splitter)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* A sum that does not depend on the order. */
static unsigned long digest(const value_t *v, size_t n) {
  unsigned long s = 0;
  for (; n-- > 0; v++)
    s += (*v ^ 0x9e3779b9ul) * (*v | 1);
  return s;
}

int main(int argc, char **argv) {
  size_t n = argc > 1 ? strtoul(argv[1], NULL, 0) : 500, i, have = 0, from, to;
  value_t *mine, *merged, *all = malloc(OVER * THREADS * sizeof(value_t));
  unsigned state = 2463534242u + 7919 * MYTHREAD;
  shared [OVER] value_t *s;
  int t;

  input[MYTHREAD] = upc_alloc(n * sizeof(value_t));
  mine = (value_t *)input[MYTHREAD];
  for (i = 0; i < n; i++) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    mine[i] = i % 10 ? state : 42; /* some are equal */
  }
  sums[0][MYTHREAD] = digest(mine, n);
  qsort(mine, n, sizeof *mine, ascending);
  for (i = 0, s = &samples[OVER * MYTHREAD]; i < OVER; i++, s++)
    *s = mine[(2 * i + 1) * n / (2 * OVER)];
  upc_barrier;

  for (t = 0; t < THREADS; t++)
    upc_memget(all + t * OVER, &samples[t * OVER], OVER * sizeof(value_t));
  qsort(all, OVER * THREADS, sizeof(value_t), ascending);

  /* Thread t gets the keys from splitter t on to the next one. */
  cuts[MYTHREAD] = upc_alloc((THREADS + 1) * sizeof(size_t));
  for (t = 0; t <= THREADS; t++)
    cuts[MYTHREAD][t] = t == 0 ? 0 : t == THREADS ? n : lower(mine, n, all[t * OVER]);
  upc_barrier;
  for (t = 0; t < THREADS; t++)
    have += cuts[t][MYTHREAD + 1] - cuts[t][MYTHREAD];
  output[MYTHREAD] = upc_alloc(have * sizeof(value_t) + 1);
  merged = (value_t *)output[MYTHREAD];
  for (t = 0, i = 0; t < THREADS; i += to - from, t++) {
    from = cuts[t][MYTHREAD];
    to = cuts[t][MYTHREAD + 1];
    upc_memget(&merged[i], input[t] + from, (to - from) * sizeof *merged);
  }
  qsort(merged, have, sizeof *merged, ascending);
  counts[MYTHREAD] = have;
  sums[1][MYTHREAD] = digest(merged, have);
  upc_barrier;

  int bad = 0;
  for (i = 1; i < have; i++)
    bad += merged[i - 1] > merged[i];
  for (t = MYTHREAD + 1; have > 0 && t < THREADS; t++)
    if (counts[t] > 0) {
      bad += merged[have - 1] > output[t][0];
      break;
    }
  if (bad)
    printf("thread %d: %d out of order\n", MYTHREAD, bad);
  if (MYTHREAD == 0) {
    unsigned long before = 0, after = 0;
    for (have = 0, t = 0; t < THREADS; t++)
      have += counts[t], before += sums[0][t], after += sums[1][t];
    printf("samplesort: %zu keys, %s\n", have, have == n * THREADS && before == after ? "all there" : "not the same");
  }
  upc_barrier;
  upc_free(input[MYTHREAD]);
  upc_free(output[MYTHREAD]);
  upc_free(cuts[MYTHREAD]);
  free(all);
  return 0;
}
