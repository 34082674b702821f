package traffic

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// compute is how long a rank may do other things between two polls of a wait, the first of
// which has found nothing: more is computation. Checks of conditions and yields take less.
const compute = 5 * time.Microsecond

// told is the longest put whose source may be used again at once, as on cards that send so
// much with the command (conduits/sim.Profile.Immediate).
const told = 8

// recorder is the endpoint of a rank that is recorded.
type recorder struct {
	conduits.Endpoint
	to       *output
	lend     conduits.Deliverer
	runner   conduits.Runner // nil: time is real
	receiver conduits.Receiver
	views    []segment.View

	kept   atomic.Int32 // in late
	armed  atomic.Int32 // goroutines that are about to park
	handed int          // by it

	mu       sync.Mutex // not held while the endpoint below polls or a handler runs
	s        stream
	attached time.Duration
	last     time.Duration // when the last call ended
	mark     time.Duration // of the last recEnd
	waited   time.Duration
	waiting  bool // polls follow each other
	empty    bool // the last of them has found nothing
	looking  bool // one is under way
	credit   bool // the last message had none
	polls    uint64
	ways     uint64 // polls by the way that are not written yet
	wayGap   time.Duration
	depth    int           // of handlers
	work     time.Duration // of the handler
	late     []completion
	begun    uint64
	open     map[uint64]opened // by cookie
	longs    []long
	closed   bool
}

type completion struct {
	cookie uint64
	ev     conduits.Event
	value  uint64
}

// opened is an access of which completions are to come.
type opened struct {
	number uint64
	want   conduits.Event
}

// long is a message that is reserved.
type long struct {
	dst    int
	class  conduits.Class
	ref    uint64
	to     segment.NLA
	n      int
	want   conduits.Event
	cookie uint64
}

// wrap puts a recorder on top of ep.
func wrap(ep conduits.Endpoint, to *output) *recorder {
	e := &recorder{Endpoint: ep, to: to, open: map[uint64]opened{}}
	e.lend, _ = conduits.As[conduits.Deliverer](ep)
	e.runner, _ = conduits.As[conduits.Runner](ep)
	return e
}

// Abilities are few: what ranks of different hosts have.
func (e *recorder) Abilities() conduits.Abilities {
	var r conduits.Runner
	if e.runner != nil {
		r = e
	}
	g, _ := conduits.As[conduits.Diagnoser](e.Endpoint)
	return conduits.Offer(nil, e.lend, g, nil, r, nil)
}

// RunRanks runs them on the conduit below.
func (e *recorder) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	below := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		below[i] = ep.(*recorder).Endpoint
	}
	e.runner.RunRanks(below, rank)
}

// GoRank runs f on the conduit below.
func (e *recorder) GoRank(f func()) { e.runner.GoRank(f) }

// Sleep lets time pass on the conduit below, which counts as computing.
func (e *recorder) Sleep(d time.Duration) { e.runner.Sleep(d) }

// Interrupt fails the rank on the conduit below.
func (e *recorder) Interrupt(err error) { e.runner.Interrupt(err) }

// Limits has payloads of the length that simulated ranks have.
func (e *recorder) Limits() conduits.Limits {
	l := e.Endpoint.Limits()
	if e.runner == nil {
		l.MaxMedium = min(l.MaxMedium, maxMedium)
	}
	return l
}

// Attach attaches with the recorder as the receiver.
func (e *recorder) Attach(c conduits.AttachConfig) error {
	if c.Receiver != nil {
		e.receiver, c.Receiver = c.Receiver, e
	}
	c.Lane = nil
	if err := e.Endpoint.Attach(c); err != nil {
		return err
	}
	first, views := e.Endpoint.Views()
	e.views = views[e.Rank()-first:][:1]
	e.mu.Lock()
	e.attached = e.Now()
	e.last, e.mark = e.attached, e.attached
	e.mu.Unlock()
	return nil
}

// Views is the own segment.
func (e *recorder) Views() (first int, views []segment.View) { return e.Rank(), e.views }

// System is the own words.
func (e *recorder) System(rank int, area conduits.SystemArea) []byte {
	if rank != e.Rank() || area != conduits.SystemWords {
		return nil
	}
	return e.Endpoint.System(rank, area)
}

