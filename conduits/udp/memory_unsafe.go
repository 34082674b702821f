package udp

import (
	"runtime"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// mapping is a rank's segment: memory outside the Go heap. It is unmapped when
// nobody holds the endpoint any more: views and slices of it may outlive Close.
type mapping struct {
	view   segment.View
	rights segment.Rights
	atu    func() *segment.ATU // nil as long as there is none
	given  bool                // view and atu are the caller's
}

func (m *mapping) attach(owner *Endpoint, size uint64, rights segment.Rights) error {
	m.rights = rights
	if m.given {
		return nil
	}
	if size == 0 {
		m.view = segment.NewView(nil, 0, segment.RightsAll)
		return nil
	}
	p, err := sys.Reserve(int64(size))
	if err != nil {
		return errs.Resource("udp: a segment: %v (-segment, ARGON_SEGMENT)", err)
	}
	runtime.AddCleanup(owner, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(size)) }, p)
	m.view = segment.NewView(p, size, segment.RightsAll)
	return nil
}

// bytes is n bytes at a of the segment.
func (m *mapping) bytes(a segment.NLA, n uint64) ([]byte, bool) {
	return m.view.Bytes(a, n, m.view.Size())
}

// apply performs an operation on a word of memory, which is aligned.
func apply(b []byte, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) uint64 {
	return conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(b)), op, t, x, y)
}

// aligned returns n zero bytes at a multiple of 64.
func aligned(n int) []byte {
	b := make([]uint64, n/8+8)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Slice((*byte)(unsafe.Add(p, -uintptr(p)&63)), n)
}
