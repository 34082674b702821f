package fabric

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A network with Params.Buffer carries packets as worms of flits. The first flit, which has Free
// bytes, takes a channel of the next link as soon as one that its route allows has no packet, and
// keeps it until the last flit has left the buffer at the channel's end. The others follow while
// that buffer has room. So a packet that waits keeps the channels behind it, which is
// back-pressure; and packets that wait for each other's channels in a circle are a deadlock, which
// is looked for whenever a packet begins to wait.

// channel is a virtual channel of a link, with the buffer at its end.
type channel struct {
	worm    int32 // that has it; none
	from    int32 // the channel that it comes from; none: the interface
	next    int32 // the channel that it goes on to; none yet
	flying  int32 // flits on the link
	in      int32 // in the buffer
	entered int32 // that the link has taken
	passed  int32 // that have left the buffer
	gen     uint32
	waits   bool // the first flit waits for a channel
}

// worm is a packet.
type worm struct {
	slot     int32 // of its message
	flits    int32
	left     int32 // flits that are still at the interface
	head     int32 // the channel that the first flit has got last
	src, dst uint32
	down     bool // Up*/Down*: it has gone down
	seen     uint32
	next     int32 // free list
}

// finite is the state of a network of finite buffers.
type finite struct {
	f        *Fabric
	stride   int32   // links of a switch: to others, from and to its node
	to       []int32 // the switch at the end of a link; none: there is no such link
	ch       []channel
	turn     []int32 // the channel of a link whose turn it is
	kicked   []bool  // an event for the link is under way
	worms    []worm
	free     int32
	again    [][]int32 // of a node: worms that are sent again
	waiting  [][]int32 // of a switch: channels whose worm waits there
	dirty    []int32   // switches at which a channel has become free
	isDirty  []bool
	order    []int32    // of switches, breadth first: lower is up
	dist     [][]uint16 // by destination, on first use; see distances
	occ      Time       // of a flit
	epoch    uint32
	stack    []int32
	deadlock *DeadlockError
}

// DeadlockError names packets that wait for each other in a circle.
type DeadlockError struct {
	At    Time
	Cycle []string // the channels that the packets of the circle keep, each waiting for the next one
}

// Error lists the circle.
func (d *DeadlockError) Error() string {
	const most = 8
	l := d.Cycle
	more := ""
	if len(l) > most {
		more = fmt.Sprintf(" and %d more", len(l)-most)
		l = l[:most]
	}
	return fmt.Sprintf("fabric: routing deadlock at %d ns: %d packets wait for each other's channels: %s%s (routing=updown excludes it, and so do channels=2 in a torus; recover=10us resolves it)",
		d.At/1000, len(d.Cycle), strings.Join(l, ", "), more)
}

// Deadlock returns the deadlock that stops a part of the network, or nil. It is found when the last
// packet of the circle begins to wait. There is none with Params.Recover.
func (f *Fabric) Deadlock() *DeadlockError {
	if f.fin == nil {
		return nil
	}
	return f.fin.deadlock
}

// newFinite wires the network.
func newFinite(f *Fabric) *finite {
	n := &finite{f: f, free: none, occ: max(1, Time(f.p.Flit)*f.p.Byte)}
	var switches int
	if f.p.Topology == Irregular {
		switches = f.nodes
		n.stride = int32(f.p.Radix) + 2
		n.wire(switches)
	} else {
		switches = f.p.Dims[0] * f.p.Dims[1] * f.p.Dims[2]
		n.stride = torusLinks
		n.grid(switches)
	}
	n.ch = make([]channel, len(n.to)*f.p.Channels)
	for i := range n.ch {
		n.ch[i] = channel{worm: none, from: none, next: none}
	}
	n.turn, n.kicked = make([]int32, len(n.to)), make([]bool, len(n.to))
	n.again, n.waiting = make([][]int32, f.nodes), make([][]int32, switches)
	n.isDirty = make([]bool, switches)
	n.dist = make([][]uint16, switches)
	n.number(switches)
	return n
}

func (n *finite) clear(links int) {
	n.to = make([]int32, links)
	for i := range n.to {
		n.to[i] = none
	}
}

