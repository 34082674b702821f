package gas

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/extended/aggregate"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/perfetto"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Main runs fn as Run does with a zero Config, and ends the process as Exit
// does.
func Main(fn func(n *Node) error) { Exit(Run(Config{}, fn)) }

// Exit ends the process with what Run returned: status 0 for nil; else it prints
// "argon: " and the error to standard error and ends with status 1, or 2 if the
// program was started in a way that cannot be meant, such as with a variable
// ARGON_* that there is not, or a value that it cannot have. If a rank has ended the
// job by Node.Exit, it prints nothing and ends with the status given there. A rank
// that failed only because another one had ends with 121 under gasrun, and under
// other launchers with the status of that other one as far as it is known, else 1,
// so that the launcher's own status is that of the cause. There SIGTERM, which they
// send when a rank has failed, ends the process in the same way from the job's
// failure on, unless it is ignored: also before Run has returned.
func Exit(err error) { boot.Exit(err) }

// Run calls fn once for each rank that this process has in the job, each time on
// a goroutine of its own, and returns when all of them are done: in a process
// that gasrun started, or another launcher as conduits.Launched says, that is
// one rank; otherwise the process is a job by itself, with Config.Ranks ranks.
//
// A rank whose fn returns nil waits for all others in a final barrier. A rank
// fails if its fn returns an error, panics, or ends its goroutine
// (runtime.Goexit, and with it testing's FailNow): then what other ranks wait
// for ends with a *PeerError, and Run returns a *RankError for the rank of this
// process that failed first, in preference one that did not fail because of
// another. Run cannot stop goroutines: it returns when every fn has.
//
// A process may call Run many times, also at once, except that gasrun's ranks
// may call it once.
func Run(cfg Config, fn func(n *Node) error) error {
	return RunContext(context.Background(), cfg, fn)
}

// RunContext is Run whose job ends when ctx does: that is a failure of a rank of this
// process, with [context.Cause] of ctx as its reason. What any rank of the job waits
// for then, or later, ends with a *PeerError that names the rank and has the cause's
// text, and RunContext returns an error that matches the cause, such as
// [context.Canceled], when every fn has returned: a rank that computes and waits for
// nothing goes on until it returns, unless it looks at ctx itself. In other processes of
// the job the cause is a text, which errors.Is does not know. If the job has failed
// before ctx ends, RunContext returns that failure, as Run does.
//
// A job whose ctx ends before it begins calls no fn, also while ranks of other
// processes are missing. Those hear the cause only if this rank joins the job
// nevertheless, because they all come while its process still runs; else they wait for
// it until ARGON_JOIN_TIMEOUT, or until the launcher ends them. A job that is done
// before ctx ends returns nil.
//
// How far a simulated job has come when ctx ends is not decided by its seed. A deadline
// of ctx is in real time also there: a simulated job in which all ranks wait ends as a
// deadlock at once, unless the job has heard of ctx's end before.
func RunContext(ctx context.Context, cfg Config, fn func(n *Node) error) error {
	if fn == nil {
		return errs.BadArg("gas: Run without a function")
	}
	if err := boot.Override("gas", overridden{&cfg}); err != nil {
		return err
	}
	job := cfg.job()
	if cfg.Large {
		job.MaxSegment = 0 // what the conduit likes: nothing is attached
	}
	cfg.EnsureDefaults()
	r := &run{ctx: ctx, cfg: &cfg, fn: fn, findings: findings{out: cfg.Output}}
	r.seen, _ = profile.ParseOptions(cfg.Profile) // Override has validated it
	var err error
	if r.trace, err = cfg.openTrace(); err != nil {
		return errs.Misstarted(err)
	}
	err = boot.RunRanks(ctx, job, func(ep conduits.Endpoint) boot.Rank {
		r.ranks++
		return (*member)(newNode(watched(ep, r.seen, r.trace), r))
	})
	if r.trace != nil {
		r.trace.Close()
	}
	return err
}

