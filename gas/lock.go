package gas

import (
	"fmt"
	"sync"

	"github.com/argon-go/argon/internal/errs"
)

// LockWord is a lock as it lies in shared memory, 16 bytes; its zero value is an
// unlocked one. It may be part of a program's own type: LockAt(Field(...)).
type LockWord struct {
	// state is 0 if unlocked, m if m hold it shared, exclusive if one holds it
	// exclusively (seed thesis, table 7-4).
	state int64
	// waiters is the first of a list of waiters, most recent first.
	waiters Ptr[waiter]
}

// waiter is who waits for a lock, in its own segment.
type waiter struct {
	next  Ptr[waiter] // the one that came before
	awake uint64      // 0 while in the list
}

// Lock excludes ranks and goroutines from each other: one exclusive holder or
// many shared ones. A Lock may be copied and sent as its word's Ptr; it is not
// reentrant, and not fair. A shared hold and an exclusive one are given back on
// the rank that took them, by any of its goroutines.
//
// It is the seed thesis's lock of section 7.5.4: each step is one fetch-compare-
// and-add on the lock's word, with the operands of table 7-3. Who does not get
// it enters a list beside the word and sleeps; who gives it back wakes the list.
// Nothing runs at the rank that has the word.
type Lock struct {
	word Ptr[LockWord]
}

// exclusive is what one exclusive holder adds: n+1 in table 7-3, where n bounds
// the shared holders, goroutines of all ranks here.
const (
	maxShared = 1<<31 - 2
	exclusive = maxShared + 1
	maxInt    = 1<<63 - 1
)

// locks is what this rank holds: it tells a wrong Unlock before it does harm,
// and has waiters to lend.
type locks struct {
	mu   sync.Mutex
	held map[Ptr[LockWord]]int64
	idle []Ptr[waiter]
}

// NewLock makes a lock whose word lies on rank 0. Collective; every rank gets
// the same lock.
func NewLock(n *Node) (Lock, error) {
	p, err := New[LockWord](n)
	if err != nil {
		return Lock{}, err
	}
	return Lock{p.On(0)}, nil
}

// LockAt is the lock whose word is at p.
func LockAt(p Ptr[LockWord]) Lock { return Lock{p} }

// Word is where the lock's word is.
func (l Lock) Word() Ptr[LockWord] { return l.word }

func (l Lock) state() Ptr[int64] {
	return Field(l.word, func(w *LockWord) *int64 { return &w.state })
}

func (l Lock) waiters() Ptr[Ptr[waiter]] {
	return Field(l.word, func(w *LockWord) *Ptr[waiter] { return &w.waiters })
}

// TryLock takes the lock exclusively if nobody holds it, and says whether it
// did.
func (l Lock) TryLock(n *Node) (bool, error) { return l.try(n, 0, exclusive) }

// TryRLock takes the lock shared if nobody holds it exclusively, and says
// whether it did.
func (l Lock) TryRLock(n *Node) (bool, error) { return l.try(n, maxShared-1, 1) }

// try is one FCAA: if at most limit is there, add d.
func (l Lock) try(n *Node, limit, d int64) (bool, error) {
	old, err := FetchCompareAdd(n, l.state(), limit, d)
	if err != nil {
		return false, fmt.Errorf("gas: lock %v: %w", l.word, err)
	}
	if old > limit {
		return false, nil
	}
	n.locks.hold(l.word, d)
	return true, nil
}

// Lock takes the lock exclusively. It waits, answering peers meanwhile.
func (l Lock) Lock(n *Node) error { return l.lock(n, 0, exclusive) }

// RLock takes the lock shared. It waits, answering peers meanwhile.
func (l Lock) RLock(n *Node) error { return l.lock(n, maxShared-1, 1) }

func (l Lock) lock(n *Node, limit, d int64) error {
	for range lockTries {
		if ok, err := l.try(n, limit, d); ok || err != nil {
			return err
		}
		n.ep.Spin()
	}
	for {
		w, err := n.borrowWaiter()
		if err != nil {
			return fmt.Errorf("gas: lock %v: no memory to wait with: %w", l.word, err)
		}
		if err := l.enter(n, w); err != nil {
			return err
		}
		// Whoever unlocks from here on finds w in the list.
		got, err := l.try(n, limit, d)
		if err != nil {
			return err
		}
		if got {
			// Somebody else may have the list by now, and w with it.
			err = l.wakeAll(n)
		}
		if err == nil {
			err = n.e.Wait(lockWait{l, n}, func() bool {
				v, err := w.awake.Load(n)
				return err != nil || v != 0
			})
		}
		if err != nil {
			return err
		}
		n.returnWaiter(w)
		if got {
			return nil
		}
		if ok, err := l.try(n, limit, d); ok || err != nil {
			return err
		}
	}
}

