package udp

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// mailbox is the messages of a rank: those that are reserved and not sent yet, those to
// itself, and the handing of what has arrived to the receiver, by one goroutine at a
// time, the poller. Messages to other ranks that have been committed, and those from them,
// are the engine's. driver.mu guards what is declared after poller.
type mailbox struct {
	d        *driver
	mem      *memory // of messages to itself that data goes ahead of
	limits   conduits.Limits
	nets     *networks         // nil if there is one
	receiver conduits.Receiver // set by Attach

	poller atomic.Uintptr // the goroutine that polls, or 0

	stages []*stage
	free   []uint32
	tally  conduits.Tally
	loop   loopback
}

// stage is a message that is reserved.
type stage struct {
	words   [conduits.MaxWords]uint32
	nwords  int
	long    bool
	payload []byte
	data    []byte
	to      segment.NLA
	cookie  uint64
	number  int  // the peer it is for
	early   bool // SourceDone has been reported: data is a copy
	lent    bool // the engine's
}

func (box *mailbox) checkLengths(words, payload int) {
	if uint(words) > conduits.MaxWords || uint(payload) > uint(box.limits.MaxMedium) {
		panic(fmt.Sprintf("udp: message of %d words and %d bytes; limits %d and %d", words, payload, conduits.MaxWords, box.limits.MaxMedium))
	}
}

// stage finds a place for a message, with mu held.
func (box *mailbox) stage(words int) (uint32, *stage) {
	n := len(box.free)
	if n == 0 {
		box.stages = append(box.stages, new(stage))
		box.free = append(box.free, uint32(len(box.stages)-1))
		n = 1
	}
	id := box.free[n-1]
	box.free = box.free[:n-1]
	s := box.stages[id]
	s.nwords = words
	return id, s
}

func (box *mailbox) unstage(id uint32) {
	s := box.stages[id]
	s.long, s.early, s.lent, s.data = false, false, false, nil
	box.free = append(box.free, id)
}

// number is the peer that n bytes go to rank dst by.
func (box *mailbox) number(dst, n int) int {
	if box.nets == nil {
		return dst
	}
	return box.nets.number(dst, n)
}

// room takes a credit of peer number, which is rank dst, with mu held.
func (box *mailbox) room(dst, number int, c conduits.Class) conduits.Status {
	if box.d.life.over() != nil {
		return conduits.Dead
	}
	if box.d.life.c.gone(dst) {
		box.d.hearLocked() // if it left because it failed, then that comes first
		return conduits.Dead
	}
	if dst == box.d.life.rank {
		return box.reserveSelf(c)
	}
	st := box.d.eng.Reserve(number, c)
	if st == conduits.NoCredit {
		box.tally.Refused(dst)
		box.d.flush()
	}
	return st
}

// Send sends a short message.
func (box *mailbox) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	return box.SendPayload(dst, c, tag, words, nil, 0)
}

// SendPayload sends a medium message, or a short one.
func (box *mailbox) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return conduits.Apart
	}
	box.checkLengths(len(words), len(payload))
	box.d.mu.Lock()
	if dst == box.d.life.rank {
		st := box.room(dst, dst, c)
		if st == conduits.Ready {
			box.tally.Sent(dst, c, len(payload))
			box.sendSelf(c, tag, words, payload)
		}
		box.d.mu.Unlock()
		if st == conduits.Ready {
			box.d.w.notify()
		}
		return st
	}
	number := box.number(dst, len(payload))
	st := box.room(dst, number, c)
	if st == conduits.Ready {
		now := box.d.l.Now()
		box.tally.Sent(dst, c, len(payload))
		box.d.eng.Time(now)
		box.d.eng.Send(number, c, tag, words, payload)
		box.d.flushAt(now)
	}
	box.d.mu.Unlock()
	return st
}

// Reserve stages a message.
func (box *mailbox) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	box.checkLengths(words, payload)
	box.d.mu.Lock()
	defer box.d.mu.Unlock()
	number := box.number(dst, payload)
	if st := box.room(dst, number, c); st != conduits.Ready {
		return conduits.Slot{}, st
	}
	id, s := box.stage(words)
	s.number = number
	slot := conduits.Slot{Words: s.words[:words:words], Ref: uint64(id)}
	if payload > 0 {
		if s.payload == nil {
			s.payload = make([]byte, box.limits.MaxMedium)
		}
		slot.Payload = s.payload[:payload:payload]
	}
	return slot, conduits.Ready
}

