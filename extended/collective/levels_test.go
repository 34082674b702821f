package collective

import (
	"slices"
	"testing"

	"github.com/argon-go/argon/conduits"
	"pgregory.net/rapid"
)

// TestBroadcastTree builds the tree of a broadcast out of what each rank believes
// of it: every rank but the root has one source, which sends to it by the same
// link, all are reached, and no more messages than needed pass between
// neighbourhoods.
func TestBroadcastTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var host []int
		for i, k := range rapid.SliceOfN(rapid.IntRange(1, 9), 1, 9).Draw(t, "neighbourhoods") {
			host = append(host, slices.Repeat([]int{i}, k)...)
		}
		if rapid.Bool().Draw(t, "scattered") {
			host = rapid.Permutation(host).Draw(t, "hosts")
		}
		size := len(host)
		hoods := conduits.NewNeighbourhoods(size, func(r int) int { return host[r] })
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		ranks := make([]Member, size)
		for r := range ranks {
			c := &ranks[r]
			c.rank, c.size = r, size
			c.useLevels(hoods)
		}
		type link struct{ dir, i, from, to int }
		sent := map[link]bool{}
		reached := map[int]bool{root: true}
		between := 0
		for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
			c := &ranks[todo[0]]
			c.toBelow(root, func(dir, i, to int) {
				if ranks[0].levels != nil && (host[c.rank] == host[to]) != (dir == near) {
					t.Fatalf("rank %d of host %d sends to rank %d of host %d by link %d", c.rank, host[c.rank], to, host[to], dir)
				}
				if reached[to] {
					t.Fatalf("rank %d is reached twice", to)
				}
				reached[to] = true
				sent[link{dir, i, c.rank, to}] = true
				if dir == far {
					between++
				}
				todo = append(todo, to)
			})
		}
		if len(reached) != size {
			t.Fatalf("%d of %d ranks are reached", len(reached), size)
		}
		for r := range ranks {
			dir, i, from, ok := ranks[r].source(root)
			if ok != (r != root) || ok && !sent[link{dir, i, from, r}] {
				t.Fatalf("rank %d waits for rank %d by link %d, %d, which does not send there", r, from, dir, i)
			}
		}
		if ranks[0].levels != nil && between != hoods.Len()-1 {
			t.Fatalf("%d messages between %d neighbourhoods", between, hoods.Len())
		}
	})
}
