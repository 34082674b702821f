package loop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestConformance(t *testing.T) { conformance.Run(t, loop.Local) }

// TestRough: package adapt and the layers keep their promises on a Transport that keeps
// no more than its own.
func TestRough(t *testing.T) {
	testmain.Long(t)
	conformance.Run(t, adapt.Local("rough", chaos.Open(loop.Open, chaos.TransportConfig{})))
}

// TestWait: an event that meets no goroutine in Wait ends the next one, once; time does
// otherwise.
func TestWait(t *testing.T) {
	ts, err := loop.Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const never = time.Hour
	ts[0].Kick()
	ts[0].Kick()
	ts[0].Wait(ts[0].Now() + never)
	until := ts[0].Now() + time.Millisecond
	ts[0].Wait(until)
	if now := ts[0].Now(); now < until {
		t.Errorf("a wait until %v ended at %v, without an event", until, now)
	}
	ts[1].Fail(0, errors.New("the disk is full"))
	for _, r := range ts {
		r.Wait(r.Now() + never)
	}
}

// TestRoom: a queue has an end, and room that returns is an event of a sender that
// was refused.
func TestRoom(t *testing.T) {
	eps, err := loop.Open(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(heard)
	attached := make(chan error)
	for _, e := range eps {
		go func() {
			_, err := e.Attach(got, 0, segment.RightsAll)
			attached <- err
		}()
	}
	for range eps {
		if err := <-attached; err != nil {
			t.Fatal(err)
		}
	}
	n := uint32(0)
	for ; eps[0].Send(1, []uint32{n}, nil) == conduits.Ready; n++ {
		if n > 1<<20 {
			t.Fatal("no end of room")
		}
	}
	eps[1].Poll()
	eps[0].Wait(eps[0].Now() + time.Hour)
	if st := eps[0].Send(1, []uint32{n}, nil); st != conduits.Ready {
		t.Errorf("status %d when there is room", st)
	}
	eps[1].Poll()
	for i := range n + 1 {
		if got[i] != 1 {
			t.Errorf("message %d was delivered %d times", i, got[i])
		}
	}
}

// heard counts messages by their first word.
type heard map[uint32]int

func (h heard) Deliver(_ int, words []uint32, _ []byte) { h[words[0]]++ }
func (heard) Complete(uint64, error)                    {}
func (heard) Left(int)                                  {}

func (heard) Access(int, segment.NLA, uint64, segment.Rights, func([]byte)) error { return nil }
