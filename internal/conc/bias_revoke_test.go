package conc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/sys"
)

// lock takes l in one of the ways there are.
func lock(l *Lock, how int) {
	switch how % 4 {
	case 0:
		l.Lock()
	case 1:
		if !Enter(l) {
			l.Lock()
		}
	case 2:
		for !l.TryLock() {
			runtime.Gosched()
		}
	default:
		for !TryEnter(l) && !l.TryLock() {
			runtime.Gosched()
		}
	}
}

// TestRevokersTogether lets several goroutines take a lock away from its owner
// at the same moment, while the owner goes in and out: the second of them must
// not rely on a barrier that the first has yet to make.
func TestRevokersTogether(t *testing.T) {
	const revokers, each = 3, 20
	for round := range 1500 {
		var l Lock
		var n, inside int
		var start atomic.Int32
		work := func(how int) {
			for i := range each {
				lock(&l, how+i)
				if inside++; inside != 1 {
					t.Errorf("round %d: %d inside", round, inside)
				}
				n++
				inside--
				l.Unlock()
			}
		}
		var wg sync.WaitGroup
		wg.Add(1 + revokers)
		owned := make(chan bool)
		go func() {
			defer wg.Done()
			lock(&l, round)
			l.Unlock()
			close(owned)
			start.Add(1)
			for start.Load() <= revokers {
				lock(&l, round)
				inside++
				n += 0
				inside--
				l.Unlock()
			}
			work(round)
		}()
		<-owned
		for g := range revokers {
			go func() {
				defer wg.Done()
				for start.Add(1); start.Load() <= revokers; {
					runtime.Gosched()
				}
				work(round + g)
			}()
		}
		wg.Wait()
		if n != (1+revokers)*each {
			t.Fatalf("round %d: %d of %d increments survived", round, n, (1+revokers)*each)
		}
	}
}

// TestOwnerInsideWhileRevoked: the owner that was inside when the bias went
// keeps all others out until it leaves, and leaves it unlocked.
func TestOwnerInsideWhileRevoked(t *testing.T) {
	var l Lock
	lock(&l, 0)
	var came atomic.Bool
	done := make(chan bool)
	go func() {
		l.Lock()
		came.Store(true)
		if !l.Held() {
			t.Error("the second does not hold what it took")
		}
		l.Unlock()
		close(done)
	}()
	for enabled && l.first.revoked.Load() == 0 {
		runtime.Gosched()
	}
	for range 100 {
		runtime.Gosched()
	}
	if came.Load() {
		t.Fatal("two inside")
	}
	if !l.Held() {
		t.Error("the owner does not hold it any more")
	}
	if l.TryLock() || TryEnter(&l) {
		t.Error("the owner took its own lock again")
	}
	l.Unlock()
	<-done
	for how := range 4 {
		if Enter(&l) {
			t.Error("entered by a bias that is gone")
		}
		lock(&l, how)
		if !l.Held() || l.TryLock() {
			t.Errorf("way %d: not held, or taken twice", how)
		}
		l.Unlock()
		if l.Held() {
			t.Errorf("way %d: still held", how)
		}
	}
}

// TestOwnerEnds: a goroutine that inherits the identity of the owner, or that
// does not, finds a working lock.
func TestOwnerEnds(t *testing.T) {
	var l Lock
	n := 0
	for range 200 {
		done := make(chan bool)
		go func() {
			lock(&l, n)
			n++
			l.Unlock()
			close(done)
		}()
		<-done
	}
	if lock(&l, 0); n != 200 {
		t.Errorf("%d of 200", n)
	}
	l.Unlock()
}

// TestEnterUnowned: no goroutine enters a lock by bias that it does not own.
func TestEnterUnowned(t *testing.T) {
	var l Lock
	if Enter(&l) || TryEnter(&l) {
		t.Fatal("entered a lock that nobody owns")
	}
	l.Lock()
	if TryEnter(&l) {
		t.Error("entered twice")
	}
	done := make(chan bool)
	go func() { done <- Enter(&l) || TryEnter(&l) }()
	if <-done {
		t.Error("a stranger entered")
	}
	l.Unlock()
	if quick := enabled && runtime.GOARCH == "amd64"; quick && !Enter(&l) {
		t.Error("the owner cannot enter")
	} else if quick {
		l.Unlock()
	}
}

// TestRevokeInLockstep lets the owner enter and another goroutine take the lock
// away at the same moment, each lock once: the owner's entry is a plain store,
// which the other must not overlook; also not if the other has been the owner before.
func TestRevokeInLockstep(t *testing.T) {
	if !enabled {
		t.Skip("no bias here")
	}
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("there is one processor: two threads never run at once")
	}
	rounds := 10000
	if testing.Short() {
		rounds = 2000
	}
	for name, moved := range map[string]bool{"first": false, "moved": true} {
		t.Run(name, func(t *testing.T) {
			type room struct {
				l Lock
				_ [128]byte
				n atomic.Int32
				_ [128]byte
			}
			rounds := rounds
			if moved {
				rounds /= 4 // each takes the lock a thousand times
			}
			rooms := make([]room, rounds)
			var at [2]atomic.Int64
			var wg sync.WaitGroup
			var two atomic.Int32
			for me := range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					runtime.LockOSThread()
					meet := func(i int) {
						at[me].Store(int64(i))
						for k := 0; at[1-me].Load() < int64(i); k++ {
							if k > 200 {
								sys.Yield()
							}
						}
					}
					for i := range rounds {
						r := &rooms[i]
						if me == 1 && moved {
							r.l.Lock()
							r.l.Unlock() //lint:ignore SA2001 now the bias is ours
						}
						meet(4*i + 1)
						for k := 0; me == 0 && (k == 0 || moved && k < firstRun); k++ {
							r.l.Lock()
							r.l.Unlock() //lint:ignore SA2001 now the bias is the other's
						}
						meet(4*i + 2)
						if c := r.l.cur.Load(); me == 1 && (c.revoked.Load() != 0 || (c != &r.l.first) != moved) {
							t.Error("the bias is gone, or has not moved")
						}
						meet(4*i + 3)
						if me == 1 {
							for range i % 256 {
								at[0].Load()
							}
						}
						r.l.Lock()
						if r.n.Add(1) != 1 {
							two.Add(1)
						}
						for range 50 {
							at[me].Load()
						}
						r.n.Add(-1)
						r.l.Unlock()
						meet(4*i + 4)
					}
				}()
			}
			wg.Wait()
			if n := two.Load(); n > 0 {
				t.Errorf("in %d of %d rounds two were inside", n, rounds)
			}
		})
	}
}
