package conduits

import "sync"

// Runner is implemented by endpoints of conduits that decide themselves when
// which of their ranks runs, as a simulator in virtual time does. What runs a
// rank of such a conduit must have been started by Run or Go.
type Runner interface {
	// RunRanks calls rank(i) for each of eps, endpoints of the job that it is a
	// method of one of, and returns when all calls have returned or ended their
	// goroutine.
	RunRanks(eps []Endpoint, rank func(i int))
	// GoRank calls f as a further goroutine of this endpoint's rank and returns
	// at once. Legal inside rank and f of RunRanks and GoRank.
	GoRank(f func())
}

// Run calls rank(i) for each of eps at the same time and returns when all calls
// have returned: on goroutines, unless the conduit runs its ranks itself. eps
// are endpoints of one job in this process.
func Run(eps []Endpoint, rank func(i int)) {
	if len(eps) == 0 {
		return
	}
	if r, ok := eps[0].(Runner); ok {
		r.RunRanks(eps, rank)
		return
	}
	var wg sync.WaitGroup
	for i := range eps {
		wg.Go(func() { rank(i) })
	}
	wg.Wait()
}

// Go starts f as a further goroutine of ep's rank, however the conduit runs
// them. Whoever waits for its end does so with [Wait], since a simulated rank
// that blocked in Go's own ways would block all others: f sets a flag and calls
// ep.Wake(ep.Rank()) at its end.
func Go(ep Endpoint, f func()) {
	if r, ok := ep.(Runner); ok {
		r.GoRank(f)
		return
	}
	go f()
}
