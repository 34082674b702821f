// Keywords: these are reserved, and nothing that resembles them is.
#include "clause.h"

int Shared = 1, sharedint = 2, upc_Barrier = 3, threads = 4, mythread = 5, stricter = 6, _strict = 7;
struct relaxed_t { int upc_wait_, THREADS_; } s = { 8, 9 };

static int upc_forallx(int upc_fences) { return upc_fences + 1; }

int main(void) {
  CHECK(Shared + sharedint + upc_Barrier + threads + mythread + stricter + _strict == 28);
  CHECK(s.upc_wait_ + s.THREADS_ + upc_forallx(1) == 19);
  return clause_done();
}
