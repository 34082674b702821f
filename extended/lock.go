package extended

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/origin"
	"github.com/argon-go/argon/segment"
)

// LockSize is the size of a lock, bytes. It lies at a multiple of 8, in memory of any
// kind that all ranks which use it may access with atomics; zeros are an unlocked lock.
//
//	0   state  0 unlocked, m held shared by m, above maxShared held exclusively; queued: see there
//	8   tail   place of the last waiter in the queue, or 0
//	16  head   place of the first one, while it waits for those to leave who came before the queue
//
// A waiter has LockSize bytes, too, in memory of the rank that waits:
//
//	0   next   place of the one behind it, or 0; gone if its turn passed when there was none
//	8   turn   waiting, or what has become of that
//
// A place is rank<<40 | address, plus 1 for a waiter that wants the lock shared.
const LockSize = 24

const (
	lockTail = 8 // offsets, see LockSize
	lockHead = 16
	nodeTurn = 8
)

// gone is the next of a waiter whose turn has passed: one that comes behind it is the first.
const gone = 2

// The turn of a waiter.
const (
	waiting = iota
	granted // the lock is held for it; or, if it was away, for others by now
	due     // the same, but no hold is in the state yet: it adds its own
	away    // its goroutine runs other work, and is passed over
	free    // no rank writes to it any more
)

// queued is added to a lock's state while there is a queue, so that all requests that come enter it, and
// for a moment twice: by the one that leaves the queue and by the next that becomes its head.
const queued = 1 << 60

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

// waitersPerPage is how many waiters have room where Config.LockMemory is nil, a page
// at a time.
const waitersPerPage = segment.PageSize / LockSize

// remote names a place of any rank in one word, which is not 0.
type remote uint64

// wantsShared is the bit of a waiter's place that says how it wants the lock.
const wantsShared remote = 1

const remoteBits = 40 // of the address: below segment.ExposedLimit

func remoteAt(rank int, a segment.NLA) remote {
	return remote(rank)<<remoteBits | remote(a)&(1<<remoteBits-1)
}

func (r remote) rank() int        { return int(r >> remoteBits) }
func (r remote) nla() segment.NLA { return segment.NLA(r & (1<<remoteBits - 1) &^ wantsShared) }

// operand is what the hold that a waiter wants adds to the lock's state.
func (r remote) operand() int64 {
	if r&wantsShared != 0 {
		return 1
	}
	return exclusive + int64(r.rank()+1)<<holderShift
}

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
	words [nearLocks]nearHold
}

type nearHold struct {
	lock atomic.Uint64 // a remote, or 0
	node atomic.Uint64 // as holds.node
}

// holds is how this rank holds a lock.
type holds struct {
	sum    int64       // of what they add: exclusive, or how many are shared
	node   segment.NLA // the waiter of an exclusive hold that came by the queue, which it leaves at Unlock; or 0
	origin string      // where the first was taken, with Config.Origins
}

// Lock is the lock at an address of a rank, as one rank uses it: see [Initiator.LockAt].
type Lock struct {
	x    *Initiator
	rank int
	at   segment.NLA
	stop func() bool
}

// LockAt is the lock at address at of rank. Nothing is made: a Lock is a name, which may be copied.
func (x *Initiator) LockAt(rank int, at segment.NLA) Lock { return Lock{x: x, rank: rank, at: at} }

// Unless is l whose Lock and RLock stop to wait when stop reports true, with an error that matches
// conduits.ErrGivenUp. stop is called as conduits.Cond.Ready is. The request stays in the queue, where it is passed over when its turn
// comes: until then it costs LockSize bytes of memory, and those behind it wait for what it waited for, readers as well.
func (l Lock) Unless(stop func() bool) Lock {
	l.stop = stop
	return l
}

// String names the lock as reports do.
func (l Lock) String() string { return remoteAt(l.rank, l.at).String() }

