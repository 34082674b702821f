package rt

import (
	"math/rand/v2"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// TestLock: what threads do under a lock is not lost, by whichever of its two ways they have
// taken it.
func TestLock(t *testing.T) {
	onEach(t, 4, func(t *Thread) {
		const rounds = 25
		l := t.AllLockAlloc()
		counter := t.AllAlloc(1, 8)
		if t.me == 0 {
			Put(t, counter, uint64(0))
		}
		t.BarrierAny()
		for i := range rounds {
			if i%3 == 0 {
				for !t.LockAttempt(l) {
				}
			} else {
				t.Lock(l)
			}
			v := Get[uint64](t, counter)
			PutAsync(t, counter, v+1)
			t.Unlock(l)
		}
		t.BarrierAny()
		if v := Get[uint64](t, counter); v != rounds*4 {
			t.failf("%d of %d additions under the lock were lost", rounds*4-v, rounds*4)
		}
		if t.held.count() != 0 || len(t.nodes) != nodeBlock {
			t.failf("%d locks are held, %d nodes idle", t.held.count(), len(t.nodes))
		}
		t.AllLockFree(l)
	})
}

// TestLockFair: a lock goes to threads in the order in which they have entered its queue.
func TestLockFair(t *testing.T) {
	if conc.Race {
		t.Skip("strict accesses, by which threads look at the queue, are races to the detector")
	}
	onEach(t, 4, func(t *Thread) {
		l := t.AllLockAlloc()
		count := t.Base(objE)    // on thread 0: how many have had the lock
		turn := t.Base(objLocks) // [0]: thread r may go; [1]: as which number it had the lock
		mine := MakePhaseless(t.me, turn.Addr())
		if t.me == 0 {
			t.Lock(l)
			for r := 1; r <= t.threads; r++ {
				// The thread before is in the queue.
				for Phaseless(GetStrict[uint64](t, Phaseless(l))).Thread() != r-1 {
				}
				if r < t.threads {
					PutStrict(t, MakePhaseless(r, turn.Addr()), uint64(1))
				}
			}
			t.Unlock(l)
		} else {
			for GetStrict[uint64](t, mine) == 0 {
			}
			t.Lock(l)
			v := Get[uint64](t, count) + 1
			Put(t, count, v)
			Put(t, mine.AddLocal(1, 8), v)
			t.Unlock(l)
		}
		t.BarrierAny()
		for r := 1; r < t.threads; r++ {
			if v := Get[uint64](t, MakePhaseless(r, turn.Addr()).AddLocal(1, 8)); v != uint64(r) {
				t.failf("thread %d had the lock as number %d", r, v)
			}
		}
	})
}

var objLocks = Static(Object{Name: "turns", Size: 16, Block: 1, Count: 1, TimesThreads: true})

// TestLockAtExit: a thread that ends gives back what it holds.
func TestLockAtExit(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		l := t.AllLockAlloc()
		if t.me == 0 {
			t.Lock(l)
		}
		t.BarrierAny()
		if t.me == 1 {
			t.Lock(l)
		}
	})
}

// TestLockAnew: a thread may lock a lock that lies where another thread has freed one that it held.
func TestLockAnew(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		place := t.Base(objE)
		for range 3 {
			var l Lock
			if t.me == 1 {
				l = t.GlobalLockAlloc()
				t.Lock(l)
				Put(t, place, uint64(l))
			}
			t.BarrierAny()
			if t.me == 0 {
				t.LockFree(Lock(Get[uint64](t, place)))
			}
			t.BarrierAny()
			if t.me != 1 {
				continue
			}
			if again := t.GlobalLockAlloc(); again != l {
				t.failf("the memory of %v is not used anew, but %v", Phaseless(l), Phaseless(again))
			}
			if !t.LockAttempt(l) {
				t.failf("a new lock is locked")
			}
			t.Unlock(l)
			t.LockFree(l)
		}
	})
}

