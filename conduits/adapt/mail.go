package adapt

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// kind is the kind of a message between Transports; see the package comment.
type kind uint32

const (
	kindMessage kind = iota
	kindLong
	kindCredit
	kindWake
	kindAtomic
	kindResult
	kindAwaited
	kindNote
)

func header(k kind, c conduits.Class, tag conduits.Tag) uint32 {
	return uint32(k)<<25 | uint32(c)<<24 | uint32(tag)
}

// letter is a message that is reserved, waits for room, or has arrived.
type letter struct {
	words  [conduits.TransportWords]uint32
	nwords int
	buf    []byte // for a payload; nil until there is one
	bytes  int    // of payload

	// Reserved by ReservePut.
	data   []byte
	to     segment.NLA
	cookie uint64
	way    way
	number uint32 // of the note, if besideData

	// Reserved in the Transport's memory, if room has words.
	room conduits.Slot

	// Arrived.
	src  int
	long uint64 // bytes of the data that went ahead
	regs uint64 // registrations when it arrived

	message conduits.Message // as it is run

	next *letter // that is free, too
}

// letter returns a free letter, with mu held.
func (e *Endpoint) letter() *letter {
	l := e.free
	if l == nil {
		return new(letter)
	}
	e.free, l.next = l.next, nil
	return l
}

// release makes l free, with mu held.
func (e *Endpoint) release(l *letter) {
	l.bytes, l.nwords, l.data, l.long, l.to, l.way = 0, 0, nil, 0, 0, afterData
	l.next, e.free = e.free, l
}

// payload makes room for n bytes.
func (e *Endpoint) payload(l *letter, n int) []byte {
	if n == 0 {
		return nil
	}
	if l.buf == nil {
		l.buf = make([]byte, e.limits.MaxMedium)
	}
	l.bytes = n
	return l.buf[:n:n]
}

// room takes a credit, with mu held.
func (e *Endpoint) room(dst int, c conduits.Class) conduits.Status {
	if e.closed.Load() || e.t.Err() != nil || e.peers[dst].left {
		return conduits.Dead
	}
	p := &e.peers[dst]
	if p.credits[c] == 0 {
		e.tally.Refused(dst)
		return conduits.NoCredit
	}
	p.credits[c]--
	p.used = true
	return conduits.Ready
}

// The lanes of a Transport: a backlog each, so that replies do not wait for requests.
const (
	usual   = iota // all that Send sends
	replies        // what SendReply does, if the Transport is a conduits.ReplyLane
	lanes
)

// laneOf is the lane of a message that begins with word.
func (e *Endpoint) laneOf(word uint32) int {
	if e.lane == nil {
		return usual
	}
	switch k, c := kind(word>>25), conduits.Class(word>>24&1); k {
	case kindMessage, kindLong, kindAwaited:
		if c == conduits.Request {
			return usual
		}
	case kindAtomic, kindWake:
		return usual
	}
	return replies
}

// post has the Transport send a message by a lane, with mu held.
func (e *Endpoint) post(lane, dst int, words []uint32, payload []byte) conduits.Status {
	if lane == replies {
		return e.lane.SendReply(dst, words, payload)
	}
	return e.t.Send(dst, words, payload)
}

// transmit sends a message, now or when the Transport has room, with mu held.
func (e *Endpoint) transmit(dst int, words []uint32, payload []byte) {
	if e.gone {
		return
	}
	p, lane := &e.peers[dst], e.laneOf(words[0])
	if p.backlog[lane].Empty() {
		if e.post(lane, dst, words, payload) != conduits.NoCredit {
			return // sent, or Dead: there is no receiver
		}
		if p.backlog[lanes-1-lane].Empty() {
			e.late = append(e.late, dst)
		}
		e.carry()
	}
	l := e.letter()
	l.nwords = copy(l.words[:], words)
	copy(e.payload(l, len(payload)), payload)
	p.backlog[lane].Add(l)
}

// flush sends what the Transport has room for now, with mu held.
func (e *Endpoint) flush() {
	if e.gone {
		return
	}
	kept := e.late[:0]
	for _, dst := range e.late {
		waits := false
		for lane := range e.peers[dst].backlog {
			waits = !e.drain(dst, lane) || waits
		}
		if waits {
			kept = append(kept, dst)
		}
	}
	e.late = kept
}

