package gas

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// Under an exclusive lock plain memory of another rank is safe to change, and
// under a shared one to read.
func TestLockExcludes(t *testing.T) {
	const goroutines, each = 3, 100
	type pair struct{ a, b uint64 }
	runN(t, 3, func(n *Node) error {
		l := Must(NewLock(n))
		p := Must(New[pair](n))
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
		n.Must(n.Barrier())
		want := uint64(n.Size() * goroutines * each)
		if v, err := p.Get(n); err != nil || v.a != want {
			return fmt.Errorf("%d rounds were counted, want %d (%v)", v.a, want, err)
		}
		if w, err := l.Word().Get(n); err != nil || w.state != 0 || w.tail != 0 {
			return fmt.Errorf("the lock is left as %+v (%v)", w, err)
		}
		return n.Barrier()
	})
}

func TestTryLock(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		l := Must(NewLock(n))
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
				n.Must(want("first", ok, err, true))
				ok, err = l.TryLock(n)
				n.Must(want("again", ok, err, false))
			}
			n.Must(n.Barrier())
			if n.Rank() == 1 {
				ok, err := l.TryLock(n)
				n.Must(want("TryLock", ok, err, false))
				ok, err = l.TryRLock(n)
				n.Must(want("TryRLock", ok, err, !exclusively))
				if ok {
					n.Must(wantErr(l.Unlock(n), ErrBadArg, "holds it shared"))
					n.Must(l.RUnlock(n))
				}
				n.Must(wantErr(l.Unlock(n), ErrBadArg, "rank 1 does not hold it"))
				n.Must(wantErr(l.RUnlock(n), ErrBadArg, "rank 1 does not hold it"))
			}
			n.Must(n.Barrier())
			if n.Rank() == 0 {
				drop := l.RUnlock
				if exclusively {
					n.Must(wantErr(l.RUnlock(n), ErrBadArg, "holds it exclusively"))
					drop = l.Unlock
				}
				n.Must(drop(n))
			}
			n.Must(n.Barrier())
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
		p := Must(New[account](n))
		for i := range 100 {
			q := p.On((n.Rank() + i) % n.Size())
			l := LockAt(Field(q, func(a *account) *LockWord { return &a.lock }))
			b := Field(q, func(a *account) *int64 { return &a.balance })
			n.Must(l.Lock(n))
			v := Must(b.Get(n))
			n.Must(b.Put(n, v+1))
			n.Must(l.Unlock(n))
		}
		n.Must(n.Barrier())
		if v, err := p.Get(n); err != nil || v.balance != 100 {
			return fmt.Errorf("%+v, %v", v, err)
		}
		return nil
	})
}

