package gas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp" // the conduits that are always there
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/env"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/jobenv"
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
func Exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.Code)
	}
	fmt.Fprintf(os.Stderr, "argon: %v\n", err)
	os.Exit(status(err))
}

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
	var verbose io.Writer
	if os.Getenv("ARGON_VERBOSEENV") == "1" {
		if r := os.Getenv(jobenv.Rank); r == "" || r == "0" { // once is enough
			verbose = os.Stderr
		}
	}
	// Before the environment has a say, a fault is the program's.
	wrong := cfg.Validate() != nil
	if err := errors.Join(env.Check(os.Environ(), "", false, "gas", ""), cfg.fromEnv(os.Getenv, verbose)); err != nil {
		return errs.Misstarted(err)
	}
	place, launched, err := conduits.Launched(os.Getenv)
	if err != nil {
		return errs.Misstarted(err)
	}
	if launched && cfg.Conduit == "" {
		cfg.Conduit = place.Env(jobenv.Conduit)
	}
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		if wrong {
			return err
		}
		return errs.Misstarted(err)
	}
	cd, err := conduits.Lookup(cfg.Conduit)
	if err != nil {
		if os.Getenv(jobenv.Conduit) == "" {
			return err
		}
		return errs.Misstarted(err)
	}
	if err := env.Check(os.Environ(), cd.Name, false, "gas", ""); err != nil {
		return errs.Misstarted(err)
	}
	if launched {
		keepInherited(place)
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if launched {
		return runLaunched(ctx, cfg, cd, place, fn)
	}
	// gasrun starts one process for a simulated job, and knows what it does.
	if os.Getenv(jobenv.JobID) == "" {
		remark, err := alone(os.Getenv)
		if err != nil {
			return err
		}
		if remark != "" {
			fmt.Fprintln(cfg.Output, "argon: "+remark)
		}
	}
	if cd.Local == nil {
		return errs.NotSupported("gas: conduit %s cannot run ranks inside one process; start the program with gasrun", cd.Name)
	}
	attached := pages(cfg.SegmentSize)
	if cfg.Large {
		attached = 0 // what the conduit likes: nothing is attached
	}
	eps, err := cd.Local(cfg.Ranks, conduits.Config{MaxSegment: attached})
	if err != nil {
		return errs.Misstarted(err)
	}
	return runRanks(ctx, &cfg, eps, fn)
}

// joined is set when this process has taken its rank.
var joined atomic.Bool

// keepInherited has programs that this one runs not inherit what the launcher has left
// it open: the job's memory and its key.
func keepInherited(j conduits.Job) {
	if fd, err := strconv.Atoi(j.Env(jobenv.SegFD)); err == nil {
		syscall.CloseOnExec(fd)
	}
	if s, ok := strings.CutPrefix(j.Env(jobenv.JobKeyFile), jobenv.FDFolder); ok {
		if fd, err := strconv.Atoi(s); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
}

// runLaunched runs the one rank of a process that a launcher started.
func runLaunched(ctx context.Context, cfg Config, cd conduits.Conduit, j conduits.Job, fn func(n *Node) error) error {
	if joined.Swap(true) {
		return errs.NotReady("gas: Run called again: a process of a launched job is rank %d once", j.Rank)
	}
	if cd.Join == nil {
		return errs.NotSupported("gas: conduit %s cannot join a launched job", cd.Name)
	}
	if err := watchLauncher(j.Env(jobenv.CtlFD)); err != nil {
		return errs.Misstarted(err)
	}
	if j.Env(jobenv.CtlFD) == "" {
		foreign.Store(true)
		j.Failed = func(cause *conduits.PeerError) { obey(j.Rank, cause) }
	}
	if j.Env(jobenv.Freeze) == "1" {
		fmt.Fprintf(cfg.Output, "argon: rank %d: stopped before it joins; debug or continue (kill -CONT) process %d\n", j.Rank, os.Getpid())
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return fmt.Errorf("gas: %s: %w", jobenv.Freeze, err)
		}
	}
	ep, err := joinJob(ctx, cd, j)
	if err != nil {
		return err
	}
	return runRanks(ctx, &cfg, []conduits.Endpoint{ep}, fn)
}

// ended is the error of a job that the end of ctx has ended.
func ended(ctx context.Context) error {
	return fmt.Errorf("gas: the context of the job has ended: %w", context.Cause(ctx))
}

