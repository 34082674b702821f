package gas

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestNewArrayFar: blocks near the limits of numbers, of which the product with the ranks leaves 64
// bits: the array has all of its elements, and what was allocated behind it stays as it is.
func TestNewArrayFar(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		for _, block := range []int{1 << 31, 1 << 32, 1 << 61, 1 << 62, 1<<62 + 1, math.MaxInt - 1, math.MaxInt, math.MaxInt/3 + 1} {
			a := Must(NewArray[uint64](n, 1000, block))
			next := Must(NewSlice[uint64](n, 1000))
			if k := a.LocalLen(n.Rank()); k != len(a.LocalSlice(n)) || k != map[bool]int{true: 1000}[n.Rank() == 0] {
				return fmt.Errorf("block %d: %d elements on rank %d, a slice of %d", block, k, n.Rank(), len(a.LocalSlice(n)))
			}
			for i := range a.LocalSlice(n) {
				n.Must(a.Put(n, i, uint64(i)+1))
			}
			count := 0
			for i, v := range a.Local(n) {
				if count++; *v != uint64(i)+1 {
					return fmt.Errorf("block %d: element %d is %d", block, i, *v)
				}
			}
			if count != a.LocalLen(n.Rank()) {
				return fmt.Errorf("block %d: %d elements", block, count)
			}
			behind, _ := next.LocalSlice(n, 1000)
			for i, v := range behind {
				if v != 0 {
					return fmt.Errorf("block %d: word %d behind the array is %d", block, i, v)
				}
			}
			n.Must(errors.Join(a.Delete(n), Delete(n, next)))
		}
		return nil
	})
}

// farNumbers are the arguments of one round of TestFarNumbers.
type farNumbers struct{ length, block, count, index, stride, rows, rank int }

// TestFarNumbers: counts, blocks, indices, strides and ranks near 2^31, 2^32, 2^62 and 2^63, of both
// signs, are refused, or do what big.Int says; nothing panics, and no other memory is written.
func TestFarNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) int { return farInt().Draw(t, name) }
		f := farNumbers{draw("length"), draw("block"), draw("count"), draw("index"), draw("stride"), draw("rows"), draw("rank")}
		if err := Run(small(2), f.run); err != nil {
			t.Fatal(err)
		}
	})
}

// guarded is memory with words before and behind it, in which nothing may be written.
const guarded = 64

