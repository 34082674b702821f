package dist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/gas/gastest"
)

// TestAlikeInTeams has goroutines of a rank make maps of one name and type at once, each in its team of all
// ranks, in the other order on the other ranks: an entry is in the map of its team alone.
func TestAlikeInTeams(t *testing.T) {
	const teams, rounds = 3, 20
	for _, conduit := range []string{"shm", "udp"} {
		gastest.RunConfig(t, small(conduit, 3), func(n *gas.Node) error {
			ended := make(chan error, teams)
			all := make([]*gas.Team, teams)
			for i := range all {
				var err error
				if all[i], err = n.World().Split(0, i*n.Rank()%3); err != nil {
					return err
				}
			}
			for i := range all {
				i = (i + n.Rank()) % teams
				go func() { ended <- alike(all[i], i+1, rounds) }()
			}
			var err error
			for range all {
				err = errors.Join(err, <-ended)
			}
			return err
		})
	}
}

// alike makes maps in a team and puts v into each.
func alike(g *gas.Team, v, rounds int) error {
	for round := range rounds {
		m, err := dist.NewMap[int, int](g, "alike")
		if err != nil {
			return err
		}
		sum := 0
		for k := range g.Size() * 4 {
			if k%g.Size() == g.Rank() {
				if err := m.Put(k, v); err != nil {
					return err
				}
			}
		}
		if err := g.Barrier(); err != nil {
			return err
		}
		for k := range g.Size() * 4 {
			got, _, err := m.Get(k)
			if err != nil {
				return err
			}
			sum += got
		}
		if total, err := m.Total(); err != nil || total != g.Size()*4 || sum != total*v {
			return fmt.Errorf("team %d, round %d: %d entries, whose sum is %d: %w", v, round, total, sum, err)
		}
		if err := m.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// TestWrongTeams: each constructor refuses no team, which ranks outside get, and a deleted one.
func TestWrongTeams(t *testing.T) {
	makers := map[string]func(g gas.Group) error{
		`NewMap "x"`:    func(g gas.Group) error { _, err := dist.NewMap[int, int](g, "x"); return err },
		`NewQueue "x"`:  func(g gas.Group) error { _, err := dist.NewQueue[int](g, "x", 0); return err },
		`NewBitmap "x"`: func(g gas.Group) error { _, err := dist.NewBitmap(g, "x", 9); return err },
		`NewRows "x"`:   func(g gas.Group) error { _, err := dist.NewRows(g, "x", [][]int{{1}}); return err },
		`NewRowsOf "x"`: func(g gas.Group) error { _, err := dist.NewRowsOf(g, "x", 1, []int{0}, []int{1}); return err },
		`NewMatrix "x"`: func(g gas.Group) error { _, err := dist.NewMatrix[int](g, "x", 2, 2, 1, 1); return err },
	}
	for _, conduit := range []string{"shm", "gastest"} {
		gastest.RunConfig(t, small(conduit, 3), func(n *gas.Node) error {
			g := gas.Must(n.World().Split(n.Rank()-1, 0))
			used := n.Usage().Used
			want, kind := "on team nil, which Team.Split returns to a rank that is in none", gas.ErrBadArg
			if g != nil {
				n.Must(g.Delete())
				want, kind = "team 1 is closed", gas.ErrNotReady
			}
			for name, fn := range makers {
				if err := fn(g); !errors.Is(err, kind) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
					return fmt.Errorf("%s on rank %d: %w", name, n.Rank(), err)
				}
			}
			if now := n.Usage().Used; now != used {
				return fmt.Errorf("rank %d: %d bytes are left", n.Rank(), now-used)
			}
			return nil
		})
	}
}
