package conduits

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
)

// Cond is the condition that ends a wait.
type Cond struct {
	// Ready reports whether it holds. It must be cheap and must not poll; it may have an effect
	// when it holds, since it is not called again then. It may be made true
	// by handlers, by other goroutines that call ep.Wake(ep.Rank()), or by peers'
	// direct accesses followed by a Wake of this rank.
	Ready func() bool
	// Lacking returns a rank that has left the job (Endpoint.Left) and without which Ready
	// will not hold, or -1; nil: there is none. It is called when there is nothing else to do,
	// without locks, and must not poll. What the rank did before it left counts: Ready is
	// looked at once more, and if it does not hold the error is a *PeerError that names the rank,
	// says what was waited for, and matches ErrClosed.
	Lacking func() int
	// Work has am.Messenger.WaitFor run am.Config.Work, too.
	Work bool
	// Away, unless nil, is called before and after that, with true and false: other
	// ranks learn that what they do for this wait will not be noticed meanwhile. If it returns
	// false before, nothing is run.
	Away func(gone bool) bool
}

// LackingRank is Cond.Lacking of what only rank can bring about.
func LackingRank(ep Endpoint, rank int) func() int {
	return func() int {
		if ep.Left(rank) {
			return rank
		}
		return -1
	}
}

// ErrGivenUp is the error of a wait of a layer above that its caller has stopped, while what it waits for may still come.
var ErrGivenUp = errors.New("given up")

// Wait is WaitFor of a Cond that is ready alone.
func Wait(ep Endpoint, b Blocked, ready func() bool) error {
	return WaitFor(ep, b, Cond{Ready: ready})
}

// WaitFor polls ep until c is ready: it spins, then yields, then parks, as the
// endpoint advises. b describes the wait; it may be nil. WaitFor returns the job's
// failure if c is not ready by then.
//
// Inside Receive nothing would arrive while WaitFor waits. If c is not ready at
// once there, WaitFor fails the job with the error that it returns.
func WaitFor(ep Endpoint, b Blocked, c Cond) error {
	if watched.Load() {
		if done, err := watchedWait(ep, b, c); done {
			return err
		}
	}
	for idle, busy, woken := 0, 0, 0; ; {
		if c.Ready() {
			return nil
		}
		// A caller that always finds something to run has to hear of a failure, too.
		if busy == 64 {
			if err := ep.Err(); err != nil {
				return err
			}
			busy = 0
		}
		if ep.Spin() > 0 {
			idle, woken = 0, 0
			busy++
			continue
		}
		if idle <= 0 && ep.Polling() {
			return waitInside(ep, b)
		}
		if ep.Idle(idle) {
			idle++
			continue
		}
		t := ep.Arm(b)
		// Look again now that arrivals are bound to wake us: what came between
		// the last look and Arm would otherwise be slept through.
		if c.Ready() {
			ep.Disarm(t)
			return nil
		}
		if ep.Poll() > 0 {
			ep.Disarm(t)
			idle, woken = 0, 0
			continue
		}
		if err := ep.Err(); err != nil {
			ep.Disarm(t)
			if c.Ready() { // made true by the goroutine that polled meanwhile
				return nil
			}
			return err
		}
		if c.Lacking != nil {
			if r := c.Lacking(); r >= 0 {
				ep.Disarm(t)
				if c.Ready() {
					return nil
				}
				if err := ep.Err(); err != nil { // which may be why it left
					return err
				}
				return HasLeft(ep, r, b)
			}
		}
		ep.Park(t)
		idle = -woken
		woken = min(2*woken+2, mostWoken)
	}
}

// Idling is what a goroutine waits for that gives no reason.
type Idling struct{}

// Blocked is not much of a reason.
func (Idling) Blocked() string { return "waiting for something to arrive" }

// mostWoken is how many empty polls more a caller makes before it sleeps again that was
// woken for nothing time and again. A peer's direct accesses wake whatever sleeps at their target, and
// each such wake-up takes the peer microseconds: a fetch-and-add of 12 ns took 26 beside a
// rank that went to sleep again at once.
const mostWoken = 128

// HasLeft is the error of a wait for rank, which has left the job; b says what was
// waited for and may be nil.
func HasLeft(ep Endpoint, rank int, b Blocked) error {
	what := "for it"
	if b != nil {
		what = "(" + b.Blocked() + ")"
	}
	return &PeerError{Rank: rank, Err: errs.Closed("it left the job while rank %d waits %s", ep.Rank(), what)}
}

// waitInside is the error of a wait by what runs inside Receive or Complete. It
// fails the job: what is waited for would never come, and others may wait for
// this rank.
func waitInside(ep Endpoint, b Blocked) error {
	what := "a condition"
	if b != nil {
		what = b.Blocked()
	}
	err := errs.BadArg("conduits: wait for %s inside Receive of rank %d: what runs there must not wait", what, ep.Rank())
	ep.Fail(err)
	return err
}

// Fence is a full fence of this processor: all earlier direct accesses of the calling
// goroutine come before all its later ones, as seen by every rank of the neighbourhood.
func Fence() {
	// A store-release before a load-acquire, which stay in order: on amd64 the store is
	// an exchange. An addition would not do on arm64 without LSE, where a later load may
	// come before its store.
	var x atomic.Uint32
	x.Store(1)
	x.Load()
}
