package engine

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// pkt is a datagram's contents: frames, and after them data that is read from
// where it lies whenever the datagram is sent.
type pkt struct {
	seq     uint64
	pn      uint64 // of its last transmission
	sent    time.Duration
	size    int    // of that, bytes
	pieces  []*pkt // its contents, if they are too long now; nil once one has arrived
	whole   *pkt   // whose contents it is a piece of
	piece   uint16 // which one, from 1
	tries   int
	lost    bool // in flow.lost, not in path.air
	now     bool // a goroutine waits for the acknowledgement
	answers int  // bytes of its frames that are counted in flow.waiting
	faults  int  // of puts that its frames tell of
	frames  []byte
	data    []byte
	item    *item            // what data, or what is in frames, is a fragment of
	done    []ending         // to be reported when it has arrived
	refused map[uint32]error // of done that their target has refused, by offset; nil: none
	prev    *pkt
	next    *pkt
}

// ending is the completion of a put, whose frame is at offset at of its frames. A datagram of
// small puts has hundreds.
type ending struct {
	cookie uint64
	at     uint32
	want   conduits.Event
}

// finish completes the puts of k, those that have not been refused with err.
func (k *pkt) finish(done *conc.Queue[Completion], err error) {
	for _, d := range k.done {
		c := Completion{d.cookie, d.want, 0, err}
		if r := k.refused[d.at]; r != nil {
			c.Err = r
		}
		done.Add(c)
	}
}

// flow is one class of traffic between this rank and a peer, in both directions.
//
// Datagrams with contents are numbered from Engine.first. Of those that are sent,
//
//	una <= the first that is not known to have arrived <= next <= una + Config.Window
//
// and ring[seq % len] holds those of una..next-1 that are not known to have
// arrived. Of those that come, all before cum have, and the bitmap says which of
// cum..top-1. Ring and bitmap grow as they are needed.
type flow struct {
	class     conduits.Class
	ring      []*pkt
	una, next uint64
	small     queue[pkt, *pkt] // contents without a number yet; the last may take more
	smalls    int              // how many
	release   bool             // some that waited go, so all do
	bulk      queue[item, *item]
	bulkNext  bool          // its turn
	smallAir  int           // datagrams of small in air
	smallAt   time.Duration // when the last of them was sent
	lost      list          // to be sent again
	inFlight  int           // bytes under way
	waiting   int           // bytes that answers take which are not on their way, items of data to get among them

	// Messages, as cumulative counts.
	messages uint32 // to the peer: sent
	consumed uint32 // to the peer: consumed there
	number   uint32 // of the next message in fragments
	refused  bool   // Reserve answered NoCredit and consumed has not grown
	arrived  uint32 // from the peer
	taken    uint32 // from the peer: consumed here
	told     uint32 // taken, as the peer was told last

	cum   uint64
	top   uint64 // one more than the highest that has come
	bits  []uint64
	parts map[uint32]*Message

	pieced      map[uint64]*assembly // contents of which pieces have come
	piecedBytes int

	// hidden counts refused puts that the peer does not know of. Until it does, no
	// datagram from the first of these on is acknowledged, so that it hears that a put
	// was refused before it hears that the put has arrived.
	hidden int
	shown  uint64 // cum, as the peer is told meanwhile
}

// leastRing is the shortest ring and bitmap.
const leastRing = 64

func (f *flow) open(c conduits.Class, first uint64) {
	f.class = c
	f.una, f.next, f.cum, f.top = first, first, first, first
	f.messages, f.consumed, f.arrived, f.taken, f.told = uint32(first), uint32(first), uint32(first), uint32(first), uint32(first)
	f.number = uint32(first)
	f.ring = make([]*pkt, leastRing)
	f.bits = make([]uint64, leastRing/64)
}

func (f *flow) at(seq uint64) **pkt { return &f.ring[seq&uint64(len(f.ring)-1)] }

