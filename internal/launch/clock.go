package launch

import (
	"slices"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// A clock is what is known of the CLOCK_MONOTONIC of a host, by exchanges of signs of life: a sample of each.
type clock struct {
	mu   sync.Mutex
	left int    // round trips of the exchange that is under way
	best sample // of them
	all  []sample
	// fixed: the first of all is where times that have been converted end, and those of before are not compared again.
	fixed bool
	done  chan struct{} // has something when an exchange is over
}

// sample is the round trip of an exchange that took the shortest time: there it was theirs in the middle of it, and ahead more here.
type sample struct{ theirs, ahead, trip time.Duration }

// wrong is how wrong times of then may be, by this sample.
func (s sample) wrong(then time.Duration) time.Duration {
	return s.trip/2 + time.Duration(clockDrift*float64((then-s.theirs).Abs()))
}

const (
	clockTrips   = 8    // of an exchange
	clockSamples = 256  // that are kept; of more every other one is
	clockDrift   = 1e-4 // between two hosts, more than that of quartz
	clockApart   = 100 * time.Millisecond
)

// begin begins an exchange, in place of one that is not over, and returns what the first sign of life is to carry.
func (c *clock) begin() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.best = clockTrips, sample{}
	return []int64{int64(sys.Monotonic())}
}

// heard takes the answer theirs, which has come now, to what was sent at a time. again reports whether another one is to be asked for.
func (c *clock) heard(sent, theirs, now time.Duration) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return false
	}
	s := sample{theirs, (sent+now)/2 - theirs, max(now-sent, 0)}
	if c.left == clockTrips || s.trip < c.best.trip {
		c.best = s
	}
	if c.left--; c.left > 0 {
		return true
	}
	c.add(c.best)
	select {
	case c.done <- struct{}{}:
	default:
	}
	return false
}

// add keeps a sample. So close to each other that time could go backwards between two of them the better one is kept.
func (c *clock) add(s sample) {
	if n := len(c.all); n > 0 && s.theirs-c.all[n-1].theirs <= max(clockApart, 2*s.trip) {
		if s.trip < c.all[n-1].trip && !(c.fixed && n == 1) {
			c.all[n-1] = s
		}
		return
	}
	if c.all = append(c.all, s); len(c.all) < clockSamples {
		return
	}
	kept := c.all[:1] // from which on times are converted
	for l := range slices.Chunk(c.all[1:], 2) {
		if len(l) > 1 && l[1].trip < l[0].trip {
			l = l[1:]
		}
		kept = append(kept, l[0])
	}
	c.all = kept
}

// conversion returns what makes times of here of the host's, and by how much they may be wrong: half a round trip. Between two samples
// the difference is on the line through them. Those are left out that others tell more of than they do, where the clock may drift meanwhile.
func (c *clock) conversion() (here func(theirs time.Duration) time.Duration, residual time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var used []sample
	for i, s := range c.all {
		worse := func(o sample) bool { return o.wrong(s.theirs) < s.trip/2 }
		if c.fixed && i == 0 || !slices.ContainsFunc(c.all, worse) {
			used = append(used, s)
			residual = max(residual, s.trip/2)
		}
	}
	if len(used) == 0 {
		return func(t time.Duration) time.Duration { return t }, 0
	}
	last, until := used[len(used)-1], c.all[len(c.all)-1].theirs
	residual = max(residual, used[0].wrong(c.all[0].theirs), last.wrong(until))
	c.all, c.fixed = []sample{{until, last.ahead, 2 * residual}}, true
	return func(t time.Duration) time.Duration {
		i := slices.IndexFunc(used, func(s sample) bool { return s.theirs > t })
		switch {
		case i < 0:
			return t + last.ahead
		case i == 0:
			return t + used[0].ahead
		}
		a, b := used[i-1], used[i]
		return t + a.ahead + time.Duration(float64(b.ahead-a.ahead)*float64(t-a.theirs)/float64(b.theirs-a.theirs))
	}, residual
}