// enter begins a call, with the lock held, which is no poll of a wait: it returns the time that
// the rank has computed before.
func (e *recorder) enter() (gap time.Duration) {
	now := e.Now()
	e.mu.Lock()
	gap = max(0, now-e.last)
	e.last = max(e.last, now)
	if e.depth > 0 { // a handler's
		e.work += gap
		return 0
	}
	if e.waiting {
		e.stopWaiting(now - gap)
	}
	e.writePolls()
	return gap
}

// leave ends a call that has begun with the lock held.
func (e *recorder) leave() {
	e.last = e.Now()
	e.mu.Unlock()
}

// stopWaiting writes that the polls of a wait are over.
func (e *recorder) stopWaiting(at time.Duration) {
	e.waiting = false
	f := byte(0)
	if e.empty {
		f = flagMemory
	}
	e.s.rec(recEnd, f, 0, uint64(max(0, at-e.mark)), e.polls)
	e.mark = max(at, e.mark)
}

// writePolls writes the polls by the way that are not written.
func (e *recorder) writePolls() {
	if e.ways > 0 {
		e.s.rec(recPolls, 0, e.wayGap, e.ways)
		e.ways, e.wayGap = 0, 0
	}
}

// address is how records tell where an access is: 0 is registered memory.
func (e *recorder) address(rank int, at segment.NLA, n uint64) uint64 {
	if n > 0 && conduits.InSegment(e, rank, at, n) {
		return uint64(at-segment.AttachBase) + 1
	}
	return 0
}

// sent writes a message, or that there was no credit.
func (e *recorder) sent(st conduits.Status, gap time.Duration, dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload int) {
	e.credit = st == conduits.NoCredit
	if st != conduits.Ready {
		e.lack(gap)
		return
	}
	e.s.rec(recSend, flags(c, 0), gap, uint64(dst), uint64(len(words)), uint64(payload))
	e.s.hash(print(tag, words, payload))
}

// lack keeps the time that was computed before a call without effect for the next record.
func (e *recorder) lack(gap time.Duration) {
	if gap > 0 {
		e.s.rec(recPolls, 0, gap, 0)
	}
}

// Send sends a short message.
func (e *recorder) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	gap := e.enter()
	st := e.Endpoint.Send(dst, c, tag, words)
	e.sent(st, gap, dst, c, tag, words, 0)
	e.leave()
	return st
}

// SendPayload sends a medium message: a long one is put first.
func (e *recorder) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return conduits.Apart
	}
	gap := e.enter()
	st := e.Endpoint.SendPayload(dst, c, tag, words, payload, 0)
	if st != conduits.Apart {
		e.sent(st, gap, dst, c, tag, words, len(payload))
	} else {
		e.lack(gap)
	}
	e.leave()
	return st
}

// Reserve makes room for a message, which Commit writes.
func (e *recorder) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	e.lack(e.enter())
	s, st := e.Endpoint.Reserve(dst, c, words, payload)
	e.credit = st == conduits.NoCredit
	e.leave()
	return s, st
}

// ReservePut makes room for a long message.
func (e *recorder) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.lack(e.enter())
	s, ev, st := e.Endpoint.ReservePut(dst, c, words, to, data, cookie)
	ev &= conduits.SourceDone
	e.credit = st == conduits.NoCredit
	if st == conduits.Ready {
		l := long{dst, c, s.Ref, to, len(data), 0, cookie}
		if e.runner == nil && len(data) > told && ev != 0 {
			e.later(completion{cookie, ev, 0})
			ev = 0
		}
		if ev == 0 {
			l.want = conduits.SourceDone
		}
		e.longs = append(e.longs, l)
	}
	e.leave()
	return s, ev, st
}

// begin numbers an access, or a long message.
func (e *recorder) begin(want conduits.Event, cookie uint64) {
	e.begun++
	if want != 0 {
		e.open[cookie] = opened{e.begun, want}
	}
}

// reserved takes a long message off those that are reserved.
func (e *recorder) reserved(dst int, c conduits.Class, ref uint64) (long, bool) {
	for i := len(e.longs) - 1; i >= 0; i-- {
		if l := e.longs[i]; l.dst == dst && l.class == c && l.ref == ref {
			e.longs = append(e.longs[:i], e.longs[i+1:]...)
			return l, true
		}
	}
	return long{}, false
}

