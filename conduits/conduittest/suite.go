package conduittest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
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
	// The default keeps a seed within a second or two.
	flagPrograms = flag.Int("conduittest.programs", programsPerSeed, "how many random programs of each kind run for a seed, at most 150")

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
	suite *suite
	check string

	mu       sync.Mutex
	over     bool // the check has ended
	reported int
}

// mostReports is how often a check says what is wrong: a broken conduit breaks
// its promises again and again.
const mostReports = 20

// Errorf fails the check. What a goroutine that was left behind has to say when
// the check is over is dropped, as is what one reads no more.
func (c *ctx) Errorf(format string, args ...any) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	switch c.reported++; {
	case c.reported <= mostReports:
		c.T.Errorf(format, args...)
	case c.reported == mostReports+1:
		c.T.Errorf("and more, which is not printed")
	}
}

// Fatalf is Errorf that ends the goroutine.
func (c *ctx) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	c.FailNow()
}

// FailNow ends the goroutine and the check, if it is its own.
func (c *ctx) FailNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		runtime.Goexit()
	}
	c.T.FailNow()
}

// Logf prints while the check runs.
func (c *ctx) Logf(format string, args ...any) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.T.Logf(format, args...)
	}
}

// end closes the check.
func (c *ctx) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// guard runs f, which runs a job that w is to watch. A check that has failed ends
// with it: other jobs would say the same again.
func (c *ctx) guard(w *watch, f func()) {
	c.Helper()
	if c.offer.runner {
		f()
		if c.Failed() {
			c.FailNow()
		}
		return
	}
	stuck := w.run(*flagPatience, c.suite.end, func(text string) {
		c.suite.hung.Add(1)
		c.Errorf("%s", text)
	}, f)
	if stuck != "" {
		c.suite.giveUp = c.check + " left a job behind"
		c.Fatalf("%s", stuck)
	}
	if c.Failed() {
		c.FailNow()
	}
}

// Run checks the conduit that open opens.
func Run(t *testing.T, open Open) { RunGroups(t, open) }

// RunGroups is Run for some of the groups of checks, by their names; without names
// it is Run.
func RunGroups(t *testing.T, open Open, names ...string) {
	s := newSuite(t, open)
	for _, g := range groups {
		if len(names) > 0 && !slices.Contains(names, g.name) {
			continue
		}
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
	watch atomic.Pointer[watch] // of the job that package gas is about to open
	end   time.Time             // when jobs must end; zero: never

	hung   atomic.Int32 // jobs that did
	giveUp string       // why no more checks are to run, or ""
}

// mostHung is how many jobs may hang before the suite gives up: each costs the
// patience of whoever waits for the suite.
const mostHung = 3

// outcome is how a check ended, for the report.
type outcome struct {
	name   string
	seeds  int
	failed bool
	skip   string
}

var registered atomic.Int32

func newSuite(t *testing.T, open Open) *suite {
	s := &suite{open: open, name: fmt.Sprintf("conduittest-%d", registered.Add(1)), end: limit(t)}
	conduits.Register(conduits.Conduit{Name: s.name, Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		c.Seed = s.seed
		eps, err := open(n, c)
		if w := s.watch.Load(); err == nil && w != nil {
			w.job(eps)
		}
		return eps, err
	}})
	s.offer = probe(t, open, s.end)
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
	switch {
	case o.skip != "":
	case s.giveUp != "":
		o.skip = "not run: " + s.giveUp
	case s.hung.Load() >= mostHung:
		o.skip = fmt.Sprintf("not run: %d jobs have hung", mostHung)
	case !s.end.IsZero() && time.Now().After(s.end):
		t.Fatal("not run: the test's time (-timeout) is nearly over")
	}
	if o.skip != "" {
		t.Skip(o.skip)
	}
	for i := range o.seeds {
		seed := *flagSeed + uint64(i)
		s.seed = seed
		s.once(t, name, k, seed)
		if t.Failed() {
			return
		}
	}
}

// once runs a check with one seed.
func (s *suite) once(t *testing.T, name string, k check, seed uint64) {
	c := &ctx{T: t, open: s.open, offer: s.offer, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), suite: s, check: name}
	defer func() { // whether it returns or ends its goroutine
		c.end()
		if t.Failed() {
			t.Logf("run again: go test -run '%s' -conduittest.seed %d", pattern(t.Name()), seed)
		}
	}()
	k.run(c)
}

// pattern is what go test -run wants for the test called name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
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
	eps   []conduits.Endpoint
	met   atomic.Int64
	watch *watch
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
	p.step()
}

// step says that the job goes on; see watch.
func (p *peer) step() { p.job.watch.steps.Add(1) }

// up says that the rank is attached.
func (p *peer) up() { p.job.watch.set(p.rank, attached) }

// caught is for deferred functions: r is what recover gave.
func (p *peer) caught(r any) {
	if r != nil {
		p.c.Errorf("rank %d panics: %v\n%s", p.rank, r, debug.Stack())
		p.ep.Fail(fmt.Errorf("conduittest: panic: %v", r))
	}
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
	j := &job{eps: eps, watch: &watch{}}
	j.watch.job(eps)
	c.guard(j.watch, func() {
		conduits.Run(eps, func(i int) {
			p := &peer{c: c, ep: eps[i], rank: i, size: n, rng: rand.New(rand.NewPCG(c.seed, uint64(i)+1)), job: j}
			done := false
			defer func() {
				p.caught(recover())
				j.watch.set(i, ended)
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
	})
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
				p.caught(recover())
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
		p.up()
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
	c.Helper()
	cfg.Conduit = c.suite.name
	w := &watch{}
	c.suite.watch.Store(w)
	defer c.suite.watch.Store(nil)
	var err error
	c.guard(w, func() {
		err = gas.Run(cfg, func(n *gas.Node) error {
			w.set(n.Rank(), attached)
			defer w.set(n.Rank(), ended)
			return fn(n)
		})
	})
	return err
}
