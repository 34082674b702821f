package fabric

import (
	"fmt"

	"github.com/argon-go/argon/internal/errs"
)

// A Scheduler is the event queue of the owner of the virtual clock. An event
// scheduled for time t, which is never before the present, comes back as
// Fabric.Handle(t, a, b). Which of two events of the same time comes first is
// the scheduler's choice; a fabric is as deterministic as its scheduler.
type Scheduler interface {
	Schedule(t Time, a, b uint64)
}

// An event is two words. b has its kind in the upper four bits; a of the first
// four kinds, and of those of a Tree, is all there is else.
const (
	evDeliver = iota // a is the message's id: its last byte is there
	evSource         // a is a node: its interface may send the next packet
	evInput          // a is a port of a crossbar whose input has become free
	evOutput         // a is a port of a crossbar whose output has become free
	evHop            // a packet is ready for the next link
	evEject          // a packet is ready for the link into its node
	evPart           // a part of a round is at a switch of the tree
	evUp             // a message for all nodes is at a switch on its way to the root
	evDown           // it, or the result of a round, is at a switch on its way to all nodes
	evNode           // it is at a node
	evFlit           // a flit is at the end of a channel
	evLink           // a link may send the next flit
	evAgain          // a packet that was taken out is sent again

	kindShift = 60
)

// A packet on its way is an event with all that a switch needs to know, so that
// only its end looks at the message: most of the time that an event takes is
// that of fetching memory. Its a is the message's slot and, in the lower half,
// the position in a torus where it is, or in a fat tree the source; its b is,
// from below, the destination, the level of a fat tree, where the path turns,
// and marks.
const (
	levelShift = 32      // level of the lower switch of the next link
	downMark   = 1 << 37 // the packet has turned
	turnShift  = 38
	lastMark   = 1 << 43 // the last of its message
	sizeShift  = 44
	levelMask  = 1<<5 - 1
	sizeMask   = 1<<2 - 1
)

// Sizes of packets.
const (
	smallest = iota // up to Free bytes
	full
	other // what is left of a long message: look there
)

// none ends lists of indices.
const none = -1

// link is one direction of a wire.
type link struct {
	free Time // when it can take the next packet
	busy Time // how long it has carried packets
}

// message is one on its way, in a slot of the pool.
type message struct {
	id       uint64
	due      Time // when it arrives if it never waits
	occLast  Time // how long its last packet keeps a link, and how far
	tailLast Time // its end follows its beginning
	src, dst uint32
	packets  uint32
	sent     uint32 // how many of them have left their interface
	turn     uint32 // the level of a fat tree where they turn
	next     int32  // in the queue or free list it is in
	came     uint32 // packets that have arrived, where buffers are finite
	rest     int32  // bytes of the last packet, there
}

// port is the state of a node's interface, or of its port of a crossbar, besides
// its links.
type port struct {
	// Queue at the interface: messages; pairs in a crossbar with VOQs.
	inHead, inTail int32
	// Pairs that wait for this output of a crossbar.
	outHead, outTail int32
	// The pair out of whose crosspoint buffer this output sends.
	sending         int32
	inKick, outKick bool // evSource or evInput, evOutput under way
	waiting         bool // the head of a single queue waits for its output
}

// A Fabric is a network that carries messages between nodes. It is driven by
// one goroutine: none of its methods may run at the same time as another,
// except that deliver may call Inject.
type Fabric struct {
	p       Params
	nodes   int
	sched   Scheduler
	deliver func(now Time, id uint64)

	links []link // see the topologies for the order
	ports []port // of nodes
	msgs  []message
	free  int32 // first unused slot

	occFull  Time // how long a full packet keeps a link
	occSmall Time // and a smallest one

	// Torus.
	dims [3]uint32
	inv  [2]uint64 // 2^64 over the first two, rounded up
	// Fat tree.
	down  uint32   // links down per switch
	pow   []uint32 // powers of down, one for each level
	width uint32   // links between two levels in each direction
	// Crossbar.
	pairs   []pair
	unpr    int32    // first unused pair
	packets []packet // in crosspoint buffers
	unpk    int32    // first unused packet
	hash    []int32  // chains of pairs by (in, out)
	used    int      // pairs in use

	tree *Tree   // nil: there is none
	fin  *finite // nil: buffers are not bounded

	stats Stats

	trace func(link int, start, occ Time, id uint64, last bool) // for tests
}

