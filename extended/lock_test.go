package extended_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// What the tests of locks have in the second page of each segment.
const (
	lockAt    = segment.AttachBase + segment.PageSize + 32*iota
	guardedAt // two words, which are equal whenever the lock is free
	waitersAt // LockMemory, up to the end of the page
)

// lockMemory hands out waiters in the segment.
func lockMemory() func() (segment.NLA, error) {
	var given atomic.Int64
	return func() (segment.NLA, error) {
		return waitersAt + segment.NLA(extended.LockSize*(given.Add(1)-1)), nil
	}
}

// guarded has a rank change two words of rank 0 under the lock at at of rank 0, or find them
// equal under a shared hold, rounds times.
func guarded(x *extended.Initiator, at, words segment.NLA, rounds int, pause func()) error {
	for i := range rounds {
		l := x.LockAt(0, at)
		read, undo := l.RLock, l.RUnlock
		if i%2 == 0 {
			read, undo = l.Lock, l.Unlock
		}
		if err := read(); err != nil {
			return err
		}
		a, err := x.GetValue(0, words, 8)
		if err != nil {
			return err
		}
		if i%2 == 0 {
			if err := x.PutValue(0, words, a+1, 8); err != nil {
				return err
			}
		}
		pause()
		b, err := x.GetValue(0, words+8, 8)
		if err != nil {
			return err
		}
		if a != b {
			return fmt.Errorf("round %d: %d and %d: another rank is inside", i, a, b)
		}
		if i%2 == 0 {
			if err := x.PutValue(0, words+8, b+1, 8); err != nil {
				return err
			}
		}
		if err := undo(); err != nil {
			return err
		}
	}
	return nil
}

// TestLockExcludes: by locks in the segment and in exposed memory, with memory to wait
// with of both kinds.
func TestLockExcludes(t *testing.T) {
	const ranks, goroutines, rounds = 3, 2, 60
	for _, w := range worlds {
		for _, given := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/given=%v", w.name, given), func(t *testing.T) {
				var exposed atomic.Uint64
				job(t, w.open(t, ranks, 2), tinyWith(ranks, given), func(n *node) error {
					if n.x.Rank() == 0 {
						a, err := n.x.Expose(make([]byte, segment.PageSize), segment.RightsAll, segment.AnyPeer)
						if err != nil {
							return err
						}
						exposed.Store(uint64(a))
					}
					if err := n.meet(); err != nil {
						return err
					}
					far := segment.NLA(exposed.Load())
					places := [][2]segment.NLA{{lockAt, guardedAt}, {far, far + extended.LockSize}}
					for _, p := range places {
						var left atomic.Int64
						left.Store(goroutines)
						var failed error
						for range goroutines - 1 {
							conduits.Go(n.end, func() {
								if err := guarded(n.x, p[0], p[1], rounds, runtime.Gosched); err != nil {
									n.end.Fail(err)
								}
								left.Add(-1)
								n.end.Wake(n.x.Rank())
							})
						}
						failed = guarded(n.x, p[0], p[1], rounds, runtime.Gosched)
						left.Add(-1)
						if err := errors.Join(failed, n.e.Wait(nil, func() bool { return left.Load() == 0 })); err != nil {
							return err
						}
						if err := n.meet(); err != nil {
							return err
						}
						const want = ranks * goroutines * rounds / 2
						if v, err := n.x.GetValue(0, p[1], 8); err != nil || v != want {
							return fmt.Errorf("%d rounds were counted, not %d (%w)", v, want, err)
						}
						for _, word := range []segment.NLA{p[0], p[0] + 8} {
							if v, err := extended.Load[uint64](n.x, 0, word); err != nil || v != 0 {
								return fmt.Errorf("the lock is left with %#x (%w)", v, err)
							}
						}
					}
					return n.meet()
				})
			})
		}
	}
}

// tinyWith is tiny with a page for locks, and with LockMemory if it is given.
func tinyWith(size int, given bool) setup {
	s := tiny(size)
	if given {
		s.config.LockMemory = lockMemory()
	}
	return s
}

