package shm

import (
	"sync/atomic"
	"unsafe"
)

// segmentWord is the first word of rank's segment as e sees it.
func segmentWord(e *Endpoint, rank int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(mustBytes(e.views[rank]))))
}

// segmentPlain is segmentWord for plain stores.
func segmentPlain(e *Endpoint, rank int) *uint64 {
	return (*uint64)(unsafe.Pointer(segmentWord(e, rank)))
}
