package contract

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// aligned reports whether b begins at a multiple of n.
func aligned(b []byte, n uintptr) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%n == 0
}

// same reports whether a and b begin at the same byte.
func same(a, b []byte) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }

// memory is n bytes at a of rank's segment as ep reaches them by load and
// store, or nil. It does not look at rights.
func memory(ep conduits.Endpoint, rank int, a segment.NLA, n int) []byte {
	first, views := ep.Views()
	if i := rank - first; i >= 0 && i < len(views) && views[i].Base != nil {
		b, _ := views[i].Bytes(a, uint64(n), views[i].Size())
		return b
	}
	return nil
}

// word is the aligned word at a of rank's segment, as memory.
func word(ep conduits.Endpoint, rank int, a segment.NLA) *uint64 {
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(memory(ep, rank, a, 8))))
}

// applyAtomic is conduits.ApplyAtomic on a word of the test's own.
func applyAtomic(w [8]byte, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, now [8]byte) {
	var v uint64
	*(*[8]byte)(unsafe.Pointer(&v)) = w
	old = conduits.ApplyAtomic(unsafe.Pointer(&v), op, t, a, b)
	return old, *(*[8]byte)(unsafe.Pointer(&v))
}
