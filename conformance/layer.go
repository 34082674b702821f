package conformance

import (
	"runtime"
	"slices"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// layerChecks are GASNet's tests (release 2025.8.0, tests/) as properties of
// the layers on any conduit; each check names its model. What no conduit changes is in
// the layers' own tests. Since no order between
// messages is promised, none is assumed. Of what is marked for porting, these
// have no counterpart here:
//
//   - testsegment: a rank has one segment, attached once; there is nothing to
//     create, bind or publish later. Its bad arguments are in package am's tests.
//   - testsplit, testteam, testteambarrier, testteambcast, testtmpair: a job has
//     no teams and no pairs; every operation names a rank of the job.
//   - testenv, and the exit codes, signals and orphans of testexit: processes
//     are the launcher's; cmd/gasrun tests them. What a rank's end means to the
//     others is in gas/exit.
//   - testprogthr: progress in the background is one switch (gas.Config), no
//     threads that a program may adopt.
//   - testlegacy: there is no older interface. Its memset is in extended/memset.
//   - testgasnet's neighbourhood queries: Endpoint.Views, a contract check.
//   - testhsl: of its illegal uses the lock, recursion and release order are
//     gas/lock's; no lock is ever held by a handler, so interrupt-safety has no
//     meaning. testalign, testinternal, testtools and the like test no layer.
var layerChecks = slices.Concat(amChecks, barrierChecks, extendedChecks, gasChecks, laneChecks, rulesChecks, moreLayerChecks, missingChecks, belowChecks)

// poll is for loops that ask again and again: it polls and lets other ranks run,
// which may share this processor.
func (s *stack) poll() {
	s.am.Poll()
	runtime.Gosched()
}

// try is bar.Try in such a loop: it returns what Try does when the phase is over.
func (s *stack) try(id uint32, flags barrier.Flags) error {
	for {
		done, err := s.bar.Try(id, flags)
		if done || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// doomed is one rank of a job that is to fail.
type doomed struct {
	*stack
	attach error // of am.Attach; the stack has no layers if it is not nil
}

// fails runs body on n ranks with the layers attached, in a job that is to
// fail: neither it nor its end expects the other ranks to be well.
func (c *ctx) fails(n int, l layers, body func(s *doomed)) {
	c.Helper()
	c.Job(n, conduits.Config{}, func(p *contract.Peer) {
		s := &doomed{stack: &stack{Peer: p, bar: barrier.NewWith(l.bar), ext: extended.New(l.ext)}}
		a := am.Config{SegmentSize: l.segment, Completer: s.ext, Exposer: s.ext, Debug: l.debug}
		if l.handlers != nil {
			a.Handlers = l.handlers(s.stack)
		}
		a.Runtime = append(s.bar.Handlers(), s.ext.Handlers()...)
		if s.am, s.attach = am.Attach(p.EP, a); s.attach == nil {
			p.Up()
			p.Must(s.bar.Bind(s.am))
			s.ext.Bind(s.am)
			s.barrier()
			// A rank that has left the barrier might make another fail that has not.
			s.Meet()
		}
		body(s)
	})
}

// awaitFailure waits until the job has failed and returns how this rank knows it.
func (s *doomed) awaitFailure() error {
	s.C.Helper()
	err := conduits.Wait(s.EP, contract.Waiting("the job's failure"), func() bool { return false })
	if err == nil {
		s.Fatalf("Wait has returned without a reason")
	}
	return err
}

// stack is one rank of a job with the layers attached.
type stack struct {
	*contract.Peer
	am  *am.Messenger
	bar *barrier.Barrier
	ext *extended.Initiator
}

// layers is what each rank of a job brings to attach.
type layers struct {
	segment  uint64
	rights   segment.Rights
	handlers func(s *stack) []am.Entry // 128..255
	debug    bool
	ext      extended.Config
	bar      barrier.Config
}

// stack runs body with the layers attached; a barrier follows it.
func (c *ctx) stack(n int, cfg conduits.Config, l layers, body func(s *stack)) {
	c.Helper()
	c.Job(n, cfg, func(p *contract.Peer) {
		s := on(p, l)
		s.barrier()
		body(s)
		s.barrier()
	})
}

// barrier is a barrier that must match.
func (s *stack) barrier() {
	s.C.Helper()
	s.Must(s.bar.Barrier(0, barrier.Anonymous))
}

// gas runs fn under package gas on the conduit.
func (c *ctx) gas(cfg gas.Config, fn func(n *gas.Node) error) (err error) {
	c.Helper()
	c.Named(func(name string, w *contract.Watch) {
		cfg.Conduit = name
		err = gas.Run(cfg, func(n *gas.Node) error {
			w.Up(n.Rank())
			defer w.Over(n.Rank())
			return fn(n)
		})
	})
	return err
}

// on attaches the layers to p's endpoint, without barriers around.
func on(p *contract.Peer, l layers) *stack {
	p.C.Helper()
	s := &stack{Peer: p, bar: barrier.NewWith(l.bar), ext: extended.New(l.ext)}
	a := am.Config{SegmentSize: l.segment, Rights: l.rights, Completer: s.ext, Exposer: s.ext, Debug: l.debug, Runtime: append(s.bar.Handlers(), s.ext.Handlers()...)}
	if l.handlers != nil {
		a.Handlers = l.handlers(s)
	}
	e, err := am.Attach(p.EP, a)
	p.Must(err)
	p.Up()
	s.am = e
	p.Must(s.bar.Bind(e))
	s.ext.Bind(e)
	return s
}
