package chaos

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// slot is a reserved message.
type slot struct {
	used  bool
	inner conduits.Slot
	late  bool // nothing is reserved below yet: long, to be put and sent later
	op    operation
}

// claim finds a slot. mu is held.
func (e *endpoint) claim() int {
	var i int
	if n := len(e.freeSlots); n > 0 {
		i, e.freeSlots = e.freeSlots[n-1], e.freeSlots[:n-1]
	} else {
		i = len(e.slots)
		e.slots = append(e.slots, slot{})
	}
	e.slots[i].used = true
	return i
}

// reserved hands a slot of the conduit below on under a name of this one's.
func (e *endpoint) reserved(s conduits.Slot) conduits.Slot {
	e.mu.Lock()
	i := e.claim()
	e.slots[i].inner = s
	e.mu.Unlock()
	s.Ref = uint64(i)
	return s
}

// release takes a slot back for Commit or Cancel.
func (e *endpoint) release(s conduits.Slot) slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Ref >= uint64(len(e.slots)) || !e.slots[s.Ref].used {
		panic("chaos: commit or cancel of a message that is not reserved, or for the second time")
	}
	i := int(s.Ref)
	v := e.slots[i]
	e.slots[i] = slot{}
	e.freeSlots = append(e.freeSlots, i)
	return v
}

// lie reports whether to answer NoCredit whatever there is.
func (e *endpoint) lie(p float64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lied < e.cfg.Streak && e.chance(p) {
		e.lied++
		e.lies++
		return true
	}
	return false
}

// denied is the beginning of every send: it answers NoCredit now and then, with
// or without having reserved and cancelled.
func (e *endpoint) denied(dst int, c conduits.Class, words, payload int) (conduits.Status, bool) {
	if !e.op() {
		return conduits.Dead, true
	}
	if e.lie(e.cfg.NoCredit) {
		e.did.noCredit.Add(1)
		return conduits.NoCredit, true
	}
	if e.lie(e.cfg.Cancel) {
		s, st := e.Endpoint.Reserve(dst, c, words, payload)
		if st == conduits.Ready {
			e.Endpoint.Cancel(dst, c, s)
			e.did.cancelled.Add(1)
			st = conduits.NoCredit
		}
		return st, true
	}
	e.mu.Lock()
	e.lied = 0
	e.mu.Unlock()
	return 0, false
}

// Send sends a short message.
func (e *endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	if st, no := e.denied(dst, c, len(words), 0); no {
		return st
	}
	if e.roll(e.cfg.Split, &e.did.split) {
		return e.inParts(dst, c, tag, words, nil)
	}
	return e.Endpoint.Send(dst, c, tag, words)
}

// SendPayload sends a medium message.
func (e *endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return e.sendApart(dst, c, tag, words, payload, to)
	}
	if st, no := e.denied(dst, c, len(words), len(payload)); no {
		return st
	}
	if e.roll(e.cfg.Split, &e.did.split) {
		return e.inParts(dst, c, tag, words, payload)
	}
	return e.Endpoint.SendPayload(dst, c, tag, words, payload, 0)
}

// sendApart sends half of the long messages that may go by one call like that, by their
// addresses and lengths. What is not sent here may be deferred by ReservePut.
func (e *endpoint) sendApart(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	put := conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: payload}
	if (uint64(to)/8+uint64(len(payload)))%2 != 0 || !e.allowed(&put) {
		return conduits.Apart
	}
	if st, no := e.denied(dst, c, len(words), 0); no {
		return st
	}
	return e.Endpoint.SendPayload(dst, c, tag, words, payload, to)
}

func (e *endpoint) inParts(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	s, st := e.Endpoint.Reserve(dst, c, len(words), len(payload))
	if st == conduits.Ready {
		copy(s.Words, words)
		copy(s.Payload, payload)
		e.Endpoint.Commit(dst, c, s, tag, len(payload))
	}
	return st
}

