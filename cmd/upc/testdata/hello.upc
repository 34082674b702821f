#include <upc.h>
#include <stdio.h>

shared int counts[THREADS];

int main(void) {
  int i, sum = 0;
  printf("hello from thread %d of %d\n", MYTHREAD, THREADS);
  counts[MYTHREAD] = MYTHREAD + 1;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 0; i < THREADS; i++)
      sum += counts[i];
    printf("sum %d\n", sum);
  }
  upc_barrier 2;
  return 0;
}
