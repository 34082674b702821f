package collective

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// splitStep makes teams of those made before, closes them, or makes a call of them all.
type splitStep struct {
	of      int   // number of an earlier step, or -1 for the job
	colours []int // by rank of the job
	keys    []int
	closes  bool // the teams of step of, and splits nothing
	call    step
}

// wantTeam is the members of the team that rank gets, of those of the team that is split.
func (s splitStep) wantTeam(rank int, of []int) []int {
	if s.colours[rank] < 0 {
		return nil
	}
	var ranks []int
	for _, r := range of {
		if s.colours[r] == s.colours[rank] {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return s.keys[a] - s.keys[b] })
	return ranks
}

// runTeams makes the steps, and calls of all teams after each.
func runTeams(m *member, steps []splitStep) error {
	type made struct {
		c     *Member
		ranks []int
	}
	all := make([]made, 0, len(steps))
	var whole []int
	for r := range m.size {
		whole = append(whole, r)
	}
	for i, s := range steps {
		of := made{m.Member, whole}
		if s.of >= 0 {
			of = all[s.of]
		}
		var t made
		switch {
		case of.c == nil:
		case s.closes && s.of >= 0:
			if err := of.c.Close(); err != nil {
				return err
			}
			if err := of.c.Barrier(); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "is closed") {
				return fmt.Errorf("a call of a closed team: %w", err)
			}
			all[s.of] = made{}
		default:
			c, err := of.c.Split(s.colours[m.rank], s.keys[m.rank])
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			t = made{c, s.wantTeam(m.rank, of.ranks)}
			if (c == nil) != (t.ranks == nil) {
				return fmt.Errorf("step %d: rank %d: %v, not %v", i, m.rank, c, t.ranks)
			}
			for k, r := range t.ranks {
				if at, ok := c.Of(r); c.Global(k) != r || !ok || at != k || c.Size() != len(t.ranks) || (r == m.rank) != (k == c.Rank()) {
					return fmt.Errorf("step %d: member %d of %d is %d, not %d", i, k, c.Size(), c.Global(k), r)
				}
			}
		}
		all = append(all, t)
		// Teams of one step are disjoint, so that ranks have the calls of any two teams in one order.
		for j, t := range all {
			if t.c == nil {
				continue
			}
			s.call.root = (j + i) % t.c.Size()
			if (i+j)%3 == 0 {
				if err := t.c.BarrierNotify(); err != nil {
					return err
				}
				runtime.Gosched()
				if err := t.c.BarrierWait(); err != nil {
					return err
				}
			}
			if err := s.call.run(t.c, j%2 == 0); err != nil {
				return fmt.Errorf("step %d, team of step %d: %w", i, j, err)
			}
		}
	}
	return nil
}

// TestTeams makes random teams, teams of teams, and calls of them.
func TestTeams(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.SampledFrom([]int{1, 2, 3, 5, 8}).Draw(t, "ranks")
				var steps []splitStep
				for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
					steps = append(steps, splitStep{
						of:      rapid.IntRange(-1, i-1).Draw(t, "of"),
						closes:  rapid.IntRange(0, 3).Draw(t, "closes") == 0,
						colours: rapid.SliceOfN(rapid.IntRange(-1, 2), size, size).Draw(t, "colours"),
						keys:    rapid.SliceOfN(rapid.IntRange(-2, 2), size, size).Draw(t, "keys"),
						call: step{
							kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"),
							seed: rapid.Uint64().Draw(t, "seed"),
							n:    rapid.SampledFrom([]int{0, 2, 36, 9000}).Draw(t, "bytes"),
						},
					})
				}
				must(t, network, size, func(m *member) error { return runTeams(m, steps) })
			})
		})
	}
}

