package gas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func init() {
	// Jitter brings messages out of order.
	conduits.Register(conduits.Conduit{Name: "calls-sim", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: 7, Faults: sim.Faults{Jitter: 100000}})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
	conduits.Register(conduits.Conduit{Name: "calls-apart", Local: chaos.Local(shm.Local, chaos.Config{HideNeighbours: true})})
	// Neighbours whose messages come in any order: a call overtakes pieces of its argument.
	conduits.Register(conduits.Conduit{Name: "calls-mixed", Local: chaos.Local(shm.Local, chaos.Config{Seed: 5})})
	conduits.Register(conduits.Conduit{Name: "calls-killed", Local: chaos.Local(shm.Local, chaos.Config{
		Seed: 3, HideNeighbours: true, Kill: []chaos.Kill{{Rank: 1, After: 3000}},
	})})
	conduits.Register(conduits.Conduit{Name: "calls-killed-near", Local: chaos.Local(shm.Local, chaos.Config{
		Seed: 3, Kill: []chaos.Kill{{Rank: 1, After: 3000}},
	})})
}

var (
	countedCalls PerRank[[3]atomic.Int64]
	// These count their arguments, by their length, at the called rank.
	countCall = RegisterCall("test.count", func(n *Node, b []byte) int { return countedAt(n, b) })
	countTask = RegisterTask("test.countTask", func(c *Call, b []byte) (int, error) { return countedAt(c.Node, b), nil })
)

func countedAt(n *Node, b []byte) int {
	countedCalls.Of(n)[len(b)%3].Add(1)
	return len(b)
}

// TestCallsOnce: each call runs once, with all of its argument.
func TestCallsOnce(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "calls-sim", "hidden") {
		t.Run(conduit, func(t *testing.T) { callsOnce(t, conduit) })
	}
}

