package gas

import (
	"context"
	"errors"
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// Future is the Future of a transfer that was begun: what PutNB and its kin return are its
// arguments, and an error of theirs is its own.
//
//	f, err := n.Future(p.PutSliceNB(n, src))
//
// The Handle belongs to the Future then. A Handle alone takes eight bytes and no place in a table;
// a Future has Then, Done, WaitContext and WaitAny.
func (n *Node) Future(h Handle, err error) (Future[struct{}], error) {
	if err != nil {
		return Future[struct{}]{}, err
	}
	s, i := n.calls.claim(nil, -1)
	s.transfer, s.h = true, h
	use := s.use()
	err = n.x.Notify(h, func() {
		n.calls.mu.Lock()
		if s.use() == use {
			n.answered(s)
		}
		n.calls.mu.Unlock()
	})
	if err != nil {
		n.calls.release(i)
		return Future[struct{}]{}, err
	}
	return Future[struct{}]{n: n, s: s, i: i, use: use}, nil
}

// WaitContext is Wait that gives up when ctx ends: the error then matches [context.Cause] of
// ctx, the call goes on, and the Future can be waited for again. One that is of no use any more
// gives its place back by Then with a function that does nothing. Where the conduit runs the
// ranks itself, as a simulator does, ctx is looked at only when something else wakes the rank.
func (f Future[R]) WaitContext(ctx context.Context) (r R, err error) {
	if err := f.taken(); err != nil {
		return r, err
	}
	if !f.s.ready() {
		gave, err := waitIn(f.n, ctx, f.s, conduits.Cond{Work: true, Lacking: func() int { return f.s.lacking(f.n) }, Ready: f.s.ready})
		switch {
		case gave:
			return r, err
		case err != nil:
			return r, f.gone(err)
		}
	}
	return f.take()
}

// Then has fn run with the result, as Node.Defer would, when that has arrived. The Future is
// taken by this. fn is not run if the job fails first.
func (f Future[R]) Then(fn func(n *Node, r R, err error)) error {
	c, n := f.n.calls, f.n
	c.mu.Lock()
	if err := f.taken(); err != nil {
		c.mu.Unlock()
		return err
	}
	conc.Release32(&f.s.isFollowed, 1)
	c.sent.Add(1)
	n.work.deferred.Add(1) // until n.deferred has run it
	follow := func() {
		n.deferred(func(n *Node) {
			r, err := f.take()
			fn(n, r, err)
		})
	}
	if f.s.ready() {
		c.mu.Unlock()
		n.putOff(follow)
		return nil
	}
	f.s.then = follow
	c.mu.Unlock()
	return nil
}

// WaitAll waits for all of fs and returns their results in order; the error joins theirs.
func WaitAll[R any](fs ...Future[R]) ([]R, error) {
	rs, all := make([]R, len(fs)), make([]error, len(fs))
	for i, f := range fs {
		rs[i], all[i] = f.Wait()
	}
	return rs, errors.Join(all...)
}

// WaitAny waits until one of fs has its result, or will have none because its rank has left,
// and returns its place, result and error, having taken it; the others stay. All are of one rank's
// calls, and none has been taken; there is at least one. If they are at fault, or the job
// has failed, the place is -1.
func WaitAny[R any](fs ...Future[R]) (i int, r R, err error) {
	if len(fs) == 0 {
		return -1, r, errs.BadArg("gas: WaitAny of no Future")
	}
	return waitAny(fs[0].n, fs)
}

// waitAny is WaitAny by n, whose context may end it.
func waitAny[R any](n *Node, fs []Future[R]) (i int, r R, err error) {
	for k, f := range fs {
		if err := f.taken(); err != nil {
			return -1, r, fmt.Errorf("gas: WaitAny, Future %d of %d: %w", k, len(fs), err)
		}
		if f.n.whole != n.whole {
			return -1, r, errs.BadArg("gas: WaitAny of Futures of ranks %d and %d", n.rank, f.n.rank)
		}
	}
	i = -1
	any := func() bool {
		for k, f := range fs {
			if f.s.ready() {
				i = k
				return true
			}
		}
		return false
	}
	left := -1
	err = waitFor(n, anyOf{len(fs), fs[0].s}, conduits.Cond{Work: true, Ready: any, Lacking: func() int {
		for k, f := range fs {
			if r := f.s.lacking(n); r >= 0 {
				left = k
				return r
			}
		}
		return -1
	}})
	switch {
	case err == nil:
		r, err = fs[i].take()
		return i, r, err
	case left >= 0:
		return left, r, fs[left].gone(err)
	}
	return -1, r, err
}

// lacking is the rank that has left, without which there will be no result; -1 if there is
// none.
func (s *slot) lacking(n *Node) int {
	switch {
	case s.coll != nil:
		return s.coll.h.Lacking()
	case s.transfer:
		return -1
	case n.ep.Left(s.dst) && !s.ready():
		return s.dst
	}
	return -1
}

// anyOf describes what WaitAny waits for.
type anyOf struct {
	count int
	first *slot
}

func (a anyOf) Blocked() string {
	return fmt.Sprintf("any of %d calls, the first a %s", a.count, a.first.Blocked())
}