// run is the state that the ranks of one call of Run share.
type run struct {
	ctx      context.Context
	cfg      *Config
	fn       func(n *Node) error
	ranks    int // of this process
	findings findings
	trace    *perfetto.File // nil: none
	seen     profile.Options
}

// member is a Node as package boot runs it.
type member Node

// Run is the rank's part in the job, from attach to leave. Its frame is on the stack of
// every rank that waits.
func (m *member) Run() error {
	n := (*Node)(m)
	if err := n.start(); err != nil {
		return err
	}
	n.running()
	p := profileOf(n)
	err := n.run.fn(n)
	p.stop(n)
	if err != nil {
		err = n.failed(err)
	} else if err = n.finished(); err == nil {
		err = n.leave()
	}
	if n.run.seen.Traffic {
		tellTraffic(n, err != nil)
	}
	if p != nil {
		p.finish(n, err != nil)
	}
	return err
}

// failed is the error of n's rank, whose function has returned err.
//
//go:noinline
func (n *Node) failed(err error) error {
	if first := n.sticky.err.Load(); first != nil {
		return *first
	}
	if n.ep.Err() == nil {
		return n.departed(err) // BarrierTry does not wait for that
	}
	return err
}

// finished is the error for work that the program's function has left undone when it returned.
//
//go:noinline
func (n *Node) finished() error {
	if first := n.sticky.err.Load(); first != nil {
		return *first
	}
	if n.debug {
		if err := n.forgotten(); err != nil {
			return err
		}
	}
	if err := n.unended(); err != nil {
		return err
	}
	return n.unreleased()
}

// Close ends what helps n's rank and takes back what peers could reach.
func (m *member) Close(killed bool) error {
	n := (*Node)(m)
	n.over()
	n.stop.Store(true)
	endContext(n)
	n.ep.Wake(n.rank)
	if !killed {
		n.awaitProgress()
	}
	for n := range n.each() {
		n.calls.failed()
	}
	if n.b != nil {
		n.b.Close()
	}
	if n.run.trace != nil { // the launcher may end the process of a job that has failed
		n.run.trace.Flush()
		if exit := new(ExitError); n.ep.Err() != nil && !(errors.As(n.ep.Err(), &exit) && exit.Code == 0) {
			n.run.trace.Dump()
		}
	}
	return n.withdraw()
}

// Diagnosis says how much the rank has under way, and what is pinned, if anything ever
// was. It brings the trace up to date, for a process that is asked where it is may be ended next.
func (m *member) Diagnosis() string {
	if m.run.trace != nil {
		m.run.trace.TryFlush()
	}
	if !m.work.open.Load() { // the rank is making what is looked at
		return ""
	}
	line := fmt.Sprintf("handles outstanding %d", m.x.Outstanding())
	if m.cache == nil {
		return line
	}
	var s firehose.Stats
	m.cache.Stats(&s)
	if s.Pins == 0 && s.RemoteHits+s.RemoteMisses == 0 {
		return line
	}
	l := m.cache.Limits()
	return line + fmt.Sprintf("; pinned %d bytes of %d, at most %d so far; holds %d firehoses, %d to a rank; %d hits, %d misses, %d had to wait",
		s.Pinned, uint64(l.Budget)*l.Bucket, s.PeakPinned, s.Held, l.Share, s.RemoteHits, s.RemoteMisses, s.RemoteWaits)
}

// Told writes the last that ranks of this process have done, if that is kept.
func (m *member) Told() {
	if m.run.trace != nil {
		m.run.trace.Dump()
	}
}

// Pending is how many handles are outstanding, and one more for implicit operations.
func (m *member) Pending() int {
	if !m.work.open.Load() {
		return 0
	}
	if m.x.Implicit().Unsynced() {
		return m.x.Outstanding() + 1
	}
	return m.x.Outstanding()
}

// start attaches n and starts what helps it.
func (n *Node) start() error {
	cfg := n.run.cfg
	if err := n.attach(cfg); err != nil {
		return err
	}
	n.work.open.Store(true)
	return n.help(cfg)
}

