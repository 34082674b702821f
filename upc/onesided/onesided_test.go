package onesided

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/chaos"
	_ "github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testmain"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	conduits.Register(conduits.Conduit{Name: "onesided-sim", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: 3, Faults: sim.Faults{Jitter: 100000}})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
	conduits.Register(conduits.Conduit{Name: "onesided-chaos", Local: chaos.Local(shm.Local, chaos.Config{Seed: 2, HideNeighbours: true})})
	os.Exit(testmain.Run(m))
}

// onEach runs body as so many ranks on every conduit. base is the address of a page that is
// zero at first, on every rank.
func onEach(t *testing.T, ranks int, body func(n *gas.Node, s *Sync, base segment.NLA) error) {
	t.Helper()
	for _, c := range []string{"shm", "loop", "udp", "hybrid", "onesided-sim", "onesided-chaos"} {
		t.Run(c, func(t *testing.T) {
			if err := run(c, ranks, body); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func run(conduit string, ranks int, body func(n *gas.Node, s *Sync, base segment.NLA) error) error {
	return gas.Run(gas.Config{Ranks: ranks, Conduit: conduit, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		p, err := gas.NewSlice[uint64](n, 512)
		if err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if err := body(n, New(n.Extended(), n.AM()), p.NLA()); err != nil {
			return err
		}
		return n.Barrier()
	})
}

// TestLock: exclusive holders are alone, shared ones are not with an exclusive one, and all of
// table 7-4's encodings are those that are there.
func TestLock(t *testing.T) {
	const ranks, rounds = 3, 30
	onEach(t, ranks, func(n *gas.Node, s *Sync, base segment.NLA) error {
		x := n.Extended()
		lock, writers, readers, sum := base, base+8, base+16, base+24
		const where = 1 // the rank with the lock
		rnd := rand.New(rand.NewPCG(uint64(n.Rank()), 1))
		state := func() (uint64, error) { return x.LoadUint64(where, lock) }
		exclusive := 0
		for range rounds {
			if rnd.IntN(2) == 0 {
				exclusive++
				if err := s.Lock(where, lock); err != nil {
					return err
				}
				if v, err := state(); err != nil || v != ranks+1 {
					return fmt.Errorf("the variable is %d, %v, when locked exclusively", v, err)
				}
				w, err := x.FetchAddUint64(where, writers, 1)
				r, err2 := x.LoadUint64(where, readers)
				if err != nil || err2 != nil || w != 0 || r != 0 {
					return fmt.Errorf("an exclusive holder finds %d others and %d shared ones: %v, %v", w, r, err, err2)
				}
				// What the holder before has put is there.
				v, err := x.GetValue(where, sum, 8)
				if err != nil {
					return err
				}
				if err := x.PutValue(where, sum, v+1, 8); err != nil {
					return err
				}
				if _, err := x.FetchSubUint64(where, writers, 1); err != nil {
					return err
				}
				if err := s.Unlock(where, lock); err != nil {
					return err
				}
				continue
			}
			if err := s.LockShared(where, lock); err != nil {
				return err
			}
			if v, err := state(); err != nil || v < 1 || v > ranks {
				return fmt.Errorf("the variable is %d, %v, when locked shared", v, err)
			}
			if err := x.AddUint64(where, readers, 1); err != nil {
				return err
			}
			if w, err := x.LoadUint64(where, writers); err != nil || w != 0 {
				return fmt.Errorf("a shared holder finds %d exclusive ones, %v", w, err)
			}
			if _, err := x.FetchSubUint64(where, readers, 1); err != nil {
				return err
			}
			if err := s.UnlockShared(where, lock); err != nil {
				return err
			}
		}
		total, err := gas.AllReduce(n, exclusive, gas.Sum[int])
		if err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		v, err := x.GetValue(where, sum, 8)
		if st, err := state(); err != nil || st != 0 {
			return fmt.Errorf("the variable is %d at last, %v", st, err)
		}
		if err == nil && v != uint64(total) {
			err = fmt.Errorf("%d of %d additions under the lock were lost", uint64(total)-v, total)
		}
		return err
	})
}

// TestShares: as many ranks as there are hold a lock shared at once, and then no one more.
func TestShares(t *testing.T) {
	onEach(t, 3, func(n *gas.Node, s *Sync, base segment.NLA) error {
		if ok, err := s.TryLockShared(0, base); err != nil || !ok {
			return fmt.Errorf("a shared lock is not taken: %v", err)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if v, err := n.Extended().LoadUint64(0, base); err != nil || v != 3 {
			return fmt.Errorf("the variable is %d, %v, when all hold it", v, err)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if err := s.UnlockShared(0, base); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if ok, err := s.TryLock(n.Rank(), base+8); err != nil || !ok {
			return fmt.Errorf("a lock of its own is not taken: %v", err)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		other := (n.Rank() + 1) % n.Size()
		if ok, err := s.TryLock(other, base+8); err != nil || ok {
			return fmt.Errorf("a lock that rank %d holds is taken, %v", other, err)
		}
		if ok, err := s.TryLockShared(other, base+8); err != nil || ok {
			return fmt.Errorf("a lock that rank %d holds is taken shared, %v", other, err)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		return s.Unlock(n.Rank(), base+8)
	})
}

// TestEpoch: in every epoch the target sees what its origin has put in it, and the origin's
// next puts wait for the target's next post.
func TestEpoch(t *testing.T) {
	onEach(t, 3, func(n *gas.Node, s *Sync, base segment.NLA) error {
		x, me := n.Extended(), n.Rank()
		to, variable, data := (me+1)%n.Size(), base, base+8
		if err := s.Reset(variable); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		for round := range uint64(20) {
			if err := s.Post(variable); err != nil {
				return err
			}
			if err := s.Start(to, variable); err != nil {
				return err
			}
			if before, err := x.GetValue(to, data, 8); err != nil || before != round*2 {
				return fmt.Errorf("round %d begins with %d, %v: the target has not looked yet", round, before, err)
			}
			if err := x.PutValue(to, data, round*2+1, 8); err != nil {
				return err
			}
			if err := s.Complete(to, variable); err != nil {
				return err
			}
			if err := s.Wait(variable); err != nil {
				return err
			}
			if v, err := x.GetValue(me, data, 8); err != nil || v != round*2+1 {
				return fmt.Errorf("round %d: the target finds %d, %v", round, v, err)
			}
			if err := x.PutValue(me, data, round*2+2, 8); err != nil {
				return err
			}
		}
		v, err := x.LoadUint64(me, variable)
		if err == nil && v != idle {
			err = fmt.Errorf("the variable is %d at last", v)
		}
		return err
	})
}

func TestMisuse(t *testing.T) {
	err := run("shm", 2, func(n *gas.Node, s *Sync, base segment.NLA) error {
		if n.Rank() != 0 {
			return nil
		}
		at := base + 64
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		wrong := func(err error, says string) {
			t.Helper()
			if !errors.Is(err, extended.ErrBadArg) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v does not say %q", err, says)
			}
		}
		same := func(want uint64) {
			t.Helper()
			if v, err := n.Extended().LoadUint64(1, at); err != nil || v != want {
				t.Errorf("the variable is %d, %v, not %d", v, err, want)
			}
		}
		wrong(s.Unlock(1, at), "rank 0 does not hold")
		wrong(s.UnlockShared(1, at), "rank 0 does not hold")
		must(s.LockShared(1, at))
		wrong(s.LockShared(1, at), "LockShared of")
		wrong(s.Lock(1, at), "rank 0 holds shared")
		wrong(s.Unlock(1, at), "rank 0 holds shared")
		same(1)
		must(s.UnlockShared(1, at))
		must(s.Lock(1, at))
		_, err := s.TryLock(1, at)
		wrong(err, "rank 0 holds exclusively")
		wrong(s.UnlockShared(1, at), "rank 0 holds exclusively")
		same(3)
		must(s.Unlock(1, at))
		same(0)

		// A lock that one goroutine waits for is not another's to give back.
		x := n.Extended()
		must(x.StoreUint64(1, at, 3)) // as rank 1 would
		took := make(chan error)
		go func() { took <- s.Lock(1, at) }()
		for waits := false; !waits; runtime.Gosched() {
			s.mu.Lock()
			_, waits = s.held[place{1, at}]
			s.mu.Unlock()
		}
		wrong(s.Unlock(1, at), "rank 0 waits for")
		wrong(s.LockShared(1, at), "rank 0 waits for")
		same(3)
		must(x.StoreUint64(1, at, 0))
		must(<-took)
		must(s.Unlock(1, at))
		same(0)

		own := base + 128
		must(s.Reset(own))
		wrong(s.Wait(own), "not posted")
		wrong(s.Complete(0, own), "has not started")
		must(s.Post(own))
		wrong(s.Post(own), "Post of")
		must(s.Start(0, own))
		wrong(s.Start(0, own), "rank 0 has started")
		wrong(s.advance("Start", place{0, own}, posted, -1, started), "which was 1 before and not 2") // as another rank would
		must(s.Complete(0, own))
		must(s.Wait(own))
		if v, err := n.Extended().LoadUint64(0, own); err != nil || v != idle {
			t.Errorf("the variable is %d, %v, after misuse", v, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
