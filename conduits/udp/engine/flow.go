package engine

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// pkt is a datagram's contents: frames, and after them data that is read from
// where it lies whenever the datagram is sent.
type pkt struct {
	seq     uint64
	order   uint64 // of its last transmission
	sent    time.Duration
	tries   int
	lost    bool // in flow.lost, not in flow.air
	now     bool // somebody waits for the acknowledgement
	answers int  // bytes of its frames that are counted in flow.waiting
	faults  int  // of puts that its frames tell of
	frames  []byte
	data    []byte
	item    *item    // what data, or what is in frames, is a fragment of
	done    []ending // to be reported when it has arrived
	prev    *pkt
	next    *pkt
}

// ending is the completion of a put, whose frame is at offset at of its frames.
type ending struct {
	Completion
	at int
}

// flow is one class of traffic between this rank and a peer, in both directions.
//
// Datagrams with contents are numbered from 0. Of those that are sent,
//
//	una <= the first that is not known to have arrived <= next <= una + window
//
// and ring[seq % window] holds those of una..next-1 that are not known to have
// arrived. Of those that come, all before cum have, and the bitmap says which of
// cum..cum+window-1.
type flow struct {
	ring      []*pkt
	una, next uint64
	small     queue[pkt, *pkt] // contents without a number yet; the last may take more
	bulk      queue[item, *item]
	bulkNext  bool          // its turn
	smallAir  int           // datagrams of small in air
	smallAt   time.Duration // when the last of them was sent
	air       list          // sent, in that order, and neither arrived nor lost
	lost      list          // to be sent again
	inAir     int
	unasked   int // datagrams since one's acknowledgement was asked for, or came
	waiting   int // bytes that answers take which are not on their way, items of data to get among them

	// Congestion control counts datagrams.
	cwnd, slow float64
	orders     uint64 // transmissions so far
	cutAt      uint64 // transmissions before do not reduce cwnd again
	newest     uint64 // highest order that has arrived, and when it was sent
	newestSent time.Duration

	newestBefore uint64        // newest, before the acknowledgement that is being read
	misses       int           // losses in this round, which ends when roundEnd has arrived
	roundEnd     uint64        // an order
	unruly       int           // losses for which it is remembered that datagrams overtake each other
	overtakeAt   time.Duration // when overtaken ones are taken for lost; 0: there are none
	rtoAt        time.Duration
	probed       bool // the time-out to come is not the first since something arrived
	backoff      uint

	// Messages, as cumulative counts.
	messages uint32 // to the peer: sent
	consumed uint32 // to the peer: consumed there
	number   uint32 // of the next message in fragments
	refused  bool   // Reserve answered NoCredit and consumed has not grown
	arrived  uint32 // from the peer
	taken    uint32 // from the peer: consumed here
	told     uint32 // taken, as the peer was told last

	cum    uint64
	top    uint64 // one more than the highest that has come
	bits   []uint64
	unsaid int // datagrams since the last acknowledgement
	parts  map[uint32]*Message

	// Refused puts that the peer does not know of. Until it does it is told of no
	// datagram from the first with one of them on, so that it hears that a put was
	// refused before it hears that the put has arrived.
	hidden int
	shown  uint64 // cum, as the peer is told meanwhile
}

const (
	firstWindow = 32
	leastWindow = 4
	cut         = 0.7 // of the window is left when too much is lost

	// Losses of up to this part of a round's datagrams, and so many in any case,
	// are taken for accidents: full queues lose more.
	accidents      = 0.03
	leastAccidents = 3

	// A datagram is lost if so many that were sent after it have arrived. Where
	// datagrams have been seen to overtake each other, for so many losses, it must
	// also be late by a quarter of a round trip.
	overtakers = 3
	unruly     = 64

	// mostBytes is how much of a class may be under way to a peer: sockets do not
	// keep more.
	mostBytes = 2 << 20

	// ackEvery is how many datagrams are acknowledged at once at the latest, or a
	// quarter of the most that may be under way if that is more. Who has a smaller
	// window asks for more.
	ackEvery = 8
	quarters = 4
)

func (f *flow) open(window int, most float64) {
	f.ring = make([]*pkt, window)
	f.bits = make([]uint64, window/64)
	f.cwnd, f.slow = min(firstWindow, most), most
}

func (f *flow) window() uint64 { return uint64(len(f.ring)) }

func (f *flow) at(seq uint64) **pkt { return &f.ring[seq&(f.window()-1)] }

// collect returns contents that n more bytes of frames fit into.
func (e *Engine) collect(f *flow, n int) *pkt {
	if k := f.small.last; !f.small.empty() && len(k.frames)+n <= e.room {
		return k
	}
	k := e.pkt()
	f.small.add(k)
	return k
}

