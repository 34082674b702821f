package udp

import (
	"math"
	"runtime"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/crowd"
	"github.com/argon-go/argon/internal/sys"
)

// room takes a credit, with mu held.
func (e *Endpoint) room(dst int, c conduits.Class) conduits.Status {
	if e.closed.Load() || e.failed.Load() != nil {
		return conduits.Dead
	}
	if e.c.gone(dst) {
		e.hearLocked() // if it left because it failed, then that comes first
		return conduits.Dead
	}
	if dst == e.rank {
		return e.reserveSelf(c)
	}
	st := e.eng.Reserve(dst, c)
	if st == conduits.NoCredit {
		e.flush()
	}
	return st
}

// Send sends a short message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	return e.SendPayload(dst, c, tag, words, nil)
}

// SendPayload sends a medium message, or a short one.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	e.checkLengths(len(words), len(payload))
	e.mu.Lock()
	if dst == e.rank {
		st := e.room(dst, c)
		if st == conduits.Ready {
			e.sent[c]++
			e.sendSelf(c, tag, words, payload)
		}
		e.mu.Unlock()
		if st == conduits.Ready {
			e.notify()
		}
		return st
	}
	defer e.mu.Unlock()
	st := e.room(dst, c)
	if st == conduits.Ready {
		now := e.l.Now()
		e.sent[c]++
		e.eng.Time(now)
		e.eng.Send(dst, c, tag, words, payload)
		e.flushAt(now)
	}
	return st
}

// flush sends what may be sent. It is called with mu held, which it gives up
// while the system is at work. One goroutine at a time sends; others leave it
// what they have, since it looks again before it stops.
func (e *Endpoint) flush() { e.flushAt(e.l.Now()) }

func (e *Endpoint) flushAt(now time.Duration) {
	if e.sending {
		return
	}
	if !e.eng.Ready() {
		e.keep()
		return
	}
	e.sending = true
	for {
		for b := e.out.room(e.most); b != nil; b = e.out.room(e.most) {
			dst, n, data, ok := e.eng.NextParts(now, b)
			if !ok {
				break
			}
			e.out.add(dst, n, data)
		}
		if len(e.out.list) == 0 {
			break
		}
		e.mu.Unlock()
		e.l.Send(e.out)
		e.mu.Lock()
		e.out.clear()
	}
	e.sending = false
	e.keep()
}

const (
	// tickEvery is how long messages wait for company if nobody polls, or twice that.
	tickEvery = 300 * time.Microsecond
	// ticks is after how many of them in vain the ticking ends.
	ticks = 10
)

// keep sees to it that messages which wait for company do not wait for long if
// this rank does not poll, and that the watcher knows until when, with mu held.
func (e *Endpoint) keep() {
	if !e.ticking && !e.single && !e.closed.Load() && e.eng.Held() {
		e.ticking = true
		go e.tick()
	}
	// As long as something is held its end is the next deadline, which is the
	// tick's.
	if e.until > 0 && (!e.ticking || !e.eng.Held()) {
		e.remind()
	}
}

