package udp

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// TestCrowd: what goroutines of a rank send at once, which wait for credit together, some for long and some for one message,
// and give some back, arrives once, whatever is lost; and none waits for credit that there is. What
// is sent again is counted of the rank that it goes to.
func TestCrowd(t *testing.T) {
	resent := uint64(0)
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		counts := make([]int, 2+rnd.IntN(8))
		for i := range counts {
			counts[i] = 1 << rnd.IntN(11)
		}
		loss := float64(seed%3) / 50
		t.Run(fmt.Sprint(seed, counts, loss), func(t *testing.T) {
			got := make([][]int, len(counts))
			for i, n := range counts {
				got[i] = make([]int, n)
			}
			both(t, speedJob(t, engine.Config{}, true, loss), func(ep *Endpoint, s *speaker) {
				var wg sync.WaitGroup
				for i, n := range counts {
					wg.Go(func() {
						for k := range n {
							if err := crowded(ep, uint32(i), uint32(k)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				st := conduits.Stats{Peers: []conduits.PeerStats{}}
				if ep.Stats(&st); len(st.Peers) != 1 || st.Peers[0].Rank != 1 || st.Peers[0].Resent != st.Resent {
					t.Errorf("statistics are %+v", st)
				}
				resent += st.Resent
				stop(ep, s)
			}, func(ep *Endpoint, s *speaker) {
				s.each = func(m *conduits.Message) { got[m.Words[0]][m.Words[1]]++ }
				serve(false)(ep, s)
				// The last may be overtaken by the word to stop.
				all := 1
				for _, n := range counts {
					all += n
				}
				if err := conduits.Wait(ep, nil, func() bool { return s.got >= all }); err != nil {
					t.Error(err)
				}
			})
			for i := range got {
				for k, n := range got[i] {
					if n != 1 {
						t.Fatalf("message %d of goroutine %d has arrived %d times", k, i, n)
					}
				}
			}
		})
	}
	if resent == 0 {
		t.Error("nothing was sent again")
	}
}

// crowded sends message k of goroutine i to rank 1: at once, or by a place, the first of which it gives back.
func crowded(ep *Endpoint, i, k uint32) error {
	if k%16 != 15 {
		return conduits.Wait(ep, nil, func() bool { return ep.Send(1, conduits.Request, 1, []uint32{i, k}) != conduits.NoCredit })
	}
	for give := true; ; give = false {
		var slot conduits.Slot
		err := conduits.Wait(ep, nil, func() bool {
			var st conduits.Status
			slot, st = ep.Reserve(1, conduits.Request, 2, 0)
			return st != conduits.NoCredit
		})
		if err != nil {
			return err
		}
		if give {
			ep.Cancel(1, conduits.Request, slot)
			continue
		}
		slot.Words[0], slot.Words[1] = i, k
		ep.Commit(1, conduits.Request, slot, 1, 0)
		return nil
	}
}
