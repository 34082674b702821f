package chaos

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Config says how much goes wrong. Probabilities are from 0 to 1; 0 means the
// default, negative means never. Of the numbers 0 means the default, too. The zero value does a moderate amount of
// everything but kill.
type Config struct {
	// Seed decides everything; 0 means conduits.Config.Seed of the job, if there
	// is one.
	Seed uint64

	Delay    float64 // that an arrived message is kept for some polls; default 0.3
	Late     float64 // that a completion is told later than it happens; default 0.3
	Defer    float64 // that a put, get, atomic or long request is performed by a later poll, and that one at once is not made; default 0.2
	NoCredit float64 // that a send has no credit although there is room; default 0.1
	Cancel   float64 // that a send reserves room, cancels and has no credit; default 0.02
	Split    float64 // that Send and SendPayload become Reserve and Commit; default 0.2
	Empty    float64 // that a poll keeps all that has arrived and runs nothing; default 0.1
	Wake     float64 // that Park returns at once; default 0.2
	Idle     float64 // that Idle answers the contrary; default 0.1

	// Patience is the most polls of its rank that anything is kept for; default 4.
	Patience int
	// Streak is how often in a row NoCredit, Empty, Wake and Idle may go wrong;
	// default 3.
	Streak int
	// Kept is the most messages of one class, the most completions (or one more)
	// and the most operations that wait at a rank; what is more is done as it
	// comes. Default 64.
	Kept int

	// HideNeighbours takes direct access to other ranks away, so that layers
	// use messages and RMA as they would on a network.
	HideNeighbours bool
	// Kill lets ranks die.
	Kill []Kill
}

// Kill lets a rank die: at its operation number After, counted from 1 over all
// of its calls that send, reserve, commit, move, poll or attach, the job hears
// of its failure and from then on the rank's own operations fail.
type Kill struct {
	Rank  int
	After uint64
}

// Calm is the Config that does nothing, to turn on kinds one by one.
func Calm() Config {
	return Config{Delay: -1, Late: -1, Defer: -1, NoCredit: -1, Cancel: -1, Split: -1, Empty: -1, Wake: -1, Idle: -1}
}

// EnsureDefaults fills in what is 0.
func (c *Config) EnsureDefaults() {
	for _, p := range []struct {
		p *float64
		d float64
	}{
		{&c.Delay, 0.3},
		{&c.Late, 0.3},
		{&c.Defer, 0.2},
		{&c.NoCredit, 0.1},
		{&c.Cancel, 0.02},
		{&c.Split, 0.2},
		{&c.Empty, 0.1},
		{&c.Wake, 0.2},
		{&c.Idle, 0.1},
	} {
		if *p.p == 0 {
			*p.p = p.d
		}
	}
	for _, n := range []struct {
		n *int
		d int
	}{{&c.Patience, 4}, {&c.Streak, 3}, {&c.Kept, 64}} {
		if *n.n == 0 {
			*n.n = n.d
		}
	}
}

// Validate returns all that is wrong with c for a job of size ranks, or nil.
func (c *Config) Validate(size int) error {
	var l []error
	for _, p := range []struct {
		name string
		p    float64
	}{
		{"Delay", c.Delay},
		{"Late", c.Late},
		{"Defer", c.Defer},
		{"NoCredit", c.NoCredit},
		{"Cancel", c.Cancel},
		{"Split", c.Split},
		{"Empty", c.Empty},
		{"Wake", c.Wake},
		{"Idle", c.Idle},
	} {
		if !(p.p <= 1) { // or not a number
			l = append(l, errs.BadArg("chaos: Config.%s is %v; a probability is at most 1", p.name, p.p))
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"Patience", c.Patience}, {"Streak", c.Streak}, {"Kept", c.Kept}} {
		if n.n < 0 {
			l = append(l, errs.BadArg("chaos: Config.%s is %d; it must not be negative", n.name, n.n))
		}
	}
	for _, k := range c.Kill {
		if k.Rank < 0 || k.Rank >= size || k.After == 0 {
			l = append(l, errs.BadArg("chaos: Config.Kill of rank %d at operation %d: ranks are 0 to %d, operations count from 1", k.Rank, k.After, size-1))
		}
	}
	return errors.Join(l...)
}

// Counts say how often an endpoint did what.
type Counts struct {
	Delayed   uint64 // messages kept
	Reordered uint64 // messages run before one of the same source and class that came earlier
	Late      uint64 // completions told later
	Deferred  uint64 // puts, gets, atomics and long requests performed later
	Refused   uint64 // accesses at once that were not made, as if they could not be
	NoCredit  uint64 // sends that had room and were told otherwise
	Cancelled uint64 // rooms reserved and given back for that
	Split     uint64 // sends made of Reserve and Commit
	Empty     uint64 // polls that kept all
	Woken     uint64 // parks that returned at once for no reason
	Idle      uint64 // contrary answers of Idle
	Killed    uint64 // 1 once the rank has been killed
	Ops       uint64 // operations, as Kill counts them
}

// counters are Counts as they are kept.
type counters struct {
	delayed, reordered, late, deferred, refused, noCredit, cancelled, split, empty, woken, idle, killed, ops, faults atomic.Uint64
}

func (c *counters) counts() Counts {
	return Counts{
		Delayed: c.delayed.Load(), Reordered: c.reordered.Load(), Late: c.late.Load(), Deferred: c.deferred.Load(), Refused: c.refused.Load(),
		NoCredit: c.noCredit.Load(), Cancelled: c.cancelled.Load(), Split: c.split.Load(), Empty: c.empty.Load(),
		Woken: c.woken.Load(), Idle: c.idle.Load(), Killed: c.killed.Load(), Ops: c.ops.Load(),
	}
}

// Done counts what was done to ep so far; ok is false if ep is none of this
// package's.
func Done(ep conduits.Endpoint) (c Counts, ok bool) {
	e, ok := ep.(*endpoint)
	if !ok {
		return c, false
	}
	return e.did.counts(), true
}
