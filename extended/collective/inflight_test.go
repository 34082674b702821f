package collective

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"pgregory.net/rapid"
)

// begunStep is a call of a random program with several under way.
type begunStep struct {
	step
	of     int  // which team makes it
	nb     bool // it does not wait
	barred bool // a barrier is begun before it
	waits  int  // so many of those under way are waited for behind it
}

// beginAll makes the calls of steps, of three teams that overlap.
func beginAll(m *member, steps []begunStep, skew []int) error {
	half, err := m.Split(m.rank%2, -m.rank)
	if err != nil {
		return err
	}
	most, err := m.Split(min(1, m.rank)-1, 0) // all but rank 0; negative for rank 0
	if err != nil {
		return err
	}
	if m.rank > 0 {
		if most, err = m.keep(most); err != nil {
			return err
		}
	}
	teams := []*Member{m.Member, half, most}
	var under []func() error
	take := func(k int) error {
		k %= len(under)
		wait := under[k]
		under = append(under[:k:k], under[k+1:]...)
		return wait()
	}
	for i, s := range steps {
		c := teams[s.of]
		if c == nil {
			continue
		}
		for range skew[(m.rank+i)%len(skew)] {
			m.e.Poll()
			runtime.Gosched()
		}
		s.root %= c.size
		if s.barred {
			h, err := c.BarrierNB()
			if err != nil {
				return err
			}
			under = append(under, h.Wait)
		}
		wait := s.begin(c, i%2 == 0, s.nb)
		if s.nb {
			under = append(under, wait)
		} else if err := wait(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		for k := 0; k < s.waits && len(under) > 0; k++ {
			if err := take(int(s.seed>>8) + m.rank*k); err != nil {
				return fmt.Errorf("behind step %d: %w", i, err)
			}
		}
	}
	for len(under) > 0 {
		if err := take(m.rank*7 + len(under)/2); err != nil {
			return err
		}
	}
	return half.Close()
}

// keep is c, which was made by a Split.
func (m *member) keep(c *Member) (*Member, error) {
	if c == nil {
		return nil, errors.New("no team")
	}
	return c, nil
}

// TestInFlight has several calls of several teams under way, beside calls that wait, and
// compares with their definitions.
func TestInFlight(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7, 8}).Draw(t, "ranks")
				steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) begunStep {
					return begunStep{
						step: step{
							kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"),
							root: rapid.IntRange(0, size-1).Draw(t, "root"),
							seed: rapid.Uint64().Draw(t, "seed"),
							n:    rapid.SampledFrom([]int{0, 2, 8, 36, 1030, 9000, 20002}).Draw(t, "bytes"),
						},
						of:     rapid.IntRange(0, 2).Draw(t, "team"),
						nb:     rapid.IntRange(0, 4).Draw(t, "waits") > 0,
						barred: rapid.IntRange(0, 4).Draw(t, "barrier") == 0,
						waits:  rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "takes"),
					}
				}), 1, 14).Draw(t, "steps")
				skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 3, 50}), size, size).Draw(t, "skew")
				must(t, network, size, func(m *member) error { return beginAll(m, steps, skew) })
			})
		})
	}
}

// TestInFlightOnHybrid begins all kinds of calls where there are two neighbourhoods.
func TestInFlightOnHybrid(t *testing.T) {
	var steps []begunStep
	for i, k := range stepKinds {
		steps = append(steps, begunStep{step: step{kind: k, root: i, n: []int{0, 36, 4000}[i%3], seed: uint64(i)}, of: i % 3, nb: true})
	}
	must(t, "hybrid", 7, func(m *member) error { return beginAll(m, steps, make([]int, 7)) })
}

// TestManyInFlight begins very many calls, and waits for them backwards on one rank.
func TestManyInFlight(t *testing.T) {
	const rounds = 300
	must(t, "shm", 3, func(m *member) error {
		accs := make([][]byte, rounds)
		hs := make([]Handle, rounds)
		for i := range hs {
			accs[i] = []byte{byte(i), byte(m.rank)}
			var err error
			if hs[i], err = m.AllReduceNB(accs[i], sum); err != nil {
				return err
			}
		}
		for i := range hs {
			k := i
			if m.rank == 1 {
				k = rounds - 1 - i
			}
			if err := hs[k].Wait(); err != nil {
				return err
			}
			if accs[k][0] != byte(3*k) || accs[k][1] != 3 {
				return fmt.Errorf("call %d: %d", k, accs[k])
			}
		}
		if n := len(m.flight.ops); n > 0 {
			return fmt.Errorf("%d calls are kept", n)
		}
		return nil
	})
}