// grid joins the switches of a mesh or torus as torusLinks says.
func (n *finite) grid(switches int) {
	n.clear(switches * torusLinks)
	for s := range int32(switches) {
		c := n.f.coordinates(s)
		stride := int32(1)
		for d, side := range n.f.p.Dims {
			for up := range 2 {
				step := int32(1 - 2*up)
				x := c[d] + step
				switch {
				case side == 1 || side == 2 && up == 1 && n.f.p.Topology == Torus && c[d] == 0:
				case x >= 0 && x < int32(side):
					n.to[s*torusLinks+int32(2*d+up)] = s + step*stride
				case n.f.p.Topology == Torus:
					n.to[s*torusLinks+int32(2*d+up)] = s - step*stride*int32(side-1)
				}
			}
			stride *= int32(side)
		}
		n.to[s*torusLinks+torusInject], n.to[s*torusLinks+torusInject+1] = s, s
	}
}

// wire joins switches at random: by a tree, so that all are, and then whichever have ports left.
func (n *finite) wire(switches int) {
	n.clear(switches * int(n.stride))
	rng := rand.New(rand.NewPCG(n.f.p.Wiring, 0x9e3779b97f4a7c15))
	used := make([]int32, switches)
	join := func(a, b int32) {
		n.to[a*n.stride+used[a]], n.to[b*n.stride+used[b]] = b, a
		used[a]++
		used[b]++
	}
	ports := n.stride - 2
	open := []int32{0} // with ports left
	for s := int32(1); s < int32(switches); s++ {
		i := rng.IntN(len(open))
		a := open[i]
		join(a, s)
		if used[a] == ports {
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		open = append(open, s)
	}
	for range switches * int(ports) {
		a, b := int32(rng.IntN(switches)), int32(rng.IntN(switches))
		if a != b && used[a] < ports && used[b] < ports {
			join(a, b)
		}
	}
	for s := range int32(switches) {
		n.to[(s+1)*n.stride-2], n.to[(s+1)*n.stride-1] = s, s
	}
}

// number orders the switches breadth first.
func (n *finite) number(switches int) {
	n.order = make([]int32, switches)
	for i := range n.order {
		n.order[i] = none
	}
	n.order[0] = 0
	queue := []int32{0}
	for i := 0; i < len(queue); i++ {
		for _, t := range n.neighbours(queue[i]) {
			if t != none && n.order[t] == none {
				n.order[t] = int32(len(queue))
				queue = append(queue, t)
			}
		}
	}
}

// neighbours are the ends of the links of switch s to others.
func (n *finite) neighbours(s int32) []int32 { return n.to[s*n.stride : (s+1)*n.stride-2] }

// distances are how far each switch is from dst: by any links, or with Up*/Down* by links that go
// up first, and in the second half by those that go down alone.
func (n *finite) distances(dst uint32) []uint16 {
	if d := n.dist[dst]; d != nil {
		return d
	}
	const far = 1<<16 - 1
	s := len(n.order)
	halves := 1
	if n.f.p.Routing == UpDown {
		halves = 2
	}
	d := make([]uint16, halves*s)
	for i := range d {
		d[i] = far
	}
	var queue []int32
	for h := range halves {
		d[h*s+int(dst)] = 0
		queue = append(queue, int32(h*s)+int32(dst))
	}
	for i := 0; i < len(queue); i++ {
		at, down := queue[i], int(queue[i]) >= s
		here := at
		if down {
			here -= int32(s)
		}
		reach := func(state int32) {
			if d[state] == far {
				d[state] = d[at] + 1
				queue = append(queue, state)
			}
		}
		for _, t := range n.neighbours(here) {
			switch {
			case t == none:
			case n.f.p.Routing != UpDown:
				if !down {
					reach(t)
				}
			case n.order[t] < n.order[here] && down: // t to here goes down
				reach(int32(s) + t)
				reach(t)
			case n.order[t] > n.order[here] && !down: // t to here goes up
				reach(t)
			}
		}
	}
	n.dist[dst] = d
	return d
}

// hops is the length of a path, in links between switches.
func (n *finite) hops(src, dst uint32) int {
	if p := &n.f.p; p.Routing == UpDown || p.Topology == Irregular {
		return int(n.distances(dst)[src])
	} else if p.Topology == Torus {
		return n.f.torusHops(src, dst)
	}
	hops := int32(0)
	c, d := n.f.coordinates(int32(src)), n.f.coordinates(int32(dst))
	for i := range c {
		hops += max(c[i]-d[i], d[i]-c[i])
	}
	return int(hops)
}

// way is one way on: channels low to high-1 of a link.
type way struct{ link, low, high int32 }

// ways are how a worm may go on from switch s, which are few.
func (n *finite) ways(s int32, w *worm, l []way) []way {
	p := &n.f.p
	all := int32(p.Channels)
	base := s * n.stride
	if uint32(s) == w.dst {
		return append(l, way{base + n.stride - 1, 0, all})
	}
	switch p.Routing {
	case DimensionOrder, WestFirst:
		c, d := n.f.coordinates(s), n.f.coordinates(int32(w.dst))
		for i, side := range p.Dims {
			if c[i] == d[i] {
				continue
			}
			up := c[i] < d[i]
			low, high := int32(0), all
			if p.Topology == Torus {
				up = forward(uint32(c[i]), uint32(d[i]), uint32(side))
				// Packets that have still to go round use other channels than those that
				// need not, or no longer: neither are a circle (Dally and Seitz 1987).
				if round := up == (c[i] > d[i]); all > 1 && round {
					high = all / 2
				} else if all > 1 {
					low = all / 2
				}
			}
			link := base + int32(2*i)
			if !up {
				link++
			}
			if n.to[link] == none { // a ring of two has one link
				link ^= 1
			}
			l = append(l, way{link, low, high})
			if p.Routing == DimensionOrder || i == 0 && !up {
				return l
			}
		}
	case UpDown:
		d, half := n.distances(w.dst), int32(len(n.order))
		here := d[s]
		if w.down {
			here = d[half+s]
		}
		for i, t := range n.neighbours(s) {
			switch {
			case t == none:
			case n.order[t] > n.order[s] && d[half+t]+1 == here, n.order[t] < n.order[s] && !w.down && d[t]+1 == here:
				l = append(l, way{base + int32(i), 0, all})
			}
		}
	default: // one of the shortest paths of the pair, without regard to anything else
		d, found := n.distances(w.dst), len(l)
		for i, t := range n.neighbours(s) {
			if t != none && d[t]+1 == d[s] {
				l = append(l, way{base + int32(i), 0, all})
			}
		}
		h := (uint64(w.src)<<32|uint64(w.dst))*0x9e3779b97f4a7c15 + uint64(s)*0xbf58476d1ce4e5b9
		h ^= h >> 31
		h *= 0x94d049bb133111eb
		l[found] = l[found+int(h>>33)%(len(l)-found)]
		l = l[:found+1]
	}
	return l
}

// inject begins to send message slot, whose turn at the interface has not come yet.
func (n *finite) inject(now Time, node uint32, slot int32) {
	q := &n.f.ports[node]
	n.f.pushMessage(&q.inHead, &q.inTail, slot)
	n.source(now, int32(node))
	n.serveFreed(now)
}

// source gives free channels of a node's link to its packets, of each message in turn.
func (n *finite) source(now Time, node int32) {
	if int(node) >= n.f.nodes {
		return
	}
	q := &n.f.ports[node]
	link := (node+1)*n.stride - 2
	for v := range int32(n.f.p.Channels) {
		i := link*int32(n.f.p.Channels) + v
		if n.ch[i].worm != none {
			continue
		}
		var id int32
		if r := n.again[node]; len(r) > 0 {
			id, n.again[node] = r[0], r[1:]
		} else if q.inHead != none {
			slot := n.f.popMessage(&q.inHead)
			m := &n.f.msgs[slot]
			bytes := n.f.p.Packet
			if m.sent++; m.sent == m.packets {
				bytes = int(m.rest)
			} else {
				n.f.pushMessage(&q.inHead, &q.inTail, slot)
			}
			flits := int32(1 + (max(bytes-n.f.p.Free, 0)+n.f.p.Flit-1)/n.f.p.Flit)
			id = keep(&n.worms, &n.free, worm{slot: slot, flits: flits, src: m.src, dst: m.dst}, func(w *worm) int32 { return w.next })
		} else {
			return
		}
		w := &n.worms[id]
		w.left, w.down, w.head = w.flits, false, i
		n.take(now, i, id, none)
	}
}

// take gives channel i to a worm.
func (n *finite) take(now Time, i, id, from int32) {
	c := &n.ch[i]
	*c = channel{worm: id, from: from, next: none, gen: c.gen}
	n.kick(now, i/int32(n.f.p.Channels))
}

// kick sends a flit over a link if it is free, of each channel in turn.
func (n *finite) kick(now Time, link int32) {
	k := int32(n.f.p.Channels)
	for {
		i := int32(none)
		for v := range k {
			if at := link*k + (n.turn[link]+v)%k; n.ready(at, link) {
				i = at
				break
			}
		}
		if i == none {
			return
		}
		if l := &n.f.links[link]; l.free > now {
			if !n.kicked[link] {
				n.kicked[link] = true
				n.f.sched.Schedule(l.free, uint64(link), evLink<<kindShift)
			}
			return
		}
		n.turn[link] = (i - link*k + 1) % k
		n.send(now, i, link)
	}
}

// ready reports whether channel i has a flit to carry and room for it.
func (n *finite) ready(i, link int32) bool {
	c := &n.ch[i]
	if c.worm == none || c.entered == n.worms[c.worm].flits {
		return false
	}
	if int(c.in+c.flying) >= n.f.p.Buffer && link%n.stride != n.stride-1 {
		return false
	}
	if c.from == none {
		return n.worms[c.worm].left > 0
	}
	return n.ch[c.from].in > 0
}

func (n *finite) send(now Time, i, link int32) {
	c := &n.ch[i]
	w := &n.worms[c.worm]
	occ, delay := n.occ, n.f.p.HopLatency
	if c.entered == 0 {
		occ = n.f.occSmall
	}
	switch link % n.stride {
	case n.stride - 2:
		delay = 0
	case n.stride - 1:
		delay = n.f.p.Latency - n.f.p.HopLatency
		if c.entered > 0 && c.entered == w.flits-1 {
			// The end of the last flit, where the time of the first one's Free bytes is part of Latency.
			delay = max(0, delay+n.occ-Time(n.f.p.Free)*n.f.p.Byte)
		}
	}
	n.f.occupy(now, uint32(link), occ)
	if c.entered > 0 {
		n.f.stats.Hops-- // that occupy has counted: it is of packets
	}
	c.entered++
	c.flying++
	n.f.sched.Schedule(now+delay, uint64(c.gen)<<32|uint64(i), evFlit<<kindShift)
	if c.from == none {
		w.left--
		return
	}
	from := c.from
	b := &n.ch[from]
	b.in--
	if b.passed++; b.passed == w.flits {
		n.release(from)
	} else {
		n.kick(now, from/int32(n.f.p.Channels))
	}
}

// release frees a channel. serveFreed gives it to a waiting packet at the end of the event.
func (n *finite) release(i int32) {
	c := &n.ch[i]
	*c = channel{worm: none, from: none, next: none, gen: c.gen + 1}
	if s := i / int32(n.f.p.Channels) / n.stride; !n.isDirty[s] {
		n.isDirty[s] = true
		n.dirty = append(n.dirty, s)
	}
}

// serveFreed gives channels that have become free to packets that wait for them.
func (n *finite) serveFreed(now Time) {
	for k := 0; k < len(n.dirty); k++ {
		s := n.dirty[k]
		n.isDirty[s] = false
		l := n.waiting[s]
		n.waiting[s] = l[:0]
		for _, i := range l {
			if n.ch[i].waits && !n.try(now, i, s) {
				n.waiting[s] = append(n.waiting[s], i)
			}
		}
		n.source(now, s)
	}
	n.dirty = n.dirty[:0]
}

// try gives the worm whose first flit is at the end of channel i a channel on.
func (n *finite) try(now Time, i, s int32) bool {
	var room [8]way
	id := n.ch[i].worm
	w := &n.worms[id]
	k := int32(n.f.p.Channels)
	for _, y := range n.ways(s, w, room[:0]) {
		for v := y.low; v < y.high; v++ {
			at := y.link*k + v
			if n.ch[at].worm != none {
				continue
			}
			if t := n.to[y.link]; t != s {
				w.down = w.down || n.order[t] > n.order[s]
			}
			w.head = at
			n.ch[i].next, n.ch[i].waits = at, false
			n.take(now, at, id, i)
			return true
		}
	}
	return false
}

// flit takes a flit to the end of channel i.
func (n *finite) flit(now Time, i int32, gen uint32) {
	c := &n.ch[i]
	if c.gen != gen {
		return // the worm has been taken out
	}
	link := i / int32(n.f.p.Channels)
	c.flying--
	id := c.worm
	w := &n.worms[id]
	if link%n.stride == n.stride-1 {
		if c.passed++; c.passed < w.flits {
			return
		}
		n.release(i)
		n.arrived(now, id)
		return
	}
	c.in++
	switch {
	case c.next != none:
		n.kick(now, c.next/int32(n.f.p.Channels))
	case !c.waits:
		s := n.to[link]
		n.f.stats.Requests++
		if !n.try(now, i, s) {
			n.f.stats.Blocked++
			n.ch[i].waits = true
			n.waiting[s] = append(n.waiting[s], i)
			n.look(now, i)
		}
	}
	n.serveFreed(now)
}

// arrived ends a worm, and its message if it is the last one.
func (n *finite) arrived(now Time, id int32) {
	slot := n.worms[id].slot
	n.worms[id].next, n.free = n.free, id
	n.serveFreed(now)
	m := &n.f.msgs[slot]
	if m.came++; m.came < m.packets {
		return
	}
	msg := n.f.finish(now, slot)
	n.f.stats.Delivered++
	n.f.deliver(now, msg) // last, for it may inject
}

// look finds a deadlock of which the worm that waits at channel i is the last part: every worm
// that it waits for, directly or not, waits too. If any of these moves, one that waits for it
// gets its channel in the end.
func (n *finite) look(now Time, i int32) {
	n.epoch++
	n.worms[n.ch[i].worm].seen = n.epoch
	n.stack = append(n.stack[:0], i)
	for len(n.stack) > 0 {
		at := n.stack[len(n.stack)-1]
		n.stack = n.stack[:len(n.stack)-1]
		moving := n.waitsFor(at, func(o *worm) bool {
			if !n.ch[o.head].waits {
				return true
			}
			if o.seen != n.epoch {
				o.seen = n.epoch
				n.stack = append(n.stack, o.head)
			}
			return false
		})
		if moving {
			return
		}
	}
	// From one worm to one that it waits for, again and again, comes to a circle.
	first := func(at int32) (next int32) {
		n.waitsFor(at, func(o *worm) bool { next = o.head; return true })
		return next
	}
	n.epoch++
	at := i
	for n.worms[n.ch[at].worm].seen != n.epoch {
		n.worms[n.ch[at].worm].seen = n.epoch
		at = first(at)
	}
	d := &DeadlockError{At: now}
	for start := at; ; {
		d.Cycle = append(d.Cycle, n.name(at/int32(n.f.p.Channels))+" channel "+strconv.Itoa(int(at)%n.f.p.Channels))
		if at = first(at); at == start {
			break
		}
	}
	n.f.stats.Deadlocks++
	n.f.stats.Circle += uint64(len(d.Cycle))
	if n.f.p.Recover == 0 {
		if n.deadlock == nil {
			n.deadlock = d
		}
		return
	}
	n.takeOut(now, n.ch[i].worm)
}

// waitsFor calls f with each worm that has a channel which the worm at the end of channel i waits
// for, until f returns true.
func (n *finite) waitsFor(i int32, f func(o *worm) bool) bool {
	var room [8]way
	k := int32(n.f.p.Channels)
	for _, y := range n.ways(n.to[i/k], &n.worms[n.ch[i].worm], room[:0]) {
		for v := y.low; v < y.high; v++ {
			if f(&n.worms[n.ch[y.link*k+v].worm]) {
				return true
			}
		}
	}
	return false
}

// takeOut takes a worm out of the network. Its interface sends it again after Recover.
func (n *finite) takeOut(now Time, id int32) {
	w := &n.worms[id]
	for at := w.head; at != none; {
		from := n.ch[at].from
		if n.ch[at].entered == w.flits {
			from = none // all of it has left what is behind
		}
		n.release(at)
		at = from
	}
	n.f.sched.Schedule(now+n.f.p.Recover, uint64(id), evAgain<<kindShift)
}

// handle takes back an event of the network.
func (n *finite) handle(now Time, kind, a uint64) {
	switch kind {
	case evFlit:
		n.flit(now, int32(uint32(a)), uint32(a>>32))
	case evLink:
		n.kicked[a] = false
		n.kick(now, int32(a))
		n.serveFreed(now)
	case evAgain:
		node := n.worms[a].src
		n.again[node] = append(n.again[node], int32(a))
		n.source(now, int32(node))
		n.serveFreed(now)
	}
}

// name is a link's, for people.
func (n *finite) name(link int32) string {
	s, port := link/n.stride, link%n.stride
	switch {
	case port == n.stride-2:
		return fmt.Sprintf("node %d out", s)
	case port == n.stride-1:
		return fmt.Sprintf("node %d in", s)
	case n.f.p.Topology == Irregular:
		return fmt.Sprintf("%d to %d", s, n.to[link])
	}
	c := n.f.coordinates(s)
	return fmt.Sprintf("(%d,%d,%d) %s", c[0], c[1], c[2], [...]string{"+x", "-x", "+y", "-y", "+z", "-z"}[port])
}

// coordinates are those of a position of a mesh or torus.
func (f *Fabric) coordinates(s int32) [3]int32 {
	x, y := int32(f.p.Dims[0]), int32(f.p.Dims[1])
	return [3]int32{s % x, s / x % y, s / x / y}
}
