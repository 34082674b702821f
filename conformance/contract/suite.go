package contract

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
)

var (
	flagSeeds = flag.Int("conformance.seeds", 1, "how many seeds every randomized check runs with")
	flagSeed  = flag.Uint64("conformance.seed", 1, "the first of them")
	flagRound = flag.Int("conformance.rounds", unlessRaced(5000, 1000), "how often the checks of waking sleep and wake")
)

// unlessRaced is n, and less under the race detector: it sees the same accesses in each round,
// and wake-ups that are lost are found without it, by more rounds in less time.
func unlessRaced(n, less int) int {
	if conc.Race {
		return less
	}
	return n
}

// Open opens all ranks of a new job in this process; it is the Local of a
// conduits.Conduit. Config.Seed is to be used by a conduit that decides
// anything by chance.
type Open func(n int, c conduits.Config) ([]conduits.Endpoint, error)

// Check is one property.
type Check struct {
	Name string
	// Seeded checks run once for each seed; others once.
	Seeded bool
	// skip says why the check does not apply to a conduit, or "". May be nil.
	skip func(o *Offer) string
	Run  func(c *Case)
}

// Case is one execution of a check.
type Case struct {
	*testing.T
	Open  Open       // the conduit
	Offer *Offer     // what it offers
	Seed  uint64     // conduits.Config.Seed of the check's jobs
	RNG   *rand.Rand // for the check's own goroutine, not for ranks
	suite *Suite
	check string

	mu       sync.Mutex
	over     bool // the check has ended
	reported int
}

// mostReports is how many faults a check reports: a broken conduit breaks
// its promises again and again.
const mostReports = 20

// Errorf fails the check. Reports after mostReports, and those of goroutines that were left
// behind when the check was over, are dropped.
func (c *Case) Errorf(format string, args ...any) {
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
func (c *Case) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	c.FailNow()
}

// FailNow ends the goroutine and the check, if it is its own.
func (c *Case) FailNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		runtime.Goexit()
	}
	c.T.FailNow()
}

// Logf prints while the check runs.
func (c *Case) Logf(format string, args ...any) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.T.Logf(format, args...)
	}
}

// close ends the check.
func (c *Case) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// guard runs f, which runs a job that w is to watch. A check that has failed ends
// with it: other jobs would say the same again.
func (c *Case) guard(w *Watch, f func()) {
	c.Helper()
	if c.Offer.Runner {
		f()
		if c.Failed() {
			c.FailNow()
		}
		return
	}
	stuck := w.Guard(c.Patience(), func(text string) {
		c.suite.hung.Add(1)
		c.Errorf("%s", text)
	}, f)
	if stuck != "" {
		c.GiveUp()
		c.Fatalf("%s", stuck)
	}
	if c.Failed() {
		c.FailNow()
	}
}

// Patience is how long jobs of the check may stand still, and until when they
// must end.
func (c *Case) Patience() Patience { return Patience{*flagPatience, c.suite.end} }

// GiveUp says that the check has left a job behind: no more checks are to run.
func (c *Case) GiveUp() { c.suite.giveUp = c.check + " left a job behind" }

// Named runs f, which runs a job on the conduit that is registered as name. f
// tells w which ranks are attached and which have ended.
func (c *Case) Named(f func(name string, w *Watch)) {
	c.Helper()
	w := &Watch{}
	c.suite.watch.Store(w)
	defer c.suite.watch.Store(nil)
	c.guard(w, func() { f(c.suite.name, w) })
}

// Suite runs checks on one conduit and reports on them.
type Suite struct {
	open  Open
	offer *Offer
	name  string
	seed  uint64 // of the check that runs, for jobs that are opened by name
	ran   []outcome
	watch atomic.Pointer[Watch] // of the job that is about to be opened by name
	end   time.Time             // when jobs must end; zero: never

	hung   atomic.Int32 // jobs that did
	giveUp string       // why no more checks are to run, or ""
}

