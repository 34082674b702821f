package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/argon-go/argon/gas"
)

// tree is one rank's part of what a search has found.
type tree struct {
	root    uint32
	parents []uint32 // of this rank's vertices; the root's is itself
	depth   []int32  // the levels in which they were reached, -1 for those that were not
	levels  int      // how many there are, of all ranks
}

// search searches from root, level by level. Collective.
func (g *graph) search(root uint32) (*tree, error) {
	t := &tree{root: root, parents: make([]uint32, g.end-g.first), depth: make([]int32, g.end-g.first)}
	for i := range t.parents {
		t.parents[i], t.depth[i] = none, -1
	}
	if err := g.visited.Reset(); err != nil {
		return nil, err
	}
	seen := g.visited.Words()
	var last, next []uint32
	g.visit = func(e edge) {
		i := int(e.at) - g.first
		if w, bit := &seen[i/64], uint64(1)<<(i%64); *w&bit == 0 {
			*w |= bit
			t.parents[i], t.depth[i] = e.other, int32(t.levels)
			next = append(next, e.at)
		}
	}
	if g.owner(root) == g.n.Rank() {
		g.visit(edge{root, root})
	}
	for {
		last, next = next, last[:0]
		reached, err := gas.AllReduce(g.n, len(last), gas.Sum)
		if err != nil || reached == 0 {
			return t, err
		}
		t.levels++
		for _, v := range last {
			for _, w := range g.neighbours(int(v) - g.first) {
				if err := g.box.Push(g.owner(w), edge{w, v}); err != nil {
					return nil, err
				}
			}
		}
		if err := g.box.Sync(); err != nil {
			return nil, err
		}
	}
}

// The rules of Graph500's specification, section 8, in its order.
var rules = [...]string{
	"the tree has a cycle, or a part that does not hang on the root",
	"an edge of the tree joins levels that do not differ by one",
	"an edge of the graph joins levels that differ by more than one",
	"the tree does not span the component of its root",
	"an edge of the tree is none of the graph",
}

// fault is a vertex at which a rule is broken: Rule counts from 1, 0 is no fault.
type fault struct {
	Rule, Vertex uint32
}

// check looks at all of the tree. Collective: all ranks get the error of the first rule that
// is broken, at the first of its vertices.
func (g *graph) check(t *tree) error {
	bad := fault{none, none}
	breaks := func(rule int, i int) {
		f := fault{uint32(rule), uint32(g.first + i)}
		if cmp.Or(cmp.Compare(f.Rule, bad.Rule), cmp.Compare(f.Vertex, bad.Vertex)) < 0 {
			bad = f
		}
	}
	if err := g.relevel(t, breaks); err != nil {
		return err
	}
	for i, p := range t.parents {
		v := uint32(g.first + i)
		if v == t.root && p != v {
			breaks(1, i)
		}
		if p == none || g.level[i] < 0 {
			continue // unreached, or rule 1
		}
		if g.level[i] != t.depth[i] {
			breaks(2, i)
		}
		if v != t.root && !slices.Contains(g.neighbours(i), p) {
			breaks(5, i)
		}
	}
	for _, w := range g.ends {
		if err := g.levels.Ask(g.owner(w), w); err != nil {
			return err
		}
	}
	others, err := g.levels.Answers()
	if err != nil {
		return err
	}
	for i, l := range g.level {
		for _, m := range others[g.start[i]:g.start[i+1]] {
			switch {
			case (l < 0) != (m < 0):
				breaks(4, i)
			case l-m > 1 || m-l > 1:
				breaks(3, i)
			}
		}
	}
	all, err := gas.AllReduce(g.n, bad, func(a, b fault) fault {
		if cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Vertex, b.Vertex)) < 0 {
			return a
		}
		return b
	})
	if err != nil || all.Rule == none {
		return err
	}
	return fmt.Errorf("bfs: the search from %d breaks rule %d at vertex %d: %s", t.root, all.Rule, all.Vertex, rules[all.Rule-1])
}

// relevel finds the levels of the tree from its parents alone, into g.level: a vertex's is its parent's
// and one. A vertex that has a parent, and no level when no more are found, hangs on no root.
func (g *graph) relevel(t *tree, breaks func(rule, i int)) error {
	var open []int
	for i, p := range t.parents {
		g.level[i] = -1
		switch {
		case uint32(g.first+i) == t.root:
			g.level[i] = 0
		case p != none:
			open = append(open, i)
		}
	}
	for {
		// Nor does a parent's answer come before its level of this round is there.
		for _, i := range open {
			if err := g.levels.Ask(g.owner(t.parents[i]), t.parents[i]); err != nil {
				return err
			}
		}
		answers, err := g.levels.Answers()
		if err != nil {
			return err
		}
		found, rest := 0, open[:0]
		for k, i := range open {
			if answers[k] < 0 {
				rest = append(rest, i)
				continue
			}
			g.level[i] = answers[k] + 1
			found++
		}
		open = rest
		if found, err = gas.AllReduce(g.n, found, gas.Sum); err != nil {
			return err
		}
		if found == 0 {
			break
		}
	}
	for _, i := range open {
		breaks(1, i)
	}
	return nil
}
