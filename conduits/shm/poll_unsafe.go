package shm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

// Most messages of one ring that one poll runs, and most other rings that it
// looks at: together they bound how long a ring can be overlooked.
const (
	batch = 32
	looks = 16
)

// Poll runs what has arrived.
func (e *Endpoint) Poll() int {
	if !conc.TryEnter(&e.lock) && !e.lock.TryLock() {
		return e.taken()
	}
	n := e.look()
	e.lock.Unlock()
	if n == 0 && e.lanes != nil {
		n = e.tend()
	}
	return n
}

// taken is a poll of a caller whose lane another goroutine polls.
func (e *Endpoint) taken() int {
	if e.lanes == nil || e.Polling() {
		return 0
	}
	return e.tend()
}

// look is a poll of this lane, by the holder of its lock.
func (e *Endpoint) look() int {
	n := 0
	if r := e.hot; r != nil {
		if s := atomic.LoadUint64(r.next()); s != 0 {
			n = e.arrived(r, s)
		}
	}
	if e.others(n) {
		n += e.lookAround()
	}
	return n
}

// Spin is Poll that watches the hot ring for a moment.
func (e *Endpoint) Spin() int {
	if e.patience.Brief() {
		return e.Poll()
	}
	if !conc.TryEnter(&e.lock) && !e.lock.TryLock() {
		return e.taken()
	}
	n := 0
	if r := e.hot; r != nil {
		if s := conc.Nonzero(r.next(), e.spins, e.ahead(r), r.beside()); s != 0 {
			n = e.arrived(r, s)
		}
	}
	if e.others(n) {
		n += e.lookAround()
	}
	e.lock.Unlock()
	if n == 0 && e.lanes != nil {
		n = e.tend()
	}
	return n
}

// lookAround runs what is in some of the other rings.
func (e *Endpoint) lookAround() int {
	n := 0
	if atomic.LoadUint32(e.openSeq) != e.seen {
		n = e.news()
	}
	for i := min(len(e.in), looks); i > 0; i-- {
		if e.cursor++; e.cursor >= len(e.in) {
			e.cursor = 0
		}
		if s := atomic.LoadUint64(e.watch[e.cursor]); s != 0 {
			r := e.in[e.cursor]
			n += e.arrived(r, s)
			e.hot = r
		}
	}
	return n
}

// PollReplies runs replies only; the caller is in Receive, so it holds the lock.
func (e *Endpoint) PollReplies() int {
	n := e.lookReplies()
	if e.lanes != nil {
		n += e.tendReplies()
	}
	return n
}

// lookReplies is PollReplies of this lane, by the holder of its lock.
func (e *Endpoint) lookReplies() int {
	n := 0
	if atomic.LoadUint32(e.openSeq) != e.seen {
		n = e.news()
	}
	for _, r := range e.in {
		if r.class != conduits.Reply {
			continue
		}
		if s := atomic.LoadUint64(r.next()); s != 0 {
			k := e.drain(r, s, batch)
			e.watch[r.index] = r.next()
			e.ran()
			n += k
		}
	}
	return n
}

// news finds out why ctlOpenSeq has changed since the last poll: rings have been
// opened, a rank asks this one or has answered it, or has left the job.
func (e *Endpoint) news() int {
	e.renew()
	if e.lanes != nil {
		e.lanes.admit()
	}
	if e.j.local != nil || e.lane != 0 { // the desk belongs to the first lane
		return 0
	}
	if e.desk.auditDue.Load() && e.desk.auditDue.Swap(false) {
		e.desk.audit()
	}
	return e.answers.serve() + e.advance()
}

// renew looks which rings have been opened, and whether those of replies are to be
// shut. The caller polls.
func (box *mailbox) renew() {
	box.seen = atomic.LoadUint32(box.openSeq)
	box.audit()
	if box.life.closed.Load() {
		box.shutReplies()
	}
	for i, had := range box.opened {
		if atomic.LoadUint32(box.word(box.rank, ctlOpen+i*4)) != had {
			box.admit()
			break
		}
	}
	for _, r := range box.in {
		box.takeStrands(r)
	}
}

// shutReplies has this rank send no replies any more. The endpoint is closed, the
// caller polls.
func (box *mailbox) shutReplies() {
	for i := int(conduits.Reply); i < len(box.out); i += conduits.NumClasses {
		if r := box.out[i].Load(); r != nil {
			r.shut()
		}
	}
}

