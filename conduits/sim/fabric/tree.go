package fabric

import (
	"fmt"
	"math"
	"math/bits"
)

// TreeParams describe what switches do beside carrying packets.
type TreeParams struct {
	// Registers is how many rounds may be under way at once.
	Registers int
	// Bytes is the size of a packet that carries a part of a round, or its result.
	Bytes int
	// Stage is the time of one stage of a switch's comparators. A switch that combines
	// k packets has ceil(log2 k) of them, one behind the other.
	Stage Time
}

// A Collector gets what a Tree delivers, in the event of its time.
type Collector interface {
	// Combined is called when the result of a round of register reg is at node.
	Combined(now Time, node, reg int, low, high uint64)
	// Copied is called when the last byte of a copy of message id is at node.
	Copied(now Time, node int, id uint64)
}

// A Tree joins all nodes of a Fabric by some of its links and switches: each switch has
// one link towards the root, which is the switch of node 0. It combines a part of each
// node into a result for all of them, and replicates messages for all nodes.
//
// Where there is contention its packets wait for links as others do; in a crossbar, whose
// inputs and outputs are lent to each other, for each other alone. A switch combines
// whole packets, and sends one on when the last of those it waits for is there, so that
// in a round each link carries one packet in each direction. A message goes from its node
// up to the root, and down all other ways, so that each link carries it once in a
// direction; switches send it on as soon as its first bytes are there, and do not cut it.
//
// In an idle network a packet takes half of Latency, less HopLatency in a torus, between
// a node and its switch, and HopLatency from switch to switch: from node to node what a
// message takes on such a way.
type Tree struct {
	f     *Fabric
	p     TreeParams
	to    Collector
	sw    []treeSwitch
	kids  []int32 // switches below others: those of switch i from sw[i].first on
	per   uint32  // nodes of a switch that has some; 0: all
	count []int32 // parts that have come to a switch, by register and switch
	round []treeRound
	casts []cast
	free  int32  // first unused cast
	own   []link // of a crossbar
	occ   Time   // of a packet of a round
	tail  Time
	side  Time // between a node and its switch
	depth int  // links from the farthest switch to the root
}

// treeSwitch is one switch of a Tree.
type treeSwitch struct {
	parent   int32 // none at the root
	up, down int32 // the links to and from it
	first    int32 // of kids
	n        int32 // how many these are
	nodes    int32 // how many nodes are at the switch
	inputs   int32 // how many of kids and nodes
}

// treeRound is the combined value of a register's round under way.
type treeRound struct{ low, high uint64 }

// cast is a message, or the result of a round, on its way to all nodes.
type cast struct {
	id        uint64
	src       int32 // none: of a round
	reg       int32
	left      int32 // events of it under way
	next      int32 // in the list of those not in use
	low, high uint64
	occ, tail Time
}

// Tree makes a tree of f's switches, at most one for each Fabric.
func (f *Fabric) Tree(p TreeParams, to Collector) *Tree {
	if f.tree != nil || p.Registers < 0 || p.Bytes < 0 || p.Stage < 0 {
		panic(fmt.Sprintf("fabric: tree %+v of a network that has one: %v", p, f.tree != nil))
	}
	t := &Tree{f: f, p: p, to: to, free: none, occ: f.occ(p.Bytes), tail: f.tail(p.Bytes), side: f.p.Latency / 2}
	switch f.p.Topology {
	case Torus:
		t.side = (f.p.Latency - f.p.HopLatency) / 2
		t.per = 1
		t.growTorus()
	case FatTree:
		t.per = f.down
		t.growFatTree()
	default:
		t.sw = []treeSwitch{{parent: none, nodes: int32(f.nodes)}}
		t.own = make([]link, 2*f.nodes)
	}
	t.join()
	t.count = make([]int32, p.Registers*len(t.sw))
	t.round = make([]treeRound, p.Registers)
	for i := range t.round {
		t.round[i] = treeRound{low: math.MaxUint64}
	}
	f.tree = t
	return t
}