// reservePut is ReservePut to an address that has been checked.
func (box *mailbox) reservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	box.d.mu.Lock()
	defer box.d.mu.Unlock()
	number := box.number(dst, len(data))
	if st := box.room(dst, number, c); st != conduits.Ready {
		return conduits.Slot{}, 0, st
	}
	id, s := box.stage(words)
	s.number = number
	s.long, s.to, s.data, s.cookie = true, to, data, cookie
	// A sender that had to wait until its data has arrived would send one message in a
	// round trip.
	if len(data) <= box.limits.MaxMedium {
		if s.payload == nil {
			s.payload = make([]byte, box.limits.MaxMedium)
		}
		s.data = s.payload[:copy(s.payload, data)]
		s.early = true
	} else if dst != box.d.life.rank {
		if b := box.d.eng.Copy(data); b != nil {
			s.data, s.early, s.lent = b, true, true
		}
	}
	ev := conduits.Event(0)
	if s.early {
		ev = conduits.SourceDone
	}
	return conduits.Slot{Words: s.words[:words:words], Ref: uint64(id)}, ev, conduits.Ready
}

// Commit sends a staged message.
func (box *mailbox) Commit(dst int, c conduits.Class, slot conduits.Slot, tag conduits.Tag, payload int) {
	if dst == box.d.life.rank {
		box.commitSelf(c, uint32(slot.Ref), tag, payload)
		return
	}
	box.d.mu.Lock()
	defer box.d.mu.Unlock()
	id := uint32(slot.Ref)
	s := box.stages[id]
	box.tally.Sent(dst, c, s.carried(payload))
	now := box.d.l.Now()
	box.d.eng.Time(now)
	switch words := s.words[:s.nwords]; {
	case s.lent:
		box.d.eng.SendCopy(s.number, c, tag, words, s.to, s.data)
	case s.long:
		if ev := box.d.eng.SendLong(s.number, c, tag, words, s.to, s.data, s.cookie); ev != 0 && !s.early {
			box.d.eng.Complete(engine.Completion{Cookie: s.cookie, Event: ev})
		}
	default:
		box.d.eng.Send(s.number, c, tag, words, s.payload[:payload])
	}
	box.unstage(id)
	box.d.flushAt(now)
}

// carried is how many bytes s carries if it is committed with a payload of so many.
func (s *stage) carried(payload int) int {
	if s.long {
		return len(s.data)
	}
	return payload
}

// commitSelf is Commit of a message to this rank.
func (box *mailbox) commitSelf(c conduits.Class, id uint32, tag conduits.Tag, payload int) {
	box.d.mu.Lock()
	s := box.stages[id]
	box.tally.Sent(box.d.life.rank, c, s.carried(payload))
	if s.long {
		box.sendSelfLong(c, tag, s.words[:s.nwords], s.to, s.data)
		if !s.early {
			box.d.eng.Complete(engine.Completion{Cookie: s.cookie, Event: conduits.SourceDone})
		}
	} else {
		box.sendSelf(c, tag, s.words[:s.nwords], s.payload[:payload])
	}
	box.unstage(id)
	box.d.mu.Unlock()
	box.d.w.notify()
}

// Cancel forgets a staged message.
func (box *mailbox) Cancel(dst int, c conduits.Class, slot conduits.Slot) {
	box.d.mu.Lock()
	id := uint32(slot.Ref)
	s := box.stages[id]
	if dst == box.d.life.rank {
		box.loop.open[c]--
	} else {
		box.d.eng.Cancel(s.number, c)
	}
	switch {
	case s.lent:
		box.d.eng.Uncopy(s.data)
	case s.long && !s.early:
		box.d.eng.Complete(engine.Completion{Cookie: s.cookie, Event: conduits.SourceDone})
	}
	box.unstage(id)
	box.d.mu.Unlock()
	box.d.w.notify() // others may wait for the credit
}

// Poll runs what has arrived.
func (box *mailbox) Poll() int {
	if box.d.life.closed.Load() || !box.mem.attached.Load() {
		return 0
	}
	if box.loop.lookElsewhere() && !box.d.progress() && box.loop.waiting.Load() == 0 {
		return 0
	}
	me := sys.Goroutine()
	n := 0
	for {
		if !box.poller.CompareAndSwap(0, me) {
			break
		}
		n += box.deliver(batch-n, false)
		box.poller.Store(0)
		// This goroutine runs messages that another one has received meanwhile and could not run.
		if n >= batch || !box.pending() {
			break
		}
	}
	if n > 0 {
		box.flushAfterRun()
	}
	return n
}

// flushAfterRun sends what messages that were run have brought about.
func (box *mailbox) flushAfterRun() {
	box.d.mu.Lock()
	box.d.eng.Push()
	if box.d.eng.Ready() {
		box.d.flush()
	} else {
		box.d.keep()
	}
	box.d.mu.Unlock()
	box.d.w.notify()
}

