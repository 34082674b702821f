// Lost updates: a shared counter without a lock.
#include <upc_relaxed.h>
#include <stdio.h>
shared int n;
int main(void) {
  int i;
  for (i = 0; i < 10; i++) n++;
  upc_barrier;
  if (MYTHREAD == 0 && n != 10 * THREADS) { printf("lost updates: %d\n", n); return 1; }
  return 0;
}
