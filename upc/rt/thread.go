package rt

import (
	"fmt"

	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/upc/races"
	"github.com/argon-go/argon/segment"
)

// Config has the options of a program. The zero value is good; the launcher overrides it as
// it does a gas.Config.
type Config struct {
	// Threads is THREADS where no launcher decides; 0 means 1.
	Threads int
	// Static is the THREADS that the program was compiled for; 0 if it is chosen at run
	// time. Another number of threads is an error.
	Static int
	// Conduit is the transport's name; "" as in gas.Config.
	Conduit string
	// Segment is the shared memory of each thread, bytes; 0 as in gas.Config.
	Segment uint64
	// Heap is the part of it, bytes, that GlobalAlloc and AllAlloc allocate from, the same on
	// all threads; 0 means half of what static objects leave. Alloc has the rest.
	Heap uint64
}

// Thread is one UPC thread: all services are its methods, or functions that take it. A
// thread's calls are made by the goroutine that Run gives it to. None but those on files returns an error: the
// first one ends the thread's function and fails the job, and Run returns it with the line of
// the program (gas.Node.Must).
type Thread struct {
	views segment.Views // every access reads them
	x     *extended.Initiator
	n     *gas.Node
	all   *everywhere // or nil

	me, threads int
	statics     []segment.NLA // of the objects of the table, by number
	library     *extended.Region
	notified    bool   // between notify and wait
	gave        uint32 // to the last barrier, if named
	named       bool
	joined      bool // by Join
	status      int  // that Status gave
	held        holds
	nodes       []Phaseless // that are in no queue

	noRoom     string // which allocation failed last
	domains    map[Domain]domain
	lastDomain Domain // the one used last, and what it is for
	last       domain

	files map[Phaseless]*File // that are open

	group *Group // of the loop that is under way, or the last one; nil before the first

	heapBase segment.NLA // of the symmetric heap
	heapEnd  segment.NLA
	heap     *segment.Heap // its allocator, on thread 0

	races  *races.Detector // or nil
	strict bool            // the access under way is strict, or the library's
}

// Run runs a program: main is called as each thread of it, and its return is the end of the
// thread, which waits for all others (UPC 1.3, 5.1.2.2). The error is the first failure of a
// thread, as that of gas.Run.
func Run(c Config, main func(t *Thread)) error {
	g := gas.Config{Ranks: c.Threads, Conduit: c.Conduit, SegmentSize: c.Segment}
	if checked {
		detector = nil // not that of a job before
	}
	return gas.Run(g, func(n *gas.Node) error {
		t, err := newThread(n, &c)
		if err != nil {
			return err
		}
		defer threadsOf.Delete(n)
		if err := n.Barrier(); err != nil { // calls find all threads
			return err
		}
		main(t)
		return t.finish()
	})
}

// Join makes the calling rank of a job that package gas has started a thread of UPC, beside what
// else it does: all ranks call it together, once, with the same Config, of which Static and
// Heap count. The thread's calls are made by one goroutine at a time. [Thread.Leave] ends it.
func Join(n *gas.Node, c Config) (*Thread, error) {
	t, err := newThread(n, &c)
	if err != nil {
		return nil, err
	}
	t.joined = true
	return t, n.Barrier() // calls find all threads
}

// Leave gives back what Join has registered, once no thread of the job needs this one any more:
// after a barrier, or at the end of the job. Its shared memory stays.
func (t *Thread) Leave() {
	threadsOf.Delete(t.n)
	if t.races != nil {
		detector = nil
	}
}

// Main runs a program and ends the process, with the status that gas.Exit says.
func Main(c Config, main func(t *Thread)) { gas.Exit(Run(c, main)) }

// threadsOf has the threads of this process by their nodes, for functions that other threads
// call.
var threadsOf = conc.NewMap[*gas.Node, *Thread]()

func newThread(n *gas.Node, c *Config) (*Thread, error) {
	t := &Thread{n: n, x: n.Layers().Extended, me: n.Rank(), threads: n.Size()}
	size := n.Layers().Conduit.SegmentSize(t.me)
	switch {
	case t.threads > MaxThreads:
		return nil, errs.Resource("upc: %d threads: packed pointers have room for %d", t.threads, MaxThreads)
	case size > MaxShared:
		return nil, errs.Resource("upc: a segment of %d bytes: packed pointers have room for %d (-segment, ARGON_SEGMENT)", size, uint64(MaxShared))
	case size == 0:
		return nil, errs.BadArg("upc: threads have no segments: large segments (ARGON_SEGMENT_LARGE) cannot be used")
	case c.Static != 0 && c.Static != t.threads:
		return nil, errs.BadArg("upc: the program was compiled for %d threads and runs on %d", c.Static, t.threads)
	}
	t.views = segment.NewViews(n.Layers().Conduit.Views())
	look(t)
	t.library = t.x.NewRegion()
	if err := t.layOut(); err != nil {
		return nil, err
	}
	if err := t.makeHeap(c.Heap); err != nil {
		return nil, err
	}
	if checked {
		lookForRaces(t)
	}
	threadsOf.Store(n, t)
	return t, nil
}

// exitID is the identifier of the barrier at the end of main.
const exitID = 1<<31 - 3

// Status has the job end with a status, if it is not 0, when all threads have returned: the
// result of main, or the argument of exit (5.1.2.2). Of several threads' any counts.
func (t *Thread) Status(status int) { t.status = status }

// finish is the implicit barrier at the end of a thread, and the end of the job if a thread has a
// status for it.
func (t *Thread) finish() error {
	if t.notified {
		return fmt.Errorf("upc: thread %d returned from main between upc_notify and upc_wait: %w", t.me, gas.ErrNotReady)
	}
	if err := t.x.Implicit().Sync(extended.All); err != nil {
		return err
	}
	if err := t.library.Sync(extended.All); err != nil {
		return err
	}
	t.release()
	if err := closeFiles(t); err != nil {
		return fmt.Errorf("upc: closing files at the end of thread %d: %w", t.me, err)
	}
	if err := t.n.Layers().Barriers.Barrier(exitID, 0); err != nil {
		return t.mismatch(err, given{ended: true})
	}
	if checked && t.me == 0 {
		t.status = t.races.Status(t.status)
	}
	if t.status != 0 {
		return t.n.Exit(t.status)
	}
	return nil
}

// MyThread is MYTHREAD.
func (t *Thread) MyThread() int { return t.me }

// Threads is THREADS.
func (t *Thread) Threads() int { return t.threads }

// Node is the thread as a rank of package gas.
func (t *Thread) Node() *gas.Node { return t.n }

// GlobalExit is upc_global_exit (7.2.1): it ends all threads with a status, and does not
// return.
func (t *Thread) GlobalExit(status int) {
	closeFiles(t) // the status is that of the program
	if checked {
		status = t.races.Status(status)
	}
	t.n.Must(t.n.Exit(status))
	t.n.Must(gas.ErrExit)
}

func (t *Thread) must(err error) {
	if err != nil {
		t.n.Must(err)
	}
}

// together fails the thread if it is between notify and wait, where calls that all threads
// make are not allowed (6.6.1).
func (t *Thread) together(what string) {
	if t.notified {
		t.n.Must(errs.NotReady("upc: %s between upc_notify and upc_wait", what))
	}
}

// meet is a barrier that is not the program's.
func (t *Thread) meet() {
	if checked {
		t.races.Notify(t.me)
	}
	if err := t.n.Layers().Barriers.Barrier(0, barrier.Anonymous); err != nil {
		t.must(t.mismatch(err, given{}))
	}
	if checked {
		t.races.Wait(t.me)
	}
}
