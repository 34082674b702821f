package udp

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// memory is a rank's own memory, as its engine and its messages to itself reach it: the
// segment, and what is registered. Attach makes it, which ends by setting attached; then
// it only changes when the job has ended (Endpoint.freeMemory).
type memory struct {
	rank     int
	seg      mapping
	views    [1]segment.View
	system   []byte
	attached atomic.Bool
}

func (m *memory) Target(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, bool) {
	if src != m.rank && (!m.attached.Load() || m.seg.rights&need != need) {
		return nil, false
	}
	return m.seg.bytes(a, n)
}

func (m *memory) Atomic(src int, at segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) (uint64, error) {
	a := conduits.Access{Verb: conduits.Atomic, Op: op, Type: t, A: x, B: y}
	if b, ok := m.Target(src, at, a.Len(), segment.RightAtomic); ok {
		a.PerformOn(b)
		return a.Value, nil
	}
	err := conduits.Reach(m.atu(), src, at, a.Len(), segment.RightAtomic, a.PerformOn)
	return a.Value, err
}

func (m *memory) Access(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, *segment.Unit, error) {
	return conduits.Admit(m.atu(), src, a, n, need)
}

// atu is nil as long as nothing can be registered.
func (m *memory) atu() *segment.ATU {
	if !m.attached.Load() {
		return nil
	}
	return m.seg.atu()
}

func (m *memory) Registrations() uint64 {
	if t := m.atu(); t != nil {
		return t.Registrations()
	}
	return 0
}

func (m *memory) Since(a segment.NLA, n, count uint64) bool { return m.atu().Since(a, n, count) }

// own has f access memory that this rank itself has registered.
func (m *memory) own(op string, a segment.NLA, n uint64, need segment.Rights, f func(b []byte)) error {
	if n == 0 {
		return nil
	}
	if err := conduits.Reach(m.atu(), m.rank, a, n, need, f); err != nil {
		return conduits.Fault("udp: "+op, m.rank, err)
	}
	return nil
}