// Reserve asks for room, which holds garbage.
func (e *endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	if st, no := e.denied(dst, c, words, payload); no {
		return conduits.Slot{}, st
	}
	s, st := e.Endpoint.Reserve(dst, c, words, payload)
	if st != conduits.Ready {
		return s, st
	}
	for i := range s.Words {
		s.Words[i] = poisonWord
	}
	for i := range s.Payload {
		s.Payload[i] = poison
	}
	return e.reserved(s), st
}

// ReservePut puts and asks for room, or leaves both for later; or it tells late
// that the source may be reused.
func (e *endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	// A put that was cancelled may have been made nevertheless, but one without
	// credit may not; so none is cancelled here.
	if !e.op() {
		return conduits.Slot{}, 0, conduits.Dead
	}
	if e.lie(e.cfg.NoCredit) {
		e.did.noCredit.Add(1)
		return conduits.Slot{}, 0, conduits.NoCredit
	}
	e.mu.Lock()
	e.lied = 0
	e.mu.Unlock()
	put := conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: data, Want: conduits.RemoteDone, Cookie: cookie}
	if c == conduits.Request && e.allowed(&put) && e.mayDefer() {
		e.mu.Lock()
		i := e.claim()
		s := &e.slots[i]
		s.late = true
		s.op = operation{Access: put, long: true, words: make([]uint32, words)}
		r := conduits.Slot{Words: s.op.words, Ref: uint64(i)}
		e.mu.Unlock()
		return r, 0, conduits.Ready
	}
	s, ev, st := e.Endpoint.ReservePut(dst, c, words, to, data, cookie)
	if st != conduits.Ready {
		return s, ev, st
	}
	for i := range s.Words {
		s.Words[i] = poisonWord
	}
	if ev&conduits.SourceDone != 0 && e.late() {
		e.mu.Lock()
		e.later(completion{cookie: cookie, ev: conduits.SourceDone})
		e.mu.Unlock()
		ev &^= conduits.SourceDone
	}
	return e.reserved(s), ev, st
}

// Commit sends a reserved message, unless the rank dies before.
func (e *endpoint) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	alive := e.op()
	v := e.release(s)
	switch {
	case v.late && alive:
		e.mu.Lock()
		v.op.tag, v.op.payload, v.op.left = tag, payload, e.while()
		e.deferred = append(e.deferred, v.op)
		e.long++
		e.mu.Unlock()
		e.did.deferred.Add(1)
		e.Wake(e.rank) // siblings may be asleep that would perform it
	case v.late:
	case alive:
		e.Endpoint.Commit(dst, c, v.inner, tag, payload)
	default:
		e.Endpoint.Cancel(dst, c, v.inner)
	}
}

// Cancel gives the room back.
func (e *endpoint) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	v := e.release(s)
	if !v.late {
		e.Endpoint.Cancel(dst, c, v.inner)
		return
	}
	e.mu.Lock()
	e.later(completion{cookie: v.op.Cookie, ev: conduits.SourceDone})
	e.mu.Unlock()
	e.Wake(e.rank)
}

// sendLong performs a deferred long request; false if there is no credit.
func (e *endpoint) sendLong(o *operation) bool {
	s, ev, st := e.Endpoint.ReservePut(o.Rank, conduits.Request, len(o.words), o.At, o.Mem, o.Cookie)
	switch st {
	case conduits.NoCredit:
		return false
	case conduits.Dead:
		err := e.Err()
		if err == nil {
			err = &conduits.PeerError{Rank: o.Rank, Op: "long request", Err: errs.Closed("it has left the job")}
		}
		e.mu.Lock()
		e.long--
		e.lost++
		e.done = append(e.done, completion{cookie: o.Cookie, ev: conduits.SourceDone, err: err})
		e.mu.Unlock()
		return true
	}
	copy(s.Words, o.words)
	e.Endpoint.Commit(o.Rank, conduits.Request, s, o.tag, o.payload)
	e.mu.Lock()
	e.long--
	if ev&conduits.SourceDone != 0 {
		e.done = append(e.done, completion{cookie: o.Cookie, ev: conduits.SourceDone})
	}
	e.mu.Unlock()
	return true
}
