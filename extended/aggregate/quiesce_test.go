package aggregate

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/conc"
)

// crowd divides the seeds: under the race detector, which has nothing to see where ranks run
// one at a time.
var crowd = map[bool]uint64{false: 1, true: 16}[conc.Race]

var (
	seeds     = flag.Uint64("aggregate.seeds", 160/crowd, "random programs of TestQuiescence")
	firstSeed = flag.Uint64("aggregate.seed", 1, "the first of them")
)

const handlerSpark = am.FirstClient

// ledger has the counts of a whole job, whose ranks run one at a time.
type ledger struct {
	begun, over int    // pushes, sends and sparks; those that were handled
	lastWave    uint32 // the highest wave of any rank when the last of them was
	ranks       []*Aggregator
}

// note is told that something has been handled.
func (l *ledger) note() {
	l.over++
	for _, c := range l.ranks {
		if c != nil {
			l.lastWave = max(l.lastWave, c.waves.wave)
		}
	}
}

// sparks are a Party of short messages, each of which has some more sent when it is handled,
// as deferred work has calls made.
type sparks struct {
	e             *am.Messenger
	c             *Aggregator
	l             *ledger
	rng           *rand.Rand
	queue         []uint32 // to be handled: how many generations they still cause
	unsent        []uint32
	sent, handled uint64
}

// light has a spark be sent.
func (s *sparks) light(generations uint32) {
	s.l.begun++
	s.sent++
	s.unsent = append(s.unsent, generations)
}

// Flush handles what has come and sends what that causes, as far as there is credit.
func (s *sparks) Flush() (idle bool, err error) {
	for len(s.queue) > 0 {
		g := s.queue[0]
		s.queue = s.queue[1:]
		for range s.rng.IntN(3) {
			if g > 0 {
				s.light(g - 1)
			}
		}
		s.handled++
		s.l.note()
	}
	for len(s.unsent) > 0 {
		ok, err := s.e.TryRequestShort(s.rng.IntN(s.e.Size()), handlerSpark, s.unsent[0])
		if !ok || err != nil {
			return false, err
		}
		s.unsent = s.unsent[1:]
	}
	return true, nil
}

func (s *sparks) Counts() (sent, handled uint64) { return s.sent, s.handled }

// adversary is the scheduler of a seed: its order of simultaneous events, delays of all
// messages that outlast waves, processors that are slow and stand still.
func adversary(seed uint64, ranks int) sim.Config {
	r := rand.New(rand.NewPCG(seed, 1))
	c := sim.Config{Seed: seed, Credits: 2 + r.IntN(60)}
	c.Faults.Jitter = []sim.Time{0, sim.Microsecond, 20 * sim.Microsecond, 500 * sim.Microsecond}[r.IntN(4)]
	for range r.IntN(3) {
		c.Faults.Slow = append(c.Faults.Slow, sim.Slow{Rank: r.IntN(ranks), Factor: 1 + r.IntN(200)})
		c.Faults.Stalls = append(c.Faults.Stalls, sim.Stall{
			Rank: r.IntN(ranks), At: r.Int64N(500) * sim.Microsecond, For: r.Int64N(300) * sim.Microsecond,
		})
	}
	return c
}

// TestQuiescence: whatever the scheduler does, when Sync ends on any rank all that was
// begun on any rank has been handled, with what that caused, and it ends no later than by the
// second wave after the one that was under way then.
func TestQuiescence(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		ranks := 1 + rng.IntN(9)
		j, err := sim.New(ranks, adversary(seed, ranks))
		if err != nil {
			t.Fatal(err)
		}
		l := &ledger{ranks: make([]*Aggregator, ranks)}
		all := make([]error, ranks)
		eps := j.Endpoints()
		routed, syncs := rng.IntN(2) == 0, 1+rng.IntN(3)
		conduits.Run(eps, func(r int) {
			if all[r] = quiet(eps[r], l, seed, syncs, routed); all[r] != nil {
				eps[r].Fail(all[r])
			}
			all[r] = errors.Join(all[r], eps[r].Close())
		})
		if err := errors.Join(all...); err != nil {
			t.Fatalf("-aggregate.seed %d: %d ranks: %v", seed, ranks, err)
		}
	}
}

// quiet is one rank of TestQuiescence.
func quiet(ep conduits.Endpoint, l *ledger, seed uint64, syncs int, routed bool) error {
	c, b := New(Config{}), barrier.New()
	s := &sparks{c: c, l: l, rng: rand.New(rand.NewPCG(seed, 3+uint64(ep.Rank())))}
	e, err := am.Attach(ep, am.Config{
		Runtime: append(b.Handlers(), c.Handlers()...),
		Handlers: []am.Entry{{Index: handlerSpark, Name: "spark", Args: 1, Kinds: am.Short | am.Request, Fn: func(_ *am.Token, args []uint32, _ []byte) {
			s.queue = append(s.queue, args[0])
			c.Nudge()
		}}},
	})
	if err == nil {
		s.e = e
		err = b.Bind(e)
	}
	if err != nil {
		return err
	}
	c.Bind(e, gate{b})
	if routed {
		c.columns = columns(c.size)
	}
	l.ranks[c.rank] = c
	var box *Box
	item := func(generations uint32) error {
		l.begun++
		p := make([]byte, 8)
		binary.LittleEndian.PutUint32(p, generations)
		if dst := s.rng.IntN(c.size); s.rng.IntN(4) > 0 {
			return box.Push(dst, p)
		} else {
			return box.Send(dst, p)
		}
	}
	var failed error
	box, err = c.Open(Spec{Name: "items", Size: 8, Deliver: func(_ int, items []byte) {
		for ; len(items) > 0; items = items[8:] {
			if g := binary.LittleEndian.Uint32(items); g > 0 {
				for range s.rng.IntN(3) {
					failed = errors.Join(failed, item(g-1))
				}
				if s.rng.IntN(3) == 0 {
					s.light(g - 1)
				}
			}
			l.note()
		}
	}})
	if err != nil {
		return err
	}
	box.Start()
	if err := b.Barrier(0, 0); err != nil {
		return err
	}
	for range syncs {
		for range s.rng.IntN(12) {
			if s.rng.IntN(2) == 0 {
				err = item(uint32(s.rng.IntN(5)))
			} else {
				s.light(uint32(s.rng.IntN(5)))
			}
			if err != nil {
				return err
			}
		}
		for range s.rng.IntN(40) {
			e.Poll()
		}
		l.lastWave = max(l.lastWave, c.waves.wave) // nothing may be left to do
		if err := errors.Join(c.Sync(100, "sync", box, s), failed); err != nil {
			return err
		}
		if l.over != l.begun {
			return fmt.Errorf("rank %d: Sync has ended when %d of %d were handled", c.rank, l.over, l.begun)
		}
		if c.waves.wave-1 > l.lastWave+2 {
			return fmt.Errorf("rank %d: Sync has ended in wave %d, and all was handled in wave %d", c.rank, c.waves.wave-1, l.lastWave)
		}
		// No rank begins anything before all have looked.
		if err := b.Barrier(0, 0); err != nil {
			return err
		}
	}
	box.Close()
	return nil
}
