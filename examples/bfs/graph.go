package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// edge is a pair of vertices: the second is to be known, or searched, at the first's rank.
type edge struct{ at, other uint32 }

// none is no vertex.
const none = math.MaxUint32

// random is the i-th of a sequence of random numbers (splitmix64): any rank can draw any of them.
func random(seed, i uint64) uint64 {
	x := seed*0xd1342543de82ef95 + i*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// scramble gives vertex v a number at random: a permutation of 0 to 2^scale-1, of steps
// of which each can be undone.
func (o *options) scramble(v uint32) uint32 {
	mask := uint32(1)<<o.scale - 1
	for i := range uint64(4) {
		r := random(o.seed+1, i)
		v = (v*uint32(r|1) + uint32(r>>32)) & mask
		v ^= v >> ((o.scale + 1) / 2)
	}
	return v
}

// draw is the i-th edge: the quarter of the matrix in which it lies is chosen again and again, with
// probabilities A = 0.57, B = 0.19, C = 0.19 and 0.05 (Graph500's specification, section 3).
func (o *options) draw(i int) edge {
	var e edge
	for bit := range o.scale {
		r := random(o.seed, uint64(i)*maxScale+uint64(bit)) >> 32 * 100 >> 32
		e.at, e.other = e.at<<1, e.other<<1
		if r >= 76 {
			e.at |= 1
		}
		if r >= 57 && r < 76 || r >= 95 {
			e.other |= 1
		}
	}
	return edge{o.scramble(e.at), o.scramble(e.other)}
}

// graph is one rank's part of the graph: its vertices are first to end-1.
type graph struct {
	n          *gas.Node
	o          *options
	first, end int
	start      []int    // where the neighbours of each vertex begin in ends, and the end
	ends       []uint32 // neighbours

	visited *dist.Bitmap
	box     *gas.Mailbox[edge] // visits
	visit   func(e edge)       // does one
	levels  *gas.Batch[uint32, int32]
	level   []int32 // what levels answers, by vertex; -1 is none
}

// prepare draws the graph and chooses roots. Collective.
func prepare(n *gas.Node, o *options) (*graph, []uint32, error) {
	g, err := build(n, o)
	if err != nil {
		return nil, nil, err
	}
	roots, err := g.chooseRoots()
	return g, roots, err
}

// build draws the graph. Collective.
func build(n *gas.Node, o *options) (*graph, error) {
	g := &graph{n: n, o: o}
	var err error
	if g.visited, err = dist.NewBitmap(n, "visited", 1<<o.scale); err != nil {
		return nil, err
	}
	g.first, g.end = g.visited.Range(n.Rank())
	var mine []edge
	drawn, err := gas.NewMailbox(n, "edges", func(_ *gas.Node, _ int, items []edge) { mine = append(mine, items...) })
	if err != nil {
		return nil, err
	}
	count := o.edges << o.scale
	for i := count * n.Rank() / n.Size(); i < count*(n.Rank()+1)/n.Size(); i++ {
		e := o.draw(i)
		if e.at == e.other {
			continue
		}
		for _, e := range []edge{e, {e.other, e.at}} {
			if err := drawn.Push(g.owner(e.at), e); err != nil {
				return nil, err
			}
		}
	}
	if err := drawn.Delete(); err != nil {
		return nil, err
	}
	g.fill(mine)

	g.box, err = gas.NewMailbox(n, "visits", func(_ *gas.Node, _ int, items []edge) {
		for _, e := range items {
			g.visit(e)
		}
	})
	if err != nil {
		return nil, err
	}
	g.level = make([]int32, g.end-g.first)
	g.levels, err = gas.NewBatch(n, "levels", func(_ *gas.Node, _ int, v uint32) int32 { return g.level[int(v)-g.first] })
	return g, err
}

// fill makes the lists of neighbours.
func (g *graph) fill(mine []edge) {
	g.start = make([]int, g.end-g.first+1)
	for _, e := range mine {
		g.start[int(e.at)-g.first+1]++
	}
	for i := range g.end - g.first {
		g.start[i+1] += g.start[i]
	}
	g.ends = make([]uint32, len(mine))
	next := slices.Clone(g.start)
	for _, e := range mine {
		at := &next[int(e.at)-g.first]
		g.ends[*at] = e.other
		*at++
	}
}

// owner is the rank that has vertex v.
func (g *graph) owner(v uint32) int { return g.visited.Owner(int(v)) }

// neighbours are those of the i-th vertex of this rank.
func (g *graph) neighbours(i int) []uint32 { return g.ends[g.start[i]:g.start[i+1]] }

// chooseRoots draws different vertices that have edges. Collective.
func (g *graph) chooseRoots() ([]uint32, error) {
	own := 0
	for i := range g.end - g.first {
		if len(g.neighbours(i)) > 0 {
			own++
		}
	}
	all, err := gas.AllReduce(g.n, own, gas.Sum)
	if err != nil {
		return nil, err
	}
	if g.o.roots > all {
		return nil, fmt.Errorf("bfs: -roots %d: the graph has %d vertices with edges (-scale, -edges)", g.o.roots, all)
	}
	var roots []uint32
	for i := uint64(0); len(roots) < g.o.roots; i++ {
		v := uint32(random(g.o.seed+2, i) >> (64 - g.o.scale))
		if slices.Contains(roots, v) {
			continue
		}
		degree := 0
		if g.owner(v) == g.n.Rank() {
			degree = len(g.neighbours(int(v) - g.first))
		}
		if degree, err = gas.Broadcast(g.n, g.owner(v), degree); err != nil {
			return nil, err
		}
		if degree > 0 {
			roots = append(roots, v)
		}
	}
	return roots, nil
}

// done ends what the graph has of the runtime. Collective.
func (g *graph) done() error {
	return errors.Join(g.box.Delete(), g.levels.Delete(), g.visited.Delete())
}
