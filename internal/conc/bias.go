// The Lock of this file is a mutual exclusion lock that costs a goroutine which uses
// it alone no atomic read-modify-write.
//
// A Lock is biased to the first goroutine that takes it. That goroutine enters
// by a plain store and a load, and leaves by a plain store. When another one
// comes, it revokes the bias: it makes every running thread pass a memory barrier
// (membarrier(2), about 8 us), and waits for the owner to be outside. From then on the
// lock is a sync.Mutex, until one goroutine has taken it so often in a row, without
// another one between, that the time of a barrier is little beside what it would have
// saved: that goroutine becomes the owner. How often that is doubles with each
// revocation. The asymmetric fence is what makes store-then-load safe without a fence on
// the owner's side.
//
// Measured on the small-message path, two processes: with a mutex in its place a
// flood takes 28 instead of 15 ns a message, because a locked instruction waits
// for the stores before it to have their lines.

package conc

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/sys"
)

// enabled: biased entry needs goroutine identity and the asymmetric fence; race
// builds use the mutex, which the race detector understands.
var enabled = !Race && sys.HasGoroutine && sys.HasMembarrier()

// tenure is a goroutine's ownership of a lock. Once revoked it stays so: its goroutine
// may be about to enter by it at any time later, and has to find that out.
type tenure struct {
	goroutine uintptr
	inside    uint32        // 1 while the owner is in by bias, or looks in; the owner writes it
	revoked   atomic.Uint32 // 1 once the bias is gone
	fenced    bool          // a barrier has passed since then; under Lock.mu
}

// later is a tenure after the first. Nothing else lies in its line, which the owner writes
// each time.
type later struct {
	tenure
	_ [40]byte
}

// How often in a row a goroutine takes a lock as a mutex before it owns it: after the
// first revocation, and at most. 1,024 times are 15 us that an owner would have saved.
const (
	firstRun = 1 << 10
	mostRun  = 1 << 20
)

// Lock is a mutual exclusion lock. The zero value is unlocked. It must not be
// copied after first use.
type Lock struct {
	cur    atomic.Pointer[tenure] // the newest; changed under mu, and only while the lock is held
	in     *uint32                // inside of cur: a plain pointer, so that Unlock is small enough to be inlined
	holder atomic.Uintptr         // goroutine that holds the lock by mu, 0 if none does
	first  tenure
	mu     sync.Mutex

	// Under mu: the goroutine that took the lock last, how often in a row, and how
	// often it takes to become the owner.
	last      uintptr
	run, need uint32
}

// Lock takes the lock, waiting if need be. The holder must not take it again.
func (l *Lock) Lock() {
	g := sys.Goroutine()
	if t := l.cur.Load(); t != nil && t.goroutine == g {
		Release32(&t.inside, 1)
		if t.revoked.Load() == 0 {
			return
		}
		Release32(&t.inside, 0)
	}
	l.lockSlow()
}

func (l *Lock) lockSlow() {
	g := sys.Goroutine()
	l.mu.Lock()
	if !l.claim(g) {
		l.hold(g, l.revoke())
	}
}

// Unlock gives the lock back. It must be called by the goroutine that took it.
func (l *Lock) Unlock() {
	if l.holder.Load() == 0 {
		Release32(l.in, 0)
	} else {
		l.unlockSlow()
	}
}

// unlockSlow is Unlock of a mutex, which becomes the caller's by bias if it has been so
// often in a row.
func (l *Lock) unlockSlow() {
	if enabled && l.run >= l.need {
		t := &later{tenure: tenure{goroutine: l.last}}
		l.run = 0
		l.own(&t.tenure)
	}
	l.holder.Store(0)
	l.mu.Unlock()
}

// TryLock takes the lock if no goroutine holds it, the caller included. It may fail
// spuriously while another goroutine tries too.
func (l *Lock) TryLock() bool {
	g := sys.Goroutine()
	t := l.cur.Load()
	if t != nil && t.goroutine == g {
		if t.inside != 0 {
			return false
		}
		Release32(&t.inside, 1)
		if t.revoked.Load() == 0 {
			return true
		}
		Release32(&t.inside, 0)
	}
	if !l.mu.TryLock() {
		return false
	}
	if l.claim(g) {
		return true
	}
	if t = l.revoke(); t != nil && atomic.LoadUint32(&t.inside) != 0 {
		l.mu.Unlock()
		return false
	}
	l.hold(g, t)
	return true
}

// Held reports whether the calling goroutine holds the lock. Where goroutines
// cannot be told apart it reports whether any does.
func (l *Lock) Held() bool {
	g := sys.Goroutine()
	if l.holder.Load() == g {
		return true
	}
	t := l.cur.Load()
	return t != nil && t.goroutine == g && atomic.LoadUint32(&t.inside) != 0
}

// claim biases a lock that has not been used yet to the caller, which holds mu and enters
// by bias in its place.
func (l *Lock) claim(g uintptr) bool {
	if !enabled || l.cur.Load() != nil {
		return false
	}
	l.first.goroutine, l.first.inside = g, 1
	l.own(&l.first)
	l.mu.Unlock()
	return true
}

// own begins a tenure of the caller, which holds mu and the lock.
func (l *Lock) own(t *tenure) {
	l.in = &t.inside
	l.cur.Store(t)
}

// revoke returns the newest tenure when its owner can no longer enter by it unseen; nil
// if there is none. The caller holds mu.
func (l *Lock) revoke() *tenure {
	t := l.cur.Load()
	if t != nil && !t.fenced {
		t.revoked.Store(1)
		sys.Barrier()
		t.fenced = true
		l.need = min(max(firstRun, 2*l.need), mostRun)
	}
	return t
}

// hold waits until the former owner is outside, which may still be in by bias, or look
// in for a moment before it notices that the bias is gone. The caller holds mu, and the
// lock when hold returns.
func (l *Lock) hold(g uintptr, t *tenure) {
	for t != nil && atomic.LoadUint32(&t.inside) != 0 {
		runtime.Gosched()
	}
	if l.last != g {
		l.last, l.run = g, 0
	}
	l.run++
	l.holder.Store(g)
}
