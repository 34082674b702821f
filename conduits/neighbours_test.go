package conduits_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
)

// TestNeighbourhoods compares with a map of the hosts.
func TestNeighbourhoods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(t, "hosts")
		if rapid.Bool().Draw(t, "consecutive") {
			slices.Sort(host)
		}
		n := conduits.NewNeighbourhoods(len(host), func(r int) int { return host[r] })
		ranks := map[int][]int{}
		var order []int // hosts by their first ranks
		for r, h := range host {
			if ranks[h] == nil {
				order = append(order, h)
			}
			ranks[h] = append(ranks[h], r)
		}
		if n.Len() != len(order) || n.Size() != len(host) || len(n.Firsts()) != len(order) {
			t.Fatalf("%d neighbourhoods of %d ranks, %v begin them", n.Len(), n.Size(), n.Firsts())
		}
		for i, h := range order {
			if got := n.Ranks(i); !slices.Equal(got, ranks[h]) || n.Firsts()[i] != got[0] {
				t.Fatalf("neighbourhood %d is %v and begins with %d, want %v", i, got, n.Firsts()[i], ranks[h])
			}
			for _, r := range ranks[h] {
				if n.Of(r) != i {
					t.Fatalf("rank %d is of %d, want %d", r, n.Of(r), i)
				}
			}
		}
	})
}

// TestRankList writes some.
func TestRankList(t *testing.T) {
	for want, ranks := range map[string][]int{
		"3":                                {3},
		"0 to 3":                           {0, 1, 2, 3},
		"0, 2":                             {0, 2},
		"0 to 1, 6, 8 to 10":               {0, 1, 6, 8, 9, 10},
		"0, 2, 4, 6 and 3 more":            {0, 2, 4, 6, 8, 9, 12},
		"1 to 2, 4 to 5, 7 to 8, 11 to 13": {1, 2, 4, 5, 7, 8, 11, 12, 13},
	} {
		if got := conduits.RankList(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
}