// help is start after the attach. Apart, as build is.
//
//go:noinline
func (n *Node) help(cfg *Config) error {
	if cfg.PinLock && cfg.PinHost == 0 {
		l := n.cache.Limits()
		if err := lockable(n.run.ranks, uint64(l.Budget)*l.Bucket, sys.LockLimit(), sys.LocksBeyondLimit()); err != nil {
			return err
		}
	}
	helpers := cfg.Workers
	if cfg.Progress {
		helpers = max(helpers, 1)
	}
	for range helpers {
		n.helped.Add(1)
		conduits.Go(n.ep, n.progress)
	}
	return nil
}

// attach builds the layers on n's endpoint, together with all other ranks.
func (n *Node) attach(cfg *Config) error {
	if err := n.build(cfg); err != nil {
		return err
	}
	// No rank sends anything to one that is not complete.
	if p, ok := n.ep.(*profiled); ok && p.options.On {
		p.rec.Open()
	}
	return n.meet(cfg)
}

// build is attach up to its barrier. Apart, for where a process has very many
// ranks the stack that a waiting one needs counts.
//
//go:noinline
func (n *Node) build(cfg *Config) error {
	size, err := n.segment(cfg)
	if err != nil {
		return err
	}
	c, err := n.layers(cfg)
	if err != nil {
		return err
	}
	if !cfg.Large {
		c.SegmentSize = size
	}
	if n.e, err = am.Attach(n.ep, *c); err != nil {
		return err
	}
	if err := n.enough(); err != nil {
		return err
	}
	return n.bind(size, cfg.Large)
}

// segment is how large the segment is to be that cfg asks for.
//
//go:noinline
func (n *Node) segment(cfg *Config) (uint64, error) {
	size := cfg.SegmentSize
	limit := n.ep.Limits().MaxSegment
	switch {
	case cfg.Large && size == 0:
		size = DefaultLarge
	case size == 0:
		size = min(DefaultSegment, limit)
	}
	size = pages(size)
	if size > limit && !cfg.Large {
		return 0, errs.Resource("gas: a segment of %d bytes: the job allows %d a rank (gasrun -segment, ARGON_SEGMENT)", size, limit)
	}
	return size, nil
}

// layers makes the layers above active messages, and what those are to be given.
//
//go:noinline
func (n *Node) layers(cfg *Config) (*am.Config, error) {
	if err := n.pins(cfg); err != nil {
		return nil, err
	}
	_, virtual := conduits.As[conduits.Runner](n.ep) // which names the ranks of a deadlock itself
	var barriers barrier.Config
	if !virtual {
		barriers.Waits = func(phase uint32) error { return n.all.coll.AtBarrier(phase) }
	}
	n.b = barrier.NewWith(barriers)
	colls := collective.Config{Names: &collNames}
	if !virtual {
		colls.Phases = n.b
	}
	n.all.coll = collective.New(colls)
	n.agg = aggregate.New(aggregate.Config{Package: "gas"})
	n.x = extended.New(extended.Config{AlwaysHandle: cfg.Debug, Origins: cfg.Debug, Firehose: n.cache, Space: n.space, LockMemory: n.lockMemory})
	runtimeEntries := append(n.b.Handlers(), n.x.Handlers()...)
	runtimeEntries = append(runtimeEntries, n.handlers()...)
	runtimeEntries = append(runtimeEntries, n.all.coll.Handlers()...)
	runtimeEntries = append(runtimeEntries, n.agg.Handlers()...)
	if p, ok := n.ep.(*profiled); ok {
		p.entries = [][]am.Entry{runtimeEntries, cfg.Handlers}
	}
	return &am.Config{
		Handlers:  append([]am.Entry(nil), cfg.Handlers...),
		Runtime:   runtimeEntries,
		Lock:      cfg.locks(),
		Completer: n.x,
		Exposer:   n.x,
		User:      n,
		Describe:  n.describe,
		Lane:      n.openLane,
		Work:      &n.work,
		Debug:     cfg.Debug,
	}, nil
}

