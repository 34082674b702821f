package wan

import (
	"math"
	"time"
)

// cubic is congestion control by RFC 9438 with HyStart, as tcp_cubic.c of Linux
// 6.x has it. Windows are in segments.
type cubic struct {
	cwnd, ssthresh float64

	// Congestion avoidance (section 4).
	lastMax   float64
	origin    float64
	k         float64 // seconds
	epoch     time.Duration
	hasEpoch  bool
	delayMin  time.Duration
	ackCount  float64
	tcpWindow float64 // section 4.3: what Reno's would be
	credit    float64

	// HyStart: ends slow start when a round's acknowledgements take as long as half
	// of the least round trip, or when its round trips have grown by an eighth.
	roundStart time.Duration
	lastAck    time.Duration
	roundEnd   uint64
	roundMin   time.Duration
	samples    int
}

const (
	cubicC    = 0.4
	cubicBeta = 717.0 / 1024

	initialWindow   = 10 // RFC 6928
	hystartWindow   = 16
	hystartSamples  = 8
	hystartSpacing  = 2 * time.Millisecond
	hystartDelayMin = 4 * time.Millisecond
	hystartDelayMax = 16 * time.Millisecond
)

func (c *cubic) init() {
	c.cwnd, c.ssthresh = initialWindow, math.MaxInt32
}

// reset begins HyStart's next round, which ends when segment end is acknowledged.
func (c *cubic) reset(now time.Duration, end uint64) {
	c.roundStart, c.lastAck, c.roundEnd = now, now, end
	c.roundMin, c.samples = math.MaxInt64, 0
}

// sample takes the round trip of an acknowledgement into account. una and next are
// the sender's.
func (c *cubic) sample(now, rtt, srtt time.Duration, una, next uint64) {
	if c.hasEpoch && now-c.epoch < time.Second {
		return // just after recovery
	}
	if c.delayMin == 0 || rtt < c.delayMin {
		c.delayMin = rtt
	}
	if c.cwnd >= c.ssthresh || c.cwnd < hystartWindow {
		return
	}
	if una > c.roundEnd {
		c.reset(now, next)
	}
	if now-c.lastAck <= hystartSpacing {
		c.lastAck = now
		// hystart_ack_delay: four segments of segmentation offload at the rate that
		// pacing would have.
		offload := min(time.Millisecond, time.Duration(4*65536/(2*c.cwnd*MSS)*float64(srtt)))
		if now-c.roundStart > (c.delayMin+offload)/2 {
			c.ssthresh = c.cwnd
			return
		}
	}
	c.roundMin = min(c.roundMin, rtt)
	if c.samples < hystartSamples {
		c.samples++
	} else if c.roundMin > c.delayMin+min(max(c.delayMin/8, hystartDelayMin), hystartDelayMax) {
		c.ssthresh = c.cwnd
	}
}

// acked grows the window for acknowledged segments, if the window limits what is
// sent.
func (c *cubic) acked(now time.Duration, n float64, limited bool) {
	if !limited {
		return
	}
	if c.cwnd < c.ssthresh {
		grown := min(n, c.ssthresh-c.cwnd)
		c.cwnd += grown
		if n -= grown; n <= 0 {
			return
		}
	}
	c.ackCount += n
	if !c.hasEpoch {
		c.hasEpoch, c.epoch = true, now
		c.ackCount, c.tcpWindow = n, c.cwnd
		if c.lastMax <= c.cwnd {
			c.k, c.origin = 0, c.cwnd
		} else {
			c.k, c.origin = math.Cbrt((c.lastMax-c.cwnd)/cubicC), c.lastMax
		}
	}
	t := (now - c.epoch + c.delayMin).Seconds() - c.k
	target := c.origin + cubicC*t*t*t
	count := 100 * c.cwnd
	if target > c.cwnd {
		count = c.cwnd / (target - c.cwnd)
	}
	if c.lastMax == 0 {
		count = min(count, 20)
	}
	if step := c.cwnd * 15 / 8; c.ackCount > step {
		g := math.Floor(c.ackCount / step)
		c.ackCount -= g * step
		c.tcpWindow += g
	}
	if c.tcpWindow > c.cwnd {
		count = min(count, c.cwnd/(c.tcpWindow-c.cwnd))
	}
	count = max(count, 2)
	c.credit += n / count
	if g := math.Floor(c.credit); g >= 1 {
		c.credit -= g
		c.cwnd += g
	}
}

// reduce is the slow start threshold after a loss (sections 4.6 and 4.7).
func (c *cubic) reduce() float64 {
	c.hasEpoch = false
	if c.cwnd < c.lastMax {
		c.lastMax = c.cwnd * (1 + cubicBeta) / 2
	} else {
		c.lastMax = c.cwnd
	}
	return max(math.Floor(c.cwnd*cubicBeta), 2)
}

// timeout forgets everything, as after a retransmission time-out.
func (c *cubic) timeout() {
	*c = cubic{cwnd: 1, ssthresh: c.ssthresh}
}
