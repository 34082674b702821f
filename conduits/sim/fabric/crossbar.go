package fabric

// A crossbar has a link from every node to its input and one from every output
// to its node: link 2*n and 2*n+1 of node n. All inputs are equally far from
// all outputs, so that the model lets a packet be at its output the moment it
// leaves its interface, and adds the latency when it leaves the output.
//
// Messages wait at their interface, in one queue or in one per destination.
// Without crosspoint buffers a packet leaves when its input and its output are
// free, and keeps both. With them a packet leaves when its input is free and
// its crosspoint has room; the output takes packets out of the crosspoints of
// its column, one of each in turn, and may begin while the packet still comes
// in. A place is free again when the packet has left it wholly.
//
// What an input and an output have in common is a pair. There are pairs only
// where something waits, so that memory grows with traffic and not with the
// square of nodes.

// pair is the crosspoint of an input and an output with its VOQ.
type pair struct {
	in, out uint32
	// The VOQ: messages. A single queue is with its port instead.
	head, tail int32
	// Packets in the crosspoint buffer, but the one being sent.
	packetHead, packetTail int32
	// In the queue of its input: it may send if its input is free. In the
	// queue of its output: its output is to take a packet from it.
	prev, next [2]int32
	chain      int32 // of the hash table, or free list
	used       uint16
	listed     [2]bool
	blocked    bool // its input waits for room in the buffer
}

// The sides of a pair.
const input, output = 0, 1

// packet is one in a crosspoint buffer.
type packet struct {
	slot int32
	next int32
	last bool
}

// switchIn enters a message that is not yet in a slot.
func (f *Fabric) switchIn(now Time, m *message) {
	in, out := &f.ports[m.src], &f.ports[m.dst]
	if in.inHead == none {
		f.freePlace(now, m.dst)
		if m.packets == 1 && out.outHead == none && f.links[2*m.src].free <= now && f.links[2*m.dst+1].free <= now {
			// Nothing is in the way: the message is a single event, and needs
			// neither slot nor pair. A crosspoint would be full no longer than
			// its input is busy.
			f.occupy(now, 2*m.src, m.occLast)
			f.occupy(now, 2*m.dst+1, m.occLast)
			if f.trace != nil {
				f.trace(int(2*m.src), now, m.occLast, m.id, true)
				f.trace(int(2*m.dst+1), now, m.occLast, m.id, true)
			}
			f.sched.Schedule(now+f.p.Latency+m.tailLast, m.id, evDeliver<<kindShift)
			return
		}
	}
	slot := f.keep(m)
	if f.p.Queue == Single {
		f.pushMessage(&in.inHead, &in.inTail, slot)
	} else {
		i := f.pair(m.src, m.dst)
		p := &f.pairs[i]
		f.pushMessage(&p.head, &p.tail, slot)
		f.offer(now, i)
	}
	f.tryInput(now, m.src)
}

// offer lists a pair of a VOQ that has messages where it is to be considered.
func (f *Fabric) offer(now Time, i int32) {
	p := &f.pairs[i]
	if f.p.Crosspoint == 0 {
		f.list(input, i)
		f.list(output, i)
		if f.links[2*p.out+1].free > now {
			f.kickOutput(now, p.out) // else there is nothing but its input to wait for
		}
		return
	}
	if int(p.used) < f.p.Crosspoint {
		f.list(input, i)
		return
	}
	p.blocked = true
	f.kickOutput(now, p.out)
}

// tryInput lets input in send its next packet if it can.
func (f *Fabric) tryInput(now Time, in uint32) {
	n := &f.ports[in]
	if n.inHead == none || n.waiting {
		return
	}
	if f.links[2*in].free > now {
		f.kickInput(now, in)
		return
	}
	if f.p.Queue == Single {
		f.trySingle(now, in)
		return
	}
	if f.p.Crosspoint > 0 {
		i := n.inHead
		f.unlist(input, i)
		f.cross(now, i)
		return
	}
	for f.links[2*in].free <= now {
		i := f.firstOfInput(now, in)
		if i == none {
			return
		}
		f.connect(now, f.foremost(now, i))
	}
}

// firstOfInput is the pair that has waited longest among those of an input
// whose output is free.
func (f *Fabric) firstOfInput(now Time, in uint32) int32 {
	i := f.ports[in].inHead
	for i != none && f.links[2*f.pairs[i].out+1].free > now {
		i = f.pairs[i].next[input]
	}
	return i
}

// firstOfOutput is the pair that has waited longest among those of an output
// whose input is free.
func (f *Fabric) firstOfOutput(now Time, out uint32) int32 {
	i := f.ports[out].outHead
	for i != none && f.links[2*f.pairs[i].in].free > now {
		i = f.pairs[i].next[output]
	}
	return i
}

