package conduits

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// OwnMemory is what a conduit embeds in its endpoints for ATU, MapMemory and
// UnmapMemory, if all accesses to a rank's memory are made by the process that
// the rank is in. The zero value refuses everything until Ready.
type OwnMemory struct {
	mu     sync.Mutex
	config func() segment.ATUConfig
	closed bool
	atu    atomic.Pointer[segment.ATU]
	mapped map[unsafe.Pointer]uint64 // bytes of what MapMemory has returned
}

// Ready has the ATU made with what config returns when it is first asked for. To
// be called in Attach.
func (o *OwnMemory) Ready(config func() segment.ATUConfig) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.config = config
}

// ATU makes the ATU unless it is there; see Endpoint.
func (o *OwnMemory) ATU() (*segment.ATU, error) {
	if t := o.atu.Load(); t != nil {
		return t, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil, errs.Closed("conduits: the endpoint is closed, and has no address translation unit")
	case o.config == nil:
		return nil, errs.NotReady("conduits: no address translation unit before Attach")
	case o.atu.Load() != nil:
		return o.atu.Load(), nil
	}
	t, err := segment.NewATU(o.config())
	if err != nil {
		return nil, err
	}
	o.atu.Store(t)
	return t, nil
}

// MadeATU is the ATU if it has been made, else nil: then nothing is registered.
func (o *OwnMemory) MadeATU() *segment.ATU { return o.atu.Load() }

// CloseATU closes the ATU if there is one, and has none made any more.
func (o *OwnMemory) CloseATU() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if t := o.atu.Load(); t != nil {
		return t.Close()
	}
	return nil
}

// MapMemory reserves private memory; see Endpoint.
func (o *OwnMemory) MapMemory(n uint64) ([]byte, error) {
	size, err := CheckMap(n)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	p, err := sys.Reserve(int64(size))
	if err != nil {
		return nil, errs.Resource("conduits: %d bytes of memory: %v", n, err)
	}
	if o.mapped == nil {
		o.mapped = map[unsafe.Pointer]uint64{}
	}
	o.mapped[p] = size
	return unsafe.Slice((*byte)(p), size), nil
}

// UnmapMemory is the end of MapMemory.
func (o *OwnMemory) UnmapMemory(mem []byte) error {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	o.mu.Lock()
	size, ok := o.mapped[p]
	if ok = ok && size == uint64(len(mem)); ok {
		delete(o.mapped, p)
	}
	o.mu.Unlock()
	if !ok {
		return errs.BadArg("conduits: %d bytes at %p are not what MapMemory has returned", len(mem), p)
	}
	var err error
	if t := o.atu.Load(); t != nil {
		err = t.Unmap(mem)
	} else {
		err = sys.Unmap(p, int64(size))
	}
	if err != nil { // it may be tried again
		o.mu.Lock()
		o.mapped[p] = size
		o.mu.Unlock()
	}
	return err
}

// NewSystem makes a system area for a rank whose peers do not reach it directly; see
// Endpoint.System.
func NewSystem() []byte {
	const line = 64
	b := make([]uint64, (SystemBytes+line)/8)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Slice((*byte)(unsafe.Add(p, -uintptr(p)&(line-1))), SystemBytes)
}

// CheckMap rounds the argument of MapMemory up to whole pages.
func CheckMap(n uint64) (uint64, error) {
	if n == 0 || n > uint64(segment.NLALimit) {
		return 0, errs.BadArg("conduits: map %d bytes: 1 to %d", n, uint64(segment.NLALimit))
	}
	return (n + segment.PageSize - 1) &^ (segment.PageSize - 1), nil
}

// Admit is the target's part of an access by rank src to n bytes, not 0, at an
// address outside the attach segment. t may be nil: then nothing is registered.
// If err is nil, u.Exit must be called when b is not used any more; see
// segment.ATU.Enter. Else it is a *segment.FaultError.
func Admit(t *segment.ATU, src int, a segment.NLA, n uint64, need segment.Rights) (b []byte, u *segment.Unit, err error) {
	if t == nil {
		return nil, nil, &segment.FaultError{Addr: a, Len: n, Need: need, VPID: uint16(min(src, segment.AnyVPID)), Page: a &^ (segment.PageSize - 1)}
	}
	u = t.Enter()
	if b, err = u.Translate(src, a, n, need); err != nil {
		u.Exit()
		return nil, nil, err
	}
	return b, u, nil
}

// Admit is Admit with the endpoint's own unit.
func (o *OwnMemory) Admit(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, *segment.Unit, error) {
	return Admit(o.atu.Load(), src, a, n, need)
}

// Reach has f access what Admit admits; the memory may have been unmapped before it was
// deregistered.
func Reach(t *segment.ATU, src int, a segment.NLA, n uint64, need segment.Rights, f func(b []byte)) error {
	b, u, err := Admit(t, src, a, n, need)
	if err != nil {
		return err
	}
	if !segment.Touch(b, func() { f(b) }) {
		err = segment.Gone(src, a, n, need)
	}
	u.Exit()
	return err
}

// Landed is the registered memory that the data of a long message from src lies in, n bytes,
// not 0, that were put when there had been count registrations; nil if it has been withdrawn,
// and its addresses perhaps given out again.
func Landed(t *segment.ATU, src int, a segment.NLA, n, count uint64) []byte {
	b, u, err := Admit(t, src, a, n, segment.RightWrite)
	if err != nil {
		return nil
	}
	u.Exit()
	if t.Since(a, n, count) {
		return nil
	}
	return b
}
