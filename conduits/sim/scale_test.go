package sim_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var (
	ranks    = flag.Int("sim.ranks", 4096, "ranks of TestManyRanks")
	barriers = flag.Int("sim.barrier", 16384, "ranks of TestOneBarrier")
)

// cost reports what a job of n ranks took.
type cost struct {
	n     int
	start time.Time
	base  runtime.MemStats
}

func begin(n int) *cost {
	c := &cost{n: n}
	runtime.GC()
	runtime.ReadMemStats(&c.base)
	c.start = time.Now()
	return c
}

func (c *cost) report(t *testing.T, j *sim.Job, what string) uint64 {
	var m runtime.MemStats
	wall := time.Since(c.start)
	runtime.ReadMemStats(&m)
	rank := (m.Sys - c.base.Sys) / uint64(c.n)
	t.Logf("%s: %d ranks, %.1f s, %d events, %.2g events/s, from the system %.2f GiB, %d bytes a rank (stacks %d)",
		what, c.n, wall.Seconds(), j.Events, float64(j.Events)/wall.Seconds(), float64(m.Sys)/(1<<30), rank, (m.StackSys-c.base.StackSys)/uint64(c.n))
	return rank
}

func TestManyRanks(t *testing.T) {
	testjob.Simulated(t)
	testmain.Long(t)
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	c := begin(*ranks)
	j, err := sim.New(*ranks, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = runGas(j, gas.Config{}, func(n *gas.Node) error {
		for range 3 {
			if err := n.BarrierNotify(); err != nil {
				return err
			}
			if err := n.BarrierWait(); err != nil {
				return err
			}
		}
		v, err := gas.Broadcast(n, 7, n.Rank())
		if err != nil {
			return err
		}
		if v != 7 {
			return fmt.Errorf("broadcast gave %d", v)
		}
		s, err := gas.Reduce(n, 3, int64(1), func(a, b int64) int64 { return a + b })
		if err != nil {
			return err
		}
		if n.Rank() == 3 {
			if s != int64(n.Size()) {
				return fmt.Errorf("sum %d", s)
			}
			c.report(t, j, "three barriers, a broadcast, a reduction")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.report(t, j, "end")
}

func TestOneBarrier(t *testing.T) {
	testjob.Simulated(t)
	testmain.Long(t)
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	c := begin(*barriers)
	j, err := sim.New(*barriers, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	conduits.Run(j.Endpoints(), func(i int) {
		b := barrier.New()
		e, err := am.Attach(j.Endpoint(i), am.Config{Runtime: b.Handlers()})
		if err == nil {
			err = b.Bind(e)
		}
		if err == nil {
			err = b.Barrier(1, 0)
		}
		if err != nil {
			t.Error(i, err)
		}
	})
	c.report(t, j, "barrier")
}
