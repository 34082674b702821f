package onesided

import (
	"fmt"
	"math"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Size is the size of a variable, bytes.
const Size = 8

// The states of table 7-6.
const (
	completed = iota
	started
	posted
	idle
)

// Sync is one rank's synchronization.
type Sync struct {
	x *extended.Endpoint
	e *am.Endpoint

	mu   sync.Mutex
	held map[place]int32 // what was added to each lock that this rank holds; 0 while it waits
	open map[place]bool  // epochs that this rank has started
}

// place is a variable.
type place struct {
	rank int
	at   segment.NLA
}

func (p place) String() string { return fmt.Sprintf("%v of rank %d", p.at, p.rank) }

// New makes the synchronization of a rank with these endpoints, which are bound.
func New(x *extended.Endpoint, e *am.Endpoint) *Sync {
	return &Sync{x: x, e: e, held: map[place]int32{}, open: map[place]bool{}}
}

// exclusive is n+1.
func (s *Sync) exclusive() int32 { return int32(s.e.Size() + 1) }

// Lock takes the lock at address at of rank exclusively: no other rank holds it then.
func (s *Sync) Lock(rank int, at segment.NLA) error {
	_, err := s.lock("Lock", place{rank, at}, 0, s.exclusive(), true)
	return err
}

// LockShared takes the lock shared: other ranks may hold it so.
func (s *Sync) LockShared(rank int, at segment.NLA) error {
	_, err := s.lock("LockShared", place{rank, at}, int32(s.e.Size()), 1, true)
	return err
}

// TryLock is Lock by one step, which says whether it has taken the lock.
func (s *Sync) TryLock(rank int, at segment.NLA) (bool, error) {
	return s.lock("TryLock", place{rank, at}, 0, s.exclusive(), false)
}

// TryLockShared is LockShared by one step, which says whether it has taken the lock.
func (s *Sync) TryLockShared(rank int, at segment.NLA) (bool, error) {
	return s.lock("TryLockShared", place{rank, at}, int32(s.e.Size()), 1, false)
}

// Unlock gives back what Lock has taken.
func (s *Sync) Unlock(rank int, at segment.NLA) error {
	return s.unlock("Unlock", place{rank, at}, s.exclusive())
}

// UnlockShared gives back what LockShared has taken.
func (s *Sync) UnlockShared(rank int, at segment.NLA) error {
	return s.unlock("UnlockShared", place{rank, at}, 1)
}

func (s *Sync) lock(op string, p place, compare, add int32, wait bool) (bool, error) {
	s.mu.Lock()
	if had, ok := s.held[p]; ok {
		s.mu.Unlock()
		return false, errs.BadArg("onesided: %s of %v, which rank %d %s", op, p, s.e.Rank(), how(had))
	}
	s.held[p] = 0
	s.mu.Unlock()
	_, ok, err := s.step(op, p, compare, add, wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		s.held[p] = add
	} else {
		delete(s.held, p)
	}
	return ok, err
}

func how(add int32) string {
	switch add {
	case 0:
		return "waits for"
	case 1:
		return "holds shared"
	}
	return "holds exclusively"
}

func (s *Sync) unlock(op string, p place, add int32) error {
	s.mu.Lock()
	had, ok := s.held[p]
	if ok && had == add {
		delete(s.held, p)
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return errs.BadArg("onesided: %s of %v, which rank %d does not hold", op, p, s.e.Rank())
	case had != add:
		return errs.BadArg("onesided: %s of %v, which rank %d %s", op, p, s.e.Rank(), how(had))
	}
	_, _, err := s.step(op, p, math.MaxInt32, -add, false)
	return err
}

// Reset makes the word at address at of this rank an epoch variable, idle. It comes before any
// use of that, on any rank.
func (s *Sync) Reset(at segment.NLA) error {
	return s.x.StoreUint64(s.e.Rank(), at, idle)
}

// Post opens the variable at address at of this rank, which is idle, for an origin's Start.
func (s *Sync) Post(at segment.NLA) error {
	p := place{s.e.Rank(), at}
	if v, err := s.x.LoadUint64(p.rank, at); err != nil || v != idle {
		return errOr(err, errs.BadArg("onesided: Post of %v, which is %d and not %d: it was not waited for", p, v, idle))
	}
	return s.advance("Post", p, idle, -1, posted)
}

// Start begins an epoch to rank, and waits until that has posted it.
func (s *Sync) Start(rank int, at segment.NLA) error {
	p := place{rank, at}
	s.mu.Lock()
	again := s.open[p]
	s.open[p] = true
	s.mu.Unlock()
	if again {
		return errs.BadArg("onesided: Start of %v, which rank %d has started", p, s.e.Rank())
	}
	err := s.untilPosted(p)
	if err == nil {
		err = s.advance("Start", p, posted, -1, started)
	}
	if err != nil {
		s.forget(p)
	}
	return err
}

// untilPosted waits until p is posted. The comparison of table 7-5 alone would let a start pass
// that comes after a complete and before its wait, for 0 is less than 2.
func (s *Sync) untilPosted(p place) error {
	return s.retry("Start", p, func() (bool, error) {
		v, err := s.x.LoadUint64(p.rank, p.at)
		return v == posted, err
	})
}

// Complete ends this rank's epoch to rank: its puts and atomics that are complete are seen
// there after Wait.
func (s *Sync) Complete(rank int, at segment.NLA) error {
	p := place{rank, at}
	if !s.forget(p) {
		return errs.BadArg("onesided: Complete of %v, which rank %d has not started", p, s.e.Rank())
	}
	err := s.advance("Complete", p, started, -1, completed)
	s.x.Wake(rank)
	return err
}

// forget notes that this rank has no epoch open by p, and says whether it had.
func (s *Sync) forget(p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.open[p]
	delete(s.open, p)
	return had
}

// Wait waits until the origin has completed the epoch that this rank has posted.
func (s *Sync) Wait(at segment.NLA) error {
	if v, err := s.x.LoadUint64(s.e.Rank(), at); err == nil && v == idle {
		return errs.BadArg("onesided: Wait of %v, which is not posted", place{s.e.Rank(), at})
	}
	if _, err := s.x.WaitUntil(at, extended.Eq, completed); err != nil {
		return err
	}
	return s.advance("Wait", place{s.e.Rank(), at}, completed, idle, idle)
}

// advance does a step of an epoch, after which the variable is next. Another value is that of
// a variable that had taken the step already, which the comparison lets pass.
func (s *Sync) advance(op string, p place, compare, add, next int32) error {
	now, _, err := s.step(op, p, compare, add, true)
	if err != nil || now == next {
		return err
	}
	_, _, err = s.step(op, p, math.MaxInt32, -add, false)
	return errOr(err, errs.BadArg("onesided: %s of %v, which was %d before and not %d: another rank uses it", op, p, now-add, compare))
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// step is one fetch-compare-and-add, again and again if it is to wait.
func (s *Sync) step(op string, p place, compare, add int32, wait bool) (now int32, ok bool, err error) {
	err = s.retry(op, p, func() (bool, error) {
		var err error
		now, ok, err = s.x.FetchCompareAddInt32(p.rank, p.at, compare, add)
		return ok || !wait, err
	})
	return now, ok && err == nil, err
}

// retry tries until that is done, or an error. There is nothing to park for: no rank says that
// the variable has changed.
func (s *Sync) retry(op string, p place, try func() (done bool, err error)) error {
	if err := s.e.Blocking("onesided." + op); err != nil {
		return err
	}
	ep := s.e.Conduit()
	for tries := 0; ; {
		done, err := try()
		if err == nil && !done {
			err = ep.Err()
		}
		if err != nil {
			return fmt.Errorf("onesided: %s of %v: %w", op, p, err)
		}
		if done {
			return nil
		}
		if ep.Spin() > 0 {
			tries = 0
		} else if ep.Idle(tries) {
			tries++
		}
	}
}
