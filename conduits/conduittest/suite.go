package conduittest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

var (
	flagSeeds = flag.Int("conduittest.seeds", 1, "how many seeds every randomized check runs with")
	flagSeed  = flag.Uint64("conduittest.seed", 1, "the first of them")
	flagRound = flag.Int("conduittest.rounds", 5000, "how often the checks of waking sleep and wake")
)

// Open opens all ranks of a new job in this process; it is the Local of a
// conduits.Conduit. Config.Seed is to be used by a conduit that decides
// anything by chance.
type Open func(n int, c conduits.Config) ([]conduits.Endpoint, error)

// check is one property.
type check struct {
	name string
	// seeded checks run once for each seed; others once.
	seeded bool
	// skip says why the check does not apply to a conduit, or "". May be nil.
	skip func(o *offer) string
	run  func(c *ctx)
}

// ctx is one execution of a check.
type ctx struct {
	*testing.T
	open  Open
	offer *offer
	seed  uint64
	rng   *rand.Rand // for the check's own goroutine, not for ranks
	name  string     // the conduit as package gas finds it
	// opened is told of jobs that package gas opens.
	opened *func(eps []conduits.Endpoint)
}

// Run checks the conduit that open opens.
func Run(t *testing.T, open Open) {
	s := newSuite(t, open)
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, k := range g.checks {
				t.Run(k.name, func(t *testing.T) { s.check(t, g.name+"/"+k.name, k) })
			}
		})
	}
	s.report(t)
}

// groups are all checks in order.
var groups = []struct {
	name   string
	checks []check
}{
	{"contract", contractChecks},
	{"layers", layerChecks},
	{"machine", machineChecks},
}

type suite struct {
	open  Open
	offer *offer
	name  string
	seed  uint64 // of the check that runs, for jobs that package gas opens
	ran   []outcome
	// opened is told of the jobs that package gas opens; nil: nobody cares.
	opened func(eps []conduits.Endpoint)
}

// outcome is how a check ended, for the report.
type outcome struct {
	name   string
	seeds  int
	failed bool
	skip   string
}

var registered atomic.Int32

func newSuite(t *testing.T, open Open) *suite {
	s := &suite{open: open, name: fmt.Sprintf("conduittest-%d", registered.Add(1))}
	conduits.Register(conduits.Conduit{Name: s.name, Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		c.Seed = s.seed
		eps, err := open(n, c)
		if err == nil && s.opened != nil {
			s.opened(eps)
		}
		return eps, err
	}})
	s.offer = probe(t, open)
	return s
}

func (s *suite) check(t *testing.T, name string, k check) {
	o := outcome{name: name, seeds: 1}
	if k.seeded {
		o.seeds = max(1, *flagSeeds)
	}
	if k.skip != nil {
		o.skip = k.skip(s.offer)
	}
	defer func() {
		o.failed = t.Failed()
		s.ran = append(s.ran, o)
	}()
	if o.skip != "" {
		t.Skip(o.skip)
	}
	for i := range o.seeds {
		seed := *flagSeed + uint64(i)
		s.seed = seed
		c := &ctx{T: t, open: s.open, offer: s.offer, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), name: s.name, opened: &s.opened}
		k.run(c)
		if t.Failed() {
			if k.seeded {
				t.Logf("seed %d: run again with -conduittest.seed %d", seed, seed)
			}
			return
		}
	}
}

// peer is one rank of a job on bare endpoints.
type peer struct {
	c    *ctx
	ep   conduits.Endpoint
	rank int
	size int
	rng  *rand.Rand
	job  *job
	met  int64 // calls of meet
}

// job is what the ranks of one run share in the test's memory.
type job struct {
	eps []conduits.Endpoint
	met atomic.Int64
}

