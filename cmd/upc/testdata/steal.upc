// The queens' problem by work stealing: each thread has a deque of boards in shared memory, at
// one end of which it works; a thread that has none left takes half of another's from the
// other end.
//
//	steal [QUEENS [DEPTH [v]]]    boards with DEPTH queens or more are not divided further;
//	                              with v it says how many were stolen
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY 512

typedef struct {
  int row;
  unsigned cols, left, right;
} board_t;

struct deque {
  int top, bottom; /* the boards are tasks[top] to tasks[bottom - 1] */
  upc_lock_t *lock;
  board_t tasks[CAPACITY];
};

shared struct deque deques[THREADS];
/* Each thread's own counts, which all read to find that nothing is left. */
strict shared long made[THREADS], done[THREADS], stolen[THREADS];
shared long found[THREADS];

static int queens = 8, depth = 3;
static unsigned state;

static int next_victim(void) {
  state = state * 1103515245u + 12345u;
  return (state >> 16) % THREADS;
}

static void push(board_t b) {
  shared struct deque *d = &deques[MYTHREAD];
  made[MYTHREAD]++;
  upc_lock(d->lock);
  if (d->bottom == CAPACITY) {
    printf("thread %d: the deque is full\n", MYTHREAD);
    upc_global_exit(1);
  }
  d->tasks[d->bottom++] = b;
  upc_unlock(d->lock);
}

static int pop(board_t *b) {
  shared struct deque *d = &deques[MYTHREAD];
  int ok;
  upc_lock(d->lock);
  if ((ok = d->top < d->bottom))
    *b = d->tasks[--d->bottom];
  else
    d->top = d->bottom = 0;
  upc_unlock(d->lock);
  return ok;
}

/* Moves half of a victim's boards, from the top, to this thread's deque. */
static int steal(int victim) {
  static board_t loot[CAPACITY];
  shared struct deque *d = &deques[victim];
  int n, i;
  if (victim == MYTHREAD || d->top >= d->bottom) /* a look without the lock: a hint */
    return 0;
  upc_lock(d->lock);
  n = (d->bottom - d->top + 1) / 2;
  if (n > 0) {
    upc_memget(loot, &d->tasks[d->top], n * sizeof(board_t));
    d->top += n;
  }
  upc_unlock(d->lock);
  if (n <= 0)
    return 0;
  stolen[MYTHREAD] += n;
  d = &deques[MYTHREAD];
  upc_lock(d->lock);
  for (i = 0; i < n; i++)
    d->tasks[d->bottom++] = loot[i];
  upc_unlock(d->lock);
  return n;
}

/* No board is left: as many are done as were made later. The order of the two loops matters. */
static int finished(void) {
  long d = 0, m = 0;
  int i;
  for (i = 0; i < THREADS; i++)
    d += done[i];
  for (i = 0; i < THREADS; i++)
    m += made[i];
  return d == m;
}

static long place(int row, unsigned cols, unsigned left, unsigned right) {
  unsigned free = ~(cols | left | right) & ((1u << queens) - 1);
  long n = 0;
  if (row == queens)
    return 1;
  while (free) {
    unsigned bit = free & -free;
    free ^= bit;
    n += place(row + 1, cols | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return n;
}

static long expand(board_t b) {
  unsigned free, bit;
  if (b.row >= depth)
    return place(b.row, b.cols, b.left, b.right);
  for (free = ~(b.cols | b.left | b.right) & ((1u << queens) - 1); free; free &= ~bit) {
    bit = free & -free;
    board_t kid = { b.row + 1, b.cols | bit, (b.left | bit) << 1, (b.right | bit) >> 1 };
    push(kid);
  }
  return 0;
}

int main(int argc, char **argv) {
  static const long solutions[] = { 1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596 };
  board_t b;
  int i;
  switch (argc) {
  default:
    depth = atoi(argv[2]);
    /* fall through */
  case 2:
    queens = atoi(argv[1]);
  case 1:
  case 0:
    break;
  }
  state = MYTHREAD + 1;
  deques[MYTHREAD].lock = upc_global_lock_alloc();
  upc_barrier;
  if (MYTHREAD == 0) {
    board_t first = { .row = 0 };
    made[0]++;
    expand(first);
    done[0]++;
  }
  upc_barrier;
  /* Thread 0 lets another one begin, so that small problems are shared, too. */
  for (i = 1; MYTHREAD == 0 && queens > 3 && i < THREADS && stolen[i] == 0; i = i % (THREADS - 1) + 1)
    ;
  for (;;) {
    while (pop(&b)) {
      found[MYTHREAD] += expand(b);
      done[MYTHREAD]++;
    }
    if (finished())
      break;
    for (i = 0; i < THREADS && !steal(next_victim()); i++)
      ;
  }
  upc_barrier;
  if (MYTHREAD == 0) {
    long sum = 0, moved = 0;
    for (i = 0; i < THREADS; i++) {
      sum += found[i];
      moved += stolen[i];
    }
    printf("steal: %ld solutions for %d queens, %s\n", sum, queens,
           queens < (int)(sizeof solutions / sizeof *solutions) && sum != solutions[queens] ? "wrong" : "right");
    if (argc > 3)
      printf("steal: %ld boards were stolen\n", moved);
  }
  upc_barrier;
  upc_lock_free(deques[MYTHREAD].lock);
  return 0;
}
