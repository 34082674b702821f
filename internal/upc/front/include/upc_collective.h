#ifndef _UPC_COLLECTIVE_H
#define _UPC_COLLECTIVE_H
#include <upc.h>
typedef int upc_flag_t;
#define UPC_IN_ALLSYNC 1
#define UPC_IN_MYSYNC 2
#define UPC_IN_NOSYNC 4
#define UPC_OUT_ALLSYNC 8
#define UPC_OUT_MYSYNC 16
#define UPC_OUT_NOSYNC 32
void upc_all_broadcast(shared void *dst, shared const void *src, size_t n, upc_flag_t flags);
void upc_all_scatter(shared void *dst, shared const void *src, size_t n, upc_flag_t flags);
void upc_all_gather(shared void *dst, shared const void *src, size_t n, upc_flag_t flags);
void upc_all_gather_all(shared void *dst, shared const void *src, size_t n, upc_flag_t flags);
void upc_all_exchange(shared void *dst, shared const void *src, size_t n, upc_flag_t flags);
#endif
