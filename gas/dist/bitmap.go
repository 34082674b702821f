package dist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// Bitmap is a bitmap spread over the ranks of a group: each has Span bits, one after the other, the last
// ranks fewer or none. The bits lie in the segments, 64 to a word.
//
// Set, Clear and Test are one-sided atomics of a word, which cost as much as [gas.FetchOr] does: a
// round trip over a network. SetAll, ClearAll and TestAll send many indices in a message, which
// the owners answer when they poll or wait. A Bitmap may be used by many goroutines of a rank. What an
// access that has returned has done all later ones of these see; Words, which are plain memory,
// are ordered as Put and Get are; see package gas, Order.
type Bitmap struct {
	ranks
	name   string
	number uint32
	length int
	span   int
	words  *gas.TeamSlice[uint64]
	own    []uint64
	done   atomic.Bool
}

// The operations of callMany on bitmaps.
const (
	opSet = iota
	opClear
	opTest
)

var bitmapOps = [...]string{"SetAll", "ClearAll", "TestAll"}

const wordBits = 64

// mostBits bounds a bitmap, so that numbers of bits do not overflow.
const mostBits = 1 << 43

// NewBitmap is collective: it makes a bitmap of length bits on the ranks of g, all clear, and of that name, which is for
// messages to people. The length may be 0. It takes length/8/Size bytes of each segment.
func NewBitmap(g gas.Group, name string, length int) (*Bitmap, error) {
	what := fmt.Sprintf("NewBitmap %q", name)
	r, err := ranksOf(g, what)
	if err != nil {
		return nil, err
	}
	b := &Bitmap{ranks: r, name: name, length: length}
	var failed error
	if length < 0 || length > mostBits {
		failed = errs.BadArg("dist: %s: a length of %d bits; it must be 0 to %d", what, length, mostBits)
	}
	words := (min(max(0, length), mostBits) + wordBits - 1) / wordBits
	perRank := max(1, (words+b.size-1)/b.size)
	b.span = perRank * wordBits
	if b.words, err = gas.NewTeamSlice[uint64](g, perRank); err != nil {
		return nil, fmt.Errorf("dist: %s of %d bits: %w", what, length, err)
	}
	first, end := b.Range(b.rank)
	own, _ := b.words.On(b.rank).LocalSlice(b.n, perRank)
	b.own = own[:max(0, end-first+wordBits-1)/wordBits]
	if b.number, err = b.enter(b, what, sayOf(what, fmt.Sprint(length)), failed); err != nil {
		return nil, errors.Join(err, b.words.Delete())
	}
	return b, nil
}

// Len is how many bits there are on all ranks.
func (b *Bitmap) Len() int { return b.length }

// Span is how many bits each rank has, but for the last: a multiple of 64. Bit i is one of rank i/Span.
func (b *Bitmap) Span() int { return b.span }

// Owner is the rank that has bit i, or -1 if i is not in 0..Len()-1.
func (b *Bitmap) Owner(i int) int {
	if uint(i) >= uint(b.length) {
		return -1
	}
	return i / b.span
}

// Range is which bits rank has: from first to end-1, and none if these are equal.
func (b *Bitmap) Range(rank int) (first, end int) {
	if uint(rank) >= uint(b.size) {
		return b.length, b.length
	}
	return min(rank*b.span, b.length), min((rank+1)*b.span, b.length)
}

// Words are the words of this rank, in place, until Delete: bit i, of Range, is bit (i-first)%64 of word
// (i-first)/64. Bits beyond the end of the bitmap are to stay clear. Other ranks change
// words by atomics.
func (b *Bitmap) Words() []uint64 { return b.own }

// at returns a pointer to the word of bit i, and the bit in it.
func (b *Bitmap) at(op string, i int) (p gas.Ptr[uint64], mask uint64, err error) {
	if err := b.check(op); err != nil {
		return p, 0, err
	}
	if uint(i) >= uint(b.length) {
		return p, 0, b.outside(op, i)
	}
	rank, local := i/b.span, i%b.span
	return b.words.On(rank).Add(local / wordBits), 1 << (local % wordBits), nil
}

// outside is the error of an index that there is not.
func (b *Bitmap) outside(op string, i int) error {
	return errs.BadArg("dist: %s of bitmap %q: bit %d; it has %d bits", op, b.name, i, b.length)
}

// check is the error of op on a bitmap that is deleted.
func (b *Bitmap) check(op string) error {
	if b.done.Load() {
		return errs.NotReady("dist: %s of bitmap %q on rank %d, which is deleted", op, b.name, b.n.Rank())
	}
	return nil
}

// Set sets bit i, and reports whether it was set before: of many ranks that set a bit one learns that
// it was not.
func (b *Bitmap) Set(i int) (was bool, err error) {
	p, mask, err := b.at("Set", i)
	if err != nil {
		return false, err
	}
	old, err := gas.FetchOr(b.n, p, mask)
	return old&mask != 0, err
}

// Clear clears bit i, and reports whether it was set before.
func (b *Bitmap) Clear(i int) (was bool, err error) {
	p, mask, err := b.at("Clear", i)
	if err != nil {
		return false, err
	}
	old, err := gas.FetchAnd(b.n, p, ^mask)
	return old&mask != 0, err
}

// Test reports whether bit i is set.
func (b *Bitmap) Test(i int) (bool, error) {
	p, mask, err := b.at("Test", i)
	if err != nil {
		return false, err
	}
	v, err := gas.Load(b.n, p)
	return v&mask != 0, err
}

