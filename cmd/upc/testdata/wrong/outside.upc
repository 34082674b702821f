#include <upc_relaxed.h>
shared int a[4 * THREADS];
int main(void) {
  long far[3] = {0, 3, 1L << 36};
  for (int i = 0; i < 3; i++)
    a[far[i]] += 1;
  return 0;
}
