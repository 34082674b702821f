package conc

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// counted knows how many values its subtree has, and their largest weight.
type counted struct {
	weight      int
	count, most int
}

func (c *counted) Pull(_ uint64, left, right *counted) {
	c.count = 1 + left.count + right.count
	c.most = max(c.weight, left.most, right.most)
}

type tree = Treap[counted, *counted]

// check compares subtree x with what it should know, and returns its keys in order.
func check(t *rapid.T, r *tree, x uint32) (keys []uint64, most int) {
	if x == 0 {
		if *r.At(0) != (counted{}) {
			t.Fatalf("the empty tree knows %+v", *r.At(0))
		}
		return nil, 0
	}
	low, a := check(t, r, r.Left(x))
	high, b := check(t, r, r.Right(x))
	v := r.At(x)
	keys, most = append(append(low, r.Key(x)), high...), max(a, b, v.weight)
	if v.count != len(keys) || v.most != most {
		t.Fatalf("node %d knows of %d values up to %d, and has %d up to %d", x, v.count, v.most, len(keys), most)
	}
	for _, y := range []uint32{r.Left(x), r.Right(x)} {
		if r.n[y].prio > r.n[x].prio {
			t.Fatalf("node %d is below %d, and has the higher priority", y, x)
		}
	}
	return keys, most
}

// TestTree compares a tree with a map while values come, change and go.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewTreap[counted]()
		nodes := map[uint64]uint32{}
		largest := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key, weight := rapid.Uint64Range(0, 40).Draw(t, "key"), rapid.IntRange(0, 9).Draw(t, "weight")
			x, there := nodes[key]
			switch {
			case !there:
				nodes[key] = r.Insert(key, counted{weight: weight})
			case rapid.Bool().Draw(t, "change"):
				r.At(x).weight = weight
				r.Refresh(x)
			default:
				r.Remove(x)
				delete(nodes, key)
			}
			largest = max(largest, len(nodes))
			keys, _ := check(t, &r, r.Root())
			if len(keys) != len(nodes) || !slices.IsSorted(keys) {
				t.Fatalf("the tree has %v in place of %v", keys, nodes)
			}
			for key, x := range nodes {
				if r.Key(x) != key {
					t.Fatalf("the node of %d has %+v", key, *r.At(x))
				}
			}
			if len(r.n) != largest+1 {
				t.Fatalf("%d nodes for %d values at most: those of removed ones are not used again", len(r.n)-1, largest)
			}
		}
	})
}

// However values come, the tree does not become deep.
func TestDepth(t *testing.T) {
	const n = 1 << 14
	for name, key := range map[string]func(i int) uint64{
		"up":       func(i int) uint64 { return uint64(i) },
		"down":     func(i int) uint64 { return uint64(n - i) },
		"zigzag":   func(i int) uint64 { return uint64(n + i*(1-2*(i&1))) },
		"equal":    func(int) uint64 { return 1 },
		"reversed": func(i int) uint64 { return uint64(bits.Reverse16(uint16(i))) },
	} {
		r := NewTreap[counted]()
		for i := range n {
			r.Insert(key(i), counted{})
		}
		var depth func(x uint32) int
		depth = func(x uint32) int {
			if x == 0 {
				return 0
			}
			return 1 + max(depth(r.Left(x)), depth(r.Right(x)))
		}
		// A random tree is some 3 log2(n) deep, 42 of these.
		if d := depth(r.Root()); d > 60 {
			t.Errorf("%s: %d values make a tree %d deep", name, n, d)
		}
	}
}
