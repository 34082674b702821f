package udp

import (
	"crypto/ecdh"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/job/jobkey"
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

func (e *simulated) Interrupt(err error) { e.Fail(err) }

func (e *simulated) Sleep(d time.Duration) { e.s.Sleep(d) }

var _ conduits.Runner = (*simulated)(nil)

// Plain is the mode of datagrams that nothing protects, not even seal's header.
const Plain seal.Mode = 99

// sealings makes the sealers of the ranks of a job in one process. All such jobs
// have the same key, so that a simulation can be repeated.
func sealings(n int, m seal.Mode) func(rank int) *sealing {
	return func(rank int) *sealing {
		if m == Plain {
			return nil
		}
		key, err := jobkey.Parse(strings.Repeat("5a", jobkey.Size))
		if err != nil {
			panic(err)
		}
		incarnation := func(rank int) uint64 { return uint64(rank) + 1000 }
		return sealingOf(key, rank, n, incarnation(rank), m, incarnation)
	}
}

// sealingOf makes what seals a rank's datagrams, in a run that may be another than the job has.
func sealingOf(key jobkey.Key, rank, n int, own uint64, m seal.Mode, incarnation func(rank int) uint64) *sealing {
	private := func(rank int, incarnation uint64) *ecdh.PrivateKey { // the same in all tests
		b := sha256.Sum256(fmt.Appendf(nil, "%d %d", rank, incarnation))
		k, err := ecdh.X25519().NewPrivateKey(b[:])
		if err != nil {
			panic(err)
		}
		return k
	}
	s, err := seal.New(seal.Config{
		Key: key, Rank: rank, Size: n, Mode: m, Incarnation: own, Private: private(rank, own),
		Peer: func(rank int) (uint64, []byte) {
			return incarnation(rank), private(rank, incarnation(rank)).PublicKey().Bytes()
		},
	})
	if err != nil {
		panic(err)
	}
	return &sealing{s: s}
}

// Simulate opens the ranks of a job on the simulator's sockets, with faults.
func Simulate(f sim.Faults, m seal.Mode) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		lim, err := limits(n, MaxLocal, c)
		if err != nil {
			return nil, err
		}
		j, err := sim.New(n, sim.Config{Seed: c.Seed, Faults: f})
		if err != nil {
			return nil, err
		}
		b, sealer := newBoard(n), sealings(n, m)
		eps := make([]conduits.Endpoint, n)
		for r := range eps {
			s := j.Endpoint(r)
			e, err := newEndpoint(seat{b, r, s.GoRank}, simLink{s.Socket()}, lim, sealer(r), engine.Config{
				Rank: r, Size: n, Epoch: 1, Window: 64, InitialRTT: 50 * time.Microsecond, Granularity: 10 * time.Microsecond,
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

// FirstTrip is the round trip to rank that the engine assumes before it has
// measured one; 0 means that it knows nothing.
func (e *Endpoint) FirstTrip(rank int) time.Duration { return e.eng.Config().RTT(rank) }
