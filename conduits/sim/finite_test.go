package sim_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// across has all ranks put 4 KiB to the rank half the job away, and then to the next one, some times.
func across(times int) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		p, err := gas.Alloc[byte](n, 8<<10)
		if err != nil {
			return err
		}
		all, err := gas.AllGather(n, p)
		if err != nil {
			return err
		}
		src := make([]byte, 4<<10)
		for i := range src {
			src[i] = byte(n.Rank())
		}
		for k := range times {
			to := (n.Rank() + n.Size()/2 + k) % n.Size()
			if err := all[to].PutSlice(n, src); err != nil {
				return err
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			from := (n.Rank() + 2*n.Size() - n.Size()/2 - k) % n.Size()
			got := make([]byte, len(src))
			if err := p.GetSlice(n, got); err != nil {
				return err
			}
			for i, b := range got {
				if b != byte(from) {
					return fmt.Errorf("byte %d is %d, not of rank %d", i, b, from)
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestFiniteNetworks runs a program over networks with finite buffers.
func TestFiniteNetworks(t *testing.T) {
	testjob.Simulated(t)
	for _, o := range []string{
		"topology=mesh", "topology=torus flits=2 dims=8x8x1", "topology=mesh dims=8x8x1 routing=westfirst",
		"topology=irregular flits=1 radix=3 wiring=5", "topology=torus flits=3 channels=4 routing=updown",
		"topology=torus dims=8x8x1 flits=2 channels=1 recover=10us", "topology=mesh routing=shortest recover=10us flits=1",
	} {
		var events [2]uint64
		for i := range events {
			c, err := sim.ParseOptions(o)
			if err != nil {
				t.Fatal(err)
			}
			j := newJob(t, 64, c)
			if err := runGas(j, gas.Config{}, across(2)); err != nil {
				t.Errorf("%s: %v", o, err)
			}
			events[i] = j.Events
		}
		if events[0] != events[1] {
			t.Errorf("%s: %d events, and then %d", o, events[0], events[1])
		}
	}
}

// TestFiniteRanks runs many ranks on a torus with finite buffers, which docs/network-model.md says the cost of.
func TestFiniteRanks(t *testing.T) {
	testjob.Simulated(t)
	testmain.Long(t)
	c, err := sim.ParseOptions("topology=torus flits=4 segment=64K")
	if err != nil {
		t.Fatal(err)
	}
	took := begin(*ranks)
	j := newJob(t, *ranks, c)
	table := make([]gas.Ptr[byte], *ranks)
	if err := runGas(j, gas.Config{}, func(n *gas.Node) error {
		p, err := gas.Alloc[byte](n, 4<<10)
		if err != nil {
			return err
		}
		table[n.Rank()] = p
		if err := n.Barrier(); err != nil {
			return err
		}
		if err := table[(n.Rank()+n.Size()/2)%n.Size()].PutSlice(n, make([]byte, 4<<10)); err != nil {
			return err
		}
		return n.Barrier()
	}); err != nil {
		t.Fatal(err)
	}
	took.report(t, j, "two barriers, a put of 4 KiB across")
}

// TestFiniteDeadlock: a job whose network comes to a stop ends, and names the circle.
func TestFiniteDeadlock(t *testing.T) {
	c, err := sim.ParseOptions("topology=torus dims=16x1x1 flits=1 flit=16 channels=1")
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t, 16, c)
	err = runGas(j, gas.Config{}, func(n *gas.Node) error {
		p, err := gas.Alloc[byte](n, 8<<10)
		if err != nil {
			return err
		}
		all, err := gas.AllGather(n, p)
		if err != nil {
			return err
		}
		src := make([]byte, 4<<10)
		for k := range 8 { // all the same way round
			if err := all[(n.Rank()+7)%n.Size()].PutSlice(n, src); err != nil {
				return fmt.Errorf("put %d: %w", k, err)
			}
		}
		return n.Barrier()
	})
	var d *fabric.DeadlockError
	if !errors.As(err, &d) || len(d.Cycle) < 2 {
		t.Fatalf("error %v", err)
	}
}

// TestFiniteOffload refuses what switches with finite buffers do not do.
func TestFiniteOffload(t *testing.T) {
	for _, o := range []string{"topology=mesh offload=on", "topology=torus flits=4 offload=on"} {
		c, err := sim.ParseOptions(o)
		if err == nil {
			err = c.Validate(4)
		}
		if !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%s: %v", o, err)
		}
	}
}