// Commit sends a reserved message.
func (e *recorder) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	gap := e.enter()
	if l, is := e.reserved(dst, c, s.Ref); is && s.Payload == nil {
		e.s.rec(recLong, flags(c, l.want), gap, uint64(dst), uint64(len(s.Words)), uint64(l.n), e.address(dst, l.to, uint64(l.n)))
		e.s.hash(print(tag, s.Words, l.n))
		e.begin(l.want, l.cookie)
	} else {
		e.sent(conduits.Ready, gap, dst, c, tag, s.Words, payload)
	}
	e.Endpoint.Commit(dst, c, s, tag, payload)
	e.leave()
}

// Cancel forgets a reserved message. Of a long one the data may have been put.
func (e *recorder) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	e.lack(e.enter())
	if l, is := e.reserved(dst, c, s.Ref); is && s.Payload == nil {
		e.s.rec(recPost, flags(0, l.want), 0, uint64(conduits.Put), uint64(dst), uint64(l.n), e.address(dst, l.to, uint64(l.n)))
		e.begin(l.want, l.cookie)
	}
	e.Endpoint.Cancel(dst, c, s)
	e.leave()
}

// Post begins an access. None is complete at once.
func (e *recorder) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return 0, nil
	}
	gap := e.enter()
	ev, err := e.Endpoint.Post(a)
	if err != nil {
		e.lack(gap)
		e.leave()
		return ev, err
	}
	ev &= a.Wanted()
	if e.runner == nil {
		keep := ev
		if a.Len() <= told {
			keep &^= conduits.SourceDone
		}
		if keep != 0 {
			e.later(completion{a.Cookie, keep, a.Value})
			a.Value = 0
		}
		ev &^= keep
	}
	e.s.rec(recPost, flags(0, a.Wanted()&^ev), gap, uint64(a.Verb), uint64(a.Rank), a.Len(), e.address(a.Rank, a.At, a.Len()))
	e.begin(a.Wanted()&^ev, a.Cookie)
	e.leave()
	return ev, nil
}

// later has a completion come with the next poll.
func (e *recorder) later(c completion) {
	e.late = append(e.late, c)
	e.kept.Add(1)
}

// deliver reports the completions that were kept. It is run as a handler.
func (e *recorder) deliver() {
	for {
		e.mu.Lock()
		if len(e.late) == 0 {
			e.mu.Unlock()
			return
		}
		c := e.late[0]
		if e.late = e.late[1:]; len(e.late) == 0 {
			e.late = nil
		}
		e.mu.Unlock()
		e.kept.Add(-1)
		e.handed++
		e.Complete(c.cookie, c.ev, c.value, nil)
	}
}

// before begins a handler, or what hears of a completion, and returns with the lock held.
func (e *recorder) before() (outer time.Duration) {
	now := e.Now()
	e.mu.Lock()
	if e.depth > 0 {
		e.work += max(0, now-e.last)
	}
	e.last = now
	e.writePolls()
	outer, e.work = e.work, 0
	e.depth++
	return outer
}

// after ends it.
func (e *recorder) after(outer time.Duration) {
	now := e.Now()
	e.mu.Lock()
	e.depth--
	if e.work += max(0, now-e.last); e.work > 0 {
		e.s.rec(recWork, 0, 0, uint64(e.work))
		if e.looking {
			e.waited -= e.work
		}
	}
	e.work, e.last = outer, now
	e.mu.Unlock()
}

// Receive writes that a message is handled.
func (e *recorder) Receive(m *conduits.Message) {
	outer := e.before()
	e.s.rec(recGot, flags(m.Class, 0), 0, uint64(m.Src))
	e.s.hash(print(m.Tag, m.Words, len(m.Payload)))
	e.mu.Unlock()
	e.receiver.Receive(m)
	e.after(outer)
}

// Complete writes that an access is complete.
func (e *recorder) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	outer := e.before()
	if o, known := e.open[cookie]; known {
		e.s.rec(recDone, flags(0, ev), 0, e.begun-o.number+1)
		if o.want &^= ev; o.want == 0 {
			delete(e.open, cookie)
		} else {
			e.open[cookie] = o
		}
	}
	e.mu.Unlock()
	e.receiver.Complete(cookie, ev, value, err)
	e.after(outer)
}

