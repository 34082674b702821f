package shm

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// idles counts how often a waiting rank is told to go on before it is told to park.
func idles(e *Endpoint) int {
	n := 0
	for e.Idle(n) {
		n++
	}
	return n
}

// TestMeasuredCrowding: a rank that the launcher took for one with a processor of
// its own sleeps soon, and spins on no cell, as long as measurements say that
// processors are shared, and spins again afterwards.
func TestMeasuredCrowding(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		var crowded atomic.Bool
		for _, e := range eps {
			e.launched = false
			e.j.watch.meter = crowded.Load
		}
		attach(t, eps, 0, func(int, *conduits.Message) {})
		for range 3 {
			crowded.Store(false)
			eps[0].j.look()
			for range mostSpins {
				if idles(eps[0]) >= yieldsBeforePark+leastSpins {
					break
				}
			}
			if n := idles(eps[0]); n < yieldsBeforePark+leastSpins {
				t.Errorf("%d spins and yields with a processor of its own", n)
			}
			crowded.Store(true)
			eps[0].j.look()
			if n := idles(eps[0]); n > crowdedYields {
				t.Errorf("%d spins and yields on a shared processor", n)
			}
		}
	})
}

// TestCrowdingChanges: ranks that change between the two ways of waiting at any
// time, and differ from each other, lose no message and no wake-up.
func TestCrowdingChanges(t *testing.T) {
	const n, rounds = 3, 100
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, n, conduits.Config{Credits: 4})
		got := make([]atomic.Int64, n)
		for _, e := range eps {
			e.launched = false
			e.j.watch.meter = e.crowded.Load // leave it as it is
		}
		attach(t, eps, page, func(r int, _ *conduits.Message) { got[r].Add(1) })
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			rng := rand.New(rand.NewPCG(3, 4))
			for {
				select {
				case <-stop:
					return
				default:
				}
				eps[rng.IntN(n)].crowded.Store(rng.IntN(2) == 0)
				runtime.Gosched()
			}
		}()
		for i := range rounds {
			for r, err := range exchange(eps, got) {
				if err != nil {
					t.Fatalf("round %d: rank %d: %v", i, r, err)
				}
			}
			for r := range got {
				got[r].Add(-n)
			}
		}
		close(stop)
		<-stopped
	})
}