// growTorus makes a switch of each position; that of node 0 is the root. The others send
// along the way that a message to it takes.
func (t *Tree) growTorus() {
	f := t.f
	t.sw = make([]treeSwitch, f.dims[0]*f.dims[1]*f.dims[2])
	for i := range t.sw {
		t.sw[i] = treeSwitch{parent: none}
	}
	for node := range f.nodes {
		t.sw[node].nodes = 1
		// As far as a switch that has a way already.
		for at := uint32(node); at != 0 && t.sw[at].parent == none; {
			up, next := f.torusStep(at, 0)
			down, _ := f.torusStep(next, at)
			s := &t.sw[at]
			s.parent, s.up, s.down = int32(next), int32(up), int32(down)
			at = next
		}
	}
}

// growFatTree makes a switch for each group of nodes that have a level's switch in
// common: the one that messages to node 0 of their group take.
func (t *Tree) growFatTree() {
	f := t.f
	first := 0
	for l, n := range f.pow {
		groups := (f.nodes-1)/(int(n)*int(f.down)) + 1
		for g := range groups {
			s := treeSwitch{parent: none}
			if l == 0 {
				s.nodes = int32(min(int(f.down), f.nodes-g*int(f.down)))
			}
			if l+1 < len(f.pow) {
				s.parent = int32(first + groups + g/int(f.down))
				i := uint32(g) * n * f.down
				s.up, s.down = int32(f.treeLink(uint32(l), i, 0)), int32(f.treeLink(uint32(l), i, 1))
			}
			t.sw = append(t.sw, s)
		}
		first += groups
	}
}

// join lists what is below each switch.
func (t *Tree) join() {
	for i := range t.sw {
		if p := t.sw[i].parent; p != none {
			t.sw[p].n++
		}
	}
	var first int32
	for i := range t.sw {
		s := &t.sw[i]
		s.first, s.inputs = first, s.n+s.nodes
		first += s.n
		s.n = 0
	}
	t.kids = make([]int32, first)
	for i := range t.sw {
		depth := 0
		for at := t.sw[i].parent; at != none; at = t.sw[at].parent {
			depth++
		}
		t.depth = max(t.depth, depth)
		if p := t.sw[i].parent; p != none {
			t.kids[t.sw[p].first+t.sw[p].n] = int32(i)
			t.sw[p].n++
		}
	}
}

// Rise is the time of the smallest packet from the farthest node to the root in an idle
// network.
func (t *Tree) Rise() Time { return t.side + Time(t.depth)*t.f.p.HopLatency }

// at is the switch of a node.
func (t *Tree) at(node int) int32 {
	if t.per == 0 {
		return 0
	}
	return int32(uint32(node) / t.per)
}

// occupy is Fabric.occupy where there is contention.
func (t *Tree) occupy(now Time, link uint32, occ Time) Time {
	if !t.f.p.Contention {
		return now
	}
	if t.own != nil {
		start := max(now, t.own[link].free)
		t.own[link].free = start + occ
		t.f.stats.Hops++
		return start
	}
	return t.f.occupy(now, link, occ)
}

// Join enters a node's part in the next round of a register at the present time now: when
// all nodes have, Combined gives each of them the least low and the greatest high. A node
// does not join a round before it has the result of the one before.
func (t *Tree) Join(now Time, node, reg int, low, high uint64) {
	t.f.check(node, node)
	r := &t.round[reg]
	// The values are there before the packets are, and looked at when all of these are.
	r.low, r.high = min(r.low, low), max(r.high, high)
	at := t.occupy(now, t.f.injection(uint32(node)), t.occ) + t.side + t.tail
	t.f.sched.Schedule(at, uint64(t.at(node))<<32|uint64(reg), evPart<<kindShift)
}

