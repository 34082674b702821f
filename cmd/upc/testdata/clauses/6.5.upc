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
/* 3: a qualifier may come again, with one block size among all. */
shared four_t again[4 * THREADS];
typedef shared int one_t;
shared [5] one_t five[5 * THREADS];
shared [6] shared int shared const six[6 * THREADS];

int main(void) {
  CHECK(upc_blocksizeof(a) == 4 && upc_blocksizeof(b) == 2 && sizeof flag == 4 && upc_blocksizeof(*p) == 3);
  CHECK(upc_blocksizeof(again) == 4 && upc_blocksizeof(five) == 5 && upc_blocksizeof(six) == 6);
  hidden[MYTHREAD] = MYTHREAD;
  outside[MYTHREAD] = -MYTHREAD;
  upc_barrier;
  CHECK(hidden[THREADS - 1] == THREADS - 1 && outside[THREADS - 1] == 1 - THREADS && late[MYTHREAD] == 0);
  return clause_done();
}