// joinJob is cd.Join that the end of ctx ends. Nothing stops Join: the rank fails, and
// leaves, when it has joined after all, so that the others hear the cause, unless the
// process has ended before.
func joinJob(ctx context.Context, cd conduits.Conduit, j conduits.Job) (conduits.Endpoint, error) {
	if ctx.Done() == nil {
		return cd.Join(j, conduits.Config{})
	}
	var ep conduits.Endpoint
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ep, err = cd.Join(j, conduits.Config{})
	}()
	select {
	case <-done:
		return ep, err
	case <-ctx.Done():
	}
	go func() {
		if <-done; err == nil {
			ep.Fail(ended(ctx))
			_ = ep.Close() // nobody is left to tell
		}
	}()
	return nil, ended(ctx)
}

// watchLauncher ends the process when the launcher is gone, which closes the
// other end of the pipe that it left us.
func watchLauncher(s string) error {
	if s == "" {
		return nil
	}
	fd, err := strconv.Atoi(s)
	if err != nil || fd < 0 {
		return errs.BadArg("gas: %s=%q is no file descriptor; gasrun sets it", jobenv.CtlFD, s)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return errs.BadArg("gas: %s=%d is not open (%v): environment of a rank without the rank; gasrun sets it", jobenv.CtlFD, fd, err)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "control pipe")
	go func() {
		// Whatever comes is for later versions; the end is for us.
		io.Copy(io.Discard, f)
		fmt.Fprintln(os.Stderr, "argon: the launcher is gone")
		os.Exit(jobenv.StatusPeerFailed)
	}()
	return nil
}

// run is the ranks of one call of Run.
type run struct {
	cfg   *Config
	nodes []*Node

	mu    sync.Mutex
	first *RankError // of all failures the one to return
	asked error      // what the context's end has asked a simulated rank to fail with
	ended error      // what the context has ended the job with, nil if it has not
}

// runRanks runs fn on eps and closes them.
func runRanks(ctx context.Context, cfg *Config, eps []conduits.Endpoint, fn func(n *Node) error) error {
	r := &run{cfg: cfg}
	var found *findings
	if cfg.Debug {
		found = &findings{out: cfg.Output}
	}
	for _, ep := range eps {
		n := &Node{ep: ep, rank: ep.Rank(), size: ep.Size(), debug: cfg.Debug, findings: found}
		r.nodes = append(r.nodes, n)
	}
	forget := diagnose(r)
	defer forget()
	stop := context.AfterFunc(ctx, func() { r.interrupt(ended(ctx)) })
	conduits.Run(eps, func(i int) { r.rank(r.nodes[i], fn) })
	stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.first == nil:
		return nil
	case r.ended != nil && !errors.Is(r.first, context.Cause(ctx)):
		// What fails came as a text, by memory or messages.
		return &endedError{r.first, r.ended}
	}
	return r.first
}

// endedError is the failure of a job whose context has ended.
type endedError struct {
	*RankError
	cause error
}

func (e *endedError) Unwrap() []error { return []error{e.RankError, e.cause} }

// interrupt fails the job from outside, if a rank of it is still there and none is
// known to have failed.
func (r *run) interrupt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var there *Node
	for _, n := range r.nodes {
		if n.closed {
			continue
		}
		if there == nil {
			there = n
		}
		// Only its own goroutines may ask a simulated rank, see fail.
		if _, simulated := n.ep.(conduits.Interrupter); !simulated && n.ep.Err() != nil {
			return
		}
	}
	if there == nil || r.first != nil {
		return
	}
	if _, simulated := there.ep.(conduits.Interrupter); simulated {
		r.asked = err
	} else {
		r.ended = err
	}
	conduits.Interrupt(there.ep, err)
}

// rank runs fn as n, from attach to close. It returns only by returning, unless
// fn ends the goroutine.
func (r *run) rank(n *Node, fn func(n *Node) error) {
	doing := "attach"
	defer func() {
		killed := false
		if doing != "" {
			killed = r.broken(n, doing, recover())
		}
		r.close(n, killed)
	}()
	err := r.startNode(n)
	if err == nil {
		doing = "the rank's function"
		err = fn(n)
		doing = "leaving"
		if err != nil && n.ep.Err() == nil {
			err = n.departed(err) // BarrierTry does not wait for that
		}
		if n.debug && err == nil {
			err = n.forgotten()
		}
		if err == nil {
			err = n.unreleased()
		}
		if err == nil {
			err = n.leave()
		}
		if err == nil {
			// A rank that broke a rule in a handler has failed, although its function
			// may have dropped the error and everything waited for has come.
			err = n.ep.Err()
		}
	}
	doing = ""
	if err != nil {
		r.fail(n, &RankError{Rank: n.rank, Err: err})
	}
}

