package wan

import (
	"time"
)

// Segment is a TCP packet of the model. Numbers count segments of MSS bytes.
type Segment struct {
	Seq  uint64 // of data; has is false if there are none
	Has  bool
	Ack  uint64       // next expected
	Sack [3][2]uint64 // blocks, the newest first; from, to
	TS   time.Duration
	Echo time.Duration // TS of what is acknowledged
}

const (
	// MSS is how many bytes of data a full segment of the model has, with time
	// stamps in its header.
	MSS = 1448
	// ackSize and dataSize are the sizes of its packets.
	ackSize  = 52
	dataSize = MSS + ackSize

	leastRTO     = 200 * time.Millisecond // TCP_RTO_MIN of Linux
	firstRTO     = time.Second
	mostRTO      = 120 * time.Second
	delayedAck   = 40 * time.Millisecond  // TCP_DELACK_MIN
	delayedLast  = 200 * time.Millisecond // what the sender allows for it
	quickAcks    = 16
	dupThreshold = 3

	jiffy      = 4 * time.Millisecond // CONFIG_HZ=250
	leastTimer = 2 * jiffy            // TCP_TIMEOUT_MIN
)

// TCP is a sender of data without end.
type TCP struct {
	// Acked is how many bytes have been acknowledged in order.
	Acked int64
	// Sent counts segments, Again those of them that had been sent before, Timeouts
	// retransmission time-outs.
	Sent, Again, Timeouts int64
	// Limit is how many bytes may be under way, as a receive window is; 0 means
	// any number.
	Limit int64

	port *Port
	now  time.Duration
	cc   cubic

	segs      []sent // a ring: seg(seq)
	una, next uint64
	order     links // those under way, by the time of transmission
	lost      int   // segments that are to be sent again
	sacked    int
	board     ranges // of them
	nextLost  uint64 // no lost segment that is to be sent again is before
	high      uint64 // of what is known to have arrived, one more than the newest

	// RFC 6298.
	srtt, rttvar, minRTT time.Duration
	backoff              uint
	rtoAt                time.Duration
	tlpAt                time.Duration
	tlpDone              bool

	// RFC 8985.
	rackSent  time.Duration
	rackSeq   uint64
	rackRTT   time.Duration
	reordered bool
	reoAt     time.Duration

	// Recovery.
	state     int
	recover   uint64 // ends when everything before is acknowledged
	delivered float64
	out       float64
	prior     float64

	limited bool // the window limits what is sent
}

// States of a sender.
const (
	open = iota
	recovery
	loss
)

// sent is a segment under way.
type sent struct {
	at         time.Duration
	again      bool // sent more than once
	sacked     bool
	lost       bool // and neither sent again nor sacked
	linked     bool
	prev, next uint64 // by time of transmission; number+1, 0: none
}

// links are the ends of the list of transmissions.
type links struct{ first, last uint64 }

// BulkTCP makes the ends of a TCP flow from side 0 to side 1.
func BulkTCP() (*TCP, [2]func(*Port) Endpoint) {
	t := &TCP{}
	t.cc.init()
	return t, [2]func(*Port) Endpoint{
		func(p *Port) Endpoint { t.port = p; return t },
		func(p *Port) Endpoint { return &tcpReceiver{port: p, quick: quickAcks} },
	}
}

func (t *TCP) seg(seq uint64) *sent { return &t.segs[seq&uint64(len(t.segs)-1)] }

// flight is how many segments are in the network, as far as is known.
func (t *TCP) flight() float64 {
	return float64(int(t.next-t.una) - t.sacked - t.lost)
}

// link puts seq at the end of the list of transmissions.
func (t *TCP) link(seq uint64) {
	s := t.seg(seq)
	s.linked = true
	s.prev, s.next = t.order.last, 0
	if t.order.last != 0 {
		t.seg(t.order.last - 1).next = seq + 1
	} else {
		t.order.first = seq + 1
	}
	t.order.last = seq + 1
}

func (t *TCP) unlink(seq uint64) {
	s := t.seg(seq)
	if !s.linked {
		return
	}
	s.linked = false
	if s.prev != 0 {
		t.seg(s.prev - 1).next = s.next
	} else {
		t.order.first = s.next
	}
	if s.next != 0 {
		t.seg(s.next - 1).prev = s.prev
	} else {
		t.order.last = s.prev
	}
	s.prev, s.next = 0, 0
}

