package conduits

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/job/live"
)

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
	// Interrupt is Fail for any goroutine, where Fail is for what Run and Go started. It may
	// take effect later, and takes none if the job ends before.
	Interrupt(err error)
	// Sleep has the calling thread do nothing for d; it answers no peer meanwhile.
	Sleep(d time.Duration)
}

// Sleep has the calling thread do nothing for d of ep's clock. It answers messages meanwhile, but where the conduit has
// other ranks run.
func Sleep(ep Endpoint, d time.Duration) {
	if r, ok := As[Runner](ep); ok {
		r.Sleep(d)
		return
	}
	for end := ep.Now() + d; ; {
		ep.Poll()
		left := end - ep.Now()
		if left <= 0 {
			return
		}
		time.Sleep(min(left, time.Millisecond))
	}
}

// Run calls rank(i) for each of eps at the same time and returns when all calls
// have returned: on goroutines, unless the conduit runs its ranks itself. eps
// are endpoints of one job in this process.
func Run(eps []Endpoint, rank func(i int)) {
	if len(eps) == 0 {
		return
	}
	j := &live.Job{Waiting: func() string { return describe(eps) }}
	live.Add(j)
	defer live.Remove(j)
	if r, ok := As[Runner](eps[0]); ok {
		r.RunRanks(eps, rank)
		return
	}
	var wg sync.WaitGroup
	for i := range eps {
		wg.Go(func() { rank(i) })
	}
	wg.Wait()
}

// mostDescribed is how many ranks describe names.
const mostDescribed = 64

// describe lists the reasons for which the ranks of eps wait.
func describe(eps []Endpoint) string {
	var b strings.Builder
	for r, ep := range eps {
		if r == mostDescribed {
			fmt.Fprintf(&b, "\tand %d more ranks\n", len(eps)-r)
			break
		}
		var l []string
		for _, p := range ep.Waiting() {
			if what := p.Blocked(); what != "" {
				l = append(l, what)
			}
		}
		if len(l) == 0 {
			l = append(l, "is not parked")
		}
		fmt.Fprintf(&b, "\trank %d: %s\n", r, strings.Join(l, "; "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Go starts f as a further goroutine of ep's rank, however the conduit runs
// them. A goroutine waits for its end with [Wait], since a simulated rank
// that blocked in Go's own ways would block all others: f sets a flag and calls
// ep.Wake(ep.Rank()) at its end.
func Go(ep Endpoint, f func()) {
	if r, ok := As[Runner](ep); ok {
		r.GoRank(f)
		return
	}
	go f()
}

// Interrupt declares ep's rank failed because of err, as [Endpoint].Fail does, from
// a goroutine that need not be of a rank. ep must not be closed meanwhile, or before.
func Interrupt(ep Endpoint, err error) {
	if r, ok := As[Runner](ep); ok {
		r.Interrupt(err)
		return
	}
	ep.Fail(err)
}
