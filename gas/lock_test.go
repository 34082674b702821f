package gas

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
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

// Who waits for a lock whose holder fails is told.
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
