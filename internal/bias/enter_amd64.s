//go:build !race

#include "textflag.h"
#include "go_asm.h"

// func Enter(l *Lock) bool
TEXT ·Enter(SB),NOSPLIT,$0-9
	MOVQ l+0(FP), BX
	MOVQ (TLS), AX
	CMPQ AX, Lock_owner(BX)
	JNE  no
	MOVL $1, Lock_inside(BX)
	CMPL Lock_shared(BX), $0
	JNE  revoked
	MOVB $1, ret+8(FP)
	RET
revoked:
	MOVL $0, Lock_inside(BX)
no:
	MOVB $0, ret+8(FP)
	RET

// func TryEnter(l *Lock) bool
TEXT ·TryEnter(SB),NOSPLIT,$0-9
	MOVQ l+0(FP), BX
	MOVQ (TLS), AX
	CMPQ AX, Lock_owner(BX)
	JNE  no
	CMPL Lock_inside(BX), $0
	JNE  no
	MOVL $1, Lock_inside(BX)
	CMPL Lock_shared(BX), $0
	JNE  revoked
	MOVB $1, ret+8(FP)
	RET
revoked:
	MOVL $0, Lock_inside(BX)
no:
	MOVB $0, ret+8(FP)
	RET
