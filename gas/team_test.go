package gas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// inTeams makes the calls of s in rows and columns, in a team of a team, and in the job.
func (s blockStep) inTeams(n *Node, width int) error {
	rows, err := n.World().Split(n.rank/width, 0)
	if err != nil {
		return err
	}
	columns, err := n.World().Split(n.rank%width, -n.rank)
	if err != nil {
		return err
	}
	odd, err := rows.Split(rows.Rank()%2-1, 0)
	if err != nil {
		return err
	}
	if (odd == nil) != (n.rank%width%2 == 0) {
		return fmt.Errorf("rank %d: team %v of those that are odd", n.rank, odd)
	}
	if r, ok := columns.Of(n.rank); !ok || r != columns.Rank() || columns.Global(r) != n.rank {
		return fmt.Errorf("rank %d is member %d, %v", n.rank, r, ok)
	}
	for _, g := range []*Team{rows, columns, odd, n.World()} {
		if g == nil {
			continue
		}
		call := s
		call.root %= g.Size()
		if err := call.run(g); err != nil {
			return err
		}
		mem, err := NewTeamSlice[int](g, 3)
		if err != nil {
			return err
		}
		if all := mem.All(); mem.Len() != 3 || len(all) != g.Size() || all[g.Rank()] != mem.On(g.Rank()) || all[g.Rank()].Rank() != n.rank {
			return fmt.Errorf("member %d: %d elements each, at %v", g.Rank(), mem.Len(), all)
		}
		for _, r := range []int{-1, g.Size(), 1 << 32, 1 << 62} { // no members
			if _, ok := g.Of(max(r, n.size)); ok || g.Global(r) != -1 || !mem.On(r).IsNil() {
				return fmt.Errorf("member %d of %d is rank %d, with memory at %v", r, g.Size(), g.Global(r), mem.On(r))
			}
		}
		next := (g.Rank() + 1) % g.Size()
		if err := mem.On(next).Add(2).Put(n, g.Rank()+100); err != nil {
			return err
		}
		if err := g.BarrierNotify(); err != nil {
			return err
		}
		if err := g.BarrierWait(); err != nil {
			return err
		}
		got, err := mem.On(g.Rank()).Add(2).Get(n)
		if want := (g.Rank()+g.Size()-1)%g.Size() + 100; got != want || err != nil {
			return fmt.Errorf("member %d: %d, not %d: %w", g.Rank(), got, want, err)
		}
		if err := mem.Delete(); err != nil {
			return err
		}
	}
	return columns.Delete()
}

// TestTeams compares collectives of teams with their definitions.
func TestTeams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 6, 7}).Draw(t, "ranks")
		s := drawBlockStep(t, size)
		width := rapid.IntRange(1, size).Draw(t, "width")
		if err := Run(small(size), func(n *Node) error { return s.inTeams(n, width) }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTeamsOnOthers does so on other conduits.
func TestTeamsOnOthers(t *testing.T) {
	for _, conduit := range testjob.Concurrent("udp", "hybrid", "sim") {
		cfg := small(5)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error { return blockStep{root: 1, length: 30, seed: 1}.inTeams(n, 2) }); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestHostTeam: its members reach each other by load and store, and no other rank.
func TestHostTeam(t *testing.T) {
	for _, conduit := range []string{"shm", "hybrid", "udp"} {
		cfg := small(5)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error {
			h := Must(n.HostTeam())
			for r := range n.Size() {
				if _, ok := h.Of(r); ok != (n.Neighbour(r) || r == n.rank) {
					return fmt.Errorf("rank %d in the team of %d: %v", r, n.rank, ok)
				}
			}
			return errors.Join(h.Barrier(), h.Delete())
		}); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestTeamErrors: what is wrong is said, and ends no other team.
func TestTeamErrors(t *testing.T) {
	runN(t, 4, func(n *Node) error {
		rows, err := n.World().Split(n.rank/2, 0)
		if err != nil {
			return err
		}
		if _, err := Broadcast(rows, 2, 1); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "root 2 out of range: the group has ranks 0..1") {
			return fmt.Errorf("root 2 of a team of two: %w", err)
		}
		if _, err := NewTeamSlice[int](rows, 1<<(10+20*(n.rank%2))); !errors.Is(err, ErrBadArg) && !errors.Is(err, ErrResource) {
			return fmt.Errorf("no room: %w", err)
		}
		if n.rank/2 == 0 {
			if n.rank == 0 {
				_, err = AllGather(rows, 1)
			} else {
				_, err = AllReduce(rows, 1, Sum)
			}
			if err == nil {
				err = rows.Barrier()
			}
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "gas: collective calls of team 1 do not match") {
				return fmt.Errorf("rank %d: %w", n.rank, err)
			}
		} else if err := errors.Join(rows.Barrier(), rows.Delete(), wantErr(rows.Barrier(), ErrNotReady, "team 1 is closed")); err != nil {
			return err
		}
		return n.Barrier()
	})
}

// TestTeamAfterPeerReturned: a member that returns from its function is named.
func TestTeamAfterPeerReturned(t *testing.T) {
	for gone := range 3 {
		err := Run(small(3), func(n *Node) error {
			team, err := n.World().Split(0, 0)
			if err != nil || n.rank == gone {
				return err
			}
			return team.Barrier()
		})
		if err == nil || !strings.Contains(err.Error(), "the end of the program's function") || !strings.Contains(err.Error(), "Barrier") {
			t.Errorf("rank %d returned early: %v", gone, err)
		}
	}
}
