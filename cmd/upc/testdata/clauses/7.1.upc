// Standard headers: each may be included again, and includes upc.h.
#include <upc_strict.h>
#include <upc.h>
#include <upc_relaxed.h>
#include <upc.h>
#include <upc_strict.h>
#include "clause.h"

shared int x;

static void under_strict(void) { x = 1; }
#include <upc_relaxed.h>
static void under_relaxed(void) { x = 2; }

int main(void) {
  size_t n = upc_threadof(&x);
  if (MYTHREAD == 0) {
    under_strict();
    CHECK(x == 1);
    under_relaxed();
    CHECK(x == 2);
  }
  CHECK(n == 0);
  return clause_done();
}