// TestInFlightProgress: a call goes on while its rank waits for something else.
func TestInFlightProgress(t *testing.T) {
	for _, network := range networks {
		must(t, network, 3, func(m *member) error {
			acc := []byte{1}
			h, err := m.AllReduceNB(acc, sum)
			if err != nil {
				return err
			}
			if m.rank == 1 {
				if err := h.Wait(); err != nil {
					return err
				}
			}
			if err := m.meet(); err != nil { // which rank 1 enters when the others have done their parts
				return err
			}
			if m.rank != 1 {
				err = h.Wait()
			}
			if err != nil || acc[0] != 3 {
				return fmt.Errorf("%d: %w", acc[0], err)
			}
			return nil
		})
	}
}

// TestNotify: what is to be called is called once, when the call is done or after that.
func TestNotify(t *testing.T) {
	must(t, "sim", 2, func(m *member) error {
		for _, late := range []bool{false, true} {
			acc, told := []byte{1}, 0
			h, err := m.AllReduceNB(acc, sum)
			if err != nil {
				return err
			}
			if late {
				if err := m.e.Wait(h, h.Ready); err != nil {
					return err
				}
			}
			h.Notify(func(err error) {
				if told++; err != nil || acc[0] != 2 {
					told = -100
				}
			})
			if err := h.Wait(); err != nil || told != 1 {
				return fmt.Errorf("told %d times: %w", told, err)
			}
		}
		return nil
	})
}

// TestHandleTwice: a result is taken once.
func TestHandleTwice(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		h, err := m.BarrierNB()
		if err != nil {
			return err
		}
		for done := false; !done; {
			if done, err = h.Try(); err != nil {
				return err
			}
		}
		_, again := h.Try()
		for _, err := range []error{h.Wait(), again, (Handle{}).Wait()} {
			if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "taken before") {
				return fmt.Errorf("taken twice: %w", err)
			}
		}
		if !h.Ready() || h.Blocked() == "" || h.Lacking() != -1 {
			return errors.New("a Handle that was taken is not ready")
		}
		return nil
	})
}

// TestInFlightMismatch: whatever differs is said, and ends all that is under way of the
// team, on all ranks, and no other team.
func TestInFlightMismatch(t *testing.T) {
	b := func(n int) []byte { return make([]byte, n) }
	begin := map[string]func(c *Member) (Handle, error){
		"AllReduceNB of 8 bytes":             func(c *Member) (Handle, error) { return c.AllReduceNB(b(8), sum) },
		"AllReduceNB of 16 bytes":            func(c *Member) (Handle, error) { return c.AllReduceNB(b(16), sum) },
		"BroadcastNB from rank 0 of 8 bytes": func(c *Member) (Handle, error) { return c.BroadcastNB(0, b(8)) },
		"BroadcastNB from rank 1 of 8 bytes": func(c *Member) (Handle, error) { return c.BroadcastNB(1, b(8)) },
		"Barrier":                            func(c *Member) (Handle, error) { return c.BarrierNB() },
		"AllGatherVNB, in units of 2 bytes":  func(c *Member) (Handle, error) { return c.AllGatherVNB(2, b(8)) },
		"AllReduce of 8 bytes":               func(c *Member) (Handle, error) { return Handle{}, c.AllReduce(b(8), sum) },
		"a collective with bad arguments":    func(c *Member) (Handle, error) { return c.BroadcastNB(9, nil) },
		"the end of the program":             nil,
	}
	for _, network := range testjob.Concurrent("shm", "sim") {
		for one, beginOne := range begin {
			for two, beginTwo := range begin {
				if one == two || beginOne == nil {
					continue
				}
				for odd := range 3 {
					must(t, network, 4, func(m *member) error {
						c, err := m.Split(m.rank/3, 0) // rank 3 is not in it
						if err != nil {
							return err
						}
						if m.rank == 3 {
							return m.Leave([]byte{1}, sum, nil)
						}
						hs := make([]Handle, 4)
						for i := range hs {
							mine := begin["AllReduceNB of 8 bytes"]
							if i == 1 {
								if mine = beginOne; m.rank == odd {
									mine = beginTwo
								}
							}
							if mine == nil {
								return m.Leave([]byte{1}, sum, nil)
							}
							var failed error
							hs[i], failed = mine(c)
							err = errors.Join(err, failed)
						}
						for _, h := range hs {
							if h != (Handle{}) {
								err = errors.Join(err, h.Wait())
							}
						}
						if !strings.Contains(fmt.Sprint(err), "do not match") { // it needed nothing of the others so far
							err = c.AllReduce(b(8), sum)
						}
						says := fmt.Sprint(err)
						if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(says, "calls of team 1 do not match: call ") {
							return fmt.Errorf("%s, and %s on rank %d: rank %d gets %w", one, two, odd, m.rank, err)
						}
						if strings.Contains(says, "call 2 is") && !(strings.Contains(says, one) && strings.Contains(says, two)) {
							return fmt.Errorf("%s, and %s on rank %d: %w", one, two, odd, err)
						}
						return m.Leave([]byte{1}, sum, nil)
					})
				}
			}
		}
	}
}

