package gas

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/extended/aggregate"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// Node is one rank's place in a running job: what a program does, it does from
// a Node. Many goroutines may use it at once, except that collective calls are
// made by one goroutine of each rank at a time, in the same order on all ranks.
// It is valid until the function that Run gave it to returns.
type Node struct {
	views segment.Views // at the top, because every access reads them
	ep    conduits.Endpoint
	rank  int
	size  int
	debug bool

	e     *am.Messenger
	x     *extended.Initiator
	calls *calls
	lane  int
	ctx   context.Context // of a view, see With; else nil
	*whole
}

// whole is the state that the lanes of a rank share.
type whole struct {
	main *Node // lane 0
	run  *run  // the call of Run that the rank is of
	b    *barrier.Barrier
	all  members
	agg  *aggregate.Aggregator
	heap *segment.Heap

	// The heap's memory, and the address of its first byte.
	heapMem  []byte
	heapBase segment.NLA
	large    bool // heapMem is mapped, and to be unmapped

	// Exposed memory, and buckets that this rank and its peers have pinned.
	space      *firehose.Space
	cache      *firehose.Cache
	registered registered

	// [freshLow, freshHigh) of heapMem was never allocated, so that nothing
	// has to be zeroed there.
	freshMu             sync.Mutex
	freshLow, freshHigh uint64

	work    work
	perRank atomic.Pointer[[]any] // a *V for each *PerRank[V], by its slot
	sticky  sticky
	context *rankContext // of Context; nil before

	stop   atomic.Bool  // ends the progress goroutines
	helped atomic.Int32 // how many progress goroutines there are

	own      calls // of lane 0
	lanesMu  sync.Mutex
	lanes    []*Node // by number, as far as they are used; lane 0 is not there
	lanesOut uint64  // those that Lane has given out, by bits
	promised promised
}

// NodeOf is the Node of the rank that the handler with token t runs at: what one of
// Config.Handlers, which all ranks of a process share, works with. It may use what called
// functions may, see RegisterCall. Nil if t is not of an endpoint that Run has made.
func NodeOf(t *am.Token) *Node {
	n, _ := t.User().(*Node)
	return n
}

// Rank is this rank's number, 0 to Size()-1.
func (n *Node) Rank() int { return n.rank }

// Size is the number of ranks in the job.
func (n *Node) Size() int { return n.size }

// Layers are the parts below package gas on a rank, for runtimes and measurements: nothing here
// knows Config.Debug, and none of it is this package's promise.
type Layers struct {
	AM       *am.Messenger       // active messages, with the handlers of Config.Handlers
	Extended *extended.Initiator // put and get by rank and address
	Barriers *barrier.Barrier    // the barrier as generated code uses it: with identifiers and flags
	Conduit  conduits.Endpoint   // the transport
	Firehose *firehose.Cache     // what is pinned, and its limits, which follow from Config.Pinnable and its kin
	Heap     *segment.Heap       // the allocator of this rank's segment, whose memory has whatever contents it had
}

// Layers are the layers below n.
func (n *Node) Layers() Layers { return Layers{n.e, n.x, n.b, n.ep, n.cache, n.heap} }

// Neighbour reports whether rank's segment can be reached by load and store from
// here, so that Ptr.Local works. With Config.Large no rank's can but, by Ptr.Local,
// the own.
func (n *Node) Neighbour(rank int) bool {
	v := n.views.Of(uint64(rank))
	return v != nil && v.Base != nil && n.ep.SegmentSize(rank) != 0
}

// The identifiers of this package's barriers. They differ so that a rank that
// leaves the job while others are in a barrier is noticed.
const (
	barrierID = 0
	leaveID   = 1<<31 - 1
	startID   = 1<<31 - 2
	quiesceID = 1<<30 - 1
	mailboxID = 1 << 29 // and the mailbox's number
)

// Barrier is collective: it waits until all ranks have called it, and answers
// peers meanwhile. What a rank did to memory before its barrier is visible to all
// after theirs.
func (n *Node) Barrier() error {
	if n.debug {
		n.entering()
	}
	if err := n.b.Notify(barrierID, barrier.Whole); err != nil {
		return err
	}
	return n.BarrierWait()
}

// BarrierNotify is collective: it begins a barrier, and BarrierWait ends it. A rank
// may compute in between while the others arrive.
func (n *Node) BarrierNotify() error {
	if n.debug {
		n.entering()
	}
	return n.b.Notify(barrierID, 0)
}