// grow makes room for another segment.
func (t *TCP) grow() {
	old := t.segs
	t.segs = make([]sent, max(64, 2*len(old)))
	for seq := t.una; seq < t.next; seq++ {
		*t.seg(seq) = old[seq&uint64(len(old)-1)]
	}
}

// Receive takes an acknowledgement.
func (t *TCP) Receive(now time.Duration, p *Packet) {
	t.now = now
	g := &p.Segment
	una, delivered, sacked := t.una, 0.0, false
	wasLost := t.lost
	sample := time.Duration(-1)
	deliver := func(seq uint64) {
		s := t.seg(seq)
		delivered++
		if !s.again {
			sample = now - s.at
			if seq+1 < t.high {
				t.reordered = true
			}
		}
		t.high = max(t.high, seq+1)
		// RFC 8985, section 6.2, step 2: of what has been sent again it is not known
		// which has arrived, unless it is too early for the last.
		if s.again && now-s.at < t.minRTT {
			return
		}
		if s.at > t.rackSent || s.at == t.rackSent && seq > t.rackSeq {
			t.rackSent, t.rackSeq, t.rackRTT = s.at, seq, now-s.at
		}
	}
	for ; t.una < g.Ack; t.una++ {
		s := t.seg(t.una)
		switch {
		case s.sacked:
			t.sacked--
		case s.lost:
			t.lost--
			delivered++
		default:
			t.unlink(t.una)
			deliver(t.una)
		}
	}
	t.Acked += int64(t.una-una) * MSS
	t.board.trim(t.una)
	for _, b := range g.Sack {
		t.board.add(max(b[0], t.una), min(b[1], t.next), func(seq uint64) {
			s := t.seg(seq)
			if s.lost {
				s.lost = false
				t.lost--
				delivered++
			} else {
				t.unlink(seq)
				deliver(seq)
			}
			s.sacked = true
			t.sacked++
			sacked = true
		})
	}
	if g.Ack > una && sample < 0 && g.Echo > 0 {
		sample = now - g.Echo // RFC 7323
	}
	if sample >= 0 {
		t.rtt(sample)
	}
	if t.una > una || sacked {
		t.backoff, t.tlpDone = 0, false
		t.rearm()
	}
	t.detect()
	newlyLost := t.lost > wasLost
	switch t.state {
	case open:
		if t.lost > 0 {
			t.enterRecovery()
		}
	case recovery, loss:
		if t.una >= t.recover {
			if t.state == recovery {
				t.cc.cwnd = t.cc.ssthresh
			}
			t.state = open
			if t.lost > 0 {
				t.enterRecovery()
			}
		}
	}
	if t.state == recovery {
		// Proportional rate reduction (RFC 6937), as tcp_cwnd_reduction.
		if delivered > 0 {
			t.delivered += delivered
			flight, send := t.flight(), 0.0
			if delta := t.cc.ssthresh - flight; delta < 0 {
				send = float64(int((t.cc.ssthresh*t.delivered+t.prior-1)/t.prior)) - t.out
			} else {
				send = max(t.delivered-t.out, delivered)
				if t.una > una && !newlyLost {
					send++
				}
				send = min(delta, send)
			}
			if t.out == 0 {
				send = max(send, 1) // the fast retransmission
			}
			t.cc.cwnd = flight + max(send, 0)
		}
	} else if delivered > 0 {
		if sample >= 0 {
			t.cc.sample(now, sample, t.srtt, t.una, t.next)
		}
		if t.una > una {
			// Only what arrives in order lets the window grow (tcp_may_raise_cwnd).
			t.cc.acked(now, delivered, t.limited)
		}
	}
}

func (t *TCP) enter(state int) {
	t.state, t.recover = state, t.next
	t.nextLost = t.una
}

func (t *TCP) enterRecovery() {
	t.enter(recovery)
	t.prior = max(t.cc.cwnd, 1)
	t.cc.ssthresh = t.cc.reduce()
	t.delivered, t.out = 0, 0
}