// sendable says whether pick would find something that may be sent now.
func (e *Engine) sendable(p *peer, f *flow) bool {
	switch {
	case f.inAir > 0 && float64(f.inAir) >= f.cwnd:
		return false
	case f.lost.first != nil:
		return true
	case f.next-f.una >= f.window():
		return false
	}
	return !f.bulk.empty() || !f.small.empty() && !e.held(p, f)
}

// held says whether small frames wait for company. The first never do: only those
// that come when a datagram with others is under way, and as long as it has been
// so for less than Hold.
func (e *Engine) held(p *peer, f *flow) bool {
	return f.smallAir > 0 && e.now < f.smallAt+e.c.Hold && !p.push && f.small.first == f.small.last && len(f.small.first.frames) < enough
}

// enough is how many bytes of small frames gain nothing from more of them.
const enough = 1400

// pick returns the contents to be sent next.
func (e *Engine) pick(p *peer, f *flow) *pkt {
	if k := f.lost.first; k != nil {
		f.lost.remove(k)
		k.lost = false
		e.stats.Again++
		return k
	}
	var k *pkt
	if f.bulk.empty() || !f.bulkNext && !f.small.empty() {
		k = f.small.take()
		if p.push && p.flows[0].small.empty() && p.flows[1].small.empty() {
			p.push = false
		}
		f.bulkNext = true
		f.waiting -= k.answers
		k.answers = 0
	} else {
		k = e.fragment(f)
		f.bulkNext = false
	}
	k.seq = f.next
	*f.at(k.seq) = k
	f.next++
	return k
}

// ask sees to it that the acknowledgements of k, which is to be sent now, and of
// those before it do not come so late that the window is full.
func (f *flow) ask(k *pkt) {
	f.unasked++
	if f.unasked >= ackEvery && float64(f.unasked*quarters) >= f.cwnd || float64(f.inAir+1) >= f.cwnd {
		k.now = true
	}
	if k.now || k.tries > 0 {
		f.unasked = 0
	}
}

