package gas

import (
	"sync"
	"sync/atomic"
)

// PerRank is a variable of which every rank has its own, for functions that
// RegisterCall registers and that other ranks' goroutines of the same process
// must not share. The zero value is ready; it is usually a package variable:
//
//	var table gas.PerRank[map[uint32]string]
//
// Each rank's V begins as the zero value when the rank first asks for it, and is
// gone with its Node. It is ordinary memory, which may hold Go pointers and which
// no other rank reaches.
type PerRank[V any] struct {
	slot atomic.Uint32 // of it in the table of each Node; 0, which is empty, before its first use
}

// slots is how many slots are in use. The lock is of all that make one, or a V.
var slots struct {
	sync.Mutex
	n uint32
}

// Of returns n's own V, the same one each time. What goroutines of the rank do
// with it is for them to order; called functions run one at a time.
func (p *PerRank[V]) Of(n *Node) *V {
	if all, i := n.perRank.Load(), int(p.slot.Load()); all != nil && i < len(*all) {
		if v, ok := (*all)[i].(*V); ok {
			return v
		}
	}
	return p.add(n)
}

func (p *PerRank[V]) add(n *Node) *V {
	slots.Lock()
	defer slots.Unlock()
	if p.slot.Load() == 0 {
		slots.n++
		p.slot.Store(slots.n)
	}
	all := make([]any, 0, slots.n+1)
	if old := n.perRank.Load(); old != nil {
		all = append(all, *old...)
	}
	all = all[:cap(all)]
	v := &all[p.slot.Load()]
	if *v == nil {
		*v = new(V)
		n.perRank.Store(&all)
	}
	return (*v).(*V)
}