// New makes a network of that many nodes. Events go to s; deliver is called
// when a message's last byte is at its destination, in the event of that time,
// and may call Inject. The error wraps errs.ErrBadArg.
func New(p Params, nodes int, s Scheduler, deliver func(now Time, id uint64)) (*Fabric, error) {
	p.EnsureDefaults(nodes)
	if err := p.Validate(nodes); err != nil {
		return nil, err
	}
	if s == nil || deliver == nil {
		return nil, errs.BadArg("fabric: no scheduler, or no function to deliver to")
	}
	f := &Fabric{p: p, nodes: nodes, sched: s, deliver: deliver, free: none, unpr: none, unpk: none}
	f.occFull, f.occSmall = f.occ(p.Packet), f.occ(0)
	var links int
	if p.Buffer > 0 {
		f.fin = newFinite(f)
		links = len(f.fin.to)
	}
	switch p.Topology {
	case Torus:
		for i, d := range p.Dims {
			f.dims[i] = uint32(d)
		}
		for i := range f.inv {
			f.inv[i] = reciprocal(f.dims[i])
		}
		links = torusLinks * p.Dims[0] * p.Dims[1] * p.Dims[2]
	case FatTree:
		links = f.grow()
	case Crossbar:
		links = 2 * nodes
	}
	if !p.Contention {
		return f, nil
	}
	f.links = make([]link, links)
	f.ports = make([]port, nodes)
	for i := range f.ports {
		f.ports[i] = port{inHead: none, inTail: none, outHead: none, outTail: none, sending: none}
	}
	if p.Topology == Crossbar {
		f.rehash(64)
	}
	return f, nil
}

// occ is how long a packet of that many bytes keeps a link. It is never 0: else
// any number of packets could follow each other in one event.
func (f *Fabric) occ(bytes int) Time {
	return max(1, f.p.Gap, Time(max(bytes, f.p.Free))*f.p.Byte)
}

// tail is how long after a smallest packet one of that many bytes has passed.
func (f *Fabric) tail(bytes int) Time {
	return Time(max(bytes-f.p.Free, 0)) * f.p.Byte
}

// cut returns how many packets a message has and the size of the last.
func (f *Fabric) cut(bytes int) (packets, last int) {
	if f.p.Packet == 0 || bytes <= f.p.Packet {
		return 1, bytes
	}
	packets = (bytes + f.p.Packet - 1) / f.p.Packet
	return packets, bytes - (packets-1)*f.p.Packet
}

// Unloaded returns how long a message takes if no other is under way: with h =
// Hops(src, dst), Latency + (h-1)*HopLatency for the first Free bytes, then Byte
// for each further one. A message of several packets begins each when the one
// before has passed, which takes no less than Gap.
func (f *Fabric) Unloaded(src, dst, bytes int) Time {
	packets, last := f.cut(bytes)
	t := Time(packets-1)*f.occFull + f.tail(last)
	if src == dst {
		return f.p.Loop + t
	}
	return f.p.Latency + Time(f.Hops(src, dst)-1)*f.p.HopLatency + t
}

// Hops returns the length of the path from src to dst: the number of switches
// in a crossbar or fat tree, of links between switches in a torus. It is 0 from
// a node to itself.
func (f *Fabric) Hops(src, dst int) int {
	f.check(src, dst)
	if src == dst {
		return 0
	}
	if f.fin != nil {
		return f.fin.hops(uint32(src), uint32(dst))
	}
	switch f.p.Topology {
	case Torus:
		return f.torusHops(uint32(src), uint32(dst))
	case FatTree:
		return 2*int(f.turn(uint32(src), uint32(dst))) + 1
	}
	return 1
}

// check panics if src or dst is not a node.
func (f *Fabric) check(src, dst int) {
	if uint(src) >= uint(f.nodes) || uint(dst) >= uint(f.nodes) {
		panic(fmt.Sprintf("fabric: from %d to %d of %d nodes", src, dst, f.nodes))
	}
}

