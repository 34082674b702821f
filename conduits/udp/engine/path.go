package engine

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/argon-go/argon/conduits"
)

// path is the way to a peer and back, which both classes share: the packet numbers
// of both directions, round trips, and what is under way. Loss detection follows
// RFC 9002, sections 5 and 6; sections below are of that document unless another
// is named.
type path struct {
	// Transmissions. Each has the next packet number, which is never used twice, so
	// that an acknowledgement names the one of several that has arrived (RFC 9000, 12.3).
	pn       uint64
	sent     []transmission // of the latest packet numbers: that of n at n % len
	air      list           // under way, in the order of their packet numbers
	inFlight int            // bytes of air
	acked    uint64         // one more than the highest packet number that arrived,
	ackedAt  time.Duration  // and when it was sent
	lastSent time.Duration
	unasked  int // datagrams since one's acknowledgement was asked for, or came,
	unaskedB int // and their bytes
	landings int // contents that have arrived

	// Round trips, section 5. srtt is 0 until one has been measured.
	latest, srtt, rttvar time.Duration
	initial              time.Duration // what is assumed until then
	least                time.Duration // min_rtt; 0: not measured

	// Losses, section 6.
	lossAt   time.Duration // when the oldest under way is lost by time; 0: later ones have not arrived
	unruly   int           // losses for which it is remembered that datagrams overtake each other
	overtake int           // how far they do, in quarters of the shortest round trip
	widened  uint64        // packet numbers before do not make that grow again
	expired  uint          // probe time-outs since something was acknowledged
	probes   int           // datagrams that may be sent whatever is under way

	congestion

	// Receipts.
	top    uint64 // one more than the highest packet number
	topAt  time.Duration
	told   uint64   // top, when a datagram told of it last
	had    []uint64 // which of the hadWords*64 before top
	whole  uint64   // which ones before have come does not matter: all contents had
	veiled uint64   // top that the peer is told of while puts are hidden; see flow.hidden
}

// transmission is one datagram with contents as it was sent.
type transmission struct {
	seq   uint64
	at    time.Duration
	size  int32
	class uint8
	state uint8
	piece uint16 // of the contents; 0: all of them
}

// States of a transmission.
const (
	unsent  = iota
	flying  // under way: its contents are in path.air
	missing // taken for lost
	doubted // its contents were sent again as a probe, and it counts as no loss
	moot    // its contents are known to have arrived, perhaps by another one
	arrived
	sounded // a probe of the path; see pathMTU
)

const (
	// packetThreshold is how many datagrams must have overtaken one that is taken
	// for lost (section 6.1.1), unless they were seen to overtake each other.
	packetThreshold = 3
	// unruly is for how many losses that is remembered.
	unruly = 64
	// mostOvertake bounds path.overtake.
	mostOvertake = 16

	// hadWords is how many words of packet numbers that have come are kept: one more
	// than an acknowledgement tells, since its words need not begin where these do.
	hadWords = ackWords + 1

	// leastSent is how many transmissions are remembered at least.
	leastSent = 64

	// probeCount is how many datagrams a probe time-out sends (section 6.2.4).
	probeCount = 2
	// backoffParts bounds the interval between probe time-outs: it does not grow beyond
	// that part of Config.DeadTime.
	backoffParts = 8

	// ackEvery is how many datagrams are acknowledged at once at the latest, or a
	// quarter of the most that may be under way on a short path if that is more. A
	// sender with a smaller window asks for more.
	ackEvery = 8
	quarters = 4
	// asks is the number of acknowledgements of a window that the path bounds. A
	// datagram that has arrived and is not acknowledged counts as under way: with 4 a
	// sender lost a tenth of 1 Gbit/s over 1 ms.
	asks = 16
)

func (p *path) open(first uint64, c *Config, rank int) {
	p.pn, p.acked, p.top, p.told, p.whole = first, first, first, first, first
	p.sent = make([]transmission, leastSent)
	p.initial = c.InitialRTT
	if c.RTT != nil {
		if d := c.RTT(rank); d > 0 {
			p.initial = d
		}
	}
}

