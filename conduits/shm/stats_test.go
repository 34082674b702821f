package shm

import (
	"testing"

	"github.com/argon-go/argon/conduits"
)

// rowsOf are e's statistics with those of peers, which must add up to the totals.
func rowsOf(t *testing.T, e *Endpoint) conduits.Stats {
	t.Helper()
	s := conduits.Stats{Peers: []conduits.PeerStats{}}
	e.Stats(&s)
	var sum conduits.Stats
	for i := range s.Peers {
		sum.Count(&s.Peers[i])
	}
	if sum.Sent != s.Sent || sum.Received != s.Received || sum.NoCredit != s.NoCredit || sum.Puts != s.Puts {
		t.Fatalf("rows add up to %+v, not to %+v", sum, s)
	}
	return s
}

// TestStatsOfPoller: rows and totals are of one moment while another goroutine polls, whichever was
// asked for before, and a handler has the newest.
func TestStatsOfPoller(t *testing.T) {
	eps := forms[0].open(t, 2, conduits.Config{})
	e := eps[0]
	handled := func() {}
	attach(t, eps, 0, func(int, *conduits.Message) { handled() })
	defer unwatched(eps)()
	poll := func(n int) {
		for range n {
			send(eps[1], 0, conduits.Request)
		}
		for range n {
			e.Poll()
		}
	}
	received := func(want int) {
		t.Helper()
		if s := rowsOf(t, e); s.Received[conduits.Request] != uint64(want) {
			t.Fatalf("%d messages received, want %d: %+v", s.Received[conduits.Request], want, s.Peers)
		}
	}
	poll(2)
	received(2)
	poll(1)
	var plain conduits.Stats
	e.Stats(&plain)
	held, leave, left := make(chan bool), make(chan bool), make(chan bool)
	go func() {
		e.lock.Lock()
		held <- true
		<-leave
		e.lock.Unlock()
		left <- true
	}()
	<-held
	received(2) // no rows have been seen since
	if again := (conduits.Stats{}); plain.Received[conduits.Request] != 3 {
		t.Fatalf("%+v", plain)
	} else if e.Stats(&again); again.Received != plain.Received {
		t.Fatalf("%+v after %+v", again, plain)
	}
	leave <- true
	<-left
	received(3)
	handled = func() { received(4) }
	poll(1)

	// Rows add up while another goroutine takes the lock again and again.
	handled = func() {}
	poll(1)
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				left <- true
				return
			default:
				e.lock.Lock()
				e.lock.Unlock() //nolint:staticcheck // the section is empty on purpose
			}
		}
	}()
	for range 100 {
		rowsOf(t, e)
	}
	stop <- true
	<-left
	received(5)
}