// TestTeamsOnHybrid has teams of which some span the neighbourhoods.
func TestTeamsOnHybrid(t *testing.T) {
	steps := []splitStep{
		{of: -1, colours: []int{0, 1, 0, 1, 0, 1, 0}, keys: make([]int, 7), call: step{kind: kindBroadcast, n: 36}},
		{of: 0, colours: []int{0, 0, 0, 1, 1, 1, 1}, keys: []int{7, 6, 5, 4, 3, 2, 1}, call: step{kind: kindAllGatherV, n: 36}},
		{of: 0, closes: true, colours: make([]int, 7), keys: make([]int, 7), call: step{kind: kindExchange, n: 8}},
		{of: -1, colours: []int{0, 0, 0, 0, 0, -1, 0}, keys: make([]int, 7), call: step{kind: kindScan, n: 36}},
	}
	must(t, "hybrid", 7, func(m *member) error { return runTeams(m, steps) })
}

// TestTeamNumbers: numbers are used again, and a rank may make and close more teams
// than there would be numbers for it to remember.
func TestTeamNumbers(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		var last *Member
		for i := range 100 {
			c, err := m.Split(0, 0)
			if err != nil {
				return err
			}
			if err := c.Broadcast(i%3, make([]byte, 8)); err != nil {
				return err
			}
			if last != nil {
				if err := last.Close(); err != nil {
					return err
				}
			}
			last = c
		}
		if n := len(m.teams.by); n > 2 {
			return fmt.Errorf("%d numbers for two teams at once", n)
		}
		return nil
	})
}

// TestLateOffers: what members of a team offered in its calls, and what comes when its number is another team's,
// with calls of its own, is not taken for a mismatch of these.
func TestLateOffers(t *testing.T) {
	const calls = 5
	for _, network := range testjob.Concurrent("shm", "sim") {
		must(t, network, 2, func(m *member) error {
			old, err := m.Split(0, 0)
			if err != nil {
				return err
			}
			for range calls {
				if err := old.Broadcast(1, make([]byte, 24)); err != nil {
					return err
				}
			}
			number := old.number()
			if err := old.Close(); err != nil {
				return err
			}
			for round := range 3 * historyLen {
				c, err := m.Split(0, 0)
				if err != nil {
					return err
				}
				if c.number() != number {
					return fmt.Errorf("the new team has number %d, not %d", c.number(), number)
				}
				// More calls each time, so that each late offer meets each place of the history.
				for range round % (historyLen + 2) {
					if err := c.Barrier(); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				if m.rank == 1 {
					for seq := range uint32(calls) {
						if err := old.tell(0, handlerOffer, old.number()<<16|up<<8, old.first()+1+seq, call{form: form{kind: kindBroadcast}, root: 1, size: 24}); err != nil {
							return err
						}
					}
				}
				if err := m.meet(); err != nil {
					return err
				}
				if err := c.Broadcast(0, make([]byte, 8)); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
				if round%2 == 0 { // the offers are then of the team before
					old = c
				}
				if err := c.Close(); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		})
	}
}

// TestTeamsInterleave: ranks are in calls of two teams in different orders, by two
// goroutines.
func TestTeamsInterleave(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		a, err := m.Split(0, 0)
		if err != nil {
			return err
		}
		b, err := m.Split(0, -m.rank)
		if err != nil {
			return err
		}
		for _, c := range []*Member{a, b} {
			if err := c.BarrierNotify(); err != nil {
				return err
			}
		}
		for _, c := range []*Member{a, b} {
			if err := c.BarrierWait(); err != nil {
				return err
			}
		}
		if m.rank == 0 {
			a, b = b, a
		}
		failed := make(chan error, 1)
		go func() {
			for range 50 {
				if err := a.AllReduce(make([]byte, 8), sum); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
		for range 50 {
			if err := b.AllReduce(make([]byte, 8), sum); err != nil {
				return errors.Join(err, <-failed)
			}
		}
		return <-failed
	})
}

// TestSplitsAtOnce: teams are split by two goroutines of each rank at once.
func TestSplitsAtOnce(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		a, err := m.Split(0, 0)
		if err != nil {
			return err
		}
		b, err := m.Split(0, 0)
		if err != nil {
			return err
		}
		many := func(c *Member) error {
			for range 20 {
				x, err := c.Split(0, 0)
				if err != nil {
					return err
				}
				if err := x.AllReduce(make([]byte, 8), sum); err != nil {
					return err
				}
				if err := x.Close(); err != nil {
					return err
				}
			}
			return nil
		}
		failed := make(chan error, 1)
		go func() { failed <- many(a) }()
		return errors.Join(many(b), <-failed)
	})
}

