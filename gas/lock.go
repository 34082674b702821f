package gas

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/origin"
)

// LockWord is a lock as it lies in shared memory, 16 bytes; its zero value is an
// unlocked one. It may be part of a program's own type: LockAt(Field(...)).
type LockWord struct {
	// state is 0 if unlocked, m if m hold it shared, more than exclusive if one holds
	// it exclusively (Nüssle 2008, table 7-4): then it also names the holder, see operand.
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
// the rank that took them, by any of its goroutines. A rank whose function returns
// while it has one fails, and the job with it: others would wait for ever.
//
// It is the lock of Nüssle 2008, section 7.5.4: each step is one fetch-compare-
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
	// An exclusive hold also adds the number of its rank plus 1 from this bit on, so
	// that a rank which waits can say for which one.
	holderShift = 32
)

// operand is what a hold of n's rank adds to a lock's word.
func (n *Node) operand(d int64) int64 {
	if d == exclusive {
		d += int64(n.rank+1) << holderShift
	}
	return d
}

// locks is what this rank holds: it tells a wrong Unlock before it does harm,
// and has waiters to lend.
type locks struct {
	mu   sync.Mutex
	held map[Ptr[LockWord]]int64
	// Where they were taken first, with Config.Debug.
	origins map[Ptr[LockWord]]string
	idle    []Ptr[waiter]
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
func (l Lock) TryLock(n *Node) (bool, error) {
	_, ok, err := l.try(n, 0, exclusive)
	return ok, err
}

// TryRLock takes the lock shared if nobody holds it exclusively, and says
// whether it did.
func (l Lock) TryRLock(n *Node) (bool, error) {
	_, ok, err := l.try(n, maxShared-1, 1)
	return ok, err
}

// try is one FCAA: if at most limit is there, add d. It returns what is there.
func (l Lock) try(n *Node, limit, d int64) (now int64, ok bool, err error) {
	if err := n.e.Blocking("lock"); err != nil {
		return 0, false, err
	}
	now, ok, err = FetchCompareAdd(n, l.state(), limit, n.operand(d))
	if err != nil {
		return now, false, fmt.Errorf("gas: lock %v: %w", l.word, err)
	}
	if !ok {
		return now, false, nil
	}
	n.locks.hold(l.word, d)
	if n.debug {
		n.locks.note(l.word)
	}
	return now, true, nil
}

// Lock takes the lock exclusively. It waits, answering peers meanwhile.
func (l Lock) Lock(n *Node) error { return l.lock(n, 0, exclusive) }

// RLock takes the lock shared. It waits, answering peers meanwhile.
func (l Lock) RLock(n *Node) error { return l.lock(n, maxShared-1, 1) }

func (l Lock) lock(n *Node, limit, d int64) error {
	for range lockTries {
		if _, ok, err := l.try(n, limit, d); ok || err != nil {
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
		// Every unlock from here on finds w in the list.
		seen, got, err := l.try(n, limit, d)
		if err != nil {
			return err
		}
		if got {
			// Somebody else may have the list by now, and w with it.
			err = l.wakeAll(n)
		}
		if err == nil {
			err = n.e.Wait(lockWait{l, n, seen}, func() bool {
				v, err := Load(n, w.awake)
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
		if _, ok, err := l.try(n, limit, d); ok || err != nil {
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
	if err := Store(n, w.awake, 0); err != nil {
		return err
	}
	head := l.waiters()
	for {
		first, err := Load(n, head)
		if err == nil {
			err = Store(n, w.next, first)
		}
		if err != nil {
			return err
		}
		if _, ok, err := CompareAndSwap(n, head, first, w.p); ok || err != nil {
			return err
		}
	}
}

// wakeAll takes the whole list and wakes everybody in it.
func (l Lock) wakeAll(n *Node) error {
	head := l.waiters()
	p, err := Load(n, head)
	if err != nil || p.IsNil() {
		return err
	}
	if p, err = Swap(n, head, Ptr[waiter]{}); err != nil {
		return err
	}
	for !p.IsNil() {
		w := partsOf(p)
		// Once awake it belongs to its owner again.
		next, err := Load(n, w.next)
		if err != nil {
			return err
		}
		if err := Store(n, w.awake, 1); err != nil {
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
	if err := n.e.Blocking("unlock"); err != nil {
		return err
	}
	if err := n.locks.drop(op, l.word, d, n.rank); err != nil {
		return err
	}
	if _, _, err := FetchCompareAdd(n, l.state(), maxInt, -n.operand(d)); err != nil {
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

// note keeps where p was taken.
//
//go:noinline
func (h *locks) note(p Ptr[LockWord]) {
	at := origin.Caller()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.origins == nil {
		h.origins = map[Ptr[LockWord]]string{}
	}
	if h.origins[p] == "" {
		h.origins[p] = at
	}
}

// unreleased is the error of a rank that leaves while it holds locks: its memory
// answers until all leave, so that a wait for one would have no end.
//
//go:noinline
func (n *Node) unreleased() error {
	h := &n.locks
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		return nil
	}
	var l []string
	for p, d := range h.held {
		how := "exclusively"
		if d != exclusive {
			how = fmt.Sprintf("shared, %d times", d)
		}
		at := "Config.Debug, ARGON_DEBUG says where it took them"
		if o := h.origins[p]; o != "" {
			at = "taken at " + o
		}
		l = append(l, fmt.Sprintf("%v %s (%s)", p, how, at))
	}
	slices.Sort(l)
	more := ""
	if k := len(l) - mostLocksNamed; k > 0 {
		l, more = l[:mostLocksNamed], fmt.Sprintf(" and %d more", k)
	}
	return errs.NotReady("gas: rank %d returned from its function while it holds lock %s%s: nobody could wait for it any more; Unlock comes first",
		n.rank, strings.Join(l, ", "), more)
}

// mostLocksNamed is how many locks the error of unreleased names.
const mostLocksNamed = 4

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
		delete(h.origins, p)
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
	l    Lock
	n    *Node
	seen int64 // the state that the last try found
}

// Blocked names the lock and who holds it: now, if the word is at hand, else when it
// was last tried, since nobody must wait here.
func (w lockWait) Blocked() string {
	at, s, when := w.l.state(), w.seen, " when last tried"
	if _, near := at.Local(w.n); near {
		if v, err := Load(w.n, at); err == nil {
			s, when = v, ""
		}
	}
	switch {
	case s >= exclusive:
		return fmt.Sprintf("lock %v, which rank %d holds exclusively%s", w.l.word, s>>holderShift-1, when)
	case s <= 0:
		return fmt.Sprintf("lock %v, which nobody holds%s", w.l.word, when)
	}
	return fmt.Sprintf("lock %v, which %d hold shared%s", w.l.word, s, when)
}
