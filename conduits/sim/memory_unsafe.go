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
// than the machine has. It lies outside the Go heap, as segments do, and is
// unmapped at the end of the job, or, if not all endpoints are closed, when the
// collector finds the job.
type memory struct {
	base    unsafe.Pointer
	size    int64
	used    uint64
	cleanup runtime.Cleanup
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
		m.base, m.size = p, int64(total)
		m.cleanup = runtime.AddCleanup(e.j, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(total)) }, p)
	}
	e.view[0] = segment.NewView(unsafe.Add(m.base, m.used), size, segment.RightsAll)
	m.used += size
	return nil
}

// unmap unmaps the segments.
func (m *memory) unmap() {
	if m.base != nil {
		m.cleanup.Stop()
		_ = sys.Unmap(m.base, m.size)
		m.base = nil
	}
}

// apply performs an atomic operation on mem.
func apply(mem []byte, m *message) uint64 {
	return conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(mem)), m.op, m.typ, m.a, m.b)
}

// address is where mem lies, if it is of e's segment.
func address(e *Endpoint, mem []byte) (a uint64, ok bool) {
	size := e.view[0].Size()
	own, _ := e.view[0].Bytes(segment.AttachBase, size, size)
	off := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))) - uintptr(unsafe.Pointer(unsafe.SliceData(own))))
	return uint64(segment.AttachBase) + off, off < size
}
