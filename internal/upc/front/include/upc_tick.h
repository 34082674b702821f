#ifndef _UPC_TICK_H
#define _UPC_TICK_H
#include <stdint.h>
typedef uint64_t upc_tick_t;
#define UPC_TICK_MAX UINT64_MAX
#define UPC_TICK_MIN UINT64_C(0)
upc_tick_t upc_ticks_now(void);
uint64_t upc_ticks_to_ns(upc_tick_t ticks);
#endif
