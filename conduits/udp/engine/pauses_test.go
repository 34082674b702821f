package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// stopped is a time for which a rank does not run.
type stopped struct{ from, to time.Duration }

// forever ends no test.
const forever = 1 << 62

// paused is a rank that is stopped now and then, and perhaps dies.
type paused struct {
	*engine.Engine
	stops  []stopped // in the order of their times, apart
	in     []letter  // what comes for it, in the order of its times
	next   time.Duration
	awaits []time.Duration // by rank: since when it has awaited something without an end; -1: it does not
	dead   []bool          // by rank: it need not answer, or has not
	each   []time.Duration // by rank: the longest time that a probe of it had
}

// running reports whether the rank runs at a time, and when that changes.
func (p *paused) running(t time.Duration) (bool, time.Duration) {
	for _, s := range p.stops {
		switch {
		case t < s.from:
			return true, s.from
		case t < s.to:
			return false, s.to
		}
	}
	return true, forever
}

// dies is when the rank is stopped for ever.
func (p *paused) dies() time.Duration {
	if n := len(p.stops); n > 0 && p.stops[n-1].to == forever {
		return p.stops[n-1].from
	}
	return forever
}

// lastRan is when the rank stopped running last before t: t if it runs.
func (p *paused) lastRan(t time.Duration) time.Duration {
	for _, s := range p.stops {
		if t >= s.from && t < s.to {
			return s.from
		}
	}
	return t
}

// ran is how long the rank ran from one time to another. Of each stop no more than
// counts counts as if it had run.
func (p *paused) ran(from, to, counts time.Duration) time.Duration {
	d := to - from
	for _, s := range p.stops {
		if gone := min(to, s.to) - max(from, s.from); gone > 0 {
			d -= max(gone-counts, 0)
		}
	}
	return max(d, 0)
}

// leastRun is for how long ranks run at least between two stops: long enough to
// answer.
const leastRun = 2 * time.Millisecond

// TestRandomPauses stops ranks at random times, some or all at once, for up to
// minutes, while they ask each other for something now and then. A rank is declared
// dead only if it has not run for all of the dead time, during which the observer has;
// and a rank that is really dead is declared so once the observer has run for the
// dead time, or for half of it and the time of the four probes if that is longer, and
// at most the time of another probe and of a look for each of the five.
func TestRandomPauses(t *testing.T) {
	verdicts, alive := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "ranks")
		dead := time.Duration(rapid.SampledFrom([]int{1, 4, 10}).Draw(t, "dead time, s")) * time.Second
		delay := rapid.SampledFrom([]time.Duration{0, 50 * time.Microsecond, time.Millisecond, 40 * time.Millisecond}).Draw(t, "delay")
		every := time.Duration(rapid.IntRange(50, 3000).Draw(t, "asks every, ms")) * time.Millisecond
		const end = 4 * time.Minute
		look := dead / 20
		span := func(name string) time.Duration { // more often a short one
			most := rapid.SampledFrom([]time.Duration{dead / 50, dead / 5, dead, 3 * dead, 3 * time.Minute}).Draw(t, name+", at most")
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, name))
		}
		stops := make([][]stopped, n)
		add := func(r int, s stopped) {
			if l := stops[r]; len(l) > 0 && s.from < l[len(l)-1].to+leastRun {
				return
			}
			stops[r] = append(stops[r], s)
		}
		for at := leastRun; at < end; {
			at += span("until the next stop")
			who := rapid.IntRange(1, 1<<n-1).Draw(t, "stopped")
			for r := range n {
				if who>>r&1 == 1 {
					from := at + time.Duration(rapid.Int64Range(0, int64(dead/10)).Draw(t, "late"))
					add(r, stopped{from, from + span("stop")})
				}
			}
		}
		if rapid.Bool().Draw(t, "one dies") {
			r := rapid.IntRange(0, n-1).Draw(t, "who dies")
			at := time.Duration(rapid.Int64Range(0, int64(end)).Draw(t, "dies"))
			for i, s := range stops[r] {
				if s.to+leastRun > at {
					at = min(at, s.from)
					stops[r] = stops[r][:i]
					break
				}
			}
			stops[r] = append(stops[r], stopped{at, forever})
		}
		ps := make([]*paused, n)
		for r := range ps {
			c := config(r, n)
			c.InitialRTT, c.Granularity, c.DeadTime, c.Memory = 20*time.Millisecond, 0, dead, &memory{b: make([]byte, 4096), rights: segment.RightsAll}
			e, err := engine.New(c)
			if err != nil {
				t.Fatal(err)
			}
			ps[r] = &paused{Engine: e, stops: stops[r], awaits: make([]time.Duration, n), dead: make([]bool, n), each: make([]time.Duration, n)}
			for i := range ps[r].awaits {
				ps[r].awaits[i] = -1
			}
		}
		// check looks at what r thinks of others.
		check := func(r int, now time.Duration) {
			p := ps[r]
			for o, q := range ps {
				if o == r || p.dead[o] {
					continue
				}
				if !p.Dead(o) {
					p.each[o] = max(p.each[o], p.ProbeTime(o))
				} else {
					verdicts++
					p.dead[o], q.dead[r] = true, true // they talk no more
					since := q.lastRan(max(now-delay, 0)) - leastRun
					if c := p.ran(since, now, look); c < dead-2*delay-leastRun {
						t.Fatalf("at %v: rank %d, which has run for %v since rank %d did, at %v: %v", now, r, c, o, since, p.Silence(o))
					}
				}
				from := max(q.dies(), p.awaits[o]) + 2*delay
				if p.awaits[o] >= 0 && q.dies() < forever && from < now {
					most := max(dead, dead/2+4*p.each[o]) + p.each[o] + 5*look
					if c := p.ran(from, now, 0); c > most+time.Millisecond {
						t.Fatalf("at %v: rank %d has run for %v since rank %d died, at %v, and has awaited it since %v; declared dead: %v", now, r, c, o, q.dies(), p.awaits[o], p.Dead(o))
					}
				}
			}
		}
		var buf [2000]byte
		for now := time.Duration(0); now < end; {
			next := end
			for r, p := range ps {
				runs, changes := p.running(now)
				next = min(next, changes)
				if !runs {
					continue
				}
				for len(p.in) > 0 && p.in[0].at <= now {
					p.Receive(now, -1, p.in[0].b)
					p.in = p.in[1:]
				}
				p.Advance(now)
				for _, ok := p.NextCompletion(); ok; _, ok = p.NextCompletion() {
				}
				if p.next <= now {
					p.next = now + every
					for o, q := range ps {
						if o == r || p.dead[o] || p.Dead(o) {
							continue
						}
						_ = p.Atomic(o, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
						if now >= q.dies() && p.awaits[o] < 0 {
							p.awaits[o] = now
						}
					}
				}
				check(r, now)
				for dst, n, ok := p.Next(now, buf[:]); ok; dst, n, ok = p.Next(now, buf[:]) {
					ps[dst].in = append(ps[dst].in, letter{now + delay, append([]byte(nil), buf[:n]...)})
				}
				if at, ok := p.Deadline(); ok {
					next = min(next, max(at, now))
				}
				next = min(next, p.next)
			}
			for _, p := range ps {
				if runs, _ := p.running(now); runs && len(p.in) > 0 {
					next = min(next, max(p.in[0].at, now))
				}
			}
			now = max(next, now+time.Microsecond)
		}
		for r, p := range ps {
			for o := range ps {
				if o != r && !p.Dead(o) {
					alive++
				}
			}
		}
	})
	t.Logf("%d verdicts, %d pairs without one", verdicts, alive)
}
