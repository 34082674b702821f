package bias

import (
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/sandbox"
)

// TestWithoutMembarrier: where membarrier(2) is forbidden nobody owns a lock, and it
// excludes all the same.
func TestWithoutMembarrier(t *testing.T) {
	if sandbox.Inside() {
		if enabled {
			t.Error("locks are biased")
		}
		var l Lock
		for range 2 {
			l.Lock()
			if !l.Held() || l.TryLock() || l.owner.Load() != 0 {
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
