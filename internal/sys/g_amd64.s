#include "textflag.h"

// func Goroutine() uintptr
TEXT ·Goroutine(SB),NOSPLIT,$0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET

// func Stack() (lo, hi uintptr)
//
// The bounds are the first two words of runtime.g. The linker relies on that, too: it
// finds the stack guard behind them.
TEXT ·Stack(SB),NOSPLIT,$0-16
	MOVQ (TLS), AX
	MOVQ 0(AX), BX
	MOVQ BX, lo+0(FP)
	MOVQ 8(AX), BX
	MOVQ BX, hi+8(FP)
	RET