// Lock takes the lock exclusively: no other goroutine
// of any rank holds it then, shared or not. It waits, polling and then parked. A lock is granted in the
// order in which requests reach it, but for what is taken while there is no queue, and is not
// reentrant; what a holder did to memory, and synchronized, before Unlock is
// visible to the next one. A rank that leaves the job gives its locks back before, see
// HeldLocks. Nothing runs at the rank that has the lock's memory.
//
// It is the lock of Nüssle 2008, section 7.5.4: taking and giving it back are one
// fetch-compare-and-add on the state, with the operands of table 7-3. A request that fails is kept, as
// proposed there, and sends nothing while it waits: the waiters are a queue, which begins at the lock's memory
// and in which each knows the one behind it (Mellor-Crummey and Scott 1991). A holder that
// came by the queue gives the lock to the next; a shared one at once, if that wants it shared,
// too. Of any number of waiters each costs three operations to enter the queue and two to be granted the
// lock, and a shared one two to leave it.
func (l Lock) Lock() error {
	x := l.x
	if w, near := x.views.lockWords(l.rank, l.at), x.notes.Load(); w != nil && near != nil {
		if err := x.poll.Blocking("lock"); err != nil {
			return err
		}
		if atomic.CompareAndSwapUint64(&w[0], 0, uint64(near.own)) {
			if h := remoteAt(l.rank, l.at); !near.place(h).lock.CompareAndSwap(0, uint64(h)) {
				x.theLocks().far(h, exclusive, 0, false)
			}
			return nil
		}
	}
	return l.lock(0, exclusive)
}

// RLock takes the lock shared: many may hold it so, if none holds it exclusively. It
// waits as Lock does, also behind those that wait in Lock, and never for those that hold it shared
// alone: these may wait for it.
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
		if n := near.place(h); n.node.Load() == 0 && n.lock.CompareAndSwap(uint64(h), 0) {
			if atomic.AddUint64(&w[0], -uint64(near.own)) != queued {
				return nil
			}
			return l.grantHead()
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
	if x.views.word64(rank, at+lockHead) == nil {
		// In a segment all words are there, or nothing is changed. What there is of
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
		x.theLocks().hold(x, remoteAt(rank, at), d, 0)
	}
	return now, ok, nil
}

func (l Lock) lock(limit, d int64) error {
	x := l.x
	for {
		seen, ok, err := l.tryLock(limit, d)
		if ok || err != nil {
			return err
		}
		w, err := x.theLocks().borrow(x)
		if err != nil {
			return fmt.Errorf("extended: lock %v: no memory to wait with: %w", l, err)
		}
		ok, err = l.enter(w, limit, d)
		if err == nil && !ok {
			var turn uint64
			turn, ok, err = l.await(w, seen)
			switch {
			case !ok || err != nil:
			case turn == due:
				_, err = l.add(x.operand(d))
			case conc.Race:
				// The turn may lie in a segment, and those the detector does not see.
				_, err = l.add(0)
			}
		}
		switch {
		case err == conduits.ErrGivenUp:
			x.theLocks().giveBack(w)
			fallthrough
		case err != nil:
			return fmt.Errorf("extended: lock %v: %w", l, err)
		case !ok: // passed over
			x.theLocks().giveBack(w)
			continue
		case d == exclusive:
			x.theLocks().hold(x, remoteAt(l.rank, l.at), d, w)
			return nil
		}
		x.theLocks().hold(x, remoteAt(l.rank, l.at), d, 0)
		if err := l.pass(remoteAt(x.ep.Rank(), w)|wantsShared, 0, true); err != nil {
			return fmt.Errorf("extended: lock %v: %w", l, err)
		}
		x.theLocks().giveBack(w)
		return nil
	}
}

// enter puts the own waiter w at the end of the queue, and reports whether it has the lock already.
func (l Lock) enter(w segment.NLA, limit, d int64) (ok bool, err error) {
	x, me := l.x, l.x.ep.Rank()
	if err := Store[uint64](x, me, w, 0); err != nil {
		return false, err
	}
	if err := Store[uint64](x, me, w+nodeTurn, waiting); err != nil {
		return false, err
	}
	own := remoteAt(me, w)
	if d != exclusive {
		own |= wantsShared
	}
	last, err := Swap(x, l.rank, l.at+lockTail, uint64(own))
	if err != nil {
		return false, err
	}
	if last := remote(last); last != 0 {
		if next, err := Swap(x, last.rank(), last.nla(), uint64(own)); err != nil || next != gone {
			return false, err
		}
	}
	// It is the first: of those that hold the lock the last one will grant it.
	if _, ok, err := FetchCompareAdd(x, l.rank, l.at, limit, own.operand()+queued); ok || err != nil {
		return ok, err
	}
	if err := Store(x, l.rank, l.at+lockHead, uint64(own)); err != nil {
		return false, err
	}
	before, err := l.add(queued)
	if err == nil && before == 0 {
		_, err = l.add(own.operand())
		return err == nil, err
	}
	// Those that hold it shared may wait for one more, which joins them while there is any. No other comes
	// in, so they only get fewer: once there is none the last to leave has seen that, and grants it.
	for s := before + queued; err == nil && d != exclusive; {
		if m := s % queued; m == 0 || m > limit {
			break
		}
		if s, ok, err = CompareAndSwap(x, l.rank, l.at, s, s+d); ok {
			break
		}
	}
	return ok, err
}

