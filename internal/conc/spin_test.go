package conc

import (
	"sync/atomic"
	"testing"
)

func TestNonzero(t *testing.T) {
	var w uint64
	if got := Nonzero(&w, 3, nil, &w); got != 0 {
		t.Fatalf("Nonzero of 0 = %d", got)
	}
	w = 1 << 63
	if got := Nonzero(&w, 1, &w, nil); got != 1<<63 {
		t.Fatalf("Nonzero = %#x", got)
	}
}

func TestChanged(t *testing.T) {
	w := uint64(7)
	if got := Changed(&w, 7, 5); got != 7 {
		t.Fatalf("Changed without a change = %d", got)
	}
	if got := Changed(&w, 8, 1); got != 7 {
		t.Fatalf("Changed = %d, want 7", got)
	}
}

// TestArrival lets another goroutine's store end the watch.
func TestArrival(t *testing.T) {
	for range 1000 {
		var w, data uint64
		go func() {
			data = 42
			atomic.StoreUint64(&w, 1)
		}()
		for Nonzero(&w, 100, nil, &data) == 0 {
		}
		if data != 42 {
			t.Fatal("data stored before the flag is not visible after it")
		}
	}
}
