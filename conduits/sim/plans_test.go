package sim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var registered atomic.Int64

// runGas runs fn as every rank of j.
func runGas(j *sim.Job, cfg gas.Config, fn func(n *gas.Node) error) error {
	eps := j.Endpoints()
	cfg.Ranks, cfg.Conduit = len(eps), "sim-"+strconv.FormatInt(registered.Add(1), 10)
	conduits.Register(conduits.Conduit{
		Name:  cfg.Conduit,
		Local: func(int, conduits.Config) ([]conduits.Endpoint, error) { return eps, nil },
	})
	return gas.Run(cfg, fn)
}

var square = gas.RegisterCall("sim_test.square", func(n *gas.Node, x int) int { return x*x + n.Rank() })

// program is a random program that checks what it gets. All ranks make the same
// steps.
func program(seed uint64) func(n *gas.Node) error {
	return func(n *gas.Node) error {
		rnd := rand.New(rand.NewPCG(seed, 11))
		size, me := n.Size(), n.Rank()
		table, err := gas.NewSlice[uint64](n, 64*size)
		if err != nil {
			return err
		}
		count, err := gas.New[int64](n)
		if err != nil {
			return err
		}
		lock, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		added := int64(0)
		differ := func(what string, got, want any) error {
			if fmt.Sprint(got) == fmt.Sprint(want) {
				return nil
			}
			return fmt.Errorf("rank %d: %s is %v, not %v", me, what, got, want)
		}
		step := func(k int) error {
			x := rnd.IntN(1000)
			to := (me + x) % size
			switch rnd.IntN(8) {
			case 0:
				v, err := gas.AllReduce(n, me+x, gas.Sum[int])
				return errors.Join(err, differ("sum", v, size*x+size*(size-1)/2))
			case 1:
				root := x % size
				v, err := gas.Broadcast(n, root, me*7+x)
				return errors.Join(err, differ("broadcast", v, root*7+x))
			case 2:
				v, err := square.Call(n, to, x)
				return errors.Join(err, differ("call", v, x*x+to))
			case 3:
				// A block into the table of another rank, which looks at it after a
				// barrier.
				block := make([]uint64, 1+x%64)
				for i := range block {
					block[i] = uint64(me)<<32 + uint64(x+i)
				}
				if err := table.On(to).Add(64*me).PutSlice(n, block); err != nil {
					return err
				}
				if err := n.Barrier(); err != nil {
					return err
				}
				from := ((me-x)%size + size) % size
				got, _ := table.On(me).Add(64*from).LocalSlice(n, len(block))
				for i, v := range got {
					if err := differ("word", v, uint64(from)<<32+uint64(x+i)); err != nil {
						return err
					}
				}
				return n.Barrier()
			case 4:
				var hs []gas.Handle
				got := make([]uint64, 8)
				for i := range got {
					h, err := table.On(me).Add(64*me+i).PutNB(n, uint64(x+i))
					if err != nil {
						return err
					}
					hs = append(hs, h)
				}
				if err := n.SyncAll(hs); err != nil {
					return err
				}
				h, err := table.On(me).Add(64*me).GetSliceNB(n, got)
				if err == nil {
					err = n.Sync(h)
				}
				return errors.Join(err, differ("word", got[7], x+7))
			case 5:
				added++
				_, err := gas.FetchAdd(n, count.On(0), 1)
				return err
			case 6:
				added++
				if err := lock.Lock(n); err != nil {
					return err
				}
				_, err := gas.FetchAdd(n, count.On(0), 1)
				return errors.Join(err, lock.Unlock(n))
			default:
				// A second goroutine of the rank.
				done := false
				var v int
				var err error
				conduits.Go(n.Layers().Conduit, func() {
					v, err = square.Call(n, to, k)
					done = true
					n.Wake(me)
				})
				if err := n.Wait(func() bool { return done }); err != nil {
					return err
				}
				return errors.Join(err, differ("call", v, k*k+to))
			}
		}
		for k := range 25 {
			if err := step(k); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		v, err := count.On(0).Get(n)
		if err != nil {
			return err
		}
		return differ("count", v, added*int64(size))
	}
}

// TestPlans runs random programs of package gas under random faults. Every job
// ends: well, or, if a rank crashed, with an error that names it. A second run is
// the same.
func TestPlans(t *testing.T) {
	testjob.Simulated(t)
	crashed := 0
	for seed := range uint64(*sim.Seeds+3) / 4 {
		rnd := rand.New(rand.NewPCG(seed, 5))
		n := 1 + rnd.IntN(9)
		c, victim := sim.RandomPlan(rnd, n)
		c.Limit = sim.Second
		for i := range c.Faults.Crashes { // programs are longer than those of TestTraffic
			c.Faults.Crashes[i].At *= 8
			c.Faults.Crashes[i].Event *= 8
		}
		cfg := gas.Config{Progress: rnd.IntN(4) == 0}
		run := func() (uint64, error) {
			j := newJob(t, n, c)
			err := runGas(j, cfg, program(seed))
			return j.Digest(), err
		}
		digest, err := run()
		var r *gas.RankError
		var p *gas.PeerError
		switch {
		case err == nil:
		case victim >= 0 && errors.As(err, &r) && r.Rank == victim && r.Stack == nil && errors.As(err, &p) && p.Rank == victim:
			crashed++
		default:
			t.Errorf("seed %d, %d ranks, crash of %d: %v\n%v", seed, n, victim, err, c)
		}
		d, again := run()
		if d != digest || fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("seed %d: digest %x and %v, the second time %x and %v", seed, digest, err, d, again)
		}
	}
	t.Logf("%d of %d jobs ended with a crash", crashed, (*sim.Seeds+3)/4)
	if crashed == 0 && *sim.Seeds >= 60 {
		t.Error("no crash came in time")
	}
}
