package conformance

import (
	"errors"
	"strings"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/gas"
)

// rulesChecks are about programs that break a rule: they end with an error that
// names it, whatever they do with the errors that they are given.
var rulesChecks = []check{
	{name: "rules/left before a barrier", seeded: true, run: ruleLeftBarrier},
	{name: "rules/left before a reply", run: ruleLeftReply},
	{name: "rules/closed inside gas", run: ruleLeftGas},
	{name: "rules/returned early", run: ruleReturned},
	{name: "rules/exit", run: ruleExit},
	{name: "rules/exit twice", run: ruleExitTwice},
}

var ruleNothing = gas.RegisterCall("conformance.rules.nothing", func(*gas.Node, struct{}) struct{} { return struct{}{} })

// handlerRule is a handler that nothing comes of.
const handlerRule am.HandlerID = 211

// ruleLeftBarrier: one rank closes instead of entering a barrier, or between its
// halves. All others hear that it has left, however the barrier is made. If it
// leaves when it has been through the barrier, no rank misses it.
func ruleLeftBarrier(c *ctx) {
	for _, how := range []barrier.Algorithm{barrier.Auto, barrier.Dissemination} {
		for _, n := range []int{2, 3, 5, 11} {
			for _, leaves := range []string{"before it", "after it"} {
				before := c.RNG.IntN(3)
				bad := c.RNG.IntN(n)
				c.Job(n, contract.Small, func(p *contract.Peer) {
					s := on(p, layers{bar: barrier.Config{Force: how}})
					for range before + 1 {
						if err := s.bar.Barrier(0, barrier.Anonymous); err != nil {
							// Another rank is ahead, and has found out in the next one.
							p.BlamesLeft(err, bad, "barrier phase")
							return
						}
					}
					if p.Rank == bad && leaves == "before it" {
						p.Must(p.EP.Close())
						return
					}
					err := s.bar.Barrier(0, barrier.Anonymous)
					if leaves == "after it" {
						p.Must(err)
						return // which closes
					}
					p.BlamesLeft(err, bad, "barrier phase")
				})
				if c.Failed() {
					c.Errorf("%v barrier of %d ranks; rank %d leaves %s", how, n, bad, leaves)
					return
				}
			}
		}
	}
}

// ruleLeftReply: a rank leaves with a request that it has not answered.
func ruleLeftReply(c *ctx) {
	const n = 3
	c.Job(n, contract.Small, func(p *contract.Peer) {
		s := on(p, layers{handlers: func(*stack) []am.Entry {
			return []am.Entry{{Index: handlerRule, Name: "rule", Fn: func(*am.Token, []uint32, []byte) {}, Args: am.AnyArgs}}
		}})
		s.barrier()
		if p.Rank == 1 {
			p.Must(p.EP.Close())
			return
		}
		if err := s.am.RequestShort(1, handlerRule); err != nil { // it had left by then
			p.Names(err, 1, "a request to a rank that has left")
		}
		p.BlamesLeft(s.am.WaitFor(contract.Waiting("an answer"), conduits.Cond{Ready: func() bool { return false }, Lacking: conduits.LackingRank(s.EP, 1)}), 1, "an answer")
	})
}

// ruleLeftGas: a rank of package gas closes its endpoint in the program's function
// while the others wait for it.
func ruleLeftGas(c *ctx) {
	const ranks, bad = 3, 1
	for what, wait := range map[string]func(n *gas.Node) error{
		"collective call": func(n *gas.Node) error { _, err := gas.AllReduce(n, 1, gas.Sum[int]); return err },
		"barrier phase":   func(n *gas.Node) error { return n.Barrier() },
		"call": func(n *gas.Node) error {
			_, err := ruleNothing.Call(n, bad, struct{}{})
			return err
		},
	} {
		errs := make([]error, ranks)
		var ran [ranks]bool // a failure may overtake the barrier in which ranks meet
		err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, func(n *gas.Node) error {
			if n.Rank() == bad {
				return n.Layers().Conduit.Close()
			}
			ran[n.Rank()] = true
			errs[n.Rank()] = wait(n)
			return errs[n.Rank()]
		})
		if err == nil {
			c.Errorf("%s while rank %d closes: Run returns nil", what, bad)
		}
		for r, err := range errs {
			var pe *gas.PeerError
			if err == nil && what == "call" {
				continue // answered before it closed
			}
			if ran[r] && (!errors.As(err, &pe) || pe.Rank != bad) {
				c.Errorf("%s while rank %d closes: rank %d got %v", what, bad, r, err)
			}
		}
	}
}

