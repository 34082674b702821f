package collective

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// order is a Combine whose result depends on the order and the grouping.
func order(acc, in []byte) {
	for i := range acc {
		acc[i] = (acc[i]*3 ^ in[i]*7 + 1) * 5
	}
}

// ordered are the calls whose results depend on the order in which they combine, with what of
// those is defined on a rank.
var ordered = []struct {
	name string
	f    func(m *member, s step) ([]byte, error)
}{
	{"AllReduce", func(m *member, s step) ([]byte, error) {
		acc := s.block(m.rank, 0)
		return acc, m.AllReduce(acc, order)
	}},
	{"Reduce", func(m *member, s step) ([]byte, error) {
		acc := s.block(m.rank, 0)
		err := m.Reduce(s.root, acc, order)
		if m.rank != s.root {
			acc = nil
		}
		return acc, err
	}},
	{"Scan", func(m *member, s step) ([]byte, error) {
		acc := s.block(m.rank, 0)
		return acc, m.Scan(acc, order)
	}},
	{"ExclusiveScan", func(m *member, s step) ([]byte, error) {
		acc, before := s.block(m.rank, 0), make([]byte, s.n)
		err := m.ExclusiveScan(acc, before, order)
		return append(acc, before...), err
	}},
	{"ReduceScatter", func(m *member, s step) ([]byte, error) {
		own := make([]byte, s.n/m.size)
		return own, m.ReduceScatter(s.block(m.rank, 0)[:len(own)*m.size], own, order)
	}},
}

// TestShared compares calls by shared memory with those by messages, of all lengths
// that take the former and some that do not, where any rank may be ahead.
func TestShared(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 9, 15, 16, 17, 66} {
		if conc.Race && n > 17 {
			continue // ten seconds
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var entered atomic.Int64
			must(t, "shm", n, func(m *member) error {
				if (m.shared != nil) != (n > 1) {
					return errors.New("the ranks do not share memory")
				}
				shared, skew := m.shared, rand.New(rand.NewPCG(uint64(n), uint64(m.rank)))
				for k := range sharedBytes + 4 {
					call := ordered[k%len(ordered)]
					if n > fanIn {
						call = ordered[0]
					}
					s := step{n: k, root: k % n, seed: uint64(k)}
					m.shared = nil
					want, err := call.f(m, s)
					m.shared = shared
					if err != nil {
						return err
					}
					for range skew.IntN(3) {
						runtime.Gosched()
					}
					before := uint32(0)
					if n > 1 {
						before = shared.lines.phase
					}
					for range 3 { // more than parities
						got, err := call.f(m, s)
						if err != nil {
							return err
						}
						if !bytes.Equal(got, want) {
							return fmt.Errorf("%s of %d bytes: %x, by messages %x", call.name, s.n, got, want)
						}
					}
					if n > 2 && k <= sharedBytes && shared.lines.phase != before+3 {
						return fmt.Errorf("%s of %d bytes did not go by shared memory", call.name, s.n)
					}
				}
				if m.size > 1 && shared.lines.phase == 0 {
					return errors.New("nothing went by shared memory")
				}
				return barriers(m, &entered, skew)
			})
		})
	}
}

// TestSharedAndAhead has ranks in AllReduces of shared memory by turns with calls that some
// ranks finish alone, so that ranks are as far apart as they can be.
func TestSharedAndAhead(t *testing.T) {
	const calls = 300
	for _, n := range []int{2, 5, 10, 16} {
		must(t, "shm", n, func(m *member) error {
			rnd := rand.New(rand.NewPCG(7, 7)) // the same on all ranks
			for k := range calls {
				switch rnd.IntN(4) {
				case 0:
					if err := m.Reduce(rnd.IntN(n), []byte{1, 2}, sum); err != nil {
						return err
					}
					continue
				case 1:
					root := rnd.IntN(n)
					b := []byte{byte(k), byte(root)}
					if m.rank != root {
						b = make([]byte, 2)
					}
					if err := m.Broadcast(root, b); err != nil {
						return err
					}
					if b[0] != byte(k) || b[1] != byte(root) {
						return fmt.Errorf("call %d: %d of rank %d, want %d of rank %d", k, b[0], b[1], byte(k), root)
					}
					continue
				}
				acc := []byte{byte(m.rank + k), 1, 0, 0, 0, 0, 0, 0, 1}[:9-rnd.IntN(2)]
				if err := m.AllReduce(acc, sum); err != nil {
					return err
				}
				if want := byte(n*k + n*(n-1)/2); acc[0] != want || acc[1] != byte(n) {
					return fmt.Errorf("call %d: %d, want %d, of %d ranks", k, acc[0], want, acc[1])
				}
			}
			return nil
		})
	}
}

// TestSharedSlots holds all levels of the largest job against the room in a system area.
func TestSharedSlots(t *testing.T) {
	level := 0
	for span := 1; span < shm.MaxRanks; span *= fanIn {
		level++
	}
	if end := levelOff + 2*level*lineBytes; end > conduits.SystemBytes {
		t.Errorf("%d levels end at byte %d of %d", level, end, conduits.SystemBytes)
	}
}

// barriers has a rank make some barriers, none of which ends before all ranks have entered it.
func barriers(m *member, entered *atomic.Int64, skew *rand.Rand) error {
	for k := range int64(20) {
		entered.Add(1)
		for range skew.IntN(3) {
			runtime.Gosched()
		}
		if err := m.Barrier(); err != nil {
			return err
		}
		if n, want := entered.Load(), (k+1)*int64(m.size); n < want {
			return fmt.Errorf("barrier %d ended when ranks had entered %d times, not %d", k, n, want)
		}
	}
	return nil
}

