package extended

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/origin"
	"github.com/argon-go/argon/segment"
)

// LockSize is the size of a lock, bytes. It lies at a multiple of 8, in memory of any
// kind that all ranks which use it may access with atomics; zeros are an unlocked lock.
//
//	0  state    0 unlocked, m held shared by m, above maxShared held exclusively
//	8  waiters  head of a list: rank<<40 | address of a waiter; 0 for none
//
// A waiter has LockSize bytes, too, in memory of the rank that waits:
//
//	0  next     the one that came before it, or 0
//	8  awake    0 while it is in the list
const LockSize = 16

const (
	lockWaiters = 8 // offsets, see LockSize
	waiterAwake = 8
)

// exclusive is the number that one exclusive hold adds to a lock's state: n+1 in Nüssle 2008, table
// 7-3, where n bounds the shared holds, goroutines of all ranks here.
const (
	maxShared = 1<<31 - 2
	exclusive = maxShared + 1
	maxInt    = 1<<63 - 1
	// An exclusive hold also adds the number of its rank plus 1 from this bit on, so
	// that a rank which waits can say for which one.
	holderShift = 32
)

// nearLocks is how many exclusive holds a rank can note without its mutex.
const (
	nearBits  = 4
	nearLocks = 1 << nearBits
)

// lockTries is how often a lock is tried before its list is entered.
const lockTries = 16

// waitersPerPage is how many waiters have room where Config.LockMemory is nil, a page
// at a time.
const waitersPerPage = segment.PageSize / LockSize

// remote names a place of any rank in one word, which is not 0.
type remote uint64

const remoteBits = 40 // of the address: below segment.ExposedLimit

func remoteAt(rank int, a segment.NLA) remote {
	return remote(rank)<<remoteBits | remote(a)&(1<<remoteBits-1)
}

func (r remote) rank() int        { return int(r >> remoteBits) }
func (r remote) nla() segment.NLA { return segment.NLA(r & (1<<remoteBits - 1)) }

// String prints what gas.Ptr does: "3+0x40" in a segment, "3@0x40" if exposed.
func (r remote) String() string {
	if a := r.nla(); a.Exposed() {
		return fmt.Sprintf("%d@%#x", r.rank(), uint64(a-segment.ExposedBase))
	}
	return fmt.Sprintf("%d+%#x", r.rank(), uint64(r.nla()-segment.AttachBase))
}

// locks has the holds of this rank, which tell a wrong Unlock before it does harm, and
// waiters to lend.
type locks struct {
	near atomic.Pointer[nearHolds] // made by the first exclusive hold
	mu   sync.Mutex
	held map[remote]holds
	idle []segment.NLA // waiters
}

// theLocks are those of the rank, of all its lanes.
func (x *Initiator) theLocks() *locks {
	if h := x.locks.Load(); h != nil {
		return h
	}
	first := x.root()
	first.locks.CompareAndSwap(nil, new(locks))
	h := first.locks.Load()
	x.locks.Store(h)
	return h
}

// nearHolds has exclusive holds, each at the place that its name hashes to, if that was
// free: taking and giving one back is a compare-and-swap of a word, where the map takes
// 60 ns. All other holds are in the map, and all with Config.Origins.
type nearHolds struct {
	own   int64 // what an exclusive hold of this rank adds
	words [nearLocks]atomic.Uint64
}

// holds is how this rank holds a lock.
type holds struct {
	sum    int64  // of what they add: exclusive, or how many are shared
	origin string // where the first was taken, with Config.Origins
}

// Lock is the lock at an address of a rank, as one rank uses it: see [Initiator.LockAt].
type Lock struct {
	x    *Initiator
	rank int
	at   segment.NLA
}

// LockAt is the lock at address at of rank. Nothing is made: a Lock is a name, which may be copied.
func (x *Initiator) LockAt(rank int, at segment.NLA) Lock { return Lock{x, rank, at} }

// String names the lock as reports do.
func (l Lock) String() string { return remoteAt(l.rank, l.at).String() }

