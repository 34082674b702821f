package sim

import "github.com/argon-go/argon/conduits"

// pair is what an endpoint knows of one rank that it has sent to.
type pair struct {
	rank    int32 // -1: the entry is free
	out     [conduits.NumClasses]uint16
	refused [conduits.NumClasses]bool
}

// pairs is a table of pairs by rank with open addressing: a rank that talks to
// log N others, as those of a tree do, needs a few hundred bytes for it.
type pairs struct {
	t []pair // a power of two, at most 3/4 full
	n int
}

func (p *pairs) slot(rank int32) int {
	mask := len(p.t) - 1
	i := int(uint32(rank)*2654435769>>7) & mask
	for p.t[i].rank >= 0 && p.t[i].rank != rank {
		i = (i + 1) & mask
	}
	return i
}

// of returns rank's entry, which moves when another one is made.
func (p *pairs) of(rank int) *pair {
	if len(p.t) == 0 {
		p.grow(4)
	}
	i := p.slot(int32(rank))
	if p.t[i].rank < 0 {
		if 4*(p.n+1) > 3*len(p.t) {
			p.grow(2 * len(p.t))
			i = p.slot(int32(rank))
		}
		p.t[i].rank = int32(rank)
		p.n++
	}
	return &p.t[i]
}

func (p *pairs) grow(n int) {
	old := p.t
	p.t = make([]pair, n)
	for i := range p.t {
		p.t[i].rank = -1
	}
	for _, e := range old {
		if e.rank >= 0 {
			p.t[p.slot(e.rank)] = e
		}
	}
}