// part handles a packet of a round that has come to a switch.
func (t *Tree) part(now Time, i int32, reg int) {
	s, n := &t.sw[i], &t.count[reg*len(t.sw)+int(i)]
	if *n++; *n < s.inputs {
		return
	}
	*n = 0
	now += Time(bits.Len(uint(s.inputs-1))) * t.p.Stage
	if s.parent != none {
		now = t.occupy(now, uint32(s.up), t.occ) + t.f.p.HopLatency + t.tail
		t.f.sched.Schedule(now, uint64(s.parent)<<32|uint64(reg), evPart<<kindShift)
		return
	}
	r := &t.round[reg]
	c := t.keep(cast{src: none, reg: int32(reg), low: r.low, high: r.high, left: 1, occ: t.occ, tail: t.tail})
	*r = treeRound{low: math.MaxUint64}
	t.f.sched.Schedule(now, uint64(i)<<32|uint64(c), evDown<<kindShift)
}

// Cast enters a message of that many bytes at node src at the present time now. Copied
// gives every other node a copy.
func (t *Tree) Cast(now Time, src, bytes int, id uint64) {
	t.f.check(src, src)
	if t.f.nodes == 1 {
		return
	}
	occ := max(1, t.f.p.Gap, Time(max(bytes, t.f.p.Free))*t.f.p.Byte)
	c := t.keep(cast{id: id, src: int32(src), left: 1, occ: occ, tail: t.f.tail(bytes)})
	now = t.occupy(now, t.f.injection(uint32(src)), occ) + t.side
	t.f.sched.Schedule(now, uint64(t.at(src))<<32|uint64(c), evUp<<kindShift)
}

func (t *Tree) keep(c cast) int32 {
	return keep(&t.casts, &t.free, c, func(c *cast) int32 { return c.next })
}

// rise takes a message on its way to the root.
func (t *Tree) rise(now Time, i, c int32) {
	s := &t.sw[i]
	if s.parent == none {
		t.spread(now, i, c)
		return
	}
	now = t.occupy(now, uint32(s.up), t.casts[c].occ) + t.f.p.HopLatency
	t.f.sched.Schedule(now, uint64(s.parent)<<32|uint64(c), evUp<<kindShift)
}

// spread sends cast c from switch i to all below it but its source.
func (t *Tree) spread(now Time, i, c int32) {
	s, k := &t.sw[i], t.casts[c]
	t.casts[c].left += s.inputs
	if k.src >= 0 && t.at(int(k.src)) == i {
		t.casts[c].left--
	}
	t.passed(c)
	for _, kid := range t.kids[s.first:][:s.n] {
		at := t.occupy(now, uint32(t.sw[kid].down), k.occ) + t.f.p.HopLatency
		t.f.sched.Schedule(at, uint64(kid)<<32|uint64(c), evDown<<kindShift)
	}
	first := uint32(i) * t.per
	for node := first; node < first+uint32(s.nodes); node++ {
		if int32(node) == k.src {
			continue
		}
		at := t.occupy(now, t.f.ejection(node), k.occ) + t.side + k.tail
		t.f.sched.Schedule(at, uint64(node)<<32|uint64(c), evNode<<kindShift)
	}
}

// arrive gives node what has come to it.
func (t *Tree) arrive(now Time, node int, c int32) {
	k := t.casts[c]
	t.passed(c)
	if k.src == none {
		t.to.Combined(now, node, int(k.reg), k.low, k.high)
	} else {
		t.to.Copied(now, node, k.id)
	}
}

// passed ends an event of cast c.
func (t *Tree) passed(c int32) {
	if t.casts[c].left--; t.casts[c].left == 0 {
		t.casts[c].next, t.free = t.free, c
	}
}

// handle takes back an event of the tree.
func (t *Tree) handle(now Time, a, b uint64) {
	i, c := int32(a>>32), int32(uint32(a))
	switch b >> kindShift {
	case evPart:
		t.part(now, i, int(c))
	case evUp:
		t.rise(now, i, c)
	case evDown:
		t.spread(now, i, c)
	case evNode:
		t.arrive(now, int(i), c)
	}
}