// rtt takes a sample (RFC 6298, section 2).
func (t *TCP) rtt(d time.Duration) {
	d = max(d, time.Microsecond)
	if t.srtt == 0 {
		t.srtt, t.rttvar, t.minRTT = d, d/2, d
		return
	}
	t.minRTT = min(t.minRTT, d)
	t.rttvar += ((t.srtt - d).Abs() - t.rttvar) / 4
	t.srtt += (d - t.srtt) / 8
}

// jiffies rounds a time up to what timers of the kernel resolve.
func jiffies(d time.Duration) time.Duration { return (d + jiffy - 1) / jiffy * jiffy }

func (t *TCP) rto() time.Duration {
	d := firstRTO
	if t.srtt > 0 {
		d = jiffies(t.srtt + max(4*t.rttvar, leastRTO))
	}
	return min(d<<min(t.backoff, 10), mostRTO)
}

// rearm begins the time-outs anew: for the tail (RFC 8985, section 7.2) and for
// everything.
func (t *TCP) rearm() {
	t.rtoAt, t.tlpAt = 0, 0
	if t.una == t.next {
		return
	}
	t.rtoAt = t.now + t.rto()
	if t.state == open && t.srtt > 0 && !t.tlpDone && t.sacked == 0 {
		d := 2 * t.srtt
		if t.next-t.una == 1 {
			d += delayedLast
		} else {
			d += leastTimer
		}
		t.tlpAt = t.now + min(jiffies(d), t.rto())
	}
}

// detect marks what is lost (RFC 8985, section 6.2, step 5).
func (t *TCP) detect() {
	t.reoAt = 0
	if t.rackSent == 0 && t.rackRTT == 0 {
		return
	}
	window := min(t.minRTT/4, t.srtt)
	if !t.reordered && (t.state != open || t.sacked >= dupThreshold) {
		window = 0
	}
	for t.order.first != 0 {
		seq := t.order.first - 1
		s := t.seg(seq)
		if s.at > t.rackSent || s.at == t.rackSent && seq >= t.rackSeq {
			return
		}
		if at := s.at + t.rackRTT + window; at > t.now {
			t.reoAt = t.now + jiffies(at-t.now) + leastTimer
			return
		}
		t.unlink(seq)
		s.lost = true
		t.lost++
		t.nextLost = min(t.nextLost, seq)
	}
}

// Run sends what may be sent.
func (t *TCP) Run(now time.Duration) (time.Duration, bool) {
	t.now = now
	if t.reoAt > 0 && t.reoAt <= now {
		t.detect()
		if t.lost > 0 && t.state == open {
			t.enterRecovery()
			t.cc.cwnd = t.flight() + 1
		}
	}
	if t.rtoAt > 0 && t.rtoAt <= now {
		t.timeout()
	} else if t.tlpAt > 0 && t.tlpAt <= now {
		t.tlpAt, t.tlpDone = 0, true
		t.probe()
	}
	for t.flight() < t.cc.cwnd {
		if t.lost > 0 {
			for !t.lostAt(t.nextLost) {
				t.nextLost++
			}
			s := t.seg(t.nextLost)
			s.lost = false
			t.lost--
			t.transmit(t.nextLost, true)
			continue
		}
		if t.Limit > 0 && int64(t.next+1-t.una)*MSS > t.Limit {
			break
		}
		t.fresh()
	}
	// tcp_is_cwnd_limited: in slow start also if half of it was used.
	f := t.flight()
	t.limited = f >= t.cc.cwnd || t.cc.cwnd < t.cc.ssthresh && t.cc.cwnd < 2*f
	at, ok := time.Duration(0), false
	for _, d := range []time.Duration{t.rtoAt, t.tlpAt, t.reoAt} {
		if d > 0 && (!ok || d < at) {
			at, ok = d, true
		}
	}
	return at, ok
}

func (t *TCP) lostAt(seq uint64) bool { return seq >= t.next || t.seg(seq).lost }

func (t *TCP) fresh() {
	if t.next-t.una == uint64(len(t.segs)) {
		t.grow()
	}
	*t.seg(t.next) = sent{}
	t.next++
	t.transmit(t.next-1, false)
}