// TestTeamMismatch: calls of a team that do not match end that team, and no other.
func TestTeamMismatch(t *testing.T) {
	for odd := range 4 {
		must(t, "shm", 5, func(m *member) error {
			colour := 0
			if m.rank == 4 {
				colour = -1
			}
			c, err := m.Split(colour, 0)
			if err != nil {
				return err
			}
			if c != nil {
				if m.rank == odd {
					err = c.Broadcast(0, make([]byte, 4))
				} else {
					err = c.AllReduce(make([]byte, 8), sum)
				}
				if err == nil {
					err = c.AllReduce(make([]byte, 8), sum)
				}
				if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "calls of team 1 do not match: call 1 is ") {
					return fmt.Errorf("rank %d: %w", m.rank, err)
				}
			}
			if err := m.AllReduce(make([]byte, 8), sum); err != nil {
				return fmt.Errorf("the job: %w", err)
			}
			return nil
		})
	}
}

// TestTeamLeave: a rank that is at its end is no member that others could wait for.
func TestTeamLeave(t *testing.T) {
	for gone := range 3 {
		for _, late := range []bool{false, true} {
			must(t, "shm", 4, func(m *member) error {
				c, err := m.Split(m.rank/3, 0) // rank 3 is not in it
				if err != nil {
					return err
				}
				if m.rank != gone && m.rank != 3 {
					err := c.AllReduce(make([]byte, 8), sum)
					if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "the end of the program") || !strings.Contains(err.Error(), "AllReduce") {
						return fmt.Errorf("rank %d leaves, rank %d gets %w", gone, m.rank, err)
					}
				} else if late && m.rank == gone && gone < 2 { // a rank with which others begin
					if err := awaitNoteOf(m, c); err != nil {
						return err
					}
				}
				return m.Leave([]byte{1}, sum, nil)
			})
		}
	}
}

func awaitNoteOf(m *member, c *Member) error {
	return (&member{Member: c, b: m.b}).awaitNote()
}

// TestTeamFailure: a rank that fails ends the calls of its teams, and is named as it is in
// the job.
func TestTeamFailure(t *testing.T) {
	for _, network := range networks {
		all := run(t, network, 5, func(m *member) error {
			c, err := m.Split(m.rank%2, -m.rank)
			if err != nil {
				return err
			}
			if m.rank == 4 {
				return errTest
			}
			err = c.AllReduce(make([]byte, 8), sum)
			if m.rank%2 != 0 && err == nil {
				return m.AllReduce(make([]byte, 8), sum)
			}
			return err
		})
		for r, err := range all[:4] {
			if p := new(errs.PeerError); !errors.As(err, &p) || p.Rank != 4 || !strings.HasPrefix(p.Op, "collective call ") {
				t.Errorf("%s: rank %d gets %v", network, r, err)
			}
		}
	}
}

// TestTeamBadUse: what is wrong about a team is said.
func TestTeamBadUse(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		if err := m.Close(); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "not of a team") {
			return fmt.Errorf("the job is closed: %w", err)
		}
		if err := m.BarrierWait(); !errors.Is(err, errs.ErrNotReady) {
			return fmt.Errorf("a wait without notify: %w", err)
		}
		c, err := m.Split(m.rank, 0)
		if err != nil || c.Size() != 1 || c.Rank() != 0 || c.Global(0) != m.rank {
			return fmt.Errorf("alone: %w", err)
		}
		if _, ok := c.Of(1 - m.rank); ok {
			return errors.New("the other rank is a member")
		}
		if err := c.BarrierNotify(); err != nil {
			return err
		}
		if err := c.BarrierNotify(); !errors.Is(err, errs.ErrNotReady) {
			return fmt.Errorf("a barrier in a barrier: %w", err)
		}
		return errors.Join(c.Broadcast(0, nil), c.BarrierWait())
	})
}
