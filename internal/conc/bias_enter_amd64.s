//go:build !race

#include "textflag.h"
#include "go_asm.h"

// func Enter(l *Lock) bool
TEXT ·Enter(SB),NOSPLIT,$0-9
	MOVQ l+0(FP), BX
	MOVQ (TLS), AX
	MOVQ Lock_cur(BX), BX
	TESTQ BX, BX
	JZ   no
	CMPQ AX, tenure_goroutine(BX)
	JNE  no
	MOVL $1, tenure_inside(BX)
	CMPL tenure_revoked(BX), $0
	JNE  revoked
	MOVB $1, ret+8(FP)
	RET
revoked:
	MOVL $0, tenure_inside(BX)
no:
	MOVB $0, ret+8(FP)
	RET

// func TryEnter(l *Lock) bool
TEXT ·TryEnter(SB),NOSPLIT,$0-9
	MOVQ l+0(FP), BX
	MOVQ (TLS), AX
	MOVQ Lock_cur(BX), BX
	TESTQ BX, BX
	JZ   no
	CMPQ AX, tenure_goroutine(BX)
	JNE  no
	CMPL tenure_inside(BX), $0
	JNE  no
	MOVL $1, tenure_inside(BX)
	CMPL tenure_revoked(BX), $0
	JNE  revoked
	MOVB $1, ret+8(FP)
	RET
revoked:
	MOVL $0, tenure_inside(BX)
no:
	MOVB $0, ret+8(FP)
	RET
