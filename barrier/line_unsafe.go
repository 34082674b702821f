package barrier

import (
	"sync/atomic"
	"unsafe"
)

// line is one cache line of a system area, seen as words. Unsafe is needed
// because system areas are bytes; they are 64-byte aligned and outlive every
// pointer into them (the endpoint keeps them mapped).
type line struct {
	w [lineBytes / 8]atomic.Uint64
}

// lineAt is the line at byte off of a system area.
func lineAt(area []byte, off int) *line {
	return (*line)(unsafe.Pointer(unsafe.SliceData(area[off : off+lineBytes])))
}

// plain is w for package spin.
func plain(w *atomic.Uint64) *uint64 { return (*uint64)(unsafe.Pointer(w)) }