// record is the transmission with packet number n, or nil if it is not remembered.
func (p *path) record(n uint64) *transmission {
	if n >= p.pn || p.pn-n > uint64(len(p.sent)) {
		return nil
	}
	if r := &p.sent[n&uint64(len(p.sent)-1)]; r.state != unsent {
		return r
	}
	return nil
}

// transmitted notes that k goes out now, as a datagram of size bytes with the next
// packet number.
func (e *Engine) transmitted(p *peer, f *flow, k *pkt, size int) {
	if k2 := p.air.first; k2 != nil && p.pn-k2.pn >= uint64(len(p.sent)/2) {
		// Those that were lost are remembered for as long as others of their time are
		// under way.
		old := p.sent
		p.sent = make([]transmission, 2*len(old))
		for i := range uint64(len(old)) {
			n := p.pn - 1 - i
			p.sent[n&uint64(len(p.sent)-1)] = old[n&uint64(len(old)-1)]
		}
	}
	k.pn, k.sent, k.size = p.pn, e.now, size
	k.tries++
	p.sent[p.pn&uint64(len(p.sent)-1)] = transmission{seq: k.seq, at: e.now, size: int32(size), class: uint8(f.class), state: flying, piece: k.piece}
	p.pn++
	p.air.add(k)
	p.inFlight += size
	f.inFlight += size
	p.lastSent = e.now
	if p.probes > 0 {
		p.probes--
	}
	if k.item == nil {
		f.smallAir++
		f.smallAt = e.now
	}
	e.used(p, size)
}

// ground takes k, which is under way, out of the air.
func (p *path) ground(f *flow, k *pkt, state uint8) {
	p.air.remove(k)
	p.inFlight -= k.size
	f.inFlight -= k.size
	p.sent[k.pn&uint64(len(p.sent)-1)].state = state
	if k.item == nil {
		f.smallAir--
	}
}

// again has k, which is under way, sent again.
func (e *Engine) again(p *peer, k *pkt, state uint8) {
	f := &p.flows[p.sent[k.pn&uint64(len(p.sent)-1)].class]
	p.ground(f, k, state)
	k.lost = true
	f.lost.add(k)
}

// sample takes a round trip into account whose acknowledgement the peer kept for delay, by
// its own account (section 5.3).
func (e *Engine) sample(p *peer, d, delay time.Duration) {
	d = max(d, 1)
	if p.least == 0 || d < p.least {
		p.least = d
		p.smaller()
	}
	// The peer's delay is believed only as far as the rest is no shorter than the shortest trip.
	if d-delay >= p.least {
		d -= delay
	}
	p.latest = d
	e.trip(p, d)
	if p.srtt == 0 {
		p.srtt, p.rttvar = d, d/2
		return
	}
	p.rttvar += ((p.srtt - d).Abs() - p.rttvar) / 4
	p.srtt += (d - p.srtt) / 8
}

// pto is the probe time-out without backoff (section 6.2.1). Until there is a
// sample it is made of the round trip that is assumed (section 6.2.2).
func (e *Engine) pto(p *peer) time.Duration {
	if p.srtt == 0 {
		return 3 * p.initial
	}
	d := p.srtt + max(4*p.rttvar, e.c.Granularity)
	if k := p.air.last; k == nil || !k.now {
		d += e.c.AckDelay // the peer was not asked to acknowledge at once
	}
	return d
}

// backoff is the probe time-out after n in a row: it doubles, up to the
// part of the dead time that backoffParts says.
func (e *Engine) backoff(p *peer, n uint) time.Duration {
	d := e.pto(p)
	return max(d, min(d<<min(n, 16), e.c.DeadTime/backoffParts))
}

// alarm is when timeout is to be called; ok is false if nothing is under way. A
// probe waits as long as what is lost by time is awaited (section 6.2.1).
func (e *Engine) alarm(p *peer) (t time.Duration, ok bool) {
	switch {
	case p.air.first == nil:
		return 0, false
	case p.lossAt > 0:
		return p.lossAt, true
	}
	return p.lastSent + e.backoff(p, p.expired), true
}