// tick sends what has waited for company. It ends when there has been nothing for
// a while.
func (e *Endpoint) tick() {
	for idle := 0; idle < ticks && !e.closed.Load(); idle++ {
		time.Sleep(tickEvery)
		e.mu.Lock()
		if e.eng.Held() {
			idle = 0
			e.push()
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	e.ticking = false
	e.keep()
	e.mu.Unlock()
}

// push sends what waits for company, with mu held.
func (e *Endpoint) push() {
	if e.eng.Held() {
		e.eng.Push()
		e.flush()
	}
}

const (
	// batch is the most messages and completions that one poll takes.
	batch = 64
	// gulp is after how many datagrams a poll receives no more.
	gulp = 64
	// flooded is how many bytes a socket never keeps: when more have been received
	// than that, all is there that had come before the first of them.
	flooded = 4 * socketBuffer
)

// progress receives, lets the time pass, and sends. Any goroutine may do it; one
// at a time receives. It says whether there is something to be run.
func (e *Endpoint) progress() bool {
	// A failure is heard of before what comes after it, so that a caller that
	// has just seen that it must wait does not take it for the reason.
	any := e.hear()
	var now, drained time.Duration
	in := &e.in
	if e.single {
		// The receiver may be suspended in the middle of it; others must receive
		// too, since only that lets their time pass.
		in = e.spareInbox()
		defer func() { e.spare = append(e.spare, in) }()
	}
	if e.single || e.inMu.TryLock() {
		if !e.single {
			// The waiter looks at the clock before there is something to do, then.
			now = e.l.Now()
		}
		for taken := 0; taken < gulp; {
			if !e.l.Recv(in) {
				drained = now
				e.flood, e.floodAt = 0, now
				break
			}
			any = true
			if e.single || taken > 0 {
				now = e.l.Now()
			}
			taken += max(1, len(in.list))
			for l := in.list; len(l) > 0; {
				n := min(len(l), batch)
				e.mu.Lock()
				for _, d := range l[:n] {
					e.eng.Receive(now, d.src, d.b)
					e.flood += len(d.b)
				}
				e.mu.Unlock()
				l = l[n:]
			}
			if e.flood > flooded {
				drained = e.floodAt
				e.flood, e.floodAt = 0, now
			}
			if !in.more {
				break
			}
		}
		if !e.single {
			e.inMu.Unlock()
		}
	}
	if now == 0 {
		now = e.l.Now()
	}
	if e.single {
		drained = now // nothing stops a rank between Recv and here
	}
	e.mu.Lock()
	e.turns++
	// What has come after Recv found nothing, even if this process was stopped since,
	// is no silence.
	e.eng.AdvanceTo(now, drained)
	dead, died := e.eng.NextDead()
	var why error
	if died {
		why = e.eng.Silence(dead)
	}
	e.flushAt(now)
	pending := e.runnable()
	e.mu.Unlock()
	if r, err := e.l.Unreachable(); r >= 0 && !e.c.gone(r) {
		e.c.fail(r, err)
	}
	if died && !e.c.gone(dead) {
		e.c.fail(dead, why)
	}
	if any {
		e.notify()
	}
	return pending
}

// spareInbox returns an inbox that nobody uses, in a simulation.
func (e *Endpoint) spareInbox() *inbox {
	n := len(e.spare)
	if n == 0 {
		return new(inbox)
	}
	in := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return in
}

// hear takes note of the job's failure and says whether it is news.
func (e *Endpoint) hear() bool {
	if e.c.failure() == nil || e.failed.Load() != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hearLocked()
}

// hearLocked is hear with mu held.
func (e *Endpoint) hearLocked() bool {
	f := e.c.failure()
	if f == nil || !e.failed.CompareAndSwap(nil, f) {
		return false
	}
	e.eng.Fail(f)
	return true
}

// Poll runs what has arrived.
func (e *Endpoint) Poll() int {
	if e.closed.Load() || !e.attached.Load() {
		return 0
	}
	if e.loop.lookElsewhere() && !e.progress() {
		return 0
	}
	me := sys.Goroutine()
	n := 0
	for {
		if !e.poller.CompareAndSwap(0, me) {
			break
		}
		n += e.deliver(batch-n, false)
		e.poller.Store(0)
		// What another goroutine has received meanwhile, and could not run, is ours.
		if n >= batch || !e.pending() {
			break
		}
	}
	if n > 0 {
		e.settle()
	}
	return n
}

// settle sends what messages that were run have brought about.
func (e *Endpoint) settle() {
	e.mu.Lock()
	e.eng.Push()
	if e.eng.Ready() {
		e.flush()
	} else {
		e.keep()
	}
	e.mu.Unlock()
	e.notify()
}

// pending says whether there is something to be run.
func (e *Endpoint) pending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed.Load() && e.runnable()
}

// runnable says whether there is something to be run, with mu held.
func (e *Endpoint) runnable() bool { return e.loop.waiting.Load() > 0 || e.eng.Pending() }

// Spin is Poll: each look at the socket takes a while. Its caller waits for
// something, so nothing that he has sent waits for company.
func (e *Endpoint) Spin() int {
	e.mu.Lock()
	e.push()
	e.mu.Unlock()
	return e.Poll()
}

// PollReplies runs replies and completions.
func (e *Endpoint) PollReplies() int {
	e.mu.Lock()
	e.push()
	e.mu.Unlock()
	e.progress()
	n := e.deliver(batch, true)
	if n > 0 {
		e.settle()
	}
	return n
}

// deliver runs up to most things that have arrived.
func (e *Endpoint) deliver(most int, nested bool) int {
	n := 0
	var m *engine.Message
	e.mu.Lock()
	for n < most && !e.closed.Load() {
		if c, ok := e.eng.NextCompletion(); ok {
			e.mu.Unlock()
			e.receiver.Complete(c.Cookie, c.Event, c.Value, c.Err)
			n++
			e.mu.Lock()
			continue
		}
		m = e.eng.NextMessage(conduits.Reply)
		if m == nil {
			own := e.nextSelf(conduits.Reply)
			if own == nil && !nested {
				// Neither kind of request keeps the other one waiting for ever.
				if e.loop.next = !e.loop.next; e.loop.next {
					own = e.nextSelf(conduits.Request)
				}
				if own == nil {
					m = e.eng.NextMessage(conduits.Request)
				}
				if own == nil && m == nil {
					own = e.nextSelf(conduits.Request)
				}
			}
			if own != nil {
				e.got[own.Class]++
				e.mu.Unlock()
				e.receiver.Receive(&own.Message)
				n++
				e.mu.Lock()
				e.releaseSelf(own)
				continue
			}
		}
		if m == nil {
			break
		}
		e.got[m.Class]++
		e.mu.Unlock()
		e.receiver.Receive(&m.Message)
		n++
		e.mu.Lock()
		e.eng.Release(m)
	}
	e.mu.Unlock()
	return n
}

// Deliver runs f as a handler.
func (e *Endpoint) Deliver(f func()) bool {
	if e.closed.Load() || !e.poller.CompareAndSwap(0, sys.Goroutine()) {
		return false
	}
	f()
	e.poller.Store(0)
	e.notify()
	return true
}

// Polling says whether the caller is in a handler.
func (e *Endpoint) Polling() bool { return sys.HasGoroutine && e.poller.Load() == sys.Goroutine() }

const (
	// patient is after how many polls in vain a rank parks that has a processor to
	// itself: some tens of microseconds, about what it takes to be woken.
	patient = 100
	// crowded is that of a rank that has none.
	crowded = 2
	// spinsPerGosched is how often such a poll lets goroutines of this process run.
	spinsPerGosched = 32
)

// Idle lets others run, until it is time to park.
func (e *Endpoint) Idle(idle int) bool {
	patience := e.patience
	if !e.single && crowd.Now() {
		patience = min(patience, crowded)
	}
	switch {
	case idle >= patience:
		return false
	case patience > crowded:
		if idle%spinsPerGosched == spinsPerGosched-1 {
			runtime.Gosched()
		}
	default:
		if e.client != nil { // other ranks are other processes
			sys.Yield()
		}
		runtime.Gosched()
	}
	return true
}

// idling is the reason of callers that give none.
type idling struct{}

func (idling) Blocked() string { return "waiting for something to arrive" }

// Arm announces a sleeper.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket {
	if b == nil {
		b = idling{}
	}
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	t := conduits.Ticket{Slot: e.waiting.Add(b)}
	e.armed.Add(1)
	t.Seq = e.seq.Load()
	return t
}

