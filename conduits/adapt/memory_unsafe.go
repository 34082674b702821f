package adapt

import (
	"runtime"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// segment makes a segment of size bytes where the Transport wants it.
func (e *Endpoint) segment(size uint64) (segment.View, error) {
	if e.direct == nil {
		return reserve(e, size)
	}
	mem, err := e.direct.Segment(size)
	if err != nil {
		return segment.View{}, err
	}
	return segment.NewView(unsafe.Pointer(unsafe.SliceData(mem)), size, segment.RightsAll), nil
}

// reserve makes a segment of size bytes outside the Go heap, which no memory stands
// behind before it is touched. It is unmapped when the collector finds e.
func reserve(e *Endpoint, size uint64) (segment.View, error) {
	if size == 0 {
		return segment.NewView(nil, 0, segment.RightsAll), nil
	}
	p, err := sys.Reserve(int64(size))
	if err != nil {
		return segment.View{}, errs.Resource("%s: a segment: %v (-segment, ARGON_SEGMENT)", e.name, err)
	}
	runtime.AddCleanup(e, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(size)) }, p)
	return segment.NewView(p, size, segment.RightsAll), nil
}