// drain sends what waits for one lane to dst, with mu held, and reports whether there was
// room for all of it.
func (e *Endpoint) drain(dst, lane int) bool {
	for b := &e.peers[dst].backlog[lane]; !b.Empty(); {
		l := b.First()
		if e.post(lane, dst, l.words[:l.nwords], l.buf[:l.bytes]) == conduits.NoCredit {
			return false
		}
		b.Take()
		e.release(l)
	}
	return true
}

// check panics where the layer above has broken a promise, and holds no lock then.
func (e *Endpoint) check(dst, words, payload int) {
	if uint(dst) >= uint(e.size) || !e.attached.Load() {
		panic(fmt.Sprintf("%s: message to rank %d of %d, or before Attach", e.name, dst, e.size))
	}
	if uint(words) > conduits.MaxWords || uint(payload) > uint(e.limits.MaxMedium) {
		panic(fmt.Sprintf("%s: message of %d words and %d bytes; limits %d and %d", e.name, words, payload, conduits.MaxWords, e.limits.MaxMedium))
	}
}

// Send sends a short message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	return e.SendPayload(dst, c, tag, words, nil, 0)
}

// SendPayload sends a medium message, or a short one.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return conduits.Apart
	}
	e.check(dst, len(words), len(payload))
	e.mu.Lock()
	st := e.room(dst, c)
	if st == conduits.Ready {
		e.out[0] = header(kindMessage, c, tag)
		copy(e.out[1:], words)
		e.tally.Sent(dst, c, len(payload))
		e.send(dst, e.out[:1+len(words)], payload)
	}
	e.mu.Unlock()
	if st == conduits.Ready && dst == e.rank {
		e.waiters.notify()
	}
	return st
}

// send sends a layer's message that has its credit, with mu held. The caller notifies
// if it is to this rank.
func (e *Endpoint) send(dst int, words []uint32, payload []byte) {
	if dst == e.rank {
		e.arrived(dst, words, payload)
	} else {
		e.transmit(dst, words, payload)
	}
}

// slot reserves a letter, with mu held.
func (e *Endpoint) slot(words int) (*letter, conduits.Slot) {
	if len(e.idle) == 0 {
		e.idle = append(e.idle, uint32(len(e.slots)))
		e.slots = append(e.slots, nil)
	}
	ref := e.idle[len(e.idle)-1]
	e.idle = e.idle[:len(e.idle)-1]
	l := e.letter()
	l.nwords = words
	e.slots[ref] = l
	return l, conduits.Slot{Words: l.words[longWords : longWords+words : longWords+words], Ref: uint64(ref)}
}

// longWords is how many words precede the layer's in a message of kindLong, which
// leaves room for those of kindMessage.
const longWords = 5

// unslot ends a reservation, with mu held; the letter is the caller's.
func (e *Endpoint) unslot(s conduits.Slot) *letter {
	l := e.slots[s.Ref]
	if l == nil {
		e.mu.Unlock()
		panic(e.name + ": a slot is committed or cancelled twice")
	}
	e.slots[s.Ref] = nil
	e.idle = append(e.idle, uint32(s.Ref))
	return l
}

// Reserve stages a message, where the Transport has it if that gives room.
func (e *Endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	e.check(dst, words, payload)
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.room(dst, c)
	if st != conduits.Ready {
		return conduits.Slot{}, st
	}
	l, s := e.slot(words)
	if e.rooms != nil && dst != e.rank && (e.lane == nil || c == conduits.Request) {
		if room, st := e.rooms.Reserve(dst, 1+words, payload); st == conduits.Ready {
			l.room, s.Words, s.Payload = room, room.Words[1:], room.Payload
			return s, st
		}
	}
	s.Payload = e.payload(l, payload)
	return s, st
}

// ReservePut stages a message that data goes ahead of when it is committed.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.check(dst, words, 0)
	if n := uint64(len(data)); n > 0 && (conduits.CheckRemote(e, e.name, dst, to, n) != nil ||
		e.SegmentRights(dst)&segment.RightWrite == 0 && conduits.InSegment(e, dst, to, n)) {
		panic(e.name + ": put to an address that was not checked")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.room(dst, c)
	if st != conduits.Ready {
		return conduits.Slot{}, 0, st
	}
	l, s := e.slot(words)
	l.to, l.data, l.cookie = to, data, cookie
	if l.data == nil {
		l.data = []byte{}
	}
	return s, 0, st
}