// Inject enters a message of that many bytes at node src at the present time
// now. The id comes back in the call of deliver; the fabric does not look at
// it. An impossible node or a negative size panics.
func (f *Fabric) Inject(now Time, src, dst, bytes int, id uint64) {
	f.check(src, dst)
	if bytes < 0 {
		panic(fmt.Sprintf("fabric: message of %d bytes", bytes))
	}
	packets, last := f.cut(bytes)
	f.stats.Messages++
	f.stats.Packets += uint64(packets)
	f.stats.Bytes += uint64(bytes)
	if src == dst || !f.p.Contention {
		f.sched.Schedule(now+f.Unloaded(src, dst, bytes), id, evDeliver<<kindShift)
		return
	}
	m := message{
		id: id, src: uint32(src), dst: uint32(dst),
		packets: uint32(packets), occLast: f.occ(last), tailLast: f.tail(last),
	}
	if packets > maxPackets {
		panic(fmt.Sprintf("fabric: message of %d packets, at most %d", packets, maxPackets))
	}
	if f.p.Topology == Crossbar {
		m.due = now + f.p.Latency + Time(packets-1)*f.occFull + m.tailLast
		f.switchIn(now, &m)
		return
	}
	if f.fin != nil {
		m.rest = int32(last)
		m.due = now + f.Unloaded(src, dst, bytes)
		f.fin.inject(now, m.src, f.keep(&m))
		return
	}
	var hops int
	if f.p.Topology == Torus {
		hops = f.torusHops(m.src, m.dst)
	} else {
		m.turn = f.turn(m.src, m.dst)
		hops = 2*int(m.turn) + 1
	}
	m.due = now + f.p.Latency + Time(hops-1)*f.p.HopLatency + Time(packets-1)*f.occFull + m.tailLast
	n := &f.ports[src]
	idle := n.inHead == none
	f.pushMessage(&n.inHead, &n.inTail, f.keep(&m))
	if idle {
		f.source(now, m.src)
	}
}

// maxPackets bounds packets of a message so that their number fits an event.
const maxPackets = 1<<32 - 1

// Handle takes back an event. Values that the scheduler was not given panic or
// corrupt the model.
func (f *Fabric) Handle(now Time, a, b uint64) {
	switch b >> kindShift {
	case evDeliver:
		f.stats.Delivered++
		f.deliver(now, a)
	case evSource:
		f.ports[a].inKick = false
		f.source(now, uint32(a))
	case evHop:
		f.hop(now, a, b)
	case evEject:
		f.eject(now, a, b)
	case evInput:
		f.ports[a].inKick = false
		f.tryInput(now, uint32(a))
	case evOutput:
		f.ports[a].outKick = false
		f.tryOutput(now, uint32(a))
	case evPart, evUp, evDown, evNode:
		f.tree.handle(now, a, b)
	case evFlit, evLink, evAgain:
		f.fin.handle(now, b>>kindShift, a)
	default:
		panic(fmt.Sprintf("fabric: event %#x, %#x is not of this network", a, b))
	}
}

// keep puts a message into a slot.
func (f *Fabric) keep(m *message) int32 {
	return keep(&f.msgs, &f.free, *m, func(m *message) int32 { return m.next })
}

// keep puts v into the first free place of l, which next leads on from to the next one, or into a new one.
func keep[T any](l *[]T, free *int32, v T, next func(*T) int32) int32 {
	i := *free
	if i == none {
		*l = append(*l, v)
		return int32(len(*l) - 1)
	}
	*free = next(&(*l)[i])
	(*l)[i] = v
	return i
}

// pushMessage appends to a queue of messages.
func (f *Fabric) pushMessage(head, tail *int32, slot int32) {
	f.msgs[slot].next = none
	if *head == none {
		*head = slot
	} else {
		f.msgs[*tail].next = slot
	}
	*tail = slot
}

// popMessage takes the first of a queue of messages.
func (f *Fabric) popMessage(head *int32) int32 {
	slot := *head
	*head = f.msgs[slot].next
	return slot
}

// finish gives back the slot of a message whose last byte arrives at time t and
// returns its id.
func (f *Fabric) finish(t Time, slot int32) (id uint64) {
	m := &f.msgs[slot]
	d := t - m.due
	f.stats.Delay += d
	f.stats.MaxDelay = max(f.stats.MaxDelay, d)
	m.next, f.free = f.free, slot
	return m.id
}