// foremost finds a pair that is the first of its input and of its output, from
// one whose input and output are free. If several become free at one time,
// whose event comes first must not decide, or a pair could be served for ever
// and others never. Each step goes to one that has waited longer.
func (f *Fabric) foremost(now Time, i int32) int32 {
	for {
		j := f.firstOfOutput(now, f.pairs[i].out)
		k := f.firstOfInput(now, f.pairs[j].in)
		if k == i {
			return i
		}
		i = k
	}
}

// trySingle does that for a single queue.
func (f *Fabric) trySingle(now Time, in uint32) {
	n := &f.ports[in]
	out := f.msgs[n.inHead].dst
	i := f.pair(in, out)
	if f.p.Crosspoint == 0 {
		if f.links[2*out+1].free <= now && f.ports[out].outHead == none {
			f.connect(now, i)
			return
		}
		n.waiting = true
		f.list(output, i)
		f.kickOutput(now, out)
		return
	}
	// freePlace may drop the pair with its last use.
	f.freePlace(now, out)
	if i = f.pair(in, out); int(f.pairs[i].used) < f.p.Crosspoint {
		f.cross(now, i)
		return
	}
	n.waiting = true
	f.pairs[i].blocked = true
	f.kickOutput(now, out)
}

// tryOutput lets output out send its next packet if it can.
func (f *Fabric) tryOutput(now Time, out uint32) {
	f.freePlace(now, out)
	n := &f.ports[out]
	if f.links[2*out+1].free > now {
		if n.outHead != none || n.sending != none && f.pairs[n.sending].blocked {
			f.kickOutput(now, out)
		}
		return
	}
	if n.outHead == none {
		return
	}
	if f.p.Crosspoint > 0 {
		f.sendOut(now, n.outHead)
		return
	}
	if f.p.Queue == Single { // the inputs of these are free
		f.connect(now, n.outHead)
		return
	}
	for f.links[2*out+1].free <= now {
		i := f.firstOfOutput(now, out)
		if i == none {
			return
		}
		f.connect(now, f.foremost(now, i))
	}
}

// next takes the next packet out of the queue that pair i stands for.
func (f *Fabric) next(i int32) (slot int32, last bool, occ Time) {
	p := &f.pairs[i]
	head := &p.head
	if f.p.Queue == Single {
		head = &f.ports[p.in].inHead
	}
	slot = *head
	m := &f.msgs[slot]
	m.sent++
	if m.sent < m.packets {
		return slot, false, f.occFull
	}
	f.popMessage(head)
	return slot, true, m.occLast
}

// pass lets a packet have a link that is free.
func (f *Fabric) pass(now Time, i uint32, occ Time, slot int32, last bool) {
	f.occupy(now, i, occ)
	if f.trace != nil {
		f.trace(int(i), now, occ, f.msgs[slot].id, last)
	}
}

// connect sends a packet of pair i through the crossbar without buffers: its
// input and its output are free.
func (f *Fabric) connect(now Time, i int32) {
	slot, last, occ := f.next(i)
	p := &f.pairs[i]
	in, out := p.in, p.out
	f.pass(now, 2*in, occ, slot, last)
	f.pass(now, 2*out+1, occ, slot, last)
	// Each in turn: what has just been served goes to the end.
	f.unlist(input, i)
	f.unlist(output, i)
	f.ports[in].waiting = false
	if f.pairs[i].head != none {
		f.list(input, i)
		f.list(output, i)
	} else {
		f.drop(i)
	}
	if f.ports[in].inHead != none {
		f.kickInput(now, in)
	}
	if f.ports[out].outHead != none {
		f.kickOutput(now, out)
	}
	if last {
		f.passed(now, slot)
	}
}

// passed ends a message whose last packet has begun to leave its output.
func (f *Fabric) passed(now Time, slot int32) {
	t := now + f.p.Latency + f.msgs[slot].tailLast
	f.sched.Schedule(t, f.finish(t, slot), evDeliver<<kindShift)
}

// cross sends a packet of pair i into its crosspoint buffer, which has room;
// its input is free. The pair is not in its input's list.
func (f *Fabric) cross(now Time, i int32) {
	slot, last, occ := f.next(i)
	p := &f.pairs[i]
	f.pass(now, 2*p.in, occ, slot, last)
	p.used++
	f.pushPacket(p, slot, last)
	f.list(output, i)
	f.tryOutput(now, p.out)
	if p := &f.pairs[i]; p.head != none {
		f.offer(now, i)
	}
	if f.ports[p.in].inHead != none {
		f.kickInput(now, p.in)
	}
}

// sendOut sends a packet out of the crosspoint buffer of pair i, the first of
// its output's list; its output is free and sends from no other.
func (f *Fabric) sendOut(now Time, i int32) {
	p := &f.pairs[i]
	slot, last := f.popPacket(p)
	occ := f.occFull
	if last {
		occ = f.msgs[slot].occLast
	}
	f.pass(now, 2*p.out+1, occ, slot, last)
	n := &f.ports[p.out]
	n.sending = i
	f.unlist(output, i)
	if p.packetHead != none {
		f.list(output, i)
	}
	if n.outHead != none || p.blocked {
		f.kickOutput(now, p.out)
	}
	if last {
		f.passed(now, slot)
	}
}

