package rt

import (
	"maps"
	"slices"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Locks are queues (Mellor-Crummey and Scott 1991): a thread that waits watches a word of its
// own memory, which the thread before it writes once, so that locks are fair and nothing is
// sent while threads wait. A lock is a word, the place of the last thread's node, on the
// thread that allocated it:
//
//	lock  0  tail  place of the node of the last thread in the queue; 0 unlocked
//	node  0  next  place of the node behind it, or 0; freed if a thread has freed the lock
//	      8  turn  0 until the lock is this thread's
//
// A place is a Phaseless. Unlocked, or with no thread behind, taking and giving back are one
// atomic each.
const (
	nodeSize  = 16
	nodeTurn  = 8
	nodeBlock = 32 // nodes are allocated so many at once
)

// freed is the tail of a lock that was freed: so long as its memory is not allocated anew, its
// use is noticed.
const freed = ^uint64(0)

// Lock is upc_lock_t *: the place of a lock. The zero Lock is null.
type Lock Phaseless

// GlobalLockAlloc is upc_global_lock_alloc (7.2.4.2): an unlocked lock on the calling thread,
// for it alone until it tells others.
func (t *Thread) GlobalLockAlloc() Lock { return Lock(t.Alloc(segment.CacheLine)) }

// AllLockAlloc is upc_all_lock_alloc (7.2.4.3): all threads call it and get the same lock, which
// is on thread 0.
func (t *Thread) AllLockAlloc() Lock {
	t.together("upc_all_lock_alloc")
	var l Lock
	if t.me == 0 {
		l = t.GlobalLockAlloc()
	}
	w, err := gas.Broadcast(t.n, 0, uint64(l))
	t.must(err)
	return Lock(w)
}

// LockFree is upc_lock_free (7.2.4.4): one thread calls it, whether the lock is locked or not.
// The thread that holds it then must not unlock it: that ends the job, as a second free does.
// Null does nothing.
func (t *Thread) LockFree(l Lock) {
	if l == 0 {
		return
	}
	q, ok := t.forget(l)
	old := t.markFreed(l)
	if old != 0 && Phaseless(old) != q {
		// The holder, at its end, leaves the lock's memory alone.
		last := Phaseless(old)
		t.must(t.x.Signal(last.Thread(), last.Addr(), extended.SignalSet, freed))
	}
	if ok {
		t.nodes = append(t.nodes, q)
	}
	t.must(gas.Free(t.n, ToPtr[byte](Phaseless(l))))
}

// holds is the locks that a thread holds, with its nodes in their queues. One of them, mostly the
// only one, has no need of the map.
type holds struct {
	one  Lock // or null
	node Phaseless
	more map[Lock]Phaseless
}

func (h *holds) get(l Lock) (q Phaseless, ok bool) {
	if h.one == l && l != 0 {
		return h.node, true
	}
	if len(h.more) == 0 {
		return 0, false
	}
	q, ok = h.more[l]
	return q, ok
}

func (h *holds) add(l Lock, q Phaseless) {
	if h.one == 0 {
		h.one, h.node = l, q
		return
	}
	if h.more == nil {
		h.more = map[Lock]Phaseless{}
	}
	h.more[l] = q
}

func (h *holds) remove(l Lock) {
	if h.one == l {
		h.one = 0
		return
	}
	delete(h.more, l)
}

// forget is the thread's node in the queue of a lock that it holds, and holds no longer. The
// node is not to be used until the lock's word names it no more.
func (t *Thread) forget(l Lock) (q Phaseless, ok bool) {
	q, ok = t.held.get(l)
	t.held.remove(l)
	return q, ok
}

// markFreed is the tail of the lock before it is freed.
func (t *Thread) markFreed(l Lock) uint64 {
	p := Phaseless(l)
	old, err := extended.Swap[uint64](t.x, p.Thread(), p.Addr(), freed)
	t.must(err)
	if old == freed {
		t.must(errs.BadArg("upc: upc_lock_free of lock %v, which was freed already", p))
	}
	return old
}

// AllLockFree is upc_all_lock_free (7.2.4.5): all threads call it, and the lock stays until
// they all have. A thread may hold it.
func (t *Thread) AllLockFree(l Lock) {
	t.together("upc_all_lock_free")
	t.Fence()
	q, ok := t.forget(l)
	t.meet()
	if ok { // no thread waits for the lock now
		t.nodes = append(t.nodes, q)
	}
	if t.me == 0 && l != 0 {
		t.markFreed(l)
		t.must(gas.Free(t.n, ToPtr[byte](Phaseless(l))))
	}
}

// Lock is upc_lock (7.2.4.6): it waits until the lock is the calling thread's. Threads get a lock
// in the order in which they came. Locking what the thread holds ends the job.
func (t *Thread) Lock(l Lock) {
	t.lockable("upc_lock", l)
	t.must(t.x.Implicit().Sync(allOps))
	p, q := Phaseless(l), t.node()
	old, err := extended.Swap[uint64](t.x, p.Thread(), p.Addr(), uint64(q))
	t.must(err)
	switch {
	case old == freed:
		t.must(extended.Store[uint64](t.x, p.Thread(), p.Addr(), freed))
		t.must(errs.BadArg("upc: upc_lock of lock %v, which was freed", p))
	case old != 0:
		before := Phaseless(old)
		t.must(t.x.Signal(before.Thread(), before.Addr(), extended.SignalSet, uint64(q)))
		_, err := t.x.WaitUntil(q.Addr()+nodeTurn, extended.Ne, 0)
		t.must(err)
	}
	t.held.add(l, q)
	t.x.Fence()
	if checked {
		t.races.Acquire(t.me, uint64(p), 8)
	}
}

// LockAttempt is upc_lock_attempt (7.2.4.7): it takes the lock if no thread holds it, and
// reports whether it has.
func (t *Thread) LockAttempt(l Lock) bool {
	t.lockable("upc_lock_attempt", l)
	t.must(t.x.Implicit().Sync(allOps))
	p, q := Phaseless(l), t.node()
	old, ok, err := extended.CompareAndSwap[uint64](t.x, p.Thread(), p.Addr(), 0, uint64(q))
	t.must(err)
	if old == freed {
		t.must(errs.BadArg("upc: upc_lock_attempt of lock %v, which was freed", p))
	}
	if ok {
		t.held.add(l, q)
		if checked {
			t.races.Acquire(t.me, uint64(p), 8)
		}
	} else {
		t.nodes = append(t.nodes, q)
		t.n.Poll() // a loop may wait so
	}
	t.x.Fence()
	return ok
}

// Unlock is upc_unlock (7.2.4.8). Unlocking what the thread does not hold ends the job.
func (t *Thread) Unlock(l Lock) {
	p := Phaseless(l)
	q, ok := t.held.get(l)
	if !ok {
		t.must(errs.BadArg("upc: upc_unlock of lock %v, which thread %d does not hold", p, t.me))
	}
	t.held.remove(l)
	if !t.pass(p, q) {
		t.must(errs.BadArg("upc: upc_unlock of lock %v, which was freed while thread %d held it", p, t.me))
	}
	t.nodes = append(t.nodes, q)
}

// pass gives the lock at p, which the thread holds with node q, to the thread behind, and
// reports whether the lock still exists. It never waits for a freed one.
func (t *Thread) pass(p, q Phaseless) bool {
	if checked {
		t.races.Release(t.me, uint64(p), 8)
	}
	t.Fence()
	next, err := extended.Load[uint64](t.x, t.me, q.Addr())
	t.must(err)
	if next == 0 {
		old, ok, err := extended.CompareAndSwap[uint64](t.x, p.Thread(), p.Addr(), uint64(q), 0)
		t.must(err)
		switch {
		case old == freed:
			return false
		case !ok: // a thread is about to say that it is behind, or that it has freed the lock
			next, err = t.x.WaitUntil(q.Addr(), extended.Ne, 0)
			t.must(err)
		}
	}
	if next != 0 && next != freed {
		after := Phaseless(next)
		t.must(t.x.Signal(after.Thread(), after.Addr()+nodeTurn, extended.SignalSet, 1))
	}
	return next != freed
}

// lockable fails the thread if it may not lock l: a null pointer, or a lock that it holds.
func (t *Thread) lockable(what string, l Lock) {
	if l == 0 {
		t.must(errs.BadArg("upc: %s of a null pointer%s", what, t.whyNull()))
	}
	q, ok := t.held.get(l)
	if !ok {
		return
	}
	next, err := extended.Load[uint64](t.x, t.me, q.Addr())
	t.must(err)
	if next != freed {
		t.must(errs.BadArg("upc: %s of lock %v, which thread %d holds", what, Phaseless(l), t.me))
	}
	// A thread has freed the lock that this one held, and a new one lies where it was.
	t.held.remove(l)
	t.nodes = append(t.nodes, q)
}

// node is a node of the thread that is in no queue.
func (t *Thread) node() Phaseless {
	if len(t.nodes) == 0 {
		p, err := gas.Alloc[uint64](t.n, nodeBlock*nodeSize/8)
		t.must(err)
		for i := range nodeBlock {
			t.nodes = append(t.nodes, Phaseless(p.Uint64()).AddLocal(i, nodeSize))
		}
	}
	q := t.nodes[len(t.nodes)-1]
	t.nodes = t.nodes[:len(t.nodes)-1]
	t.must(extended.Store[uint64](t.x, t.me, q.Addr(), 0))
	t.must(extended.Store[uint64](t.x, t.me, q.Addr()+nodeTurn, 0))
	return q
}

// release gives back the locks that the thread ends with, so that others do not wait for
// ever: UPC does not forbid to end so, nor that others have freed them.
func (t *Thread) release() {
	all := slices.Collect(maps.Keys(t.held.more))
	if t.held.one != 0 {
		all = append(all, t.held.one)
	}
	slices.Sort(all)
	for _, l := range all {
		q, _ := t.held.get(l)
		t.pass(Phaseless(l), q)
		t.held.remove(l)
	}
}