// bind gives the layers the endpoint that they work with.
//
//go:noinline
func (n *Node) bind(size uint64, large bool) error {
	if err := n.b.Bind(n.e); err != nil {
		return err
	}
	if err := n.cache.Bind(n.e); err != nil { // see meet
		return err
	}
	n.x.Bind(n.e)
	n.all.coll.Bind(n.e)
	n.agg.Bind(n.e, gate{n.b})
	for n := range n.each() { // messages may have come to lanes already
		n.views = segment.NewViews(n.ep.Views())
	}
	return n.makeHeap(size, large)
}

// pages is size rounded up to whole pages.
func pages(size uint64) uint64 {
	return (size + segment.PageSize - 1) &^ (segment.PageSize - 1)
}

// forgotten is the error of handles that the program has not synchronized, and of
// access regions that are open, which Config.Debug finds.
//
//go:noinline
func (n *Node) forgotten() error {
	if n.x.Implicit().Unsynced() {
		return errs.NotReady("gas: rank %d returned with implicit operations (NBI) that SyncImplicit has not waited for: whether they failed is not known (found by Config.Debug, ARGON_DEBUG)", n.rank)
	}
	handles, regions, list := n.x.Forgotten()
	if handles+regions == 0 {
		return nil
	}
	return errs.NotReady("gas: rank %d returned with %d handles that were not synchronized and %d access regions that were not ended: %s; each non-zero Handle is given to Sync once (found by Config.Debug, ARGON_DEBUG)",
		n.rank, handles, regions, strings.Join(list, "; "))
}

// leave waits until all ranks leave. It does so in the barrier and as a
// collective call at once, so that ranks in either of them still learn
// that this rank will not come.
func (n *Node) leave() error {
	if err := n.ep.Err(); err != nil { // others, which may wait for this rank, know of it
		return err
	}
	if err := n.b.Notify(leaveID, 0); errors.Is(err, ErrNotReady) {
		return fmt.Errorf("gas: the rank's function returned during a barrier: %w", err)
	} else if err != nil {
		return err
	}
	told := n.all.coll.Mismatch() != nil // the program, of collective calls that did not match
	err := n.same(opLeave, 0, 0, nil, 0, 0)
	if err != nil && !told && !errors.Is(err, collective.ErrStopped) {
		return err
	}
	err = n.b.Wait(leaveID, 0)
	if errors.Is(err, ErrBarrierMismatch) {
		return n.inWords(fmt.Sprintf("gas: rank %d has returned from the program's function while others are in a barrier", n.rank), err)
	}
	return err
}

// described is a mismatch of barriers whose identifiers are said in words.
type described struct{ error }

func (d described) Unwrap() error { return d.error }

// inWords says in words what the barriers are that err, a mismatch, names by their identifiers:
// those of the program, and no others that this package has.
func (n *Node) inWords(what string, err error) error {
	var m *barrier.MismatchError
	if !errors.As(err, &m) || !m.Differ {
		return fmt.Errorf("%s: %w", what, err)
	}
	return described{fmt.Errorf("%s: %w (id %d is %s, id %d is %s)", what, err, m.IDs[0], n.barrierName(m.IDs[0]), m.IDs[1], n.barrierName(m.IDs[1]))}
}

// barrierName is the name of the barrier with an identifier in messages.
func (n *Node) barrierName(id uint32) string {
	switch {
	case id == barrierID:
		return "a barrier"
	case id == leaveID:
		return "the end of the program's function"
	case id == quiesceID:
		return "Quiesce"
	case id > quiesceID || id <= mailboxID:
		return "the start of the job"
	}
	if name, ok := n.agg.Name(id - mailboxID); ok {
		return fmt.Sprintf("a call for mailbox or batch %q", name)
	}
	return "a call for a mailbox or batch that is deleted on this rank"
}

