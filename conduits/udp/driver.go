package udp

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// driver carries datagrams between the engine and the link, and the engine's news to
// the lifecycle and to waiters. mu guards the engine, all that is declared after it down
// to inMu, and mailbox's messages; nothing that may switch to another rank of a simulation
// is called with it held. inMu is held to receive, and guards what follows.
type driver struct {
	l    link
	life *lifecycle
	w    *waiter
	most int // bytes of a datagram

	mu      sync.Mutex
	eng     *engine.Engine
	turns   uint64        // calls of progress
	out     *outbox       // of the goroutine that sends
	sending bool          // there is one
	ticking bool          // tick runs, for messages that wait for company
	until   time.Duration // when the goroutine in watch returns; 0: none is in it, or it has been woken
	timed   time.Duration // when the engine's timers were looked at
	held    atomic.Bool   // messages wait for company, as keep has found; others read it without mu

	inMu sync.Mutex
	in   inbox
	// While the socket is never found empty: bytes received since floodAt.
	flood   int
	floodAt time.Duration
	spare   []*inbox // of a simulation, where one goroutine runs at a time
}

// Now is the link's time.
func (d *driver) Now() time.Duration { return d.l.Now() }

// Err is the job's failure.
func (d *driver) Err() error {
	if err := d.life.over(); err != nil {
		return err
	}
	return d.l.Err()
}

// flush sends what may be sent. It is called with mu held, which it gives up
// while the system is at work. One goroutine at a time sends; others leave it
// what they have, since it looks again before it stops.
func (d *driver) flush() {
	var now time.Duration // which does not matter if nothing is ready
	if d.eng.Ready() {
		now = d.l.Now()
	}
	d.flushAt(now)
}

func (d *driver) flushAt(now time.Duration) {
	if d.sending {
		return
	}
	if !d.eng.Ready() {
		d.keep()
		return
	}
	d.sending = true
	for {
		for b := d.out.room(d.most); b != nil; b = d.out.room(d.most) {
			dst, n, data, ok := d.eng.NextParts(now, b)
			if !ok {
				break
			}
			d.out.add(dst, n, data)
		}
		if len(d.out.list) == 0 {
			break
		}
		d.mu.Unlock()
		d.l.Send(d.out)
		d.mu.Lock()
		d.out.clear()
	}
	d.sending = false
	d.keep()
}

const (
	// tickEvery is how long messages wait to be coalesced if no goroutine polls, or twice that.
	tickEvery = 300 * time.Microsecond
	// ticks is after how many of them that find nothing the ticking ends.
	ticks = 10
)

// keep bounds how long held messages wait if this rank does not poll, by starting tick,
// and ends watch if the engine's next deadline has come nearer. mu is held.
func (d *driver) keep() {
	held := d.eng.Held()
	if d.held.Load() != held {
		d.held.Store(held)
	}
	if held && !d.ticking && !d.w.single && !d.life.closed.Load() {
		d.ticking = true
		go d.tick()
	}
	// As long as something is held its end is the next deadline, which is the
	// tick's.
	if d.until > 0 && (!d.ticking || !held) {
		d.remind()
	}
}

// tick sends what has waited for company. It ends when there has been nothing for
// a while.
func (d *driver) tick() {
	for idle := 0; idle < ticks && !d.life.closed.Load(); idle++ {
		time.Sleep(tickEvery)
		d.mu.Lock()
		if d.eng.Held() {
			idle = 0
			d.push()
		}
		d.mu.Unlock()
	}
	d.mu.Lock()
	d.ticking = false
	d.keep()
	d.mu.Unlock()
}