// TestInFlightFailure: a rank that fails or leaves ends all that waits for it.
func TestInFlightFailure(t *testing.T) {
	for _, network := range networks {
		for _, how := range []error{errTest, errLeft} {
			all := run(t, network, 5, func(m *member) error {
				if err := m.AllReduce(make([]byte, 8), sum); err != nil { // all are here
					return err
				}
				var hs []Handle
				for i := range 3 {
					if m.rank == 4 && i == 2 {
						if how == errLeft {
							m.e.Conduit().Close()
						}
						return how
					}
					h, err := m.AllReduceNB(make([]byte, 8<<i), sum)
					if err != nil {
						return err
					}
					hs = append(hs, h)
				}
				var err error
				for i := range hs {
					err = errors.Join(err, hs[len(hs)-1-i].Wait())
				}
				return err
			})
			for r, err := range all[:4] {
				if p := new(errs.PeerError); !errors.As(err, &p) || !strings.HasPrefix(p.Op, "collective call ") || p.Rank != 4 {
					t.Errorf("%s: rank %d gets %v", network, r, err)
				}
			}
		}
	}
}

// TestCloseInFlight: a team is not closed under its calls.
func TestCloseInFlight(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		c, err := m.Split(0, 0)
		if err != nil {
			return err
		}
		if m.rank > 0 {
			if _, err := c.AllReduceNB(make([]byte, 8), sum); err != nil {
				return err
			}
			if err := c.Close(); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "1 calls of team 1 that were begun are not done") {
				return fmt.Errorf("rank %d: %w", m.rank, err)
			}
		}
		if err := m.meet(); err != nil {
			return err
		}
		if m.rank == 0 { // others wait for this one, which is told
			if h, err := c.AllReduceNB(make([]byte, 8), sum); err != nil || h.Wait() != nil {
				return nil
			}
			if err := c.Close(); !errors.Is(err, errs.ErrBadArg) {
				return fmt.Errorf("rank 0: %w", err)
			}
		}
		return nil
	})
}

// TestInFlightAllocs: a call that was begun and waited for leaves nothing to be collected.
func TestInFlightAllocs(t *testing.T) {
	if conc.Race {
		t.Skip("pools lose what they keep under the race detector")
	}
	must(t, "shm", 2, func(m *member) error {
		acc := make([]byte, 8)
		one := func() error {
			h, err := m.AllReduceNB(acc, sum)
			if err != nil {
				return err
			}
			return h.Wait()
		}
		for range 10 {
			if err := one(); err != nil {
				return err
			}
		}
		var failed error
		n := testing.AllocsPerRun(200, func() { failed = errors.Join(failed, one()) })
		if n > 0 && m.rank == 0 {
			return fmt.Errorf("%v allocations of both ranks: %w", n, failed)
		}
		return failed
	})
}

// TestInFlightMessages: a call that does not wait takes as many messages as the call that does.
func TestInFlightMessages(t *testing.T) {
	testjob.Simulated(t)
	for _, size := range []int{2, 5, 8} {
		for _, k := range stepKinds {
			for _, n := range []int{8, 9000} {
				var sent [2]atomic.Uint64
				must(t, "sim", size, func(m *member) error {
					m.byLinks()
					for i := range sent {
						var before, after conduits.Stats
						if err := m.meet(); err != nil {
							return err
						}
						m.e.Conduit().Stats(&before)
						if err := (step{kind: k, root: size - 1, n: n, seed: 3}).begin(m.Member, false, i == 1)(); err != nil {
							return err
						}
						m.e.Conduit().Stats(&after)
						sent[i].Add(after.Sent[conduits.Request] - before.Sent[conduits.Request])
					}
					return nil
				})
				// A sender whose receiver is not ready yet says so by a message more, which
				// depends on which of them comes first; few are, of the order of the ranks.
				if a, b := int(sent[0].Load()), int(sent[1].Load()); b > a+size || a > b+size {
					t.Errorf("%s of %d bytes on %d ranks: %d messages, %d without waiting", kindNames[k], n, size, a, b)
				}
			}
		}
	}
}