func callsOnce(t *testing.T, conduit string) {
	cfg := small(3)
	cfg.Conduit = conduit
	err := Run(cfg, func(n *Node) error {
		n.Must(exchangeLetters(n))
		const each = 20
		for i := range each {
			for k := range 3 {
				b := make([]byte, 3*i*i*10+k)
				f := countCall
				if i%2 == 0 {
					f = countTask
				}
				if k == 0 {
					n.Must(f.Send(n, i%n.Size(), b))
				} else if v, err := f.Call(n, i%n.Size(), b); v != len(b) || err != nil {
					return fmt.Errorf("%d bytes of %d: %w", v, len(b), err)
				}
			}
		}
		want := int64(0)
		for i := range each {
			if i%n.Size() == n.Rank() {
				want += int64(n.Size())
			}
		}
		c := countedCalls.Of(n)
		n.Must(n.Wait(func() bool {
			return c[0].Load() >= want && c[1].Load() >= want && c[2].Load() >= want
		}))
		n.Must(n.Barrier())
		for k := range c {
			if v := c[k].Load(); v != want {
				return fmt.Errorf("%d calls of kind %d ran, %d were made", v, k, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLargeValuesMoveOnce: of values that no message carries none of the bytes travel in messages but between
// neighbours, nothing is left of them at either rank, and a result that is the argument arrives as that was.
func TestLargeValuesMoveOnce(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "calls-sim", "hidden") {
		t.Run(conduit, func(t *testing.T) {
			cfg := small(2)
			cfg.Conduit = conduit
			err := Run(cfg, func(n *Node) error {
				for _, f := range []*Func[parts, parts]{callParts, taskParts} {
					a := parts{Name: strings.Repeat("n", leastApart), Rows: make([][]uint16, 2*mostApart)}
					for i := range a.Rows {
						a.Rows[i] = make([]uint16, leastApart*(1+i%2))
						a.Rows[i][i] = uint16(i)
					}
					var before, s conduits.Stats
					n.ep.Stats(&before)
					got := Must(f.Call(n, 1-n.Rank(), a))
					if got.Name != a.Name || !slices.EqualFunc(got.Rows, a.Rows, slices.Equal) || got.None != nil {
						return errors.New("another value came back")
					}
					n.Must(n.Barrier())
					if n.Neighbour(1 - n.Rank()) {
						continue // it came in pieces
					}
					// Both directions have a question, an answer, a call, a result and its end, the barrier a few.
					if n.ep.Stats(&s); s.Puts < before.Puts+mostApart || s.Gets < before.Gets+mostApart || s.Sent[0]+s.Sent[1] > before.Sent[0]+before.Sent[1]+20 {
						return fmt.Errorf("%d puts, %d gets, %d requests and %d replies before, %d, %d, %d and %d after", before.Puts, before.Gets, before.Sent[0], before.Sent[1], s.Puts, s.Gets, s.Sent[0], s.Sent[1])
					}
				}
				// The last word of a result travels by itself.
				n.Must(n.Wait(func() bool {
					l := n.big()
					l.mu.Lock()
					defer l.mu.Unlock()
					return len(l.asked)+len(l.rooms)+len(l.given)+len(l.held)+len(l.comes) == 0
				}))
				var s segment.ATUStats
				atu := Must(n.ep.ATU())
				if atu.Stats(&s); s.Regions != 0 {
					return fmt.Errorf("%d registrations are left", s.Regions)
				}
				return n.Barrier()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCallOvertakesPieces: a call that comes before some of its argument runs once, with all of it.
func TestCallOvertakesPieces(t *testing.T) {
	cfg := small(2)
	cfg.Conduit = "calls-mixed"
	if err := Run(cfg, func(n *Node) error {
		if !n.Neighbour(1 - n.Rank()) {
			return errors.New("values do not travel in pieces")
		}
		for i := range 100 {
			a := parts{Rows: [][]uint16{make([]uint16, leastApart), make([]uint16, 2*leastApart)}}
			for _, row := range a.Rows {
				row[0], row[len(row)-1] = uint16(i), uint16(i)
			}
			got, err := callParts.Call(n, 1-n.Rank(), a)
			if err != nil || !slices.EqualFunc(got.Rows, a.Rows, slices.Equal) {
				return fmt.Errorf("call %d: another value came back: %w", i, err)
			}
		}
		return n.Barrier()
	}); err != nil {
		t.Error(err)
	}
}

// parts is a value of which many parts are large, more than travel by themselves.
type parts struct {
	Name string
	Rows [][]uint16
	None []uint64
}

var (
	callParts = RegisterCall("test.parts", func(_ *Node, a parts) parts { return a })
	taskParts = RegisterTask("test.taskParts", func(_ *Call, a parts) (parts, error) { return a, nil })
)

// TestRankDiesAmidLargeCalls: a rank dies while large arguments and results are on their way
// to and from it. Its callers hear of it.
func TestRankDiesAmidLargeCalls(t *testing.T) {
	for _, conduit := range []string{"calls-killed", "calls-killed-near"} {
		for _, size := range []int{30000, 200000} {
			rankDiesAmidLargeCalls(t, conduit, size)
		}
	}
}

func rankDiesAmidLargeCalls(t *testing.T, conduit string, size int) {
	cfg := small(3)
	cfg.Conduit = conduit
	var heard, calls atomic.Int32
	var others [3]error
	err := Run(cfg, func(n *Node) (err error) {
		defer func() { others[n.Rank()] = err }()
		if n.Rank() == 1 {
			return n.Wait(func() bool { return false })
		}
		for i := 0; ; i++ {
			f := callLetter
			if i%2 == 0 {
				f = taskLetter
			}
			l := letterOf(i, size)
			got, err := f.Call(n, 1, l)
			if err == nil && !got.equal(letterOf(i, size).answer()) {
				return errors.New("another letter")
			}
			if err != nil {
				if errors.Is(err, ErrPeer) {
					heard.Add(1)
				}
				return err
			}
			calls.Add(1)
		}
	})
	if !errors.Is(err, ErrPeer) || heard.Load() != 2 || calls.Load() == 0 {
		t.Errorf("%s, %d bytes: after %d calls %d callers heard of it: %v; %v", conduit, size, calls.Load(), heard.Load(), err, others)
	}
}

// TestCallsOnConduits has values, errors and tasks travel on every kind of conduit.
func TestCallsOnConduits(t *testing.T) {
	for _, conduit := range testjob.Concurrent("udp", "hybrid", "sim", "calls-sim", "hidden") {
		for _, progress := range []bool{false, true} {
			cfg := small(3)
			cfg.Conduit, cfg.Progress = conduit, progress
			if err := Run(cfg, func(n *Node) error {
				return errors.Join(exchangeLetters(n), tasksEverywhere(n))
			}); err != nil {
				t.Errorf("%s, progress %v: %v", conduit, progress, err)
			}
		}
	}
}
