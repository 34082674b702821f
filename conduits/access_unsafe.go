package conduits

import (
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
)

// Perform makes a in the memory at p, which is where the bytes of a are: Len of them,
// accessible, and aligned as a's address is. 8 aligned bytes are put and got by one load and
// one store, and what lies where it is to be put, such as the data of a long message that has
// been filled in in place, stays.
func (a *Access) Perform(p unsafe.Pointer) {
	switch a.Verb {
	case Put:
		carry(p, unsafe.Pointer(unsafe.SliceData(a.Mem)), uint64(a.At), len(a.Mem))
	case Get:
		carry(unsafe.Pointer(unsafe.SliceData(a.Mem)), p, uint64(a.At), len(a.Mem))
	case PutWord:
		storeWord(p, a.A, a.Size)
	case GetWord:
		a.Value = loadWord(p, a.Size)
	case Atomic:
		a.Value = ApplyAtomic(p, a.Op, a.Type, a.A, a.B)
	}
}

// PerformOn is Perform in mem.
func (a *Access) PerformOn(mem []byte) { a.Perform(unsafe.Pointer(unsafe.SliceData(mem))) }

// storeWord stores the low n bytes of w at p, which is aligned to n.
func storeWord(p unsafe.Pointer, w uint64, n uint8) {
	switch n {
	case 1:
		*(*uint8)(p) = uint8(w)
	case 2:
		*(*uint16)(p) = uint16(w)
	case 4:
		*(*uint32)(p) = uint32(w)
	case 8:
		*(*uint64)(p) = w
	}
}

// loadWord loads n bytes from p, which is aligned to n.
func loadWord(p unsafe.Pointer, n uint8) uint64 {
	switch n {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// carry copies n bytes, of which one end is at an address of a rank.
func carry(to, from unsafe.Pointer, at uint64, n int) {
	if n == 8 && at%8 == 0 {
		*(*uint64)(to) = *(*uint64)(from)
	} else if to != from {
		bulk.Copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}
