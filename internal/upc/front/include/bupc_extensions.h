#ifndef _BUPC_EXTENSIONS_H
#define _BUPC_EXTENSIONS_H
#include <upc.h>
#include <upc_nb.h>
#include <upc_tick.h>
/* What another compiler offers with <upc.h>. */
typedef upc_tick_t bupc_tick_t;
#define BUPC_TICK_MAX UPC_TICK_MAX
#define BUPC_TICK_MIN UPC_TICK_MIN
#define bupc_ticks_now() upc_ticks_now()
#define bupc_ticks_to_ns(t) upc_ticks_to_ns(t)
#define bupc_ticks_to_us(t) (upc_ticks_to_ns(t) / 1000)
#define bupc_tick_granularity() 0.001
#define bupc_tick_overhead() 0.05
void bupc_poll(void);
typedef upc_handle_t bupc_handle_t;
#define BUPC_COMPLETE_HANDLE UPC_COMPLETE_HANDLE
#define bupc_memcpy_async(dst, src, n) upc_memcpy_nb(dst, src, n)
#define bupc_memget_async(dst, src, n) upc_memget_nb(dst, src, n)
#define bupc_memput_async(dst, src, n) upc_memput_nb(dst, src, n)
#define bupc_memset_async(dst, c, n) upc_memset_nb(dst, c, n)
#define bupc_memcpy_asynci(dst, src, n) upc_memcpy_nbi(dst, src, n)
#define bupc_memget_asynci(dst, src, n) upc_memget_nbi(dst, src, n)
#define bupc_memput_asynci(dst, src, n) upc_memput_nbi(dst, src, n)
#define bupc_memset_asynci(dst, c, n) upc_memset_nbi(dst, c, n)
#define bupc_waitsync(h) upc_sync(h)
#define bupc_trysync(h) upc_sync_attempt(h)
#define bupc_waitsynci() upc_synci()
#define bupc_trysynci() upc_synci_attempt()
static inline void bupc_waitsync_all(upc_handle_t *list, size_t n) {
  while (n > 0)
    upc_sync(list[--n]);
}
static inline int bupc_trysync_all(upc_handle_t *list, size_t n) {
  int all = 1;
  while (n > 0)
    if (list[--n] != UPC_COMPLETE_HANDLE && upc_sync_attempt(list[n]))
      list[n] = UPC_COMPLETE_HANDLE;
    else if (list[n] != UPC_COMPLETE_HANDLE)
      all = 0;
  return all;
}
/* The same in the proposal for non-blocking transfers before UPC 1.3. */
typedef upc_handle_t upc_nb_handle_t;
typedef upc_handle_t upc_memcpy_handle_t;
typedef upc_handle_t upc_memget_handle_t;
typedef upc_handle_t upc_memput_handle_t;
typedef upc_handle_t upc_memset_handle_t;
#define UPC_NB_COMPLETE_HANDLE UPC_COMPLETE_HANDLE
#define upc_memcpy_async(dst, src, n) upc_memcpy_nb(dst, src, n)
#define upc_memget_async(dst, src, n) upc_memget_nb(dst, src, n)
#define upc_memput_async(dst, src, n) upc_memput_nb(dst, src, n)
#define upc_memset_async(dst, c, n) upc_memset_nb(dst, c, n)
#define upc_waitsync(h) upc_sync(h)
#define upc_trysync(h) upc_sync_attempt(h)
#define upc_sync_nb(h) upc_sync(h)
#define upc_test_nb(h) upc_sync_attempt(h)
#endif
