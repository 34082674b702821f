// Pointers-to-shared beside a plain restatement of UPC 1.3, 6.4.2, in whole numbers: random
// walks over arrays of several element and block sizes, with every operator on the way.
//
//	torture [STEPS]
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char c[3]; } odd_t;
typedef struct { short s[4]; double d; int i[2]; } mixed_t; /* without holes */

#define COUNT 60

shared int i1[COUNT * THREADS];
shared [2] char c2[COUNT * THREADS];
shared [3] odd_t o3[COUNT * THREADS];
shared [4] short s4[COUNT * THREADS];
shared [5] double d5[COUNT * THREADS];
shared [6] mixed_t m6[COUNT * THREADS];
shared [COUNT] long l60[COUNT * THREADS];
shared [*] float fs[COUNT * THREADS];
shared odd_t o1[COUNT * THREADS];
shared [] int flat[COUNT * 4];
shared [7] int grid[7 * THREADS][COUNT]; /* blocks that do not match rows */
shared [COUNT] int lines[7 * THREADS][COUNT];

static int bad, steps = 200;
static unsigned state;

static void fail(const char *name, int line, long i, long d) {
  if (bad++ < 5)
    printf("thread %d: %s, line %d, at %ld by %ld\n", MYTHREAD, name, line, i, d);
}

static long draw(long n) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

/* The restatement: element i of an array with blocks of b is at this thread, with this phase,
 * and at this place of the thread's part. */
static long owner(long i, long b) { return i / b % THREADS; }
static long phase(long i, long b) { return i % b; }
static long inside(long i, long b) { return i / (b * THREADS) * b + i % b; }

static void put_number(void *p, size_t size, long v) {
  size_t k;
  for (k = 0; k < size; k++)
    ((unsigned char *)p)[k] = (unsigned char)(v * 7 + k);
}

static int has_number(const void *p, size_t size, long v) {
  unsigned char want[64];
  put_number(want, size, v);
  return !memcmp(p, want, size);
}

#define CHECK(e) ((e) ? (void)0 : fail(NAME, __LINE__, i, d))

#define WALK(T, B, ARRAY, N)                                                                    \
  static void walk_##ARRAY(void) {                                                              \
    static const char NAME[] = #ARRAY;                                                          \
    shared [B] T *p = ARRAY, *q, **pp = &p;                                                     \
    const shared [B] T *r;                                                                      \
    const long n = N, b = (B) ? (B) : n, z = sizeof(T);                                         \
    long i = 0, d = 0, j;                                                                       \
    int k;                                                                                      \
    size_t base;                                                                                \
    for (i = 0; i < n; i++)                                                                     \
      if (upc_threadof(&ARRAY[i]) == MYTHREAD) {                                                \
        T v;                                                                                    \
        put_number(&v, sizeof v, i);                                                            \
        ARRAY[i] = v;                                                                           \
      }                                                                                         \
    upc_barrier;                                                                                \
    base = upc_addrfield(&ARRAY[0]);                                                            \
    for (k = 0, i = 0; k < steps; k++) {                                                        \
      T v, *mine;                                                                               \
      j = draw(n);                                                                              \
      d = j - i;                                                                                \
      q = p;                                                                                    \
      switch (draw(6)) {                                                                        \
      case 0: p += d; break;                                                                    \
      case 1: p = p + d; break;                                                                 \
      case 2: p = d + p; break;                                                                 \
      case 3: p -= -d; break;                                                                   \
      case 4: p = &p[d]; break;                                                                 \
      case 5: *pp = &(*pp)[(short)d]; break;                                                    \
      }                                                                                         \
      CHECK(p - q == d && q - p == -d);                                                         \
      CHECK((p == q) == (d == 0) && (p != q) == (d != 0));                                      \
      CHECK((p < q) == (d < 0) && (p <= q) == (d <= 0) && (p > q) == (d > 0) && (p >= q) == (d >= 0)); \
      i = j;                                                                                    \
      CHECK(p == &ARRAY[i] && p == ARRAY + i && p - ARRAY == i);                                \
      CHECK(upc_threadof(p) == owner(i, b) || !(B));                                            \
      CHECK(upc_phaseof(p) == (!(B) ? 0 : phase(i, b)));                                        \
      CHECK(upc_addrfield(p) - base == (!(B) ? i : inside(i, b)) * z);                          \
      v = *p;                                                                                   \
      CHECK(has_number(&v, sizeof v, i));                                                       \
      r = p;                                                                                    \
      v = r[0], CHECK(has_number(&v, sizeof v, i));                                             \
      if (i + 1 < n) {                                                                          \
        v = *p++, CHECK(has_number(&v, sizeof v, i) && p == &ARRAY[i + 1]);                     \
        v = *p--, CHECK(has_number(&v, sizeof v, i + 1));                                       \
        v = p[1], CHECK(has_number(&v, sizeof v, i + 1));                                       \
        v = *++r, CHECK(has_number(&v, sizeof v, i + 1));                                       \
        v = *--r, CHECK(r == p && has_number(&v, sizeof v, i));                                 \
      }                                                                                         \
      if (i > 0) {                                                                              \
        v = p[-1], CHECK(has_number(&v, sizeof v, i - 1));                                      \
        v = *(p - 1), CHECK(has_number(&v, sizeof v, i - 1));                                   \
      }                                                                                         \
      if (upc_threadof(p) == MYTHREAD) {                                                        \
        mine = (T *)p;                                                                          \
        CHECK(has_number(mine, sizeof *mine, i));                                               \
        if ((B) && i + b * THREADS < n) /* the next block of this thread follows in its part */ \
          CHECK(has_number(mine + b, z, i + b * THREADS));                                      \
      }                                                                                         \
      {                                                                                         \
        shared void *any = p;                                                                   \
        shared T *one = (shared T *)p;                                                          \
        shared [] T *none = (shared [] T *)p;                                                   \
        shared [9] T *nine = (shared [9] T *)p;                                                 \
        CHECK((shared [B] T *)any == p && (shared [B] T *)any - ARRAY == i);                    \
        CHECK(upc_threadof(one) == upc_threadof(p) && upc_phaseof(one) == 0);                   \
        CHECK(upc_threadof(none) == upc_threadof(p) && upc_addrfield(none + 2) == upc_addrfield(p) + 2 * z); \
        CHECK(upc_threadof(one + 1) == (upc_threadof(p) + 1) % THREADS);                        \
        CHECK(upc_phaseof(nine) == 0 && upc_phaseof(nine + 8) == 8 && upc_threadof(nine + 8) == upc_threadof(p)); \
        CHECK(upc_threadof(nine + 9) == (upc_threadof(p) + 1) % THREADS && nine + 9 - nine == 9); \
        CHECK(upc_phaseof(upc_resetphase(p)) == 0 && upc_threadof(upc_resetphase(p)) == upc_threadof(p)); \
        CHECK(any && p && !(any == NULL));                                                      \
      }                                                                                         \
    }                                                                                           \
  }