// enter gives k the next number.
func (f *flow) enter(k *pkt) {
	if f.next-f.una >= uint64(len(f.ring)) {
		old := f.ring
		f.ring = make([]*pkt, 2*len(old))
		for n := f.una; n != f.next; n++ {
			*f.at(n) = old[n&uint64(len(old)-1)]
		}
	}
	k.seq = f.next
	*f.at(k.seq) = k
	f.next++
}

// likely is how many bytes of frames contents have room for at first.
const likely = 1400

// collect returns contents that n more bytes of frames fit into.
func (e *Engine) collect(p *peer, f *flow, n int) *pkt {
	if k := f.small.last; !f.small.empty() && len(k.frames)+n <= p.room {
		return k
	}
	k := e.pkt()
	if cap(k.frames) == 0 {
		k.frames = make([]byte, 0, min(p.room, likely)) // others are likely to join
	}
	f.small.add(k)
	f.smalls++
	return k
}

// idle reports whether f has nothing to be sent, whatever may be sent.
func (f *flow) idle() bool {
	return f.small.empty() && f.bulk.empty() && f.lost.first == nil
}

// sendable reports whether pick would find something that may be sent now.
func (e *Engine) sendable(p *peer, f *flow) bool {
	return !f.idle() && e.wants(p, f) && (e.now >= p.openAt || p.probes > 0)
}

// wants says the same without regard to pacing.
func (e *Engine) wants(p *peer, f *flow) bool {
	if f.lost.first == nil && (f.next-f.una >= uint64(e.c.Window) || f.bulk.empty() && (f.small.empty() || e.held(p, f) || f.smallAir >= p.smallMost)) {
		return false
	}
	return float64(p.inFlight+p.datagram) <= p.cwnd || p.inFlight == 0 || p.probes > 0 ||
		f.class == conduits.Reply && float64(f.inFlight) < p.floor() // it never waits behind requests
}

// held reports whether small frames wait for company. The first never do: only those
// that come when a datagram with others is under way, and as long as it has been
// so for less than Hold.
func (e *Engine) held(p *peer, f *flow) bool {
	return f.smallAir > 0 && e.now < f.smallAt+e.c.Hold && !p.push && !f.release && (f.smalls-1)*p.room+len(f.small.last.frames) < e.enough
}

// Bytes of small frames, in one datagram or in several that go together, that gain
// nothing from more of them: a quarter of the largest datagram, within bounds. With a single
// one of 1,400 a flood of 512 bytes took 0.72 of ref/udpmsg a message instead of 0.31 by
// datagrams of 1,400 bytes, and 0.46 instead of 0.15 by those of 65,000.
const (
	enough     = 8 << 10
	enoughMost = 16 << 10
)

// pick returns the contents to be sent next.
func (e *Engine) pick(p *peer, f *flow) *pkt {
	if k := f.lost.first; k != nil {
		f.lost.remove(k)
		k.lost = false
		e.stats.Again++
		p.again++
		return e.fit(p, f, k)
	}
	var k *pkt
	if f.bulk.empty() || !f.bulkNext && !f.small.empty() {
		k = f.small.take()
		f.smalls--
		f.release = f.smalls > 0
		if p.push && p.flows[0].small.empty() && p.flows[1].small.empty() {
			p.push = false
		}
		f.bulkNext = true
		f.waiting -= k.answers
		k.answers = 0
	} else {
		k = e.fragment(p, f)
		f.bulkNext = false
	}
	f.enter(k)
	return e.fit(p, f, k)
}

// ask has the acknowledgements of k, which is to be sent now, and of those before
// it come before the window is full.
func (p *peer) ask(k *pkt) {
	p.unasked++
	p.unaskedB += p.datagram
	parts := asks
	if p.short() {
		parts = quarters
	}
	if p.unasked >= ackEvery && float64(p.unaskedB*parts) >= p.cwnd || float64(p.inFlight+len(k.frames)+len(k.data)+p.datagram) > p.cwnd {
		k.now = true
	}
	if k.now || k.tries > 0 {
		p.unasked, p.unaskedB = 0, 0
	}
}

