package gas

// What is unsafe here: Sizeof only.

import (
	"fmt"
	"unsafe"

	"github.com/argon-go/argon/segment"
)

// Layout is how a UPC shared array lies on the ranks: what the type "shared
// [Block] T" and the constant THREADS say in UPC 1.3.
type Layout = segment.Layout

// SharedPtr is a UPC pointer-to-shared (UPC 1.3, section 6.4.2): a thread, which
// is a rank, the phase inside a block, and an address. It walks the elements of
// a block-cyclic array in order, from rank to rank, where Ptr stays on its rank.
// The layout, part of the type in UPC, is an argument of the operations here; a
// compiler passes constants.
//
// The zero SharedPtr is the null pointer-to-shared. Operator == compares the
// phase too; UPC's == does not, see Equal.
type SharedPtr[T any] struct {
	_      [0]*T
	Thread int         // upc_threadof
	Phase  int         // upc_phaseof: 0 to Block-1, and 0 if Block is 0
	Addr   segment.NLA // upc_addrfield: the address in the thread's segment
}

// Ptr is the plain pointer to the same element; nil for null. A thread or an address out
// of range gives a Ptr whose use is an error, see [Ptr.On] and [Ptr.Add].
func (s SharedPtr[T]) Ptr() Ptr[T] {
	if uint(s.Thread) < maxRanks && s.Addr <= nowhere {
		return Ptr[T]{w: makeWord(s.Thread, s.Addr)} // of null it is nil
	}
	return Ptr[T]{w: min(uint64(s.Addr), nowhere)}.On(s.Thread)
}

// SharedPtrOf is the pointer-to-shared with phase 0 to the same element, as a
// UPC cast to a different block size gives.
func SharedPtrOf[T any](p Ptr[T]) SharedPtr[T] {
	if p.IsNil() {
		return SharedPtr[T]{}
	}
	return SharedPtr[T]{Thread: p.Rank(), Addr: p.NLA()}
}

// IsNil reports whether s is the null pointer-to-shared.
func (s SharedPtr[T]) IsNil() bool { return s.Thread == 0 && s.Addr == 0 }

// ResetPhase is s with phase 0 (upc_resetphase).
func (s SharedPtr[T]) ResetPhase() SharedPtr[T] {
	s.Phase = 0
	return s
}

// Add is UPC's s + i: the element i further in array order, where i may be
// negative. With div rounding down and mod nonnegative,
//
//	phase'  = (phase + i) mod Block
//	thread' = (thread + (phase + i) div Block) mod Threads
//
// and the address follows from the correspondence of shared and local
// arithmetic. With Block 0 only the address moves, and the phase is 0.
func (s SharedPtr[T]) Add(l Layout, i int) SharedPtr[T] {
	r := s.untyped().Add(l, i, elemBytes[T]())
	return SharedPtr[T]{Thread: r.Thread, Phase: r.Phase, Addr: r.Addr}
}

func (s SharedPtr[T]) untyped() segment.Shared {
	return segment.Shared{Thread: s.Thread, Phase: s.Phase, Addr: s.Addr}
}

func elemBytes[T any]() int {
	var t T
	return int(unsafe.Sizeof(t))
}

// Sub is UPC's s - r: the x for which r + x is s with the same phase. It is
// false if there is none, where UPC leaves the result undefined.
func (s SharedPtr[T]) Sub(l Layout, r SharedPtr[T]) (x int, ok bool) {
	return s.untyped().Sub(l, r.untyped(), elemBytes[T]())
}

// Equal is UPC's ==: the same thread and address, whatever the phases.
func (s SharedPtr[T]) Equal(r SharedPtr[T]) bool { return s.Thread == r.Thread && s.Addr == r.Addr }

// Compare is UPC's <, == and >: the sign of s - r. It is false where s - r is
// undefined.
func (s SharedPtr[T]) Compare(l Layout, r SharedPtr[T]) (sign int, ok bool) {
	x, ok := s.Sub(l, r)
	switch {
	case !ok:
		return 0, false
	case x < 0:
		return -1, true
	case x > 0:
		return 1, true
	}
	return 0, true
}

// String prints thread, phase and address.
func (s SharedPtr[T]) String() string {
	if s.IsNil() {
		return "nil"
	}
	return fmt.Sprintf("%d:%d+%#x", s.Thread, s.Phase, offset(s.Addr))
}
