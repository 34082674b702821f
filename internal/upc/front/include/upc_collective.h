#ifndef _UPC_COLLECTIVE_H
#define _UPC_COLLECTIVE_H
#include <upc.h>
#define UPC_FUNC 512UL
#define UPC_NONCOMM_FUNC 1024UL
void upc_all_broadcast(shared void *restrict dst, shared const void *restrict src, size_t nbytes, upc_flag_t flags);
void upc_all_scatter(shared void *restrict dst, shared const void *restrict src, size_t nbytes, upc_flag_t flags);
void upc_all_gather(shared void *restrict dst, shared const void *restrict src, size_t nbytes, upc_flag_t flags);
void upc_all_gather_all(shared void *restrict dst, shared const void *restrict src, size_t nbytes, upc_flag_t flags);
void upc_all_exchange(shared void *restrict dst, shared const void *restrict src, size_t nbytes, upc_flag_t flags);
void upc_all_permute(shared void *restrict dst, shared const void *restrict src, shared const int *restrict perm, size_t nbytes, upc_flag_t flags);
void upc_all_reduceC(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, signed char (*func)(signed char, signed char), upc_flag_t flags);
void upc_all_reduceUC(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned char (*func)(unsigned char, unsigned char), upc_flag_t flags);
void upc_all_reduceS(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, short (*func)(short, short), upc_flag_t flags);
void upc_all_reduceUS(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned short (*func)(unsigned short, unsigned short), upc_flag_t flags);
void upc_all_reduceI(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, int (*func)(int, int), upc_flag_t flags);
void upc_all_reduceUI(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned int (*func)(unsigned int, unsigned int), upc_flag_t flags);
void upc_all_reduceL(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, long (*func)(long, long), upc_flag_t flags);
void upc_all_reduceUL(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned long (*func)(unsigned long, unsigned long), upc_flag_t flags);
void upc_all_reduceF(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, float (*func)(float, float), upc_flag_t flags);
void upc_all_reduceD(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, double (*func)(double, double), upc_flag_t flags);
void upc_all_reduceLD(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, double (*func)(double, double), upc_flag_t flags);
void upc_all_prefix_reduceC(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, signed char (*func)(signed char, signed char), upc_flag_t flags);
void upc_all_prefix_reduceUC(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned char (*func)(unsigned char, unsigned char), upc_flag_t flags);
void upc_all_prefix_reduceS(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, short (*func)(short, short), upc_flag_t flags);
void upc_all_prefix_reduceUS(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned short (*func)(unsigned short, unsigned short), upc_flag_t flags);
void upc_all_prefix_reduceI(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, int (*func)(int, int), upc_flag_t flags);
void upc_all_prefix_reduceUI(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned int (*func)(unsigned int, unsigned int), upc_flag_t flags);
void upc_all_prefix_reduceL(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, long (*func)(long, long), upc_flag_t flags);
void upc_all_prefix_reduceUL(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, unsigned long (*func)(unsigned long, unsigned long), upc_flag_t flags);
void upc_all_prefix_reduceF(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, float (*func)(float, float), upc_flag_t flags);
void upc_all_prefix_reduceD(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, double (*func)(double, double), upc_flag_t flags);
void upc_all_prefix_reduceLD(shared void *restrict dst, shared const void *restrict src, upc_op_t op, size_t nelems, size_t blk_size, double (*func)(double, double), upc_flag_t flags);
/* Of UPC 1.2; 1.3 has none. */
void upc_all_sort(shared void *a, size_t elem_size, size_t nelems, size_t blk_size, int (*func)(shared void *, shared void *), upc_flag_t flags);
#endif