WALK(int, 1, i1, COUNT * THREADS)
WALK(char, 2, c2, COUNT * THREADS)
WALK(odd_t, 3, o3, COUNT * THREADS)
WALK(short, 4, s4, COUNT * THREADS)
WALK(double, 5, d5, COUNT * THREADS)
WALK(mixed_t, 6, m6, COUNT * THREADS)
WALK(long, COUNT, l60, COUNT * THREADS)
WALK(float, COUNT, fs, COUNT * THREADS)
WALK(odd_t, 1, o1, COUNT * THREADS)
WALK(int, 0, flat, COUNT * 4)

#define NAME "rows"
/* Arrays of two dimensions are laid out by elements, and pointers to their rows step by rows. */
static void rows(void) {
  long i, d, k;
  for (k = 0; k < steps; k++) {
    long e;
    i = draw(7 * THREADS), d = draw(COUNT), e = i * COUNT + d;
    shared [7] int *p = &grid[i][d];
    shared [COUNT] int (*row)[COUNT] = &lines[i], *first = lines[i];
    CHECK(upc_threadof(p) == owner(e, 7) && upc_phaseof(p) == phase(e, 7));
    CHECK(upc_addrfield(p) - upc_addrfield(&grid[0][0]) == inside(e, 7) * sizeof(int));
    CHECK(p - &grid[0][0] == e && *grid + e == p && grid[i] + d == p);
    CHECK(upc_threadof(&lines[i][d]) == i % THREADS && upc_phaseof(&lines[i][d]) == d);
    CHECK(&(*row)[d] == &lines[i][d] && first + d == *row + d && row - lines == i);
    CHECK(*(lines + i) + d == &row[0][d] && row[-i] == lines[0]);
    lines[i][d] = 1000 * i + d; /* all write the same */
    CHECK((*row)[d] == 1000 * i + d);
  }
  i = 0, d = 0;
  CHECK(sizeof(grid) == 7 * THREADS * COUNT * sizeof(int) && sizeof grid[0] == COUNT * sizeof(int) && sizeof **grid == 4);
  CHECK(upc_localsizeof(lines) == 7 * COUNT * sizeof(int) && upc_blocksizeof(lines) == COUNT && upc_blocksizeof(i1) == 1 && upc_blocksizeof(flat) == 0);
  CHECK(upc_elemsizeof(grid) == sizeof(int) && upc_blocksizeof(fs) == COUNT);
}

int main(int argc, char **argv) {
  if (argc > 1)
    steps = atoi(argv[1]);
  state = 12345u + 999u * MYTHREAD;
  walk_i1(), walk_c2(), walk_o3(), walk_s4(), walk_d5(), walk_m6(), walk_l60(), walk_fs(), walk_o1(), walk_flat();
  rows();
  printf("thread %d: %d wrong\n", MYTHREAD, bad);
  return 0;
}
