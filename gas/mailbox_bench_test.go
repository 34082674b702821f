package gas

import (
	"testing"
)

// BenchmarkUpdates adds to words of an array that is spread over two ranks of one process, in
// random places, by each of the ways there are. ns/op is for one update of each rank. The
// figures of docs/cookbook.md are of this.
func BenchmarkUpdates(b *testing.B) {
	ways := []struct {
		name string
		run  func(n *Node, a Array[uint64], count int) error
	}{
		{"one by one", func(n *Node, a Array[uint64], count int) error {
			next := random(n)
			for range count {
				if err := Add(n, a.At(next(a.Len())), 1); err != nil {
					return err
				}
			}
			return nil
		}},
		{"implicit", func(n *Node, a Array[uint64], count int) error {
			next := random(n)
			for range count {
				if err := AddNBI(n, a.At(next(a.Len())), 1); err != nil {
					return err
				}
			}
			return n.SyncImplicit()
		}},
		{"mailbox", func(n *Node, a Array[uint64], count int) error {
			next, layout, local := random(n), a.Layout(), a.LocalSlice(n)
			box, err := NewMailbox(n, "updates", func(_ *Node, _ int, items []uint32) {
				for _, at := range items {
					local[at]++
				}
			})
			if err != nil {
				return err
			}
			for range count {
				rank, at := layout.Locate(next(a.Len()))
				if err := box.Push(rank, uint32(at)); err != nil {
					return err
				}
			}
			return box.Delete()
		}},
		{"mailbox of values", byLists(func(n *Node, a Array[uint64], idx []int, values []uint64) error {
			type item struct {
				at int
				v  uint64
			}
			layout, local := a.Layout(), a.LocalSlice(n)
			box, err := NewMailbox(n, "updates", func(_ *Node, _ int, items []item) {
				for i := range items {
					local[items[i].at] += items[i].v
				}
			})
			if err != nil {
				return err
			}
			for k, i := range idx {
				rank, at := i>>13, i&(layout.Block-1)
				if err := box.Push(rank, item{at, values[k]}); err != nil {
					return err
				}
			}
			return box.Delete()
		})},
		{"AddAll", byLists(func(n *Node, a Array[uint64], idx []int, values []uint64) error {
			return AddAll(n, a, idx, values)
		})},
		{"UpdateAll", byLists(func(n *Node, a Array[uint64], idx []int, values []uint64) error {
			return a.UpdateAll(n, idx, values, func(old, v uint64) uint64 { return old ^ v })
		})},
		{"Scatter", byLists(func(n *Node, a Array[uint64], idx []int, values []uint64) error {
			return a.PutAll(n, idx, values)
		})},
		{"Gather", byLists(func(n *Node, a Array[uint64], idx []int, values []uint64) error {
			return a.GetAll(n, idx, values)
		})},
	}
	for _, conduit := range []string{"shm", "udp"} {
		for _, way := range ways {
			b.Run(conduit+"/"+way.name, func(b *testing.B) {
				err := Run(Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 20}, func(n *Node) error {
					a, err := NewArray[uint64](n, 1<<14, 1<<13)
					if err != nil {
						return err
					}
					if n.Rank() == 0 {
						b.ResetTimer()
					}
					if err := way.run(n, a, b.N); err != nil {
						return err
					}
					if err := n.Barrier(); err != nil {
						return err
					}
					if n.Rank() == 0 {
						b.StopTimer()
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// byLists has call do count updates, by lists of which it gets one after the other.
func byLists(call func(n *Node, a Array[uint64], idx []int, values []uint64) error) func(n *Node, a Array[uint64], count int) error {
	return func(n *Node, a Array[uint64], count int) error {
		const most = 1 << 16
		next := random(n)
		idx, values := make([]int, most), make([]uint64, most)
		for i := range idx {
			idx[i], values[i] = next(a.Len()), 1
		}
		for left := count; left > 0; left -= most {
			if err := call(n, a, idx[:min(left, most)], values[:min(left, most)]); err != nil {
				return err
			}
		}
		return nil
	}
}

// random returns numbers below what it is given: a xorshift generator, of which the ranks
// have different ones.
func random(n *Node) func(below int) int {
	x := uint64(n.Rank())*0x9e3779b97f4a7c15 + 1
	return func(below int) int {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return int(x >> 33 % uint64(below)) // unbiased enough
	}
}