// ruleReturned: a rank returns from the program's function while the others are in
// a barrier. All are told which one.
func ruleReturned(c *ctx) {
	const bad = 2
	for _, ranks := range []int{3, 5, 11} {
		errs, ran := make([]error, ranks), make([]bool, ranks)
		err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, func(n *gas.Node) error {
			if n.Rank() == bad {
				return nil
			}
			ran[n.Rank()] = true
			errs[n.Rank()] = n.Barrier()
			return errs[n.Rank()]
		})
		var re *gas.RankError
		if !errors.As(err, &re) || re.Rank != bad || !strings.Contains(err.Error(), "returned from the program's function") || !strings.Contains(err.Error(), "phase") {
			c.Errorf("rank %d of %d returns before a barrier: Run returns %v", bad, ranks, err)
		}
		for r, err := range errs {
			var pe *gas.PeerError
			if ran[r] && (!errors.As(err, &pe) || pe.Rank != bad || !errors.Is(err, gas.ErrPeer)) {
				c.Errorf("rank %d of %d returns before a barrier: rank %d got %v", bad, ranks, r, err)
			}
		}
	}
}

var ruleExiter = gas.RegisterCall("conformance.rules.exiter", func(n *gas.Node, code int) struct{} {
	_ = n.Exit(code)
	return struct{}{}
})

// exitCode is the code of the Exit that err says, and the rank that called it.
func exitCode(c *ctx, err error) (rank, code int) {
	c.Helper()
	var pe *conduits.PeerError
	var x *conduits.ExitError
	if !errors.Is(err, gas.ErrExit) || !errors.Is(err, gas.ErrPeer) || !errors.As(err, &pe) || !errors.As(err, &x) {
		c.Errorf("error %v does not say that a rank has ended the job by Exit", err)
		return -1, -1
	}
	return pe.Rank, x.Code
}

// ruleExit: one rank ends the job with a status, while others wait in a barrier,
// whatever the ranks make of the errors.
func ruleExit(c *ctx) {
	other := errors.New("an error that does not say why")
	for _, code := range []int{0, 3, 255, 256 + 7} {
		for _, how := range []string{"error", "nothing", "its own error", "handler", "goroutine"} {
			run := c.gas(gas.Config{Ranks: 3, SegmentSize: gasSegment}, func(n *gas.Node) error {
				if n.Rank() != 1 && !(how == "handler" && n.Rank() == 0) {
					rank, got := exitCode(c, n.Barrier())
					if rank != 1 || got != code&0xff {
						c.Errorf("%s, Exit(%d) by rank 1: a barrier ends with that of rank %d with code %d", how, code, rank, got)
					}
					if n.Rank() == 2 {
						return other
					}
					return nil
				}
				switch how {
				case "handler":
					if n.Rank() == 0 {
						_, err := ruleExiter.Call(n, 1, code)
						return err
					}
					return n.Wait(func() bool { return false })
				case "goroutine":
					conduits.Go(n.Layers().Conduit, func() { _ = n.Exit(code) })
					return n.Wait(func() bool { return false })
				}
				err := n.Exit(code)
				if rank, got := exitCode(c, err); rank != 1 || got != code&0xff {
					c.Errorf("Exit(%d) of rank 1 returns that of rank %d with code %d", code, rank, got)
				}
				switch how {
				case "error":
					return err
				case "its own error":
					return other
				}
				return nil
			})
			if rank, got := exitCode(c, run); rank != 1 || got != code&0xff {
				c.Errorf("%s, Exit(%d) by rank 1: Run returns %v", how, code, run)
			}
		}
	}
}

// ruleExitTwice: of two ranks that end the job at once one decides, for all.
func ruleExitTwice(c *ctx) {
	for range 10 {
		var said [3]int
		run := c.gas(gas.Config{Ranks: 3, SegmentSize: gasSegment}, func(n *gas.Node) error {
			err := n.Barrier()
			if n.Rank() < 2 && err == nil {
				_ = n.Exit(10 + n.Rank())
			}
			err = n.Wait(func() bool { return false })
			_, said[n.Rank()] = exitCode(c, err)
			return err
		})
		rank, code := exitCode(c, run)
		if rank != 0 && rank != 1 || code != 10+rank {
			c.Errorf("Exit(10) by rank 0 and Exit(11) by rank 1: Run returns %v", run)
		}
		for r, s := range said {
			if s != code {
				c.Errorf("Run says status %d, rank %d status %d", code, r, s)
			}
		}
	}
}