// Lock takes the lock exclusively: no other goroutine of any rank
// holds it then, shared or not. It waits, polling and then parked. Locks are neither
// fair nor reentrant; what a holder did to memory, and synchronized, before Unlock is
// visible to the next one. A rank that leaves the job gives its locks back before, see
// HeldLocks. Nothing runs at the rank that has the lock's memory.
//
// It is the lock of Nüssle 2008, section 7.5.4: each step is one fetch-compare-and-add
// on the state, with the operands of table 7-3. A goroutine that does not get it enters
// the list beside the state and parks; each release wakes the list.
func (l Lock) Lock() error {
	x := l.x
	if w, near := x.views.lockWords(l.rank, l.at), x.notes.Load(); w != nil && near != nil {
		if err := x.poll.Blocking("lock"); err != nil {
			return err
		}
		if atomic.CompareAndSwapUint64(&w[0], 0, uint64(near.own)) {
			if h := remoteAt(l.rank, l.at); !near.place(h).CompareAndSwap(0, uint64(h)) {
				x.theLocks().far(h, exclusive, false)
			}
			return nil
		}
	}
	return l.lock(0, exclusive)
}

// RLock takes the lock shared: many may hold it so, if none holds it exclusively. It
// waits as Lock does, and a lock that is always held shared keeps Lock waiting.
func (l Lock) RLock() error { return l.lock(maxShared-1, 1) }

// TryLock is Lock if that need not wait, and reports whether it has taken the lock. It
// does not poll where load and store reach the lock; elsewhere it waits for a round trip.
func (l Lock) TryLock() (bool, error) {
	_, ok, err := l.tryLock(0, exclusive)
	return ok, err
}

// TryRLock is RLock if that need not wait, and reports whether it has taken the lock. It
// does not poll where load and store reach the lock; elsewhere it waits for a round trip.
func (l Lock) TryRLock() (bool, error) {
	_, ok, err := l.tryLock(maxShared-1, 1)
	return ok, err
}

// Unlock gives back an exclusive hold, which any goroutine of the rank that took it may
// do, and wakes those that wait. It is an error, and changes nothing, if this rank does
// not hold the lock so.
func (l Lock) Unlock() error {
	x := l.x
	if w, near := x.views.lockWords(l.rank, l.at), x.notes.Load(); w != nil && near != nil {
		if err := x.poll.Blocking("unlock"); err != nil {
			return err
		}
		h := remoteAt(l.rank, l.at)
		if near.place(h).CompareAndSwap(uint64(h), 0) {
			atomic.AddUint64(&w[0], -uint64(near.own))
			if atomic.LoadUint64(&w[1]) == 0 {
				return nil
			}
			return l.wakeAll()
		}
	}
	return l.unlock("Unlock", exclusive)
}

// RUnlock is Unlock for a shared hold.
func (l Lock) RUnlock() error { return l.unlock("RUnlock", 1) }

// operand is the number that a hold adds to a lock's state.
func (x *Initiator) operand(d int64) int64 {
	if d == exclusive {
		return exclusive + int64(x.ep.Rank()+1)<<holderShift
	}
	return d
}

// tryLock adds a hold if the state is at most limit. It returns what is there.
func (l Lock) tryLock(limit, d int64) (now int64, ok bool, err error) {
	x, rank, at := l.x, l.rank, l.at
	const what = "extended: lock"
	if x.ep == nil {
		return 0, false, errNotBound(what)
	}
	if err := x.poll.Blocking("lock"); err != nil {
		return 0, false, err
	}
	if x.views.word64(rank, at+lockWaiters) == nil {
		// In a segment both words are there, or nothing is changed. What there is of
		// exposed memory only its owner knows.
		if err := x.check(what, rank, at, LockSize, segment.RightAtomic); err != nil {
			return 0, false, err
		}
	}
	now, ok, err = FetchCompareAdd(x, rank, at, limit, x.operand(d))
	if err != nil {
		return now, false, fmt.Errorf("%s %v: %w", what, l, err)
	}
	if ok {
		now += x.operand(d)
		x.theLocks().hold(x, remoteAt(rank, at), d)
	}
	return now, ok, nil
}

