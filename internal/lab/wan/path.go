package wan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Path has the delays, rates and losses of a link. Both directions are alike, and independent.
type Path struct {
	// Rate is the bottleneck's, bit/s. 0 means that there is none.
	Rate int64
	// Delay is how long a packet takes one way, beside its time in the queue and
	// its transmission: half of the round trip.
	Delay time.Duration
	// Queue is how many bytes may wait for the bottleneck. A packet that would
	// exceed that is dropped (drop-tail). One whose transmission has begun counts
	// with what is left of it.
	Queue int
	// Loss, Repeat, Reorder and Corrupt are the parts of packets that have left
	// the bottleneck and are then lost, come twice, come late, or come with one bit
	// flipped. Packets of TCP are not corrupted: a checksum would drop them.
	Loss, Repeat, Reorder, Corrupt float64
	// Late is how much later packets come that are repeated or reordered, at most.
	Late time.Duration
	// Jitter is how much later than Delay a packet comes at most, by chance. It does not
	// reorder: a packet that would overtake another comes with it. Where packets follow
	// each other closely it is a delay of nearly Jitter that varies a little.
	Jitter time.Duration
	// Pause is for how long a host stands still at most, as a process does that waits for
	// a processor: packets for it and its own timers wait meanwhile. In each period of
	// twice that time there is one pause, whose beginning and length are random: a quarter of
	// the time in the mean.
	Pause time.Duration
	// MTU is the largest packet; larger ones are dropped silently. 0
	// means 65535.
	MTU int
	// Seed decides what chance does.
	Seed uint64
}

// RTT is the round trip of an empty packet without a queue.
func (p *Path) RTT() time.Duration { return 2 * p.Delay }

// BDP is the bandwidth-delay product, bytes.
func (p *Path) BDP() int { return int(float64(p.Rate) / 8 * p.RTT().Seconds()) }

// leastQueue is the shortest queue of Queued: ten packets of 1500 bytes. No sender of a
// window at a time works with fewer.
const leastQueue = 15000

// Queued is p with a queue of so many bandwidth-delay products, at least 15000
// bytes.
func (p Path) Queued(bdps float64) Path {
	p.Queue = max(leastQueue, int(bdps*float64(p.BDP())))
	return p
}

// String describes the path in a line.
func (p Path) String() string {
	s := fmt.Sprintf("%v, %s, queue %d B", p.RTT(), rate(float64(p.Rate)), p.Queue)
	for _, f := range []struct {
		name string
		v    float64
	}{{"loss", p.Loss}, {"repeats", p.Repeat}, {"reordering", p.Reorder}, {"corruption", p.Corrupt}} {
		if f.v > 0 {
			s += fmt.Sprintf(", %g %% %s", 100*f.v, f.name)
		}
	}
	for _, f := range []struct {
		name string
		v    time.Duration
	}{{"jitter", p.Jitter}, {"pauses", p.Pause}} {
		if f.v > 0 {
			s += fmt.Sprintf(", %s of up to %v", f.name, f.v)
		}
	}
	if p.MTU > 0 {
		s += fmt.Sprintf(", MTU %d", p.MTU)
	}
	return s
}

// rate writes bit/s.
func rate(r float64) string {
	if r >= 1e9 {
		return fmt.Sprintf("%.3g Gbit/s", r/1e9)
	}
	return fmt.Sprintf("%.3g Mbit/s", r/1e6)
}

// Counts are numbers of a link's packets.
type Counts struct {
	Packets, Bytes    int64 // offered
	Dropped           int64 // the queue was full
	Lost              int64 // by chance
	TooLong           int64 // longer than the MTU
	Repeated, Delayed int64
	Corrupted         int64
	Queued            time.Duration // sum of the times that packets waited in the queue
	LongestQueue      time.Duration
}

// QueueDelay is the mean time that a packet waited in the queue.
func (c *Counts) QueueDelay() time.Duration {
	if n := c.Packets - c.Dropped - c.TooLong; n > 0 {
		return c.Queued / time.Duration(n)
	}
	return 0
}

// A Link is one direction of a path. It is not safe for concurrent use.
type Link struct {
	Path   Path // Rate, Delay and MTU may be changed between packets
	Counts Counts

	rnd  *rand.Rand
	dir  int
	busy time.Duration // when the bottleneck will have sent all that it has
	last time.Duration // when the last packet in order arrives
}

// NewLink makes direction dir, 0 or 1, of p.
func NewLink(p Path, dir int) *Link {
	return &Link{Path: p, dir: dir, rnd: rand.New(rand.NewPCG(p.Seed, uint64(dir)+1))}
}

// A Fate is a link's verdict on a packet: it arrives N times, 0 to 2, at the times in
// At, with one bit flipped if Corrupt.
type Fate struct {
	At      [2]time.Duration
	N       int
	InOrder bool // the first arrives after all that were offered before it
	Corrupt bool
	Bit     uint64 // a random number, to choose the bit by
}

// Waiting is how long a packet that is offered now would wait in the queue.
func (l *Link) Waiting(now time.Duration) time.Duration { return max(0, l.busy-now) }

// Offer decides about a packet that comes to the bottleneck now.
func (l *Link) Offer(now time.Duration, size int) (f Fate) {
	p, c := &l.Path, &l.Counts
	c.Packets++
	c.Bytes += int64(size)
	if p.MTU > 0 && size > p.MTU {
		c.TooLong++
		return f
	}
	at := now
	if p.Rate > 0 {
		wait := max(0, l.busy-now)
		if float64(wait)*float64(p.Rate)/8e9+float64(size) > float64(p.Queue) && wait > 0 {
			c.Dropped++
			return f
		}
		c.Queued += wait
		c.LongestQueue = max(c.LongestQueue, wait)
		l.busy = now + wait + time.Duration(float64(size)*8e9/float64(p.Rate))
		at = l.busy
	}
	at += p.Delay
	if p.Jitter > 0 {
		at = max(at+time.Duration(l.rnd.Int64N(int64(p.Jitter)+1)), l.last)
		l.last = at
	}
	at = l.Awake(at)
	if l.happens(p.Loss) {
		c.Lost++
		return f
	}
	f.N, f.InOrder = 1, true
	f.At[0] = at
	if l.happens(p.Reorder) {
		c.Delayed++
		f.InOrder = false
		f.At[0] += l.late()
	}
	if l.happens(p.Repeat) {
		c.Repeated++
		f.At[1] = at + l.late()
		f.N = 2
	}
	if l.happens(p.Corrupt) {
		c.Corrupted++
		f.Corrupt, f.Bit = true, l.rnd.Uint64()
	}
	return f
}

// Awake is when the host at the end of the link does what is due at time t.
func (l *Link) Awake(t time.Duration) time.Duration {
	most := l.Path.Pause
	if most <= 0 {
		return t
	}
	period := 2 * most
	k := t / period
	// The chance of a period does not depend on earlier calls.
	g := rand.NewPCG(l.Path.Seed, uint64(k)<<1|uint64(l.dir))
	long := time.Duration(g.Uint64() % uint64(most+1))
	from := k*period + time.Duration(g.Uint64()%uint64(period-long+1))
	if t >= from && t < from+long {
		return from + long
	}
	return t
}

func (l *Link) happens(p float64) bool { return p > 0 && l.rnd.Float64() < p }

func (l *Link) late() time.Duration {
	if l.Path.Late <= 0 {
		return 0
	}
	return time.Duration(l.rnd.Int64N(int64(l.Path.Late)) + 1)
}
