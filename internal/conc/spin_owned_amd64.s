//go:build !race

#include "textflag.h"

// func ChangedOwned(p *uint64, old uint64, n int) uint64
//
// PREFETCHW as in Nonzero: two processors that write one line in turn then pass
// it on with one transfer where plain loads take two.
TEXT ·ChangedOwned(SB),NOSPLIT,$0-32
	MOVQ p+0(FP), BX
	MOVQ old+8(FP), DX
	MOVQ n+16(FP), CX
loop:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x0B // PREFETCHW (BX)
	MOVQ (BX), AX
	CMPQ AX, DX
	JNE done
	PAUSE
	DECQ CX
	JNZ loop
done:
	MOVQ AX, ret+24(FP)
	RET