// broken fails n's rank, which has ended while doing something, by panic with p or
// by runtime.Goexit. killed says that a simulator has ended it.
//
//go:noinline
func (r *run) broken(n *Node, doing string, p any) (killed bool) {
	err := &RankError{Rank: n.rank}
	if p != nil {
		err.Err, err.Stack = fmt.Errorf("panic: %v", p), panicStack(debug.Stack())
		if e, ok := p.(error); ok {
			err.Err = fmt.Errorf("panic: %w", e)
		}
	} else if err.Err = n.ep.Err(); err.Err == nil {
		err.Err = fmt.Errorf("%s ended its goroutine (runtime.Goexit)", doing)
	} else {
		// A simulator ends so all goroutines of a rank that it lets die.
		killed = !err.followed()
	}
	r.fail(n, err)
	return killed
}

// close ends n's part in the job.
//
//go:noinline
func (r *run) close(n *Node, killed bool) {
	n.stop.Store(true)
	n.ep.Wake(n.rank)
	if !killed {
		n.awaitProgress()
	}
	n.calls.failed()
	r.mu.Lock()
	n.closed = true
	r.mu.Unlock()
	if err := errors.Join(n.withdraw(), n.ep.Close()); err != nil && n.ep.Err() == nil {
		r.fail(n, &RankError{Rank: n.rank, Err: err})
	}
}

// startNode attaches n and starts what helps it.
func (r *run) startNode(n *Node) error {
	if err := n.attach(r.cfg); err != nil {
		return err
	}
	if r.cfg.PinLock {
		l := n.cache.Limits()
		if err := lockable(len(r.nodes), uint64(l.Budget)*l.Bucket, sys.LockLimit(), sys.LocksBeyondLimit()); err != nil {
			return err
		}
	}
	if r.cfg.Progress {
		n.helped.Store(true)
		conduits.Go(n.ep, n.progress)
	}
	return nil
}

// panicStack leaves out of the stack of a function that has recovered from a
// panic what is above the panic and what is below the program's function, which
// always look the same. A stack of another form is left as it is.
func panicStack(s []byte) []byte {
	head, rest, ok := bytes.Cut(s, []byte("\n"))
	at := bytes.Index(rest, []byte("\npanic("))
	if end := bytes.LastIndex(rest, []byte("\ngithub.com/argon-go/argon/gas.(*run).rank(")); ok && at >= 0 && end > at {
		return append(append(head[:len(head):len(head)], '\n'), rest[at+1:end+1]...)
	}
	return s
}

// fail notes that n's rank has failed and tells the other ranks.
func (r *run) fail(n *Node, err *RankError) {
	job := n.ep.Err()
	if errors.Is(job, ErrExit) && !errors.Is(err.Err, ErrExit) {
		err = &RankError{Rank: n.rank, Err: job} // the rest is what comes of it
	}
	r.mu.Lock()
	if r.asked != nil && errors.Is(job, r.asked) {
		r.ended = r.asked
	}
	if r.first == nil || r.first.followed() && !err.followed() {
		r.first = err
	}
	r.mu.Unlock()
	// A rank that fails because of another one would only hide the cause.
	if n.ep.Err() != nil {
		return
	}
	var p *PeerError
	if errors.As(err.Err, &p) && p.Rank >= 0 && p.Rank < n.size && p.Rank != n.rank {
		n.ep.Blame(p.Rank, reason(n.rank, p)) // it has left the job, but this one needed it
		return
	}
	n.ep.Fail(err.Err)
}

// reason is why p's rank has failed, as rank knows it. A program may return a
// PeerError of its own without one.
func reason(rank int, p *PeerError) error {
	if p.Err != nil {
		return p.Err
	}
	return fmt.Errorf("rank %d says so without a reason (PeerError.Err)", rank)
}