func (t *TCP) transmit(seq uint64, again bool) {
	s := t.seg(seq)
	t.unlink(seq)
	s.at = t.now
	if again {
		s.again = true
		t.Again++
	}
	t.link(seq)
	t.Sent++
	if t.state == recovery {
		t.out++
	}
	q := t.port.Packet()
	q.Size = dataSize
	q.Segment = Segment{Seq: seq, Has: true, TS: t.now}
	t.port.Send(q)
	if t.rtoAt == 0 {
		t.rearm()
	}
}

// probe is a tail loss probe (RFC 8985, section 7.3).
func (t *TCP) probe() {
	if t.Limit == 0 || int64(t.next+1-t.una)*MSS <= t.Limit {
		t.fresh()
	} else if t.order.last != 0 {
		t.transmit(t.order.last-1, true)
	}
	t.rtoAt = t.now + t.rto()
}

// timeout takes everything for lost (RFC 6298, section 5; RFC 5681, section 3.1).
func (t *TCP) timeout() {
	t.Timeouts++
	if t.state != loss || t.una >= t.recover {
		t.cc.ssthresh = t.cc.reduce()
	}
	t.cc.timeout()
	t.enter(loss)
	for seq := t.una; seq < t.next; seq++ {
		if s := t.seg(seq); !s.sacked && !s.lost {
			t.unlink(seq)
			s.lost = true
			t.lost++
		}
	}
	t.backoff++
	t.tlpAt, t.reoAt = 0, 0
	t.rtoAt = t.now + t.rto()
}

// tcpReceiver acknowledges.
type tcpReceiver struct {
	port    *Port
	cum     uint64
	blocks  ranges      // that have come beyond it
	recent  [][2]uint64 // scratch
	last    uint64      // what has come last
	echo    time.Duration
	pending int
	quick   int
	ackAt   time.Duration
	now     time.Duration
}

func (r *tcpReceiver) Receive(now time.Duration, p *Packet) {
	g := &p.Segment
	r.now = now
	if !g.Has {
		return
	}
	inOrder := g.Seq == r.cum && len(r.blocks) == 0
	if r.pending == 0 {
		r.echo = g.TS // RFC 7323, section 4.3
	}
	switch {
	case g.Seq < r.cum:
	case g.Seq == r.cum:
		r.cum++
		if len(r.blocks) > 0 && r.blocks[0][0] == r.cum {
			r.cum = r.blocks[0][1]
			r.blocks.trim(r.cum)
		}
	default:
		r.blocks.add(g.Seq, g.Seq+1, func(uint64) {})
		r.last = g.Seq
	}
	r.pending++
	switch {
	case !inOrder:
		r.quick = quickAcks
		r.ack()
	case r.pending >= 2, r.quick > 0:
		r.quick = max(r.quick-1, 0)
		r.ack()
	default:
		r.ackAt = now + delayedAck
	}
}

func (r *tcpReceiver) ack() {
	r.pending, r.ackAt = 0, 0
	q := r.port.Packet()
	q.Size = ackSize
	q.Segment = Segment{Ack: r.cum, Echo: r.echo, TS: r.now}
	// RFC 2018, section 4: the block with the latest segment first, then those
	// that were sent last.
	n := 0
	add := func(b [2]uint64) {
		for i := range n {
			if q.Segment.Sack[i] == b {
				return
			}
		}
		q.Segment.Sack[n] = b
		n++
	}
	if len(r.blocks) > 0 {
		if b, ok := r.blocks.within(r.last); ok {
			add(b)
		}
		for _, old := range r.recent {
			if n == len(q.Segment.Sack) {
				break
			}
			if b, ok := r.blocks.within(old[0]); ok {
				add(b)
			}
		}
		r.recent = append(r.recent[:0], q.Segment.Sack[:n]...)
		q.Size += 4 + 8*n
	} else {
		r.recent = r.recent[:0]
	}
	r.port.Send(q)
}

func (r *tcpReceiver) Run(now time.Duration) (time.Duration, bool) {
	r.now = now
	if r.ackAt > 0 && r.ackAt <= now {
		r.quick = max(r.quick-1, 0)
		r.ack()
	}
	return r.ackAt, r.ackAt > 0
}
