#ifndef _UPC_TICK_H
#define _UPC_TICK_H
typedef unsigned long upc_tick_t;
upc_tick_t upc_ticks_now(void);
unsigned long upc_ticks_to_ns(upc_tick_t ticks);
#endif
