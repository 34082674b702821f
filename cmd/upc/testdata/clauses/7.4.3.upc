// Computational operations: those of upc_op_t, and given functions.
#include <upc_relaxed.h>
#include <upc_collective.h>
#include "clause.h"

#define B 2
#define ALL (UPC_IN_ALLSYNC | UPC_OUT_ALLSYNC)
#if (UPC_FUNC & UPC_NONCOMM_FUNC) != 0 || (UPC_FUNC & (UPC_ADD | UPC_MAX)) != 0
#error UPC_FUNC
#endif

shared [B] int a[B * THREADS];
shared [B] unsigned u[B * THREADS];
shared [B] double d[B * THREADS];
shared int r;
shared unsigned ur;
shared double dr;

static int gcd(int x, int y) { return y == 0 ? x : gcd(y, x % y); }
/* It is associative and not commutative: the first that is not zero. */
static unsigned first(unsigned x, unsigned y) { return x != 0 ? x : y; }

int main(void) {
  int i, n = B * THREADS, sum = 0, product = 1, and = -1, or = 0, xor = 0;
  for (i = 0; i < B; i++) {
    int k = B * MYTHREAD + i;
    a[k] = k % 3 + 1;
    u[k] = k;
    d[k] = k - 2.5;
  }
  for (i = 0; i < n; i++)
    sum += i % 3 + 1, product *= i % 3 + 1, and &= i % 3 + 1, or |= i % 3 + 1, xor ^= i % 3 + 1;
  /* 1: all operations of 7.3.1. */
  upc_all_reduceI(&r, a, UPC_ADD, n, B, NULL, ALL);
  CHECK(r == sum);
  upc_barrier;
  upc_all_reduceI(&r, a, UPC_MULT, n, B, NULL, ALL);
  CHECK(r == product);
  upc_barrier;
  upc_all_reduceI(&r, a, UPC_AND, n, B, NULL, ALL);
  CHECK(r == and);
  upc_barrier;
  upc_all_reduceI(&r, a, UPC_OR, n, B, NULL, ALL);
  CHECK(r == or);
  upc_barrier;
  upc_all_reduceI(&r, a, UPC_XOR, n, B, NULL, ALL);
  CHECK(r == xor);
  upc_barrier;
  upc_all_reduceI(&r, a, UPC_LOGAND, n, B, NULL, ALL);
  CHECK(r == 1);
  upc_barrier;
  upc_all_reduceUI(&ur, u, UPC_LOGAND, n, B, NULL, ALL); /* u[0] is zero */
  CHECK(ur == 0);
  upc_barrier;
  upc_all_reduceUI(&ur, u, UPC_LOGOR, n, B, NULL, ALL);
  CHECK(ur == 1);
  upc_all_reduceD(&dr, d, UPC_MIN, n, B, NULL, ALL);
  CHECK(dr == -2.5);
  upc_barrier;
  upc_all_reduceD(&dr, d, UPC_MAX, n, B, NULL, ALL);
  CHECK(dr == n - 1 - 2.5);
  upc_barrier;
  /* 1 and 4: a function, of which the order of the operands says nothing. */
  a[B * MYTHREAD] = 12 * (MYTHREAD + 1);
  a[B * MYTHREAD + 1] = 18;
  upc_all_reduceI(&r, a, UPC_FUNC, n, B, gcd, ALL);
  CHECK(r == 6);
  /* 1 and 4: one of which it does: the operands come in the order of the array. */
  upc_barrier;
  upc_all_reduceUI(&ur, u, UPC_NONCOMM_FUNC, n, B, first, ALL);
  CHECK(ur == 1);
  return clause_done();
}
