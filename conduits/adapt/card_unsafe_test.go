package adapt_test

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// together is an atomic on the word mem, as processors do it.
func together(mem []byte, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) uint64 {
	return conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(mem)), op, t, a, b)
}

// apart is one that loses what processors do to the word between its load and its
// store.
func apart(mem []byte, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if t.Size() == 4 {
		old = uint64(atomic.LoadUint32((*uint32)(p)))
	} else {
		old = atomic.LoadUint64((*uint64)(p))
	}
	runtime.Gosched()
	v, write := conduits.Combine(op, t, old, a, b)
	switch {
	case !write:
	case t.Size() == 4:
		atomic.StoreUint32((*uint32)(p), uint32(v))
	default:
		atomic.StoreUint64((*uint64)(p), v)
	}
	return old
}

// bytesOf is the low n bytes of v as they lie in memory.
func bytesOf(v uint64, n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v)), n) }

// pages is n bytes that begin a page, and are followed by others.
func pages(n uint64) []byte {
	b := make([]byte, n+2*segment.PageSize)
	off := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (segment.PageSize - 1)
	return b[off : off+uintptr(n)]
}

// view is the view that others have of the segment mem.
func view(mem []byte, rights segment.Rights) segment.View {
	return segment.NewView(unsafe.Pointer(unsafe.SliceData(mem)), uint64(len(mem)), rights)
}
