package conc

import (
	"sync/atomic"
	"testing"
)

func TestChangedOwned(t *testing.T) {
	w := uint64(7)
	if got := ChangedOwned(&w, 7, 5); got != 7 {
		t.Fatalf("ChangedOwned without a change = %d", got)
	}
	if got := ChangedOwned(&w, 8, 1); got != 7 {
		t.Fatalf("ChangedOwned = %d, want 7", got)
	}
}

// TestTurns has two goroutines write words of one line in turn.
func TestTurns(t *testing.T) {
	const turns = 2000
	var l [8]uint64
	data := [2]int{}
	turn := func(me int) {
		for i := uint64(1); i <= turns; i++ {
			data[me] = int(i)
			atomic.StoreUint64(&l[me], i)
			for ChangedOwned(&l[1-me], i-1, 50) < i {
			}
			if data[1-me] < int(i) {
				t.Errorf("turn %d is visible before what was stored in it", i)
				return
			}
			// Both have seen turn i before either begins the next.
			atomic.StoreUint64(&l[2+me], i)
			for ChangedOwned(&l[3-me], i-1, 50) < i {
			}
		}
	}
	done := make(chan struct{})
	go func() {
		turn(1)
		close(done)
	}()
	turn(0)
	<-done
}
