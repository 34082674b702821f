package udp

import (
	"runtime"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// mapping is a rank's segment: memory outside the Go heap. In a job whose ranks are
// all in this process it is unmapped at the end of the job, see board.unmapAll; else, or if
// the job fails or not all endpoints are closed, when the collector finds the endpoint.
type mapping struct {
	view    segment.View
	rights  segment.Rights
	atu     func() *segment.ATU // nil as long as there is none
	given   bool                // view and atu are the caller's
	cleanup runtime.Cleanup
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
	m.cleanup = runtime.AddCleanup(owner, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(size)) }, p)
	m.view = segment.NewView(p, size, segment.RightsAll)
	return nil
}

// unmap unmaps the segment, which no operation accesses any more.
func (m *mapping) unmap() {
	v := m.view
	m.view = segment.View{}
	if v.Size() == 0 || m.given {
		return
	}
	m.cleanup.Stop()
	_ = sys.Unmap(v.Base, int64(v.Size()))
}

// bytes is n bytes at a of the segment.
func (m *mapping) bytes(a segment.NLA, n uint64) ([]byte, bool) {
	return m.view.Bytes(a, n, m.view.Size())
}
