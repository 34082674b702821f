package gas

import (
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// spans finds registered memory by where it lies in this process: a tree by the
// first byte, each node of which knows the farthest end below it, for spans may
// overlap.
type spans struct {
	tree  conc.Treap[span, *span] // by from
	nodes map[segment.NLA]uint32  // by span.at
}

// span is registered memory: bytes [from, to), whose addresses begin at at, which
// no other span's do.
type span struct {
	from, to uintptr
	at       segment.NLA
	most     uintptr // to of all below and its own
}

// Pull computes most anew.
func (s *span) Pull(_ uint64, left, right *span) { s.most = max(s.to, left.most, right.most) }

func newSpans() *spans {
	return &spans{tree: conc.NewTreap[span](), nodes: map[segment.NLA]uint32{}}
}

// add puts s among the spans.
func (g *spans) add(s span) { g.nodes[s.at] = g.tree.Insert(uint64(s.from), s) }

// has reports whether there is a span whose addresses begin at a.
func (g *spans) has(a segment.NLA) bool { return g.nodes[a] != 0 }

// remove takes the span out whose addresses begin at a; false if there is none.
func (g *spans) remove(a segment.NLA) bool {
	x := g.nodes[a]
	if x == 0 {
		return false
	}
	delete(g.nodes, a)
	g.tree.Remove(x)
	return true
}

// find is the address that belongs to from in the span with the highest addresses of
// all those that have all of [from, to); false if there is none.
func (g *spans) find(from, to uintptr) (segment.NLA, bool) {
	x := g.below(g.tree.Root(), from, to, 0)
	if x == 0 {
		return 0, false
	}
	s := g.tree.At(x)
	return s.at + segment.NLA(from-s.from), true
}

// below is the node that find looks for, in subtree x; best is that of all before it.
func (g *spans) below(x uint32, from, to uintptr, best uint32) uint32 {
	s := g.tree.At(x)
	if x == 0 || s.most < to {
		return best
	}
	best = g.below(g.tree.Left(x), from, to, best)
	if s.from <= from {
		if to <= s.to && (best == 0 || s.at > g.tree.At(best).at) {
			best = x
		}
		best = g.below(g.tree.Right(x), from, to, best)
	}
	return best
}