// TestLockHolds: what a rank holds it can say, and give back once; a wait names the
// holder, also where the lock is out of reach.
func TestLockHolds(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			s := tiny(2)
			s.config.Origins = true
			job(t, w.open(t, 2, 0), s, func(n *node) error {
				x := n.x
				if x.Rank() == 1 {
					for range 2 {
						if ok, err := x.LockAt(0, lockAt+extended.LockSize).TryRLock(); !ok || err != nil {
							return fmt.Errorf("a lock that is free: %v, %w", ok, err)
						}
					}
					if err := x.LockAt(0, lockAt).Lock(); err != nil {
						return err
					}
					held := x.HeldLocks()
					if len(held) != 2 || held[0].Shared != 0 || held[1].Shared != 2 || held[0].At != lockAt || held[1].At != lockAt+extended.LockSize {
						return fmt.Errorf("%+v are held", held)
					}
					for _, h := range held {
						if h.Rank != 0 || !strings.HasPrefix(h.Origin, "lock_test.go:") {
							return fmt.Errorf("%+v is held", h)
						}
					}
				}
				if err := n.meet(); err != nil {
					return err
				}
				if x.Rank() == 0 {
					for i, want := range []string{"lock 0+0x1000, which rank 1 holds exclusively", "lock 0+0x1018, which 2 hold shared"} {
						if said, err := x.LockBlocked(0, lockAt+segment.NLA(extended.LockSize*i)); err != nil || said != want {
							return fmt.Errorf("%q, not %q (%w)", said, want, err)
						}
					}
					if err := x.LockAt(0, lockAt).Unlock(); !errors.Is(err, extended.ErrBadArg) || !strings.Contains(err.Error(), "rank 0 does not hold it") {
						return fmt.Errorf("unlock of another rank's hold: %v", err)
					}
				} else if said, err := x.LockBlocked(0, lockAt); err != nil || !strings.Contains(said, "which rank 1 holds exclusively") {
					return fmt.Errorf("%q (%w)", said, err)
				}
				if err := n.meet(); err != nil {
					return err
				}
				if x.Rank() == 1 {
					if err := errors.Join(x.LockAt(0, lockAt).Unlock(), x.LockAt(0, lockAt+extended.LockSize).RUnlock(), x.LockAt(0, lockAt+extended.LockSize).RUnlock()); err != nil {
						return err
					}
					if held := x.HeldLocks(); len(held) != 0 {
						return fmt.Errorf("%+v are held", held)
					}
					if err := x.LockAt(0, lockAt+extended.LockSize).RUnlock(); !errors.Is(err, extended.ErrBadArg) {
						return fmt.Errorf("third unlock of two holds: %v", err)
					}
				}
				if err := n.meet(); err != nil {
					return err
				}
				if x.Rank() == 0 {
					return errors.Join(x.LockAt(0, lockAt).Lock(), x.LockAt(0, lockAt).Unlock(), x.LockAt(0, lockAt+extended.LockSize).Lock(), x.LockAt(0, lockAt+extended.LockSize).Unlock())
				}
				return nil
			})
		})
	}
}

// TestLockArguments: what is no lock is refused before anything is changed.
func TestLockArguments(t *testing.T) {
	if err := extended.New(extended.Config{}).LockAt(0, lockAt).Lock(); !errors.Is(err, extended.ErrNotInit) {
		t.Errorf("before Bind: %v", err)
	}
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			s := tiny(2)
			last := segment.AttachBase + segment.NLA(s.segment) - 8
			job(t, w.open(t, 2, 0), s, func(n *node) error {
				for _, c := range []struct {
					rank int
					at   segment.NLA
				}{{2, lockAt}, {-1, lockAt}, {0, 0}, {1, lockAt + 4}, {0, last}, {1, last}, {0, last + 8}, {1, segment.ExposedBase}} {
					if err := n.x.LockAt(c.rank, c.at).Lock(); !errors.Is(err, extended.ErrBadArg) {
						return fmt.Errorf("lock at %v of rank %d: %v", c.at, c.rank, err)
					}
					if ok, err := n.x.LockAt(c.rank, c.at).TryRLock(); ok || !errors.Is(err, extended.ErrBadArg) {
						return fmt.Errorf("shared lock at %v of rank %d: %v, %v", c.at, c.rank, ok, err)
					}
				}
				// Addresses and ranks beyond all there are do not stand for a lock that is held.
				if ok, err := n.x.LockAt(n.x.Rank(), lockAt).TryLock(); !ok || err != nil {
					return fmt.Errorf("the own lock: %v, %w", ok, err)
				}
				for _, c := range []struct {
					rank int
					at   segment.NLA
				}{{n.x.Rank(), lockAt + 1<<40}, {n.x.Rank() + 1<<24, lockAt}, {2, lockAt}, {-1, lockAt}} {
					if err := n.x.LockAt(c.rank, c.at).Unlock(); !errors.Is(err, extended.ErrBadArg) {
						return fmt.Errorf("unlock at %#x of rank %d: %v", uint64(c.at), c.rank, err)
					}
				}
				if err := n.x.LockAt(n.x.Rank(), lockAt).Unlock(); err != nil {
					return err
				}
				if err := n.meet(); err != nil {
					return err
				}
				if v, err := extended.Load[uint64](n.x, n.x.Rank(), last); err != nil || v != 0 {
					return fmt.Errorf("the last word is %d (%w)", v, err)
				}
				return n.meet()
			})
		})
	}
}

// TestLockProcesses: ranks that are processes lock each other out, with memory to wait
// with that lies in their Go heaps.
func TestLockProcesses(t *testing.T) {
	testjob.Run(t, 3, "locks").Want(t, 0)
}

func lockedRounds() {
	e, x := joined(2 * segment.PageSize)
	testjob.Check(guarded(x, lockAt, guardedAt, 2000, func() { e.Poll() }))
	testjob.Check(meet(x, 1))
	v, err := x.GetValue(0, guardedAt, 8)
	testjob.Check(err)
	if want := uint64(1000 * x.Size()); v != want {
		testjob.Fatal("%d rounds were counted, not %d", v, want)
	}
	testjob.Check(meet(x, 2))
	testjob.Check(e.Conduit().Close())
}
