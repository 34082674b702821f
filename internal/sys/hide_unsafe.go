package sys

import "unsafe"

// nowhere is nil, which the compiler does not know.
var nowhere unsafe.Pointer

// Hide is p, which the compiler takes for another pointer: what p points to need not be in the heap because of
// what is done with the result. Nothing may keep that when what p points to has ended, or its stack moves.
//
// It is made from a variable, since the compiler tells the collector of no store of a pointer that is made from
// nil (cmd/compile/internal/ssa, IsGlobalAddr): what only that refers to would be freed. norace has nothing called
// while p is a number.
//
//go:norace
//go:nosplit
//go:nocheckptr
func Hide(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(nowhere, uintptr(p)) }
