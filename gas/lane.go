package gas

import (
	"iter"
	"math/bits"
	"runtime"
	"slices"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// newNode makes the Node of a rank of r.
func newNode(ep conduits.Endpoint, r *run) *Node {
	w := &struct {
		whole
		Node
	}{}
	n := &w.Node
	*n = Node{ep: ep, rank: ep.Rank(), size: ep.Size(), debug: r.cfg.Debug, whole: &w.whole, calls: &w.own}
	n.run, n.main = r, n
	return n
}

// Lane gives the calling goroutine a lane of the rank for itself: a Node for the same rank
// and memory, by which it sends, polls and waits without a lock, and without a line of
// memory, that goroutines which use other lanes write. Free gives it back. There are
// Lanes()-1 of them, the Node that Run gives being the first lane; if none is free the
// error matches ErrResource.
//
// Operations that a lane begins are that lane's: Handles, of which Sync takes those of any lane,
// implicit operations, calls and their answers. Messages and calls of a lane run at the
// same lane of the other rank, one at a time and in the order of one Node; those of
// different lanes may run at once, also functions of RegisterCall. Barriers and
// collective calls are the rank's, whatever lane makes them, and so are the heap, locks,
// registered memory and failures.
//
// A goroutine that waits by any lane answers peers in all lanes that no other goroutine
// polls, after some tenths of a second at worst. More than one goroutine may use a lane, as it may use the Node.
//
// Conduit shm has lanes, and hybrid in a job of one host. On others a lane works as said but
// sends by the way of the first, and handlers run one at a time on the whole rank.
//
// A called function, or a handler, that runs in a lane and breaks the rules of those by
// another lane, or by what is the rank's (barriers, collective calls, registered memory), is
// found with Config.Debug alone.
func (n *Node) Lane() (*Node, error) {
	w, most := n.whole, n.Lanes()
	w.lanesMu.Lock()
	i := bits.TrailingZeros64(^(w.lanesOut | 1))
	if i >= most {
		w.lanesMu.Unlock()
		return nil, errs.Resource("gas: no lane is free on rank %d, of %d (-lanes, ARGON_LANES, Config.Lanes)", n.rank, most)
	}
	w.lanesOut |= 1 << i
	w.lanesMu.Unlock()
	if _, err := w.main.e.Lane(i % w.main.e.Lanes()); err != nil { // which calls openLane
		w.free(i)
		return nil, err
	}
	w.lanesMu.Lock()
	defer w.lanesMu.Unlock()
	return w.at(i), nil
}

// Free gives back a lane that Lane has given, which may give the same Node to another
// goroutine then: it must not be used, or freed, once more. What is under way stays so.
func (n *Node) Free() error {
	w := n.whole
	w.lanesMu.Lock()
	out := w.lanesOut>>n.lane&1 != 0
	w.lanesMu.Unlock()
	if n.lane == 0 || !out {
		return errs.BadArg("gas: Free of lane %d of rank %d, which Lane has not given", n.lane, n.rank)
	}
	w.free(n.lane)
	return nil
}

// Lanes is how many lanes the rank has, this Node or the one it is a lane of included.
func (n *Node) Lanes() int {
	if l := n.run.cfg.Lanes; l > 0 {
		return l
	}
	return min(n.main.e.Lanes(), runtime.GOMAXPROCS(0))
}

func (w *whole) free(i int) {
	w.lanesMu.Lock()
	w.lanesOut &^= 1 << i
	w.lanesMu.Unlock()
}

// openLane makes the Node of lane i when package am has made its Messenger. n is lane 0.
func (n *Node) openLane(i int, e *am.Messenger) am.Lane {
	l := &Node{
		views: n.views, ep: e.Conduit(), rank: n.rank, size: n.size, debug: n.debug,
		e: e, x: n.x.Lane(i, e), calls: &calls{table: n.calls.table}, lane: i, whole: n.whole,
	}
	n.lanesMu.Lock()
	n.put(l)
	n.lanesMu.Unlock()
	return am.Lane{Completer: l.x, Exposer: l.x, User: l, Describe: l.describe}
}

// put makes l one of the lanes. The lock is held.
func (w *whole) put(l *Node) {
	for len(w.lanes) < l.lane {
		w.lanes = append(w.lanes, nil)
	}
	w.lanes[l.lane-1] = l
}

// at is lane i, which is made here where the conduit has none. The lock is held.
func (w *whole) at(i int) *Node {
	if i-1 < len(w.lanes) && w.lanes[i-1] != nil {
		return w.lanes[i-1]
	}
	n := w.main
	l := &Node{
		views: n.views, ep: n.ep, rank: n.rank, size: n.size, debug: n.debug,
		e: n.e, x: n.x, calls: n.calls, lane: i, whole: w,
	}
	w.put(l)
	return l
}

// at is the lane of this rank that a handler with token t runs in.
func (n *Node) at(t *am.Token) *Node {
	if t.Messenger() == n.e {
		return n
	}
	return NodeOf(t)
}

// each is the rank's lanes, as far as they are used.
func (n *Node) each() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		n.lanesMu.Lock()
		lanes := slices.Clone(n.lanes)
		n.lanesMu.Unlock()
		if !yield(n.main) {
			return
		}
		for _, l := range lanes {
			if l != nil && l.calls != n.main.calls && !yield(l) {
				return
			}
		}
	}
}

// enough says that the job has as many lanes as the program wants, where a launcher decides.
func (n *Node) enough() error {
	want := n.run.cfg.Lanes
	if l, ok := conduits.As[conduits.Laned](n.ep); ok && l.Lanes() < want {
		return errs.Misstarted(errs.BadArg("gas: Config.Lanes is %d, and the job was started with %d (gasrun -lanes, ARGON_LANES)", want, l.Lanes()))
	}
	if n.size > maxRanks {
		return errs.NotSupported("gas: a job of %d ranks: a Ptr names at most %d", n.size, maxRanks)
	}
	return nil
}