func (f farNumbers) run(n *Node) error {
	p, err := NewSlice[uint64](n, 3*guarded)
	if err != nil {
		return err
	}
	all, _ := p.LocalSlice(n, 3*guarded)
	for i := range all {
		all[i] = ^uint64(0)
	}
	if err := f.allocate(n); err != nil {
		return err
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if n.Rank() == 0 {
		if err := f.access(n, p); err != nil {
			return err
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	for i, v := range all {
		if v != ^uint64(0) {
			return fmt.Errorf("%+v: word %d of rank %d is %d", f, i, n.Rank(), v)
		}
	}
	return nil
}

// allocate makes all that takes a number of elements. What is made has them, and no more.
func (f farNumbers) allocate(n *Node) error {
	room := func(what string, count int, err error) error {
		if err == nil && (count < 1 || count > 1<<20) {
			return fmt.Errorf("%+v: %s succeeds", f, what)
		}
		if err != nil && !errors.Is(err, ErrBadArg) && !errors.Is(err, ErrResource) {
			return fmt.Errorf("%+v: %s: %w", f, what, err)
		}
		return nil
	}
	slice, err := NewSlice[[3]uint64](n, f.count)
	if err := errors.Join(room("NewSlice", f.count, err)); err != nil {
		return err
	}
	if err == nil {
		if own, ok := slice.LocalSlice(n, f.count); !ok || len(own) != f.count {
			return fmt.Errorf("%+v: NewSlice of %d", f, len(own))
		}
		if err := Delete(n, slice); err != nil {
			return err
		}
	}
	one, err := Alloc[[3]uint64](n, f.count)
	if err := errors.Join(room("Alloc", f.count, err), Free(n, one)); err != nil {
		return err
	}
	if f.count < 1<<20 || f.count > 1<<40 { // of others there may be room
		made, at, err := MakeSlice[[3]uint64](n, f.count)
		if err := errors.Join(room("MakeSlice", f.count, err), Free(n, at)); err != nil || len(made) != 0 && len(made) != f.count {
			return fmt.Errorf("%+v: MakeSlice of %d (%w)", f, len(made), err)
		}
	}
	a, err := NewArray[[3]uint64](n, f.length, f.block)
	if err := room("NewArray", f.length, err); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	total := 0
	for r := range n.Size() {
		total += a.LocalLen(r)
	}
	if total != f.length || len(a.LocalSlice(n)) != a.LocalLen(n.Rank()) || a.LocalLen(f.rank) != 0 && uint(f.rank) >= uint(n.Size()) {
		return fmt.Errorf("%+v: ranks have %d elements, this one %d", f, total, len(a.LocalSlice(n)))
	}
	for start, b := range a.LocalBlocks(n) {
		for k := range b {
			b[k] = [3]uint64{uint64(start + k)}
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	for i, q := range map[int]Ptr[[3]uint64]{0: a.At(0), f.length - 1: a.At(f.length - 1), f.index: a.At(f.index)} {
		if v, err := q.Get(n); (err == nil) != (uint(i) < uint(f.length)) || err == nil && v[0] != uint64(i) {
			return fmt.Errorf("%+v: element %d is %d (%v)", f, i, v[0], err)
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	return a.Delete(n)
}

// access accesses rank 1's guarded words with numbers of which none is inside.
func (f farNumbers) access(n *Node, p Ptr[uint64]) error {
	mid := p.On(1).Add(guarded)
	refused := func(what string, err error) error {
		if !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("%+v: %s: %w", f, what, err)
		}
		return nil
	}
	src := make([]uint64, guarded)
	var all []error
	outside := func(i int) bool { return i < -guarded || i >= 2*guarded }
	if far := mid.Add(f.index); outside(f.index) && far.Rank() == 1 && uint64(far.NLA()) != uint64(mid.NLA())+8*uint64(f.index) && far.NLA() != nowhere {
		return fmt.Errorf("%+v: %v moved to %v", f, mid, far)
	}
	if b := bigSum(f.index, 8, uint64(mid.NLA()), 8); b.Sign() < 0 || b.Cmp(big.NewInt(int64(mid.NLA())+1<<20)) > 0 {
		all = append(all, refused("Put", mid.Add(f.index).Put(n, 1)), refused("PutSlice", mid.Add(f.index).PutSlice(n, src)),
			refused("Store", Store(n, mid.Add(f.index), 1)), refused("PutIndexed", mid.PutShape(n, src[:1], Shape{Index: []int{f.index}})),
			refused("NB", second(mid.PutShapeNB(n, src[:1], Shape{Index: []int{f.index}}))))
		if _, ok := mid.Add(f.index).LocalSlice(n, 1); ok {
			all = append(all, fmt.Errorf("%+v: LocalSlice", f))
		}
	}
	if uint(f.rank) >= 2 {
		all = append(all, refused("On", mid.On(f.rank).Put(n, 1)), refused("Register", second(RegisterFor(n, src, RightsAll, orAny(f.rank)))))
	}
	if f.count < 0 || f.count > 1<<20 {
		if _, ok := mid.LocalSlice(n, f.count); ok {
			all = append(all, fmt.Errorf("%+v: LocalSlice of %d", f, f.count))
		}
	}
	// More than one row leaves the slice, the memory or the numbers, unless there is little of it.
	if r := (Shape{Count: f.rows, Len: f.count, Remote: f.stride, Local: f.index}); f.rows < 0 || f.count < 0 || f.stride < 0 || f.index < 0 ||
		f.rows > 0 && f.count > 0 && max(f.rows, f.count, f.stride*min(f.rows-1, 1), f.index*min(f.rows-1, 1)) > 1<<20 {
		all = append(all, refused("PutShape", mid.PutShape(n, src, r)), refused("NB", second(mid.PutShapeNB(n, src, r))))
	}
	s := segment.Shared{Thread: 1, Addr: mid.NLA()}
	for _, block := range []int{max(f.block, 0), 0, 3} {
		q := s.Add(Layout{Threads: 2, Block: block}, f.index, 8)
		want, there := uint64(0), true
		if block == 0 {
			b := bigSum(f.index, 8, uint64(mid.NLA()), 0)
			want, there = b.Uint64(), b.Sign() >= 0 && b.Cmp(new(big.Int).SetUint64(uint64(segment.ExposedLimit))) < 0
			if there && uint64(q.Addr) != want || !there && q.Addr != segment.ExposedLimit {
				return fmt.Errorf("%+v: %v moved to %v", f, s, q)
			}
		}
		if x, ok := q.Sub(Layout{Threads: 2, Block: block}, s, 8); ok && x != f.index {
			return fmt.Errorf("%+v: blocks of %d: %v less %v is %d", f, block, q, s, x)
		}
	}
	return errors.Join(all...)
}

// bigSum is i*size + at + more.
func bigSum(i, size int, at uint64, more int) *big.Int {
	b := new(big.Int).Mul(big.NewInt(int64(i)), big.NewInt(int64(size)))
	return b.Add(b, new(big.Int).SetUint64(at+uint64(more)))
}

// orAny is rank, which is out of range, unless it is AnyPeer, which stands for all.
func orAny(rank int) int {
	if rank == AnyPeer {
		return AnyPeer - 1
	}
	return rank
}