// TestLockFreeHeld: a lock may be freed while another thread holds it (7.2.4.4, 7.2.4.5), and
// its memory used for something else, before the holder ends.
func TestLockFreeHeld(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		all := t.AllLockAlloc()
		if t.me == 1 {
			t.Lock(all)
		}
		t.AllLockFree(all)
		if idle := len(t.nodes); t.held.count() != 0 || t.me == 1 && idle != nodeBlock {
			t.failf("%d locks are held, %d nodes idle", t.held.count(), idle)
		}
		place := t.Base(objE)
		var one Lock
		if t.me == 0 {
			one = t.GlobalLockAlloc()
			Put(t, place, uint64(one))
		}
		t.BarrierAny()
		if t.me == 1 {
			t.Lock(Lock(Get[uint64](t, place)))
		}
		t.BarrierAny()
		if t.me == 0 {
			t.LockFree(one)
			p := t.Alloc(segment.CacheLine)
			if p != Phaseless(one) {
				t.failf("the memory of %v is not used anew, but %v", Phaseless(one), p)
			}
			Put(t, p, uint64(7))
		}
		t.BarrierAny()
	})
}

func TestLockMisuse(t *testing.T) {
	for says, main := range map[string]func(t *Thread, l Lock){
		"which thread 0 does not hold":  func(t *Thread, l Lock) { t.Unlock(l) },
		"upc_lock of lock":              func(t *Thread, l Lock) { t.Lock(l); t.Lock(l) },
		"upc_lock_attempt of lock":      func(t *Thread, l Lock) { t.Lock(l); t.LockAttempt(l) },
		"upc_unlock of lock":            func(t *Thread, l Lock) { t.Lock(l); t.LockFree(l); t.Unlock(l) },
		"which was freed already":       func(t *Thread, l Lock) { t.LockFree(l); t.LockFree(l) },
		"which was freed":               func(t *Thread, l Lock) { t.LockFree(l); t.Lock(l) },
		"upc_lock_attempt of lock 1:0+": func(t *Thread, l Lock) { t.LockFree(l); t.LockAttempt(l) },
		"upc_lock of a null pointer":    func(t *Thread, _ Lock) { t.Lock(0) },
		"freed while thread 0 held it":  func(t *Thread, l Lock) { t.Lock(l); PutStrict(t, Phaseless(l), freed); t.Unlock(l) },
		"upc_unlock of lock 1:0+0x1":    func(t *Thread, _ Lock) { t.Unlock(Lock(MakePhaseless(1, testBase-4095))) },
	} {
		refused(t, 2, gas.ErrBadArg, says, func(t *Thread) {
			var l Lock
			if t.me == 1 {
				l = t.GlobalLockAlloc()
				Put(t, t.Base(objE), uint64(l))
			}
			t.BarrierAny()
			if t.me == 0 {
				t.LockFree(0)
				main(t, Lock(Get[uint64](t, t.Base(objE))))
			}
		})
	}
}

// count is how many locks are held.
func (h *holds) count() int {
	if h.one != 0 {
		return 1 + len(h.more)
	}
	return len(h.more)
}

// TestHolds: whichever locks a thread holds, in whatever order it gives them back, it has the node of each.
func TestHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h holds
	model := map[Lock]Phaseless{}
	for i := range 2000 {
		l := Lock(1 + r.IntN(6))
		want, held := model[l]
		if q, ok := h.get(l); q != want || ok != held {
			t.Fatalf("step %d: lock %d has node %d, %v, not %d, %v", i, l, q, ok, want, held)
		}
		if held {
			h.remove(l)
			delete(model, l)
		} else {
			h.add(l, Phaseless(i+1))
			model[l] = Phaseless(i + 1)
		}
		if h.count() != len(model) {
			t.Fatalf("step %d: %d locks, not %d", i, h.count(), len(model))
		}
		if _, ok := h.get(0); ok {
			t.Fatalf("step %d: the null lock is held", i)
		}
	}
}
