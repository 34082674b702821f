package fabric

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func build(t rapid.TB, p Params, nodes int) *Fabric {
	f, err := New(p, nodes, &Loop{}, func(Time, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// On a torus every path is a shortest one, in dimension order, and each link
// begins where the one before ended.
func TestTorusRoutes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var p Params
		p.Topology = Torus
		volume := 1
		for i := range p.Dims {
			p.Dims[i] = rapid.IntRange(1, 9).Draw(rt, "side")
			volume *= p.Dims[i]
		}
		nodes := rapid.IntRange(1, volume).Draw(rt, "nodes")
		f := build(rt, p, nodes)
		src := rapid.IntRange(0, nodes-1).Draw(rt, "src")
		dst := rapid.IntRange(0, nodes-1).Draw(rt, "dst")
		at, want, right := src, 0, true
		for i, stride := 0, 1; i < 3; i++ {
			n := p.Dims[i]
			d := (dst/stride%n - src/stride%n + n) % n
			want += min(d, n-d)
			stride *= n
		}
		if got := f.Hops(src, dst); got != want || got > f.Diameter() {
			rt.Fatalf("%v: %d hops from %d to %d, expected %d; diameter %d", p.Dims, got, src, dst, want, f.Diameter())
		}
		path := f.Path(nil, src, dst)
		if src == dst {
			if len(path) != 0 {
				rt.Fatalf("path to itself: %v", path)
			}
			return
		}
		if len(path) != want+2 || f.LinkName(path[0]) != fmt.Sprintf("node %d out", src) ||
			f.LinkName(path[want+1]) != fmt.Sprintf("node %d in", dst) {
			rt.Fatalf("path of %d hops from %d to %d: %v", want, src, dst, path)
		}
		dim := -1
		for _, l := range path[1 : want+1] {
			// Told from the name alone, which says where and whither.
			var x, y, z int
			var way string
			if _, err := fmt.Sscanf(f.LinkName(l), "(%d,%d,%d) %s", &x, &y, &z, &way); err != nil {
				rt.Fatal(err)
			}
			if got := x + p.Dims[0]*(y+p.Dims[1]*z); got != at {
				rt.Fatalf("link %s of a packet at %d", f.LinkName(l), at)
			}
			c := []int{x, y, z}
			i := strings.Index("xyz", way[1:])
			right = right && i >= dim
			dim = i
			step := 1
			if way[0] == '-' {
				step = p.Dims[i] - 1
			}
			c[i] = (c[i] + step) % p.Dims[i]
			at = c[0] + p.Dims[0]*(c[1]+p.Dims[1]*c[2])
		}
		if at != dst || !right {
			rt.Fatalf("%v: path %v from %d ends at %d, not %d, or leaves the order of dimensions", p.Dims, path, src, at, dst)
		}
	})
}

