package conformance

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
)

// layerChecks are of what the layers need of a conduit and no check of the contract asks
// for: sources in read-only pages, as many operations under way as handles, lanes, and how
// a rank that leaves or ends the job is named by what the others wait in. What no conduit
// changes is in the layers' own tests, and the machine mixes all operations at random.
var layerChecks = slices.Concat([]check{
	{name: "am/read-only", seeded: true, run: amReadOnly}, // GASNet's testreadonly
	{name: "extended/outstanding", run: extendedOutstanding},
}, laneChecks, rulesChecks)

// stack is one rank of a job with the layers attached.
type stack struct {
	*contract.Peer
	am  *am.Messenger
	bar *barrier.Barrier
	ext *extended.Initiator
}

// layers has the configurations with which each rank of a job attaches.
type layers struct {
	segment  uint64
	handlers func(s *stack) []am.Entry // 128..255
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

const gasSegment = 256 << 10

// job runs fn as so many ranks; a rank that returns an error fails the check.
func (c *ctx) job(ranks int, fn func(n *gas.Node) error) {
	c.Helper()
	if err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, fn); err != nil {
		c.Errorf("%d ranks: %v", ranks, err)
	}
}

// goroutines runs f(0..k-1) as goroutines of n's rank and returns their first
// error.
func goroutines(n *gas.Node, k int, f func(i int) error) error {
	var left atomic.Int32
	errs := make([]error, k)
	left.Store(int32(k))
	for i := range k {
		conduits.Go(n.Layers().Conduit, func() {
			errs[i] = f(i)
			left.Add(-1)
			n.Wake(n.Rank())
		})
	}
	if err := n.Wait(func() bool { return left.Load() == 0 }); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// isErr is an error if err does not wrap want.
func isErr(err, want error, what string) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("%s: error %w, want one that wraps %q", what, err, want)
}

// off is the error of an operation that went wrong: its own, or, if it has none,
// what was wrong with its result.
func off(err error, format string, args ...any) error {
	if err != nil {
		format, args = format+": %w", append(args, err)
	}
	return fmt.Errorf(format, args...)
}

// on attaches the layers to p's endpoint, without barriers around.
func on(p *contract.Peer, l layers) *stack {
	p.C.Helper()
	s := &stack{Peer: p, bar: barrier.NewWith(l.bar), ext: extended.New(l.ext)}
	a := am.Config{SegmentSize: l.segment, Completer: s.ext, Exposer: s.ext, Runtime: append(s.bar.Handlers(), s.ext.Handlers()...)}
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
