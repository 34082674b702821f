package conduittest

import "github.com/argon-go/argon/conduits"

// moreChecks are of what package conduits itself does with an endpoint.
var moreChecks = []check{
	{name: "wait looks again", run: checkWaitLooksAgain},
}

// tardy is an endpoint with a change between the last look of who waits and its
// announcement, too early for the wake-up that follows the change to find it.
// It must be found by looking once more. It does not sleep.
type tardy struct {
	conduits.Endpoint
	change        func() // just before the announcement
	polled        bool   // since then
	armed, parked int
}

func (e *tardy) Idle(int) bool { return false }

func (e *tardy) Arm(b conduits.Blocked) conduits.Ticket {
	e.change()
	e.armed++
	e.polled = false
	return e.Endpoint.Arm(b)
}

func (e *tardy) Poll() int {
	e.polled = true
	return e.Endpoint.Poll()
}

func (e *tardy) Park(t conduits.Ticket) {
	e.parked++
	e.Disarm(t)
}

// failing is an endpoint of a job that has failed.
type failing struct{ conduits.Endpoint }

func (f failing) Err() error { return &conduits.PeerError{Rank: 0, Err: conduits.ErrClosed} }

// checkWaitLooksAgain: Wait sleeps through nothing that happens in the last
// moment before it announces itself: neither a condition that comes true, nor an
// arrival, nor a failure of the job.
func checkWaitLooksAgain(c *ctx) {
	c.run(1, conduits.Config{}, func(p *peer) {
		p.attach(0, &sink{})
		held := false
		e := &tardy{Endpoint: p.ep, change: func() { held = true }}
		p.must(conduits.Wait(e, nil, func() bool { return held }))
		if e.armed != 1 || e.parked != 0 {
			p.Fatalf("Wait armed %d times and parked %d times for a condition that came true before it armed", e.armed, e.parked)
		}
		e = &tardy{Endpoint: p.ep, change: func() {}}
		p.must(conduits.Wait(e, nil, func() bool { return e.parked > 0 }))
		if !e.polled {
			p.Fatalf("Wait parked without having polled since it armed")
		}
		e = &tardy{Endpoint: failing{p.ep}, change: func() {}}
		e.change = func() {
			if e.armed > 3 {
				p.Fatalf("Wait goes on in a job that has failed")
			}
		}
		if err := conduits.Wait(e, nil, func() bool { return false }); err == nil || e.parked != 0 {
			p.Fatalf("Wait parked %d times and returned %v in a job that has failed", e.parked, err)
		}
	})
}
