package sim

import (
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
)

// notes keeps what is written to messages, and tells when something has been.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
	any  atomic.Bool
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Write(b)
	n.any.Store(true)
	return len(b), nil
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// overseenOften has the overseer look often, and keeps what it says.
func overseenOften(t *testing.T, silent, alone int) *notes {
	n := &notes{}
	was, to := overseen, messages
	overseen, messages = oversight{time.Millisecond, silent, alone}, n
	t.Cleanup(func() { overseen, messages = was, to })
	return n
}

// spinInVain is the place that the report has to name.
//
//go:noinline
func spinInVain(look func() bool) {
	for end := time.Now().Add(time.Minute); !look() && time.Now().Before(end); {
	}
}

// TestStandstill has a rank wait without giving the processor back, in all the ways
// that there are: the report names it and the place.
func TestStandstill(t *testing.T) {
	for spinner, look := range []func(e *Endpoint){
		func(*Endpoint) {},              // a variable
		func(e *Endpoint) { e.Now() },   // the clock
		func(e *Endpoint) { e.Views() }, // the segment
	} {
		t.Run(itoa(spinner), func(t *testing.T) {
			n := overseenOften(t, 200, math.MaxInt)
			j := mustNew(t, 3, Config{})
			conduits.Run(j.Endpoints(), func(i int) {
				e := j.Endpoint(i)
				if err := e.Attach(conduits.AttachConfig{Size: 4096, Receiver: &sink{}}); err != nil {
					t.Error(err)
				}
				if i == spinner {
					spinInVain(func() bool {
						look(e)
						return n.any.Load()
					})
				}
			})
			if s := n.String(); !strings.Contains(s, "rank "+itoa(spinner)+" has run for") || !strings.Contains(s, "sim.spinInVain") || !strings.Contains(s, "WaitUntil") {
				t.Errorf("the overseer said %q", s)
			}
		})
	}
}

// TestAlone has one rank ask again and again for what does not change, while the
// other waits for it.
func TestAlone(t *testing.T) {
	n := overseenOften(t, math.MaxInt, 5)
	j := mustNew(t, 2, Config{})
	over := false
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		if err := e.Attach(conduits.AttachConfig{Size: 4096, Receiver: &sink{}}); err != nil {
			t.Error(err)
		}
		if i == 1 {
			_ = conduits.Wait(e, nil, func() bool { return over })
			return
		}
		for end := time.Now().Add(time.Minute); !n.any.Load() && time.Now().Before(end); {
			e.schedulePulse()
		}
		over = true
		e.Wake(1)
	})
	if s := n.String(); !strings.Contains(s, "only rank 0 has run") || !strings.Contains(s, "rank 1: waiting for something") {
		t.Errorf("the overseer said %q", s)
	}
}

// schedulePulse has something happen, and lets it.
func (e *Endpoint) schedulePulse() {
	e.j.schedule(e.clock, evCredit, uint64(e.rank))
	e.Poll()
}

// TestPollInVain ends a job in which one rank polls and all others wait.
func TestPollInVain(t *testing.T) {
	p := Extoll()
	p.Poll = Millisecond
	j := mustNew(t, 2, Config{Profile: &p})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		if i == 1 {
			if err := conduits.Wait(e, nil, never); err == nil {
				t.Error("no failure")
			}
			return
		}
		for e.Err() == nil {
			e.Poll()
		}
		var d *DeadlockError
		if err := e.Err(); !errors.As(err, &d) || !strings.Contains(err.Error(), "rank 0: polls and finds nothing, for 10") || !strings.Contains(err.Error(), "rank 1: waiting") {
			t.Error(err)
		}
	})
}

// TestAskedFromOutside has a goroutine that the job does not run, as that which looks for standstills, ask for
// counts and waits all along: while ranks send and sleep, and while one computes for longer than a question waits.
// The race detector sees what is read unguarded.
func TestAskedFromOutside(t *testing.T) {
	const ranks, rounds = 3, 200
	j := mustNew(t, ranks, Config{})
	var sent atomic.Uint64 // by rank 0, as others see it
	var computes, seen, looked, over atomic.Bool
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for !over.Load() {
			computing := computes.Load()
			for r := range ranks {
				var s conduits.Stats
				j.Endpoint(r).Stats(&s)
				if n := s.Sent[conduits.Request]; r == 0 {
					sent.Store(n)
				} else if n != 0 {
					t.Errorf("rank %d has sent %d", r, n)
				}
				waits := len(j.Endpoint(r).Waiting())
				if r%2 == 1 { // of all, which the rank that computes is left out of
					j.Endpoint(r).Look([]int{0, 1, 2}, func(i int, l []conduits.Blocked) {
						if i == 0 && computing && computes.Load() {
							t.Errorf("rank 0 computes and is looked at")
						}
						if i == 2 && computing && len(l) == 1 && l[0].Blocked() != "" {
							looked.Store(true)
						}
					})
				}
				if r == 0 && computing && computes.Load() && waits != 0 {
					t.Errorf("rank 0 computes and waits for %d things", waits)
				}
				if r == 2 && computing && waits == 1 {
					seen.Store(true)
				}
			}
		}
	}()
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		s := &sink{}
		if err := e.Attach(conduits.AttachConfig{Size: 4096, Receiver: s}); err != nil {
			t.Error(err)
		}
		if i != 0 {
			if err := conduits.Wait(e, nil, func() bool { return s.messages == rounds }); err != nil {
				t.Error(err)
			}
			return
		}
		for n := range rounds {
			for dst := 1; dst < ranks; dst++ {
				if err := conduits.Wait(e, nil, func() bool { return e.Send(dst, conduits.Request, 0, nil) == conduits.Ready }); err != nil {
					t.Error(err)
				}
			}
			if n == rounds/2 {
				computes.Store(true)
				for end := time.Now().Add(time.Minute); !(seen.Load() && looked.Load()) && time.Now().Before(end); {
				}
				computes.Store(false)
			}
		}
	})
	over.Store(true)
	<-asked
	var s conduits.Stats
	if j.Endpoint(0).Stats(&s); !seen.Load() || !looked.Load() || s.Sent[conduits.Request] != (ranks-1)*rounds || sent.Load() > (ranks-1)*rounds {
		t.Errorf("rank 2 was seen to wait: %v, %v; rank 0 has sent %d, and %d as seen before", seen.Load(), looked.Load(), s.Sent[conduits.Request], sent.Load())
	}
}
