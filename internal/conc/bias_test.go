package conc

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/sandbox"
)

// TestWithoutMembarrier: where membarrier(2) is forbidden no goroutine owns a lock, and it
// excludes all the same.
func TestWithoutMembarrier(t *testing.T) {
	if sandbox.Inside() {
		if enabled {
			t.Error("locks are biased")
		}
		var l Lock
		for range 2 {
			l.Lock()
			if !l.Held() || l.TryLock() || l.cur.Load() != nil {
				t.Error("the lock is not held, or has an owner")
			}
			l.Unlock()
		}
		return
	}
	out := sandbox.Self(t, "^Test(WithoutMembarrier|Exclusion|TryLock)")
	if !strings.Contains(out, "--- PASS: TestWithoutMembarrier") || !strings.Contains(out, "--- PASS: TestExclusion") {
		t.Errorf("the tests in the sandbox did not run:\n%s", out)
	}
}

// TestExclusion lets the owner and late comers increment a plain counter.
func TestExclusion(t *testing.T) {
	for round := range 50 {
		var l Lock
		var n int
		const each = 2000
		l.Lock() // the test goroutine owns the bias
		n++
		l.Unlock()
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range each {
					if (i+g)%3 == 0 {
						for !l.TryLock() {
							l.Lock()
							break
						}
					} else {
						l.Lock()
					}
					n++
					l.Unlock()
				}
			}()
		}
		for range each {
			l.Lock()
			n++
			l.Unlock()
		}
		wg.Wait()
		if want := 4*each + 1; n != want {
			t.Fatalf("round %d: %d increments survived of %d: two goroutines were inside", round, n, want)
		}
	}
}

// TestExclusionMoves lets the bias move from goroutine to goroutine while others take
// the lock: each increments a plain counter, for a while alone.
func TestExclusionMoves(t *testing.T) {
	const goroutines, bursts = 4, 24
	var l Lock
	n, inside, moves := 0, 0, 0
	var last *tenure
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for burst := range bursts {
				for i := range 5 << ((burst*7 + g*3) % 10) {
					lock(&l, g+i)
					if inside++; inside != 1 {
						t.Errorf("%d inside", inside)
					}
					n++
					if c := l.cur.Load(); c != last {
						last = c
						moves++
					}
					inside--
					l.Unlock()
				}
				runtime.Gosched()
			}
		}()
	}
	wg.Wait()
	want := 0
	for g := range goroutines {
		for burst := range bursts {
			want += 5 << ((burst*7 + g*3) % 10)
		}
	}
	if n != want {
		t.Fatalf("%d increments survived of %d: two goroutines were inside", n, want)
	}
	if enabled && moves == 0 {
		t.Error("no goroutine has ever owned the lock")
	}
}

// TestBiasMoves: a goroutine that has the lock to itself for long becomes its owner,
// however many others have had it, and those find that out.
func TestBiasMoves(t *testing.T) {
	if !enabled {
		t.Skip("no bias here")
	}
	var l Lock
	type turn struct {
		times int
		owner bool // whether the goroutine owns the lock afterwards
	}
	next := []chan turn{make(chan turn), make(chan turn)}
	done := make(chan bool)
	for me := range next {
		go func() {
			for c := range next[me] {
				for i := range c.times {
					lock(&l, i)
					if !l.Held() || TryEnter(&l) || l.TryLock() {
						t.Errorf("goroutine %d: not held, or taken twice", me)
					}
					l.Unlock()
				}
				mine := l.cur.Load().goroutine == sys.Goroutine() && l.cur.Load().revoked.Load() == 0
				if mine != c.owner {
					t.Errorf("goroutine %d owns the lock: %v after %d times, want %v", me, mine, c.times, c.owner)
				}
				lock(&l, 1)
				if byBias := l.holder.Load() == 0; byBias != c.owner {
					t.Errorf("goroutine %d enters by bias: %v", me, byBias)
				}
				l.Unlock()
				done <- true
			}
		}()
	}
	for i, c := range []struct {
		me int
		turn
	}{
		{0, turn{1, true}},                // the first
		{1, turn{firstRun - 2, false}},    // and once more
		{0, turn{firstRun - 2, false}},    // in between others, nothing adds up
		{1, turn{firstRun, true}},         // alone for long enough
		{0, turn{firstRun + 10, false}},   // the second revocation has doubled it
		{0, turn{firstRun, true}},         //
		{1, turn{2*firstRun + 10, false}}, //
		{1, turn{2 * firstRun, true}},     //
		{1, turn{10 * firstRun, true}},    //
	} {
		next[c.me] <- c.turn
		<-done
		if l.holder.Load() != 0 {
			t.Fatalf("turn %d: somebody holds the lock", i)
		}
	}
	close(next[0])
	close(next[1])
	l.need = mostRun
	lock(&l, 0) // a third goroutine
	l.Unlock()
	if l.need != mostRun {
		t.Errorf("it takes %d times now", l.need)
	}
}

// TestTryLockHeld: whichever goroutine holds the lock, any TryLock fails.
func TestTryLockHeld(t *testing.T) {
	var l Lock
	l.Lock()
	if l.TryLock() {
		t.Fatal("the holder took its own lock again")
	}
	if !l.Held() {
		t.Fatal("the holder does not hold it")
	}
	done := make(chan bool)
	go func() { done <- l.Held() }()
	if <-done {
		t.Fatal("a stranger holds it")
	}
	go func() { done <- l.TryLock() }()
	if <-done {
		t.Fatal("another goroutine took a held lock")
	}
	l.Unlock()
	go func() {
		ok := l.TryLock()
		if ok {
			l.Unlock()
		}
		done <- ok
	}()
	if !<-done {
		t.Fatal("a free lock could not be taken after revocation")
	}
	l.Lock()
	if !l.Held() {
		t.Fatal("the holder does not hold it after revocation")
	}
	l.Unlock()
	if l.Held() {
		t.Fatal("held after Unlock")
	}
}

func BenchmarkOwner(b *testing.B) {
	var l Lock
	own(b, &l)
}

// BenchmarkLaterOwner is a goroutine's that has become the owner after another.
func BenchmarkLaterOwner(b *testing.B) {
	var l Lock
	first := make(chan bool)
	go func() {
		l.Lock()
		l.Unlock() //lint:ignore SA2001 it is the owner now
		close(first)
	}()
	<-first
	for range firstRun + 1 {
		l.Lock()
		l.Unlock() //lint:ignore SA2001 as above
	}
	own(b, &l)
}

func own(b *testing.B, l *Lock) {
	for b.Loop() {
		l.Lock()
		l.Unlock() //lint:ignore SA2001 the pair is what is measured
	}
}

func BenchmarkMutex(b *testing.B) {
	var l sync.Mutex
	for b.Loop() {
		l.Lock()
		l.Unlock() //lint:ignore SA2001 the pair is what is measured
	}
}
