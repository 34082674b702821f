// The queens' problem: threads take first placements from a shared counter.
#include <upc_relaxed.h>
#include <stdio.h>

#define N 8

strict shared int next;
shared long found[THREADS];
upc_lock_t *lock;

static long place(int row, unsigned cols, unsigned left, unsigned right) {
  long n = 0;
  unsigned free;
  if (row == N)
    return 1;
  for (free = ~(cols | left | right) & ((1u << N) - 1); free; free &= free - 1) {
    unsigned bit = free & -free;
    n += place(row + 1, cols | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return n;
}

static int take(void) {
  int mine;
  upc_lock(lock);
  mine = next++;
  upc_unlock(lock);
  return mine;
}

int main(void) {
  long n = 0;
  int job;
  lock = upc_all_lock_alloc();
  while ((job = take()) < N * N) {
    unsigned first = 1u << job / N, second = 1u << job % N;
    if ((first | first << 1 | first >> 1) & second)
      continue;
    n += place(2, first | second, (first << 1 | second) << 1, (first >> 1 | second) >> 1);
  }
  found[MYTHREAD] = n;
  upc_barrier;
  if (MYTHREAD == 0) {
    int i;
    long sum = 0;
    for (i = 0; i < THREADS; i++)
      sum += found[i];
    printf("%ld solutions for %d queens\n", sum, N);
  }
  return 0;
}
