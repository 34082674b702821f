package udp

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// simulated is an endpoint whose ranks the simulator runs.
type simulated struct {
	*Endpoint
	s *sim.Endpoint
}

func (e *simulated) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	l := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		l[i] = ep.(*simulated).s
	}
	e.s.RunRanks(l, rank)
}

func (e *simulated) GoRank(f func()) { e.s.GoRank(f) }

// Simulate opens the ranks of a job on the simulator's sockets, with faults.
func Simulate(f sim.Faults) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		lim, err := limits(n, MaxLocal, c)
		if err != nil {
			return nil, err
		}
		j, err := sim.New(n, sim.Config{Seed: c.Seed, Faults: f})
		if err != nil {
			return nil, err
		}
		b := newBoard(n)
		eps := make([]conduits.Endpoint, n)
		for r := range eps {
			s := j.Endpoint(r)
			e, err := newEndpoint(seat{b, r, s.GoRank}, simLink{s.Socket()}, lim, engine.Config{
				Rank: r, Size: n, Epoch: 1, Window: 64, MinRTO: 20 * time.Microsecond, FirstRTO: 200 * time.Microsecond, MaxRTO: 2 * time.Millisecond,
				AckDelay: 5 * time.Microsecond, DeadTime: time.Hour,
			})
			if err != nil {
				return nil, err
			}
			e.single = true
			b.eps = append(b.eps, e)
			eps[r] = &simulated{e, s}
		}
		return eps, nil
	}
}
