package hybrid

import (
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// A look at the network is a system call and more, which takes ten times as long as
// the way of a message through shared memory; so it is not part of every poll.
// While polls of shared memory find something looks are busy apart. When they find
// nothing, looks are eager apart if the network brought the last message, but calm
// apart if shared memory did, since what comes there next would wait for the end
// of a look. A look that finds something is followed by another at once. The clock,
// too, is read only once for every clock messages. A goroutine that is about to park
// always looks.
const (
	eager = time.Microsecond
	calm  = 5 * time.Microsecond
	busy  = 50 * time.Microsecond
	clock = 32
)

// due reports whether to look at the network after a poll that found n.
func (e *Endpoint) due(n int) bool {
	if e.arming.Load() > 0 {
		return true
	}
	apart := uint64(eager)
	if n > 0 || atomic.LoadUint64(&e.afar) == 0 {
		apart = uint64(calm)
		ran := uint64(clock / 4) // an empty poll counts as so many messages
		if n > 0 {
			apart, ran = uint64(busy), uint64(n)
			conc.Release64(&e.afar, 0)
		}
		turn := atomic.LoadUint64(&e.turn)
		// One lost, when several goroutines poll, does no harm.
		conc.Release64(&e.turn, turn+ran)
		if turn/clock == (turn+ran)/clock {
			return false
		}
	}
	return uint64(e.near.Now()) >= atomic.LoadUint64(&e.looked)+apart
}

// look polls far. Its handlers are handlers of near, too: no goroutine runs another one
// at the same time, and they may reply to any rank. ok is false if another
// goroutine was polling.
func (e *Endpoint) look() (n int, ok bool) { return e.near.DeliverCount(e.pollFar) }

// lookFar is the function that look has near deliver.
func (e *Endpoint) lookFar() int {
	e.looks.Add(1)
	e.inFar = true
	n := e.far.Poll()
	e.inFar = false
	looked := uint64(0)
	if n == 0 {
		looked = uint64(e.near.Now())
	} else {
		conc.Release64(&e.afar, 1)
	}
	conc.Release64(&e.looked, looked)
	return n
}

// Poll runs what has arrived.
func (e *Endpoint) Poll() int {
	n := e.near.Poll()
	if e.due(n) {
		k, _ := e.look()
		n += k
	}
	return n
}

// Spin is Poll that watches shared memory for a moment.
func (e *Endpoint) Spin() int {
	n := e.near.Spin()
	if e.due(n) {
		k, _ := e.look()
		n += k
	}
	return n
}

// PollReplies runs the replies of both: a cycle of ranks that wait for each other's
// credit may go through both.
func (e *Endpoint) PollReplies() int {
	n := e.near.PollReplies()
	e.looks.Add(1)
	if e.inFar {
		return n + e.far.PollReplies()
	}
	// A handler of near may poll replies of far as one of its handlers only. No other
	// goroutine is in one: that takes near.
	e.inFar = true
	n += e.far.RepliesBeside()
	e.inFar = false
	return n
}

// Deliver runs f as a handler of both.
func (e *Endpoint) Deliver(f func()) bool {
	done := false
	e.near.Deliver(func() {
		done = e.far.Deliver(func() {
			e.inFar = true
			f()
			e.inFar = false
		})
	})
	return done
}

// Polling reports whether the caller is in a handler.
func (e *Endpoint) Polling() bool { return e.near.Polling() }

// Idle is that of the shared memory, which counts polls: most of those watch a ring for a moment. Where the
// network brought the last message there may be none to watch, and polls take a tenth of that. So looks at the network
// are counted there: a rank would sleep before an answer could come.
func (e *Endpoint) Idle(idle int) bool {
	if idle <= 0 {
		e.idled.Store(e.looks.Load())
	} else if atomic.LoadUint64(&e.afar) != 0 {
		idle = max(1, min(idle, int(e.looks.Load()-e.idled.Load())))
	}
	return e.near.Idle(idle)
}

// Waiting for two things at once: goroutines park in near. While any of them does,
// the watcher, a goroutine of this package, is parked in far, and wakes near when it
// returns. Nothing is slept through:
//
//   - What happens in near after Arm ends near's Park, as near promises.
//   - Arm arms in far, too, and Park hands that ticket to the watcher, whose Park
//     then returns for anything that has happened in far since then, and is
//     followed by near.Wake, which ends near's Park.
//   - If the watcher is parked with an older ticket, ours replaces it: what this rank
//     has sent since then gives far new deadlines, which only a new Park knows. The
//     watcher, woken, takes our ticket and does not wake near first, or goroutines that
//     park would wake each other in turns. One that parked before us misses nothing by
//     that: what happened before our Arm has been found by the look that followed,
//     which woke all that were parked if it has run handlers (else far's Wake does, in
//     hand), and for what happened after it the new Park returns.
//   - What had come to far before Arm was run by the poll that follows Arm: while
//     a goroutine is between Arm and Park every poll looks at far. If it could not, since another
//     goroutine was polling, then Park looks again (see lookSince).
//
// The watcher stays in far after those in near have been woken by something else.
// That costs far's next wake-up, and one of near that finds no sleeper.

// wait is the state of a goroutine that has armed.
type wait struct {
	used      bool
	near, far conduits.Ticket
	looks     uint64 // Endpoint.looks at that time
}

// Arm announces a sleeper.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket {
	e.arming.Add(1)
	w := wait{used: true, near: e.near.Arm(b), far: e.far.Arm(watching{})}
	w.looks = e.looks.Load() // a look that began before has perhaps not seen what came before far's Arm
	e.mu.Lock()
	defer e.mu.Unlock()
	i := 0
	for i < len(e.waits) && e.waits[i].used {
		i++
	}
	if i == len(e.waits) {
		e.waits = append(e.waits, wait{})
	}
	e.waits[i] = w
	return conduits.Ticket{Seq: w.near.Seq, Slot: int32(i)}
}

