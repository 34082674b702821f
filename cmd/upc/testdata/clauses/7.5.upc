// Timers.
#include <upc_tick.h>
#include <upc.h>
#include <stdint.h>
#include "clause.h"

#if !defined(__UPC_TICK__) || __UPC_TICK__ != 1
#error __UPC_TICK__
#endif

int main(void) {
  upc_tick_t start = upc_ticks_now(), end;
  uint64_t ns;
  upc_barrier;
  end = upc_ticks_now();
  CHECK(end >= start && (upc_tick_t)-1 > 0);
  ns = upc_ticks_to_ns(end - start);
  CHECK(ns <= 3600000000000u && upc_ticks_to_ns(0) == 0);
  CHECK(UPC_TICK_MIN == 0 && UPC_TICK_MAX == (upc_tick_t)-1 && sizeof(UPC_TICK_MAX) == sizeof(upc_tick_t));
  CHECK(upc_ticks_to_ns(1000) >= upc_ticks_to_ns(10));
  return clause_done();
}
