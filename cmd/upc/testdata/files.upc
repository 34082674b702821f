// A program of two files and a header.
#include "files/files.h"
#include <stdio.h>

static int count = 5; /* another one than the other file's */
shared int total[THREADS];

int main(void) {
  struct pair p = { 2, 3 };
  total[MYTHREAD] = sum(&p) + bump() + bump();
  upc_barrier;
  struct box *b = pack(11);
  if (MYTHREAD == 0)
    printf("files %d %d %d %d\n", (int)spread(), count, limit, unpack(b));
  return 0;
}