// mostHung is how many jobs may hang before the suite gives up: each costs the
// time of a limit.
const mostHung = 3

// outcome is how a check ended, for the report.
type outcome struct {
	name   string
	seeds  int
	failed bool
	skip   string
}

var registered atomic.Int32

// New looks at the conduit that open opens, and registers it under a name for jobs
// that are opened by one.
func New(t *testing.T, open Open) *Suite {
	s := &Suite{open: open, name: fmt.Sprintf("conformance-%d", registered.Add(1)), end: limit(t)}
	conduits.Register(conduits.Conduit{Name: s.name, Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		c.Seed = s.seed
		eps, err := open(n, c)
		if w := s.watch.Load(); err == nil && w != nil {
			w.Job(eps)
		}
		return eps, err
	}})
	s.offer = probe(t, open, s.end)
	return s
}

// Run runs the checks of one group as subtests.
func (s *Suite) Run(t *testing.T, group string, checks []Check) {
	t.Run(group, func(t *testing.T) {
		for _, k := range checks {
			t.Run(k.Name, func(t *testing.T) { s.check(t, group+"/"+k.Name, k) })
		}
	})
}

func (s *Suite) check(t *testing.T, name string, k Check) {
	o := outcome{name: name, seeds: 1}
	if k.Seeded {
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
func (s *Suite) once(t *testing.T, name string, k Check, seed uint64) {
	c := &Case{T: t, Open: s.open, Offer: s.offer, Seed: seed, RNG: rand.New(rand.NewPCG(seed, 0)), suite: s, check: name}
	defer func() { // whether it returns or ends its goroutine
		c.close()
		if t.Failed() {
			t.Logf("run again: go test -run '%s' -conformance.seed %d", pattern(t.Name()), seed)
		}
	}()
	k.Run(c)
}

// pattern is the argument of go test -run for the test called name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// Peer is one rank of a job on bare endpoints.
type Peer struct {
	C    *Case
	EP   conduits.Endpoint
	Rank int
	Size int        // ranks of the job
	RNG  *rand.Rand // for the rank's own goroutine
	job  *job
	met  int64 // calls of meet
}

// job is the state that the ranks of one run share in the test's memory.
type job struct {
	eps   []conduits.Endpoint
	met   atomic.Int64
	watch *Watch

	mu   sync.Mutex
	maps []func() error // unmap what peer.mapped has returned
}

// Fatalf fails the test and the job, so that no rank waits for this one, and
// ends the rank.
func (p *Peer) Fatalf(format string, args ...any) {
	p.C.Helper()
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Errorf fails the test and the job.
func (p *Peer) Errorf(format string, args ...any) {
	p.C.Helper()
	p.C.Errorf("rank %d: %s", p.Rank, fmt.Sprintf(format, args...))
	p.EP.Fail(fmt.Errorf("conformance: "+format, args...))
}

// Must ends the rank if err is not nil. An error that only says that another
// rank has failed is not reported again.
func (p *Peer) Must(err error) {
	p.C.Helper()
	switch {
	case err == nil:
	case p.C.Failed():
		runtime.Goexit()
	default:
		p.Fatalf("%v", err)
	}
}

// Wait is conduits.Wait that must not fail.
func (p *Peer) Wait(what string, cond func() bool) {
	p.C.Helper()
	p.Must(conduits.Wait(p.EP, Waiting(what), cond))
	p.step()
}

// step says that the job goes on; see watch.
func (p *Peer) step() { p.job.watch.Step() }

// Up says that the rank is attached.
func (p *Peer) Up() { p.job.watch.Up(p.Rank) }

// caught is for deferred functions: r is what recover gave.
func (p *Peer) caught(r any) {
	if r != nil {
		p.C.Errorf("rank %d panics: %v\n%s", p.Rank, r, debug.Stack())
		p.EP.Fail(fmt.Errorf("conformance: panic: %v", r))
	}
}

// Waiting is the reason for which a rank of a check waits, as a conduits.Blocked.
type Waiting string

// Blocked is the reason, after the name of the package.
func (w Waiting) Blocked() string { return "conformance: " + string(w) }

// Job opens a job of n ranks, runs body as each of them and closes the
// endpoints. Endpoints are not attached. It returns when all have ended.
func (c *Case) Job(n int, cfg conduits.Config, body func(p *Peer)) {
	c.Helper()
	cfg.Seed = c.Seed
	eps, err := c.Open(n, cfg)
	if err != nil {
		c.Fatalf("open %d ranks: %v", n, err)
	}
	if len(eps) != n {
		c.Fatalf("open of %d ranks gave %d endpoints", n, len(eps))
	}
	j := &job{eps: eps, watch: &Watch{}}
	j.watch.Job(eps)
	c.guard(j.watch, func() {
		conduits.Run(eps, func(i int) {
			p := &Peer{C: c, EP: eps[i], Rank: i, Size: n, RNG: rand.New(rand.NewPCG(c.Seed, uint64(i)+1)), job: j}
			done := false
			defer func() {
				p.caught(recover())
				j.watch.Over(i)
				if !done && !c.Failed() {
					p.Errorf("ended its goroutine")
				}
				if err := p.EP.Close(); err != nil && !errors.Is(err, conduits.ErrClosed) && !c.Failed() {
					c.Errorf("rank %d: close: %v", i, err)
				}
			}()
			body(p)
			done = true
		})
	})
	for _, unmap := range j.maps {
		if c.Failed() {
			break // transfers of it may still be under way
		}
		_ = unmap() // an error says that the rank has done it
	}
}

// Meet waits for all ranks of the job to call it, polling. It sends nothing.
func (p *Peer) Meet() {
	p.C.Helper()
	p.met++
	want := p.met * int64(p.Size)
	if p.job.met.Add(1) == want {
		for r := range p.Size {
			p.nudge(r)
		}
	}
	p.Wait("the other ranks", func() bool { return p.job.met.Load() >= want })
	if conc.Race { // It knows what another goroutine of the endpoint did to this rank's memory for a peer by its lock alone.
		p.EP.Stats(new(conduits.Stats))
	}
}

// nudge makes rank look again after a change in the test's memory. Where there
// is no direct access, which is what Wake announces, rank is made to wake
// itself.
func (p *Peer) nudge(rank int) {
	if p.C.Offer.Direct {
		p.EP.Wake(rank)
	} else {
		p.job.eps[rank].Wake(rank)
	}
}

// Threads runs f(0..n-1) as goroutines of p's rank and waits for their end,
// polling.
func (p *Peer) Threads(n int, f func(i int)) {
	var left atomic.Int32
	left.Store(int32(n))
	for i := range n {
		conduits.Go(p.EP, func() {
			defer func() {
				p.caught(recover())
				left.Add(-1)
				p.EP.Wake(p.Rank)
			}()
			f(i)
		})
	}
	p.Wait("threads", func() bool { return left.Load() == 0 })
}

// Random is a generator for what the seed and parts determine, so that all
// ranks that ask for the same draw the same.
func (c *Case) Random(parts ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, Mix(parts...)))
}

// Wants reports an error that is not, or does not wrap, want.
func (p *Peer) Wants(err, want error, format string, args ...any) {
	p.C.Helper()
	if !errors.Is(err, want) {
		p.Fatalf(format+": error %v, want one that wraps %q", append(args, err, want)...)
	}
}

// Names checks that err says that rank failed.
func (p *Peer) Names(err error, rank int, format string, args ...any) {
	p.C.Helper()
	var pe *conduits.PeerError
	if !errors.As(err, &pe) || pe.Rank != rank {
		p.Fatalf(format+": error %v, want a PeerError of rank %d", append(args, err, rank)...)
	}
}