// TestBarrier makes barriers on all networks, where ranks may be ahead of each other.
func TestBarrier(t *testing.T) {
	for _, network := range networks {
		for _, n := range []int{1, 2, 5} {
			var entered atomic.Int64
			must(t, network, n, func(m *member) error {
				return barriers(m, &entered, rand.New(rand.NewPCG(uint64(n), uint64(m.rank))))
			})
		}
	}
}

// TestSharedMismatch has one of many ranks make another call, in slots that both calls share.
func TestSharedMismatch(t *testing.T) {
	const n = 12
	scan := func(m *member) error { return m.Scan(make([]byte, 8), sum) }
	all := func(m *member) error { return m.AllReduce(make([]byte, 8), sum) }
	barrier := func(m *member) error { return m.Barrier() }
	from := func(root int) func(*member) error {
		return func(m *member) error { return m.Broadcast(root, make([]byte, 8)) }
	}
	for i, calls := range [][2]func(*member) error{{scan, all}, {all, scan}, {from(3), from(11)}, {all, from(9)}, {barrier, all}} {
		for odd := range n {
			for r, err := range run(t, "shm", n, func(m *member) error {
				if err := scan(m); err != nil { // which rank 0 finishes alone
					return err
				}
				call := calls[0]
				if m.rank == odd {
					call = calls[1]
				}
				if err := call(m); err != nil {
					return err
				}
				return m.Leave(make([]byte, 8), sum, nil)
			}) {
				// A rank may first see that another has ended by this error, which it then names.
				if err == nil || !strings.Contains(err.Error(), "calls do not match: call 2 is ") {
					t.Errorf("pair %d, rank %d makes the other call, rank %d: %v", i, odd, r, err)
				}
			}
		}
	}
}

// TestSharedLast has ranks make calls that do not match, none of which waits for any, as
// the last ones: the end of the program finds it.
func TestSharedLast(t *testing.T) {
	for _, n := range []int{4, 40} { // by one channel and by two
		for k, err := range run(t, "shm", 2, func(m *member) error {
			var err error
			if m.rank == 0 {
				err = m.Reduce(1, make([]byte, 4), sum)
			} else {
				err = m.Broadcast(1, make([]byte, n))
			}
			if err != nil {
				return err
			}
			return m.Leave(make([]byte, 8), sum, nil)
		}) {
			if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "call 1 is ") {
				t.Errorf("rank %d, %d bytes: %v", k, n, err)
			}
		}
	}
}

// TestSharedForgotten has ranks that do not match go on, by calls that do, until the call that
// does not is forgotten. Then each waits for what the other has not written.
func TestSharedForgotten(t *testing.T) {
	for k, err := range run(t, "shm", 2, func(m *member) error {
		if m.rank == 0 {
			if err := m.Reduce(1, make([]byte, 8), sum); err != nil {
				return err
			}
		} else if err := m.Broadcast(-1, nil); !errors.Is(err, errs.ErrBadArg) {
			return errors.New("a broadcast from rank -1")
		}
		for range historyLen + 4 {
			if _, err := m.GatherV(0, 1, nil); err != nil { // by messages
				return err
			}
		}
		if err := m.Broadcast(1, make([]byte, sharedBytes)); err != nil {
			return err
		}
		return m.AllReduce(make([]byte, 8), sum)
	}) {
		if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "call 1 is ") || !strings.Contains(err.Error(), "over already") {
			t.Errorf("rank %d: %v", k, err)
		}
	}
}

// TestSharedAsleep has the root of a call sleep in it when another rank makes another call,
// which waits for none, and all others have waited for nothing either.
func TestSharedAsleep(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		for name, wrong := range map[string]func(m *member) error{
			"length":  func(m *member) error { return m.Reduce(0, make([]byte, 16), sum) },
			"root":    func(m *member) error { return m.Gather(1, make([]byte, 8), make([]byte, 8*n)) },
			"refused": func(m *member) error { _ = m.Broadcast(-1, nil); return nil },
		} {
			if name == "root" && n == 2 {
				continue // which waits
			}
			t.Run(fmt.Sprint(n, " ", name), func(t *testing.T) {
				asleep := run(t, "shm", n, func(m *member) error {
					if m.rank == 0 {
						return m.Reduce(0, make([]byte, 8), sum)
					}
					if err := m.awaitNote(); err != nil {
						return err
					}
					if m.rank == n-1 {
						return wrong(m)
					}
					return m.Reduce(0, make([]byte, 8), sum)
				})[0]
				if !errors.Is(asleep, errs.ErrBadArg) || !strings.Contains(asleep.Error(), "call 1 is ") {
					t.Errorf("rank 0: %v", asleep)
				}
			})
		}
	}
}

// TestSharedPolls has a rank handle messages in calls to which it always comes last.
func TestSharedPolls(t *testing.T) {
	const later = 1000
	must(t, "shm", 2, func(m *member) error {
		if m.rank == 0 {
			if err := m.tell(1, handlerOffer, direct<<8, m.seq+later, call{}); err != nil {
				return err
			}
		}
		for range 2 * pollEvery {
			theirs := m.shared.pair.levels[0][(m.shared.pair.phase+1)&1].slots[0]
			for seq := m.seq + 1; m.rank == 1; runtime.Gosched() {
				if is, _ := callOf(theirs[0].Load()); is == seq {
					break
				}
			}
			if err := m.AllReduce(make([]byte, 8), sum); err != nil {
				return err
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.rank == 1 && !slices.ContainsFunc(m.links, func(l *link) bool { return l.offered.seq >= later }) {
			return fmt.Errorf("no message was handled in %d calls", 2*pollEvery)
		}
		return nil
	})
}
