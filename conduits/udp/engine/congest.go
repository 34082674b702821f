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
//
// Round trips vary on an empty path, too, and then look like those of a full queue. What
// tells accidents is that they go on: a reduced window leaves a full queue room, so that
// nothing is lost until the window has grown again, but accidents happen at any window.
// A path where losses follow reductions early, or come again and again while no queue is
// full, is lossy for a while: the window and the rate are those of a model of the path
// then, what it delivered at most and how long a round trip took at least, as in BBR
// (draft-ietf-ccwg-bbr), and losses reduce neither. Afterwards the next loss reduces the
// window again, which tells whether the path still is. Beside flows of CUBIC it is not,
// so that it is CUBIC that shares with them.
//
// Each difference was measured on the virtual paths of internal/lab/wan, and docs/distance.md
// has the tables. What was tried and given up: a model that losses prolong took 0.91 to 0.94
// of a link with a queue of a quarter of a bandwidth-delay product; comparing losses with
// their usual number lost up to 30 % of what was sent to shallow queues, since the sender's
// own losses became usual; a shortest round trip that is forgotten after 10 s took the
// standing queue beside TCP for the path, its losses for accidents, and most of the link.
// Without smallMost small puts over datagrams of 64 KiB took twice as long, since they shared
// datagrams less.
type congestion struct {
	cwnd, slow float64 // slow is ssthresh
	roundEnd   uint64  // this round ends when that packet number has arrived
	peak, past int     // the most that was under way in this round, and in the last
	smallMost  int     // datagrams of small frames of a class that may be under way

	// Losses.
	cutAt  uint64  // those of packet numbers before do not reduce cwnd again (RFC 9002, 7.3.2)
	misses int32   // in this round
	rate   float64 // part of datagrams that are lost, smoothed

	// Round trips less the delay of acknowledgements that the peer reports.
	base              time.Duration    // the least; 0: not measured
	recent            [4]time.Duration // the last ones
	newer             int8             // place of the next in recent
	usual             time.Duration    // the least mean of a round; 0: not measured
	roundMin, lastMin time.Duration    // the least of this round and of the last; 0: none
	sum               time.Duration    // of samples round trips, those of this round
	samples           int32

	// Rounds, each from a datagram to its acknowledgement. Rates are in bytes per
	// nanosecond.
	roundAt, roundSent time.Duration // when this one began, and when what had arrived last by then was sent
	landed, lastLanded float64       // bytes that arrived in this round and in the last
	heard, lastHeard   int32         // and datagrams
	busy               bool          // something other than the program bounded what was under way
	rounds             int32         // since the last reduction
	flow               float64       // the rate of the last round
	rose               float64       // the last rate that was larger than the one before by growing,
	stale              int32         // and rounds since
	carried            [2]float64    // the most in these carryRounds and in those before
	passed             [2]float32    // the largest part of datagrams that arrived, in these passRounds and in those before
	span               uint32        // busy rounds so far

	// Accidents.
	lossy   int32  // for so many busy rounds the path is; 1: until the next loss
	phase   int8   // of the model's rate; see gain
	proof   int8   // reductions that losses followed early
	patient int32  // before so many rounds are over a loss after a reduction is early
	quiet   int32  // rounds without losses
	strays  int8   // rounds with losses while no queue was full, one soon after the other
	strayIn int32  // rounds, when the last of them was
	strayTo uint64 // losses of packet numbers before are of that one

	// CUBIC (RFC 9438, section 4).
	avoiding time.Duration // when congestion avoidance began; 0: it is to begin
	grown    time.Duration // the last acknowledgement
	most     float64       // W_max
	k        float64       // K, seconds
	friendly float64       // W_est

	// HyStart++ (RFC 9406, section 4.2).
	careful  int // rounds of conservative slow start, from 1 on; 0: it is not on
	careMin  time.Duration
	careFlow float64 // the rate after the first of them

	// The state before the last reduction, restored if that was for nothing (RFC 9438, 4.9.2).
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

	// pacedBeta is beta_cubic beyond short paths. Packets of a paced sender are fewer among
	// those that a full queue drops than the bursts of TCP: with 0.7 it had up to 0.7 of a
	// path that it shared with TCP's CUBIC, with 0.65 some 0.5.
	pacedBeta = 0.65

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

	// resumed: conservative slow start was for nothing if the rate has grown by so much
	// meanwhile. Without a queue it grows to the 2.4-fold.
	resumed = 1.5
	// growing is by how much the rate grows in a round while there is more to be had: a
	// loss in slow start is no reason then to end it for up to fresh rounds, unless those
	// are startMisses or startPart of what was sent.
	growing     = 1.25
	fresh       = 2
	startMisses = 2
	startPart   = 8

	// usualSamples are how many round trips of a round are enough for a mean.
	usualSamples = 4

	// A path is lossy for lossyRounds if earlyCuts reductions in a row were followed by
	// losses early, or if losses came in strayRounds rounds while no queue was full, each
	// at most strayGap rounds after the other; for twice as long each time that a reduction
	// shows that it still is, up to mostLossy doublings.
	lossyRounds = 16
	mostLossy   = 3
	earlyCuts   = 2
	strayRounds = 3
	strayGap    = 8
	// earlyPart: losses are early in the first half of the rounds that CUBIC takes to grow
	// to what it was, leastPatient at least. After a reduction that asks whether the path
	// is lossy they are for as long as enoughLosses would be expected to take.
	earlyPart    = 2
	leastPatient = 2
	enoughLosses = 4
	leastRate    = 0.005
	// quietRounds without losses end it.
	quietRounds = 64

	// The model's rate is the largest of the last carryRounds to twice as many, so that a
	// host that stands still for some does not lose it, with as much more as is lost of the
	// luckiest of passRounds: the queue that it fills itself loses more in others. The
	// window is modelTrips of what is under way at that rate without a queue:
	// acknowledgements come in bursts where round trips vary. In each cycle of phases
	// rounds one has more, to find out whether there is more to be had, and then twice as
	// much for as long as there is; the next has less, so that the queue goes that this has
	// made.
	carryRounds = 32
	passRounds  = 8
	modelTrips  = 2
	gainUp      = 1.2
	gainDown    = 0.85
	gainMore    = 2
	tried       = 1.1
	phases      = 8
	phaseMore   = -1
	// lateParts: such a part of the shortest round trip is made up for on a lossy path if
	// the sender was late. Queues hold as much, and where round trips vary hosts are late.
	lateParts = 4

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

// short reports whether the path is so short that sockets lose datagrams rather than links.
func (p *peer) short() bool { return p.least < shortPath }

// pacing is how fast p may be sent to, in bytes per nanosecond, and in rows of how
// many bytes; ok is false if that does not matter.
func (p *peer) pacing() (rate, quantum float64, ok bool) {
	if p.srtt == 0 || p.least < paceFrom {
		return 0, 0, false
	}
	rate = pace * p.cwnd / float64(p.srtt)
	if b := p.bandwidth(); p.lossy > 0 && b > 0 {
		rate = b * p.gain() / float64(max(p.passed[0], p.passed[1], 1-tooMuch))
	} else if p.cwnd < p.slow {
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
	late := paceLate
	if p.lossy > 0 {
		late = max(late, p.base/lateParts)
	}
	p.tokens = min(quantum+float64(late)*rate, p.tokens+float64(e.now-p.tokensAt)*rate) - float64(size)
	p.tokensAt = e.now
	if p.tokens <= 0 {
		p.openAt = e.now + time.Duration((quantum-p.tokens)/rate)
	}
}

// limited reports whether the window, and not the program, bounds what is under way
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
	if p.roundMin == 0 || d < p.roundMin {
		p.roundMin = d
	}
	p.samples++
	p.sum += d
	p.recent[p.newer] = d
	p.newer = (p.newer + 1) % int8(len(p.recent))
	// HyStart++.
	if p.cwnd >= p.slow || p.samples < roundSamples || p.lastMin == 0 {
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

// delayed reports whether datagrams seem to wait in a queue of the path, for more than least. The shortest
// round trip is remembered for ever, since others may keep a queue from ever being
// empty, and what is lost is then more than seems. If the path becomes a longer one
// all losses are congestion, as they are for TCP, until there is persistent
// congestion (RFC 9002, 5.2).
func (p *peer) delayed(least time.Duration) bool { return p.wait() > max(p.base/queuePart, least) }

// grow follows an acknowledgement, before which so much was under way, and of which
// count datagrams are.
func (e *Engine) grow(p *peer, flown, count int) {
	n := float64(flown - p.inFlight)
	p.heard += int32(count)
	p.landed += n
	if p.rate > 0 { // most paths lose nothing
		p.rate *= math.Pow(1-1.0/lossMemory, float64(count))
	}
	since := e.now - p.grown
	p.grown = e.now
	limited := e.limited(p)
	p.busy = p.busy || limited
	switch {
	case n <= 0 || p.acked <= p.cutAt: // or in recovery (RFC 9002, 7.3.2)
		p.busy = true
	case p.lossy > 0:
	case !limited:
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
		e.endRound(p)
	}
}

// endRound ends a round and begins the next.
func (e *Engine) endRound(p *peer) {
	before := p.bandwidth()
	p.lastLanded = p.landed
	if p.roundAt > 0 {
		// Acknowledgements that come together do not make a path faster than its sender
		// (draft-ietf-ccwg-bbr, 4.1).
		p.flow = p.landed / float64(max(e.now-p.roundAt, p.ackedAt-p.roundSent, p.base, 1))
		p.carried[0] = max(p.carried[0], p.flow)
		p.passed[0] = max(p.passed[0], float32(p.heard)/float32(max(p.heard+p.misses, 1)))
	}
	p.roundAt, p.roundSent, p.landed = e.now, p.ackedAt, 0
	if p.stale++; p.flow >= growing*p.rose {
		p.rose, p.stale = p.flow, 0
	}
	if p.samples >= usualSamples {
		if mean := p.sum / time.Duration(p.samples); p.usual == 0 || mean < p.usual {
			p.usual = mean
		}
	}
	if p.quiet++; p.misses > 0 {
		p.quiet = 0
	}
	if p.busy {
		// A program that sends little tells nothing of the path.
		p.span++
		if p.span%passRounds == 0 {
			p.passed[1], p.passed[0] = p.passed[0], 0
		}
		if p.span%carryRounds == 0 {
			p.carried[1], p.carried[0] = p.carried[0], 0
		}
		if p.lossy > 0 {
			e.model(p, before)
		}
	}
	p.rounds++
	if p.careful > 0 && p.cwnd < p.slow {
		switch p.careful++; {
		case p.careful == 2:
			p.careFlow = p.flow
		case p.careful > carefulMost:
			if p.flow < resumed*p.careFlow {
				p.slow = p.cwnd
			}
			p.careful = 0
		}
	}
	p.roundEnd, p.misses, p.busy = p.pn, 0, false
	p.lastHeard, p.heard = p.heard, 0
	p.past, p.peak = p.peak, p.inFlight
	if p.roundMin > 0 {
		p.lastMin = p.roundMin
	}
	p.roundMin, p.sum, p.samples = 0, 0, 0
}

// bandwidth is the most that the path is known to carry.
func (p *peer) bandwidth() float64 { return max(p.carried[0], p.carried[1]) }

// gain is by how much faster than that is sent on a lossy path.
func (p *peer) gain() float64 {
	switch p.phase {
	case phaseMore:
		return gainMore
	case 0:
		return gainUp
	case 1:
		return gainDown
	}
	return 1
}

// begin has the path be lossy.
func (e *Engine) begin(p *peer) {
	p.lossy, p.phase = lossyRounds<<min(max(p.proof-earlyCuts, 0), mostLossy), 0
	e.fill(p)
}

// fill makes the window that of the model.
func (e *Engine) fill(p *peer) {
	trip := p.usual
	if trip == 0 {
		trip = p.srtt
	}
	p.cwnd = min(max(modelTrips*p.bandwidth()*float64(trip), p.floor()), e.bound(p))
}

// model follows a round on a lossy path, before which its bandwidth was known to be
// that.
func (e *Engine) model(p *peer, before float64) {
	if p.quiet >= quietRounds {
		p.lossy, p.proof = 0, 0
		p.cwnd = max(min(p.cwnd, p.lastLanded), p.floor())
		p.slow, p.most, p.avoiding = p.cwnd, p.cwnd, 0
		return
	}
	e.fill(p)
	switch {
	case p.phase == phaseMore && p.flow >= growing*before:
	case p.phase == 0 && p.flow >= tried*before:
		p.phase = phaseMore
	case p.phase == phaseMore:
		p.phase = 1
	default:
		p.lossy = max(p.lossy-1, 1)
		p.phase = (p.phase + 1) % phases
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
		// Nothing has been lost: the path's capacity is not known, and the function
		// begins slowly. tcp_cubic.c of Linux does the same.
		target = max(target, p.cwnd+p.cwnd/unknownPart)
	}
	// Section 4.3 grows W_est faster once it reaches the window of before. Linux does
	// not, and the path is shared with Linux.
	p.friendly += cubicAlpha * size * n / p.cwnd
	p.cwnd = max(p.cwnd+(target-p.cwnd)/p.cwnd*n, p.friendly)
}

// lost follows losses.
func (e *Engine) lost(p *peer, l *losses) {
	p.misses += int32(l.count)
	p.rate = 1 - (1-p.rate)*math.Pow(1-1.0/lossMemory, float64(l.count))
	if l.pn < p.cutAt && p.undo.losses > 0 {
		p.undo.losses += l.count
	}
	if l.longest > e.persistent(p) {
		e.cut(p, l)
		p.cwnd, p.avoiding = p.floor(), 0
		p.undo.losses, p.lossy, p.proof = 0, 0, 0
		// All is measured anew.
		p.least, p.base, p.usual, p.roundMin, p.lastMin = 0, 0, 0, 0, 0
		clear(p.recent[:])
		p.carried, p.rose = [2]float64{}, 0
		return
	}
	if l.pn < p.cutAt || p.rate < tooMuch && !e.congested(p, l) {
		return
	}
	e.cut(p, l)
}

// congested reports whether losses are of a full queue, as far as can be told.
func (e *Engine) congested(p *peer, l *losses) bool {
	misses := float64(p.misses)
	if p.short() && misses <= max(p.cwnd/float64(p.datagram)*accidents, min(fewAccidents, p.cwnd/accidentBytes)) {
		return false
	}
	switch {
	case p.lossy > 0:
		return p.lossy == 1
	case !p.delayed(e.c.Granularity):
		e.stray(p, l)
		return false
	}
	if p.cwnd < p.slow && p.stale < fresh && p.least >= paceFrom {
		return misses > max(startMisses, float64(max(p.heard, p.lastHeard)+p.misses)/startPart)
	}
	return true
}

// stray follows losses while no queue was full.
func (e *Engine) stray(p *peer, l *losses) {
	if l.pn < p.strayTo || p.cwnd < p.slow || p.least < paceFrom {
		return
	}
	if p.rounds-p.strayIn > strayGap {
		p.strays = 0
	}
	p.strayTo, p.strayIn = p.pn, p.rounds
	if p.strays++; p.strays < strayRounds && (p.proof < earlyCuts || p.rounds >= p.patient) {
		return
	}
	p.proof = min(max(p.proof+1, earlyCuts), earlyCuts+mostLossy)
	e.begin(p)
}

// cut reduces the window (RFC 9438, sections 4.6 and 4.7), or finds that losses are not
// of a full queue, since they follow a reduction early.
func (e *Engine) cut(p *peer, l *losses) {
	asks := p.lossy > 0
	if asks {
		p.lossy = 0
		p.cwnd = max(min(p.cwnd, max(p.landed, p.lastLanded)), p.floor())
	}
	p.cutAt = p.pn
	p.undo.losses, p.undo.cwnd, p.undo.slow, p.undo.most = l.count, p.cwnd, p.slow, p.most
	rate := p.rate
	p.rate /= 2
	beta := pacedBeta
	if p.short() {
		beta = cubicBeta
	}
	if p.cwnd < p.most {
		p.most = p.cwnd * (1 + beta) / 2
	} else {
		p.most = p.cwnd
	}
	switch early := p.rounds < p.patient && rate < tooMuch && p.least >= paceFrom; {
	case asks:
	case !early:
		p.proof = max(min(p.proof, earlyCuts)-1, 0)
	default:
		if p.proof = min(p.proof+1, earlyCuts+mostLossy); p.proof >= earlyCuts {
			e.begin(p)
			return
		}
	}
	// How many rounds the window takes to grow to what it was: as Reno's, or as CUBIC's.
	size, srtt := float64(p.datagram), float64(max(p.srtt, 1))
	gap := p.cwnd * (1 - beta) / size
	need := min(gap/cubicAlpha, math.Cbrt(gap/cubicC)*float64(time.Second)/srtt)
	patient := need / earlyPart
	if asks {
		patient = max(patient, min(need, enoughLosses*size/(max(rate, leastRate)*p.cwnd)))
	}
	p.rounds, p.patient = 0, int32(max(leastPatient, min(patient, math.MaxInt16)))
	p.strays, p.strayIn = 0, 0
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
