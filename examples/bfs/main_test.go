package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"bfs": main})
}

// alone are the levels of a search on one rank.
func alone(o *options, root uint32) []int32 {
	beside := make([][]uint32, 1<<o.scale)
	for i := range o.edges << o.scale {
		e := o.draw(i)
		beside[e.at] = append(beside[e.at], e.other)
		beside[e.other] = append(beside[e.other], e.at)
	}
	depth := slices.Repeat([]int32{-1}, len(beside))
	depth[root] = 0
	for queue := []uint32{root}; len(queue) > 0; queue = queue[1:] {
		for _, w := range beside[queue[0]] {
			if depth[w] < 0 {
				depth[w] = depth[queue[0]] + 1
				queue = append(queue, w)
			}
		}
	}
	return depth
}

// TestAgainstOneRank compares levels, and what is printed, with a search on one rank, for graphs with more
// ranks than vertices among them.
func TestAgainstOneRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options{
			ranks: rapid.IntRange(1, 7).Draw(t, "ranks"),
			scale: rapid.IntRange(1, 9).Draw(t, "scale"),
			edges: rapid.IntRange(1, 20).Draw(t, "edges"),
			roots: 1,
			seed:  rapid.Uint64().Draw(t, "seed"),
		}
		conduit := rapid.SampledFrom([]string{"shm", "sim", "shm", "udp"}).Draw(t, "conduit")
		var root uint32
		have := make([][]int32, o.ranks)
		err := gas.Run(gas.Config{Ranks: o.ranks, Conduit: conduit, SegmentSize: 1 << 18}, func(n *gas.Node) error {
			g, roots, err := prepare(n, &o)
			if err != nil {
				return err
			}
			tree, err := g.search(roots[0])
			if err != nil {
				return err
			}
			if n.Rank() == 0 {
				root = roots[0]
			}
			have[n.Rank()] = tree.depth
			if err := g.check(tree); err != nil {
				return err
			}
			return g.done()
		})
		if err != nil && strings.Contains(err.Error(), "the graph has 0 vertices with edges") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Concat(have...), alone(&o, root); !slices.Equal(got, want) {
			t.Fatalf("levels from %d: %v, want %v", root, got, want)
		}
	})
}

// TestDraw: vertices are numbered anew, and few have many edges.
func TestDraw(t *testing.T) {
	for scale := 1; scale <= 12; scale++ {
		o := options{scale: scale, seed: uint64(scale)}
		seen := make([]bool, 1<<scale)
		for v := range uint32(1) << scale {
			w := o.scramble(v)
			if int(w) >= len(seen) || seen[w] {
				t.Fatalf("scale %d: vertex %d becomes %d, out of range or taken", scale, v, w)
			}
			seen[w] = true
		}
	}
	o := options{scale: 10, edges: 16, seed: 3}
	var degrees [1 << 10]int
	for i := range o.edges << o.scale {
		degrees[o.draw(i).at]++
	}
	slices.Sort(degrees[:])
	half := 0
	for _, d := range degrees[512:] {
		half += d
	}
	if share := float64(half) / float64(o.edges<<o.scale); share < 0.85 {
		t.Errorf("half of the vertices have only %.2f of the edges", share)
	}
}

// TestCheck spoils a tree in each way that a rule is about.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		rule  int
		spoil func(g *graph, t *tree)
	}{
		{0, func(*graph, *tree) {}},
		{1, func(g *graph, t *tree) { // two vertices are each other's parents
			i := g.inner(t, 1, -1)
			if j := g.inner(t, 1, i); j >= 0 {
				t.parents[i], t.parents[j] = uint32(g.first+j), uint32(g.first+i)
			}
		}},
		{1, func(g *graph, t *tree) { // a parent that was not reached
			if i, j := g.inner(t, 1, -1), slices.Index(t.parents, none); i >= 0 && j >= 0 {
				t.parents[i] = uint32(g.first + j)
			}
		}},
		{2, func(g *graph, t *tree) {
			if i := g.inner(t, 2, -1); i >= 0 {
				t.depth[i]++
			}
		}},
		{3, func(g *graph, t *tree) { // a level that is too far from those beside it; last ones are no parents
			if i := g.inner(t, t.levels-1, -1); i >= 0 {
				t.parents[i], t.depth[i] = t.root, 1
			}
		}},
		{4, func(g *graph, t *tree) { // one that is left out
			if i := g.inner(t, t.levels-1, -1); i >= 0 {
				t.parents[i], t.depth[i] = none, -1
			}
		}},
		{5, func(g *graph, t *tree) { // an edge that there is not, but of the right levels
			for i := range t.parents {
				for j, d := range t.depth {
					if d >= 0 && d == t.depth[i]-1 && !slices.Contains(g.neighbours(i), uint32(g.first+j)) {
						t.parents[i] = uint32(g.first + j)
						return
					}
				}
			}
		}},
	} {
		o := options{ranks: 2, scale: 8, edges: 3, roots: 1, seed: 5}
		err := gas.Run(gas.Config{Ranks: o.ranks, SegmentSize: 1 << 18}, func(n *gas.Node) error {
			g, roots, err := prepare(n, &o)
			if err != nil {
				return err
			}
			t, err := g.search(roots[0])
			if err != nil {
				return err
			}
			c.spoil(g, t)
			if err := g.check(t); err != nil {
				return err
			}
			return g.done()
		})
		if c.rule == 0 && err != nil || c.rule > 0 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("breaks rule %d at vertex", c.rule))) {
			t.Errorf("rule %d: %v", c.rule, err)
		}
	}
}

// inner is a vertex of this rank in that level, other than i, or -1.
func (g *graph) inner(t *tree, level, i int) int {
	for j, d := range t.depth {
		if int(d) == level && j != i {
			return j
		}
	}
	return -1
}

// TestProcesses: processes print what ranks of one process do, but for the times.
func TestProcesses(t *testing.T) {
	var out bytes.Buffer
	if err := run(options{ranks: 3, scale: 8, edges: 8, roots: 5, seed: 1}, &out); err != nil {
		t.Fatal(err)
	}
	want, took, ok := strings.Cut(out.String(), "5 searches took ")
	if !ok || strings.Count(want, ": a valid tree\n") != 5 || !strings.Contains(took, " (TEPS)\n") {
		t.Fatalf("printed %q", out.String())
	}
	r := testjob.RunConfig(t, 3, "bfs", testjob.Config{Args: []string{"-scale", "8", "-edges", "8", "-roots", "5"}}).Want(t, 0)
	if got, _, _ := strings.Cut(r.Stdout[0], "5 searches took "); got != want {
		t.Errorf("processes print %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":              "bfs: -n 0: it must be 1 to 65536\n",
		"-scale 27":         "bfs: -scale 27: it must be 1 to 26\n",
		"-edges 0":          "bfs: -edges 0: it must be 1 to 1024\n",
		"-roots 0":          "bfs: -roots 0: it must be 1 to 65536\n",
		"wide":              "bfs: unexpected argument \"wide\"\n",
		"-scale 3 -roots 9": "bfs: -roots 9: the graph has ",
	} {
		r := testjob.RunConfig(t, 1, "bfs", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("bfs %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
