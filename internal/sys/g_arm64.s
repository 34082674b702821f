#include "textflag.h"

// func Goroutine() uintptr
TEXT ·Goroutine(SB),NOSPLIT,$0-8
	MOVD g, R0
	MOVD R0, ret+0(FP)
	RET

// func Stack() (lo, hi uintptr)
//
// The bounds are the first two words of runtime.g. The linker relies on that, too: it
// finds the stack guard behind them.
TEXT ·Stack(SB),NOSPLIT,$0-16
	MOVD 0(g), R0
	MOVD R0, lo+0(FP)
	MOVD 8(g), R0
	MOVD R0, hi+8(FP)
	RET
