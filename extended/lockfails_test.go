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
func lockJob(direct bool) (x *Initiator, j *fakeJob, state, tail *uint64) {
	j = newFake(2, fakeOptions{direct: direct, config: Config{LockMemory: func() (segment.NLA, error) { return at(waiterOff), nil }}})
	word := func(rank, off int) *uint64 { return wordIn(j.segs[rank], off) }
	return j.eps[0].x, j, word(1, lockOff), word(1, lockOff+lockTail)
}

// TestLockQueueFails: a rank that cannot enter the queue, because what stands there is not memory, has an
// error and not the lock.
func TestLockQueueFails(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for name, take := range map[string]func(l Lock) error{"Lock": Lock.Lock, "RLock": Lock.RLock} {
			x, _, state, tail := lockJob(direct)
			const held = uint64(exclusive + 2<<holderShift)
			*state, *tail = held, uint64(nowhere)
			if err := take(x.LockAt(1, at(lockOff))); err == nil {
				t.Errorf("direct %v: %s has no error of a queue that cannot be entered", direct, name)
			}
			if *state != held || len(x.HeldLocks()) > 0 {
				t.Errorf("direct %v: the state is %#x and rank 0 holds %+v after %s has failed", direct, *state, x.HeldLocks(), name)
			}
		}
	}
}

// TestUnlockGrants: Unlock has the head of the queue take the lock; if that is away it grants the lock to the first that is not, and adds
// the hold of that one. Those that are away, and the last, leave a
// queue that the next finds as it is.
func TestUnlockGrants(t *testing.T) {
	const other = 128 // the waiter behind, of rank 1
	for _, direct := range []bool{false, true} {
		for _, turn := range [][2]uint64{{waiting, waiting}, {away, waiting}, {away, away}} {
			for _, second := range []remote{0, wantsShared} {
				x, j, state, tail := lockJob(direct)
				l := x.LockAt(1, at(lockOff))
				if err := l.Lock(); err != nil {
					t.Fatal(err)
				}
				// Rank 1 waits twice: exclusively first, in the place where rank 0's waiters are.
				one, two := remoteAt(1, at(waiterOff)), remoteAt(1, at(other))|second
				*wordIn(j.segs[1], waiterOff), *wordIn(j.segs[1], waiterOff+nodeTurn) = uint64(two), turn[0]
				*wordIn(j.segs[1], other+nodeTurn) = turn[1]
				*state += queued
				*tail, *wordIn(j.segs[1], lockOff+lockHead) = uint64(two), uint64(one)
				wakes := j.eps[1].seq
				if err := l.Unlock(); err != nil {
					t.Fatal(err)
				}
				if woken := j.eps[1].seq != wakes; direct && woken != (turn[1] == waiting) {
					t.Errorf("turns %v, second %v: rank 1 is woken: %v", turn, second, woken)
				}
				turns := [2]uint64{*wordIn(j.segs[1], waiterOff+nodeTurn), *wordIn(j.segs[1], other+nodeTurn)}
				want, held := [2]uint64{due, waiting}, int64(queued)
				switch {
				case turn[1] == away:
					want, held = [2]uint64{free, free}, 0
				case turn[0] == away:
					want, held = [2]uint64{free, granted}, queued+two.operand()
				}
				if turns != want || int64(*state) != held || (*tail == 0) != (held == 0) {
					t.Errorf("direct %v, turns %v, second %v: turns %v, not %v; state %#x, not %#x; tail %#x", direct, turn, second, turns, want, *state, held, *tail)
				}
			}
		}
	}
}

// TestUnlockLast: a holder whose queue ends, while a rank comes behind it that has found so already, has
// that one take the lock; and its waiter is not used anew before that rank has been there.
func TestUnlockLast(t *testing.T) {
	const other = 128
	for _, direct := range []bool{false, true} {
		for _, early := range []bool{false, true} { // whether it is the head by then
			x, j, state, tail := lockJob(direct)
			l := x.LockAt(1, at(lockOff))
			x.theLocks().hold(x, remoteAt(1, at(lockOff)), exclusive, at(waiterOff))
			own, behind := remoteAt(0, at(waiterOff)), remoteAt(1, at(other))
			next := wordIn(j.segs[0], waiterOff)
			*state, *tail = uint64(queued+own.operand()), uint64(behind)
			*wordIn(j.segs[0], waiterOff+nodeTurn) = granted
			want := int64(0)
			if early {
				*next, *state, *wordIn(j.segs[1], lockOff+lockHead) = gone, *state+queued, uint64(behind)
				want = queued
			}
			if err := l.Unlock(); err != nil {
				t.Fatal(err)
			}
			if *next != gone || int64(*state) != want || *tail != uint64(behind) || (*wordIn(j.segs[1], other+nodeTurn) == due) != early {
				t.Errorf("direct %v, early %v: next %#x, state %#x, not %#x, tail %#x, turn %d", direct, early, *next, *state, want, *tail, *wordIn(j.segs[1], other+nodeTurn))
			}
			h := x.theLocks()
			x.lockMemory = func() (segment.NLA, error) { return at(2 * waiterOff), nil }
			if w, err := h.borrow(x); err != nil || w != at(2*waiterOff) {
				t.Errorf("direct %v, early %v: waiter %v is used anew (%v)", direct, early, w, err)
			}
			*next = uint64(behind)
			if w, err := h.borrow(x); err != nil || w != at(waiterOff) {
				t.Errorf("direct %v, early %v: waiter %v is new (%v)", direct, early, w, err)
			}
		}
	}
}

// TestReaderJoinsOnce: a reader that is first in the queue, and about to join the last of those inside, is granted the lock by
// that one, which leaves meanwhile. It does not join besides: it has one hold then, and gives back one.
func TestReaderJoinsOnce(t *testing.T) {
	x, j, state, tail := lockJob(false)
	other := j.eps[1].x
	if err := other.LockAt(1, at(lockOff)).RLock(); err != nil {
		t.Fatal(err)
	}
	*state += queued // of a rank that is about to leave the queue, so that the reader enters it
	j.eps[0].before = func(op AtomicOp, a segment.NLA) {
		if op != AtomicCAS || a != at(lockOff) {
			return
		}
		j.eps[0].before = nil
		*state -= queued
		if err := other.LockAt(1, at(lockOff)).RUnlock(); err != nil {
			t.Error(err)
		}
	}
	l := x.LockAt(1, at(lockOff))
	if err := l.RLock(); err != nil {
		t.Fatal(err)
	}
	if j.eps[0].before != nil || *state != 1 {
		t.Errorf("the reader is inside, and the state is %#x, not 1", *state)
	}
	if err := l.RUnlock(); err != nil || *state != 0 || *tail != 0 {
		t.Errorf("the reader has left, and the state is %#x, the tail %#x (%v)", *state, *tail, err)
	}
}

// TestUnlockFails: a lock whose state cannot be changed is held still, unless the job has failed.
func TestUnlockFails(t *testing.T) {
	for _, job := range []bool{false, true} {
		for name, unlock := range map[string]func(x *Initiator) error{
			"Unlock":  func(x *Initiator) error { return x.LockAt(1, at(lockOff)).Unlock() },
			"RUnlock": func(x *Initiator) error { return x.LockAt(1, at(lockOff)).RUnlock() },
		} {
			x, j, _, _ := lockJob(false)
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
