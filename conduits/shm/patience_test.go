package shm

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// idles counts how often a waiting rank is told to go on before it is told to park.
func idles(e *Endpoint) int {
	n := 0
	for e.Idle(n) {
		n++
	}
	return n
}

// TestPatience: a rank of a job with a processor for each waits for mostSpins to begin with,
// less after waits that outlast it, and one of a crowded job not at all. At most two yields follow,
// none after one that took long.
func TestPatience(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		e := fm.open(t, 2, conduits.Config{})[0]
		e.patience.Set(mostSpins, false)
		if n := idles(e); n < mostSpins || n > mostSpins+2 {
			t.Errorf("%d spins and yields in the first wait, want %d, and 2 at most", n, mostSpins)
		}
		for range 8 {
			idles(e)
		}
		if n := idles(e); n > 2 {
			t.Errorf("%d spins and yields after nine waits that outlasted all of them", n)
		}
		e.patience.Set(0, false)
		if n := idles(e); n > 2 {
			t.Errorf("%d spins and yields of a rank without a processor of its own", n)
		}
	})
}

// TestPatienceChanges: ranks that change between the ways of waiting at any
// time, and differ from each other, lose no message and no wake-up.
func TestPatienceChanges(t *testing.T) {
	testmain.Long(t)
	const n, rounds = 3, 100
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, n, conduits.Config{Credits: 4})
		got := make([]atomic.Int64, n)
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
				p := &eps[rng.IntN(n)].patience
				if rng.IntN(2) == 0 {
					p.Slept(0)
				} else {
					p.Yielded(time.Second)
				}
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
