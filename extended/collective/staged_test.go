package collective

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// staged are calls that go by staging if they do not fit a slot, with elements of so many bytes, and what of their
// results is defined on a rank. Their Combine is order, which works on bytes.
var staged = []struct {
	name string
	f    func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error)
}{
	{"AllReduce", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		return acc, m.Do(inElements(AllReduce(acc), elem), order)
	}},
	{"Reduce", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		err := m.Do(inElements(Reduce(s.root, acc), elem), order)
		if m.rank != s.root {
			acc = nil
		}
		return acc, err
	}},
	{"ReduceScatter", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		copy(all, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		if s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		return own, m.Do(inElements(ReduceScatter(all, own), elem), order)
	}},
	{"Scan", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		return acc, m.Do(inElements(Scan(acc), elem), order)
	}},
	{"ExclusiveScan", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc, before := at(s.n), at(s.n)
		copy(acc, s.block(m.rank, 0))
		err := m.Do(inElements(ExclusiveScan(acc, before), elem), order)
		return append(bytes.Clone(acc), before...), err
	}},
	{"Broadcast", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		buf := at(s.n)
		copy(buf, s.block(m.rank, 0))
		return buf, m.Do(Broadcast(s.root, buf), nil)
	}},
	{"Gather", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		if m.rank == s.root && s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		copy(own, s.block(m.rank, 0))
		err := m.Do(Gather(s.root, own, all), nil)
		if m.rank != s.root {
			all = nil
		}
		return all, err
	}},
	{"AllGather", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		if s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		copy(own, s.block(m.rank, 0))
		return all, m.Do(AllGather(own, all), nil)
	}},
	{"Scatter", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		copy(all, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		return own, m.Do(Scatter(s.root, all, own), nil)
	}},
	{"Exchange", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		out, in := at(s.n*m.size), at(s.n*m.size)
		copy(out, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		return in, m.Do(Exchange(out, in), nil)
	}},
}

// inElements is a in elements of elem bytes, if that is not 0.
func inElements(a *Call, elem int) *Call {
	if elem == 0 {
		return a
	}
	return a.InElements(elem)
}

// TestStaged compares calls by staging with those by messages, of lengths around a word, a line, what is combined at once and a
// half of the staging, of buffers that begin at any byte, where any rank may be ahead.
func TestStaged(t *testing.T) {
	sizes := []int{sharedBytes + 1, 64, 1000, foldWhole, 3*foldAtOnce + 8, 80_000, 270_000}
	for _, n := range []int{2, 3, 5, 8, 13, 20} {
		if conc.Race && n > 3 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			must(t, "shm", n, func(m *member) error {
				shared, skew := m.shared, rand.New(rand.NewPCG(uint64(n), uint64(m.rank)))
				for k, size := range sizes {
					if (n > 5 || conc.Race) && size > 100_000 {
						continue
					}
					for j, call := range staged {
						size, elem := size, []int{0, 1, 8, 24}[(k+j)%4]
						if elem > 1 {
							size += elem - size%elem
						}
						s := step{n: size, root: (k + j) % n, seed: uint64(k)}
						at := func(n int) []byte { return make([]byte, n+8)[(k+m.rank)%8:][:n] }
						m.shared = nil
						want, err := call.f(m, s, elem, at)
						m.shared = shared
						if err != nil {
							return err
						}
						for range skew.IntN(3) {
							runtime.Gosched()
						}
						before := uint32(0)
						if shared.staging != nil {
							before = shared.staging.phase
						}
						for range 3 { // more than parities
							got, err := call.f(m, s, elem, at)
							if err != nil {
								return err
							}
							if !bytes.Equal(got, want) {
								return fmt.Errorf("%s of %d bytes in elements of %d: not what it is by messages", call.name, size, elem)
							}
						}
						if fits := n <= fanIn && (elem > 0 || size*n < 100_000); fits && (shared.staging == nil || shared.staging.phase == before) {
							return fmt.Errorf("%s of %d bytes in elements of %d did not go by staging", call.name, size, elem)
						}
					}
				}
				return nil
			})
		})
	}
}