// add adds to the state, and returns what it was.
func (l Lock) add(d int64) (before int64, err error) {
	before, _, err = FetchCompareAdd(l.x, l.rank, l.at, maxInt, d)
	return before, err
}

// await parks until w has its turn, or was passed over, which is not ok. seen is the state
// that the try found.
func (l Lock) await(w segment.NLA, seen int64) (turn uint64, ok bool, err error) {
	k := l.x.table.getWaiter()
	k.one[0] = w + nodeTurn
	k.lock, k.state, k.stop = remoteAt(l.rank, l.at), seen, l.stop
	i, turn, err := l.x.waitWords(k, waitLock, k.one[:], 0, Ne, waiting)
	if err == nil && i >= 0 && turn == waiting { // stop has ended the wait
		turn, ok, err = CompareAndSwap[uint64](l.x, l.x.ep.Rank(), w+nodeTurn, waiting, away)
		if ok && err == nil {
			err = conduits.ErrGivenUp
		}
		return turn, true, err // or its turn has come meanwhile
	}
	return turn, i >= 0, err
}

// pass leaves the queue with waiter n, whose turn it is: it grants the lock to the one behind it, and so on if that is
// away. d is to be added to the state, for a hold that ends; with keep the caller has a shared hold besides,
// so that one that wants the lock exclusively becomes the head.
func (l Lock) pass(n remote, d int64, keep bool) error {
	x := l.x
	for {
		next, ended, err := CompareAndSwap[uint64](x, n.rank(), n.nla(), 0, gone)
		if err != nil {
			return err
		}
		if ended || next == gone {
			before, err := l.add(d - queued)
			if err != nil {
				return err
			}
			// One that comes behind n meanwhile finds that it is gone.
			_, ok, err := CompareAndSwap(x, l.rank, l.at+lockTail, uint64(n), 0)
			if err == nil && ok {
				err = Store[uint64](x, n.rank(), n.nla(), 0)
			}
			if err == nil {
				err = Store[uint64](x, n.rank(), n.nla()+nodeTurn, free)
			}
			if err == nil && before+d-queued == queued { // it is there, and waits as the head
				err = l.grantHead()
			}
			return err
		}
		if err := Store[uint64](x, n.rank(), n.nla()+nodeTurn, free); err != nil {
			return err
		}
		n = remote(next)
		if keep && n&wantsShared == 0 {
			if err := Store(x, l.rank, l.at+lockHead, next); err != nil || d == 0 {
				return err
			}
			_, err := l.add(d)
			return err
		}
		if _, err := l.add(d + n.operand()); err != nil {
			return err
		}
		if ok, err := l.grant(n, granted); ok || err != nil {
			return err
		}
		d = -n.operand()
	}
}

// grant tells waiter n that its turn has come. It is not ok if n is away.
func (l Lock) grant(n remote, as uint64) (ok bool, err error) {
	turn, err := Swap(l.x, n.rank(), n.nla()+nodeTurn, as)
	if err == nil && turn == waiting && l.x.views.near(n.rank()) {
		l.x.ep.Wake(n.rank())
	}
	return turn == waiting, err
}

