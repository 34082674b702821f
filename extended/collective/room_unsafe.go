package collective

// What is unsafe here: words are viewed as bytes, which are aligned for every type
// that a Combine may view them as.

import "unsafe"

// words returns n bytes of *buf, which is made longer if need be.
func words(buf *[]uint64, n int) []byte {
	if k := (n + 7) / 8; k > len(*buf) {
		*buf = make([]uint64, k)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(*buf))), 8*len(*buf))[:n]
}