// BarrierWait is collective: it waits until all ranks have called BarrierNotify. It
// must follow a BarrierNotify, or it returns ErrNotReady.
func (n *Node) BarrierWait() error {
	var err error
	if n.ctx == nil {
		err = n.b.Wait(barrierID, 0)
	} else {
		err = barrierWait(n)
	}
	if err != nil {
		return n.departed(err)
	}
	return nil
}

// BarrierTry is collective: it is BarrierWait, in place of which a rank may call it,
// if that need not wait; else it polls once and returns false. If a rank has returned from the program's function meanwhile, the
// error names it only if this rank has heard of that already; BarrierWait waits
// to hear.
func (n *Node) BarrierTry() (done bool, err error) {
	if done, err = n.b.Try(barrierID, 0); err != nil {
		err = n.departedYet(err)
	} else if !done && n.work.Pending() {
		n.pollWork()
	}
	return done, err
}

// Poll answers what has arrived from peers, then runs what Defer and tasks have put off,
// and returns how many messages, and of those, it ran.
func (n *Node) Poll() int {
	k := n.e.Poll()
	if n.work.Pending() {
		k += n.pollWork()
	}
	return k
}

// Wait answers peers until cond holds, and sleeps when there is nothing to do.
// cond must be cheap and must not wait itself. It is looked at again whenever
// something has arrived, when a peer has changed this rank's memory with an
// atomic of this package or a signal, and after Wake. A peer's Put alone wakes
// no waiter. If the job fails first, Wait returns how.
func (n *Node) Wait(cond func() bool) error {
	return waitFor(n, conditionOf(cond), conduits.Cond{Work: true, Ready: cond})
}

// Wake makes those goroutines of rank that are in Wait look at their conditions
// again.
func (n *Node) Wake(rank int) {
	if uint(rank) < uint(n.size) {
		n.ep.Wake(rank)
	}
}

// Fence is a full barrier for the calling goroutine's plain accesses through Ptr.Local
// and the like and for its Puts and Gets in the neighbourhood: every one before it
// comes before every one after it, as seen by every rank. Programs whose flags are
// atomics (Store, Load) need none; see the memory model of package extended.
func (n *Node) Fence() { conduits.Fence() }

// Exit ends the job, with code as its exit status, of which the low eight bits
// count; 0 is success. Any rank may call it, alone, on any goroutine and in a called
// function. It returns at once, with an error for the rank's function to return:
// what all ranks wait for from now on ends with the same, a *PeerError that names
// the rank and matches ErrExit; errors.As finds the code in it as an *ExitError. Run
// returns it, whatever error the rank's functions return then, and Main ends with
// the code. If several ranks call Exit, one of the codes counts; if the job has
// failed before, that failure counts, and is returned.
//
// Ranks that compute, and wait for nothing, gasrun ends after a second by SIGTERM
// and after its grace time by SIGKILL; under other launchers, and in one process,
// they end when they return.
func (n *Node) Exit(code int) error { return n.e.Exit(code) }

// Handle names a transfer that may still be under way. The zero Handle is one
// that is complete. Each other one must be given to Sync or SyncAll once, or to
// TrySync until that says true.
type Handle = extended.Handle

// Sync waits until the transfer is complete: a put is visible to all ranks, a
// get's data has arrived.
func (n *Node) Sync(h Handle) error {
	if h == 0 {
		return nil
	}
	return n.x.Wait(h)
}

// TrySync reports whether the transfer is complete, in which case h is used up. It
// polls once if not.
func (n *Node) TrySync(h Handle) (done bool, err error) {
	if h == 0 {
		return true, nil
	}
	return n.x.Try(h)
}

// SyncAll is Sync for all of hs, which it sets to zero.
func (n *Node) SyncAll(hs []Handle) error { return n.x.WaitAll(hs) }

// Now is the time since some fixed moment of the job: what a program measures
// itself with. It is virtual time on the simulator, where the clock of the machine
// says nothing.
func (n *Node) Now() time.Duration { return n.ep.Now() }

// Stats fills in what the rank's endpoint has counted, by peer, too, if s.Peers is not nil. Any
// goroutine may call it.
func (n *Node) Stats(s *conduits.Stats) { n.ep.Stats(s) }

// FirehoseStats fills in what was pinned for this rank's accesses to memory that
// others have registered, and of its own memory for theirs.
func (n *Node) FirehoseStats(s *firehose.Stats) { n.cache.Stats(s) }