// Commit sends a staged message.
func (e *Endpoint) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	e.mu.Lock()
	l := e.unslot(s)
	// Counted now: dst may have it before the Transport says that its data is there.
	if l.data != nil {
		e.tally.Sent(dst, c, len(l.data))
		e.mu.Unlock()
		e.commitLong(dst, c, l, tag)
		return
	}
	e.tally.Sent(dst, c, payload)
	if l.room.Words != nil {
		l.room.Words[0] = header(kindMessage, c, tag)
		e.giveBack(dst, l, payload, true)
		e.mu.Unlock()
		return
	}
	l.words[longWords-1] = header(kindMessage, c, tag)
	e.send(dst, l.words[longWords-1:longWords+l.nwords], l.buf[:payload])
	e.release(l)
	e.mu.Unlock()
	if dst == e.rank {
		e.waiters.notify()
	}
}

// giveBack sends what is in a room of the Transport, or nothing, and releases l, with
// mu held.
func (e *Endpoint) giveBack(dst int, l *letter, payload int, send bool) {
	if !e.gone { // else the rooms are gone, too
		e.rooms.Commit(dst, l.room, payload, send)
	}
	l.room = conduits.Slot{}
	e.release(l)
}

// commitLong puts the data of l and sends it afterwards.
func (e *Endpoint) commitLong(dst int, c conduits.Class, l *letter, tag conduits.Tag) {
	n := uint64(len(l.data))
	l.words[0] = header(kindLong, c, tag)
	put64(l.words[1:], uint64(l.to))
	put64(l.words[3:], n)
	done, err, regs := true, error(nil), e.registrations()
	var id uint32
	if n > 0 {
		var ok bool
		if id, ok = e.begin(operation{letter: l, rank: dst, class: c}, nil); !ok {
			return // closed: nothing is sent or told any more
		}
		if dst == e.rank {
			_, err = e.postOwn(&conduits.Access{Verb: conduits.Put, At: l.to, Mem: l.data})
		} else if e.notify != nil {
			done, err = e.notify.PutNotify(dst, l.to, l.data, e.note(dst, c, l), uint64(id))
		} else {
			done, err = e.t.Put(dst, l.to, l.data, uint64(id))
		}
		if !done && err == nil {
			e.mu.Lock()
			if e.busy() {
				e.carry()
			}
			e.mu.Unlock()
			return
		}
	}
	e.mu.Lock()
	if n > 0 {
		e.retire(id)
	}
	e.sendLong(dst, c, l, err)
	if q := e.queues[c].All(); dst == e.rank && err == nil && len(q) > 0 {
		q[len(q)-1].regs = regs // withdrawn since then, it is not to be run
	}
	e.mu.Unlock()
	e.waiters.notify()
}

// sendLong ends a notification put whose data is in place, or was refused, with mu
// held.
func (e *Endpoint) sendLong(dst int, c conduits.Class, l *letter, err error) {
	e.done.Add(completion{cookie: l.cookie, event: conduits.SourceDone})
	switch {
	case err == nil:
		if l.way == afterData {
			e.send(dst, l.words[:longWords+l.nwords], nil)
		}
	default:
		if isFault(err) {
			e.faults++
		}
		if l.way == besideData {
			e.retract(dst, l.number) // and dst returns the credit
		} else {
			e.peers[dst].credits[c]++
		}
	}
	e.release(l)
}

// Cancel forgets a staged message.
func (e *Endpoint) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	e.mu.Lock()
	l := e.unslot(s)
	e.peers[dst].credits[c]++
	if l.data != nil {
		e.done.Add(completion{cookie: l.cookie, event: conduits.SourceDone})
	}
	if l.room.Words != nil {
		e.giveBack(dst, l, 0, false)
	} else {
		e.release(l)
	}
	e.mu.Unlock()
	e.waiters.notify() // others may wait for the credit
}

// owner is the Endpoint as its Transport sees it.
type owner struct{ e *Endpoint }

var _ conduits.Owner = owner{}

// Deliver takes a message of src. One that is wrong fails src when the Transport's Poll has
// returned: it may hold locks of its own now, and wait in Fail for what other ranks say.
func (o owner) Deliver(src int, words []uint32, payload []byte) {
	o.e.mu.Lock()
	if err := o.e.arrived(src, words, payload); err != nil && o.e.forged == nil {
		o.e.forged = &conduits.PeerError{Rank: src, Err: err}
	}
	o.e.mu.Unlock()
}

