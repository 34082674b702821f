package awake

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

// A judge looks when looks are due, and is late as a test says.
type judge struct {
	*Count
	now time.Duration
}

// until looks, late each time, until the count is over, and returns the time.
func (j *judge) until(t *testing.T, late time.Duration) time.Duration {
	t.Helper()
	for range 100_000 {
		j.now += j.Next() + late
		if j.Look(j.now) {
			return j.now
		}
	}
	t.Fatal("it is never over")
	return 0
}

var limits = []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, time.Minute, time.Hour}

// TestExact: a process that runs has the limit, and a restart begins it anew.
func TestExact(t *testing.T) {
	for _, limit := range limits {
		j := judge{NewCount(limit, 0, 7), 7}
		if at := j.until(t, 0); at != limit+7 {
			t.Errorf("%v are over after %v", limit, at-7)
		}
		j.Restart(j.now)
		began := j.now
		if at := j.until(t, 0); at != began+limit {
			t.Errorf("%v after a restart are over after %v", limit, at-began)
		}
		if s := j.Paused(); s != "" {
			t.Errorf("it says %q", s)
		}
	}
	if c := NewCount(0, 0, 0); c.Next() != 0 || !c.Look(0) {
		t.Error("no time at all is not over at once")
	}
}

// TestPause stops the judge at every part of the limit, for any time: the other
// side has the time of an answer after it, and all that had not passed before but
// for one look.
func TestPause(t *testing.T) {
	for _, limit := range limits {
		for part := range time.Duration(50) {
			for _, pause := range []time.Duration{limit, 3 * limit, 1000 * limit} {
				if pause <= 2*leastMost {
					continue
				}
				j := judge{NewCount(limit, 0, 0), 0}
				over := false
				for !over && j.now+j.Next() < limit*part/50 {
					j.now += j.Next()
					over = j.Look(j.now)
				}
				if over {
					t.Fatalf("%v are over after %v", limit, j.now)
				}
				ran := j.now
				j.now += pause
				if j.Look(j.now) {
					t.Fatalf("%v are over right after a pause of %v after %v", limit, pause, ran)
				}
				woke := j.now
				most := max(limit/lookParts, leastMost)
				rest := j.until(t, 0) - woke
				if want := max(limit-ran-most, j.answer); rest != want {
					t.Fatalf("a limit of %v, paused for %v after %v, is over %v after that, not %v", limit, pause, ran, rest, want)
				}
				if s := j.Paused(); !strings.Contains(s, "did not run for") {
					t.Errorf("after a pause of %v it says %q", pause, s)
				}
			}
		}
	}
}

// TestTwoPauses: a second one while the other side has time for its answer gives
// that time again.
func TestTwoPauses(t *testing.T) {
	const limit = 10 * time.Second
	j := judge{NewCount(limit, 2*time.Second, 0), 0}
	for j.now < limit-time.Second {
		j.now += j.Next()
		j.Look(j.now)
	}
	for range 10 {
		j.now += time.Hour
		if j.Look(j.now) {
			t.Fatal("it is over after a pause")
		}
		for end := j.now + time.Second; j.now < end; {
			j.now += j.Next()
			if j.Look(j.now) {
				t.Fatal("it is over before an answer could come")
			}
		}
	}
	began := j.now
	if at := j.until(t, 0); at != began+time.Second {
		t.Errorf("it is over %v after the last pause and a second", at-began)
	}
}

// TestAlwaysLate: one that is late at each look judges in the end.
func TestAlwaysLate(t *testing.T) {
	for _, limit := range limits {
		most := max(limit/lookParts, leastMost)
		for _, late := range []time.Duration{most / 4, most, 3 * most} {
			j := judge{NewCount(limit, 0, 0), 0}
			at := j.until(t, late)
			if most := (limit + 2*j.answer) / (j.most / 2) * (j.most + late) * 2; at < limit || at > most {
				t.Errorf("%v, each look late by %v, are over after %v; at most %v", limit, late, at, most)
			}
		}
	}
}

// TestTimer: timers and contexts end after their limit, those that are stopped do
// not, and a jump of the clock is no reason to.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if <-After(3 * time.Second); time.Since(began) != 3*time.Second {
			t.Errorf("3s took %v", time.Since(began))
		}
		ctx, cancel := WithTimeout(context.Background(), time.Minute)
		defer cancel()
		child, cancelChild := context.WithCancel(ctx)
		defer cancelChild()
		if <-ctx.Done(); ctx.Err() != context.DeadlineExceeded || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
		}
		if <-child.Done(); !errors.Is(context.Cause(child), context.DeadlineExceeded) {
			t.Errorf("derived: %v", context.Cause(child))
		}
		if took := time.Since(began); took != 63*time.Second {
			t.Errorf("a minute took %v", took-3*time.Second)
		}
		early, cancel := WithTimeout(context.Background(), time.Minute)
		if cancel(); early.Err() != context.Canceled {
			t.Errorf("canceled: %v", early.Err())
		}
		over, stop := NewTimer(time.Second)
		if !stop() || stop() {
			t.Error("a timer is not stopped once")
		}
		time.Sleep(time.Minute)
		select {
		case <-over:
			t.Error("a stopped timer is over")
		default:
		}

		var jump atomic.Int64 // ns
		start0 := time.Now()
		fired := make(chan struct{})
		start(10*time.Second, func() time.Duration { return time.Since(start0) + time.Duration(jump.Load()) }, func() { close(fired) })
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		jump.Store(int64(time.Hour)) // as if all had been stopped
		if <-fired; time.Since(start0) < 9*time.Second || time.Since(start0) > 11*time.Second {
			t.Errorf("10s with a pause after 2 took %v without the pause", time.Since(start0))
		}
	})
}
