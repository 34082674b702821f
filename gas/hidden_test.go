package gas

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance/chaos"
)

func init() {
	conduits.Register(conduits.Conduit{Name: "hidden", Local: chaos.Local(shm.Local, chaos.Config{Seed: 1, HideNeighbours: true})})
}

// TestLocksWithoutDirectAccess: a rank that waits for a lock is woken by an atomic
// that goes through the conduit. With this seed ranks slept for ever when such
// an atomic woke no rank.
func TestLocksWithoutDirectAccess(t *testing.T) {
	const size, rounds = 17, 4
	cfg := small(size)
	cfg.Conduit = "hidden"
	if err := Run(cfg, func(n *Node) error {
		l := Must(NewLock(n))
		sum := Must(New[uint64](n))
		at := sum.On(0)
		for range rounds {
			n.Must(l.Lock(n))
			v := Must(at.Get(n))
			n.Must(at.Put(n, v+1))
			n.Must(l.Unlock(n))
			n.Must(n.Barrier())
		}
		if v, err := at.Get(n); err != nil || v != size*rounds {
			t.Errorf("rank %d: sum %d, %v", n.Rank(), v, err)
		}
		return n.Barrier()
	}); err != nil {
		t.Fatal(err)
	}
}
