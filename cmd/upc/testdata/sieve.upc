// Primes by the sieve of Eratosthenes in a cyclic array, allocated by all threads.
#include <upc_relaxed.h>
#include <stdio.h>
#include <stdlib.h>

shared int total;

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  int i, j, mine = 0;
  upc_lock_t *l = upc_all_lock_alloc();
  shared char *flags = upc_all_alloc(n + 1, sizeof(char));
  upc_forall (i = 0; i <= n; i++; &flags[i])
    flags[i] = i >= 2;
  upc_barrier;
  for (i = 2; i * i <= n; i++) {
    if (flags[i]) {
      upc_forall (j = i * i; j <= n; j += i; &flags[j])
        flags[j] = 0;
    }
    upc_barrier i;
  }
  upc_forall (i = 0; i <= n; i++; i)
    mine += flags[i];
  upc_lock(l);
  total += mine;
  upc_unlock(l);
  upc_barrier;
  if (MYTHREAD == 0)
    printf("%d primes up to %d\n", total, n);
  upc_all_free(flags);
  return 0;
}