// grantHead has the head of the queue take the lock, which no rank holds. The head adds its hold itself: one
// that wants the lock shared would take a hold added here for that of another, and join it (enter).
func (l Lock) grantHead() error {
	head, err := Load[uint64](l.x, l.rank, l.at+lockHead)
	if err != nil {
		return err
	}
	n := remote(head)
	if ok, err := l.grant(n, due); ok || err != nil {
		return err
	}
	return l.pass(n, 0, false)
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
	node, err := x.theLocks().drop(op, x.ep.Rank(), h, d)
	if err != nil {
		return err
	}
	own := x.operand(d)
	if node != 0 {
		if err = l.pass(remoteAt(x.ep.Rank(), node), -own, false); err == nil {
			x.theLocks().giveBack(node)
			return nil
		}
	} else {
		var before int64
		if before, err = l.add(-own); err == nil {
			if before-own == queued {
				if err := l.grantHead(); err != nil {
					return fmt.Errorf("extended: %s of lock %v: %w", op, h, err)
				}
			}
			return nil
		}
	}
	if x.ep.Err() == nil {
		x.theLocks().hold(x, h, d, node) // it was not given back
	}
	return fmt.Errorf("extended: %s of lock %v: %w", op, h, err)
}

// place is where an exclusive hold of l is noted if there is room.
func (h *nearHolds) place(l remote) *nearHold {
	return &h.words[uint64(l)*0x9e3779b97f4a7c15>>(64-nearBits)]
}

// hold notes a hold of this rank.
func (h *locks) hold(x *Initiator, l remote, d int64, node segment.NLA) {
	if d == exclusive && x.table.origins == nil {
		near := x.notes.Load()
		if near == nil {
			h.near.CompareAndSwap(nil, &nearHolds{own: x.operand(d)})
			near = h.near.Load()
			x.notes.Store(near)
		}
		if n := near.place(l); n.lock.CompareAndSwap(0, uint64(l)) {
			n.node.Store(uint64(node))
			return
		}
	}
	h.far(l, d, node, x.table.origins != nil)
}

// far notes a hold in the map.
func (h *locks) far(l remote, d int64, node segment.NLA, origins bool) {
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
	had.node = node
	h.held[l] = had
	h.mu.Unlock()
}

// drop forgets a hold, if there is one, and returns its node.
func (h *locks) drop(op string, me int, l remote, d int64) (node segment.NLA, err error) {
	if near := h.near.Load(); d == exclusive && near != nil {
		if n := near.place(l); n.lock.Load() == uint64(l) {
			node = segment.NLA(n.node.Swap(0))
			if n.lock.CompareAndSwap(uint64(l), 0) {
				return node, nil
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	had := h.held[l]
	if near := h.near.Load(); d != exclusive && near != nil && near.place(l).lock.Load() == uint64(l) {
		had.sum = exclusive
	}
	if d == exclusive && had.sum != exclusive || d == 1 && (had.sum == 0 || had.sum == exclusive) {
		how := "does not hold it"
		if had.sum == exclusive {
			how = "holds it exclusively"
		} else if had.sum > 0 {
			how = "holds it shared"
		}
		return 0, errs.BadArg("extended: %s of lock %v: rank %d %s", op, l, me, how)
	}
	node = had.node
	if had.sum -= d; had.sum == 0 {
		delete(h.held, l)
	} else {
		h.held[l] = had
	}
	return node, nil
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
			if l := remote(near.words[i].lock.Load()); l != 0 {
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
	for i := len(h.idle) - 1; i >= 0; i-- {
		w := h.idle[i]
		// One that has left the queue may be read until the one behind it, or the one that passed
		// it over, has found it so.
		next, there := x.own(w)
		turn, _ := x.own(w + nodeTurn)
		if there && next != gone && turn != granted && turn != due && turn != away {
			h.idle = slices.Delete(h.idle, i, i+1)
			h.mu.Unlock()
			return w, nil
		}
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
	switch s %= queued; {
	case s >= exclusive:
		return fmt.Sprintf("lock %v, which rank %d holds exclusively%s", l, s>>holderShift-1, when)
	case s <= 0:
		return fmt.Sprintf("lock %v, which is free%s", l, when)
	}
	h := x.theLocks()
	h.mu.Lock()
	defer h.mu.Unlock()
	if mine := h.held[l]; mine.sum > 0 && mine.sum < exclusive {
		return fmt.Sprintf("lock %v, which rank %d itself holds shared, with %d more%s", l, x.ep.Rank(), s-1, when)
	}
	return fmt.Sprintf("lock %v, which %d hold shared%s", l, s, when)
}
