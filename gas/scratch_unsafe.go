package gas

// What is unsafe here: a value without Go pointers is seen as an integer of its
// size, or lies in a buffer of words, which is aligned for it.

import (
	"sync"
	"unsafe"
)

// wordSize is the size of T if an access of one at w can be one of a number of 1,
// 2, 4 or 8 bytes, which needs no buffer.
func wordSize[T any](w uint64) (size uint64, ok bool) {
	var t T
	size = uint64(unsafe.Sizeof(t))
	return size, size <= 8 && size&(size-1) == 0 && w&(size-1) == 0
}

// wordOf is v, of 1, 2, 4 or 8 bytes, as a number.
func wordOf[T any](v T) uint64 {
	p := unsafe.Pointer(&v)
	switch unsafe.Sizeof(v) {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// ofWord is the inverse of wordOf.
func ofWord[T any](w uint64) (v T) {
	p := unsafe.Pointer(&v)
	switch unsafe.Sizeof(v) {
	case 1:
		*(*uint8)(p) = uint8(w)
	case 2:
		*(*uint16)(p) = uint16(w)
	case 4:
		*(*uint32)(p) = uint32(w)
	default:
		*(*uint64)(p) = w
	}
	return v
}

// buffer is where single values lie while a conduit reads or writes them, since
// that may go on after an operation has failed, when the stack has gone.
type buffer [32]uint64

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// scratch is room for one T, and what to give back when it is not used any more.
func scratch[T any]() ([]T, *buffer) {
	var t T
	if unsafe.Sizeof(t) > unsafe.Sizeof(buffer{}) {
		return make([]T, 1), nil
	}
	b := buffers.Get().(*buffer)
	return unsafe.Slice((*T)(unsafe.Pointer(b)), 1), b
}

func (b *buffer) put() {
	if b != nil {
		buffers.Put(b)
	}
}