// fragment cuts the next piece off the first item.
func (e *Engine) fragment(p *peer, f *flow) *pkt {
	it := f.bulk.first
	k := e.pkt()
	fixed := fixedBytes[it.kind] + 1
	if it.off == 0 {
		fixed += 4 * int(it.nwords) // they come with the first
	}
	left := int(it.length() - it.off)
	n := min(left, p.room-fixed)
	if n < left {
		n &^= 7
	}
	k.frames = appendFragment(k.frames, it, it.off, n)
	if it.size == 0 {
		k.data = it.data[it.off : int(it.off)+n]
	} else if err := e.appendRegistered(k, it, n); err != nil {
		e.stats.Refused++
		k.frames = appendFault(k.frames[:0], it.id, err)
		n = left // there is nothing more to come
	}
	k.item = it
	it.off += uint64(n)
	it.open++
	if it.off == it.length() {
		f.bulk.take()
		if it.kind == frData {
			f.waiting -= itemBytes
		}
		k.now = it.want != 0
	}
	return k
}

// appendRegistered appends the n bytes of registered memory that are it's fragment.
func (e *Engine) appendRegistered(k *pkt, it *item, n int) error {
	at := it.to + segment.NLA(it.off)
	b, u, err := e.c.Memory.Access(int(it.peer), at, uint64(n), segment.RightRead)
	if err != nil {
		return err
	}
	if !segment.Touch(b, func() { k.frames = append(k.frames, b...) }) {
		err = segment.Gone(int(it.peer), at, uint64(n), segment.RightRead)
	}
	u.Exit()
	return err
}

// landed notes that the contents with number seq have arrived, if that is news.
func (e *Engine) landed(p *peer, f *flow, seq uint64) {
	k := *f.at(seq)
	if k == nil {
		return
	}
	*f.at(seq) = nil
	p.landings++
	if k.pieces != nil {
		e.unpiece(p, f, k)
	} else if k.lost {
		f.lost.remove(k)
	} else {
		p.ground(f, k, moot)
	}
	k.finish(&e.done, nil)
	if k.item != nil {
		e.closeItem(k.item, nil)
	}
	if k.faults > 0 {
		r := &p.flows[conduits.Request]
		if r.hidden -= k.faults; r.hidden == 0 {
			p.ackNow = true
		}
	}
	e.freePkt(k)
}

// has reports whether datagram seq, from cum on, has come.
func (f *flow) has(seq uint64) bool {
	i := seq & (64*uint64(len(f.bits)) - 1)
	return seq-f.cum < 64*uint64(len(f.bits)) && f.bits[i/64]>>(i%64)&1 != 0
}

// mark notes that datagram seq has come, from cum on.
func (f *flow) mark(seq uint64) {
	for seq-f.cum >= 64*uint64(len(f.bits)) {
		old := *f
		f.bits = make([]uint64, 2*len(old.bits))
		for n := f.cum; n != f.top; n++ {
			if old.has(n) {
				f.set(n)
			}
		}
	}
	f.set(seq)
	if !older(seq, f.top) {
		f.top = seq + 1
	}
	for f.has(f.cum) {
		i := f.cum & (64*uint64(len(f.bits)) - 1)
		f.bits[i/64] &^= 1 << (i % 64)
		f.cum++
	}
}

func (f *flow) set(seq uint64) {
	i := seq & (64*uint64(len(f.bits)) - 1)
	f.bits[i/64] |= 1 << (i % 64)
}

// canSend reports whether there is a reason to send p a datagram.
func (e *Engine) canSend(p *peer) bool {
	if p.dead {
		return false
	}
	return p.ackNow || p.mtu.limit > 0 && e.sounding(p) || e.sendable(p, &p.flows[conduits.Request]) || e.sendable(p, &p.flows[conduits.Reply])
}
