package sim

import "github.com/argon-go/argon/conduits"

// pair is an endpoint's state of one rank that it has sent to.
type pair struct {
	// key is the rank and 1, in the bits of pairRank, and above them a bit for each
	// class in which a message was refused; 0: the entry is free.
	key uint32
	out [conduits.NumClasses]uint16
}

// pairRank are the bits of MaxRanks.
const pairRank = 1<<25 - 1

// rank is the rank that p is of, -1 if it is free.
func (p *pair) rank() int32 { return int32(p.key&pairRank) - 1 }

// refused reports whether the last message of class c was.
func (p *pair) refused(c conduits.Class) bool { return p.key&((pairRank+1)<<c) != 0 }

// refuse and admit note that the last message of class c was refused, and that the
// sender hears of room.
func (p *pair) refuse(c conduits.Class) { p.key |= (pairRank + 1) << c }
func (p *pair) admit(c conduits.Class)  { p.key &^= (pairRank + 1) << c }

// pairs is a table of pairs by rank with open addressing: a rank that talks to
// log N others, as those of a tree do, needs a few hundred bytes for it.
type pairs struct {
	t []pair // a power of two, at most 7/8 full
	n uint64 // that are in use
}

func (p *pairs) slot(rank int32) int {
	mask := len(p.t) - 1
	i := int(uint32(rank)*2654435769>>7) & mask
	for r := p.t[i].rank(); r >= 0 && r != rank; r = p.t[i].rank() {
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
	if p.t[i].key == 0 {
		if 8*int(p.n+1) > 7*len(p.t) {
			p.grow(2 * len(p.t))
			i = p.slot(int32(rank))
		}
		p.t[i].key = uint32(rank) + 1
		bump(&p.n)
	}
	return &p.t[i]
}

// idle reports whether nothing that was sent to rank holds a credit.
func (p *pairs) idle(rank int) bool {
	if len(p.t) == 0 {
		return true
	}
	e := &p.t[p.slot(int32(rank))]
	return e.key == 0 || e.out == [conduits.NumClasses]uint16{}
}

func (p *pairs) grow(n int) {
	old := p.t
	p.t = make([]pair, n)
	for _, e := range old {
		if e.key != 0 {
			p.t[p.slot(e.rank())] = e
		}
	}
}
