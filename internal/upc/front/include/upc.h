#ifndef _UPC_H
#define _UPC_H
#include <stddef.h>
#include <upc_types.h>
typedef shared [] struct __upc_lock upc_lock_t;
#define UPC_MAX_BLOCKSIZE UPC_MAX_BLOCK_SIZE
size_t upc_threadof(shared void *ptr);
size_t upc_phaseof(shared void *ptr);
shared void *upc_resetphase(shared void *ptr);
size_t upc_addrfield(shared void *ptr);
size_t upc_affinitysize(size_t totalsize, size_t nbytes, size_t threadid);
shared void *upc_all_alloc(size_t nblocks, size_t nbytes);
shared void *upc_global_alloc(size_t nblocks, size_t nbytes);
shared void *upc_alloc(size_t nbytes);
void upc_free(shared void *ptr);
void upc_all_free(shared void *ptr);
upc_lock_t *upc_all_lock_alloc(void);
upc_lock_t *upc_global_lock_alloc(void);
void upc_lock(upc_lock_t *ptr);
void upc_unlock(upc_lock_t *ptr);
int upc_lock_attempt(upc_lock_t *ptr);
void upc_lock_free(upc_lock_t *ptr);
void upc_all_lock_free(upc_lock_t *ptr);
void upc_memcpy(shared void *dst, shared const void *src, size_t n);
void upc_memget(void *dst, shared const void *src, size_t n);
void upc_memput(shared void *dst, const void *src, size_t n);
void upc_memset(shared void *dst, int c, size_t n);
void upc_global_exit(int status);
/* Of UPC 1.1 and before. */
shared void *upc_local_alloc(size_t nblocks, size_t nbytes);
#include <bupc_extensions.h>
#endif
