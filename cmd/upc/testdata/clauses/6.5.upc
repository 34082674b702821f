// Declarations: strict and relaxed, block sizes, also by typedefs.
#include <upc_relaxed.h>
#include "clause.h"

typedef shared [4] int four_t;
typedef strict shared int st_t;
typedef int plain_t;

four_t a[8 * THREADS];
st_t flag;
shared [2] plain_t b[2 * THREADS];
static shared int hidden[THREADS];
extern shared int outside[THREADS];
shared int outside[THREADS];
int shared const late[THREADS]; /* qualifiers stand anywhere */
shared [3] int *restrict volatile p;

int main(void) {
  CHECK(upc_blocksizeof(a) == 4 && upc_blocksizeof(b) == 2 && sizeof flag == 4 && upc_blocksizeof(*p) == 3);
  hidden[MYTHREAD] = MYTHREAD;
  outside[MYTHREAD] = -MYTHREAD;
  upc_barrier;
  CHECK(hidden[THREADS - 1] == THREADS - 1 && outside[THREADS - 1] == 1 - THREADS && late[MYTHREAD] == 0);
  return clause_done();
}