// freePlace gives back the place of the packet that output out has sent, if it
// has by now. That takes no event: it is done when the place is wanted.
func (f *Fabric) freePlace(now Time, out uint32) {
	n := &f.ports[out]
	i := n.sending
	if i == none || f.links[2*out+1].free > now {
		return
	}
	n.sending = none
	p := &f.pairs[i]
	p.used--
	if !p.blocked {
		f.drop(i)
		return
	}
	p.blocked = false
	in := p.in
	if f.p.Queue == Single {
		f.ports[in].waiting = false
	} else {
		f.list(input, i)
	}
	f.tryInput(now, in)
}

func (f *Fabric) kickInput(now Time, in uint32) {
	if n := &f.ports[in]; !n.inKick {
		n.inKick = true
		f.sched.Schedule(max(now, f.links[2*in].free), uint64(in), evInput<<kindShift)
	}
}

func (f *Fabric) kickOutput(now Time, out uint32) {
	if n := &f.ports[out]; !n.outKick {
		n.outKick = true
		f.sched.Schedule(max(now, f.links[2*out+1].free), uint64(out), evOutput<<kindShift)
	}
}

// pair finds or makes the pair of an input and an output.
func (f *Fabric) pair(in, out uint32) int32 {
	h := f.bucket(in, out)
	for i := f.hash[h]; i != none; i = f.pairs[i].chain {
		if p := &f.pairs[i]; p.in == in && p.out == out {
			return i
		}
	}
	if f.used++; f.used > len(f.hash) {
		f.rehash(2 * len(f.hash))
		h = f.bucket(in, out)
	}
	f.hash[h] = keep(&f.pairs, &f.unpr, pair{
		in: in, out: out, head: none, tail: none, packetHead: none, packetTail: none, chain: f.hash[h],
	}, func(p *pair) int32 { return p.chain })
	return f.hash[h]
}

// drop forgets a pair that nothing needs any more.
func (f *Fabric) drop(i int32) {
	p := &f.pairs[i]
	if p.used > 0 || p.head != none || p.listed[input] || p.listed[output] || p.blocked {
		return
	}
	at := &f.hash[f.bucket(p.in, p.out)]
	for *at != i {
		at = &f.pairs[*at].chain
	}
	*at = p.chain
	p.chain, f.unpr = f.unpr, i
	f.used--
}

// bucket hashes a pair; the table's length is a power of two.
func (f *Fabric) bucket(in, out uint32) uint32 {
	x := (uint64(in)<<32 | uint64(out)) * 0x9e3779b97f4a7c15
	return uint32(x>>32) & uint32(len(f.hash)-1)
}

func (f *Fabric) rehash(n int) {
	old := f.hash
	f.hash = make([]int32, n)
	for i := range f.hash {
		f.hash[i] = none
	}
	for _, i := range old {
		for i != none {
			p := &f.pairs[i]
			next := p.chain
			h := f.bucket(p.in, p.out)
			p.chain, f.hash[h] = f.hash[h], i
			i = next
		}
	}
}

func (f *Fabric) pushPacket(p *pair, slot int32, last bool) {
	i := keep(&f.packets, &f.unpk, packet{slot: slot, last: last, next: none}, func(k *packet) int32 { return k.next })
	if p.packetHead == none {
		p.packetHead = i
	} else {
		f.packets[p.packetTail].next = i
	}
	p.packetTail = i
}

func (f *Fabric) popPacket(p *pair) (slot int32, last bool) {
	i := p.packetHead
	k := &f.packets[i]
	p.packetHead = k.next
	k.next, f.unpk = f.unpk, i
	return k.slot, k.last
}

// list puts pair i at the end of that side's list of its port unless it is there.
func (f *Fabric) list(side int, i int32) {
	p := &f.pairs[i]
	if p.listed[side] {
		return
	}
	head, tail := f.ends(p, side)
	p.listed[side], p.prev[side], p.next[side] = true, *tail, none
	if *head == none {
		*head, p.prev[side] = i, none
	} else {
		f.pairs[*tail].next[side] = i
	}
	*tail = i
}

func (f *Fabric) unlist(side int, i int32) {
	p := &f.pairs[i]
	if !p.listed[side] {
		return
	}
	p.listed[side] = false
	head, tail := f.ends(p, side)
	if p.prev[side] == none {
		*head = p.next[side]
	} else {
		f.pairs[p.prev[side]].next[side] = p.next[side]
	}
	if p.next[side] == none {
		*tail = p.prev[side]
	} else {
		f.pairs[p.next[side]].prev[side] = p.prev[side]
	}
}

// ends are those of the list that p is in at that side.
func (f *Fabric) ends(p *pair, side int) (head, tail *int32) {
	if side == input {
		return &f.ports[p.in].inHead, &f.ports[p.in].inTail
	}
	return &f.ports[p.out].outHead, &f.ports[p.out].outTail
}
