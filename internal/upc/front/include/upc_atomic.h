#ifndef _UPC_ATOMIC_H
#define _UPC_ATOMIC_H
#include <upc.h>
#define UPC_GET 2048UL
#define UPC_SET 4096UL
#define UPC_CSWAP 8192UL
#define UPC_SUB 16384UL
#define UPC_INC 32768UL
#define UPC_DEC 65536UL
typedef shared [] struct __upc_atomicdomain upc_atomicdomain_t;
typedef int upc_atomichint_t;
#define UPC_ATOMIC_HINT_DEFAULT 0
#define UPC_ATOMIC_HINT_LATENCY 1
#define UPC_ATOMIC_HINT_THROUGHPUT 2
upc_atomicdomain_t *upc_all_atomicdomain_alloc(upc_type_t type, upc_op_t ops, upc_atomichint_t hints);
void upc_all_atomicdomain_free(upc_atomicdomain_t *ptr);
void upc_atomic_strict(upc_atomicdomain_t *domain, void *restrict fetch_ptr, upc_op_t op, shared void *restrict target, const void *restrict operand1, const void *restrict operand2);
void upc_atomic_relaxed(upc_atomicdomain_t *domain, void *restrict fetch_ptr, upc_op_t op, shared void *restrict target, const void *restrict operand1, const void *restrict operand2);
int upc_atomic_isfast(upc_type_t type, upc_op_t ops, shared void *addr);
#endif
