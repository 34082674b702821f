package sim

import (
	"runtime"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// memory is the segments of all ranks: one reservation of addresses that no
// memory stands behind until it is touched, so that ranks may attach far more
// than the machine has. It lies outside the Go heap, as segments do.
type memory struct {
	base unsafe.Pointer
	used uint64
}

// attach gives e its segment.
func (m *memory) attach(e *Endpoint, size uint64) error {
	if size == 0 {
		e.view[0] = segment.NewView(nil, 0, segment.RightsAll)
		return nil
	}
	if m.base == nil {
		total := e.j.c.MaxSegment * uint64(e.j.n)
		p, err := sys.Reserve(int64(total))
		if err != nil {
			return errs.Resource("sim: addresses for %d segments of up to %d bytes: %v (-segment, ARGON_SEGMENT)", e.j.n, e.j.c.MaxSegment, err)
		}
		m.base = p
		// Somebody may hold a slice of it as long as he holds an endpoint.
		runtime.AddCleanup(e.j, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(total)) }, p)
	}
	e.view[0] = segment.NewView(unsafe.Add(m.base, m.used), size, segment.RightsAll)
	m.used += size
	return nil
}

// aligned returns n zero bytes at a multiple of 64.
func aligned(n int) []byte {
	b := make([]uint64, n/8+8)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Slice((*byte)(unsafe.Add(p, -uintptr(p)&63)), n)
}

// apply performs an atomic operation on mem.
func apply(mem []byte, m *message) uint64 {
	return conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(mem)), m.op, m.typ, m.a, m.b)
}
