// Words of exposed memory. Unsafe is that slices are read and written as words: each
// such word lies in a slice of at least its length, and holds no pointers; amd64 and
// arm64 load and store unaligned words.

package firehose

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
)

// copyWords is copy that moves aligned 1, 2, 4 or 8 bytes as a whole. dst is at
// least as long as src.
func copyWords(dst, src []byte) {
	p, q := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	switch len(dst) {
	case 8:
		*(*uint64)(p) = *(*uint64)(q)
	case 4:
		*(*uint32)(p) = *(*uint32)(q)
	case 2:
		*(*uint16)(p) = *(*uint16)(q)
	default:
		bulk.Copy(dst, src)
	}
}

// storeWord writes the low bytes of v, as a whole if they are 1, 2, 4 or 8 and
// aligned.
func storeWord(dst []byte, v uint64) {
	copyWords(dst, unsafe.Slice((*byte)(unsafe.Pointer(&v)), len(dst)))
}

// loadWord is the inverse of storeWord.
func loadWord(src []byte) (v uint64) {
	copyWords(unsafe.Slice((*byte)(unsafe.Pointer(&v)), len(src)), src)
	return v
}

// applyWord performs op on the beginning of mem, if that is aligned. op exists
// for t.
func applyWord(mem []byte, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, ok bool) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%uintptr(t.Size()) != 0 {
		return 0, false
	}
	return conduits.ApplyAtomic(p, op, t, a, b), true
}