// arrived does what a message of src asks for, or keeps it for the poll that runs it,
// with mu held.
func (e *Endpoint) arrived(src int, words []uint32, payload []byte) error {
	bad := func() error {
		return errs.BadArg("%s: rank %d has sent rank %d a message of %d words and %d bytes that begins with %.8x", e.name, src, e.rank, len(words), len(payload), words[:min(1, len(words))])
	}
	if uint(src) >= uint(e.size) || len(words) == 0 || len(words) > conduits.TransportWords || len(payload) > e.limits.MaxMedium {
		return bad()
	}
	k, c, tag, w := kind(words[0]>>25), conduits.Class(words[0]>>24&1), words[0]&(1<<conduits.TagBits-1), words[1:]
	p := &e.peers[src]
	p.used = true
	switch {
	case k == kindMessage && len(w) <= conduits.MaxWords, (k == kindLong || k == kindAwaited) && len(w) >= longWords-1:
		if e.closed.Load() {
			return nil // it is not run any more
		}
		if p.queued[c] == e.limits.Credits {
			return bad() // it had no credit for this one
		}
		p.queued[c]++
		l := e.letter()
		l.src, l.regs = src, e.registrations()
		if k != kindMessage {
			l.to, l.long, l.data = segment.NLA(get64(w)), get64(w[2:]), longData
			if k == kindAwaited {
				l.number, l.long = uint32(l.long>>numberShift), l.long&(1<<numberShift-1)
			}
			w = w[longWords-1:]
		}
		l.words[0] = uint32(tag)
		l.nwords = copy(l.words[1:], w)
		copy(e.payload(l, len(payload)), payload)
		if k != kindAwaited {
			e.queues[c].Add(l)
		} else if !e.awaited(c, l) {
			return bad()
		}
	case k == kindNote && len(w) <= 1:
		if !e.closed.Load() && !e.noted(src, tag, len(w) == 1) {
			return bad()
		}
	case k == kindCredit && len(w) == conduits.NumClasses:
		for c, n := range w {
			if uint64(p.credits[c])+uint64(n) > uint64(e.limits.Credits) {
				return bad()
			}
			p.credits[c] += int(n)
		}
	case k == kindWake && len(w) == 0:
	case k == kindAtomic && len(w) == 7:
		e.perform(src, conduits.AtomicOp(tag), conduits.AtomicType(tag>>8), w)
	case k == kindResult && len(w) == 3+2*int(tag&1):
		if !e.result(src, tag&1 != 0, w) {
			return bad()
		}
	default:
		return bad()
	}
	return nil
}

// longData marks an arrived letter whose data went ahead, or goes beside it.
var longData = []byte{}

// Left notes that rank has left.
func (o owner) Left(rank int) {
	e := o.e
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.peers[rank]
	p.left = true
	for lane := range p.backlog {
		for _, l := range p.backlog[lane].All() {
			e.release(l)
		}
		p.backlog[lane] = conc.Queue[*letter]{} // flush drops it from late
	}
	e.abandon(rank)
}

// batch is the most messages and completions that one poll runs.
const batch = 64

// receive has the Transport deliver what has arrived, sends what it has room for, and says
// whether there is something to be run.
func (e *Endpoint) receive() bool {
	n := 0
	// The caller may have waited for the event of what has arrived, which comes once:
	// if another goroutine is in Poll, and past it, that one has to poll again.
	e.again.Store(true)
	for rounds := 0; e.again.Load(); rounds++ {
		if rounds == 2 { // this poller has work of its own: those that ask wake, and poll
			n++
			break
		}
		if !e.rx.TryLock() {
			break
		}
		e.again.Store(false)
		n += e.t.Poll()
		e.rx.Unlock()
	}
	return e.received(n)
}

// received sends what there is room for after the Transport has made n calls, and says
// whether there is something to be run.
func (e *Endpoint) received(n int) bool {
	e.mu.Lock()
	if !e.failed && e.t.Err() != nil {
		e.failed = true
		e.abandon(-1)
		n++
	}
	if len(e.late) > 0 {
		e.flush()
	}
	forged, some := e.forged, e.runnable()
	e.forged = nil
	e.mu.Unlock()
	if forged != nil {
		e.t.Fail(forged.Rank, forged.Err)
		n++
	}
	if n > 0 {
		e.waiters.notify()
	}
	return some
}

// receiveReplies is receive for the Transport's lane of replies. False: the caller has
// to receive all. That is so if another goroutine wants it, and when there is nothing
// before a goroutine sleeps: what ends that sleep may be a request, after which the rank
// that is waited for has left, and its event comes once.
func (e *Endpoint) receiveReplies() bool {
	if e.lane == nil || !e.rx.TryLock() {
		return false
	}
	n := e.lane.PollReplies()
	e.rx.Unlock()
	e.received(n) // also if all is received next: that may find nothing and wake none
	return !(n == 0 && e.waiters.armed.Load() > 0 || e.again.Load())
}