// pending reports whether there is something to be run.
func (box *mailbox) pending() bool {
	box.d.mu.Lock()
	defer box.d.mu.Unlock()
	return !box.d.life.closed.Load() && box.runnable()
}

// runnable reports whether there is something to be run, with mu held.
func (box *mailbox) runnable() bool { return box.loop.waiting.Load() > 0 || box.d.eng.Pending() }

// Spin is Poll: each look at the socket takes a while. Its caller waits for
// something, so nothing that he has sent waits for company.
func (box *mailbox) Spin() int {
	box.pushHeld()
	return box.Poll()
}

// pushHeld sends what waits for company, if there is something that does.
func (box *mailbox) pushHeld() {
	if box.d.held.Load() {
		box.d.mu.Lock()
		box.d.push()
		box.d.mu.Unlock()
	}
}

// PollReplies runs replies and completions.
func (box *mailbox) PollReplies() int {
	box.pushHeld()
	box.d.progress()
	n := box.deliver(batch, true)
	if n > 0 {
		box.flushAfterRun()
	}
	return n
}

// RepliesBeside is PollReplies for a caller that is in a handler of another conduit,
// one that no goroutine runs a handler of this one beside. Goroutines that have armed are told
// only if something was run: of requests that wait they hear when that handler ends.
func (box *mailbox) RepliesBeside() int {
	if box.d.life.closed.Load() || !box.poller.CompareAndSwap(0, sys.Goroutine()) {
		return 0
	}
	n := box.PollReplies()
	box.poller.Store(0)
	return n
}

// deliver runs up to most things that have arrived.
func (box *mailbox) deliver(most int, nested bool) int {
	n := 0
	var m *engine.Message
	box.d.mu.Lock()
	for n < most && !box.d.life.closed.Load() {
		if c, ok := box.d.eng.NextCompletion(); ok {
			few, k := [8]engine.Completion{c}, 0 // that many with mu held once
			for ; ok; few[k], ok = box.d.eng.NextCompletion() {
				if k++; k == min(len(few), most-n) {
					break
				}
			}
			box.d.mu.Unlock()
			for _, c := range few[:k] {
				box.receiver.Complete(c.Cookie, c.Event, c.Value, c.Err)
			}
			n += k
			box.d.mu.Lock()
			continue
		}
		m = box.d.eng.NextMessage(conduits.Reply)
		if m == nil {
			own := box.nextSelf(conduits.Reply)
			if own == nil && !nested {
				// Neither kind of request keeps the other one waiting for ever.
				if box.loop.next = !box.loop.next; box.loop.next {
					own = box.nextSelf(conduits.Request)
				}
				if own == nil {
					m = box.d.eng.NextMessage(conduits.Request)
				}
				if own == nil && m == nil {
					own = box.nextSelf(conduits.Request)
				}
			}
			if own != nil {
				box.tally.Received(own.Src, own.Class, len(own.Payload))
				box.d.mu.Unlock()
				box.receiver.Receive(&own.Message)
				n++
				box.d.mu.Lock()
				box.releaseSelf(own)
				continue
			}
		}
		if m == nil {
			break
		}
		box.tally.Received(m.Src, m.Class, len(m.Payload))
		box.d.mu.Unlock()
		box.receiver.Receive(&m.Message)
		n++
		box.d.mu.Lock()
		box.d.eng.Release(m)
	}
	box.d.mu.Unlock()
	return n
}

// Deliver runs f as a handler.
func (box *mailbox) Deliver(f func()) bool {
	if box.d.life.closed.Load() || !box.poller.CompareAndSwap(0, sys.Goroutine()) {
		return false
	}
	f()
	box.poller.Store(0)
	box.d.w.notify()
	return true
}

// Polling reports whether the caller is in a handler.
func (box *mailbox) Polling() bool { return sys.HasGoroutine && box.poller.Load() == sys.Goroutine() }

// discard drops what has arrived, for no poll runs it any more, and reports whether
// all that this rank has sent has arrived.
func (box *mailbox) discard() bool {
	box.d.mu.Lock()
	defer box.d.mu.Unlock()
	for _, ok := box.d.eng.NextCompletion(); ok; _, ok = box.d.eng.NextCompletion() {
	}
	for c := range conduits.Class(conduits.NumClasses) {
		for m := box.d.eng.NextMessage(c); m != nil; m = box.d.eng.NextMessage(c) {
			box.d.eng.Release(m)
		}
		for m := box.nextSelf(c); m != nil; m = box.nextSelf(c) {
			box.releaseSelf(m)
		}
	}
	box.d.flush()
	return box.d.eng.Drained()
}