// TestStagedBlocks compares calls of blocks whose lengths differ by staging with those by messages, of lengths from none to more than a half of the
// staging has room for, where any rank may be ahead, and counts the rounds of short ones.
func TestStagedBlocks(t *testing.T) {
	for _, n := range []int{2, 3, 5, 13} {
		must(t, "shm", n, func(m *member) error {
			shared, skew := m.shared, rand.New(rand.NewPCG(uint64(n), uint64(m.rank)))
			for k, most := range []int{0, 1, 40, 5000, 300_000} {
				if n*most > 1_000_000 {
					continue
				}
				// Block of rank r for rank q.
				block := func(r, q int) []byte {
					rnd := rand.New(rand.NewPCG(uint64(k), uint64(r*n+q)))
					b := make([]byte, []int{most, most / 3, 0, min(most, 1)}[(r+2*q)%4])
					for i := range b {
						b[i] = byte(rnd.Uint32())
					}
					return b
				}
				for _, call := range []func() *Call{
					func() *Call { return AllGatherV(1, block(m.rank, n)) },
					func() *Call { return ExchangeV(1, listOf(n, func(q int) []byte { return block(m.rank, q) })) },
				} {
					m.shared = nil
					want, err := m.DoBlocks(call())
					m.shared = shared
					if err != nil {
						return err
					}
					for range 3 { // more than parities
						for range skew.IntN(3) {
							runtime.Gosched()
						}
						before := shared.rounds()
						got, err := m.DoBlocks(call())
						if err != nil {
							return err
						}
						if !slices.EqualFunc(got, want, bytes.Equal) {
							return fmt.Errorf("blocks of up to %d bytes: not what they are by messages", most)
						}
						if rounds := shared.rounds() - before; rounds == 0 || most <= 5000 && rounds > 1 {
							return fmt.Errorf("blocks of up to %d bytes took %d rounds", most, rounds)
						}
					}
				}
			}
			return nil
		})
	}
}

// listOf is one block for each rank.
func listOf(n int, of func(r int) []byte) (all [][]byte) {
	for r := range n {
		all = append(all, of(r))
	}
	return all
}

