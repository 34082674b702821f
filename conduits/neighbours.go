package conduits

import (
	"fmt"
	"sort"
	"strconv"
)

// Neighbourly is implemented by endpoints of jobs that may have several
// neighbourhoods, and know them: layers above that work on two levels, inside
// neighbourhoods and between them, need it.
type Neighbourly interface {
	// Neighbourhoods lists the ranks that share memory; nil if the endpoint does not
	// know after all. Ranks of a neighbourhood have each other's Views and System.
	// The same on all ranks, shared and read-only; legal before Attach.
	Neighbourhoods() *Neighbourhoods
}

// NeighbourhoodsOf is what ep says if it is Neighbourly, and nil if it does not know.
func NeighbourhoodsOf(ep Endpoint) *Neighbourhoods {
	if n, ok := As[Neighbourly](ep); ok {
		return n.Neighbourhoods()
	}
	return nil
}

// Neighbourhoods divides the ranks of a job into those that share memory. They have
// the numbers 0 to Len()-1, in ascending order of their first ranks. Its methods may
// be called by any goroutine.
type Neighbourhoods struct {
	size   int
	firsts []int   // lowest rank of each
	of     []int32 // number by rank; nil if the ranks of each are consecutive
}

// NewNeighbourhoods puts ranks into the same neighbourhood for which host is equal:
// any numbers. Of size ranks, 1 or more.
func NewNeighbourhoods(size int, host func(rank int) int) *Neighbourhoods {
	n := &Neighbourhoods{size: size}
	number := map[int]int32{}
	for r := range size {
		h := host(r)
		i, known := number[h]
		if !known {
			i = int32(len(n.firsts))
			number[h] = i
			n.firsts = append(n.firsts, r)
		}
		if n.of == nil && int(i) < len(n.firsts)-1 { // a rank of one that was left before
			n.of = make([]int32, r, size)
			for q := range r {
				n.of[q] = int32(sort.SearchInts(n.firsts, q+1) - 1)
			}
		}
		if n.of != nil {
			n.of = append(n.of, i)
		}
	}
	return n
}

// Len is how many neighbourhoods there are.
func (n *Neighbourhoods) Len() int { return len(n.firsts) }

// Size is how many ranks there are.
func (n *Neighbourhoods) Size() int { return n.size }

// Firsts is the lowest rank of each, ascending, so that the first entry is 0. Shared
// and read-only.
func (n *Neighbourhoods) Firsts() []int { return n.firsts }

// Of is the number of rank's neighbourhood.
func (n *Neighbourhoods) Of(rank int) int {
	if n.of != nil {
		return int(n.of[rank])
	}
	return sort.SearchInts(n.firsts, rank+1) - 1
}

// Ranks are those of neighbourhood i, ascending. The slice is the caller's.
func (n *Neighbourhoods) Ranks(i int) []int {
	end := n.size
	if n.of == nil && i+1 < len(n.firsts) {
		end = n.firsts[i+1]
	}
	var l []int
	for r := n.firsts[i]; r < end; r++ {
		if n.of == nil || int(n.of[r]) == i {
			l = append(l, r)
		}
	}
	return l
}

// RankList writes ranks, ascending, for a message: "0 to 3, 6 and 12 more".
func RankList(ranks []int) string {
	const most = 4 // runs that are written
	var b []byte
	for i, runs := 0, 0; i < len(ranks); runs++ {
		if runs == most {
			return string(fmt.Appendf(b, " and %d more", len(ranks)-i))
		}
		end := i + 1
		for end < len(ranks) && ranks[end] == ranks[end-1]+1 {
			end++
		}
		if runs > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(ranks[i]), 10)
		if end-i > 1 {
			b = fmt.Appendf(b, " to %d", ranks[end-1])
		}
		i = end
	}
	return string(b)
}