// SetNBI begins to set bit i, which [gas.Node.SyncImplicit] waits for.
func (b *Bitmap) SetNBI(i int) error {
	p, mask, err := b.at("SetNBI", i)
	if err != nil {
		return err
	}
	return gas.OrNBI(b.n, p, mask)
}

// SetAll sets these bits, many in a message: when it returns all are set. If there is no such bit, the error
// names the index, and none is set.
func (b *Bitmap) SetAll(idx []int) error { return b.each(opSet, idx, nil) }

// ClearAll clears these bits; see SetAll.
func (b *Bitmap) ClearAll(idx []int) error { return b.each(opClear, idx, nil) }

// TestAll reports for each of these bits whether it is set; see SetAll.
func (b *Bitmap) TestAll(idx []int) ([]bool, error) {
	set := make([]bool, len(idx))
	if err := b.each(opTest, idx, set); err != nil {
		return nil, err
	}
	return set, nil
}

// each does op to all of idx.
func (b *Bitmap) each(op uint32, idx []int, set []bool) error {
	name := bitmapOps[op]
	if err := b.check(name); err != nil {
		return err
	}
	if len(idx) > mostAtOnce {
		return errs.BadArg("dist: %s of bitmap %q: %d indices; one call takes %d", name, b.name, len(idx), mostAtOnce)
	}
	for _, i := range idx {
		if uint(i) >= uint(b.length) {
			return b.outside(name, i)
		}
	}
	var landed func(answers []byte, to []int32) error
	if op == opTest {
		landed = func(answers []byte, to []int32) error {
			for k, i := range to {
				set[i] = answers[k] != 0
			}
			return nil
		}
	}
	var c courier
	c.init(&b.ranks, b.number, op, landed)
	for k, i := range idx {
		rank, local := i/b.span, i%b.span
		if rank != b.rank {
			c.add(rank, k, binary.LittleEndian.AppendUint64(c.out[rank].data, uint64(local)))
			continue
		}
		if is := b.access(op, local); op == opTest {
			set[k] = is
		}
	}
	if err := c.finish(); err != nil {
		return fmt.Errorf("dist: %s of bitmap %q: %w", name, b.name, err)
	}
	return nil
}

// access does op to a bit of this rank, and reports whether it was set.
func (b *Bitmap) access(op uint32, local int) bool {
	p, mask := &b.own[local/wordBits], uint64(1)<<(local%wordBits)
	switch op {
	case opSet:
		return atomic.OrUint64(p, mask)&mask != 0
	case opClear:
		return atomic.AndUint64(p, ^mask)&mask != 0
	}
	return atomic.LoadUint64(p)&mask != 0
}

// serveMany does an operation to bits of this rank for another one.
func (b *Bitmap) serveMany(q *request) (out []byte, err error) {
	for data := q.Data; len(data) >= 8; data = data[8:] {
		local := binary.LittleEndian.Uint64(data)
		if local/wordBits >= uint64(len(b.own)) {
			return nil, errs.BadArg("dist: bit %d of rank %d's part of bitmap %q, which has %d words", local, b.n.Rank(), b.name, len(b.own))
		}
		is := b.access(q.Op, int(local))
		if !q.Quiet {
			v := byte(0)
			if is {
				v = 1
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// serveOne is of maps.
func (b *Bitmap) serveOne(question) (reply, error) {
	return reply{}, errs.NotSupported("dist: bitmap %q has no operation in words", b.name)
}

// CountOwn is how many bits of this rank are set.
func (b *Bitmap) CountOwn() int {
	count := 0
	for i := range b.own {
		count += bits.OnesCount64(atomic.LoadUint64(&b.own[i]))
	}
	return count
}

// Count is collective: it is how many bits of all ranks are set. What a rank has set before it
// calls Count is counted.
func (b *Bitmap) Count() (int, error) {
	if err := b.check("Count"); err != nil {
		return 0, err
	}
	if err := b.g.Barrier(); err != nil {
		return 0, err
	}
	return gas.AllReduce(b.g, b.CountOwn(), gas.Sum)
}

// All are the bits of this rank that are set, in order, by their indices in the bitmap. Bits that
// change meanwhile are there or not.
func (b *Bitmap) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		first, _ := b.Range(b.rank)
		for i := range b.own {
			for w := atomic.LoadUint64(&b.own[i]); w != 0; w &= w - 1 {
				if !yield(first + i*wordBits + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Fill is collective: it sets all bits. What ranks did before their calls is done before, and it
// returns when all bits are set.
func (b *Bitmap) Fill() error { return b.assign("Fill", ^uint64(0)) }

// Reset is collective: it clears all bits; see Fill.
func (b *Bitmap) Reset() error { return b.assign("Reset", 0) }

func (b *Bitmap) assign(op string, v uint64) error {
	if err := b.check(op); err != nil {
		return err
	}
	if err := b.g.Barrier(); err != nil {
		return err
	}
	for i := range b.own {
		atomic.StoreUint64(&b.own[i], v)
	}
	first, end := b.Range(b.rank)
	if tail := (end - first) % wordBits; tail != 0 {
		atomic.StoreUint64(&b.own[len(b.own)-1], v&(1<<tail-1))
	}
	return b.g.Barrier()
}

// Delete is collective: it ends the bitmap and gives its memory back. No goroutine of the rank uses
// it any more when it is called.
func (b *Bitmap) Delete() error {
	if err := b.check("Delete"); err != nil {
		return err
	}
	// Updates that other ranks begin before their calls end before the memory goes.
	if err := b.g.Barrier(); err != nil {
		return err
	}
	b.done.Store(true)
	err := b.words.Delete()
	tables.Of(b.n).remove(b.number)
	b.own = nil
	return err
}
