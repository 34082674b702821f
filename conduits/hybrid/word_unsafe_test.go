package hybrid_test

import (
	"sync/atomic"
	"unsafe"
)

// load is the word at the beginning of b, as it is now.
func load(b []byte) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))))
}

// store writes it.
func store(b []byte, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), v)
}