func (l Lock) lock(limit, d int64) error {
	x := l.x
	for range lockTries {
		if _, ok, err := l.tryLock(limit, d); ok || err != nil {
			return err
		}
		x.ep.Spin()
	}
	for {
		w, err := x.theLocks().borrow(x)
		if err != nil {
			return fmt.Errorf("extended: lock %v: no memory to wait with: %w", l, err)
		}
		if err := l.enter(w); err != nil {
			return err
		}
		// Every unlock from here on finds w in the list.
		seen, got, err := l.tryLock(limit, d)
		if err != nil {
			return err
		}
		if got {
			// Another rank may have the list by now, and w with it.
			err = l.wakeAll()
		}
		if err == nil {
			err = l.await(w, seen, got)
		}
		if err != nil {
			if got {
				_ = l.unlock("Lock", d) // the caller, which has the error, does not
			}
			return err
		}
		x.theLocks().giveBack(w)
		if got {
			return nil
		}
		if _, ok, err := l.tryLock(limit, d); ok || err != nil {
			return err
		}
	}
}

// enter puts the own waiter w, which is not awake, at the head of the list.
func (l Lock) enter(w segment.NLA) error {
	x, me := l.x, l.x.ep.Rank()
	if err := Store[uint64](x, me, w+waiterAwake, 0); err != nil {
		return err
	}
	head := l.at + lockWaiters
	for {
		first, err := Load[uint64](x, l.rank, head)
		if err == nil {
			err = Store(x, me, w, first)
		}
		if err != nil {
			return err
		}
		if _, ok, err := CompareAndSwap(x, l.rank, head, first, uint64(remoteAt(me, w))); ok || err != nil {
			return err
		}
	}
}

// await parks until w is awake. seen is the state that the last try found, got that
// the lock is held.
func (l Lock) await(w segment.NLA, seen int64, got bool) error {
	k := l.x.table.getWaiter()
	k.one[0] = w + waiterAwake
	k.lock, k.state, k.got = remoteAt(l.rank, l.at), seen, got
	_, _, err := l.x.waitWords(k, waitLock, k.one[:], 0, Ne, 0)
	return err
}

// wakeAll takes the whole list and wakes all that are in it, also behind one that
// cannot be woken.
func (l Lock) wakeAll() error {
	x := l.x
	head := l.at + lockWaiters
	p, err := Load[uint64](x, l.rank, head)
	if err != nil || p == 0 {
		return err
	}
	if p, err = Swap[uint64](x, l.rank, head, 0); err != nil {
		return err
	}
	for p != 0 {
		w := remote(p)
		// Once awake it belongs to its owner again.
		next, failed := Load[uint64](x, w.rank(), w.nla())
		if failed != nil {
			return failed
		}
		failed = x.signal("extended: unlock", w.rank(), w.nla()+waiterAwake, SignalSet, 1)
		if err == nil {
			err = failed
		}
		p = next
	}
	return err
}

func (l Lock) unlock(op string, d int64) error {
	x := l.x
	if x.ep == nil {
		return errNotBound("extended: unlock")
	}
	if err := x.poll.Blocking("unlock"); err != nil {
		return err
	}
	h := remoteAt(l.rank, l.at)
	if h.rank() != l.rank || h.nla() != l.at { // the name of another lock
		return errs.BadArg("extended: %s: no lock can be at %v of rank %d", op, l.at, l.rank)
	}
	if err := x.theLocks().drop(op, x.ep.Rank(), h, d); err != nil {
		return err
	}
	if _, _, err := FetchCompareAdd(x, l.rank, l.at, maxInt, -x.operand(d)); err != nil {
		if x.ep.Err() == nil {
			x.theLocks().hold(x, h, d) // it was not given back
		}
		return fmt.Errorf("extended: %s of lock %v: %w", op, h, err)
	}
	return l.wakeAll()
}

// place is where an exclusive hold of l is noted if there is room.
func (h *nearHolds) place(l remote) *atomic.Uint64 {
	return &h.words[uint64(l)*0x9e3779b97f4a7c15>>(64-nearBits)]
}

// hold notes a hold of this rank.
func (h *locks) hold(x *Initiator, l remote, d int64) {
	if d == exclusive && x.table.origins == nil {
		near := x.notes.Load()
		if near == nil {
			h.near.CompareAndSwap(nil, &nearHolds{own: x.operand(d)})
			near = h.near.Load()
			x.notes.Store(near)
		}
		if near.place(l).CompareAndSwap(0, uint64(l)) {
			return
		}
	}
	h.far(l, d, x.table.origins != nil)
}

// far notes a hold in the map.
func (h *locks) far(l remote, d int64, origins bool) {
	at := ""
	if origins {
		at = origin.Caller()
	}
	h.mu.Lock()
	if h.held == nil {
		h.held = map[remote]holds{}
	}
	had := h.held[l]
	if had.sum += d; had.origin == "" {
		had.origin = at
	}
	h.held[l] = had
	h.mu.Unlock()
}

