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
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		sum, err := New[uint64](n)
		if err != nil {
			return err
		}
		at := sum.On(0)
		for range rounds {
			if err := l.Lock(n); err != nil {
				return err
			}
			v, err := at.Get(n)
			if err != nil {
				return err
			}
			if err := at.Put(n, v+1); err != nil {
				return err
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
			if err := n.Barrier(); err != nil {
				return err
			}
		}
		if v, err := at.Get(n); err != nil || v != size*rounds {
			t.Errorf("rank %d: sum %d, %v", n.Rank(), v, err)
		}
		return n.Barrier()
	}); err != nil {
		t.Fatal(err)
	}
}