// shutRequests has this rank send no requests any more. The endpoint is closed.
func (box *mailbox) shutRequests() {
	box.connectMu.Lock()
	for i := int(conduits.Request); i < len(box.out); i += conduits.NumClasses {
		if r := box.out[i].Load(); r != nil {
			r.each(func(r *outRing) {
				r.lock.Lock()
				r.shut()
				r.lock.Unlock()
			})
		}
	}
	box.connectMu.Unlock()
}

// admit takes up rings that have been opened.
func (box *mailbox) admit() {
	have := make(map[int]bool, len(box.in))
	for _, r := range box.in {
		have[r.src] = true
	}
	for i := range box.opened {
		box.opened[i] = atomic.LoadUint32(box.word(box.rank, ctlOpen+i*4))
	}
	for i := range box.j.n {
		src := box.j.rank(i)
		if have[src] || box.opened[i/32]>>(i%32)&1 == 0 {
			continue
		}
		for c := range conduits.Class(conduits.NumClasses) {
			r := box.j.inRing(box.j.way(src, box.rank, box.lane, c), src, box.lane, c)
			r.home = r
			box.join(r)
		}
	}
	if box.hot == nil && len(box.in) > 0 {
		box.hot = box.in[0]
	}
	box.spins = spins
	if len(box.in) <= fewRings {
		box.spins = longSpins
	}
}

// join has the polls look at r.
func (box *mailbox) join(r *inRing) {
	r.index = int32(len(box.in))
	box.in = append(box.in, r)
	box.watch = append(box.watch, r.next())
}

// others reports whether to look at the other rings when n messages of the hot one
// have run. A ring that never rests must not starve them: they are looked at unless
// there was little to do with the hot one, and now and then in any case.
func (box *mailbox) others(n int) bool {
	conc.Release64(&box.turn, box.turn+1)
	return n == 0 || n >= batch || box.turn&7 == 0
}

// ahead guesses the cell that will be written when the next message of r has
// been handled, so that its line is on its way while the handler runs: the
// answer's, if the last message was answered. nil if it was not: fetching a cell
// that finds nothing takes it from a receiver that watches it.
func (box *mailbox) ahead(r *inRing) *uint64 {
	if !conc.Ahead {
		return nil
	}
	o := r.partner
	if o == nil {
		if r.strand != 0 { // a reply travels in the cells of the first ring
			return nil
		}
		o = box.out[(r.src-box.first)*conduits.NumClasses+int(r.class^1)].Load()
		if o != nil && r.class == conduits.Request {
			o.requests = r
		}
		r.partner = o
		return nil
	}
	// The tail of a request ring may move at the same time; a wrong guess costs
	// a transfer.
	if t := o.tail; t != r.answered {
		return (*uint64)(o.cell(t))
	}
	return nil
}

// beside is a word to fetch along with the next status of r: in the second part of its cell
// if the last message was a short one with words there. It is on its way then while the
// status is awaited, and not when that has come, which is one transfer after the other:
// half a round trip of 16 words, far, takes 1.43 x line in place of 1.65. Not of a medium
// message, whose handler may not read it.
func (r *inRing) beside() *uint64 {
	p := r.next()
	if r.kind == stFar|kindShort<<stKindShift {
		return (*uint64)(unsafe.Add(unsafe.Pointer(p), r.far))
	}
	return p
}

// arrived runs the messages of r, the first of which has status s.
func (box *mailbox) arrived(r *inRing, s uint64) int {
	if o := r.partner; conc.Ahead && o != nil {
		r.answered = o.tail
	}
	r.kind = s & (stFar | stKindMask<<stKindShift)
	n := box.drain(r, s, batch)
	box.watch[r.index] = r.next()
	if box.fence || atomic.LoadUint32(box.asleep) != 0 {
		box.ran()
	}
	return n
}

// Deliver runs f as a handler: with the lock held, which is all that a reply
// needs here.
func (box *mailbox) Deliver(f func()) bool {
	if !conc.TryEnter(&box.lock) && !box.lock.TryLock() {
		return false
	}
	f()
	box.ran()
	box.lock.Unlock()
	return true
}

