// A program of two files and a header.
#include "files/files.h"
#include <stdio.h>

static int count = 5; /* another one than the other file's */
shared int total[THREADS];

int main(void) {
  struct pair p = { 2, 3 };
  total[MYTHREAD] = sum(&p) + bump() + bump();
  upc_barrier;
  if (MYTHREAD == 0)
    printf("files %d %d %d\n", (int)spread(), count, limit);
  return 0;
}
