// upc_atomic_strict and upc_atomic_relaxed: all operations, of types of each kind.
#include <upc_relaxed.h>
#include <upc_atomic.h>
#include <limits.h>
#include <stdint.h>
#include "clause.h"

#define ACCESS (UPC_GET | UPC_SET | UPC_CSWAP)
#define BITS (UPC_AND | UPC_OR | UPC_XOR)
#define NUMERIC (UPC_ADD | UPC_SUB | UPC_MULT | UPC_INC | UPC_DEC | UPC_MAX | UPC_MIN)

/* One step by one thread: what was there (6), and what is there then (4). */
#define STEP(op, first, second, before, after) \
  (op1 = (first), op2 = (second), upc_atomic_strict(d, &old, op, t, (op) & (UPC_GET | UPC_INC | UPC_DEC) ? NULL : &op1, (op) == UPC_CSWAP ? &op2 : NULL), \
   CHECK(old == (before)), CHECK(*t == (after)))
/* 7.6.2, 3: the numeric and access operations of each type. */
#define KIND(T, TYPE, OPS, LESS) \
  static shared TYPE word##T[THREADS]; \
  static upc_atomicdomain_t *kind##T(void) { \
    upc_atomicdomain_t *d = upc_all_atomicdomain_alloc(UPC_##T, OPS, 0); \
    shared TYPE *t = &word##T[(MYTHREAD + 1) % THREADS]; \
    TYPE old, op1, op2; \
    STEP(UPC_GET, 0, 0, 0, 0); \
    STEP(UPC_SET, 40, 0, 0, 40); \
    STEP(UPC_ADD, 5, 0, 40, 45); \
    STEP(UPC_SUB, 15, 0, 45, 30); \
    STEP(UPC_MULT, 3, 0, 30, 90); \
    STEP(UPC_INC, 0, 0, 90, 91); \
    STEP(UPC_DEC, 0, 0, 91, 90); \
    STEP(UPC_MIN, 95, 0, 90, 90); \
    STEP(UPC_MIN, 12, 0, 90, 12); \
    STEP(UPC_MAX, 7, 0, 12, 12); \
    STEP(UPC_MAX, 25, 0, 12, 25); \
    STEP(UPC_CSWAP, 24, 1, 25, 25); \
    STEP(UPC_CSWAP, 25, 0, 25, 0); \
    STEP(UPC_DEC, 0, 0, 0, (TYPE)-1); \
    STEP(UPC_MAX, 1, 0, (TYPE)-1, (LESS) ? 1 : (TYPE)-1); \
    return d; \
  }
#define INTEGER(T, TYPE, LESS) \
  KIND(T, TYPE, ACCESS | BITS | NUMERIC, LESS) \
  static void integer##T(void) { \
    upc_atomicdomain_t *d = kind##T(); \
    shared TYPE *t = &word##T[(MYTHREAD + 1) % THREADS]; \
    TYPE old, op1, op2; \
    upc_atomic_relaxed(d, NULL, UPC_SET, t, (op1 = 12, &op1), NULL); \
    STEP(UPC_AND, 10, 0, 12, 8); \
    STEP(UPC_OR, 3, 0, 8, 11); \
    STEP(UPC_XOR, 6, 0, 11, 13); \
    upc_barrier; \
    upc_atomic_relaxed(d, NULL, UPC_INC, &word##T[0], NULL, NULL); /* 10: of all threads */ \
    upc_barrier; \
    CHECK(word##T[0] == 13 + THREADS); \
    upc_all_atomicdomain_free(d); \
  }
INTEGER(INT, int, 1)
INTEGER(UINT, unsigned int, 0)
INTEGER(LONG, long, 1)
INTEGER(ULONG, unsigned long, 0)
INTEGER(INT32, int32_t, 1)
INTEGER(UINT32, uint32_t, 0)
INTEGER(INT64, int64_t, 1)
INTEGER(UINT64, uint64_t, 0)
KIND(FLOAT, float, ACCESS | NUMERIC, 1)
KIND(DOUBLE, double, ACCESS | NUMERIC, 1)

shared [2] int a[2 * THREADS];
shared void *shared place;

static void pointers(void) {
  upc_atomicdomain_t *d = upc_all_atomicdomain_alloc(UPC_PTS, ACCESS, 0);
  shared void *p = &a[1], *q = (shared [] int *)&a[1], *next = &a[0], *old = NULL;
  if (MYTHREAD == 0) {
    upc_atomic_relaxed(d, NULL, UPC_SET, &place, &p, NULL);
    upc_atomic_relaxed(d, &old, UPC_GET, &place, NULL, NULL);
    CHECK(old == p && upc_phaseof(old) == upc_phaseof(p));
    upc_atomic_relaxed(d, &old, UPC_CSWAP, &place, &next, &q);
    CHECK(old == p && place == p);
    /* 8: phases are not compared. */
    upc_atomic_relaxed(d, &old, UPC_CSWAP, &place, &q, &next);
    CHECK(old == p && place == next);
  }
  upc_barrier;
  upc_all_atomicdomain_free(d);
}

shared int flag, data[THREADS];

int main(void) {
  upc_atomicdomain_t *d;
  int i, won = 0, mine = MYTHREAD + 1, none = 0, old, zero = 0;
  double big = 1e308, two = 2, was;
  integerINT(), integerUINT(), integerLONG(), integerULONG();
  integerINT32(), integerUINT32(), integerINT64(), integerUINT64();
  upc_all_atomicdomain_free(kindFLOAT());
  /* 9: overflow is that of the language. */
  d = kindDOUBLE();
  upc_barrier;
  if (MYTHREAD == 0) {
    upc_atomic_relaxed(d, NULL, UPC_SET, &wordDOUBLE[0], &big, NULL);
    upc_atomic_relaxed(d, &was, UPC_MULT, &wordDOUBLE[0], &two, NULL);
    CHECK(was == 1e308 && wordDOUBLE[0] > 1.7e308 && wordDOUBLE[0] == 2 * wordDOUBLE[0]);
  }
  upc_all_atomicdomain_free(d);
  pointers();
  /* 4: one CSWAP of all succeeds; 10: a strict one orders the accesses around it. */
  d = upc_all_atomicdomain_alloc(UPC_INT, ACCESS | UPC_ADD, 0);
  for (i = 1; i <= 5; i++) {
    data[MYTHREAD] = i * mine;
    upc_atomic_strict(d, &old, UPC_CSWAP, &flag, &none, &mine);
    won += old == 0;
    CHECK(old == 0 || data[old - 1] == i * old);
    upc_barrier;
    CHECK((old == 0) == (flag == mine));
    upc_barrier;
    if (old == 0)
      upc_atomic_strict(d, NULL, UPC_SET, &flag, &zero, NULL);
    upc_barrier;
  }
  upc_atomic_relaxed(d, NULL, UPC_ADD, &flag, &won, NULL);
  upc_barrier;
  CHECK(flag == 5);
  return clause_done();
}