// Disarm takes it back.
func (e *Endpoint) Disarm(t conduits.Ticket) {
	e.waitMu.Lock()
	e.waiting.Remove(t.Slot)
	e.armed.Add(-1)
	e.waitMu.Unlock()
}

// Park sleeps. One of the sleepers waits for datagrams and for the engine's next
// deadline, and returns then, to poll; the others wait for its word.
func (e *Endpoint) Park(t conduits.Ticket) {
	defer e.Disarm(t)
	if e.poller.Load() == 0 && e.pending() {
		return
	}
	e.mu.Lock()
	e.push()
	until := e.deadline()
	e.mu.Unlock()
	e.parks.Add(1)
	if e.single {
		if e.seq.Load() == t.Seq {
			e.l.Wait(until)
		}
		return
	}
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	for e.seq.Load() == t.Seq {
		if e.watching {
			if e.standing {
				e.l.Wake() // the attendant makes room
			}
			e.cond.Wait()
			continue
		}
		e.watching = true
		e.waitMu.Unlock()
		e.watch()
		e.waitMu.Lock()
		e.watching = false
		e.cond.Broadcast()
		e.recall()
		return
	}
}

// deadline is when the engine has something to do, for link.Wait, with mu held.
func (e *Endpoint) deadline() time.Duration {
	t, ok := e.eng.Deadline()
	if !ok {
		return 0
	}
	return max(t, 1)
}

// watch waits for the link and for the engine's next deadline. It is called by the
// goroutine that has set watching. Others may send meanwhile: see remind.
func (e *Endpoint) watch() {
	e.mu.Lock()
	until := e.deadline()
	e.until = until
	if until == 0 {
		e.until = math.MaxInt64
	}
	e.mu.Unlock()
	e.l.Wait(until)
	e.mu.Lock()
	e.until = 0
	e.mu.Unlock()
}

// remind ends watch if the engine has a deadline now that comes before the one that
// is waited for, with mu held: what was sent while another goroutine waits may be lost,
// and its sender need never poll again.
func (e *Endpoint) remind() {
	if t, ok := e.eng.Deadline(); ok && t < e.until {
		e.until = 0
		e.l.Wake()
	}
}

// notify ends all waits of this rank.
func (e *Endpoint) notify() {
	e.seq.Add(1)
	if e.armed.Load() == 0 {
		return
	}
	e.waitMu.Lock()
	e.cond.Broadcast()
	watching := e.watching || e.single
	e.waitMu.Unlock()
	if watching {
		e.l.Wake()
	}
}
