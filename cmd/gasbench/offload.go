package main

import (
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/extended/collective"
)

// offloads are the operations of scale/offload, in the order of its columns.
var offloads = []struct {
	name string
	size int // bytes
	run  func(c *collective.Member, b *barrier.Barrier, buf []byte) error
}{
	{"barrier", 0, func(_ *collective.Member, b *barrier.Barrier, _ []byte) error { return b.Barrier(0, 0) }},
	{"broadcast", 8, func(c *collective.Member, _ *barrier.Barrier, buf []byte) error {
		return c.Do(collective.Broadcast(0, buf), nil)
	}},
	{"broadcast", 4096, func(c *collective.Member, _ *barrier.Barrier, buf []byte) error {
		return c.Do(collective.Broadcast(0, buf), nil)
	}},
	{"all-reduce", 8, func(c *collective.Member, _ *barrier.Barrier, buf []byte) error {
		return c.Do(collective.AllReduce(buf), func(acc, in []byte) { acc[0] |= in[0] })
	}},
}

// leastOffload is the least number of ranks of scale/offload; each further number is four
// times the one before.
const leastOffload = 16

func scaleOffload(s *study) error {
	columns := []string{""}
	for _, o := range offloads {
		name := o.name
		if o.size > 0 {
			name += " " + strconv.Itoa(o.size)
		}
		columns = append(columns, name, "by the card")
	}
	if err := s.head("us by messages, and by cards and switches that do barriers and multicasts", columns...); err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	for _, topo := range topologies {
		p := s.o.profile
		p.Net.Topology = topo
		for ranks := leastOffload; ranks <= s.o.ranks; ranks *= 4 {
			var figures [2][]figure
			for i, offload := range []bool{false, true} {
				j, err := sim.New(ranks, sim.Config{Profile: &p, MaxSegment: scaleSegment, Offload: offload})
				if err != nil {
					return err
				}
				took := make([]spans, len(offloads))
				if err := runOffloads(j, took); err != nil {
					return fmt.Errorf("%d ranks, %v, offload %v: %w", ranks, topo, offload, err)
				}
				for k, o := range offloads {
					what := topo.String() + " " + o.name
					if offload {
						what += " by the card"
					}
					figures[i] = append(figures[i], figure{
						What: what, Ranks: ranks, Size: o.size, Metric: latency, Unit: "ns", Value: took[k].each(), Events: j.Events,
					})
				}
			}
			cells := []string{fmt.Sprintf("%s %d", topo, ranks)}
			for k := range offloads {
				for i := range figures {
					cells = append(cells, strconv.FormatFloat(figures[i][k].Value/1000, 'f', 2, 64))
				}
			}
			if err := s.add(append(figures[0], figures[1]...), cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// spans are calls, each from the time at which the last rank is ready for it to the time at
// which the last one is done with it, ns.
type spans [calls]struct{ ready, done float64 }

func (s *spans) each() float64 {
	sum := 0.0
	for _, c := range s {
		sum += c.done - c.ready
	}
	return sum / calls
}

// runOffloads takes the time of all offloads, a barrier before each call.
func runOffloads(j *sim.Job, took []spans) error {
	members := make([]*collective.Member, len(j.Endpoints()))
	for i := range members {
		members[i] = collective.New(collective.Config{})
	}
	return onEach(j, members, func(ep conduits.Endpoint, b *barrier.Barrier) error {
		for k := range len(took) * calls {
			o, span := offloads[k/calls], &took[k/calls][k%calls]
			if err := b.Barrier(0, 0); err != nil {
				return err
			}
			span.ready = max(span.ready, virtual(ep))
			if err := o.run(members[ep.Rank()], b, make([]byte, o.size)); err != nil {
				return err
			}
			span.done = max(span.done, virtual(ep))
		}
		return nil
	})
}
