package sim

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/errs"
)

// Barriers and multicasts of all ranks by cards and switches, if Config.Offload is true. The
// prototype had no room for them ("the EXTOLL Hardware Barrier, the
// multicast port", conclusion of Nüssle 2008). Each step is a message, which jitter
// and partitions delay; the root of the tree is on rank 0's side of a partition.

var _ conduits.Card = (*Endpoint)(nil)

// castCredits is how many multicasts of a rank may be under way.
const castCredits = 8

// offload is that of a job.
type offload struct {
	tree  *fabric.Tree
	units []unit // by rank
	casts []cast // by number; 0 is none
	free  uint32 // the first not in use
	gone  []int  // ranks that have left, in their order
}

// unit is a rank's card.
type unit struct {
	gates   [conduits.BarrierRegisters]gate
	casts   int32 // under way
	refused bool  // the rank waits for one of these
}

// gate is a barrier's register.
type gate struct {
	entered, over uint64 // phases
	low, high     uint64 // of the last that is over
}

// cast is a multicast: what its copies have in common.
type cast struct {
	data []byte // a buffer of the job's, or nil
	src  int32
	left int32  // copies that have not been taken
	next uint32 // in the list of those not in use
	m    message
}

// equip gives the job's cards a tree.
func (j *Job) equip() {
	p := &j.p
	j.off = &offload{units: make([]unit, j.n), casts: make([]cast, 1)}
	j.off.tree = j.net.Tree(fabric.TreeParams{
		Registers: conduits.BarrierRegisters, Bytes: p.Header + 16, Stage: p.Stage,
	}, crowd{j})
}

// crowd gets what the tree delivers.
type crowd struct{ j *Job }

// Combined has a result go into a rank's memory.
func (c crowd) Combined(_ Time, node, reg int, low, high uint64) {
	id, m := c.j.m.get()
	m.kind, m.src, m.dst, m.nwords = kindResult, int32(node), int32(node), 5
	putGate(m, reg, low, high)
	c.j.toAll(id, m)
}

// putGate and gateOf write and read what a part of a barrier says.
func putGate(m *message, reg int, low, high uint64) {
	m.words[0] = uint32(reg)
	m.words[1], m.words[2] = uint32(low), uint32(low>>32)
	m.words[3], m.words[4] = uint32(high), uint32(high>>32)
}

func gateOf(m *message) (reg int, low, high uint64) {
	return int(m.words[0]), uint64(m.words[1]) | uint64(m.words[2])<<32, uint64(m.words[3]) | uint64(m.words[4])<<32
}

// Copied makes a rank's message of a multicast.
func (c crowd) Copied(_ Time, node int, number uint64) {
	j := c.j
	id, m := j.m.get()
	k := &j.off.casts[number]
	next := m.next
	*m = k.m
	m.next, m.kind, m.dst, m.cast, m.data, m.own = next, kindCopy, int32(node), uint32(number), k.data, false
	m.remote = &noRemote
	j.toAll(id, m)
}

// between returns two ranks; a partition between them holds m.
func (m *message) between() (a, b int) {
	switch m.kind {
	case kindPart, kindCast:
		return int(m.src), 0
	case kindResult, kindCopy:
		return 0, int(m.dst)
	}
	return int(m.src), int(m.dst)
}

// toAll takes a message of the tree one step further: into the network, or from there
// to its rank's card.
func (j *Job) toAll(id uint32, m *message) {
	into := m.kind == kindPart || m.kind == kindCast
	if into && j.eps[m.src].crashed || !into && j.eps[m.dst].crashed {
		j.lose(id)
		return
	}
	if j.faults.active && j.faults.hold(j, id, m) {
		return
	}
	j.trace.message(j.now, 'i', m)
	p := &j.p
	switch m.kind {
	case kindPart:
		reg, low, high := gateOf(m)
		j.off.tree.Join(j.now, int(m.src), reg, low, high)
		j.m.put(id)
	case kindCast:
		j.off.casts[m.cast].m = *m
		j.off.tree.Cast(j.now, int(m.src), j.bytes(m), uint64(m.cast))
		m.data, m.own = nil, false // its copies' now
		j.m.put(id)
	case kindResult:
		j.schedule(j.now+p.DMAWrite+j.faults.jitter(j), evMailbox, uint64(id))
	case kindCopy:
		j.schedule(j.now+j.landing(m)+j.faults.jitter(j), evMailbox, uint64(id))
	}
}

// conclude writes the result that id brings to a rank's memory.
func (j *Job) conclude(id uint32, e *Endpoint) {
	m := j.m.at(id)
	j.trace.message(j.now, 'w', m)
	reg, low, high := gateOf(m)
	g := &j.off.units[e.rank].gates[reg]
	g.over, g.low, g.high = g.over+1, low, high
	j.m.put(id)
	e.notify(true)
}

