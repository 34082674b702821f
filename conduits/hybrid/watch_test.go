package hybrid

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
)

// told is a conduit between hosts that tells who parks in it.
type told struct {
	*udp.Endpoint
	parks chan conduits.Ticket
}

func (f *told) Park(t conduits.Ticket) {
	f.parks <- t
	f.Endpoint.Park(t)
}

// none is a Receiver.
type none struct{}

func (none) Receive(*conduits.Message)                      {}
func (none) Complete(uint64, conduits.Event, uint64, error) {}

// TestWatcherIsRenewed has a rank park, be woken by a neighbour, and park again,
// over and over: the watcher must park anew each time, for only then does it know
// when what this rank has sent meanwhile is to be sent again.
func TestWatcherIsRenewed(t *testing.T) {
	const n = 3
	firsts := []int{0, 2}
	near, err := shm.LocalPart(2, shm.Part{Size: n, Conduit: Name, Outside: true}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := shm.LocalPart(1, shm.Part{First: 2, Size: n, Conduit: Name, Outside: true}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	far, err := udp.Local(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]conduits.Endpoint, n)
	parks := make(chan conduits.Ticket)
	for r, e := range append(near, other...) {
		var f Remote = far[r].(*udp.Endpoint)
		if r == 0 {
			f = &told{far[r].(*udp.Endpoint), parks}
		}
		if eps[r], err = New(Config{Near: e, Far: f, Neighbourhoods: firsts, Limits: least(e.Limits(), f.Limits())}); err != nil {
			t.Fatal(err)
		}
	}
	attached := make(chan struct{})
	go func() { // those who attach park, too
		for {
			select {
			case <-parks:
			case <-attached:
				return
			}
		}
	}()
	conduits.Run(eps, func(i int) {
		if err := eps[i].Attach(conduits.AttachConfig{Receiver: none{}}); err != nil {
			t.Error(err)
		}
	})
	attached <- struct{}{}
	for range 50 {
		parked := make(chan struct{})
		go func() {
			defer close(parked)
			tk := eps[0].Arm(nil)
			eps[0].Poll()
			eps[0].Park(tk)
		}()
		<-parks // or the test hangs
		eps[1].Wake(0)
		for done := false; !done; {
			select {
			case <-parks: // the watcher was told to go before it had begun
			case <-parked:
				done = true
			}
		}
	}
	go func() {
		for range parks {
		}
	}()
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