// fragment cuts the next piece off the first item.
func (e *Engine) fragment(f *flow) *pkt {
	it := f.bulk.first
	k := e.pkt()
	fixed := fixedBytes[it.kind] + 1
	if it.off == 0 {
		fixed += 4 * int(it.nwords) // they come with the first
	}
	left := int(it.length() - it.off)
	n := min(left, e.room-fixed)
	if n < left {
		n &^= 7
	}
	k.frames = appendFragment(k.frames, it, it.off, n)
	if it.size == 0 {
		k.data = it.data[it.off : int(it.off)+n]
	} else if b, u, err := e.c.Memory.Access(int(it.peer), it.to+segment.NLA(it.off), uint64(n), segment.RightRead); err == nil {
		k.frames = append(k.frames, b...)
		u.Exit()
	} else {
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

// transmitted notes that k is on its way.
func (e *Engine) transmitted(p *peer, f *flow, k *pkt) {
	f.orders++
	k.order, k.sent = f.orders, e.now
	k.tries++
	if f.air.first == nil {
		f.air.add(k)
		f.rtoAt = e.now + e.patience(p, f)
	} else {
		f.air.add(k)
	}
	f.inAir++
	if k.item == nil {
		f.smallAir++
		f.smallAt = e.now
	}
}

// rto is the time-out after so many of them in turn.
func (p *peer) rto(c *Config, backoff uint) time.Duration {
	d := c.FirstRTO
	if p.srtt > 0 {
		d = max(c.MinRTO, p.srtt+4*p.rttv)
	}
	return min(d<<min(backoff, 16), c.MaxRTO)
}

// patience is how long to wait for news of what is under way, until the oldest of
// it is sent again: as a probe at first, if something has arrived before.
func (e *Engine) patience(p *peer, f *flow) time.Duration {
	d := p.rto(&e.c, f.backoff)
	if !f.probed && p.srtt > 0 {
		probe := 2*p.srtt + e.c.MinRTO/32
		if f.air.last == nil || !f.air.last.now {
			probe += e.c.AckDelay
		}
		d = min(d, probe)
	}
	return d
}

// sample takes a measured round trip into account (RFC 6298).
func (p *peer) sample(d time.Duration) {
	d = max(d, 1)
	if p.srtt == 0 {
		p.srtt, p.rttv = d, d/2
		return
	}
	p.rttv += ((p.srtt - d).Abs() - p.rttv) / 4
	p.srtt += (d - p.srtt) / 8
}

// landed notes that datagram seq has arrived, and says whether that is news.
func (e *Engine) landed(p *peer, f *flow, seq uint64) bool {
	k := *f.at(seq)
	if k == nil {
		return false
	}
	*f.at(seq) = nil
	if k.lost {
		f.lost.remove(k)
	} else {
		f.ground(k)
	}
	if k.tries == 1 { // else it is not known which of them arrived
		if k.order > f.newest {
			f.newest, f.newestSent = k.order, k.sent
		} else if k.order < f.newestBefore {
			f.unruly = unruly
		}
	}
	if f.cwnd < f.slow {
		f.cwnd++
	} else {
		f.cwnd += 1 / f.cwnd
	}
	f.cwnd = min(f.cwnd, e.most)
	for i := range k.done {
		e.done.add(k.done[i].Completion)
	}
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
	return true
}

// acknowledge takes what a datagram says about those that were sent: all before
// cum have come, and some after. It must hold that cum <= next.
func (e *Engine) acknowledge(p *peer, f *flow, cum uint64, sacks []byte) {
	news := false
	first := f.una
	f.newestBefore = f.newest
	for ; f.una < cum; f.una++ {
		news = e.landed(p, f, f.una) || news
	}
	if cum >= first { // an older one has nothing to say that is not known
		for i := 0; i < 8*len(sacks); i++ {
			seq := cum + 1 + uint64(i)
			if seq >= f.next {
				break
			}
			if sacks[i/8]>>(i%8)&1 != 0 {
				news = e.landed(p, f, seq) || news
			}
		}
	}
	if !news {
		return
	}
	if f.newest > f.newestBefore {
		p.sample(e.now - f.newestSent)
	}
	f.backoff, f.probed = 0, false
	f.unasked = 0 // they come by themselves
	f.rtoAt = e.now + e.patience(p, f)
	if f.newest >= f.roundEnd {
		f.roundEnd, f.misses = f.orders, 0
	}
	e.overtaken(p, f)
}

// overtaken finds what is lost, since later ones have arrived.
func (e *Engine) overtaken(p *peer, f *flow) {
	f.overtakeAt = 0
	late := time.Duration(0)
	if f.unruly > 0 {
		late = p.srtt / 4
	}
	for k := f.air.first; k != nil && k.order+overtakers <= f.newest; k = f.air.first {
		if at := k.sent + p.srtt + late; k.sent+late > f.newestSent && at > e.now {
			f.overtakeAt = at
			return
		}
		e.lose(f, k)
		f.misses++
		f.unruly = max(f.unruly-1, 0)
		if k.order > f.cutAt && float64(f.misses) > max(leastAccidents, f.cwnd*accidents) {
			f.cutAt = f.orders
			f.cwnd = max(f.cwnd*cut, leastWindow)
			f.slow = f.cwnd
		}
	}
}

// ground takes k out of the air.
func (f *flow) ground(k *pkt) {
	f.air.remove(k)
	f.inAir--
	if k.item == nil {
		f.smallAir--
	}
}

func (e *Engine) lose(f *flow, k *pkt) {
	f.ground(k)
	k.lost = true
	f.lost.add(k)
}

// timeout sends the oldest under way again, to find out more, or, if that has been
// done, takes everything under way for lost.
func (e *Engine) timeout(p *peer, f *flow) {
	if !f.probed && p.srtt > 0 {
		f.probed = true
		e.stats.Probes++
		for n := 0; n < 2 && f.air.first != nil; n++ {
			e.lose(f, f.air.first)
		}
		f.rtoAt = e.now + e.patience(p, f)
		return
	}
	e.stats.Timeouts++
	for f.air.first != nil {
		e.lose(f, f.air.first)
	}
	if f.backoff == 0 {
		f.slow = max(f.cwnd/2, leastWindow)
	}
	f.cwnd = leastWindow
	f.cutAt = f.orders
	f.backoff++
}

// has says whether datagram seq, from cum on, has come.
func (f *flow) has(seq uint64) bool {
	i := seq & (f.window() - 1)
	return f.bits[i/64]>>(i%64)&1 != 0
}

// mark notes that datagram seq has come.
func (f *flow) mark(seq uint64) {
	i := seq & (f.window() - 1)
	f.bits[i/64] |= 1 << (i % 64)
	f.top = max(f.top, seq+1)
	for f.has(f.cum) {
		i := f.cum & (f.window() - 1)
		f.bits[i/64] &^= 1 << (i % 64)
		f.cum++
	}
}

// appendSacks says which datagrams after cum have come, in at most so many words.
func (f *flow) appendSacks(b []byte, words int) ([]byte, int) {
	n := 0
	for base := f.cum + 1; base < f.top && n < words; base += 64 {
		var w [8]byte
		for i := uint64(0); i < 64 && base+i < f.top; i++ {
			if f.has(base + i) {
				w[i/8] |= 1 << (i % 8)
			}
		}
		b = append(b, w[:]...)
		n++
	}
	return b, n
}

// awaiting says whether p owes an answer of any kind.
func (p *peer) awaiting() bool {
	if p.ops > 0 {
		return true
	}
	for c := range p.flows {
		f := &p.flows[c]
		if f.refused || f.una != f.next || !f.small.empty() || !f.bulk.empty() {
			return true
		}
	}
	return false
}

// canSend says whether there is a reason to send p a datagram.
func (e *Engine) canSend(p *peer) bool {
	if p.dead {
		return false
	}
	return p.ackNow || e.sendable(p, &p.flows[conduits.Request]) || e.sendable(p, &p.flows[conduits.Reply])
}
