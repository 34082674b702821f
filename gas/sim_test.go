package gas_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
)

var jobs atomic.Int64 // numbers the conduits that simulate registers

// simulate runs fn on n ranks of a simulated job.
func simulate(t *testing.T, n int, c sim.Config, cfg gas.Config, fn func(n *gas.Node) error) error {
	j, err := sim.New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Ranks, cfg.Conduit = n, "sim-"+strconv.FormatInt(jobs.Add(1), 10)
	conduits.Register(conduits.Conduit{
		Name:  cfg.Conduit,
		Local: func(int, conduits.Config) ([]conduits.Endpoint, error) { return j.Endpoints(), nil },
	})
	return gas.Run(cfg, fn)
}

var addRank = gas.RegisterCall("gas_test.addRank", func(n *gas.Node, x int) int { return x + n.Rank() })

// callsAndLocks calls other ranks and counts under a lock.
func callsAndLocks(n *gas.Node) error {
	for k := range 5 {
		to := (n.Rank() + k) % n.Size()
		if r, err := addRank.Call(n, to, k); err != nil || r != k+to {
			return errors.Join(err, fmt.Errorf("rank %d added to %d: %d", to, k, r))
		}
	}
	l, err := gas.NewLock(n)
	if err != nil {
		return err
	}
	count, err := gas.New[int64](n)
	if err != nil {
		return err
	}
	for range 3 {
		if err := l.Lock(n); err != nil {
			return err
		}
		v, err := count.On(0).Get(n)
		if err == nil {
			err = count.On(0).Put(n, v+1)
		}
		if err = errors.Join(err, l.Unlock(n)); err != nil {
			return err
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if v, err := count.On(0).Get(n); err != nil || v != int64(3*n.Size()) {
		return errors.Join(err, fmt.Errorf("%d ranks counted to %d", n.Size(), v))
	}
	return nil
}

// Where nothing but the conduit switches ranks, and no rank may block but in it,
// everything works as elsewhere, also with progress goroutines.
func TestSimulated(t *testing.T) {
	for _, progress := range []bool{false, true} {
		if err := simulate(t, 33, sim.Config{Seed: 5}, gas.Config{Progress: progress}, callsAndLocks); err != nil {
			t.Errorf("progress %v: %v", progress, err)
		}
	}
}

// Where in its page memory lies that ranks register makes no other run.
func TestSimulatedPlaces(t *testing.T) {
	run := func(off int) (digest uint64, text string) {
		var trace strings.Builder
		j, err := sim.New(3, sim.Config{Seed: 5, Trace: &trace})
		if err != nil {
			t.Fatal(err)
		}
		name := "sim-" + strconv.FormatInt(jobs.Add(1), 10)
		conduits.Register(conduits.Conduit{
			Name:  name,
			Local: func(int, conduits.Config) ([]conduits.Endpoint, error) { return j.Endpoints(), nil },
		})
		const length = 5000 // words: two pages or three of each bucket, and some buckets
		err = gas.Run(gas.Config{Ranks: 3, Conduit: name, SegmentSize: 4096, PinBucket: 8192, Pinnable: 10 * 8192, PinLocal: 2 * 8192}, func(n *gas.Node) error {
			mem := make([]uint64, length+512)
			p := gas.Must(gas.Register(n, mem[off:off+length]))
			all, err := gas.AllGather(n, p)
			if err != nil {
				return err
			}
			buf := make([]uint64, 300)
			for i := range 200 {
				q := all[(n.Rank()+1)%3].Add(i * 977 % (length - len(buf)))
				if i%3 == 0 {
					err = q.PutSlice(n, buf)
				} else {
					err = q.GetSlice(n, buf[:1+i])
				}
				if err != nil {
					return err
				}
			}
			n.Must(n.Barrier())
			return gas.Free(n, p)
		})
		if err = errors.Join(err, j.Flush()); err != nil {
			t.Fatal(err)
		}
		return j.Digest(), trace.String()
	}
	first, text := run(0)
	if !strings.Contains(text, " at registered memory") {
		t.Fatalf("nothing was done:\n%s", text)
	}
	for _, off := range []int{1, 100, 511} {
		digest, other := run(off)
		if digest == first && other == text {
			continue
		}
		a, b := strings.Split(text, "\n"), strings.Split(other, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("at word %d of a page: line %d is\n%s\nand not\n%s", off, i+1, b[i], a[i])
			}
		}
		t.Fatalf("at word %d of a page: another digest", off)
	}
}

// A rank that dies at any moment is the one that Run names.
func TestSimulatedCrash(t *testing.T) {
	for _, progress := range []bool{false, true} {
		crashed := 0
		for event := uint64(100); event < 12000; event += 371 {
			c := sim.Config{Seed: event, Faults: sim.Faults{Crashes: []sim.Crash{{Rank: 4, Event: event}}}}
			err := simulate(t, 9, c, gas.Config{Progress: progress}, callsAndLocks)
			if err == nil {
				continue // it was too late
			}
			crashed++
			var re *gas.RankError
			var pe *gas.PeerError
			if !errors.As(err, &re) || re.Rank != 4 || !errors.As(err, &pe) || pe.Rank != 4 {
				t.Errorf("progress %v, crash at event %d: %v", progress, event, err)
			}
		}
		if crashed == 0 {
			t.Error("no crash came in time")
		}
	}
}

// However many ranks find that their calls do not match, each learns of it, and
// not from all.
func TestSimulatedMismatch(t *testing.T) {
	const ranks = 300
	for _, odd := range []func(rank int) bool{
		func(rank int) bool { return rank&1 != 0 },
		func(rank int) bool { return rank >= ranks/2 },
		func(rank int) bool { return rank == 17 },
	} {
		var sent uint64
		failed := 0
		err := simulate(t, ranks, sim.Config{Seed: 3}, gas.Config{}, func(n *gas.Node) error {
			root := 0
			if odd(n.Rank()) {
				root = 1
			}
			_, err := gas.Broadcast(n, root, 5)
			if err == nil {
				_, err = gas.AllReduce(n, 1, gas.Sum[int]) // so that all that have finished hear of it
			}
			if errors.Is(err, gas.ErrBadArg) {
				failed++
			} else {
				t.Errorf("rank %d: %v", n.Rank(), err)
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			var s conduits.Stats
			n.Stats(&s)
			sent += s.Sent[conduits.Request]
			return nil
		})
		if err != nil || failed != ranks {
			t.Errorf("%d of %d ranks failed; Run: %v", failed, ranks, err)
		}
		t.Logf("%d messages", sent)
		if most := uint64(100 * ranks); sent > most {
			t.Errorf("%d messages; %d are enough", sent, most)
		}
	}
}