// castTaken gives back what one copy of a multicast holds.
func (j *Job) castTaken(number uint32) {
	o := j.off
	k := &o.casts[number]
	if k.left--; k.left > 0 {
		return
	}
	if k.data != nil {
		j.m.keep(k.data)
	}
	u := &o.units[k.src]
	u.casts--
	if u.refused {
		u.refused = false
		j.schedule(j.now+o.tree.Rise(), evCredit, uint64(k.src))
	}
	*k = cast{next: o.free}
	o.free = number
}

// Barriers is how many registers the card has.
func (e *Endpoint) Barriers() int {
	if e.j.off == nil {
		return 0
	}
	return conduits.BarrierRegisters
}

// EnterBarrier hands the card this rank's part of the next phase.
func (e *Endpoint) EnterBarrier(reg int, low, high uint64) error {
	if uint(reg) >= uint(e.Barriers()) {
		return errs.BadArg("sim: barrier %d of rank %d: its card has %d (-sim offload=on, ARGON_SIM)", reg, e.rank, e.Barriers())
	}
	if err := e.Err(); err != nil {
		return err
	}
	j := e.j
	e.thread("barrier")
	g := &j.off.units[e.rank].gates[reg]
	if g.entered > g.over {
		return errs.NotReady("sim: barrier %d of rank %d: phase %d is not over", reg, e.rank, g.entered)
	}
	g.entered++
	id, m := e.message(e.rank, conduits.Request, 5)
	m.kind = kindPart
	putGate(m, reg, low, high)
	at := e.issue(1, 0, j.p.MessageGap, &e.cardFree)
	j.trace.message(e.clock, 's', m)
	j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
	return nil
}

// BarrierResult reads what the card has written.
func (e *Endpoint) BarrierResult(reg int) (phase, low, high uint64) {
	if uint(reg) >= uint(e.Barriers()) {
		return 0, 0, 0
	}
	g := &e.j.off.units[e.rank].gates[reg]
	return g.over, g.low, g.high
}

// awaited is the phase of reg that this rank waits for, 0 if it waits for none.
func (e *Endpoint) awaited(reg int) uint64 {
	if uint(reg) >= uint(e.Barriers()) {
		return 0
	}
	if g := &e.j.off.units[e.rank].gates[reg]; g.entered > g.over {
		return g.entered
	}
	return 0
}

// BarrierLeft is a rank without which this rank's phase cannot end.
func (e *Endpoint) BarrierLeft(reg int) int {
	phase := e.awaited(reg)
	if phase == 0 {
		return -1
	}
	for _, r := range e.j.off.gone {
		if e.j.off.units[r].gates[reg].entered < phase && e.Left(r) {
			return r
		}
	}
	return -1
}

// BarrierMissing lists the ranks that are not there yet.
func (e *Endpoint) BarrierMissing(reg int) []int {
	var l []int
	if phase := e.awaited(reg); phase > 0 {
		for r := range e.j.off.units {
			if e.j.off.units[r].gates[reg].entered < phase {
				l = append(l, r)
			}
		}
	}
	return l
}

// MaxMulticast is the payload of one packet beside its header; tag and words add to that, and
// the model does not divide it: switches replicate whole packets. It is 0 where packets
// have room for a header only.
func (e *Endpoint) MaxMulticast() int {
	j := e.j
	if j.off == nil {
		return 0
	}
	most := j.c.MaxMedium
	if p := j.p.Net.Packet; p > 0 {
		most = min(most, p-j.p.Header)
	}
	return max(most, 0)
}

// Multicast hands the card a message for all other ranks.
func (e *Endpoint) Multicast(tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	j := e.j
	if len(payload) > e.MaxMulticast() || j.off == nil {
		panic("sim: multicast of " + itoa(len(payload)) + " bytes; the most is " + itoa(e.MaxMulticast()))
	}
	e.checkLengths(len(words), len(payload))
	if e.closed || e.crashed || j.err != nil && e.Err() != nil {
		return conduits.Dead
	}
	e.thread("multicast")
	if j.n == 1 {
		return conduits.Ready
	}
	o := j.off
	u := &o.units[e.rank]
	if u.casts == castCredits {
		u.refused = true
		e.tally.refused(e.rank)
		return conduits.NoCredit
	}
	u.casts++
	number := o.free
	if number == 0 {
		number = uint32(len(o.casts))
		o.casts = append(o.casts, cast{})
	} else {
		o.free = o.casts[number].next
	}
	k := &o.casts[number]
	*k = cast{src: int32(e.rank), left: int32(j.n - 1)}
	if len(payload) > 0 {
		k.data = j.m.buffer(len(payload))
		copy(k.data, payload)
	}
	id, m := e.message(e.rank, conduits.Request, len(words))
	copy(m.words[:], words)
	m.data, m.own, m.cast = k.data, false, number
	e.launch(id, m, kindCast, tag)
	return conduits.Ready
}

// castsIdle reports whether rank has no multicast under way, to any rank.
func (j *Job) castsIdle(rank int) bool { return j.off == nil || j.off.units[rank].casts == 0 }
