// sizeof of shared objects: of arrays with THREADS it is not constant in the dynamic
// environment.
#include <upc.h>
#include "clause.h"

struct s { char c; double d; };
shared int a[3 * THREADS];
shared [4] struct s b[2][5 * THREADS];
shared [] short flat[11];
shared struct s one;
typedef shared [3] int row_t[THREADS][3];

int main(void) {
  shared [4] struct s (*row)[5 * THREADS] = b;
  int i = 0;
  CHECK(sizeof a == 3 * THREADS * sizeof(int) && sizeof a / sizeof a[0] == 3 * THREADS);
  CHECK(sizeof(b) == 10 * THREADS * sizeof(struct s) && sizeof b[0] == 5 * THREADS * sizeof(struct s));
  CHECK(sizeof *row == sizeof b[1] && sizeof **row == sizeof(struct s));
  CHECK(sizeof flat == 22 && sizeof one == 16 && sizeof one.c == 1);
  CHECK(sizeof(row_t) == 9 * THREADS * sizeof(int) / 3 && sizeof(shared int[7 * THREADS]) == 28 * THREADS);
  CHECK(sizeof(shared int *) == sizeof(shared [7] char *) && sizeof(shared int) == sizeof(int));
  CHECK(sizeof(a[i++]) == sizeof(int) && i == 0);
  return clause_done();
}
