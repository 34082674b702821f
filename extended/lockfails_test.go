package extended

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/segment"
)

// The lock of these tests, in rank 1's memory, and waiters of rank 0.
const (
	lockOff   = 64
	waiterOff = 256
)

// nowhere is a waiter in memory that no rank has.
var nowhere = remoteAt(1, segment.ExposedBase+1<<30)

// lockJob is two ranks, the lock, and its words.
func lockJob(direct bool, memory func() (segment.NLA, error)) (x *Initiator, j *fakeJob, state, list *uint64) {
	j = newFake(2, fakeOptions{direct: direct, config: Config{LockMemory: memory}})
	word := func(rank, off int) *uint64 { return wordIn(j.segs[rank], off) }
	return j.eps[0].x, j, word(1, lockOff), word(1, lockOff+lockWaiters)
}

// TestLockListFails: a rank that gets the lock, but cannot wake those that wait for it, or that cannot
// give it back, leaves nothing that it does not know of: the lock is free if Lock has an error.
func TestLockListFails(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for name, take := range map[string]func(x *Initiator) error{
			"Lock":  func(x *Initiator) error { return x.LockAt(1, at(lockOff)).Lock() },
			"RLock": func(x *Initiator) error { return x.LockAt(1, at(lockOff)).RLock() },
		} {
			var state *uint64
			// Asked for a waiter, when the lock was tried often enough: its holder goes now.
			x, j, state, list := lockJob(direct, func() (segment.NLA, error) { *state = 0; return at(waiterOff), nil })
			*state, *list = uint64(exclusive+2<<holderShift), uint64(nowhere)
			if err := take(x); err == nil {
				t.Errorf("direct %v: %s has no error of a list that cannot be read", direct, name)
			}
			if *state != 0 {
				t.Errorf("direct %v: the lock is held (%#x) after %s has failed", direct, *state, name)
			}
			if held := x.HeldLocks(); len(held) > 0 {
				t.Errorf("direct %v: rank 0 holds %+v after %s has failed", direct, held, name)
			}
			if w := *wordIn(j.segs[0], waiterOff+waiterAwake); w != 1 {
				t.Errorf("direct %v: the waiter that came behind the bad one sleeps on", direct)
			}
		}
	}
}

// TestUnlockWakesAll: a waiter that cannot be woken does not keep an Unlock from waking those behind it,
// and the lock is free.
func TestUnlockWakesAll(t *testing.T) {
	for _, direct := range []bool{false, true} {
		x, j, state, list := lockJob(direct, nil)
		if err := x.LockAt(1, at(lockOff)).Lock(); err != nil {
			t.Fatal(err)
		}
		last := len(j.segs[1]) - 8 // its word awake is behind the segment
		*list, *wordIn(j.segs[1], last) = uint64(remoteAt(1, at(last))), uint64(remoteAt(0, at(waiterOff)))
		if err := x.LockAt(1, at(lockOff)).Unlock(); err == nil {
			t.Errorf("direct %v: no error of a waiter that cannot be woken", direct)
		}
		if *state != 0 || *list != 0 || len(x.HeldLocks()) > 0 {
			t.Errorf("direct %v: the lock is %#x with waiters %#x and %v held", direct, *state, *list, x.HeldLocks())
		}
		if *wordIn(j.segs[0], waiterOff+waiterAwake) != 1 {
			t.Errorf("direct %v: the waiter behind one that cannot be woken sleeps on", direct)
		}
	}
}

// TestUnlockFails: a lock whose state cannot be changed is held still, unless the job has failed.
func TestUnlockFails(t *testing.T) {
	for _, job := range []bool{false, true} {
		for name, unlock := range map[string]func(x *Initiator) error{
			"Unlock":  func(x *Initiator) error { return x.LockAt(1, at(lockOff)).Unlock() },
			"RUnlock": func(x *Initiator) error { return x.LockAt(1, at(lockOff)).RUnlock() },
		} {
			x, j, _, _ := lockJob(false, nil)
			take := x.LockAt(1, at(lockOff)).Lock
			if name == "RUnlock" {
				take = x.LockAt(1, at(lockOff)).RLock
			}
			if err := take(); err != nil {
				t.Fatal(err)
			}
			j.eps[0].die(errDied, job)
			if err := unlock(x); !errors.Is(err, errDied) {
				t.Errorf("%s: %v", name, err)
			}
			if held := len(x.HeldLocks()); (held == 1) == job {
				t.Errorf("%d locks are held after a %s that has failed; the job has: %v", held, name, job)
			}
		}
	}
}
