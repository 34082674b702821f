package seal

import "sync/atomic"

// table finds peers by rank. Lookups take no lock; peers are added under the
// sealer's and never removed. A rank that was never met takes no room.
type table struct {
	slots []atomic.Pointer[peer] // a power of two, at most half of them in use
	used  int
}

func newTable(slots int) *table { return &table{slots: make([]atomic.Pointer[peer], slots)} }

// find returns the peer of that rank, or nil.
func (t *table) find(rank uint32) *peer {
	for i := rank; ; i++ { // neighbours in rank are neighbours in the table
		p := t.slots[i&uint32(len(t.slots)-1)].Load()
		if p == nil || p.rank == rank {
			return p
		}
	}
}

// add puts p into a table that has no peer of that rank, and has room.
func (t *table) add(p *peer) {
	i := p.rank & uint32(len(t.slots)-1)
	for t.slots[i].Load() != nil {
		i = (i + 1) & uint32(len(t.slots)-1)
	}
	t.slots[i].Store(p)
	t.used++
}

// grown returns a copy of t with twice the room.
func (t *table) grown() *table {
	g := newTable(2 * len(t.slots))
	for i := range t.slots {
		if p := t.slots[i].Load(); p != nil {
			g.add(p)
		}
	}
	return g
}
