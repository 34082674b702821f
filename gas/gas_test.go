package gas

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// small is a Config for n in-process ranks with little memory.
func small(n int) Config { return Config{Ranks: n, SegmentSize: 1 << 20} }

// runN runs fn on n in-process ranks and fails the test if one fails.
func runN(t testing.TB, n int, fn func(n *Node) error) {
	t.Helper()
	if err := Run(small(n), fn); err != nil {
		t.Fatal(err)
	}
}

func TestRunGivesEachRankItsNumber(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 8} {
		var seen atomic.Uint64
		runN(t, size, func(n *Node) error {
			if n.Size() != size {
				return fmt.Errorf("size %d", n.Size())
			}
			if seen.Add(1<<(8*n.Rank()))>>(8*n.Rank())&0xff != 1 {
				return errors.New("rank seen twice")
			}
			return nil
		})
		want := uint64(0)
		for r := range size {
			want |= 1 << (8 * r)
		}
		if seen.Load() != want {
			t.Errorf("size %d: seen %x", size, seen.Load())
		}
	}
}

func TestPutGetEveryPair(t *testing.T) {
	everywhere(t, small(4), func(n *Node) error {
		p, err := NewSlice[uint64](n, n.Size())
		if err != nil {
			return err
		}
		for r := range n.Size() {
			if err := p.On(r).Add(n.Rank()).Put(n, uint64(n.Rank()*100+r)); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		for r := range n.Size() {
			for s := range n.Size() {
				v, err := p.On(r).Add(s).Get(n)
				if err != nil || v != uint64(s*100+r) {
					return fmt.Errorf("slot %d of rank %d: %d, %v", s, r, v, err)
				}
			}
		}
		return n.Barrier()
	})
}
