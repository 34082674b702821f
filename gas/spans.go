package gas

import "github.com/argon-go/argon/segment"

// spans finds registered memory by where it lies in this process: a search tree
// by the first byte (a treap), each node of which knows the farthest end below it,
// for spans may overlap.
type spans struct {
	root *span
}

// span is registered memory: bytes [from, to), whose addresses begin at at, which
// no other span's do.
type span struct {
	from, to uintptr
	at       segment.NLA

	left, right *span
	most        uintptr // to of all below and its own
	weight      uint64  // at most the parent's
}

// before is the order of the tree.
func (s *span) before(t *span) bool {
	return s.from < t.from || s.from == t.from && s.at < t.at
}

// recompute computes most anew.
func (s *span) recompute() *span {
	s.most = s.to
	if s.left != nil {
		s.most = max(s.most, s.left.most)
	}
	if s.right != nil {
		s.most = max(s.most, s.right.most)
	}
	return s
}

// split parts tree s into what comes before t, and the rest.
func (s *span) split(t *span) (a, b *span) {
	switch {
	case s == nil:
		return nil, nil
	case s.before(t):
		s.right, b = s.right.split(t)
		return s.recompute(), b
	}
	a, s.left = s.left.split(t)
	return a, s.recompute()
}

// meld is the reverse of split.
func meld(a, b *span) *span {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight > b.weight:
		a.right = meld(a.right, b)
		return a.recompute()
	}
	b.left = meld(a, b.left)
	return b.recompute()
}

// add puts t into the tree. Its weight is drawn from its address, as a program registers
// in no order of the weights.
func (s *spans) add(t *span) {
	w := uint64(t.at) + 0x9e3779b97f4a7c15
	w = (w ^ w>>30) * 0xbf58476d1ce4e5b9
	w = (w ^ w>>27) * 0x94d049bb133111eb
	t.weight = w ^ w>>31
	at := &s.root
	for *at != nil && (*at).weight >= t.weight {
		(*at).most = max((*at).most, t.to)
		if (*at).before(t) {
			at = &(*at).right
		} else {
			at = &(*at).left
		}
	}
	t.left, t.right = (*at).split(t)
	*at = t.recompute()
}

// remove takes t, which is there, out of the tree.
func (s *spans) remove(t *span) { s.root = s.root.without(t) }

func (s *span) without(t *span) *span {
	switch {
	case s == t:
		return meld(s.left, s.right)
	case s.before(t):
		s.right = s.right.without(t)
	default:
		s.left = s.left.without(t)
	}
	return s.recompute()
}

// find is, of all spans that have all of [from, to), the one with the highest
// address; nil if there is none.
func (s *spans) find(from, to uintptr) *span { return s.root.find(from, to, nil) }

func (s *span) find(from, to uintptr, best *span) *span {
	if s == nil || s.most < to {
		return best
	}
	best = s.left.find(from, to, best)
	if s.from <= from {
		if to <= s.to && (best == nil || s.at > best.at) {
			best = s
		}
		best = s.right.find(from, to, best)
	}
	return best
}
