package gas

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestLocator compares it with divisions, also where products are next to a power of two.
func TestLocator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edge := func(least uint64) *rapid.Generator[int] {
			return rapid.Custom(func(t *rapid.T) int {
				v := rapid.Uint64Range(0, 1<<32+1).Draw(t, "v")
				if rapid.Bool().Draw(t, "edge") {
					v = uint64(1)<<rapid.IntRange(0, 32).Draw(t, "bits") + uint64(rapid.IntRange(-1, 1).Draw(t, "by"))
				}
				return int(max(v, least))
			})
		}
		l := segment.Layout{Threads: edge(1).Draw(t, "threads"), Block: edge(0).Draw(t, "block")}
		i := edge(0).Draw(t, "i")
		if l.Block > 0 && rapid.Bool().Draw(t, "multiple") {
			i = max(0, i/l.Block*l.Block+rapid.IntRange(-1, 1).Draw(t, "from it"))
		}
		x, ok := newLocator(l, i+1)
		if want := max(l.Threads, l.Block, i+1) < 1<<32; ok != want {
			t.Fatalf("%+v: a locator for %d elements: %v", l, i+1, ok)
		}
		var found [chunk]spot[int]
		spots(&found, []int{i / 2, i}, l, x, ok)
		for k, j := range []int{i / 2, i} {
			if r, at := l.Locate(j); found[k] != (spot[int]{uint32(r), at}) {
				t.Fatalf("%+v: element %d at %+v, want %d of rank %d", l, j, found[k], at, r)
			}
		}
		if !ok {
			return
		}
		rank, local := x.locate(i)
		if r, k := l.Locate(i); rank != r || local != k {
			t.Fatalf("%+v: element %d at %d of rank %d, want %d of rank %d", l, i, local, rank, k, r)
		}
	})
}

// TestZeroArray: lists for an Array that has no elements may be empty, and nothing else.
func TestZeroArray(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		var none Array[int64]
		if err := errors.Join(AddAll(n, none, nil, nil), none.GetAll(n, nil, nil)); err != nil {
			return err
		}
		if err := AddAll(n, none, []int{0}, []int64{1}); !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("an element of none: %w", err)
		}
		return nil
	})
}
