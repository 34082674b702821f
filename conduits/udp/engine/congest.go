package engine

import (
	"math"
	"time"
)

// congestion bounds what is under way to a peer, both classes together, and how
// fast it is sent: RFC 9002, section 7, with CUBIC (RFC 9438) and HyStart++ (RFC
// 9406). Windows are in bytes; a segment of these documents is a datagram.
//
// It differs from them in what a loss means. A queue that drops is full, and round
// trips are longer then than the path's shortest: losses while they are are
// congestion. Other losses are accidents of the path, and only sent again, unless
// they are so many that something on the path must be dropping by rate.
type congestion struct {
	cwnd, slow float64 // slow is ssthresh
	roundEnd   uint64  // this round ends when that packet number has arrived
	peak, past int     // the most that was under way in this round, and in the last
	smallMost  int     // datagrams of small frames of a class that may be under way

	// Losses.
	cutAt  uint64  // those of packet numbers before do not reduce cwnd again (RFC 9002, 7.3.2)
	misses int     // in this round
	rate   float64 // part of datagrams that are lost, smoothed

	// Round trips without what the peer says that it kept acknowledgements for.
	base   time.Duration    // the least; 0: not measured
	recent [4]time.Duration // the last ones
	newer  int              // place of the next in recent

	// CUBIC (RFC 9438, section 4).
	avoiding time.Duration // when congestion avoidance began; 0: it is to begin
	grown    time.Duration // the last acknowledgement
	most     float64       // W_max
	k        float64       // K, seconds
	friendly float64       // W_est

	// HyStart++ (RFC 9406, section 4.2).
	roundMin, lastMin time.Duration // of round trips; 0: none
	samples           int
	careful           int // rounds of conservative slow start, from 1 on; 0: it is not on
	careMin           time.Duration

	// What to return to if the last reduction was for nothing (RFC 9438, 4.9.2).
	undo struct {
		losses           int // that are not known to have been none
		cwnd, slow, most float64
	}

	// Pacing (RFC 9002, 7.7): a bucket of quantum bytes. Once it is empty nothing is
	// sent until it is full again, so that datagrams go in rows.
	tokens   float64
	tokensAt time.Duration
	openAt   time.Duration
}

const (
	// The initial window is so many datagrams, within bounds (RFC 9002, 7.2).
	firstDatagrams = 10
	firstBytes     = 14720
	// leastDatagrams is the minimum window (RFC 9002, 7.2).
	leastDatagrams = 2

	// RFC 9438, section 5: C and beta_cubic, and alpha_cubic of section 4.3.
	cubicC     = 0.4
	cubicBeta  = 0.7
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)

	// unknownPart: before the first loss the window grows by at least that part in a
	// round trip.
	unknownPart = 20

	// deepBeta is beta_cubic if round trips are longer than the shortest by more than
	// deepPart. Packets of a paced sender are fewer among those that a full queue drops
	// than the bursts of TCP: with 0.7 it had up to 0.7 of a path that it shared with
	// TCP's CUBIC, with 0.65 some 0.5. Queues that are not as deep would run empty.
	deepBeta = 0.65
	deepPart = 2

	// RFC 9406, section 4.3.
	leastGrowth  = 4 * time.Millisecond
	mostGrowth   = 16 * time.Millisecond
	growthPart   = 8
	roundSamples = 8
	carefulPart  = 4
	carefulMost  = 5

	// There is a queue if round trips are longer by that part than the shortest, and
	// by Config.Granularity.
	queuePart = 8

	// tooMuch is the part of datagrams that accidents do not lose, smoothed over
	// lossMemory datagrams.
	tooMuch    = 1.0 / 3
	lossMemory = 64

	// On paths shorter than shortPath, those within a host and between hosts of one
	// room, it is sockets that keep what is under way, and they keep no more than
	// shortBytes or shortDatagrams. Longer paths keep more in proportion.
	shortBytes     = 2 << 20
	shortDatagrams = 512
	shortPath      = time.Millisecond

	// leastSmall is the least that smallMost is.
	leastSmall = 8

	// Sockets of such paths lose some now and then: a loss of up to this part of a
	// window is no congestion there, nor is one of a few datagrams of a window that
	// is larger than so many bytes for each.
	accidents     = 0.03
	fewAccidents  = 3
	accidentBytes = 64 << 10

	// Pacing: at so much of cwnd/srtt, in slow start and later, in rows of up to
	// paceTime, pacePart of the window, or rowBytes. More than 1 later on (RFC 9002,
	// 7.7, would have 1.25) takes more of a path than TCP does beside it.
	paceSlow = 2
	pace     = 1
	paceTime = time.Millisecond
	pacePart = 16
	// paceLate is for how long what could not be sent in time is made up for: waits
	// of systems end late.
	paceLate = 100 * time.Microsecond
	// paceFrom is from which round trip on there is pacing: within a host it would
	// cost more than it brings.
	paceFrom = 250 * time.Microsecond
)

