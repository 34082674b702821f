package adapt

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/crowd"
	"github.com/argon-go/argon/internal/sleepers"
)

// waiters are the goroutines of a rank that wait for something to happen: they arm,
// look once more, and park. The zero value is not ready; see newWaiters.
type waiters struct {
	t     conduits.Transport
	most  int           // polls before a goroutine parks, unless processors are scarce
	seq   atomic.Uint32 // changes with whatever may end a wait
	armed atomic.Int32  // tickets that are out
	parks atomic.Uint64 // calls of Endpoint.Park that slept

	mu       sync.Mutex
	cond     sync.Cond
	watching bool // one of the parked goroutines is in Transport.Wait
	list     sleepers.List[conduits.Blocked]
}

func newWaiters(t conduits.Transport) *waiters {
	w := &waiters{t: t, most: patience}
	if t.Size() > runtime.GOMAXPROCS(0) {
		w.most = crowded
	}
	w.cond.L = &w.mu
	return w
}

// idling is the reason of callers that give none.
type idling struct{}

func (idling) Blocked() string { return "waiting for something to arrive" }

func (w *waiters) arm(b conduits.Blocked) conduits.Ticket {
	if b == nil {
		b = idling{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slot := w.list.Add(b)
	w.armed.Add(1)
	return conduits.Ticket{Seq: w.seq.Load(), Slot: slot}
}

func (w *waiters) disarm(t conduits.Ticket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.Remove(t.Slot)
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
		w.t.Wait(0)
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
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.list.All(), func(b conduits.Blocked) bool { return b == conduits.Blocked(carrying{}) })
}

const (
	// patience is after how many empty polls a goroutine parks, some tens of
	// microseconds: about what it takes to wake it.
	patience = 100
	// crowded is the same where ranks outnumber processors.
	crowded = 2
)

// idle lets other goroutines run, and says whether to poll on.
func (w *waiters) idle(empty int) bool {
	most := w.most
	if crowd.Now() {
		most = crowded
	}
	runtime.Gosched()
	return empty < most
}
