package adapt

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

// waiters are the goroutines of a rank that wait for something to happen: they arm,
// look once more, and park. The zero value is not ready; see newWaiters.
type waiters struct {
	t        conduits.Transport
	patience conc.Patience     // in polls; none where ranks outnumber processors
	seq      atomic.Uint32     // changes with whatever may end a wait
	armed    atomic.Int32      // tickets that are out
	parks    atomic.Uint64     // calls of Endpoint.Park that slept
	list     conduits.Sleepers // by Ticket.Slot

	mu       sync.Mutex
	cond     sync.Cond
	watching bool // one of the parked goroutines is in Transport.Wait
}

func newWaiters(t conduits.Transport) *waiters {
	w := &waiters{t: t}
	if t.Size() <= runtime.GOMAXPROCS(0) {
		w.patience.Set(mostPolls, true)
	}
	w.cond.L = &w.mu
	return w
}

func (w *waiters) arm(b conduits.Blocked) conduits.Ticket {
	slot := w.list.Add(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Add(1)
	return conduits.Ticket{Seq: w.seq.Load(), Slot: slot}
}

func (w *waiters) disarm(t conduits.Ticket) {
	w.list.Remove(t.Slot)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Add(-1)
}

// park sleeps until seq has changed since arm. One of the parked goroutines waits for
// the transport. What ends that may concern any of them, so all look again.
func (w *waiters) park(t conduits.Ticket) {
	defer w.disarm(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.seq.Load() == t.Seq {
		if w.watching {
			w.cond.Wait()
			continue
		}
		w.watching = true
		w.mu.Unlock()
		began := time.Now()
		w.t.Wait(0)
		w.patience.Slept(time.Since(began))
		w.mu.Lock()
		w.watching = false
		w.seq.Add(1)
		w.cond.Broadcast()
	}
}

// notify ends all waits of the rank.
func (w *waiters) notify() {
	w.seq.Add(1)
	if w.armed.Load() == 0 {
		return
	}
	w.mu.Lock()
	watching := w.watching
	w.cond.Broadcast()
	w.mu.Unlock()
	if watching {
		w.t.Kick()
	}
}

// blocked lists the reasons of the parked goroutines.
func (w *waiters) blocked() []conduits.Blocked {
	return slices.DeleteFunc(w.list.All(), func(b conduits.Blocked) bool { return conduits.Awaited(b) == conduits.Blocked(carrying{}) })
}

// mostPolls is how often a goroutine polls before it parks, some tens of microseconds: about
// what it takes to wake it.
const mostPolls = 100

// idle lets other goroutines run, and reports whether to poll on.
func (w *waiters) idle(empty int) bool { return w.patience.Idle(empty, 1, runtime.Gosched) }