// look begins a poll of a wait.
func (e *recorder) look() (from time.Duration) {
	now := e.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	gap := max(0, now-e.last)
	if e.depth > 0 {
		e.work += gap
		e.last = now
		return now
	}
	if e.waiting && e.empty && e.runner == nil && gap < compute {
		e.waited += gap
		gap = 0
	}
	if e.waiting && gap > 0 {
		e.stopWaiting(now - gap)
	}
	if !e.waiting && !e.credit {
		e.writePolls()
		e.s.rec(recWait, 0, gap)
		e.waiting, e.polls = true, 0
	} else if gap > 0 {
		e.lack(gap)
	}
	e.polls++
	e.last = now
	e.looking = true
	return now
}

// looked ends it.
func (e *recorder) looked(from time.Duration, n int) int {
	now := e.Now()
	e.mu.Lock()
	e.waited += now - from
	e.empty, e.looking = n == 0, false
	e.last = now
	e.to.full(e)
	e.mu.Unlock()
	return n
}

// ready reports the completions that were kept, if the endpoint below lets it.
func (e *recorder) ready() int {
	if e.kept.Load() == 0 {
		return 0
	}
	n := 0
	hand := func() {
		e.handed = 0
		e.deliver()
		n = e.handed
	}
	if e.lend == nil {
		hand()
	} else {
		e.lend.Deliver(hand)
	}
	return n
}

// Spin polls for a rank that waits.
func (e *recorder) Spin() int {
	from := e.look()
	n := e.ready()
	if n == 0 {
		n = e.Endpoint.Spin()
	}
	return e.looked(from, n)
}

// Poll polls, by the way unless the rank waits. Where time is real, what follows a poll of a wait at once is one more.
func (e *recorder) Poll() int {
	now := e.Now()
	e.mu.Lock()
	// Of waits, as that for a barrier, every other poll may be this one.
	waits := e.armed.Load() > 0 || e.credit || e.runner == nil && e.waiting && e.depth == 0 && now-e.last < compute
	e.mu.Unlock()
	if waits {
		from := e.look()
		return e.looked(from, e.ready()+e.Endpoint.Poll())
	}
	e.mu.Lock()
	gap := max(0, now-e.last)
	if e.waiting {
		e.stopWaiting(now - gap)
	}
	if e.ways > 0 && gap >= compute || e.runner != nil && gap > 0 {
		e.writePolls()
	}
	e.wayGap += gap
	e.ways++
	e.mu.Unlock()
	n := e.ready() + e.Endpoint.Poll()
	e.mu.Lock()
	e.to.full(e)
	e.leave()
	return n
}

// PollReplies polls for a handler that waits.
func (e *recorder) PollReplies() int {
	n := 0
	if e.kept.Load() > 0 {
		e.handed = 0
		e.deliver()
		n = e.handed
	}
	n += e.Endpoint.PollReplies()
	e.mu.Lock()
	e.leave()
	return n
}

// Idle may yield the processor.
func (e *recorder) Idle(idle int) bool {
	again := e.Endpoint.Idle(idle)
	e.pause()
	return again
}

// Arm announces that the caller is about to park.
func (e *recorder) Arm(b conduits.Blocked) conduits.Ticket {
	e.armed.Add(1)
	return e.Endpoint.Arm(b)
}

// Disarm takes the announcement back.
func (e *recorder) Disarm(t conduits.Ticket) {
	e.armed.Add(-1)
	e.Endpoint.Disarm(t)
}

// Park sleeps, unless a completion is there.
func (e *recorder) Park(t conduits.Ticket) {
	if e.kept.Load() > 0 {
		e.Disarm(t)
		return
	}
	e.armed.Add(-1)
	e.Endpoint.Park(t)
	e.pause()
}

// pause counts the time since the last call as waited for.
func (e *recorder) pause() {
	now := e.Now()
	e.mu.Lock()
	e.waited += max(0, now-e.last)
	e.last = max(now, e.last)
	e.mu.Unlock()
}

// Close leaves the job and writes what is left.
func (e *recorder) Close() error {
	e.lack(e.enter())
	first := !e.closed
	e.closed = true
	if first && e.Endpoint.Err() == nil && e.views != nil {
		e.s.rec(recClose, 0, 0, uint64(max(0, e.last-e.attached)), uint64(max(0, e.waited)))
	}
	e.mu.Unlock()
	err := e.Endpoint.Close()
	if first {
		if werr := e.to.flush(e); err == nil {
			err = werr
		}
	}
	return err
}