// timeout finds what is lost by now, or sends the oldest under way again as a
// probe, which says nothing of losses: those show when it is acknowledged
// (section 6.2.4).
func (e *Engine) timeout(p *peer) {
	if p.lossAt > 0 {
		e.detect(p)
		return
	}
	e.stats.Probes++
	if p.expired++; p.expired > 1 {
		e.stats.Timeouts++
	}
	p.mtu.lost++
	if p.expired >= holeTimeouts {
		p.doubt(p.air.first.size)
	}
	for n := 0; n < probeCount && p.air.first != nil; n++ {
		e.again(p, p.air.first, doubted)
	}
	p.probes = probeCount
	p.lastSent = e.now // the timer starts anew (6.2.1)
}

// acknowledge takes what a datagram says of those that were sent: contents of
// each class before cum have come, and so have packet number top-1 and those of
// words. It must hold that cum and top are not beyond what was sent.
func (e *Engine) acknowledge(p *peer, cum [conduits.NumClasses]uint64, top uint64, delay byte, words []byte) {
	before, flown, landed := p.acked, p.inFlight, p.landings
	news, newest := false, false
	if older(e.first, top) {
		newest = e.arrived(p, top-1, before)
		news = newest
		for i := 0; 8*i < len(words); i++ {
			base := top - 1 - 64*uint64(i+1)
			for w := binary.LittleEndian.Uint64(words[8*i:]); w != 0; w &= w - 1 {
				news = e.arrived(p, base+uint64(bits.TrailingZeros64(w)), before) || news
			}
		}
	}
	for c := range p.flows {
		f := &p.flows[c]
		for ; older(f.una, cum[c]); f.una++ {
			k := *f.at(f.una)
			if k == nil {
				continue
			}
			news = true
			e.landed(p, f, f.una)
		}
	}
	if !news {
		return
	}
	if newest && p.acked == top && top > before && delay != tooLate {
		e.sample(p, e.now-p.ackedAt, delayOf(delay))
	}
	// Only an acknowledgement ends the backoff (section 6.2.1).
	p.expired, p.probes = 0, 0
	p.unasked, p.unaskedB = 0, 0 // they come by themselves
	e.grow(p, flown, p.landings-landed)
	e.detect(p)
}

// arrived notes that packet number n has arrived, and reports whether that is news.
// before is path.acked before the acknowledgement that says so.
func (e *Engine) arrived(p *peer, n, before uint64) bool {
	r := p.record(n)
	if r == nil || r.state == arrived {
		return false
	}
	was := r.state
	p.came(n, int(r.size))
	if f := &p.flows[r.class]; was == sounded {
		e.heardSound(p, n)
	} else if r.seq-f.una < f.next-f.una && r.piece > 0 {
		e.pieceLanded(p, f, r.seq, int(r.piece))
	} else if r.seq-f.una < f.next-f.una {
		e.landed(p, f, r.seq)
	}
	r.state = arrived
	if n >= p.acked {
		p.acked, p.ackedAt = n+1, r.at
	} else if n+1 < before && (was == flying || was == missing) {
		e.overtaken(p, n, was == missing)
	}
	return true
}

// overtaken notes that packet number n, of which a later one had arrived before,
// has arrived, and perhaps was taken for lost. As in RFC 8985, 6.2 (RACK), which
// section 6.1 permits, it is then time that decides, and how much follows from
// losses that were none.
func (e *Engine) overtaken(p *peer, n uint64, lost bool) {
	p.unruly = unruly
	if p.overtake == 0 {
		p.overtake = 1
	}
	if !lost {
		return
	}
	e.stats.Spurious++
	if n >= p.widened { // once in a round trip
		p.widened = p.pn
		p.overtake = min(p.overtake+1, mostOvertake)
	}
	e.spurious(p, n)
}