// drop forgets a hold, if there is one.
func (h *locks) drop(op string, me int, l remote, d int64) error {
	if near := h.near.Load(); d == exclusive && near != nil && near.place(l).CompareAndSwap(uint64(l), 0) {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.held[l]
	if near := h.near.Load(); d != exclusive && near != nil && near.place(l).Load() == uint64(l) {
		had.sum = exclusive
	}
	if d == exclusive && had.sum != exclusive || d == 1 && (had.sum == 0 || had.sum == exclusive) {
		how := "does not hold it"
		if had.sum == exclusive {
			how = "holds it exclusively"
		} else if had.sum > 0 {
			how = "holds it shared"
		}
		return errs.BadArg("extended: %s of lock %v: rank %d %s", op, l, me, how)
	}
	if had.sum -= d; had.sum == 0 {
		delete(h.held, l)
	} else {
		h.held[l] = had
	}
	return nil
}

// HeldLock is a lock that this rank holds.
type HeldLock struct {
	Rank   int         // where the lock is
	At     segment.NLA // and its address there
	Shared int         // 0 if it is held exclusively, else how many hold it shared
	Origin string      // where it was taken first, as "file.go:12"; "" without Config.Origins
}

// HeldLocks are the locks that goroutines of this rank hold, by rank and address. A rank
// that leaves the job with one has those that want it wait for ever: its memory may
// answer until all ranks leave.
func (x *Initiator) HeldLocks() []HeldLock {
	h := x.root().locks.Load()
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []HeldLock
	if near := h.near.Load(); near != nil {
		for i := range near.words {
			if l := remote(near.words[i].Load()); l != 0 {
				all = append(all, HeldLock{Rank: l.rank(), At: l.nla()})
			}
		}
	}
	for l, had := range h.held {
		shared := int(had.sum)
		if had.sum == exclusive {
			shared = 0
		}
		all = append(all, HeldLock{Rank: l.rank(), At: l.nla(), Shared: shared, Origin: had.origin})
	}
	slices.SortFunc(all, func(a, b HeldLock) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.At, b.At)) })
	return all
}

// borrow takes a waiter from those used before, or new memory for one.
func (h *locks) borrow(x *Initiator) (segment.NLA, error) {
	h.mu.Lock()
	if k := len(h.idle); k > 0 {
		w := h.idle[k-1]
		h.idle = h.idle[:k-1]
		h.mu.Unlock()
		return w, nil
	}
	h.mu.Unlock()
	if x.lockMemory != nil {
		return x.lockMemory()
	}
	return h.register(x)
}

// register makes waiters of registered memory, and returns one of them.
func (h *locks) register(x *Initiator) (segment.NLA, error) {
	atu, err := x.ep.ATU()
	if err != nil {
		return 0, err
	}
	// The registration keeps the memory, until the endpoint is closed.
	reg, err := atu.Register(make([]byte, waitersPerPage*LockSize), segment.RightsAll, segment.AnyPeer)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 1; i < waitersPerPage; i++ {
		a, _ := reg.At(uint64(i * LockSize))
		h.idle = append(h.idle, a)
	}
	a, _ := reg.At(0)
	return a, nil
}

// giveBack keeps a waiter for the next.
func (h *locks) giveBack(w segment.NLA) {
	h.mu.Lock()
	h.idle = append(h.idle, w)
	h.mu.Unlock()
}

// lockState names a lock and its holder for Blocked: now, if the state is at hand, else
// when it was last tried, since nothing may wait here.
func (x *Initiator) lockState(l remote, seen int64) string {
	s, when := seen, " when last tried"
	if p := x.views.word64(l.rank(), l.nla()); p != nil {
		s, when = int64(atomic.LoadUint64(p)), ""
	} else if l.rank() == x.ep.Rank() {
		if v, ok := x.own(l.nla()); ok {
			s, when = int64(v), ""
		}
	}
	switch {
	case s >= exclusive:
		return fmt.Sprintf("lock %v, which rank %d holds exclusively%s", l, s>>holderShift-1, when)
	case s <= 0:
		return fmt.Sprintf("lock %v, which is free%s", l, when)
	}
	return fmt.Sprintf("lock %v, which %d hold shared%s", l, s, when)
}
