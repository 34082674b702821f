package gas

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Under an exclusive lock plain memory of another rank is safe to change, and
// under a shared one to read.
func TestLockExcludes(t *testing.T) {
	const goroutines, each = 3, 100
	type pair struct{ a, b uint64 }
	runN(t, 3, func(n *Node) error {
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		p, err := New[pair](n)
		if err != nil {
			return err
		}
		p = p.On(n.Size() - 1)
		errc := make(chan error, 2*goroutines)
		for range goroutines {
			go func() {
				errc <- func() error {
					for range each {
						if err := l.Lock(n); err != nil {
							return err
						}
						v, err := p.Get(n)
						if err != nil {
							return err
						}
						if v.a != v.b {
							return fmt.Errorf("another writer is inside: %v", v)
						}
						v.a++
						if err := p.Put(n, v); err != nil {
							return err
						}
						// Others get their chance to come in.
						for range 1 + v.a%64 {
							runtime.Gosched()
						}
						v.b++
						if err := p.Put(n, v); err != nil {
							return err
						}
						if err := l.Unlock(n); err != nil {
							return err
						}
					}
					return nil
				}()
			}()
			go func() {
				errc <- func() error {
					for range each {
						if err := l.RLock(n); err != nil {
							return err
						}
						v, err := p.Get(n)
						if err != nil || v.a != v.b {
							return fmt.Errorf("a writer is inside: %v (%v)", v, err)
						}
						runtime.Gosched()
						if w, err := p.Get(n); err != nil || v != w {
							return fmt.Errorf("a writer came in: %v, then %v (%v)", v, w, err)
						}
						if err := l.RUnlock(n); err != nil {
							return err
						}
					}
					return nil
				}()
			}()
		}
		var all error
		for range 2 * goroutines {
			all = errors.Join(all, <-errc)
		}
		if all != nil {
			return all
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		want := uint64(n.Size() * goroutines * each)
		if v, err := p.Get(n); err != nil || v.a != want {
			return fmt.Errorf("%d rounds were counted, want %d (%v)", v.a, want, err)
		}
		if w, err := l.Word().Get(n); err != nil || w != (LockWord{}) {
			return fmt.Errorf("the lock is left as %+v (%v)", w, err)
		}
		return n.Barrier()
	})
}

func TestTryLock(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		want := func(what string, got bool, err error, want bool) error {
			if err != nil || got != want {
				return fmt.Errorf("rank %d: %s: %v, %v; want %v", n.Rank(), what, got, err, want)
			}
			return nil
		}
		// Rank 0 has it shared, then exclusively; rank 1 looks.
		for _, exclusively := range []bool{false, true} {
			if n.Rank() == 0 {
				take := l.TryRLock
				if exclusively {
					take = l.TryLock
				}
				ok, err := take(n)
				if err := want("first", ok, err, true); err != nil {
					return err
				}
				ok, err = l.TryLock(n)
				if err := want("again", ok, err, false); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if n.Rank() == 1 {
				ok, err := l.TryLock(n)
				if err := want("TryLock", ok, err, false); err != nil {
					return err
				}
				ok, err = l.TryRLock(n)
				if err := want("TryRLock", ok, err, !exclusively); err != nil {
					return err
				}
				if ok {
					if err := wantErr(l.Unlock(n), ErrBadArg, "holds it shared"); err != nil {
						return err
					}
					if err := l.RUnlock(n); err != nil {
						return err
					}
				}
				if err := wantErr(l.Unlock(n), ErrBadArg, "rank 1 does not hold it"); err != nil {
					return err
				}
				if err := wantErr(l.RUnlock(n), ErrBadArg, "rank 1 does not hold it"); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if n.Rank() == 0 {
				drop := l.RUnlock
				if exclusively {
					if err := wantErr(l.RUnlock(n), ErrBadArg, "holds it exclusively"); err != nil {
						return err
					}
					drop = l.Unlock
				}
				if err := drop(n); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
}

// A lock inside a program's own type, on every rank.
func TestLockAt(t *testing.T) {
	type account struct {
		balance int64
		lock    LockWord
	}
	runN(t, 4, func(n *Node) error {
		p, err := New[account](n)
		if err != nil {
			return err
		}
		for i := range 100 {
			q := p.On((n.Rank() + i) % n.Size())
			l := LockAt(Field(q, func(a *account) *LockWord { return &a.lock }))
			b := Field(q, func(a *account) *int64 { return &a.balance })
			if err := l.Lock(n); err != nil {
				return err
			}
			v, err := b.Get(n)
			if err != nil {
				return err
			}
			if err := b.Put(n, v+1); err != nil {
				return err
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if v, err := p.Get(n); err != nil || v.balance != 100 {
			return fmt.Errorf("%+v, %v", v, err)
		}
		return nil
	})
}

// A rank that waits for a lock whose holder fails is told.
func TestLockHolderFails(t *testing.T) {
	var waiter error
	err := Run(small(2), func(n *Node) error {
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			if err := l.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 0 {
			return errors.New("gone with the lock")
		}
		waiter = l.Lock(n)
		return waiter
	})
	var re *RankError
	if !errors.As(err, &re) || re.Rank != 0 {
		t.Errorf("Run: %v", err)
	}
	var pe *PeerError
	if !errors.As(waiter, &pe) || pe.Rank != 0 {
		t.Errorf("the waiter: %v", waiter)
	}
}

// TestLeavingWithALock: a rank that returns while it holds a lock fails the job, and
// names the lock.
func TestLeavingWithALock(t *testing.T) {
	for _, c := range []struct {
		conduit       string
		debug, shared bool
		want          string
	}{
		{"shm", true, false, "while it holds lock 0+0x0 exclusively (taken at lock_test.go:"},
		{"shm", false, true, "while it holds lock 0+0x0 shared, 1 times (Config.Debug"},
		{"udp", false, false, "while it holds lock 0+0x0 exclusively (Config.Debug"},
		{"sim", true, true, "while it holds lock 0+0x0 shared, 1 times (taken at lock_test.go:"},
	} {
		err := Run(Config{Ranks: 2, Conduit: c.conduit, Debug: c.debug}, func(n *Node) error {
			l, err := NewLock(n)
			if err != nil {
				return err
			}
			if n.Rank() == 1 {
				if c.shared {
					return l.RLock(n)
				}
				return l.Lock(n)
			}
			// Rank 1 has it by then.
			for ok := true; ok; {
				if ok, err = l.TryLock(n); err != nil {
					return nil // rank 1's is the failure
				}
				if ok {
					if err := l.Unlock(n); err != nil {
						return err
					}
					n.Poll()
				}
			}
			return l.Lock(n)
		})
		if err := wantErr(err, ErrNotReady, "rank 1: gas: rank 1 returned from its function "+c.want); err != nil {
			t.Errorf("%s: %v", c.conduit, err)
		}
	}
}

// TestDeadlockNames: on the simulator a deadlock names the holder of a lock and the
// place of a condition.
func TestDeadlockNames(t *testing.T) {
	err := Run(Config{Ranks: 2, Conduit: "sim"}, func(n *Node) error {
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		if n.Rank() == 1 {
			if err := l.Lock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			return n.Wait(func() bool { return n.Size() == 0 })
		}
		return l.Lock(n)
	})
	for _, want := range []string{"deadlock", "rank 0: lock 0+0x0, which rank 1 holds exclusively", "rank 1: a condition of the program (lock_test.go:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// TestLockReleasedWhileEntered: a lock that is given back while another rank, which
// has found it held, enters the list of those that wait is got by that rank, although
// no later release wakes it. In virtual time the release is moved, in steps of a
// fraction of a round trip, from the first try until long after the entry.
func TestLockReleasedWhileEntered(t *testing.T) {
	const locks = 200
	var before, after int // releases when the other rank was not in the list, and when it was
	err := Run(Config{Conduit: "sim", Ranks: 2, SegmentSize: 1 << 20}, func(n *Node) error {
		words, err := NewSlice[LockWord](n, locks)
		if err != nil {
			return err
		}
		var entry time.Duration // how long it takes, from the first lock
		for i := range locks {
			l := LockAt(words.On(0).Add(i))
			if n.Rank() == 0 {
				if err := l.Lock(n); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if n.Rank() == 1 {
				if err := errors.Join(l.Lock(n), l.Unlock(n)); err != nil {
					return err
				}
				continue
			}
			begun := n.Now()
			for release := 2 * entry * time.Duration(i) / locks; ; n.Poll() {
				w, err := l.Word().Get(n)
				if err != nil {
					return err
				}
				listed := w.waiters != 0
				if i == 0 && listed {
					entry = n.Now() - begun
					break
				}
				if i > 0 && n.Now()-begun >= release {
					if listed {
						after++
					} else {
						before++
					}
					break
				}
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		return n.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
	if before < locks/4 || after < locks/4 {
		t.Errorf("%d releases before the entry and %d after it: they were not moved over it", before, after)
	}
}
