package udp

import (
	"encoding/binary"
	"math"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// ReservePut stages a message that data goes ahead of, when it is committed.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.checkLengths(words, 0)
	put := conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: data}
	if len(data) > 0 && conduits.CheckAccess(e, "udp", &put) != nil {
		panic("udp: put to an address that was not checked")
	}
	return e.reservePut(dst, c, words, to, data, cookie)
}

// Post has the engine send what a asks for, unless it is for this rank's own memory.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return 0, nil
	}
	if err := e.Err(); err != nil {
		return 0, err
	}
	if err := conduits.CheckAccess(e, "udp", a); err != nil {
		return 0, err
	}
	if a.Rank == e.rank {
		e.owned.Accessed(a) // mu is held while datagrams are sent
		return e.postOwn(a)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.Accessed(a)
	if e.c.gone(a.Rank) {
		return 0, e.departed(a.Verb.String(), a.Rank)
	}
	var ev conduits.Event
	var err error
	to := e.number(a.Rank, int(min(a.Len(), math.MaxInt)))
	switch a.Verb {
	case conduits.Put:
		ev, err = e.eng.Put(to, a.At, a.Mem, a.Want, a.Cookie)
	case conduits.Get:
		ev, err = e.eng.Get(a.Mem, to, a.At, a.Want, a.Cookie)
	case conduits.PutWord:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], a.A)
		ev, err = e.eng.Put(to, a.At, b[:a.Size], a.Want, a.Cookie)
	case conduits.Atomic:
		err = e.eng.Atomic(to, a.At, a.Op, a.Type, a.A, a.B, a.Cookie)
	}
	e.flush()
	return ev, err
}

// postOwn makes an access to this rank's own memory.
func (e *Endpoint) postOwn(a *conduits.Access) (conduits.Event, error) {
	if b, ok := e.mem.seg.bytes(a.At, a.Len()); ok {
		a.PerformOn(b)
	} else if err := e.mem.own(a.Verb.String(), a.At, a.Len(), a.Need(), a.PerformOn); err != nil {
		return 0, err
	}
	if a.Writes() {
		e.notify()
	}
	return a.Wanted(), nil
}

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

// SegmentRights returns this rank's rights to rank's segment.
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
