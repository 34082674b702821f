package contract

import (
	"errors"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// rulesOfContract are about what breaks a rule: it ends with an error that names it.
var rulesOfContract = []Check{
	{Name: "rules/receive", Run: ruleReceive},
	{Name: "rules/left", Seeded: true, Run: ruleLeft},
}

// ruleReceive: a layer of one's own that waits inside Receive fails the job, too.
func ruleReceive(c *Case) {
	if !sys.HasGoroutine {
		c.Skip("goroutines cannot be told apart here")
	}
	c.Job(2, Small, func(p *Peer) {
		p.attach(0, &sink{receive: func(m *conduits.Message) {
			if err := conduits.Wait(p.EP, Waiting("Godot"), func() bool { return false }); err == nil {
				p.C.Errorf("a wait inside Receive for what never comes has ended")
			}
		}})
		if p.Rank == 0 {
			p.reserve(func() conduits.Status { return p.EP.Send(1, conduits.Request, 1, nil) })
		}
		p.failed(1, "Godot inside Receive of rank 1")
	})
}

// ruleLeft: Left is not true of a rank before it has closed and what it had sent
// has run, and then ends the waits for it; no rank has failed.
func ruleLeft(c *Case) {
	const n = 3
	for range 20 {
		many := c.RNG.IntN(40)
		c.Job(n, Small, func(p *Peer) {
			s := &sink{receive: func(*conduits.Message) {}}
			p.attach(0, s)
			if p.EP.Left(1) || p.EP.Left(p.Rank) {
				p.Fatalf("ranks that are there are said to have left")
			}
			p.Meet()
			if p.Rank == 1 {
				for i := range many {
					dst := i % 2 * 2
					p.reserve(func() conduits.Status { return p.EP.Send(dst, conduits.Request, 1, nil) })
				}
				p.Must(p.EP.Close())
				return
			}
			want := uint64((many + 1) / 2)
			if p.Rank == 2 {
				want = uint64(many / 2)
			}
			err := conduits.WaitFor(p.EP, Waiting("more than it sends"), conduits.Cond{Lacking: conduits.LackingRank(p.EP, 1), Ready: func() bool {
				return uint64(s.got[conduits.Request].Load()) > want
			}})
			if got := uint64(s.got[conduits.Request].Load()); got != want {
				p.Errorf("%d of %d messages of the rank that left have come when the wait for it ends (%v)", got, want, err)
			}
			p.BlamesLeft(err, 1, "more than it sends")
			if !errors.Is(err, conduits.ErrClosed) {
				p.Errorf("error %v does not match %q", err, conduits.ErrClosed)
			}
			if err := conduits.WaitFor(p.EP, nil, conduits.Cond{Lacking: conduits.LackingRank(p.EP, 1), Ready: func() bool { return true }}); err != nil {
				p.Errorf("a wait for what is there already: %v", err)
			}
			if !p.EP.Left(1) || p.EP.Err() != nil {
				p.Errorf("rank 1 has left: %v, error %v", p.EP.Left(1), p.EP.Err())
			}
		})
		if c.Failed() {
			return
		}
	}
}

// BlamesLeft checks that err names rank, and says that it left while this one
// waited for what.
func (p *Peer) BlamesLeft(err error, rank int, what ...string) {
	p.C.Helper()
	var pe *conduits.PeerError
	if !errors.As(err, &pe) || pe.Rank != rank {
		p.Errorf("a wait for rank %d, which has left: error %v does not name it", rank, err)
		return
	}
	for _, part := range append([]string{"it left the job while rank", "waits"}, what...) {
		if !strings.Contains(err.Error(), part) {
			p.Errorf("a wait for rank %d, which has left: error %q does not say %q", rank, err, part)
		}
	}
}
