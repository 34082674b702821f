// Pi by integration; the partial sums are added under a lock.
#include <upc_relaxed.h>
#include <stdio.h>
#include <math.h>

#define STEPS 100000

shared double pi;
upc_lock_t *lock;

int main(void) {
  double local = 0, h = 1.0 / STEPS;
  int i;
  lock = upc_all_lock_alloc();
  upc_forall (i = 0; i < STEPS; i++; i) {
    double x = h * (i + 0.5);
    local += 4.0 / (1.0 + x * x);
  }
  upc_lock(lock);
  pi += local * h;
  upc_unlock(lock);
  upc_barrier;
  if (MYTHREAD == 0)
    printf("pi %.6f, error below 1e-9: %d\n", pi, fabs(pi - M_PI) < 1e-9);
  upc_barrier;
  if (MYTHREAD == 0)
    upc_lock_free(lock);
  return 0;
}