// push sends what waits for company, with mu held.
func (d *driver) push() {
	if d.eng.Held() {
		d.eng.Push()
		d.flush()
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
	// patient is how long the engine's timers may wait for what is to be run.
	patient = 20 * time.Microsecond
)

// receive hands the engine what has come. It is called with inMu held, but in a simulation, which it gives up, and returns with mu
// held: the time, 0 if it has not looked at the clock, and since when everything has been
// received that had come, 0 if that is not known. any: some of it was for this rank.
func (d *driver) receive() (now, drained time.Duration, any bool) {
	in := &d.in
	if d.w.single {
		// The receiver may be suspended in the middle of it; others must receive
		// too, since only that lets their time pass.
		in = d.spareInbox()
	} else {
		// The waiter looks at the clock before there is something to do, then.
		now = d.l.Now()
	}
	locked := false
	for taken := 0; !locked; {
		if !d.l.Recv(in) {
			drained = now
			d.flood, d.floodAt = 0, now
			break
		}
		any = any || len(in.list) > 0
		if d.w.single || taken > 0 {
			now = d.l.Now()
		}
		taken += max(1, len(in.list)+in.others)
		d.mu.Lock()
		for l := in.list; ; d.mu.Lock() {
			n := min(len(l), batch)
			for _, g := range l[:n] {
				d.eng.Receive(now, g.src, g.b)
				d.flood += len(g.b)
			}
			if l = l[n:]; len(l) == 0 {
				break
			}
			d.mu.Unlock()
		}
		if d.flood += in.otherBytes; d.flood > flooded {
			drained = d.floodAt
			d.flood, d.floodAt = 0, now
		}
		if locked = !in.more || taken >= gulp; !locked {
			d.mu.Unlock()
		}
	}
	if d.w.single {
		d.spare = append(d.spare, in)
	} else {
		d.inMu.Unlock()
	}
	if !locked {
		d.mu.Lock()
	}
	return now, drained, any
}

// progress receives, lets the time pass, and sends. Any goroutine may do it; one at a time does, and others
// leave it to that one: goroutines that wait for credit, which all poll, would hold up each other and those that send.
// It reports whether the engine has something to be run: not, if another goroutine receives, which looks for that itself.
func (d *driver) progress() bool {
	// A failure is heard of before what comes after it, so that a caller that
	// has just seen that it must wait does not take it for the reason.
	news := d.hear()
	if !d.w.single && !d.inMu.TryLock() {
		if news {
			d.w.notify()
		}
		return false
	}
	now, drained, any := d.receive() // mu is held
	if now == 0 {
		now = d.l.Now()
	}
	if any && !d.w.came.Load() {
		d.w.came.Store(true)
	}
	d.turns++
	if d.w.single {
		drained = now // nothing stops a rank between Recv and here
	} else if any {
		// Answers, and what is to be run, do not wait for the timers.
		d.flushAt(now)
		if now-d.timed < patient && d.eng.Pending() {
			d.mu.Unlock()
			d.w.notify()
			return true
		}
	}
	// A datagram that came after Recv found nothing, even if this process was stopped
	// since, ends a silence.
	d.timed = now
	d.eng.AdvanceTo(now, drained)
	dead, died := d.eng.NextDead()
	var why error
	if died {
		why = d.eng.Silence(dead)
	}
	d.flushAt(now)
	pending := d.eng.Pending()
	d.mu.Unlock()
	c := d.life.c
	if r, err := d.l.Unreachable(); r >= 0 && !c.gone(r%d.life.size) {
		c.fail(r%d.life.size, err)
	}
	if dead %= d.life.size; died && !c.gone(dead) {
		c.fail(dead, why)
	}
	if news || any {
		d.w.notify()
	}
	return pending
}

// progressed counts the calls of progress.
func (d *driver) progressed() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turns
}

// spareInbox returns an inbox that is not in use, in a simulation.
func (d *driver) spareInbox() *inbox {
	n := len(d.spare)
	if n == 0 {
		return new(inbox)
	}
	in := d.spare[n-1]
	d.spare = d.spare[:n-1]
	return in
}

// hear takes note of the job's failure and reports whether it is news.
func (d *driver) hear() bool {
	if d.life.c.failure() == nil || d.life.failed.Load() != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hearLocked()
}

// hearLocked is hear with mu held.
func (d *driver) hearLocked() bool {
	f := d.life.c.failure()
	if f == nil || !d.life.failed.CompareAndSwap(nil, f) {
		return false
	}
	d.eng.Fail(f)
	return true
}

// Fail declares this rank failed.
func (d *driver) Fail(err error) {
	d.life.c.fail(d.life.rank, err)
	d.hear()
	d.w.notify()
}

// Blame declares rank failed, because of what the caller knows of it otherwise.
func (d *driver) Blame(rank int, err error) {
	d.life.c.fail(rank, err)
	d.hear()
	d.w.notify()
}

// Failure is Err for a caller that does not poll, and would not hear of it.
func (d *driver) Failure() error {
	if d.hear() {
		d.w.notify()
	}
	return d.Err()
}

// part notes that rank has left.
func (d *driver) part(rank int) {
	d.mu.Lock()
	for n := rank; n < d.eng.Config().Size; n += d.life.size {
		d.eng.Part(n)
	}
	d.mu.Unlock()
}

// doubted is Engine.Doubted, and vouch Engine.Vouch, of a number.
func (d *driver) doubted(number int) (silent time.Duration, doubted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.eng.Doubted(number)
}

func (d *driver) vouch(number int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.eng.Vouch(number)
}

// departed is the error of operations on a rank that has left; mu is held.
func (d *driver) departed(op string, rank int) error {
	d.hearLocked() // if it left because it failed, then that comes first
	if f := d.life.failed.Load(); f != nil {
		return f
	}
	return &conduits.PeerError{Rank: rank, Op: "udp: " + op, Err: errLeft}
}

var errLeft = errors.New("it has left the job")

// deadline is when the engine has something to do, for link.Wait, with mu held.
func (d *driver) deadline() time.Duration {
	t, ok := d.eng.Deadline()
	if !ok {
		return 0
	}
	return max(t, 1)
}

// watch waits for the link and for the engine's next deadline. It is called by the
// goroutine that has set watching. Others may send meanwhile: see remind.
func (d *driver) watch() {
	d.mu.Lock()
	until := d.deadline()
	d.until = until
	if until == 0 {
		d.until = math.MaxInt64
	}
	d.mu.Unlock()
	d.l.Wait(until)
	d.mu.Lock()
	d.until = 0
	d.mu.Unlock()
}

// remind ends watch if the engine has a deadline now that comes before the one that
// is waited for, with mu held: what was sent while another goroutine waits may be lost,
// and its sender need never poll again.
func (d *driver) remind() {
	if t, ok := d.eng.Deadline(); ok && t < d.until {
		d.until = 0
		d.l.Wake()
	}
}
