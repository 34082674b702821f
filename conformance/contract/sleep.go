package contract

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
)

// Bed tells one rank when another has gone to sleep.
type Bed struct {
	ep   atomic.Pointer[conduits.Endpoint]
	mark atomic.Uint64 // how often it will have slept then
}

// Lie is called by the rank that is about to sleep.
func (b *Bed) Lie(ep conduits.Endpoint) {
	var s conduits.Stats
	ep.Stats(&s)
	b.ep.Store(&ep)
	b.mark.Store(s.Parks + 1)
}

// Watch polls until the other rank has lain down and sleeps; on a conduit that
// never sleeps, for some time.
func (b *Bed) Watch(poll func(), failed func() bool) {
	for b.mark.Load() == 0 && !failed() {
		poll()
	}
	for range 200_000 {
		var s conduits.Stats
		if (*b.ep.Load()).Stats(&s); s.Parks >= b.mark.Load() || failed() {
			break
		}
		poll()
	}
	b.mark.Store(0)
}

// Tardy is an endpoint with a change between a waiter's last look and its
// announcement, too early for the wake-up that follows the change to find it.
// It must be found by looking once more. It does not sleep.
type Tardy struct {
	conduits.Endpoint
	Change        func() // just before the announcement
	polled        bool   // since then
	Armed, Parked int
}

// Abilities are none.
func (e *Tardy) Abilities() conduits.Abilities { return conduits.Abilities{} }

// Idle is false: the endpoint does not spin.
func (e *Tardy) Idle(int) bool { return false }

// Arm makes the change first.
func (e *Tardy) Arm(b conduits.Blocked) conduits.Ticket {
	e.Change()
	e.Armed++
	e.polled = false
	return e.Endpoint.Arm(b)
}

// Poll is the endpoint's.
func (e *Tardy) Poll() int {
	e.polled = true
	return e.Endpoint.Poll()
}

// Park counts, and does not sleep.
func (e *Tardy) Park(t conduits.Ticket) {
	e.Parked++
	e.Disarm(t)
}
