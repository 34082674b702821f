package sim

import "github.com/argon-go/argon/conduits"

var _ conduits.Deliverer = (*Endpoint)(nil)

// Deliver runs f as a handler. No other rank runs before f waits, and from then on
// no other goroutine of this rank polls.
func (e *Endpoint) Deliver(f func()) bool {
	th := e.thread("deliver")
	if e.poller != nil || e.closed {
		return false
	}
	e.poller = th
	f()
	e.poller = nil
	if e.sleepers > 0 {
		e.notify(false)
	}
	return true
}
