package udp

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

// waiter is where the goroutines of a rank wait, and how they are woken. One of those
// that are parked waits for the link (driver.watch), the others for cond. waitMu guards
// seq's changes and what comes after it; nothing else is locked with it held.
type waiter struct {
	link      link // woken when the goroutine that waits for it has to look
	single    bool // one goroutine runs at a time: a simulation
	processes bool // other ranks are other processes

	patience conc.Patience // in polls; none where ranks outnumber processors
	came     atomic.Bool   // datagrams, since the last Idle
	since    atomic.Int32  // which idle call they had come at

	seq          atomic.Uint32 // changes with whatever may end a wait
	armed        atomic.Int32
	parks, wakes atomic.Uint64
	waiting      conduits.Sleepers // by Ticket.Slot

	waitMu   sync.Mutex
	cond     sync.Cond
	watching bool            // one of the parked, or the attendant, is in link.Wait
	standing bool            // watching, and it is the attendant
	again    chan<- struct{} // the attendant's; nil if there is none
	rested   bool            // the attendant looks seldom
}

const (
	// mostPolls is how often one of two ranks of a host that has a processor to itself polls before it parks:
	// some tens of microseconds, about what it takes to be woken.
	mostPolls = 100
	// pollsPerGosched is how often polling lets goroutines of this process run.
	pollsPerGosched = 32
)

// Idle lets others run, until it is time to park.
func (w *waiter) Idle(idle int) bool {
	if w.single {
		return false
	}
	// A rank whose memory others access is right to poll for that, too, though none of its
	// own waits ends by it.
	if idle <= 0 {
		w.since.Store(0)
	}
	if w.came.Load() {
		w.came.Store(false)
		w.since.Store(int32(max(idle, 0)))
	}
	idle -= int(w.since.Load())
	return w.patience.Idle(idle, pollsPerGosched, w.yield)
}

// yield lets other ranks run.
func (w *waiter) yield() {
	if w.processes {
		sys.Yield()
	}
	runtime.Gosched()
}

// Arm announces a sleeper.
func (w *waiter) Arm(b conduits.Blocked) conduits.Ticket {
	t := conduits.Ticket{Slot: w.waiting.Add(b)}
	w.waitMu.Lock()
	defer w.waitMu.Unlock()
	w.armed.Add(1)
	t.Seq = w.seq.Load()
	return t
}

// Disarm takes it back.
func (w *waiter) Disarm(t conduits.Ticket) {
	w.waiting.Remove(t.Slot)
	w.waitMu.Lock()
	w.armed.Add(-1)
	w.waitMu.Unlock()
}

// Waiting lists the reasons of the goroutines that sleep.
func (w *waiter) Waiting() []conduits.Blocked { return w.waiting.All() }

// sleep returns when something has come that t has not seen. One of the sleepers waits
// for datagrams and for the engine's next deadline, and returns then, to poll; the
// others wait for its word.
func (w *waiter) sleep(t conduits.Ticket, d *driver) {
	w.waitMu.Lock()
	defer w.waitMu.Unlock()
	for w.seq.Load() == t.Seq {
		if w.watching {
			if w.standing {
				w.link.Wake() // the attendant makes room
			}
			w.cond.Wait()
			continue
		}
		w.watching = true
		w.waitMu.Unlock()
		began := time.Now()
		d.watch()
		w.patience.Slept(time.Since(began))
		w.waitMu.Lock()
		w.watching = false
		w.cond.Broadcast()
		w.recall()
		return
	}
}

// notify ends all waits of this rank.
func (w *waiter) notify() {
	w.seq.Add(1)
	if w.armed.Load() == 0 {
		return
	}
	w.waitMu.Lock()
	w.cond.Broadcast()
	watching := w.watching || w.single
	w.waitMu.Unlock()
	if watching {
		w.link.Wake()
	}
}

// standBy has the attendant be the goroutine that waits for the link, unless another
// one does.
func (w *waiter) standBy() bool {
	w.waitMu.Lock()
	defer w.waitMu.Unlock()
	if w.watching {
		return false
	}
	w.watching, w.standing = true, true
	return true
}

// standDown is the end of standBy.
func (w *waiter) standDown() {
	w.waitMu.Lock()
	w.watching, w.standing = false, false
	w.cond.Broadcast()
	w.waitMu.Unlock()
}

// rest reports whether the attendant may look seldom: another goroutine waits for the
// link, and recalls the attendant when it has.
func (w *waiter) rest() bool {
	w.waitMu.Lock()
	defer w.waitMu.Unlock()
	if w.watching {
		w.rested = true
	}
	return w.watching
}

// recall has the attendant look often again, with waitMu held.
func (w *waiter) recall() {
	if w.rested {
		w.rested = false
		select {
		case w.again <- struct{}{}:
		default:
		}
	}
}
