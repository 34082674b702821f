package shm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

// waiter is where the goroutines of this rank wait: how long they spin and yield, and
// which of them sleep. waitMu guards what follows it, watcher.mu what is the watcher's;
// all else is atomic, or set before Attach.
type waiter struct {
	seat
	bell *bell // the rank's own, for the announcement

	patience conc.Patience // in Spins; none in a job with more ranks than processors
	nested   atomic.Int32  // handlers that sleep until they can reply
	parks    atomic.Uint64

	// Of the watcher: looks in a row at which sleepers had no announcement.
	stalled    int
	stalledSeq uint32

	waiting conduits.Sleepers // by Ticket.Slot

	waitMu sync.Mutex
	armed  int
}

const (
	// mostSpins is how long one of two ranks that has a processor waits before it sleeps, in Spins of about
	// 0.7 us: some 70 us, where being woken takes 5 to 20. Which side fences does not depend
	// on that, so ranks may differ, and change, at any time.
	mostSpins = 100
	// spinsPerGosched is how often spinning lets goroutines of this process run.
	spinsPerGosched = 32
)

// Idle spins, or yields, until it is time to sleep.
func (w *waiter) Idle(idle int) bool { return w.patience.Idle(idle, spinsPerGosched, w.j.yield) }

// yield lets other ranks run.
func (j *job) yield() {
	if j.local != nil {
		runtime.Gosched()
	} else {
		sys.Yield()
	}
}

// arm announces a sleeper; nested says that it is in a handler.
func (w *waiter) arm(b conduits.Blocked, nested bool) conduits.Ticket {
	t := conduits.Ticket{Slot: w.waiting.Add(b)}
	w.waitMu.Lock()
	w.armed++
	// The number first, then the announcement: the waker that clears it
	// changes the number afterwards, so Park cannot miss it.
	t.Seq = atomic.LoadUint32(w.word(w.rank, ctlSeq))
	if l := w.bell.lanes; l != nil {
		l.announce(w.lane, nested)
	} else {
		atomic.StoreUint32(w.bell.parked, 1)
	}
	w.waitMu.Unlock()
	if conc.PlainRelease && !w.bell.fence {
		if w.j.local != nil {
			sys.Barrier()
		} else {
			sys.GlobalBarrier()
		}
	}
	return t
}

// disarm takes the announcement back when no other goroutine has made one.
func (w *waiter) disarm(t conduits.Ticket, nested bool) {
	w.waiting.Remove(t.Slot)
	w.waitMu.Lock()
	w.armed--
	if l := w.bell.lanes; l != nil {
		l.withdraw(w.lane, nested)
	} else if w.armed == 0 {
		atomic.StoreUint32(w.bell.parked, 0)
	}
	w.waitMu.Unlock()
}

// sleep returns when this rank has been woken since t was armed.
func (w *waiter) sleep(t conduits.Ticket) {
	w.parks.Add(1)
	began := time.Now()
	w.j.sleep(w.rank, w.lane, t.Seq)
	w.patience.Slept(time.Since(began))
}

// remindSleepers wakes this rank's sleepers if their announcement is gone although
// no wake has come for long: they could sleep for ever.
func (w *waiter) remindSleepers() {
	w.waitMu.Lock()
	armed := w.armed
	w.waitMu.Unlock()
	seq := atomic.LoadUint32(w.word(w.rank, ctlSeq))
	if armed == 0 || seq != w.stalledSeq || atomic.LoadUint32(w.bell.parked) != 0 {
		w.stalled, w.stalledSeq = 0, seq
		return
	}
	if w.stalled++; w.stalled >= stalledLooks {
		w.stalled = 0
		w.j.rouse(w.rank, w.lane)
	}
}
