// Short accesses of one Shape, made together: where each would be a system call there is
// one for all that firehoses reach (conduits.Access.Pieces). What is not done so, because
// no firehose is attached or the conduit cannot, is an access of its own.

package firehose

import (
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// batchMost is how many accesses one visit of the cache makes: others wait for it. A system
// call takes 0.45 us for each of 64 and more, and for one 1.9; 1024 were no faster than 256.
const batchMost = 256

// Batch holds accesses to exposed memory of one rank, all puts or all gets. Not for
// concurrent use.
type Batch struct {
	from, to int // those of pieces that are left
	most     int // the largest to since NewBatch
	pieces   [batchMost]conduits.Piece
	reached  [batchMost]conduits.Piece // the same, where firehoses reach them
	access   conduits.Access
}

var batches = sync.Pool{New: func() any { return new(Batch) }}

// NewBatch makes an empty one, to be given back by Free.
func NewBatch() *Batch { return batches.Get().(*Batch) }

// Free ends the use of b, whose accesses are forgotten.
func (b *Batch) Free() {
	clear(b.pieces[:b.most])
	clear(b.reached[:b.most])
	b.from, b.to, b.most = 0, 0, 0
	batches.Put(b)
}

// Reset forgets all accesses.
func (b *Batch) Reset() { b.from, b.to = 0, 0 }

// Len is how many are left.
func (b *Batch) Len() int { return b.to - b.from }

// Full says that no other one can be added before Reset.
func (b *Batch) Full() bool { return b.to == batchMost }

// Add adds the access of mem and as much at a, if it is a short one. b is not full.
func (b *Batch) Add(a segment.NLA, mem []byte) bool {
	if len(mem) > shortMax {
		return false
	}
	b.pieces[b.to] = conduits.Piece{At: a, Mem: mem}
	b.to++
	b.most = max(b.most, b.to)
	return true
}

// Take takes the first that is left.
func (b *Batch) Take() (segment.NLA, []byte) {
	p := &b.pieces[b.from]
	b.from++
	return p.At, p.Mem
}

// Batches reports whether Many may do anything for rank.
func (x *Route) Batches(rank int) bool { return rank != x.ep.Rank() && x.short(rank, shortMax) }

// Many makes the first of the accesses that are left, all puts or all gets of rank's memory,
// as many as it can, and takes them. False if there were none.
func (x *Route) Many(rank int, verb conduits.Verb, b *Batch) bool {
	b.access.Verb, b.access.Rank = verb, rank
	n := x.cache.many(&b.access, b.pieces[b.from:b.to], b.reached[b.from:b.to])
	b.from += n
	return n > 0
}
