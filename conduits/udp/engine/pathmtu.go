package engine

import "time"

// Path MTU discovery by RFC 8899 (DPLPMTUD). Sections below are of that document.
//
// A path that Config.Sure knows nothing about begins with datagrams of baseSize
// bytes (BASE_PLPMTU). While there is traffic, probes look for larger ones: packets
// of padding with a packet number of their own, one at a time, first of the largest
// size that there may be, then of those that are common, and then halfway between
// what is known to arrive and what is not (5.3.2).
//
// A probe that is lost is sent mostProbes times in all (MAX_PROBES); those that were
// lost among others do not count. It is no sign of congestion (section 3, item 7),
// since it is not among what is under way. When nothing is left to be found out the
// search rests for Config.RaiseTime (PMTU_RAISE_TIMER).
//
// If nothing longer than baseSize arrives any more, while shorter datagrams do, the
// path has become a black hole for it (4.3): the size falls to baseSize, and the
// search begins anew. What has been cut already to a larger size is sent in pieces
// then, see fit. Silence by itself says nothing of sizes, since a peer that computes
// is silent, too: a short datagram is sent after the probes of the second time-out
// in a row, and the verdict falls when one of them arrives.
//
// If baseSize does not arrive any more either, the size falls to Config.Floor, and baseSize
// is one of those that are searched for. If the floor does not arrive for the dead time,
// while shorter datagrams do, the peer cannot be reached.
//
// A transfer over 20 ms whose path shrinks stands still for a quarter of a second
// (internal/lab/distancetest). Within a host there is no search.
type pathMTU struct {
	limit int           // the largest size to be found; 0: there is no search
	start int           // what there is no search for at first
	floor int           // what every path has to carry
	base  int           // start or floor: what works if nothing longer does
	stuck time.Duration // since when not even floor arrives; 0: it does, as far as is known
	high  int           // the largest size that is not known to be too long
	raise time.Duration // when a search that has ended begins again; 0: it has not

	size   int // PROBED_SIZE: of the probe under way; 0: none is
	pn     uint64
	at     time.Duration
	count  int // PROBE_COUNT: how often that size was lost,
	clean  int // and how often while nothing else was
	lost   int // datagrams, but probes; before is its value when the probe was sent
	before int

	// Rounds in which datagrams longer than base were lost since one arrived; the
	// next one begins with packet number next.
	rounds int
	next   uint64

	// A trial, after holeTimeouts probe time-outs in a row: of packet numbers from since
	// on nothing longer than than has arrived.
	trial bool
	since uint64
	than  int
	ask   bool // a datagram of at most base is to be sent
	short bool // one has arrived of those packet numbers

	told bool // of the receiver: a probe has come that no acknowledgement has told of
}

const (
	baseSize   = 1200 // 5.1.2
	mostProbes = 3    // 5.1.2
	// mostLost is how many probes of a size are lost at most while others are lost,
	// too: a full queue has less room for the longest ones.
	mostLost = 10

	// searchEnd is how much more is not worth to be searched for.
	searchEnd = 16

	// floorSlack is how much shorter than the floor what is cut to it may be.
	floorSlack = 2 * searchEnd

	// After so many probe time-outs in a row there is a trial, and so many rounds of
	// losses that have brought no datagram longer than base are a black hole.
	holeTimeouts = 2
	holeRounds   = 3
)

// discover begins with the path to p.
func (e *Engine) discover(p *peer) {
	p.mtu = pathMTU{}
	size := e.c.Datagram
	if e.c.Sure != nil {
		if sure := e.c.Sure(p.number); sure < size {
			size = max(sure, min(baseSize, e.c.Datagram), leastDatagram+e.c.overhead())
			p.mtu = pathMTU{limit: e.c.Datagram, high: e.c.Datagram, base: size, start: size}
			p.mtu.floor = max(min(size, e.c.Floor), leastDatagram+e.c.overhead())
		}
	}
	e.resize(p, size)
}

// passable is the size of datagrams that arrive if those of the size in use do not.
func (p *peer) passable() int {
	switch m := &p.mtu; {
	case p.datagram > m.base:
		return m.base
	case m.base > m.floor:
		return m.floor
	}
	return p.mtu.floor - floorSlack
}

// resize has datagrams for p be of at most size bytes.
func (e *Engine) resize(p *peer, size int) {
	p.datagram = size
	p.room = size - headerBytes - e.c.overhead()
	p.smaller()
}

// sounding reports whether it is time for a probe: one at a time, while there is other
// traffic that is acknowledged, and its size is not settled.
func (e *Engine) sounding(p *peer) bool {
	m := &p.mtu
	if m.limit == 0 || m.size > 0 || p.srtt == 0 || p.expired > 0 || p.inFlight == 0 {
		return false
	}
	if m.raise > 0 {
		if e.now < m.raise {
			return false
		}
		m.raise, m.high = 0, m.limit
	}
	return e.searching(p)
}

// searching reports whether there is something left to be found out, or ends the search.
func (e *Engine) searching(p *peer) bool {
	m := &p.mtu
	if m.high-p.datagram >= searchEnd || m.high == m.limit && m.high > p.datagram {
		return true
	}
	m.raise = e.now + e.c.RaiseTime
	return false
}