// lockTries is how often a lock is tried before its list is entered.
const lockTries = 16

// listed is a waiter of this rank with its parts.
type listed struct {
	p     Ptr[waiter]
	next  Ptr[Ptr[waiter]]
	awake Ptr[uint64]
}

func partsOf(p Ptr[waiter]) listed {
	return listed{
		p,
		Field(p, func(w *waiter) *Ptr[waiter] { return &w.next }),
		Field(p, func(w *waiter) *uint64 { return &w.awake }),
	}
}

// enter puts w, which is not awake, at the head of the list.
func (l Lock) enter(n *Node, w listed) error {
	if err := w.awake.Store(n, 0); err != nil {
		return err
	}
	head := l.waiters()
	for {
		first, err := head.Load(n)
		if err == nil {
			err = w.next.Store(n, first)
		}
		if err != nil {
			return err
		}
		if ok, err := head.CompareAndSwap(n, first, w.p); ok || err != nil {
			return err
		}
	}
}

// wakeAll takes the whole list and wakes everybody in it.
func (l Lock) wakeAll(n *Node) error {
	head := l.waiters()
	p, err := head.Load(n)
	if err != nil || p.IsNil() {
		return err
	}
	if p, err = head.Swap(n, Ptr[waiter]{}); err != nil {
		return err
	}
	for !p.IsNil() {
		w := partsOf(p)
		// Once awake it belongs to its owner again.
		next, err := w.next.Load(n)
		if err != nil {
			return err
		}
		if err := w.awake.Store(n, 1); err != nil {
			return err
		}
		p = next
	}
	return nil
}

// Unlock gives back an exclusive hold. It is an error, and changes nothing, if
// this rank does not have one.
func (l Lock) Unlock(n *Node) error { return l.unlock(n, "Unlock", exclusive) }

// RUnlock gives back a shared hold. It is an error, and changes nothing, if this
// rank does not have one.
func (l Lock) RUnlock(n *Node) error { return l.unlock(n, "RUnlock", 1) }

func (l Lock) unlock(n *Node, op string, d int64) error {
	if err := n.locks.drop(op, l.word, d, n.rank); err != nil {
		return err
	}
	if _, err := FetchCompareAdd(n, l.state(), maxInt, -d); err != nil {
		return fmt.Errorf("gas: %s of %v: %w", op, l.word, err)
	}
	return l.wakeAll(n)
}

func (h *locks) hold(p Ptr[LockWord], d int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[Ptr[LockWord]]int64{}
	}
	h.held[p] += d
}

func (h *locks) drop(op string, p Ptr[LockWord], d int64, rank int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.held[p]
	if d == exclusive && had != exclusive || d == 1 && (had == 0 || had == exclusive) {
		how := "does not hold it"
		if had == exclusive {
			how = "holds it exclusively"
		} else if had > 0 {
			how = "holds it shared"
		}
		return errs.BadArg("gas: %s of lock %v: rank %d %s", op, p, rank, how)
	}
	if had == d {
		delete(h.held, p)
	} else {
		h.held[p] = had - d
	}
	return nil
}

// borrowWaiter takes a waiter of this rank's own, from those used before or from
// the heap.
func (n *Node) borrowWaiter() (listed, error) {
	h := &n.locks
	h.mu.Lock()
	if k := len(h.idle); k > 0 {
		p := h.idle[k-1]
		h.idle = h.idle[:k-1]
		h.mu.Unlock()
		return partsOf(p), nil
	}
	h.mu.Unlock()
	p, err := Alloc[waiter](n, 1)
	return partsOf(p), err
}

func (n *Node) returnWaiter(w listed) {
	h := &n.locks
	h.mu.Lock()
	h.idle = append(h.idle, w.p)
	h.mu.Unlock()
}

// lockWait describes a wait for a lock.
type lockWait struct {
	l Lock
	n *Node
}

// Blocked names the lock, and its state if that is at hand.
func (w lockWait) Blocked() string {
	at := w.l.state()
	if _, near := at.Local(w.n); !near { // and nobody must wait here
		return fmt.Sprintf("lock %v", w.l.word)
	}
	s, err := at.Load(w.n)
	switch {
	case err != nil:
		return fmt.Sprintf("lock %v", w.l.word)
	case s >= exclusive:
		return fmt.Sprintf("lock %v, which somebody holds exclusively", w.l.word)
	}
	return fmt.Sprintf("lock %v, which %d hold shared", w.l.word, s)
}