// resetWindow sets the window of a path of which nothing is known.
func (p *peer) resetWindow() {
	size := float64(p.datagram)
	p.cwnd = min(firstDatagrams*size, max(leastDatagrams*size, firstBytes))
	p.slow = math.Inf(1)
	p.smaller()
}

// smaller sets smallMost: as many as there may be under way on a short path of the
// largest size, and more in proportion on a longer one. Further frames collect in
// larger datagrams meanwhile, which take less of all processors.
func (p *peer) smaller() {
	n := max(leastSmall, min(shortDatagrams, shortBytes/p.datagram))
	p.smallMost = n * int(max(1, p.least/shortPath))
}

// bound is how much may be under way to p, whatever congestion control thinks.
func (e *Engine) bound(p *peer) float64 {
	b := float64(max(4*p.datagram, min(shortBytes, shortDatagrams*p.datagram)))
	if p.least > shortPath {
		b *= float64(p.least) / float64(shortPath)
	}
	return min(b, float64(e.c.Flight))
}

// floor is the minimum window.
func (p *peer) floor() float64 { return float64(leastDatagrams * p.datagram) }

// short says whether the path is one on which sockets are what loses.
func (p *peer) short() bool { return p.least < shortPath }

// pacing is how fast p may be sent to, in bytes per nanosecond, and in rows of how
// many bytes; ok is false if that does not matter.
func (p *peer) pacing() (rate, quantum float64, ok bool) {
	if p.srtt == 0 || p.least < paceFrom {
		return 0, 0, false
	}
	rate = pace * p.cwnd / float64(p.srtt)
	if p.cwnd < p.slow {
		rate *= paceSlow / pace
	}
	quantum = min(rate*float64(paceTime), p.cwnd/pacePart, rowBytes)
	return rate, max(quantum, float64(2*p.datagram)), true
}

// used follows the transmission of a datagram.
func (e *Engine) used(p *peer, size int) {
	p.peak = max(p.peak, p.inFlight)
	rate, quantum, ok := p.pacing()
	if !ok {
		return
	}
	p.tokens = min(quantum+float64(paceLate)*rate, p.tokens+float64(e.now-p.tokensAt)*rate) - float64(size)
	p.tokensAt = e.now
	if p.tokens <= 0 {
		p.openAt = e.now + time.Duration((quantum-p.tokens)/rate)
	}
}

// limited says whether the window, and not the program, bounds what is under way
// (RFC 9002, 7.8; RFC 9438, 4.2 and 5.8): a window that is not used does not grow.
// In slow start half of it will do. Contents that wait for pacing wait for the
// window, too, which pacing follows (RFC 9002, 7.8): round trips that become shorter,
// as after each reduction, leave a part of the window of a paced sender unused.
func (e *Engine) limited(p *peer) bool {
	peak := float64(max(p.peak, p.past))
	if p.cwnd < p.slow {
		return 2*peak > p.cwnd
	}
	_, quantum, _ := p.pacing()
	return peak+max(quantum, float64(p.datagram)) > p.cwnd ||
		e.now < p.openAt && (e.wants(p, &p.flows[0]) || e.wants(p, &p.flows[1]))
}

// trip takes a round trip into account.
func (e *Engine) trip(p *peer, d time.Duration) {
	if p.base == 0 || d < p.base {
		p.base = d
	}
	p.recent[p.newer] = d
	p.newer = (p.newer + 1) % len(p.recent)
	if p.cwnd >= p.slow {
		return
	}
	// HyStart++.
	if p.roundMin == 0 || d < p.roundMin {
		p.roundMin = d
	}
	if p.samples++; p.samples < roundSamples || p.lastMin == 0 {
		return
	}
	switch {
	case p.careful > 0:
		if p.roundMin < p.careMin {
			p.careful = 0 // it was no queue
		}
	case p.roundMin >= p.lastMin+min(max(p.lastMin/growthPart, leastGrowth), mostGrowth):
		p.careful, p.careMin = 1, p.roundMin
	}
}