// attach builds the layers on n's endpoint, together with all other ranks.
func (n *Node) attach(cfg *Config) error {
	if err := n.build(cfg); err != nil {
		return err
	}
	// Nobody sends anything to a rank that is not complete.
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
	n.b = barrier.New()
	n.x = extended.New(extended.Config{AlwaysHandle: cfg.Debug, Origins: cfg.Debug, Firehose: n.cache, Space: n.space, LockMemory: n.lockMemory})
	runtimeEntries := append(n.b.Handlers(), n.x.Handlers()...)
	runtimeEntries = append(runtimeEntries, n.handlers()...)
	runtimeEntries = append(runtimeEntries, n.coll.handlers()...)
	return &am.Config{
		Handlers:  append([]am.Entry(nil), cfg.Handlers...),
		Runtime:   runtimeEntries,
		Lock:      cfg.PinLock,
		Completer: n.x,
		Exposer:   n.x,
		User:      n,
		Describe:  n.describe,
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
	n.coll.bind(n.e)
	first, views := n.ep.Views()
	n.first, n.views = uint64(first), views
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
	handles, regions, list := n.x.Forgotten()
	if handles+regions == 0 {
		return nil
	}
	return errs.NotReady("gas: rank %d returned with %d handles that were not synchronized and %d access regions that were not ended: %s; each non-zero Handle is given to Sync once (found by Config.Debug, ARGON_DEBUG)",
		n.rank, handles, regions, strings.Join(list, "; "))
}

// leave waits until all ranks leave. It does so in the barrier and as a
// collective call at once, so that whoever is in either of them still learns
// that this rank will not come.
func (n *Node) leave() error {
	if err := n.ep.Err(); err != nil { // others, who may wait for this rank, know of it
		return err
	}
	if err := n.b.Notify(leaveID, 0); errors.Is(err, ErrNotReady) {
		return fmt.Errorf("gas: the rank's function returned during a barrier: %w", err)
	} else if err != nil {
		return err
	}
	// If collectives did not match, the program has been told.
	n.coll.leaving = n.b
	err := n.same(opLeave, 0, 0, nil, 0, 0)
	n.coll.leaving = nil
	if err != nil && n.coll.mismatch() == nil && !errors.Is(err, errLeaving) {
		return err
	}
	err = n.b.Wait(leaveID, 0)
	if errors.Is(err, ErrBarrierMismatch) {
		return fmt.Errorf("gas: rank %d has returned from the program's function while others are in a barrier: %w", n.rank, describeLeave(err))
	}
	return err
}

// describeLeave says in words what the identifiers of this package's barriers are.
func describeLeave(err error) error {
	return fmt.Errorf("%w (id %d is a barrier, id %d the end of the program's function)", err, barrierID, leaveID)
}

// departed turns a mismatch of this package's barriers into the failure of the
// rank that has returned from the program's function meanwhile: that rank's barrier
// does not match either, so it fails the job, and says which it is.
func (n *Node) departed(err error) error {
	m := leaveMismatch(err)
	if m == nil {
		return err
	}
	return named(m, err, n.e.Wait(returned{}, func() bool { return false }))
}

// departedYet is departed that does not wait: as long as the job has not failed, it
// does not say which rank has returned.
func (n *Node) departedYet(err error) error {
	m := leaveMismatch(err)
	if m == nil {
		return err
	}
	return named(m, err, n.ep.Err())
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

// named is mismatch m, which is err, as failure of the job says which rank it is
// about, if it does.
func named(m *barrier.MismatchError, err, failure error) error {
	var p *PeerError
	if errors.As(failure, &p) {
		return &PeerError{Rank: p.Rank, Op: "barrier phase " + strconv.FormatUint(uint64(m.Phase), 10), Err: mismatched{p.Err}}
	}
	return fmt.Errorf("gas: a rank has returned from the program's function while others are in a barrier: %w", describeLeave(err))
}

// returned is what departed waits for.
type returned struct{}

func (returned) Blocked() string {
	return "barrier: to hear which rank has returned from the program's function"
}

// mismatched is another rank's failure that is a mismatch of barriers here.
type mismatched struct{ error }

func (m mismatched) Unwrap() error        { return m.error }
func (m mismatched) Is(target error) bool { return target == ErrBarrierMismatch }

// progress answers peers until the rank leaves.
func (n *Node) progress() {
	defer func() {
		n.helped.Store(false)
		n.ep.Wake(n.rank)
	}()
	err := n.e.Wait(progressing{}, n.stop.Load)
	if err != nil {
		n.calls.failed()
	}
}

// progressing describes what the progress goroutine waits for.
type progressing struct{}

func (progressing) Blocked() string { return "nothing, to answer peers (Config.Progress)" }

// awaitProgress returns when the progress goroutine, told to stop, has ended.
// It is conduits.Wait that a failure of the job does not end, for the goroutine
// may take a while to notice that.
func (n *Node) awaitProgress() {
	for idle := 0; n.helped.Load(); {
		if n.ep.Spin() > 0 {
			idle = 0
			continue
		}
		if n.ep.Idle(idle) {
			idle++
			continue
		}
		t := n.ep.Arm(progressing{})
		if !n.helped.Load() || n.ep.Poll() > 0 {
			n.ep.Disarm(t)
			continue
		}
		n.ep.Park(t)
		idle = 0
	}
}
