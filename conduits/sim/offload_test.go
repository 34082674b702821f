package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// together is a rank with the layers that use the card.
type together struct {
	*collective.Member
	bar *barrier.Barrier
	ep  conduits.Endpoint
}

// offloaded runs body on n ranks whose cards do what they can, and returns their errors.
func offloaded(t *testing.T, n int, c sim.Config, body func(r *together) error) (*sim.Job, []error) {
	t.Helper()
	c.Offload = true
	j, err := sim.New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	eps, all := j.Endpoints(), make([]error, n)
	conduits.Run(eps, func(i int) {
		all[i] = errors.New("it has ended its goroutine")
		r := &together{Member: collective.New(collective.Config{}), bar: barrier.New(), ep: eps[i]}
		e, err := am.Attach(eps[i], am.Config{Runtime: append(r.bar.Handlers(), r.Handlers()...)})
		if err == nil {
			err = r.bar.Bind(e)
		}
		if err == nil {
			r.Bind(e)
			err = r.bar.Barrier(0, 0)
		}
		if err == nil && r.bar.Algorithm() != barrier.Card {
			err = fmt.Errorf("the barrier is %v", r.bar.Algorithm())
		}
		if err == nil {
			err = body(r)
		}
		if all[i] = err; err == nil {
			all[i] = eps[i].Close()
		}
	})
	return j, all
}

// rounds are barriers and collectives, split phases among them, with results that are
// looked at.
func rounds(r *together) error {
	n := byte(r.Size())
	for k := range byte(12) {
		if err := r.bar.Notify(uint32(k), 0); err != nil {
			return err
		}
		buf := make([]byte, 9000)
		root := int(k) % r.Size()
		if r.Rank() == root {
			buf[8999] = k + 1
		}
		if err := r.Do(collective.Broadcast(root, buf), nil); err != nil || buf[8999] != k+1 {
			return errors.Join(err, fmt.Errorf("rank %d: broadcast %d brings %d", r.Rank(), k, buf[8999]))
		}
		acc := []byte{byte(r.Rank())}
		if err := r.Do(collective.AllReduce(acc), func(a, in []byte) { a[0] += in[0] }); err != nil || acc[0] != n*(n-1)/2 {
			return errors.Join(err, fmt.Errorf("rank %d: sum %d", r.Rank(), acc[0]))
		}
		if err := r.bar.Wait(uint32(k), 0); err != nil {
			return err
		}
	}
	return nil
}

// TestOffloadWeather: barriers and multicasts are right, and the same each time, whatever
// comes late; a rank that dies inside is named to all others.
func TestOffloadWeather(t *testing.T) {
	testjob.Simulated(t)
	const n = 7
	for _, topo := range []fabric.Topology{fabric.Crossbar, fabric.Torus, fabric.FatTree} {
		for name, options := range map[string]string{
			"fine":      "",
			"jitter":    "jitter=20us",
			"slow":      "slow=3x50",
			"stall":     "stall=2@40us+300us stall=0@100us+50us",
			"partition": "partition=0-2@30us+200us partition=5-6@250us+90us jitter=1us",
			"crash":     "crash=4@60us jitter=3us",
			"crash 0":   "crash=0@61us",
		} {
			for seed := range uint64(4) {
				run := func() (uint64, []error) {
					c, err := sim.ParseOptions(fmt.Sprintf("seed=%d topology=%v %s", seed, topo, options))
					if err != nil {
						t.Fatal(err)
					}
					j, all := offloaded(t, n, c, rounds)
					return j.Digest(), all
				}
				digest, all := run()
				dead := -1
				if i := strings.Index(options, "crash="); i >= 0 {
					dead = int(options[i+len("crash=")] - '0')
				}
				for r, err := range all {
					var p *conduits.PeerError
					if r != dead && (dead < 0 && err != nil || dead >= 0 && (!errors.As(err, &p) || p.Rank != dead)) {
						t.Errorf("%v, %s, seed %d: rank %d: %v", topo, name, seed, r, err)
					}
				}
				if again, _ := run(); again != digest {
					t.Errorf("%v, %s, seed %d: digests %x and %x", topo, name, seed, digest, again)
				}
			}
		}
	}
}

// TestOffloadBlocked: reports name the ranks that do not come.
func TestOffloadBlocked(t *testing.T) {
	for what, call := range map[string]func(r *together) error{
		"barrier phase 2: waiting for rank 1, 4 (barrier 0 of the card)":                        func(r *together) error { return r.bar.Barrier(0, 0) },
		"collective call 1, Broadcast from rank 0 of 5 bytes: waiting for rank 1, 4 to call it": func(r *together) error { return r.Do(collective.Broadcast(0, make([]byte, 5)), nil) },
	} {
		_, all := offloaded(t, 5, sim.Config{}, func(r *together) error {
			if r.Rank() == 1 || r.Rank() == 4 {
				return conduits.Wait(r.ep, nil, func() bool { return false })
			}
			return call(r)
		})
		if all[0] == nil || !strings.Contains(all[0].Error(), what) {
			t.Errorf("%v\nhas no %q", all[0], what)
		}
	}
}
