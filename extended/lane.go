package extended

import (
	"iter"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
)

// laneTable has the lanes of a rank.
type laneTable struct {
	first *Initiator
	all   [conduits.MaxLanes]atomic.Pointer[Initiator] // by number; nil as long as one has not been made
}

// laneOf is the lane that a Handle, or the name of an operation, is of.
func laneOf(name uint64) int { return int(name >> (slotBits + laneShift) & (conduits.MaxLanes - 1)) }

// Lane makes the Initiator of lane i, whose active messages are l: with handles and
// implicit operations of its own, which are completed by polls of that lane. Handles name
// their lane and are synchronized through any. What the rank exposes, and the locks that
// it holds, are those of all lanes. It is given to am.Config.Lane as its Completer and
// Exposer. Once for each i, and before an operation of that lane; after Bind, but for what
// handlers do that run before.
func (x *Initiator) Lane(i int, l *am.Messenger) *Initiator {
	x = x.root()
	if x.lanes.Load() == nil {
		x.lanes.CompareAndSwap(nil, &laneTable{first: x})
	}
	t := x.lanes.Load()
	y := &Initiator{always: x.always, exposed: x.exposed, lockMemory: x.lockMemory}
	y.implicit.x = y
	y.table.left = MaxHandles
	y.table.origins = x.table.origins
	y.table.firstGen = uint64(i) << laneShift
	y.bind(l.Conduit(), l)
	y.lanes.Store(t)
	t.all[i].Store(y)
	return y
}

// lane is the number of this one.
func (x *Initiator) lane() int { return int(x.table.firstGen >> laneShift) }

// root is lane 0.
func (x *Initiator) root() *Initiator {
	if t := x.lanes.Load(); t != nil {
		return t.first
	}
	return x
}

// sibling is lane i of the rank, lane 0 if there is no such lane.
func (x *Initiator) sibling(i int) *Initiator {
	if i == x.lane() {
		return x
	}
	if t := x.lanes.Load(); t != nil && i > 0 {
		if y := t.all[i].Load(); y != nil {
			return y
		}
	}
	return x.root()
}

// tableOf is the table that h is of, if it is a handle of this rank.
func (x *Initiator) tableOf(h Handle) *table {
	if i := laneOf(uint64(h)); i != x.lane() {
		return &x.sibling(i).table
	}
	return &x.table
}

// each is the rank's lanes, one after the other.
func (x *Initiator) each() iter.Seq[*Initiator] {
	return func(yield func(*Initiator) bool) {
		if !yield(x.root()) {
			return
		}
		t := x.lanes.Load()
		for i := 0; t != nil && i < len(t.all); i++ {
			if y := t.all[i].Load(); y != nil && !yield(y) {
				return
			}
		}
	}
}
