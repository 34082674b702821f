package gas

import (
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
)

// RegisterTask is RegisterFunc for functions that may wait: put and get, call other
// ranks, lock. A task does not run as a handler but later, as what Node.Defer is given, and its
// result returns to the caller then. It must not make collective calls or enter barriers.
//
// A task that waits lets others run on top of it, on the same goroutine, which go on until
// they return. So it must not wait for what a task below it would have to do: hold a lock, say,
// which one on top of it wants. Tasks that call tasks, of any rank and to any depth, are
// no such case. Config.Tasks bounds how many a rank has: a call beyond it is an error that
// matches ErrResource, or if nothing waits for its result (Func.Send) fails the job.
func RegisterTask[A, R any](name string, fn func(c *Call, a A) (R, error)) *Func[A, R] {
	return register(name, kindTask, fn)
}

// Defer has fn run later, outside handlers, where it may wait: in a called function, a handler, or
// anywhere else. A goroutine of the rank runs it when it is in Poll, Wait, a barrier,
// a collective call, a wait for a Future or for a lock; or one of Config.Workers, or of Config.Progress,
// in the background. What is deferred starts in the order of the calls of Defer, one after the other
// on each goroutine; if it waits, it lets others run as RegisterTask says. It is not run if the
// rank leaves the job before. What is deferred takes memory until it has run: how much is
// the program's to bound.
func (n *Node) Defer(fn func(n *Node)) {
	n.calls.sent.Add(1)
	n.work.deferred.Add(1)
	n.putOff(func() { n.deferred(fn) })
}

// deferred runs fn of Defer.
func (n *Node) deferred(fn func(n *Node)) {
	n.unnested(false, func() { fn(n) }, nil)
	n.calls.handled.Add(1)
	n.work.deferred.Add(-1)
	n.agg.Nudge()
}

// work has the tasks that a rank has put off, of all lanes. Its methods may be called by many goroutines.
type work struct {
	open    atomic.Bool  // the rank has started: peers may be at their calls before
	waiting atomic.Int32 // len(queue) - head
	tasks   atomic.Int32 // queued or running
	// Of Defer, queued or running. Quiesce waits on this rank for these and for tasks
	// before it counts: waves would go on without end as long as one of them waits.
	deferred atomic.Int32
	broken   atomic.Bool // something that nothing waits for has panicked

	between func() // unless nil: what comes between the two sums of callParty.Counts, in tests

	mu    sync.Mutex
	queue []func() // from head on, in order
	head  int
}

// Pending reports whether there is something to run.
func (w *work) Pending() bool { return w.waiting.Load() != 0 && w.open.Load() }

// Run runs what was put off first.
func (w *work) Run() { w.runOne() }

// runOne is Run that reports whether there was something.
func (w *work) runOne() bool {
	w.mu.Lock()
	if w.head == len(w.queue) {
		w.mu.Unlock()
		return false
	}
	fn := w.queue[w.head]
	w.queue[w.head] = nil
	if w.head++; w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
	} else if w.head >= 32 && w.head*2 >= len(w.queue) {
		k := copy(w.queue, w.queue[w.head:])
		clear(w.queue[k:])
		w.queue, w.head = w.queue[:k], 0
	}
	w.waiting.Add(-1)
	w.mu.Unlock()
	fn()
	return true
}

// putOff has fn run later, and wakes what is to run it.
func (n *Node) putOff(fn func()) {
	w := &n.work
	w.mu.Lock()
	w.queue = append(w.queue, fn)
	w.waiting.Add(1)
	w.mu.Unlock()
	n.ep.Wake(n.rank)
}

// putOffTask is putOff for a task, unless there are too many.
func (n *Node) putOffTask(fn func()) error {
	w := &n.work
	most := n.run.cfg.Tasks
	if int(w.tasks.Add(1)) > most {
		w.tasks.Add(-1)
		return errs.Resource("rank %d has %d tasks queued or running (Config.Tasks)", n.rank, most)
	}
	n.putOff(func() {
		fn()
		w.tasks.Add(-1)
		n.agg.Nudge()
	})
	return nil
}

// unnested calls fn. Its panic is *err if it is caught; but not that of a handler, or of
// something that nothing waits for, which ran while fn waited: those are the rank's.
func (n *Node) unnested(catch bool, fn func(), err *error) {
	w, done := &n.work, false
	defer func() {
		if done {
			return
		}
		if !catch || w.broken.Load() || n.inHandler() {
			w.broken.Store(true)
			return
		}
		if p := recover(); p != nil {
			*err = caught(p)
		}
	}()
	fn()
	done = true
}

// inHandler reports whether the calling goroutine runs a handler of the rank.
func (n *Node) inHandler() bool {
	for l := range n.each() {
		if l.ep.Polling() {
			return true
		}
	}
	return false
}

// poll is Poll outside handlers with something put off.
//
//go:noinline
func (n *Node) pollWork() (ran int) {
	if n.inHandler() {
		return 0
	}
	// Work that it puts off itself is left for the next time.
	for i := n.work.waiting.Load(); i > 0 && n.work.runOne(); i-- {
		ran++
	}
	return ran
}
