#include <upc.h>
shared void *gp;
int main(void) { gp = upc_all_alloc(THREADS, 4); upc_all_free(gp); return 0; }
