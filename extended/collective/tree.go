package collective

import (
	"math/bits"
	"sort"

	"github.com/argon-go/argon/conduits"
)

// spot is where a rank is among those that make the calls.
type spot struct {
	rank, size int
	levels     *levels // nil if there is one neighbourhood only, or one for each rank
}

// relative is this rank's place in the tree of root, which has place 0. Place p
// has the parent p without its lowest set bit, so the children of p are p + 2^i
// for all i below that bit.
func (c *spot) relative(root int) int { return around(c.rank, -root, c.size) }

// fanout is how many children place p has.
func (c *spot) fanout(p int) int { return fanout(p, c.size) }

// fanout is that of place p among size.
func fanout(p, size int) int {
	n := bits.Len(uint(size - 1))
	if p != 0 {
		n = bits.TrailingZeros(uint(p))
	}
	for n > 0 && p+1<<(n-1) >= size {
		n--
	}
	return n
}

// around is the place p+by in a ring of size, around which that is less than once. It divides nothing,
// which would take longer than the rest of a stage.
func around(p, by, size int) int {
	p += by
	if p < 0 {
		return p + size
	}
	if p >= size {
		return p - size
	}
	return p
}

// place is this rank's in the tree of its neighbourhood for a broadcast of root:
// of root itself, if that is there, or of the first rank.
func (c *spot) place(root int) int {
	at := 0
	l := c.levels
	if l.hoods.Of(root) == l.hood {
		at = sort.SearchInts(l.near, root)
	}
	return around(l.nearRank-at, 0, len(l.near))
}

// source is the rank that this one has a broadcast of root from, and the link. ok is
// false for root.
func (c *spot) source(root int) (dir, i, rank int, ok bool) {
	if root == c.rank {
		return 0, 0, 0, false
	}
	l := c.levels
	if l == nil {
		i = bits.TrailingZeros(uint(c.relative(root)))
		return down, i, c.above(i), true
	}
	if p := c.place(root); p != 0 {
		i = bits.TrailingZeros(uint(p))
		return near, i, l.near[around(l.nearRank, -(1<<i), len(l.near))], true
	}
	h := len(l.firsts)
	i = bits.TrailingZeros(uint(around(l.hood-l.hoods.Of(root), 0, h)))
	return far, i, l.firsts[around(l.hood, -(1<<i), h)], true
}

// toBelow calls send for each that has a broadcast of root from this rank, beginning
// with the farthest: its subtree is the largest, and its way the longest.
func (c *spot) toBelow(root int, send func(dir, i, rank int)) {
	l := c.levels
	if l == nil {
		for i := c.fanout(c.relative(root)) - 1; i >= 0; i-- {
			send(down, i, c.below(i))
		}
		return
	}
	if h := len(l.firsts); l.nearRank == 0 {
		for i := fanout(around(l.hood-l.hoods.Of(root), 0, h), h) - 1; i >= 0; i-- {
			send(far, i, l.firsts[around(l.hood, 1<<i, h)])
		}
	}
	for i := fanout(c.place(root), len(l.near)) - 1; i >= 0; i-- {
		send(near, i, l.near[around(l.nearRank, 1<<i, len(l.near))])
	}
}

// subtree is how many places there are at and below place p.
func (c *spot) subtree(p int) int {
	if p == 0 {
		return c.size
	}
	return min(p&-p, c.size-p)
}

// directly reports whether n bytes, which are one block of each rank, are enough for the
// blocks to be sent directly.
func (c *spot) directly(n int) bool { return c.size > 1 && n >= directBlock*c.size }

// rooted reports whether blocks of n bytes go directly from or to the root of a call.
func rooted(c *Member, n int) bool { return c.apart && n >= putLeast }

// above and below are the ranks at distance 2^i towards the root and away.
func (c *spot) above(i int) int { return around(c.rank, -(1 << i), c.size) }
func (c *spot) below(i int) int { return around(c.rank, 1<<i, c.size) }

// levels is where a rank is in a job of several neighbourhoods.
type levels struct {
	hoods    *conduits.Neighbourhoods
	firsts   []int // the first rank of each
	hood     int   // which of them is this rank's
	near     []int // the ranks of that
	nearRank int   // this rank's number among those
}

// useLevels has c know the neighbourhoods, if there are levels.
func (c *spot) useLevels(h *conduits.Neighbourhoods) {
	if h == nil || h.Len() < 2 || h.Len() == c.size {
		return
	}
	l := &levels{hoods: h, firsts: h.Firsts(), hood: h.Of(c.rank)}
	l.near = h.Ranks(l.hood)
	l.nearRank = sort.SearchInts(l.near, c.rank)
	c.levels = l
}
