// Threads name different barriers.
#include <upc.h>
int main(void) { upc_barrier MYTHREAD; return 0; }
