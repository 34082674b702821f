package udp

import (
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// simLink is a link over the simulator's sockets.
type simLink struct{ *sim.Socket }

func (l simLink) Send(dst int, p []byte) { _ = l.Socket.Send(dst, p) }
func (l simLink) Err() error             { return l.Endpoint().Err() }
func (l simLink) Close()                 {}

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

func simulate(f sim.Faults) conduittest.Open {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		lim, err := limits(n, c)
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
			e, err := newEndpoint(r, b, simLink{s.Socket()}, lim, engine.Config{
				Epoch: 1, Window: 64, MinRTO: 20 * time.Microsecond, FirstRTO: 200 * time.Microsecond, MaxRTO: 2 * time.Millisecond,
				AckDelay: 5 * time.Microsecond, DeadTime: time.Hour,
			})
			if err != nil {
				return nil, err
			}
			e.single, e.run = true, s.GoRank
			b.eps = append(b.eps, e)
			eps[r] = &simulated{e, s}
		}
		return eps, nil
	}
}

// TestConformanceSimulated runs the suite over a network that does everything at
// once that a network can do.
func TestConformanceSimulated(t *testing.T) {
	conduittest.Run(t, simulate(sim.Faults{
		Drop: 0.2, Duplicate: 0.1, Delay: 0.5, Corrupt: 0.05, Truncate: 0.02, DelayBy: 30 * sim.Microsecond,
		Buffer: 1 << 18, Jitter: sim.Microsecond,
	}))
}

// TestConformanceClear runs it over a network without faults.
func TestConformanceClear(t *testing.T) { conduittest.Run(t, simulate(sim.Faults{})) }
