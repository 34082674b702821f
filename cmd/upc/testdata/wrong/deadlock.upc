// A barrier in a critical section.
#include <upc.h>
upc_lock_t *a;
int main(void) { a = upc_all_lock_alloc(); upc_lock(a); upc_barrier; upc_unlock(a); return 0; }
