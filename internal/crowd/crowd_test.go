package crowd

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// TestJudge: what is said after a run of equal looks.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name             string
		ranks            int
		wall, run, delay time.Duration
		want             bool // for as long as it takes until a trial
	}{
		{"alone, spinning", 1, 100 * ms, 100 * ms, 1 * ms, false},
		{"alone, with a little noise", 1, 100 * ms, 92 * ms, 8 * ms, false},
		{"two on one processor", 1, 100 * ms, 50 * ms, 50 * ms, true},
		{"four on one processor", 1, 100 * ms, 25 * ms, 75 * ms, true},
		{"throttled to a third", 1, 100 * ms, 33 * ms, 67 * ms, true},
		{"asleep", 1, 100 * ms, 0, 0, false},
		{"asleep, woken late now and then", 1, 100 * ms, 1 * ms, 3 * ms, false},
		{"a process of ten ranks on enough processors", 10, 100 * ms, 1000 * ms, 30 * ms, false},
		{"spinning, while its other threads wait behind it", 1, 95 * ms, 95 * ms, 60 * ms, false},
		{"starting, with all its threads", 1, 92 * ms, 75 * ms, 46 * ms, false},
		{"three ranks on two processors, one each", 1, 90 * ms, 60 * ms, 60 * ms, true},
		{"two ranks of one process on a processor for each", 2, 100 * ms, 190 * ms, 60 * ms, false},
		{"two ranks of one process on one processor", 2, 100 * ms, 100 * ms, 100 * ms, true},
		{"starved", 1, 10_000 * ms, 3 * ms, 9_997 * ms, true},
	} {
		var j Judge
		for i := range leastCalm {
			got := j.Look(c.ranks, c.wall, c.run, c.delay)
			if want := c.want && i >= shortLooks-1; got != want {
				t.Fatalf("%s: %v at look %d", c.name, got, i)
			}
		}
	}
}

// TestJudgeTakesItsTime: one bad look is none, and the word changes back only after
// a while, which gets longer if it was wrong.
func TestJudgeTakesItsTime(t *testing.T) {
	var j Judge
	quiet := func() bool { return j.Look(1, 100*ms, 30*ms, 0) }
	short := func() bool { return j.Look(1, 100*ms, 25*ms, 75*ms) }
	for range 20 {
		if short() || quiet() {
			t.Fatal("crowded by single looks")
		}
	}
	until := func(max int) (n int) {
		for n = 1; quiet(); n++ {
			if n > max {
				t.Fatal("crowded for ever")
			}
		}
		return n
	}
	last := 0
	for i := range 12 {
		short()
		if !short() {
			t.Fatal("not crowded")
		}
		quiet()
		if !short() { // which starts the count again
			t.Fatal("not crowded any more")
		}
		n := until(2 * mostCalm)
		if want := min(max(2*last, leastCalm), mostCalm); n != want {
			t.Fatalf("time %d: %d calm looks, want %d", i, n, want)
		}
		last = n
	}
	// After a long time it is a new case.
	for range 5 * mostCalm {
		quiet()
	}
	short()
	short()
	if n := until(2 * mostCalm); n != leastCalm {
		t.Fatalf("%d calm looks after long peace, want %d", n, leastCalm)
	}
}

// TestJudgeIsNotTried: as long as processors are clearly short there is no trial.
func TestJudgeIsNotTried(t *testing.T) {
	var j Judge
	for i := range 5 * mostCalm {
		if got := j.Look(1, 100*ms, 40*ms, 60*ms); got != (i >= shortLooks-1) {
			t.Fatalf("%v at look %d", got, i)
		}
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(200, func() {
		sampler.last, sampler.switches = time.Now().Add(-time.Second), 0 // measures in full
		Sample()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