// A rank that waits for a lock whose holder fails is told.
func TestLockHolderFails(t *testing.T) {
	var waiter error
	err := Run(small(2), func(n *Node) error {
		l := Must(NewLock(n))
		if n.Rank() == 0 {
			n.Must(l.Lock(n))
		}
		n.Must(n.Barrier())
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

// TestLeavingWithALock: a rank that returns while it holds a lock fails the job, and
// names the lock.
func TestLeavingWithALock(t *testing.T) {
	for _, c := range []struct {
		conduit       string
		debug, shared bool
		want          string
	}{
		{"shm", true, false, "while it holds lock 0+0x0 exclusively (taken at lock_test.go:"},
		{"shm", false, true, "while it holds lock 0+0x0 shared, 1 times (Config.Debug"},
		{"udp", false, false, "while it holds lock 0+0x0 exclusively (Config.Debug"},
		{"sim", true, true, "while it holds lock 0+0x0 shared, 1 times (taken at lock_test.go:"},
	} {
		err := Run(Config{Ranks: 2, Conduit: c.conduit, Debug: c.debug}, func(n *Node) error {
			l, err := NewLock(n)
			if err != nil {
				return err
			}
			if n.Rank() == 1 {
				if c.shared {
					return l.RLock(n)
				}
				return l.Lock(n)
			}
			// Rank 1 has it by then.
			for ok := true; ok; {
				if ok, err = l.TryLock(n); err != nil {
					return nil // rank 1's is the failure
				}
				if ok {
					n.Must(l.Unlock(n))
					n.Poll()
				}
			}
			return l.Lock(n)
		})
		if err := wantErr(err, ErrNotReady, "rank 1: gas: rank 1 returned from its function "+c.want); err != nil {
			t.Errorf("%s: %v", c.conduit, err)
		}
	}
}

// TestDeadlockNames: on the simulator a deadlock names the holder of a lock and the
// place of a condition.
func TestDeadlockNames(t *testing.T) {
	err := Run(Config{Ranks: 2, Conduit: "sim"}, func(n *Node) error {
		l := Must(NewLock(n))
		if n.Rank() == 1 {
			n.Must(l.Lock(n))
		}
		n.Must(n.Barrier())
		if n.Rank() == 1 {
			return n.Wait(func() bool { return n.Size() == 0 })
		}
		return l.Lock(n)
	})
	for _, want := range []string{"deadlock", "rank 0: lock 0+0x0, which rank 1 holds exclusively", "rank 1: a condition of the program (lock_test.go:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// TestLockReleasedWhileEntered: a lock that is given back while another rank, which
// has found it held, enters the queue is got by that rank, although
// no later release wakes it. In virtual time the release is moved, in steps of a
// fraction of a round trip, from the first try until long after the entry.
func TestLockReleasedWhileEntered(t *testing.T) {
	const locks = 200
	var before, after int // releases when the other rank was not in the queue, and when it was
	err := Run(Config{Conduit: "sim", Ranks: 2, SegmentSize: 1 << 20}, func(n *Node) error {
		words := Must(NewSlice[LockWord](n, locks))
		var entry time.Duration // how long it takes, from the first lock
		for i := range locks {
			l := LockAt(words.On(0).Add(i))
			if n.Rank() == 0 {
				n.Must(l.Lock(n))
			}
			n.Must(n.Barrier())
			if n.Rank() == 1 {
				n.Must(errors.Join(l.Lock(n), l.Unlock(n)))
				continue
			}
			begun := n.Now()
			for release := 2 * entry * time.Duration(i) / locks; ; n.Poll() {
				w := Must(l.Word().Get(n))
				listed := w.tail != 0
				if i == 0 && listed {
					entry = n.Now() - begun
					break
				}
				if i > 0 && n.Now()-begun >= release {
					if listed {
						after++
					} else {
						before++
					}
					break
				}
			}
			n.Must(l.Unlock(n))
		}
		return n.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
	if before < locks/4 || after < locks/4 {
		t.Errorf("%d releases before the entry and %d after it: they were not moved over it", before, after)
	}
}

// entered waits until rank r is the last in the queue of l, or any if r is -1.
func entered(n *Node, l Lock, r int) error {
	for {
		tail, err := Load(n, Field(l.Word(), func(w *LockWord) *uint64 { return &w.tail }))
		if err != nil || tail != 0 && (r < 0 || int(tail>>40) == r) {
			return err
		}
		n.Poll()
	}
}

// TestLockOrder: those that wait get a lock in the order in which they came to its memory, those that want it
// shared together with their neighbours that do; and each costs a number of operations that does
// not depend on how many wait, nor for how long.
func TestLockOrder(t *testing.T) {
	// Operations: 3 to enter, 2 to grant the next, a shared one 2 to leave; one ahead of the queue 1, and its last 1.
	most := uint64(9)
	if conc.Race {
		most++ // which shows the detector the turn
	}
	for _, c := range []struct {
		conduit string
		ranks   int
	}{{"sim", 3}, {"sim", 40}, {"shm", 6}, {"udp", 6}} {
		err := Run(Config{Conduit: c.conduit, Ranks: c.ranks, SegmentSize: 1 << 20}, func(n *Node) error {
			l := Must(NewLock(n))
			turns := Must(New[[2]int64](n)) // holds begun, and shared ones under way
			begun, inside := Field(turns.On(0), func(p *[2]int64) *int64 { return &p[0] }), Field(turns.On(0), func(p *[2]int64) *int64 { return &p[1] })
			me := n.Rank()
			shared := func(r int) bool { return r%5 == 2 || r%5 == 3 } // two neighbours
			if me == 0 {
				n.Must(l.Lock(n))
			}
			n.Must(n.Barrier())
			if me == 0 {
				n.Must(entered(n, l, n.Size()-1))
				for range 1000 { // they wait for long
					n.Poll()
				}
				return errors.Join(l.Unlock(n), n.Barrier())
			}
			if me > 1 {
				n.Must(entered(n, l, me-1))
			}
			ops := func() uint64 {
				var s conduits.Stats
				n.Stats(&s)
				return s.Puts + s.Gets + s.Atomics + s.Sent[conduits.Request]
			}
			before := ops()
			lock, unlock := l.Lock, l.Unlock
			if shared(me) {
				lock, unlock = l.RLock, l.RUnlock
			}
			n.Must(lock(n))
			used := ops() - before
			turn := Must(FetchAdd(n, begun, 1))
			if first := me - 1; turn != int64(first) && !(shared(me) && (shared(me-1) && turn == int64(first-1) || shared(me+1) && turn == int64(first+1))) {
				return fmt.Errorf("rank %d came as number %d, and has the lock as number %d", me, first, turn)
			}
			if mate := me + 5 - 2*(me%5); shared(me) && mate < n.Size() {
				// Each of the two waits inside for the other one.
				Must(FetchAdd(n, inside, 1))
				for k := int64(2 * (me/5 + 1)); ; n.Poll() {
					if v, err := Load(n, inside); err != nil {
						return err
					} else if v >= k {
						break
					}
				}
			}
			before = ops()
			n.Must(unlock(n))
			if used += ops() - before; used > most {
				return fmt.Errorf("rank %d has used %d operations for the lock, more than %d", me, used, most)
			}
			return n.Barrier()
		})
		if err != nil {
			t.Errorf("%d ranks on %s: %v", c.ranks, c.conduit, err)
		}
	}
}

// lockThenAsk is a task that runs on top of a rank's wait for a lock, which is given back meanwhile:
// another rank's task, and this one, want it before it returns.
var (
	lockThenAsk *Func[Ptr[nestedLock], bool]
	lockOnce    = RegisterTask("test.lockOnce", func(c *Call, p Ptr[nestedLock]) (bool, error) {
		l := LockAt(Field(p, func(w *nestedLock) *LockWord { return &w.lock }))
		return true, errors.Join(l.Lock(c.Node), l.Unlock(c.Node))
	})
)

type nestedLock struct {
	lock  LockWord
	began uint64 // 1 once the task runs, 2 once the lock has been given back
}

func init() {
	lockThenAsk = RegisterTask("test.lockThenAsk", func(c *Call, p Ptr[nestedLock]) (bool, error) {
		began := Field(p, func(w *nestedLock) *uint64 { return &w.began })
		if err := Store(c.Node, began, 1); err != nil {
			return false, err
		}
		for v := uint64(0); v != 2; c.Node.Poll() {
			var err error
			if v, err = Load(c.Node, began); err != nil {
				return false, err
			}
		}
		if _, err := lockOnce.Call(c.Node, 2, p); err != nil {
			return false, err
		}
		l := LockAt(Field(p, func(w *nestedLock) *LockWord { return &w.lock }))
		return true, errors.Join(l.Lock(c.Node), l.Unlock(c.Node))
	})
}

// TestLockWhileAway: a lock is not granted to a rank whose wait for it runs a task, which may want the
// lock itself, or ask a rank that does.
func TestLockWhileAway(t *testing.T) {
	for _, conduit := range testjob.Concurrent("sim", "shm", "udp") {
		err := Run(Config{Conduit: conduit, Ranks: 3, SegmentSize: 1 << 20}, func(n *Node) error {
			p := Must(New[nestedLock](n))
			p = p.On(0)
			l := LockAt(Field(p, func(w *nestedLock) *LockWord { return &w.lock }))
			began := Field(p, func(w *nestedLock) *uint64 { return &w.began })
			if n.Rank() == 0 {
				n.Must(l.Lock(n))
			}
			n.Must(n.Barrier())
			switch n.Rank() {
			case 0:
				n.Must(entered(n, l, 1))
				f := Must(lockThenAsk.Go(n, 1, p))
				Must(WaitUntil(n, began, Ge, 1))
				n.Must(errors.Join(l.Unlock(n), Store(n, began, 2)))
				Must(f.Wait())
			case 1:
				n.Must(errors.Join(l.Lock(n), l.Unlock(n)))
			}
			return n.Barrier()
		})
		if err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestLockWaiterFails: a rank that fails while it waits for a lock fails the holder, and those that wait behind it.
func TestLockWaiterFails(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		var holder, behind error
		err := Run(Config{Conduit: conduit, Ranks: 3, SegmentSize: 1 << 20}, func(n *Node) error {
			l := Must(NewLock(n))
			if n.Rank() == 0 {
				n.Must(l.Lock(n))
			}
			n.Must(n.Barrier())
			switch n.Rank() {
			case 0:
				n.Must(entered(n, l, 2))
				n.Must(callerWaits.Send(n, 1, struct{}{}))
				holder = n.Wait(func() bool { return false })
				return holder
			case 1:
				return l.Lock(n)
			}
			n.Must(entered(n, l, 1))
			behind = l.Lock(n)
			return behind
		})
		for who, err := range map[string]error{"the job": err, "the holder": holder, "the one behind": behind} {
			if err == nil || !strings.Contains(err.Error(), "the waiter fails") {
				t.Errorf("%s: %s has %v", conduit, who, err)
			}
		}
	}
}

// callerWaits fails the rank, which waits for a lock, from a task on top of that.
var callerWaits = RegisterTask("test.callerWaits", func(c *Call, _ struct{}) (bool, error) {
	c.Node.ep.Fail(errors.New("the waiter fails"))
	return true, nil
})

// lockSeeds is how many orders of messages TestLockSeeds tries, and lockSeed which one conduit lock-sim makes.
const lockSeeds = 60

var lockSeed atomic.Uint64

func init() {
	conduits.Register(conduits.Conduit{Name: "lock-sim", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: lockSeed.Load(), Faults: sim.Faults{Jitter: 20 * sim.Microsecond}})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
}

// lockTask locks on top of what a rank waits for.
var lockTask = RegisterTask("test.lockTask", func(c *Call, p Ptr[lockedCount]) (bool, error) {
	return true, countLocked(c.Node, p, true)
})

// lockedCount is what a lock guards: two words that only those inside see apart.
type lockedCount struct {
	lock LockWord
	a, b int64
}

// countLocked counts both words of p up under its lock, or sees them equal under a shared hold.
func countLocked(n *Node, p Ptr[lockedCount], alone bool) error {
	l := LockAt(Field(p, func(c *lockedCount) *LockWord { return &c.lock }))
	a, b := Field(p, func(c *lockedCount) *int64 { return &c.a }), Field(p, func(c *lockedCount) *int64 { return &c.b })
	lock, unlock := l.RLock, l.RUnlock
	if alone {
		lock, unlock = l.Lock, l.Unlock
	}
	if err := lock(n); err != nil {
		return err
	}
	v, err := a.Get(n)
	if err == nil && alone {
		err = a.Put(n, v+1)
	}
	if err == nil { // it does not poll: a task on top could not have the lock
		w, failed := b.Get(n)
		if err = failed; err == nil && v != w {
			err = fmt.Errorf("rank %d finds %d and %d: another rank is inside", n.Rank(), v, w)
		}
		if err == nil && alone {
			err = b.Put(n, w+1)
		}
	}
	return errors.Join(err, unlock(n))
}

// TestLockSeeds: whatever the order of messages, a lock is held by one or shared, no rank waits for ever, and nothing
// is left of the queue, while tasks that want the lock run on top of waits for it.
func TestLockSeeds(t *testing.T) {
	testjob.Simulated(t)
	const ranks, rounds = 5, 8
	for seed := range lockSeeds {
		lockSeed.Store(uint64(seed))
		err := Run(Config{Conduit: "lock-sim", Ranks: ranks, SegmentSize: 1 << 20}, func(n *Node) error {
			p := Must(New[lockedCount](n))
			p = p.On(seed % ranks)
			var tasks []Future[bool]
			for i := range rounds {
				k := (seed*7 + i*5 + n.Rank()*3) % 11
				if k < 4 {
					f := Must(lockTask.Go(n, (n.Rank()+1+k)%ranks, p))
					tasks = append(tasks, f)
				}
				if err := countLocked(n, p, k%2 == 0); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			Must(WaitAll(tasks...))
			mine := 0
			for i := range rounds {
				k := (seed*7 + i*5 + n.Rank()*3) % 11
				mine += 1 - k%2
				if k < 4 {
					mine++
				}
			}
			want := Must(AllReduce(n, mine, Sum))
			if c, err := p.Get(n); err != nil || c.a != int64(want) || c.b != c.a || c.lock.state != 0 || c.lock.tail != 0 {
				return fmt.Errorf("%d rounds are counted as %+v (%w)", want, c, err)
			}
			return n.Barrier()
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestReadersMeet: readers wait inside for each other while no rank wants the lock exclusively any more. So none
// waits for another one to leave, though one comes while one that was let in leaves the queue (seed 56),
// and one while the lock goes from a writer to the first reader (67).
func TestReadersMeet(t *testing.T) {
	testjob.Simulated(t)
	const ranks = 6
	for seed := range lockSeeds {
		lockSeed.Store(uint64(seed))
		err := Run(Config{Conduit: "lock-sim", Ranks: ranks, SegmentSize: 1 << 20}, func(n *Node) error {
			l := Must(NewLock(n))
			inside, err := New[int64](n)
			if err != nil {
				return err
			}
			inside = inside.On(0)
			if n.Rank() == 0 {
				n.Must(l.Lock(n))
			}
			n.Must(n.Barrier())
			if n.Rank() == 0 {
				n.Must(entered(n, l, -1))
				return errors.Join(l.Unlock(n), n.Barrier())
			}
			for range n.Rank() - 1 { // some come when it has been given back
				Must(Load(n, inside))
			}
			n.Must(l.RLock(n))
			Must(FetchAdd(n, inside, 1))
			for v, looks := int64(0), 0; v < ranks-1; looks++ {
				if v, err = Load(n, inside); err != nil {
					return err
				} else if looks > 2000 { // each takes some microseconds
					return fmt.Errorf("%d of %d readers are inside, and no rank wants it exclusively", v, ranks-1)
				}
			}
			return errors.Join(l.RUnlock(n), n.Barrier())
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestReaderTurns: a reader that is about to join those that hold a lock shared does not, once the last of them
// has left and gives the lock to it. That takes a rank next to the lock, which holds it by turns exclusively and
// shared while the reader's messages are under way. A hold that counts twice would have ranks wait for ever.
func TestReaderTurns(t *testing.T) {
	testjob.Simulated(t)
	const rounds = 10
	for seed := range lockSeeds {
		lockSeed.Store(uint64(seed))
		err := Run(Config{Conduit: "lock-sim", Ranks: 3, SegmentSize: 1 << 20}, func(n *Node) error {
			w, err := New[LockWord](n)
			if err != nil {
				return err
			}
			w = w.On(0)
			l := LockAt(w)
			turn := func(lock, unlock func(*Node) error, looks int) error {
				if err := lock(n); err != nil {
					return err
				}
				for range looks { // each takes some microseconds
					if _, err := Load(n, Field(w.On(1), func(w *LockWord) *uint64 { return &w.tail })); err != nil {
						return err
					}
				}
				return unlock(n)
			}
			for i := range rounds {
				if n.Rank() == 0 {
					err = turn(l.Lock, l.Unlock, 1+(seed+i)%3)
				}
				if err == nil {
					err = turn(l.RLock, l.RUnlock, (seed/3+i)%3)
				}
				if err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			n.Must(n.Barrier())
			if left, err := w.Get(n); err != nil || left.state != 0 || left.tail != 0 {
				return fmt.Errorf("%+v is left (%w)", left, err)
			}
			return n.Barrier()
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
