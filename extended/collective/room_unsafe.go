package collective

// What is unsafe here: words are viewed as bytes, which are aligned for every type
// that a Combine may view them as; and system areas, which are bytes, as words: they are
// aligned to 64 bytes and outlive every pointer into them (the endpoint keeps them mapped).

import (
	"sync/atomic"
	"unsafe"
)

// words returns n bytes of *buf, which is made longer if need be.
func words(buf *[]uint64, n int) []byte {
	if k := (n + 7) / 8; k > len(*buf) {
		*buf = make([]uint64, k)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(*buf))), 8*len(*buf))[:n]
}

// atWord reports whether b begins at a multiple of 8 bytes.
func atWord(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0 }

// lineAt is the line at byte off of a system area.
func lineAt(area []byte, off int) *[slotWords]atomic.Uint64 {
	return (*[slotWords]atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(area[off : off+lineBytes])))
}

// plain is w for packages release and spin.
func plain(w *atomic.Uint64) *uint64 { return (*uint64)(unsafe.Pointer(w)) }
