package gas

// What is unsafe here: the first word of a function value's object is the address of
// its code. It is read and used as a number for the symbol table, nothing else.

import (
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/origin"
)

// condition describes a wait for a function of the program to say yes: where the
// function is. It is of the size of a pointer, so that a wait that is over at once
// costs no allocation for it, and keeps nothing of the function but its code.
type condition struct{ code unsafe.Pointer }

// conditionOf is the description of cond. The function must not escape by it: then
// what it captures would be allocated.
//
//go:nosplit
//go:nocheckptr
func conditionOf(cond func() bool) condition {
	f := sys.Hide(*(*unsafe.Pointer)(unsafe.Pointer(&cond)))
	if f == nil {
		return condition{}
	}
	return condition{*(*unsafe.Pointer)(f)}
}

// Blocked says where the condition is.
func (c condition) Blocked() string {
	return "a condition of the program (" + origin.Func(uintptr(c.code)) + ")"
}
