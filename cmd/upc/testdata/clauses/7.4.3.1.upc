// upc_all_reduce and upc_all_prefix_reduce: types, layouts and phases.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

#define B 3
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)

/* 2: each variant has its type; sums of 1 to 10 are the same in all. */
#define VARIANT(T, TYPE) \
  static shared [B] TYPE src##T[4 * B * THREADS], dst##T[4 * B * THREADS]; \
  static shared TYPE sum##T; \
  static void variant##T(void) { \
    int i; \
    upc_forall(i = 0; i < 10; i++; &src##T[i]) \
      src##T[i] = i + 1, dst##T[i] = 0; \
    upc_all_reduce##T(&sum##T, src##T, UPC_ADD, 10, B, NULL, ALL); \
    CHECK(sum##T == 55); /* 3 */ \
    upc_all_prefix_reduce##T(dst##T, src##T, UPC_ADD, 10, B, NULL, ALL); \
    for (i = 0; i < 10; i++) \
      CHECK(dst##T[i] == (i + 1) * (i + 2) / 2); /* 4 */ \
    CHECK(dst##T[10] == 0); \
  }
VARIANT(C, signed char)
VARIANT(UC, unsigned char)
VARIANT(S, signed short)
VARIANT(US, unsigned short)
VARIANT(I, signed int)
VARIANT(UI, unsigned int)
VARIANT(L, signed long)
VARIANT(UL, unsigned long)
VARIANT(F, float)
VARIANT(D, double)
VARIANT(LD, long double)

shared [] int *shared row;
shared int cyclic[4 * THREADS];

static unsigned char last(unsigned char x, unsigned char y) { return y != 0 ? y : x; }

int main(void) {
  int i, end = THREADS - 1;
  shared [] int *r;
  variantC(), variantUC(), variantS(), variantUS(), variantI(), variantUI();
  variantL(), variantUL(), variantF(), variantD(), variantLD();
  upc_barrier;
  /* 6 and 11: block size 1, and the result at any thread. */
  for (i = 0; i < 4; i++)
    cyclic[MYTHREAD + i * THREADS] = 1;
  upc_all_reduceI(&cyclic[end + 3 * THREADS], cyclic, UPC_ADD, 3 * THREADS, 1, NULL, ALL);
  CHECK(cyclic[end + 3 * THREADS] == 3 * THREADS);
  /* 7: block size 0 is an array of one thread. */
  if (MYTHREAD == end) {
    row = upc_alloc(16 * sizeof(int));
    for (i = 0; i < 16; i++)
      row[i] = i < 8 ? 2 : -1;
  }
  upc_barrier;
  r = row;
  upc_all_reduceL(&sumL, srcL, UPC_MAX, 1, 0, NULL, ALL);
  CHECK(sumL == 1);
  upc_all_reduceI(&sumI, r, UPC_MULT, 8, 0, NULL, ALL);
  CHECK(sumI == 256);
  upc_all_prefix_reduceI(r + 8, r, UPC_MULT, 8, 0, NULL, ALL);
  for (i = 0; i < 8; i++)
    CHECK(r[8 + i] == 2 << i);
  /* 8 to 10: the phases of both are respected, in the middle of a block. */
  upc_barrier;
  upc_all_reduceD(&sumD, &srcD[2], UPC_ADD, 5, B, NULL, ALL);
  CHECK(sumD == 3 + 4 + 5 + 6 + 7);
  upc_all_prefix_reduceUC(&dstUC[1], &srcUC[1], UPC_NONCOMM_FUNC, 7, B, last, ALL);
  CHECK(dstUC[0] == 1 && dstUC[8] == 45);
  for (i = 1; i < 8; i++)
    CHECK(dstUC[i] == i + 1);
  return clause_done();
}