// watching is the reason that far knows for goroutines that park here.
type watching struct{}

func (watching) Blocked() string { return "watching for datagrams" }

// release gives the slot of t back.
func (e *Endpoint) release(t conduits.Ticket) wait {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waits[t.Slot]
	e.waits[t.Slot] = wait{}
	return w
}

// Disarm takes the announcement back.
func (e *Endpoint) Disarm(t conduits.Ticket) {
	w := e.release(t)
	e.far.Disarm(w.far)
	e.near.Disarm(w.near)
	e.arming.Add(-1)
}

// Park sleeps until something has arrived in either.
func (e *Endpoint) Park(t conduits.Ticket) {
	e.mu.Lock()
	looks := e.waits[t.Slot].looks
	e.mu.Unlock()
	handler := e.near.Polling()
	if e.hear() != nil || !handler && !e.lookSince(looks) {
		e.Disarm(t)
		return
	}
	w := e.release(t)
	e.hand(w.far)
	e.arming.Add(-1)
	switch {
	case !handler:
		e.near.Park(w.near)
	case e.inFar:
		e.nested.Add(1)
		e.near.Park(w.near)
		e.nested.Add(-1)
	default:
		// Far must know that a handler sleeps: else the requests there, which it
		// cannot run, would wake it over and over.
		e.nested.Add(1)
		e.sleep = w.near
		if !e.far.Deliver(e.parkNested) {
			e.near.Disarm(w.near)
		}
		e.nested.Add(-1)
	}
}

// lookSince looks at far unless that has been done since there were so many looks, and
// reports whether Park may sleep. A look that another goroutine began since then counts:
// when it has run handlers it wakes those that have armed in near. So does the end of a
// handler that sleeps.
func (e *Endpoint) lookSince(looks uint64) bool {
	if e.looks.Load() != looks {
		return true
	}
	n, ok := e.look()
	return ok && n == 0 || !ok && e.nested.Load() > 0
}

// hand gives a ticket of far to the watcher, or back.
func (e *Endpoint) hand(t conduits.Ticket) {
	e.mu.Lock()
	if e.stopped {
		e.mu.Unlock()
		e.far.Disarm(t)
		return
	}
	if e.handed == nil {
		e.handed = make(chan struct{}, 1)
		go e.watch()
	}
	old, replaced := e.next, e.hasNext
	e.next, e.hasNext = t, true
	away := e.watching
	if !away && !replaced {
		e.handed <- struct{}{} // has room: the watcher has taken the one before
	}
	e.mu.Unlock()
	if replaced {
		e.far.Disarm(old)
	}
	// The one that parked with the old ticket may not have heard of what happened before
	// ours, and a handler is not woken by a look: so the watcher is not to sleep.
	if away || replaced {
		e.far.Wake(e.rank)
	}
}

// watch is the watcher.
func (e *Endpoint) watch() {
	for range e.handed {
		for t, ok := e.nextTicket(); ok; t, ok = e.nextTicket() {
			e.far.Park(t)
		}
		_ = e.hear()
		e.near.Wake(e.rank)
	}
}

// nextTicket is the watcher's next ticket, if it has one.
func (e *Endpoint) nextTicket() (conduits.Ticket, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.next, e.hasNext
	e.hasNext, e.watching = false, ok
	return t, ok
}