// occupy gives the link to a packet, not before now, and returns when its first
// byte is on it.
func (f *Fabric) occupy(now Time, i uint32, occ Time) Time {
	l := &f.links[i]
	start := max(now, l.free)
	l.free = start + occ
	l.busy += occ
	f.stats.Hops++
	return start
}

// source lets a node's interface send the next packet if its link is free, of
// each of its messages in turn: a short message does not wait until a long one
// before it has ended.
func (f *Fabric) source(now Time, node uint32) {
	n := &f.ports[node]
	l := f.links[f.injection(node)].free
	if l > now {
		f.kickSource(l, node)
		return
	}
	slot := f.popMessage(&n.inHead)
	m := &f.msgs[slot]
	m.sent++
	occ, mark := f.occFull, uint64(full<<sizeShift)
	if m.sent == m.packets {
		occ, mark = m.occLast, other<<sizeShift|lastMark
		if m.tailLast == 0 {
			mark = smallest<<sizeShift | lastMark
		}
	} else {
		f.pushMessage(&n.inHead, &n.inTail, slot)
	}
	f.occupy(now, f.injection(node), occ)
	if f.trace != nil {
		f.trace(int(f.injection(node)), now, occ, m.id, mark&lastMark != 0)
	}
	if n.inHead != none {
		f.kickSource(now+occ, node)
	}
	a := uint64(slot)<<32 | uint64(node)
	b := mark | uint64(m.turn)<<turnShift | uint64(m.dst)
	if f.p.Topology == FatTree && m.turn == 0 { // both nodes are at one switch
		f.sched.Schedule(now+f.p.Latency, a, evEject<<kindShift|b)
		return
	}
	f.hop(now, a, b)
}

func (f *Fabric) kickSource(t Time, node uint32) {
	if n := &f.ports[node]; !n.inKick {
		n.inKick = true
		f.sched.Schedule(t, uint64(node), evSource<<kindShift)
	}
}

// injection and ejection are the links between a node and its switch.
func (f *Fabric) injection(node uint32) uint32 {
	if f.p.Topology == Torus {
		return torusLinks*node + torusInject
	}
	return 2 * node
}

func (f *Fabric) ejection(node uint32) uint32 { return f.injection(node) + 1 }

// size returns how long a packet keeps a link.
func (f *Fabric) size(a, b uint64) Time {
	switch b >> sizeShift & sizeMask {
	case smallest:
		return f.occSmall
	case full:
		return f.occFull
	}
	return f.msgs[a>>32].occLast
}

// hop sends a packet whose first byte is at a switch over the next link.
func (f *Fabric) hop(now Time, a, b uint64) {
	var i uint32
	var last bool
	rest := f.p.Latency
	if f.p.Topology == Torus {
		var next uint32
		i, next = f.torusStep(uint32(a), uint32(b))
		last = next == uint32(b)
		a = a&^(1<<32-1) | uint64(next)
		rest -= f.p.HopLatency
	} else {
		i, b, last = f.treeStep(uint32(a), b)
	}
	occ := f.size(a, b)
	t := f.occupy(now, i, occ)
	if f.trace != nil {
		f.trace(int(i), t, occ, f.msgs[a>>32].id, b&lastMark != 0)
	}
	t += f.p.HopLatency
	b &= 1<<kindShift - 1
	if last {
		f.sched.Schedule(t+rest, a, evEject<<kindShift|b)
	} else {
		f.sched.Schedule(t, a, evHop<<kindShift|b)
	}
}

// eject sends a packet over the link into its node. All packets of a message
// take one path, on which none overtakes another: the last one ends it.
func (f *Fabric) eject(now Time, a, b uint64) {
	i := f.ejection(uint32(b))
	occ := f.size(a, b)
	t := f.occupy(now, i, occ)
	if f.trace != nil {
		f.trace(int(i), t, occ, f.msgs[a>>32].id, b&lastMark != 0)
	}
	if b&lastMark == 0 {
		return
	}
	slot := int32(a >> 32)
	t += f.msgs[slot].tailLast
	id := f.finish(t, slot)
	if t > now {
		f.sched.Schedule(t, id, evDeliver<<kindShift)
		return
	}
	f.stats.Delivered++
	f.deliver(now, id) // last, for it may inject
}