// departed turns a mismatch of this package's barriers into the failure of the
// rank that has returned from the program's function meanwhile: that rank's barrier
// does not match either, so it fails the job, and names itself.
func (n *Node) departed(err error) error {
	m := leaveMismatch(err)
	if m == nil {
		if m := new(barrier.MismatchError); errors.As(err, &m) && m.Differ && !errors.As(err, new(described)) {
			return n.inWords("gas: ranks are in different collective calls", err)
		}
		return err
	}
	return n.named(m, err, n.e.Wait(returned{}, func() bool { return false }))
}

// departedYet is departed that does not wait: as long as the job has not failed, it
// does not say which rank has returned.
func (n *Node) departedYet(err error) error {
	m := leaveMismatch(err)
	if m == nil {
		return err
	}
	return n.named(m, err, n.ep.Err())
}

// leaveMismatch is the mismatch that err is because of a rank that has returned from
// the program's function; nil if it is none.
func leaveMismatch(err error) *barrier.MismatchError {
	var m *barrier.MismatchError
	if !errors.As(err, &m) || !m.Differ || m.IDs[0] != leaveID && m.IDs[1] != leaveID {
		return nil
	}
	return m
}

// named is mismatch m, which is err, with the rank that the job's failure names, if it names
// one.
func (n *Node) named(m *barrier.MismatchError, err, failure error) error {
	var p *PeerError
	if errors.As(failure, &p) {
		return &PeerError{Rank: p.Rank, Op: "barrier phase " + strconv.FormatUint(uint64(m.Phase), 10), Err: mismatched{p.Err}}
	}
	return n.inWords("gas: a rank has returned from the program's function while others are in a barrier", err)
}

// returned is the wait of departed, as a conduits.Blocked.
type returned struct{}

func (returned) Blocked() string {
	return "barrier: to hear which rank has returned from the program's function"
}

// mismatched is another rank's failure that is a mismatch of barriers here.
type mismatched struct{ error }

func (m mismatched) Unwrap() error        { return m.error }
func (m mismatched) Is(target error) bool { return target == ErrBarrierMismatch }

// progress answers peers, and runs what was put off, until the rank leaves.
func (n *Node) progress() {
	returned := false
	defer func() {
		if !returned {
			p := recover()
			if p != nil || n.ep.Err() == nil { // a simulator ends so the goroutines of a rank that dies
				n.ep.Fail(backgroundFailure(p))
			}
		}
		n.helped.Add(-1)
		n.ep.Wake(n.rank)
	}()
	err := n.e.WaitFor(progressing{}, conduits.Cond{Work: true, Ready: n.stop.Load})
	returned = true
	if err != nil {
		for n := range n.each() {
			n.calls.failed()
		}
	}
}

// backgroundFailure is how a rank fails of which a task, or a handler, has panicked with p
// on a progress goroutine, or ended that if p is nil.
func backgroundFailure(p any) error {
	switch e := p.(type) {
	case nil:
		return errors.New("gas: a task or a handler ended its goroutine (runtime.Goexit), one of Config.Progress or Config.Workers")
	case error:
		return fmt.Errorf("gas: panic on a goroutine of Config.Progress or Config.Workers: %w\n%s", e, innermost(string(debug.Stack())))
	default:
		return fmt.Errorf("gas: panic on a goroutine of Config.Progress or Config.Workers: %v\n%s", e, innermost(string(debug.Stack())))
	}
}

// progressing describes what a progress goroutine waits for.
type progressing struct{}

func (progressing) Blocked() string {
	return "nothing, to answer peers and run tasks (Config.Progress, Config.Workers)"
}

// awaitProgress returns when the progress goroutines, told to stop, have ended.
// It is conduits.Wait that a failure of the job does not end, for the goroutines
// may take a while to notice that.
func (n *Node) awaitProgress() {
	for idle := 0; n.helped.Load() != 0; {
		if n.ep.Spin() > 0 {
			idle = 0
			continue
		}
		if n.ep.Idle(idle) {
			idle++
			continue
		}
		t := n.ep.Arm(progressing{})
		if n.helped.Load() == 0 || n.ep.Poll() > 0 {
			n.ep.Disarm(t)
			continue
		}
		n.ep.Park(t)
		idle = 0
	}
}
