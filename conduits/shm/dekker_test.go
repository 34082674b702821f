package shm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// lockstep runs one and other for 0..n-1, both of a round at the same moment but
// for a short delay, another one in each round, and check after each round. other
// looks at parked before each round, as it does in all the time in which no rank
// sleeps: so its look in the round is fast, and its stores are slow.
func lockstep(t *testing.T, n int, parked *uint32, one, other, check func(i int)) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("there is one processor: two threads never run at once")
	}
	var at [2]atomic.Int64
	meet := func(me int, i int64) {
		at[me].Store(i)
		for k := 0; at[1-me].Load() < i; k++ {
			if k > 200 {
				sys.Yield() // the other one may need this processor
			}
		}
	}
	var wg sync.WaitGroup
	wg.Add(2)
	for me, f := range []func(int){one, other} {
		go func() {
			defer wg.Done()
			runtime.LockOSThread()
			for i := range n {
				if me == 1 && atomic.LoadUint32(parked) != 0 {
					t.Error("somebody sleeps")
				}
				meet(me, int64(3*i+1))
				if me == 1 {
					for range i % 256 {
						at[0].Load()
					}
				}
				f(i)
				meet(me, int64(3*i+2))
				if me == 0 {
					check(i)
				}
				meet(me, int64(3*i+3))
			}
		}()
	}
	wg.Wait()
}

// TestDekker sets what one rank does before it sleeps (announce itself, look
// again) against what another does to wake it (make a change, look for the
// announcement), at the same moment, without sleeping: one of them must see the
// other. Where neither did, a sleeper would have slept for ever.
func TestDekker(t *testing.T) {
	n := wakeRounds()
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{Credits: 4, MaxMedium: 512})
		var ran [2]int
		attach(t, eps, page, func(rank int, m *conduits.Message) { ran[rank]++ })
		a, b := eps[0], eps[1]
		roused := func(e *Endpoint, tk conduits.Ticket) bool {
			return atomic.LoadUint32(e.j.c32(e.rank, ctlSeq)) != tk.Seq
		}
		var tk conduits.Ticket
		var saw bool

		missed := 0
		lockstep(t, n, eps[0].parked, func(int) {
			tk = a.Arm(nil)
			saw = a.Poll() > 0
		}, func(i int) {
			if i%2 == 0 {
				send(b, 0, conduits.Request)
			} else if st := b.Send(0, conduits.Request, 1, nil); st != conduits.Ready {
				t.Errorf("Send: %v", st)
			}
		}, func(int) {
			if !saw && !roused(a, tk) {
				missed++
			}
			a.Disarm(tk)
			for !saw && a.Poll() == 0 {
			}
		})
		if missed > 0 {
			t.Errorf("%d of %d messages would have been slept through", missed, n)
		}

		missed = 0
		word := segmentWord(a, 0)
		plain := segmentPlain(b, 0)
		lockstep(t, n, eps[0].parked, func(i int) {
			tk = a.Arm(nil)
			saw = word.Load() == uint64(i+1)
		}, func(i int) {
			storePlain(plain, uint64(i+1))
			b.Wake(0)
		}, func(int) {
			if !saw && !roused(a, tk) {
				missed++
			}
			a.Disarm(tk)
		})
		if missed > 0 {
			t.Errorf("%d of %d changes by direct access would have been slept through", missed, n)
		}

		// Rank 0 has filled its ring to rank 1 but for what is published when
		// one more message is run.
		missed = 0
		for send(a, 1, conduits.Request) {
		}
		lockstep(t, 3*n, eps[0].parked, func(int) {
			tk = a.Arm(nil)
			saw = send(a, 1, conduits.Request)
		}, func(int) {
			b.Poll()
		}, func(int) {
			if !saw && !roused(a, tk) {
				missed++
			}
			a.Disarm(tk)
			for send(a, 1, conduits.Request) {
			}
		})
		if missed > 0 {
			t.Errorf("%d of %d credits would have been slept through", missed, 3*n)
		}
	})
}

// TestDekkerOfSiblings sets a goroutine that is about to sleep for what a
// handler does against the one of the same rank that runs the handler.
func TestDekkerOfSiblings(t *testing.T) {
	n := wakeRounds()
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		var did uint64
		attach(t, eps, 0, func(int, *conduits.Message) { storePlain(&did, did+1) })
		e := eps[0]
		var tk conduits.Ticket
		var saw bool
		missed := 0
		send(eps[1], 0, conduits.Request)
		lockstep(t, n, eps[0].parked, func(i int) {
			tk = e.Arm(nil)
			saw = atomic.LoadUint64(&did) == uint64(i+1)
		}, func(int) {
			for e.Poll() == 0 {
			}
		}, func(int) {
			if !saw && atomic.LoadUint32(e.j.c32(0, ctlSeq)) == tk.Seq {
				missed++
			}
			e.Disarm(tk)
			send(eps[1], 0, conduits.Request)
		})
		if missed > 0 {
			t.Errorf("%d of %d handlers would have been slept through", missed, n)
		}
	})
}
