package gas

import "sync"

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
	_ byte // two of them have two addresses
}

// Of returns n's own V, the same one each time. What goroutines of the rank do
// with it is for them to order; called functions run one at a time.
func (p *PerRank[V]) Of(n *Node) *V {
	if v, ok := n.perRank.Load(p); ok {
		return v.(*V)
	}
	v, _ := n.perRank.LoadOrStore(p, new(V))
	return v.(*V)
}

// perRank holds a *V for each *PerRank[V].
type perRank = sync.Map
