package gas

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/extended"
)

// With is a view of n whose waits for what other ranks do give up when ctx ends, with an error that matches
// [context.Cause] of ctx: the rank and the memory are the same, and the view is used as n is, by
//
//	err := l.Lock(n.With(ctx))
//
// What has come is taken, and what need not be waited for succeeds, although ctx may have ended. What is given up is this:
//
//   - [Node.Barrier]: the wait alone. The rank has come, the others do not notice and go on. Its next
//     barrier begins when [Node.BarrierWait] or BarrierTry has ended this one, by whatever view.
//   - [Node.BarrierWait], [Node.Wait], [WaitUntil] and its kin: nothing has changed.
//   - [Lock.Lock], [Lock.RLock]: the request. The lock is not held, and passes it over.
//   - [Future.Wait] of what the view has begun, [WaitAny] of such: the Future can be waited for again.
//   - [Func.Call]: the result. The function runs nevertheless.
//
// All others end as without ctx. Transfers (Put, Get, Sync, atomics) need no other rank's program. A rank that left a collective call
// halfway would have all others wait for ever: what ends with NB begins one, and its Future gives up, of a Team's
// barrier [BarrierNB]. Where the conduit runs the ranks itself, as a simulator does, ctx is looked at only when something else wakes the rank.
func (n *Node) With(ctx context.Context) *Node {
	v := *n
	v.ctx = ctx
	if ctx.Done() == nil {
		v.ctx = nil
	}
	return &v
}

// Context is a context that ends with the rank's part in the job, for what the program calls besides: its cause is the
// job's failure if that came first: within a tenth of a second where the job shares memory; over a network the rank hears of it when it
// polls or waits, or by Config.Progress. It has the values and the deadline of [RunContext]'s. On a conduit that
// runs the ranks itself, as a simulator does, it ends when the function has returned.
func (n *Node) Context() context.Context {
	contexts.Lock()
	defer contexts.Unlock()
	c := n.context
	if c == nil {
		c = new(rankContext)
		c.Context, c.cancel = context.WithCancelCause(n.run.ctx)
		n.context = c
		if n.stop.Load() {
			c.cancel(errLeft)
		} else {
			c.unwatch = boot.OnFailure(n.main.ep, c.cancel)
		}
	}
	return c
}

// rankContext is what Context returns.
type rankContext struct {
	context.Context
	cancel  context.CancelCauseFunc
	unwatch func() // ends what waits for a failure; nil if nothing does
}

// contexts guards whole.context of all ranks.
var contexts sync.Mutex

// endContext ends what Context has returned, or will return.
func endContext(n *Node) {
	contexts.Lock()
	defer contexts.Unlock()
	if c := n.context; c != nil && c.unwatch != nil {
		c.unwatch()
		err := n.ep.Err()
		if err == nil {
			err = errLeft
		}
		c.cancel(err)
	}
}

// waitFor is am.Messenger.WaitFor that n's context ends.
func waitFor(n *Node, b conduits.Blocked, c conduits.Cond) error {
	if n.ctx == nil {
		return n.e.WaitFor(b, c)
	}
	_, err := waitIn(n, n.ctx, b, c)
	return err
}

// waitIn is waitFor for a context, and reports whether that has ended the wait.
func waitIn(n *Node, ctx context.Context, b conduits.Blocked, c conduits.Cond) (gave bool, err error) {
	defer wakeAt(n, ctx)()
	met, ready := false, c.Ready
	c.Ready = func() bool {
		met = met || ready()
		return met || ctx.Err() != nil
	}
	if ctx.Err() != nil && !ready() { // what has come is taken, also by one that tries again and again
		n.Poll()
	}
	if err := n.e.WaitFor(b, c); err != nil || met {
		return false, err
	}
	return true, givenUp(ctx, b.Blocked())
}

// wakeAt has waits of the rank look again when ctx ends, until the function that it returns is called.
func wakeAt(n *Node, ctx context.Context) func() {
	if _, simulated := conduits.As[conduits.Runner](n.ep); simulated {
		return func() {}
	}
	stop := context.AfterFunc(ctx, func() { n.ep.Wake(n.rank) })
	return func() { stop() }
}

// endOf reports whether ctx has ended.
func endOf(ctx context.Context) func() bool { return func() bool { return ctx.Err() != nil } }

// givenUp is the error of a wait that ctx has ended.
func givenUp(ctx context.Context, what string) error {
	return fmt.Errorf("gas: %s: %w", what, context.Cause(ctx))
}

// barrierWait is BarrierWait of a view.
func barrierWait(n *Node) error {
	defer wakeAt(n, n.ctx)()
	err := n.b.WaitUnless(barrierID, 0, endOf(n.ctx))
	if err == conduits.ErrGivenUp {
		return givenUp(n.ctx, "barrier, which this rank has come to")
	}
	return err
}

// take takes l by take, and gives up when the context of a view ends.
func (l Lock) take(n *Node, take func(extended.Lock) error) error {
	x := n.x.LockAt(l.word.Rank(), l.word.NLA())
	defer wakeAt(n, n.ctx)()
	err := take(x.Unless(endOf(n.ctx)))
	if errors.Is(err, conduits.ErrGivenUp) {
		return givenUp(n.ctx, "lock "+x.String())
	}
	return l.failed(err)
}