// wait is how much longer than the shortest the last round trips were, at least.
func (p *peer) wait() time.Duration {
	least := time.Duration(0)
	for _, d := range p.recent {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least - p.base
}

// queued says whether datagrams seem to wait in a queue of the path. The shortest
// round trip is remembered for ever, since others may keep a queue from ever being
// empty, and what is lost is then more than seems. If the path becomes a longer one
// all losses are congestion, as they are for TCP, until there is persistent
// congestion (RFC 9002, 5.2).
func (e *Engine) queued(p *peer) bool {
	return p.wait() > max(p.base/queuePart, e.c.Granularity)
}

// grow follows an acknowledgement, before which so much was under way, and of which
// count datagrams are.
func (e *Engine) grow(p *peer, flown, count int) {
	n := float64(flown - p.inFlight)
	if p.rate > 0 { // most paths lose nothing
		p.rate *= math.Pow(1-1.0/lossMemory, float64(count))
	}
	since := e.now - p.grown
	p.grown = e.now
	switch {
	case n <= 0 || p.acked <= p.cutAt: // or in recovery (RFC 9002, 7.3.2)
	case !e.limited(p):
		if p.avoiding > 0 {
			p.avoiding += since // the time does not count (RFC 9438, 5.8)
		}
	case p.cwnd < p.slow:
		if p.careful > 0 {
			n /= carefulPart
		}
		p.cwnd = min(p.cwnd+n, max(p.slow, p.cwnd))
	default:
		e.avoid(p, n)
	}
	p.cwnd = min(p.cwnd, e.bound(p))
	if p.acked >= p.roundEnd {
		p.roundEnd, p.misses = p.pn, 0
		p.past, p.peak = p.peak, p.inFlight
		p.lastMin, p.roundMin, p.samples = p.roundMin, 0, 0
		if p.careful > 0 && p.cwnd < p.slow {
			if p.careful++; p.careful > carefulMost {
				p.slow, p.careful = p.cwnd, 0
			}
		}
	}
}

// avoid is congestion avoidance, n bytes of it (RFC 9438, section 4).
func (e *Engine) avoid(p *peer, n float64) {
	size := float64(p.datagram)
	if p.avoiding == 0 {
		p.avoiding = max(e.now, 1)
		p.friendly = p.cwnd
		if p.most < p.cwnd {
			p.most, p.k = p.cwnd, 0
		} else {
			p.k = math.Cbrt((p.most - p.cwnd) / size / cubicC)
		}
	}
	t := (e.now - p.avoiding + p.srtt).Seconds() - p.k
	target := min(max(p.most+cubicC*t*t*t*size, p.cwnd), 1.5*p.cwnd)
	if p.cutAt == 0 {
		// Nothing has been lost: what there is to be had is not known, and the function
		// begins slowly. As tcp_cubic.c of Linux has it.
		target = max(target, p.cwnd+p.cwnd/unknownPart)
	}
	// Section 4.3 grows W_est faster once it is what the window was before. Linux does
	// not, and it is Linux that the path is shared with.
	p.friendly += cubicAlpha * size * n / p.cwnd
	p.cwnd = max(p.cwnd+(target-p.cwnd)/p.cwnd*n, p.friendly)
}

// lost follows losses.
func (e *Engine) lost(p *peer, l *losses) {
	p.misses += l.count
	p.rate = 1 - (1-p.rate)*math.Pow(1-1.0/lossMemory, float64(l.count))
	if l.pn < p.cutAt && p.undo.losses > 0 {
		p.undo.losses += l.count
	}
	if l.longest > e.persistent(p) {
		e.cut(p, l)
		p.cwnd, p.avoiding = p.floor(), 0
		p.undo.losses = 0
		p.least, p.base = 0, 0 // measured anew
		clear(p.recent[:])
		return
	}
	if l.pn < p.cutAt {
		return
	}
	if p.rate < tooMuch {
		few := 0.0
		if p.short() {
			few = max(p.cwnd/float64(p.datagram)*accidents, min(fewAccidents, p.cwnd/accidentBytes))
		}
		if !e.queued(p) || float64(p.misses) <= few {
			return
		}
	}
	e.cut(p, l)
}

// cut reduces the window (RFC 9438, sections 4.6 and 4.7).
func (e *Engine) cut(p *peer, l *losses) {
	p.cutAt = p.pn
	p.undo.losses, p.undo.cwnd, p.undo.slow, p.undo.most = l.count, p.cwnd, p.slow, p.most
	p.rate /= 2
	beta := cubicBeta
	if p.wait() > p.base/deepPart && !p.short() {
		beta = deepBeta
	}
	if p.cwnd < p.most {
		p.most = p.cwnd * (1 + beta) / 2
	} else {
		p.most = p.cwnd
	}
	p.cwnd = max(p.cwnd*beta, p.floor())
	p.slow, p.avoiding, p.careful = p.cwnd, 0, 0
}

// spurious follows a loss that was none, of packet number n.
func (e *Engine) spurious(p *peer, n uint64) {
	u := &p.undo
	if u.losses == 0 || n >= p.cutAt {
		return
	}
	if u.losses--; u.losses == 0 && p.cwnd < u.cwnd {
		p.cwnd, p.slow, p.most, p.avoiding = u.cwnd, u.slow, u.most, 0
	}
}

// persistent is for how long everything must have been lost to be taken for
// persistent congestion (RFC 9002, 7.6.1).
func (e *Engine) persistent(p *peer) time.Duration {
	if p.srtt == 0 {
		return math.MaxInt64
	}
	return 3 * (p.srtt + max(4*p.rttvar, e.c.Granularity) + e.c.AckDelay)
}
