package fabric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// crowd has the deliveries of a tree in a test: results by register and node, copies by
// message and node.
type crowd struct {
	t       *rapid.T
	results [][][]result
	copies  []map[int]Time
}

type result struct {
	at        Time
	low, high uint64
}

func (c *crowd) Combined(now Time, node, reg int, low, high uint64) {
	c.results[reg][node] = append(c.results[reg][node], result{now, low, high})
}

func (c *crowd) Copied(now Time, node int, id uint64) {
	if _, again := c.copies[id][node]; again {
		c.t.Fatalf("node %d has two copies of message %d", node, id)
	}
	c.copies[id][node] = now
}

// TestTree has nodes join rounds of several registers at any times, and send messages to
// all meanwhile. Each node has the result of a round once, after all have joined it and
// not before the smallest packet can have come from the last of them, and each message
// once but its source. Links carry no more than one packet of a round, or of a message,
// in each direction.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, nodes := shape(t)
		const registers = 2
		loop, to := &Loop{}, &crowd{t: t, results: make([][][]result, registers)}
		f, err := New(p, nodes, loop, func(Time, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		tree := f.Tree(TreeParams{Registers: registers, Bytes: 3, Stage: 2}, to)
		for reg := range to.results {
			to.results[reg] = make([][]result, nodes)
		}
		joined := make([]int, registers*nodes) // rounds, by register and node
		want := [registers][]result{}          // at is when the last node joined
		for at := Time(0); at < 400; at += rapid.Int64Range(0, 30).Draw(t, "wait") + 1 {
			loop.RunUntil(f, at)
			if rapid.IntRange(0, 9).Draw(t, "cast") == 0 {
				to.copies = append(to.copies, map[int]Time{})
				src := rapid.IntRange(0, nodes-1).Draw(t, "source")
				to.copies[len(to.copies)-1][src] = at
				tree.Cast(at, src, rapid.IntRange(0, 40).Draw(t, "bytes"), uint64(len(to.copies)-1))
			}
			for reg := range registers {
				for node := range nodes {
					k := joined[reg*nodes+node]
					if len(to.results[reg][node]) < k || rapid.Bool().Draw(t, "waits") {
						continue
					}
					joined[reg*nodes+node]++
					if k == len(want[reg]) {
						want[reg] = append(want[reg], result{low: math.MaxUint64})
					}
					w := &want[reg][k]
					low, high := rapid.Uint64().Draw(t, "low"), rapid.Uint64().Draw(t, "high")
					w.at, w.low, w.high = at, min(w.low, low), max(w.high, high)
					tree.Join(at, node, reg, low, high)
				}
			}
		}
		loop.Run(f)
		for reg := range registers {
			for node, got := range to.results[reg] {
				for k, w := range want[reg] {
					all := true
					for other := range nodes {
						all = all && joined[reg*nodes+other] > k
					}
					if all != (k < len(got)) {
						t.Fatalf("round %d of register %d: result at node %d is there: %v; all have joined: %v", k, reg, node, k < len(got), all)
					}
					if all && (got[k].low != w.low || got[k].high != w.high || got[k].at < w.at+2*tree.side) {
						t.Fatalf("round %d of register %d: %+v at node %d, of %+v", k, reg, got[k], node, w)
					}
				}
			}
		}
		for id, c := range to.copies {
			if len(c) != nodes {
				t.Fatalf("message %d is at %d of %d nodes", id, len(c), nodes)
			}
		}
		if n, most := int(f.Stats().Hops), (len(to.copies)+len(want[0])+len(want[1]))*2*(nodes+len(tree.sw)); n > most {
			t.Fatalf("%d packets on links, at most %d: each of %d rounds and messages once", n, most, most)
		}
	})
}

// TestTreeIdle: in an idle network a round takes what a packet takes from the farthest
// node to the root and back, and the comparators' time; a message comes to each node
// when the ways to the root and from there say.
func TestTreeIdle(t *testing.T) {
	for _, topo := range []Topology{Crossbar, Torus, FatTree} {
		p := extoll
		p.Topology, p.Radix = topo, 8
		const nodes, bytes = 60, 100
		loop, to := &Loop{}, &crowd{results: [][][]result{make([][]result, nodes)}, copies: []map[int]Time{{}}}
		f, err := New(p, nodes, loop, func(Time, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		tree := f.Tree(TreeParams{Registers: 1, Bytes: bytes}, to)
		way := func(node int) Time { // to the root
			switch topo {
			case Torus:
				return tree.side + Time(f.Hops(node, 0))*p.HopLatency
			case FatTree:
				return tree.Rise()
			}
			return tree.side
		}
		to.copies[0][7] = 0
		tree.Cast(0, 7, bytes, 0)
		loop.Run(f)
		for node, at := range to.copies[0] {
			want := way(7) + way(node) + f.tail(bytes)
			if node != 7 && at != want {
				t.Errorf("%v: a copy is at node %d at %d, want %d", topo, node, at, want)
			}
		}
		start := loop.Now() + 1_000_000
		loop.RunUntil(f, start)
		for node := range nodes {
			tree.Join(start, node, 0, uint64(node), uint64(node))
		}
		loop.Run(f)
		depth := Time(tree.depth)
		for node, got := range to.results[0] {
			most := 2*tree.Rise() + (depth+2)*f.tail(bytes)
			if len(got) != 1 || got[0].low != 0 || got[0].high != nodes-1 || got[0].at-start > most {
				t.Errorf("%v: results at node %d: %+v, at most %d after %d", topo, node, got, most, start)
			}
		}
		if last := to.results[0][nodes-1][0].at - start; last < 2*tree.Rise()-depth*p.HopLatency {
			t.Errorf("%v: a round took %d; the way up and down is %d", topo, last, 2*tree.Rise())
		}
	}
}
