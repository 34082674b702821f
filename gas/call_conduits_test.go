package gas

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/chaos"
)

func init() {
	// Jitter brings messages out of order.
	conduits.Register(conduits.Conduit{Name: "calls-sim", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: 7, Faults: sim.Faults{Jitter: 100000}})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
	conduits.Register(conduits.Conduit{Name: "calls-apart", Local: chaos.Local(shm.Local, chaos.Config{HideNeighbours: true})})
	conduits.Register(conduits.Conduit{Name: "calls-killed", Local: chaos.Local(shm.Local, chaos.Config{
		Seed: 3, HideNeighbours: true, Kill: []chaos.Kill{{Rank: 1, After: 3000}},
	})})
}

var (
	countedCalls PerRank[[3]atomic.Int64]
	// These count their arguments, by their length, at the called rank.
	countCall = RegisterCall("test.count", func(n *Node, b []byte) int { return countedAt(n, b) })
	countTask = RegisterTask("test.countTask", func(c *Call, b []byte) (int, error) { return countedAt(c.Node, b), nil })
)

func countedAt(n *Node, b []byte) int {
	countedCalls.Of(n)[len(b)%3].Add(1)
	return len(b)
}

// TestCallsOnce: each call runs once, with all of its argument.
func TestCallsOnce(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "calls-sim", "hidden"} {
		t.Run(conduit, func(t *testing.T) { callsOnce(t, conduit) })
	}
}

func callsOnce(t *testing.T, conduit string) {
	cfg := small(3)
	cfg.Conduit = conduit
	err := Run(cfg, func(n *Node) error {
		if err := exchangeLetters(n); err != nil {
			return err
		}
		const each = 20
		for i := range each {
			for k := range 3 {
				b := make([]byte, 3*i*i*10+k)
				f := countCall
				if i%2 == 0 {
					f = countTask
				}
				if k == 0 {
					if err := f.Send(n, i%n.Size(), b); err != nil {
						return err
					}
				} else if v, err := f.Call(n, i%n.Size(), b); v != len(b) || err != nil {
					return fmt.Errorf("%d bytes of %d: %w", v, len(b), err)
				}
			}
		}
		want := int64(0)
		for i := range each {
			if i%n.Size() == n.Rank() {
				want += int64(n.Size())
			}
		}
		c := countedCalls.Of(n)
		if err := n.Wait(func() bool {
			return c[0].Load() >= want && c[1].Load() >= want && c[2].Load() >= want
		}); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		for k := range c {
			if v := c[k].Load(); v != want {
				return fmt.Errorf("%d calls of kind %d ran, %d were made", v, k, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRankDiesAmidLargeCalls: a rank dies while large arguments and results are on their way
// to and from it. Its callers hear of it.
func TestRankDiesAmidLargeCalls(t *testing.T) {
	cfg := small(3)
	cfg.Conduit = "calls-killed"
	var heard atomic.Int32
	err := Run(cfg, func(n *Node) error {
		if n.Rank() == 1 {
			return n.Wait(func() bool { return false })
		}
		for i := 0; ; i++ {
			f := callLetter
			if i%2 == 0 {
				f = taskLetter
			}
			l := letterOf(i, 30000)
			got, err := f.Call(n, 1, l)
			if err == nil && !got.equal(letterOf(i, 30000).answer()) {
				return errors.New("another letter")
			}
			if err != nil {
				if errors.Is(err, ErrPeer) {
					heard.Add(1)
				}
				return err
			}
		}
	})
	if !errors.Is(err, ErrPeer) || heard.Load() != 2 {
		t.Errorf("%d callers heard of it: %v", heard.Load(), err)
	}
}

// TestCallsOnConduits has values, errors and tasks travel on every kind of conduit.
func TestCallsOnConduits(t *testing.T) {
	for _, conduit := range []string{"udp", "hybrid", "sim", "calls-sim", "hidden"} {
		for _, progress := range []bool{false, true} {
			cfg := small(3)
			cfg.Conduit, cfg.Progress = conduit, progress
			if err := Run(cfg, func(n *Node) error {
				return errors.Join(exchangeLetters(n), tasksEverywhere(n))
			}); err != nil {
				t.Errorf("%s, progress %v: %v", conduit, progress, err)
			}
		}
	}
}
