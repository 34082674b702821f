package launch

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestClock: times of a host whose clock drifts, compared by round trips that are long and short one way and the other, are as good
// as is said, never go back, and go on where they were when clocks are compared again.
func TestClock(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		drift := 4e-5 * (2*r.Float64() - 1)
		ahead := time.Duration(int64(r.IntN(20))-10) * time.Hour
		theirs := func(here time.Duration) time.Duration { return here + ahead + time.Duration(drift*float64(here)) }
		c := clock{done: make(chan struct{}, 1)}
		now := 10 * time.Hour
		compare := func() {
			c.begin()
			for again := true; again; {
				sent := now
				there := time.Duration(r.ExpFloat64() * float64(200*time.Microsecond))
				back := time.Duration(r.ExpFloat64() * float64(200*time.Microsecond))
				now += there + back
				again = c.heard(sent, theirs(sent+there), now)
			}
			<-c.done
		}
		last := time.Duration(-1 << 62)
		since := now
		for range 2 {
			for range 1000 {
				compare()
				now += time.Second
				if len(c.all) >= clockSamples {
					t.Fatalf("%d samples are kept", len(c.all))
				}
			}
			here, wrong := c.conversion()
			if wrong <= 0 || wrong > time.Millisecond {
				t.Fatalf("seed %d: times are wrong by %v", seed, wrong)
			}
			for at := since; at < now-time.Second; at += 100 * time.Millisecond {
				got := here(theirs(at))
				if off := (got - at).Abs(); off > wrong+10*time.Microsecond {
					t.Fatalf("seed %d: %v is %v, which is wrong by %v, not %v", seed, at, got, off, wrong)
				}
				if got < last {
					t.Fatalf("seed %d: %v is %v, and was %v before", seed, at, got, last)
				}
				last = got
			}
			since = now
		}
		if c.heard(0, 0, 0) || len(c.all) != 1 {
			t.Error("what nobody has asked for is taken")
		}
	}
}