// Fatalf fails the test and the job, so that nobody waits for this rank, and
// ends the rank.
func (p *peer) Fatalf(format string, args ...any) {
	p.c.Helper()
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Errorf fails the test and the job.
func (p *peer) Errorf(format string, args ...any) {
	p.c.Helper()
	p.c.Errorf("rank %d: %s", p.rank, fmt.Sprintf(format, args...))
	p.ep.Fail(fmt.Errorf("conduittest: "+format, args...))
}

// must ends the rank if err is not nil. An error that only says that another
// rank has failed is not reported again.
func (p *peer) must(err error) {
	p.c.Helper()
	switch {
	case err == nil:
	case p.c.Failed():
		runtime.Goexit()
	default:
		p.Fatalf("%v", err)
	}
}

// wait is conduits.Wait that must not fail.
func (p *peer) wait(what string, cond func() bool) {
	p.c.Helper()
	p.must(conduits.Wait(p.ep, waiting(what), cond))
}

type waiting string

// Blocked says what for.
func (w waiting) Blocked() string { return "conduittest: " + string(w) }

// run opens a job of n ranks, runs body as each of them and closes the
// endpoints. Endpoints are not attached. It returns when all have ended.
func (c *ctx) run(n int, cfg conduits.Config, body func(p *peer)) {
	c.Helper()
	cfg.Seed = c.seed
	eps, err := c.open(n, cfg)
	if err != nil {
		c.Fatalf("open %d ranks: %v", n, err)
	}
	if len(eps) != n {
		c.Fatalf("open of %d ranks gave %d endpoints", n, len(eps))
	}
	defer c.watch(eps)()
	j := &job{eps: eps}
	conduits.Run(eps, func(i int) {
		p := &peer{c: c, ep: eps[i], rank: i, size: n, rng: rand.New(rand.NewPCG(c.seed, uint64(i)+1)), job: j}
		done := false
		defer func() {
			if !done && !c.Failed() {
				p.Errorf("ended its goroutine")
			}
			if err := p.ep.Close(); err != nil && !errors.Is(err, conduits.ErrClosed) && !c.Failed() {
				c.Errorf("rank %d: close: %v", i, err)
			}
		}()
		body(p)
		done = true
	})
}

// watch says where the ranks wait, and ends the job, shortly before the test
// binary's time is over: a lost wake-up shows as a hang. The function it returns
// ends the watch. A simulator finds hangs itself.
func (c *ctx) watch(eps []conduits.Endpoint) func() {
	end, ok := c.Deadline()
	if _, sim := eps[0].(conduits.Runner); sim || !ok {
		return func() {}
	}
	left := time.Until(end)
	timer := time.AfterFunc(left-min(left/4, 10*time.Second), func() {
		var b strings.Builder
		for r, ep := range eps {
			for _, w := range ep.Waiting() {
				fmt.Fprintf(&b, "; rank %d: %s", r, w.Blocked())
			}
		}
		for _, ep := range eps {
			ep.Fail(fmt.Errorf("conduittest: the job still runs when the test's time is nearly over%s", b.String()))
		}
	})
	return func() { timer.Stop() }
}

// meet waits for all ranks of the job to call it, polling. It sends nothing.
func (p *peer) meet() {
	p.c.Helper()
	p.met++
	want := p.met * int64(p.size)
	if p.job.met.Add(1) == want {
		for r := range p.size {
			p.nudge(r)
		}
	}
	p.wait("the other ranks", func() bool { return p.job.met.Load() >= want })
}

// nudge makes rank look again after a change in the test's memory. Where there
// is no direct access, which is what Wake announces, rank is made to wake
// itself.
func (p *peer) nudge(rank int) {
	if p.c.offer.direct {
		p.ep.Wake(rank)
	} else {
		p.job.eps[rank].Wake(rank)
	}
}

// threads runs f(0..n-1) as goroutines of p's rank and waits for their end,
// polling.
func (p *peer) threads(n int, f func(i int)) {
	var left atomic.Int32
	left.Store(int32(n))
	for i := range n {
		conduits.Go(p.ep, func() {
			defer func() {
				left.Add(-1)
				p.ep.Wake(p.rank)
			}()
			f(i)
		})
	}
	p.wait("threads", func() bool { return left.Load() == 0 })
}

// stack is one rank of a job with the layers attached.
type stack struct {
	*peer
	am  *am.Endpoint
	bar *barrier.Barrier
	ext *extended.Endpoint
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
	c.run(n, cfg, func(p *peer) {
		s := &stack{peer: p, bar: barrier.NewWith(l.bar), ext: extended.New(l.ext)}
		a := am.Config{SegmentSize: l.segment, Rights: l.rights, Completer: s.ext, Debug: l.debug}
		if l.handlers != nil {
			a.Handlers = l.handlers(s)
		}
		a.Runtime = append(s.bar.Handlers(), s.ext.Handlers()...)
		e, err := am.Attach(p.ep, a)
		p.must(err)
		s.am = e
		p.must(s.bar.Bind(e))
		s.ext.Bind(e)
		s.barrier()
		body(s)
		s.barrier()
	})
}

// barrier is a barrier that must match.
func (s *stack) barrier() {
	s.c.Helper()
	s.must(s.bar.Barrier(0, barrier.Anonymous))
}

// gas runs fn under package gas on the conduit.
func (c *ctx) gas(cfg gas.Config, fn func(n *gas.Node) error) error {
	cfg.Conduit = c.name
	stop := func() {}
	*c.opened = func(eps []conduits.Endpoint) { stop = c.watch(eps) }
	defer func() {
		*c.opened = nil
		stop()
	}()
	return gas.Run(cfg, fn)
}