// The tree as its description says, told independently: a switch is its level
// and word in digits; a link is known by its lower switch and number.
func TestTreeRoutes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{Topology: FatTree, Radix: 2 * rapid.IntRange(2, 6).Draw(rt, "down")}
		nodes := rapid.IntRange(1, 300).Draw(rt, "nodes")
		f := build(rt, Params{Topology: FatTree, Radix: p.Radix, Contention: true}, nodes)
		src := rapid.IntRange(0, nodes-1).Draw(rt, "src")
		dst := rapid.IntRange(0, nodes-1).Draw(rt, "dst")
		path := f.Path(nil, src, dst)
		hops := f.Hops(src, dst)
		if src == dst {
			if len(path) != 0 || hops != 0 {
				rt.Fatalf("path to itself: %v", path)
			}
			return
		}
		d := p.Radix / 2
		digits := func(n int) []int { // lowest first
			w := make([]int, 0, 12)
			for range cap(w) {
				w = append(w, n%d)
				n /= d
			}
			return w
		}
		word, want := digits(src/d), digits(dst/d)
		turn := 0
		for i := range word {
			if word[i] != want[i] {
				turn = i + 1
			}
		}
		if hops != 2*turn+1 || len(path) != 2*turn+2 || hops > f.Diameter() {
			rt.Fatalf("%d hops, path %v from %d to %d, turning at level %d; diameter %d", hops, path, src, dst, turn, f.Diameter())
		}
		for i, l := range path[1 : 2*turn+1] {
			if l < 2*nodes || l >= len(f.links) {
				rt.Fatalf("link %d of %d, %d nodes", l, len(f.links), nodes)
			}
			var level, n int
			var way string
			if _, err := fmt.Sscanf(f.LinkName(l), "level %d number %d %s", &level, &n, &way); err != nil {
				rt.Fatal(err)
			}
			lower, port := digits(n/d), n%d
			if i < turn {
				if level != i || way != "up" || !slices.Equal(lower, word) {
					rt.Fatalf("link %s of a packet at level %d, switch %v", f.LinkName(l), i, word)
				}
				word[level] = port
				continue
			}
			if level != 2*turn-1-i || way != "down" || word[level] != port {
				rt.Fatalf("link %s of a packet at level %d, switch %v", f.LinkName(l), level+1, word)
			}
			word[level] = lower[level]
			if !slices.Equal(lower, word) {
				rt.Fatalf("link %s does not end at level %d, switch %v", f.LinkName(l), level, word)
			}
		}
		if !slices.Equal(word, want) {
			rt.Fatalf("path %v from %d ends at switch %v, not %v", path, src, word, want)
		}
	})
}

// When every node sends to the one d further, no links but those of nodes that
// are shared anyway carry more than one message: the tree has full bisection.
func TestTreeShifts(t *testing.T) {
	const nodes = 64
	f := build(t, Params{Topology: FatTree, Radix: 8, Contention: true}, nodes)
	for d := 1; d < nodes; d++ {
		carried := map[int]int{}
		for src := range nodes {
			for _, l := range f.Path(nil, src, (src+d)%nodes) {
				if carried[l]++; carried[l] > 1 {
					t.Fatalf("shift by %d: %s carries more than one", d, f.LinkName(l))
				}
			}
		}
	}
}

func TestCube(t *testing.T) {
	for n, want := range map[int][3]int{
		1: {1, 1, 1}, 2: {2, 1, 1}, 3: {3, 1, 1}, 8: {2, 2, 2}, 64: {4, 4, 4}, 4096: {16, 16, 16},
		65536: {64, 32, 32}, 1 << 20: {128, 128, 64}, 27: {3, 3, 3}, 101: {7, 5, 3},
	} {
		if got := Cube(n); got != want {
			t.Errorf("%d nodes: %v, expected %v", n, got, want)
		}
	}
	for n := 1; n < 2000; n++ {
		d := Cube(n)
		if d[0]*d[1]*d[2] < n {
			t.Errorf("%d nodes: %v", n, d)
		}
	}
}

// Diameter is the longest way there is.
func TestDiameter(t *testing.T) {
	for _, p := range []Params{
		{},
		{Topology: Torus},
		{Topology: Torus, Dims: [3]int{5, 1, 13}},
		{Topology: FatTree, Radix: 4},
		{Topology: FatTree, Radix: 16},
		{Topology: FatTree},
	} {
		for _, nodes := range []int{1, 2, 7, 64, 65} {
			f := build(t, p, nodes)
			most := 0
			for src := range nodes {
				for dst := range nodes {
					most = max(most, f.Hops(src, dst))
				}
			}
			// Of a torus only positions with nodes can be asked for.
			full := p.Topology != Torus || f.dims[0]*f.dims[1]*f.dims[2] == uint32(nodes)
			if most > f.Diameter() || full && most != f.Diameter() {
				t.Errorf("%+v, %d nodes: diameter %d, longest way %d", p, nodes, f.Diameter(), most)
			}
		}
	}
}

// Where both ways round are as short, half of the traffic takes each.
func TestTorusHalfway(t *testing.T) {
	f := build(t, Params{Topology: Torus, Dims: [3]int{6, 1, 1}}, 6)
	var ways [2]int
	for src := range 6 {
		ways[f.Path(nil, src, (src+3)%6)[1]%2]++
	}
	if ways != [2]int{3, 3} {
		t.Errorf("%v go up and down", ways)
	}
}
