package engine

import (
	"time"

	"github.com/argon-go/argon/conduits"
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
	answers bool // counted in flow.waiting
	frames  []byte
	data    []byte
	item    *item        // what data is a fragment of
	done    []Completion // to be reported when it has arrived
	prev    *pkt
	next    *pkt
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
	waiting   int // answers, in data to get or datagrams of others, that are not on their way

	// Congestion control counts datagrams.
	cwnd, slow float64
	orders     uint64 // transmissions so far
	cutAt      uint64 // transmissions before do not reduce cwnd again
	newest     uint64 // highest order that has arrived, and when it was sent
	newestSent time.Duration
	rtoAt      time.Duration
	backoff    uint

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
}

const (
	firstWindow = 32
	leastWindow = 4
	cut         = 0.7 // of the window is left after a loss

	// A datagram is lost if so many that were sent after it have arrived, and
	// the latest of them was sent a quarter of a round trip later.
	overtakers = 3

	// ackEvery is how many datagrams are acknowledged at once at the latest.
	ackEvery = 8
)

func (f *flow) open(window int) {
	f.ring = make([]*pkt, window)
	f.bits = make([]uint64, window/64)
	f.cwnd, f.slow = min(firstWindow, float64(window)), float64(window)
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
		if k.answers {
			k.answers = false
			f.waiting--
		}
	} else {
		k = e.fragment(f)
		f.bulkNext = false
	}
	k.seq = f.next
	*f.at(k.seq) = k
	f.next++
	return k
}

// fragment cuts the next piece off the first item.
func (e *Engine) fragment(f *flow) *pkt {
	it := f.bulk.first
	k := e.pkt()
	fixed := fixedBytes[it.kind] + 1
	if it.off == 0 {
		fixed += 4 * int(it.nwords) // they come with the first
	}
	n := min(len(it.data)-int(it.off), e.room-fixed)
	if n < len(it.data)-int(it.off) {
		n &^= 7
	}
	k.frames = appendFragment(k.frames, it, it.off, n)
	k.data = it.data[it.off : int(it.off)+n]
	k.item = it
	it.off += uint64(n)
	it.open++
	if it.off == uint64(len(it.data)) {
		f.bulk.take()
		if it.kind == frData {
			f.waiting--
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
		f.rtoAt = e.now + p.rto(&e.c, f.backoff)
	}
	f.air.add(k)
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
		p.sample(e.now - k.sent)
		if k.order > f.newest {
			f.newest, f.newestSent = k.order, k.sent
		}
	}
	if f.cwnd < f.slow {
		f.cwnd++
	} else {
		f.cwnd += 1 / f.cwnd
	}
	f.cwnd = min(f.cwnd, float64(len(f.ring)))
	for _, d := range k.done {
		e.done.add(d)
	}
	if k.item != nil {
		e.closeItem(k.item, nil)
	}
	e.freePkt(k)
	return true
}

// acknowledge takes what a datagram says about those that were sent: all before
// cum have come, and some after. It must hold that cum <= next.
func (e *Engine) acknowledge(p *peer, f *flow, cum uint64, sacks []byte) {
	news := false
	first := f.una
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
	f.backoff = 0
	f.rtoAt = e.now + p.rto(&e.c, 0)
	late := p.srtt / 4
	for k := f.air.first; k != nil && k.order+overtakers <= f.newest && k.sent+late <= f.newestSent; k = f.air.first {
		e.lose(f, k)
		if k.order > f.cutAt {
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

// timeout takes everything under way for lost.
func (e *Engine) timeout(f *flow) {
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