// TestTeamPlaces has ranks in more teams at once than have places in shared memory, twice. All teams make calls that would go by slots
// and by staging, of which those without a place send messages.
func TestTeamPlaces(t *testing.T) {
	must(t, "shm", 5, func(m *member) error {
		for range 2 {
			var teams []*Member
			for k := range teamPlaces + 2 {
				team, err := m.Split(m.rank%(1+k%2), -m.rank) // of all, or of odd and even ranks
				if err != nil {
					return err
				}
				if has := team.shared != nil && !team.shared.mailed; has != (k < teamPlaces) {
					return fmt.Errorf("team %d of %d ranks has a place: %v", k, team.size, has)
				}
				teams = append(teams, team)
			}
			for _, size := range []int{8, 1000, 70_000} {
				for k, team := range teams {
					acc := bytes.Repeat([]byte{byte(m.rank + 1)}, size)
					if err := team.AllReduceElements(1, acc, sum); err != nil {
						return err
					}
					want := byte(0)
					for r := range team.size {
						want += byte(team.Global(r) + 1)
					}
					if !bytes.Equal(acc, bytes.Repeat([]byte{want}, size)) {
						return fmt.Errorf("team %d: sum of %d bytes is %d..., not %d", k, size, acc[0], want)
					}
					root := k % team.size
					if err := team.Broadcast(root, acc); err != nil {
						return err
					}
				}
			}
			for _, team := range teams {
				if err := team.Close(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestPlaceOfAnother has a team whose calls have low numbers take places of which some ranks had another team before, with higher ones.
func TestPlaceOfAnother(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		few, err := m.Split(m.rank-1, 0) // not of rank 0, whose next place is another than that of the others
		if err != nil {
			return err
		}
		calls := func(c *Member, n int) error {
			for k := range n {
				if err := c.AllReduce(make([]byte, 8+k%2*1000), sum); err != nil {
					return err
				}
			}
			return nil
		}
		all, err := m.Split(0, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(calls(all, 100), all.Close()); err != nil {
			return err
		}
		if few != nil {
			if err := few.Close(); err != nil {
				return err
			}
		}
		if all, err = m.Split(0, 0); err != nil {
			return err
		}
		return calls(all, 4)
	})
}

// TestTeamLast has ranks of a team make calls that do not match, none of which waits for any, as
// the last ones: Close finds it, and the job's calls go on.
func TestTeamLast(t *testing.T) {
	for _, n := range []int{4, 40, 4000} { // of the other call, which has 4 bytes
		must(t, "shm", 3, func(m *member) error {
			team, err := m.Split(m.rank/2, 0)
			if err != nil {
				return err
			}
			if m.rank == 0 {
				err = team.Reduce(1, make([]byte, 4), sum)
			} else {
				err = team.Broadcast(team.size-1, make([]byte, n))
			}
			if err == nil {
				err = team.Close()
			}
			if m.rank == 2 { // alone in its team
				return errors.Join(err, m.AllReduce(make([]byte, 8), sum))
			}
			if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "Reduce to rank 1 of 4 bytes on rank 0") ||
				!strings.Contains(err.Error(), fmt.Sprintf("Broadcast from rank 1 of %d bytes on rank 1", n)) {
				return fmt.Errorf("%d bytes: %w", n, err)
			}
			return m.AllReduce(make([]byte, 8), sum)
		})
	}
}

// TestRounds counts the rounds of calls of four ranks, in slots and in staging: each is one flag of each rank, which changes its owner once
// for each rank that waits for it. It fails when an algorithm gets longer; no rank needs a message for its data.
func TestRounds(t *testing.T) {
	if conc.Race {
		t.Skip("TestStaged makes these calls, too")
	}
	want := map[string][4]uint32{ // of 8 and 1000 bytes, 64 KiB and 1 MiB
		"AllReduce": {1, 1, 2, 10}, "Reduce": {1, 1, 2, 10}, "ReduceScatter": {1, 1, 2, 17}, "Scan": {1, 1, 4, 64}, "ExclusiveScan": {1, 1, 4, 64},
		"Broadcast": {1, 1, 4, 5}, "Gather": {1, 1, 1, 5}, "AllGather": {1, 1, 1, 5}, "Scatter": {1, 1, 1, 13}, "Exchange": {1, 1, 1, 13},
	}
	must(t, "shm", 4, func(m *member) error {
		at := func(n int) []byte { return make([]byte, n) }
		for _, call := range staged {
			var got [4]uint32
			for k, size := range []int{8, 1000, 64 << 10, 1 << 20} {
				before := m.shared.rounds()
				if _, err := call.f(m, step{n: size}, 8, at); err != nil {
					return err
				}
				got[k] = m.shared.rounds() - before
			}
			if got != want[call.name] {
				t.Errorf("%s of 8 and 1000 bytes, 64 KiB and 1 MiB takes %d rounds, not %d", call.name, got, want[call.name])
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, l := range m.links {
			if l.land.state >= landBegun {
				return errors.New("data came by a message")
			}
		}
		return nil
	})
}

// rounds is how many phases of slots and of staging there were.
func (s *shared) rounds() uint32 {
	n := s.lines.phase
	if s.staging != nil {
		n += s.staging.phase
	}
	return n
}

// TestElements has ranks cut equal bytes into elements of different sizes: in slots, in staging, for which one of them has not the room, and in
// calls by messages, of which one is made and one begun. Each rank gets an error that names both.
func TestElements(t *testing.T) {
	const n, odd = 3, 1
	ways := map[string]func(m *member, a *Call) error{
		"shared memory": func(m *member, a *Call) error { return m.Do(a, order) },
		"messages":      func(m *member, a *Call) error { m.shared = nil; return m.Do(a, order) },
		"no wait": func(m *member, a *Call) error {
			h, err := m.Begin(a, order)
			if err != nil {
				return err
			}
			return h.Wait()
		},
	}
	for _, x := range []struct{ size, elem, other int }{
		{48, 8, 16}, {48, 48, 4}, {64 << 10, 8, 4 << 10}, {64 << 10, 2 << 10, 4 << 10}, {64 << 10, 4 << 10, 64 << 10}, {1 << 20, 16 << 10, 8},
	} {
		for way, do := range ways {
			for k, call := range [...]func(m *member) *Call{
				func(*member) *Call { return AllReduce(make([]byte, x.size)) },
				func(*member) *Call { return Reduce(1, make([]byte, x.size)) },
				func(m *member) *Call { return ReduceScatter(make([]byte, n*x.size), make([]byte, x.size)) },
				func(*member) *Call { return Scan(make([]byte, x.size)) },
			} {
				if conc.Race && x.size > 64<<10 {
					continue
				}
				for r, err := range run(t, "shm", n, func(m *member) error {
					elem := x.elem
					if m.rank == odd {
						elem = x.other
					}
					if err := do(m, call(m).InElements(elem)); err != nil {
						return err
					}
					return m.Leave(make([]byte, 8), sum, nil)
				}) {
					text := func(elem int, ranks string) string {
						if elem == x.size {
							return ", in one element on rank " + ranks
						}
						return fmt.Sprintf(", in elements of %d on rank ", elem) + ranks
					}
					// A rank may first see that another has ended by this error, which it then names.
					if err == nil || !strings.Contains(err.Error(), text(x.elem, "")) || !strings.Contains(err.Error(), text(x.other, "1")) {
						t.Errorf("call %d of %d bytes by %s, in elements of %d and %d, rank %d: %v", k, x.size, way, x.elem, x.other, r, err)
					}
				}
			}
		}
	}
}

// TestLargeElements: elements of which no piece of eight fits beside those of all ranks are combined as whole blocks.
func TestLargeElements(t *testing.T) {
	const n, elem = 4, 8 << 10
	for _, count := range []int{1, 2, 7, 9} {
		must(t, "shm", n, func(m *member) error {
			all, own := make([]byte, n*count*elem), make([]byte, count*elem)
			for i := range all {
				all[i] = byte(i*7 + m.rank)
			}
			if err := m.Do(ReduceScatter(all, own).InElements(elem), sum); err != nil {
				return err
			}
			for i := range own {
				if want := byte((m.rank*len(own)+i)*7*n + n*(n-1)/2); own[i] != want {
					return fmt.Errorf("%d elements: byte %d is %d, not %d", count, i, own[i], want)
				}
			}
			return m.Leave(make([]byte, 8), sum, nil)
		})
	}
}