// DeliverCount is Deliver for an f that counts what it has run. When that is nothing no
// goroutine is woken: one that looks before it parks would wake itself, over and over.
func (box *mailbox) DeliverCount(f func() int) (n int, ok bool) {
	if !conc.TryEnter(&box.lock) && !box.lock.TryLock() {
		return 0, false
	}
	if n = f(); n > 0 {
		box.ran()
	}
	box.lock.Unlock()
	return n, true
}

// Polling reports whether the caller is in a handler; where goroutines cannot be
// told apart it says no.
func (box *mailbox) Polling() bool { return sys.HasGoroutine && box.lock.Held() }

// quiet reports whether no ring has anything, nor has any been opened. The caller holds lock.
func (box *mailbox) quiet() bool {
	quiet := atomic.LoadUint32(box.openSeq) == box.seen
	for _, r := range box.in {
		quiet = quiet && atomic.LoadUint64(r.next()) == 0
	}
	return quiet
}

// emptied reports whether all that rank has sent has been run. The caller holds lock.
func (box *mailbox) emptied(rank int) bool {
	i := box.j.place(rank)
	bit := uint32(1) << (i % 32)
	empty := atomic.LoadUint32(box.word(box.rank, ctlOpen+i/32*4))&bit == box.opened[i/32]&bit // else its rings are new
	for _, r := range box.in {
		empty = empty && (r.src != rank || atomic.LoadUint64(r.next()) == 0)
	}
	return empty
}

// corrupt ends the job: a slot holds what no sender of ours writes.
func (box *mailbox) corrupt(r *inRing, s uint64) {
	box.life.Fail(fmt.Errorf("mailbox of rank %d: slot %d of the %v ring from rank %d holds %#x", box.rank, r.head&r.mask, r.class, r.src, s))
}

// tally adds the rings' counters to s.
func (box *mailbox) tally(s *conduits.Stats) {
	// The rings that messages come from, and those of replies, belong to the poller; if
	// another goroutine polls, yesterday's figures must do.
	peers := s.Peers != nil
	seen := &box.seenTotals
	box.statsMu.Lock()
	if peers {
		seen = &box.seenPeers
	}
	if mine := box.Polling(); mine || box.tryLock(peers) {
		*seen = conduits.Stats{Peers: seen.Peers[:0]}
		if peers && seen.Peers == nil {
			seen.Peers = []conduits.PeerStats{}
		}
		for _, r := range box.in {
			if r.delivered > 0 {
				p := conduits.PeerStats{Rank: r.src, ReceivedBytes: r.payload}
				p.Received[r.class] = r.delivered
				seen.Count(&p)
			}
		}
		for i := int(conduits.Reply); i < len(box.out); i += conduits.NumClasses {
			if r := box.out[i].Load(); r != nil {
				p := r.stats()
				seen.Count(&p)
			}
		}
		if !mine {
			box.lock.Unlock()
		}
		if peers {
			box.seenTotals = *seen
			box.seenTotals.Peers = nil
		}
	}
	for c := range conduits.NumClasses {
		s.Sent[c] += seen.Sent[c]
		s.Received[c] += seen.Received[c]
	}
	s.NoCredit += seen.NoCredit
	s.Peers = append(s.Peers, seen.Peers...)
	box.statsMu.Unlock()
	for i := int(conduits.Request); i < len(box.out); i += conduits.NumClasses {
		r := box.out[i].Load()
		if r != nil {
			r.each(func(r *outRing) {
				r.lock.Lock()
				p := r.stats()
				r.lock.Unlock()
				s.Count(&p)
			})
		}
		if r != nil || box.out[i+1].Load() != nil {
			s.PeersUsed++
		}
	}
}

// tryLock takes lock; if it may wait, another goroutine's polls have some time to end.
func (box *mailbox) tryLock(wait bool) bool {
	for range statsYields {
		if box.lock.TryLock() {
			return true
		}
		if !wait {
			break
		}
		runtime.Gosched()
	}
	return false
}

// statsYields is how often Stats with Peers tries to take lock. A poll with a few handlers takes a
// microsecond or so, a yield a tenth; a handler may take any time, and Stats is not to wait for it.
const statsYields = 200

// stats is what r counts of its rank.
func (r *outRing) stats() conduits.PeerStats {
	p := conduits.PeerStats{Rank: int(r.dst), NoCredit: r.noCredit}
	p.Sent[r.class] = r.tail - r.cancelled
	p.SentBytes = r.payload - min(r.back.Load(), r.payload)
	return p
}