// sound pads b, the beginning of a datagram for p, to a probe of the next size, or to
// the short one of a trial.
func (e *Engine) sound(p *peer, b []byte, short bool) []byte {
	m := &p.mtu
	size := len(b) + 1 + e.c.overhead()
	if short {
		m.ask = false
	} else {
		size = m.nextSize(p.datagram)
		m.size, m.pn, m.at, m.before = size, p.pn, e.now, m.lost
	}
	n := len(b)
	b = b[:size-e.c.overhead()]
	clear(b[n:])
	p.sent[p.pn&uint64(len(p.sent)-1)] = transmission{at: e.now, size: int32(size), state: sounded}
	p.pn++
	e.stats.PathProbes++
	return b
}

// common are sizes of what UDP carries over IPv6 and IPv4 on interfaces of 1280,
// 1428 (tunnels), 1500 and 9000 bytes.
var common = [...]int{1232, 1400, 1452, 1472, 8952, 8972}

// nextSize is the size of the next probe, if what has size bytes arrives.
func (m *pathMTU) nextSize(size int) int {
	if m.high == m.limit {
		return m.high
	}
	for _, c := range common {
		if size < c && c <= m.high {
			return c
		}
	}
	return (size + m.high + 1) / 2
}

// soundAlarm is when the probe under way is given up.
func (e *Engine) soundAlarm(p *peer) (t time.Duration, ok bool) {
	if p.mtu.size == 0 {
		return 0, false
	}
	return p.mtu.at + 2*e.pto(p), true
}

// unheard takes the probe under way for lost, if it is time to. Others that were
// sent later tell, as of any packet number (RFC 9002, 6.1), or no acknowledgement
// of it comes for two probe time-outs.
func (e *Engine) unheard(p *peer) {
	m := &p.mtu
	if m.size == 0 {
		return
	}
	rtt := max(p.srtt, p.latest)
	if t, _ := e.soundAlarm(p); min(e.now, e.drained) < t && (p.acked <= m.pn+packetThreshold || e.now < m.at+rtt+rtt/2) {
		return
	}
	size := m.size
	m.size = 0
	if m.lost == m.before {
		m.clean++
	}
	if m.count++; m.clean < mostProbes && m.count < mostLost {
		return
	}
	m.high, m.count, m.clean = size-1, 0, 0
	e.searching(p)
}

// heardSound follows the arrival of the probe under way: its size is the path's.
func (e *Engine) heardSound(p *peer, n uint64) {
	m := &p.mtu
	if m.size == 0 || m.pn != n {
		return // given up before
	}
	e.resize(p, max(p.datagram, m.size))
	if p.datagram >= m.start {
		m.base = m.start
	}
	m.size, m.count, m.clean = 0, 0, 0
	e.searching(p)
}

// swallowed notes that a datagram of size bytes with packet number n was lost, and
// reports whether the path has become a black hole.
func (p *peer) swallowed(n uint64, size int) bool {
	m := &p.mtu
	m.lost++
	if m.limit == 0 || size <= p.passable() {
		return false
	}
	if n >= m.next {
		m.rounds++
		m.next = p.pn
	}
	return m.rounds >= holeRounds
}

// came notes that a datagram of size bytes with packet number n has arrived.
func (p *peer) came(n uint64, size int) {
	m, passable := &p.mtu, p.passable()
	if size > passable {
		m.rounds, m.stuck = 0, 0
	}
	if m.trial && n >= m.since {
		m.trial, m.short = size <= m.than, true
	}
}

// doubt begins a trial if a datagram of size bytes, of which there is no news, may be
// too long: probes of the time-out go first, and after them a short datagram. That
// alone arrives if the path is a black hole, and nothing if the peer does not run.
func (p *peer) doubt(size int) {
	m := &p.mtu
	than := p.passable()
	if size <= than {
		than = m.floor - floorSlack // it may be a piece, see fit
	}
	if m.limit == 0 || size <= than {
		return
	}
	if !m.trial {
		m.trial, m.short, m.since, m.than = true, false, p.pn, than
	}
	m.ask, p.ackNow = true, true
}

// tooNarrow reports whether the path to p has carried nothing of the least size for the dead
// time, although something is to go there.
func (e *Engine) tooNarrow(p *peer) bool {
	return p.mtu.stuck > 0 && e.now-p.mtu.stuck >= e.c.DeadTime && p.awaiting()
}

// blackHole begins anew with the base size, or with the floor.
func (e *Engine) blackHole(p *peer) {
	m := &p.mtu
	switch {
	case m.limit == 0:
		return
	case p.datagram == m.base && m.base == m.floor: // nothing shorter is left to be tried
		if m.stuck == 0 {
			m.stuck = e.now
		}
		m.rounds, m.next, m.trial, m.ask = 0, p.pn, false, false
		return
	case p.datagram == m.base:
		m.base = m.floor
	}
	e.stats.BlackHoles++
	e.resize(p, m.base)
	m.high, m.raise, m.size, m.count, m.clean, m.rounds, m.next = m.limit, 0, 0, 0, 0, 0, p.pn
	m.trial, m.ask = false, false
}
