package testjob

import (
	"errors"
	"time"

	"github.com/argon-go/argon/conduits"
)

// TB has the common methods of *testing.T, *testing.B and *rapid.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Local runs body as n ranks of this process on a conduit, which the caller has
// imported, and returns their errors. body attaches, and waits for all others before it
// returns nil: its endpoint is closed then. A rank that has an error fails the job, unless
// it has failed.
func Local(t TB, conduit string, n int, body func(ep conduits.Endpoint) error) []error {
	t.Helper()
	c, err := conduits.Lookup(conduit)
	if err != nil {
		t.Fatalf("%v", err)
	}
	eps, err := c.Local(n, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		t.Fatalf("%s: %v", conduit, err)
	}
	all := make([]error, n)
	conduits.Run(eps, func(r int) {
		if all[r] = body(eps[r]); all[r] != nil && eps[r].Err() == nil {
			eps[r].Fail(all[r])
		}
		if err := eps[r].Close(); all[r] == nil {
			all[r] = err
		}
	})
	return all
}

// MustLocal is Local where no rank may have an error.
func MustLocal(t TB, conduit string, n int, body func(ep conduits.Endpoint) error) {
	t.Helper()
	if err := errors.Join(Local(t, conduit, n, body)...); err != nil {
		t.Fatalf("%d ranks on %s: %v", n, conduit, err)
	}
}

// Together has the ranks of a simulated job go on at one moment of its virtual time.
type Together struct {
	// Latency is the time of a message in the job's network.
	Latency time.Duration

	came int
}

// Wait waits until all ranks have called it so often. The last one calls last before others go on.
func (g *Together) Wait(ep conduits.Endpoint, last func() error) error {
	size := ep.Size()
	all := g.came/size*size + size
	if g.came++; g.came == all {
		if err := last(); err != nil {
			return err
		}
		start := ep.Now() + g.Latency // when the others have heard of it
		for r := range size {
			ep.Wake(r)
		}
		for ep.Now() < start {
			ep.Poll()
		}
	}
	return conduits.Wait(ep, nil, func() bool { return g.came >= all })
}
