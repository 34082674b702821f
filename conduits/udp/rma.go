package udp

import (
	"encoding/binary"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// checkTarget is what the initiator of op, such as "udp: put", can know.
func (e *Endpoint) checkTarget(op string, dst int, a segment.NLA, n uint64, need segment.Rights) error {
	if err := e.Err(); err != nil {
		return err
	}
	if err := conduits.CheckRemote(e, op, dst, a, n); err != nil {
		return err
	}
	if dst == e.rank {
		return nil
	}
	if _, rights := e.c.segment(dst); rights&need != need && conduits.InSegment(e, dst, a, n) {
		return errs.BadArg("%s: rank %d attached its segment without the right to it (%v)", op, dst, need)
	}
	return nil
}

// ReservePut stages a message that data goes ahead of, when it is committed.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.checkLengths(words, 0)
	if n := uint64(len(data)); n > 0 && (conduits.CheckRemote(e, "udp", dst, to, n) != nil ||
		e.SegmentRights(dst)&segment.RightWrite == 0 && conduits.InSegment(e, dst, to, n)) {
		panic("udp: put to an address that was not checked")
	}
	return e.reservePut(dst, c, words, to, data, cookie)
}

// Put copies src to dst's segment or registered memory.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if err := e.checkTarget("udp: put", dst, to, uint64(len(src)), segment.RightWrite); err != nil {
		return 0, err
	}
	return e.put(dst, to, src, want, cookie)
}

func (e *Endpoint) put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if dst == e.rank {
		if b, ok := e.mem.seg.bytes(to, uint64(len(src))); ok {
			bulk.Copy(b, src)
		} else if err := e.mem.own("put", to, uint64(len(src)), segment.RightWrite, func(b []byte) { bulk.Copy(b, src) }); err != nil {
			return 0, err
		}
		e.notify()
		return want, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(dst) {
		return 0, e.departed("put", dst)
	}
	ev, err := e.eng.Put(dst, to, src, want, cookie)
	e.flush()
	return ev, err
}

// Get copies from src's segment or registered memory.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.gets.Add(1)
	if err := e.checkTarget("udp: get", src, from, uint64(len(dst)), segment.RightRead); err != nil {
		return 0, err
	}
	if src == e.rank {
		if b, ok := e.mem.seg.bytes(from, uint64(len(dst))); ok {
			bulk.Copy(dst, b)
		} else if err := e.mem.own("get", from, uint64(len(dst)), segment.RightRead, func(b []byte) { bulk.Copy(dst, b) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(src) {
		return 0, e.departed("get", src)
	}
	ev, err := e.eng.Get(dst, src, from, want, cookie)
	e.flush()
	return ev, err
}

// PutWord puts a word.
func (e *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(to)%uint64(n) != 0 {
		return 0, errs.BadArg("udp: put of a word: %d bytes at %v: 1, 2, 4 or 8, aligned", n, to)
	}
	if err := e.checkTarget("udp: put of a word", dst, to, uint64(n), segment.RightWrite); err != nil {
		return 0, err
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return e.put(dst, to, b[:n], want, cookie)
}

// Atomic performs an operation on dst's segment or registered memory.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	e.atomics.Add(1)
	if err := conduits.CheckAtomic("udp: atomic", op, t, to); err != nil {
		return 0, 0, err
	}
	if err := e.checkTarget("udp: atomic", dst, to, uint64(t.Size()), segment.RightAtomic); err != nil {
		return 0, 0, err
	}
	if dst == e.rank {
		old, err := e.mem.Atomic(e.rank, to, op, t, a, b)
		if err != nil {
			return 0, 0, conduits.Fault("udp: atomic", e.rank, err)
		}
		e.notify()
		return old, conduits.RemoteDone, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(dst) {
		return 0, 0, e.departed("atomic", dst)
	}
	err := e.eng.Atomic(dst, to, op, t, a, b, cookie)
	e.flush()
	return 0, 0, err
}

// Fence does nothing: there is no direct access.
func (e *Endpoint) Fence() {}

// Wake makes rank's parked goroutines look again; ranks of a job in one process
// are reached without a datagram.
func (e *Endpoint) Wake(rank int) {
	if rank != e.rank {
		e.wakes.Add(1)
	}
	e.c.wake(rank)
}

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if uint(rank) >= uint(e.size) || !e.c.open() {
		return 0
	}
	size, _ := e.c.segment(rank)
	return size
}

// SegmentRights is what this rank may do to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	switch {
	case uint(rank) >= uint(e.size) || !e.c.open():
		return 0
	case rank == e.rank:
		return segment.RightsAll
	}
	_, rights := e.c.segment(rank)
	return rights
}

// Post begins an access.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) { return conduits.PostBy(e, a) }
