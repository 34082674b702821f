package gas

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestBatch asks each rank for what only it can say.
func TestBatch(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		for _, ranks := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(conduit, ranks), func(t *testing.T) {
				err := Run(Config{Ranks: ranks, Conduit: conduit}, func(n *Node) error {
					b := Must(NewBatch(n, "sums", func(n *Node, source int, q [3]uint16) uint64 {
						return uint64(n.Rank())<<48 | uint64(source)<<32 | uint64(q[0])
					}))
					for _, asked := range []int{0, 1, 3000} {
						for i := range asked {
							n.Must(b.Ask(i*i%ranks, [3]uint16{uint16(i)}))
						}
						got := Must(b.Answers())
						if len(got) != asked {
							return fmt.Errorf("%d answers to %d questions", len(got), asked)
						}
						for i, v := range got {
							if want := uint64(i*i%ranks)<<48 | uint64(n.Rank())<<32 | uint64(uint16(i)); v != want {
								return fmt.Errorf("answer %d is %#x, want %#x", i, v, want)
							}
						}
					}
					return b.Delete()
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestArrayTogether compares the collective operations on lists of indices with a plain slice.
func TestArrayTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		length := rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "length")
		block := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "block")
		count := rapid.SampledFrom([]int{0, 1, 900}).Draw(t, "count")
		seed := rapid.Uint64().Draw(t, "seed")
		list := func(rank int) (idx []int, values []int64) {
			rng := rand.New(rand.NewPCG(seed, uint64(rank)))
			for range count + rank {
				idx = append(idx, rng.IntN(length))
				values = append(values, rng.Int64N(1000))
			}
			return idx, values
		}
		want, times := make([]int64, length), make([]int64, length)
		for r := range ranks {
			idx, values := list(r)
			for k, i := range idx {
				want[i] += values[k]
				times[i]++
			}
		}
		err := Run(small(ranks), func(n *Node) error {
			a, err := NewArray[int64](n, length, block)
			if err != nil {
				return err
			}
			idx, values := list(n.Rank())
			n.Must(AddAll(n, a, idx, values))
			got := make([]int64, len(idx))
			n.Must(a.GetAll(n, idx, got))
			for k, i := range idx {
				if got[k] != want[i] {
					return fmt.Errorf("rank %d: element %d is %d, want %d", n.Rank(), i, got[k], want[i])
				}
				values[k] = int64(i) * 3
			}
			n.Must(n.Barrier())
			n.Must(a.PutAll(n, idx, values))
			for _, i := range idx {
				if v, err := a.Get(n, i); err != nil || v != int64(i)*3 {
					return fmt.Errorf("rank %d: element %d is %d (%v), want %d", n.Rank(), i, v, err, i*3)
				}
			}
			for k, i := range idx {
				values[k] = int64(i) + 1
			}
			n.Must(n.Barrier())
			n.Must(a.UpdateAll(n, idx, values, func(old, v int64) int64 { return old + v*1000 }))
			for _, i := range idx {
				if v, err := a.Get(n, i); err != nil || v != int64(i)*3+1000*int64(i+1)*times[i] {
					return fmt.Errorf("rank %d: element %d is %d (%v) after %d updates", n.Rank(), i, v, err, times[i])
				}
			}
			// A list that is refused leaves the others alone.
			if n.Rank() == 0 {
				err = a.GetAll(n, []int{0, length}, make([]int64, 2))
				if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), fmt.Sprintf("idx[1] is %d", length)) {
					return fmt.Errorf("Gather of an index that there is not: %v", err)
				}
				return nil
			}
			return a.GetAll(n, idx, got)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