// runnable reports whether there is something to be run, with mu held.
func (e *Endpoint) runnable() bool {
	return !e.done.Empty() || !e.queues[conduits.Request].Empty() || !e.queues[conduits.Reply].Empty()
}

func (e *Endpoint) pending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed.Load() && e.runnable()
}

// Poll runs what has arrived.
func (e *Endpoint) Poll() int {
	if e.closed.Load() || !e.attached.Load() {
		return 0
	}
	n := 0
	for some := e.receive(); some && n < batch && e.poller.CompareAndSwap(0, sys.Goroutine()); some = e.pending() {
		n += e.run(batch-n, false)
		// This goroutine runs messages that another one has received meanwhile and could not run.
		e.poller.Store(0)
	}
	if n > 0 {
		e.waiters.notify()
	}
	return n
}

// Spin is Poll: a look at the Transport takes a while.
func (e *Endpoint) Spin() int { return e.Poll() }

// PollReplies runs replies and completions.
func (e *Endpoint) PollReplies() int {
	if !e.attached.Load() {
		return 0
	}
	if !e.receiveReplies() {
		e.receive()
	}
	n := e.run(batch, true)
	if n > 0 {
		e.waiters.notify()
	}
	return n
}

// Polling reports whether the caller is in a handler.
func (e *Endpoint) Polling() bool { return sys.HasGoroutine && e.poller.Load() == sys.Goroutine() }

// Deliver runs f as a handler.
func (e *Endpoint) Deliver(f func()) bool {
	if e.closed.Load() || !e.poller.CompareAndSwap(0, sys.Goroutine()) {
		return false
	}
	f()
	e.poller.Store(0)
	e.waiters.notify()
	return true
}

// run runs at most so many completions and messages, inside a handler no requests.
func (e *Endpoint) run(most int, nested bool) int {
	n := 0
	e.mu.Lock() // not held by what may panic: layers recover handlers' panics
	for ; n < most && !e.closed.Load(); n++ {
		if d, ok := e.done.Take(); ok {
			e.mu.Unlock()
			e.receiver.Complete(d.cookie, d.event, d.value, d.err)
			e.mu.Lock()
			continue
		}
		c := conduits.Reply
		l, ok := e.queues[c].Take()
		if !ok && !nested {
			c = conduits.Request
			l, ok = e.queues[c].Take()
		}
		if !ok {
			break
		}
		m := &l.message
		*m = conduits.Message{Src: l.src, Class: c, Tag: conduits.Tag(l.words[0]), Words: l.words[1 : 1+l.nwords]}
		if l.data != nil {
			m.To = l.to
			m.Payload, ok = e.landed(l)
		} else if l.bytes > 0 {
			m.Payload = l.buf[:l.bytes]
		}
		if ok {
			e.tally.Received(m.Src, c, len(m.Payload))
			e.mu.Unlock()
			e.receiver.Receive(m)
			e.mu.Lock()
		} else {
			e.faults++
		}
		e.credit(l.src, c)
		e.release(l)
	}
	e.mu.Unlock()
	return n
}

// credit notes that a message of src has been run, with mu held.
func (e *Endpoint) credit(src int, c conduits.Class) {
	p := &e.peers[src]
	p.queued[c]--
	if src == e.rank {
		p.credits[c]++
		return
	}
	p.owed[c]++
	if p.owed[c] < (e.limits.Credits+1)/2 || p.left {
		return
	}
	e.out[0], e.out[1], e.out[2] = header(kindCredit, 0, 0), uint32(p.owed[0]), uint32(p.owed[1])
	e.transmit(src, e.out[:3], nil)
	p.owed = [conduits.NumClasses]int{}
}

// landed is the data that went ahead of l; false if its memory is not registered any
// more.
func (e *Endpoint) landed(l *letter) ([]byte, bool) {
	if l.long == 0 {
		return nil, true
	}
	if b, ok := e.own.Bytes(l.to, l.long, e.own.Size()); ok {
		return b, l.src == e.rank || e.rights&segment.RightWrite != 0
	}
	b := conduits.Landed(e.unit(), l.src, l.to, l.long, l.regs)
	return b, b != nil
}

// registrations is how many there have been of this rank's memory.
func (e *Endpoint) registrations() uint64 {
	if t := e.unit(); t != nil {
		return t.Registrations()
	}
	return 0
}

func put64(w []uint32, v uint64) { w[0], w[1] = uint32(v), uint32(v>>32) }

func get64(w []uint32) uint64 { return uint64(w[0]) | uint64(w[1])<<32 }
