// Predefined macro names.
#ifndef MYTHREAD
/* MYTHREAD is a keyword, not a macro. */
#endif
#if !defined(__UPC__) || __UPC__ != 1
#error __UPC__
#endif
#if __UPC_VERSION__ != 201311L
#error __UPC_VERSION__
#endif
#if !defined(UPC_MAX_BLOCK_SIZE)
#error UPC_MAX_BLOCK_SIZE
#endif
#if defined(__UPC_DYNAMIC_THREADS__) == defined(__UPC_STATIC_THREADS__)
#error either dynamic or static
#endif
#ifdef __UPC_DYNAMIC_THREADS__
#if __UPC_DYNAMIC_THREADS__ != 1 || defined(THREADS)
#error __UPC_DYNAMIC_THREADS__
#endif
#else
#if __UPC_STATIC_THREADS__ != 1 || !defined(THREADS) || THREADS < 1
#error __UPC_STATIC_THREADS__
#endif
#endif
#include "clause.h"
int main(void) {
  CHECK(__UPC__ == 1 && __UPC_VERSION__ == 201311L);
  return clause_done();
}