// detect finds what is lost, since later ones have arrived (section 6.1).
func (e *Engine) detect(p *peer) {
	p.lossAt = 0
	rtt := max(p.srtt, p.latest)
	late := max(rtt+rtt/8, e.c.Granularity) // 6.1.2
	if p.unruly > 0 {
		late = max(late, rtt+min(p.least*time.Duration(p.overtake)/4, 2*p.srtt))
	}
	var l losses
	hole := p.mtu.trial && p.mtu.short
	for k := p.air.first; k != nil && k.pn < p.acked; k = p.air.first {
		if p.unruly > 0 || k.pn+packetThreshold >= p.acked { // 6.1.1
			// It is enough that it was sent so much before the latest that arrived: time
			// counts from when that one was seen to take less.
			if at := k.sent + late; at > e.now && (p.unruly == 0 || k.sent+late-rtt > p.ackedAt) {
				p.lossAt = at
				break
			}
		}
		p.unruly = max(p.unruly-1, 0)
		hole = p.swallowed(k.pn, k.size) || hole
		l.add(p, k)
		e.again(p, k, missing)
	}
	if hole {
		e.blackHole(p)
	}
	e.unheard(p)
	if p.unruly == 0 {
		p.overtake = 0
	}
	if l.count > 0 {
		e.lost(p, &l)
	}
}

// losses are the datagrams found lost at one time.
type losses struct {
	count int
	bytes int
	pn    uint64 // of the latest

	// The longest time between the first and the last of those between which
	// nothing has arrived (section 7.6.2).
	since   time.Duration
	longest time.Duration
}

func (l *losses) add(p *peer, k *pkt) {
	through := l.count > 0
	for n := l.pn + 1; through && n < k.pn; n++ {
		r := p.record(n)
		through = r != nil && r.state != arrived && r.state != moot
	}
	if !through {
		l.since = k.sent
	}
	l.longest = max(l.longest, k.sent-l.since)
	l.count++
	l.bytes += k.size
	l.pn = k.pn
}

// Receiving.

// note notes that packet number n has come, and says false if it had before.
func (p *path) note(now time.Duration, n uint64) bool {
	if p.had == nil {
		p.had = make([]uint64, hadWords)
	}
	const most = hadWords * 64
	bit := func(n uint64) (*uint64, uint64) { return &p.had[n/64%hadWords], 1 << (n % 64) }
	switch {
	case !older(n, p.top):
		if n-p.top >= most {
			clear(p.had)
		} else {
			for i := p.top; i < n; i++ {
				w, b := bit(i)
				*w &^= b
			}
		}
		w, b := bit(n)
		*w |= b
		p.top, p.topAt = n+1, now
		return true
	case p.top-n > most:
		return true // too old to be known of
	}
	w, b := bit(n)
	if *w&b != 0 {
		return false
	}
	*w |= b
	return true
}

// noteWhole notes that all contents of both classes that were sent so far, as far as
// is known, have come: which packet numbers brought them need not be told.
func (p *peer) noteWhole() {
	if p.flows[0].top <= p.flows[0].cum && p.flows[1].top <= p.flows[1].cum && !p.mtu.told && len(p.flows[0].pieced)+len(p.flows[1].pieced) == 0 {
		p.whole = p.top
	}
}

// appendWords appends the bitmap of packet numbers before top-1 that have come, in at most
// most words, and returns how many it took and whether those are all that matter.
func (p *path) appendWords(b []byte, most, unsaid int) ([]byte, int, bool) {
	if !older(p.whole, p.top-1) {
		return b, 0, true
	}
	// Each packet number is told of several times: as often as there are so many
	// words between two acknowledgements.
	need := min(int((p.top-1-p.whole+63)/64), max(dataWords, unsaid/16), ackWords)
	n := min(need, most)
	for i := range n {
		at := p.top - 1 - 64*uint64(i+1) // wraps where there is nothing
		shift := at % 64
		w := p.had[at/64%hadWords] >> shift
		if shift > 0 {
			w |= p.had[(at/64+1)%hadWords] << (64 - shift)
		}
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b, n, n == need
}
