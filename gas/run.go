package gas

import (
	"bytes"
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
	_ "github.com/argon-go/argon/conduits/hybrid" // the conduits that are always there
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Main runs fn as Run does with a zero Config, and ends the process as Exit
// does.
func Main(fn func(n *Node) error) { Exit(Run(Config{}, fn)) }

// Exit ends the process with what Run returned: status 0 for nil; else it prints
// "argon: " and the error to standard error and ends with status 1, or 121 if
// the rank failed only because another one had.
func Exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "argon: %v\n", err)
	var r *RankError
	if errors.As(err, &r) && r.followed() || r == nil && errors.Is(err, ErrPeer) {
		os.Exit(launch.StatusPeerFailed)
	}
	os.Exit(launch.StatusFailed)
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
	if fn == nil {
		return errs.BadArg("gas: Run without a function")
	}
	var verbose io.Writer
	if v := os.Getenv("ARGON_VERBOSEENV"); v != "" && v != "0" {
		if r := os.Getenv(launch.EnvRank); r == "" || r == "0" { // once is enough
			verbose = os.Stderr
		}
	}
	if err := cfg.fromEnv(os.Getenv, verbose); err != nil {
		return err
	}
	place, launched, err := conduits.Launched(os.Getenv)
	if err != nil {
		return err
	}
	if launched && cfg.Conduit == "" {
		cfg.Conduit = place.Env(launch.EnvConduit)
	}
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return err
	}
	cd, err := conduits.Lookup(cfg.Conduit)
	if err != nil {
		return err
	}
	if launched {
		return runLaunched(cfg, cd, place, fn)
	}
	// gasrun starts one process for a simulated job, and knows what it does.
	if found := otherLauncher(os.Getenv); found != "" && os.Getenv(launch.EnvJobID) == "" {
		fmt.Fprintf(cfg.Output, "argon: found %s: without ARGON_RENDEZVOUS=host:port and ARGON_JOB_KEY_FILE, ranks do not find each other this way, so this process runs by itself (%d ranks); set them, or start it with gasrun -n\n", found, cfg.Ranks)
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
		return err
	}
	return runRanks(&cfg, eps, fn)
}

// otherLauncher names the variables by which another launcher says that this
// process is one of several.
func otherLauncher(env func(string) string) string {
	for _, l := range [...]struct{ name, rank, size string }{
		{"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
		{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
		{"PMI", "PMI_RANK", "PMI_SIZE"},
	} {
		if r := env(l.rank); r != "" {
			return fmt.Sprintf("%s (%s=%s, %s=%s)", l.name, l.rank, r, l.size, env(l.size))
		}
	}
	return ""
}

// joined is set when this process has taken its rank.
var joined atomic.Bool

// runLaunched runs the one rank of a process that a launcher started.
func runLaunched(cfg Config, cd conduits.Conduit, j conduits.Job, fn func(n *Node) error) error {
	if joined.Swap(true) {
		return errs.NotReady("gas: Run called again: a process of a launched job is rank %d once", j.Rank)
	}
	if cd.Join == nil {
		return errs.NotSupported("gas: conduit %s cannot join a launched job", cd.Name)
	}
	if err := watchLauncher(j.Env(launch.EnvCtlFD)); err != nil {
		return err
	}
	if j.Env(launch.EnvFreeze) == "1" {
		fmt.Fprintf(cfg.Output, "argon: rank %d: stopped before it joins; debug or continue (kill -CONT) process %d\n", j.Rank, os.Getpid())
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return fmt.Errorf("gas: %s: %w", launch.EnvFreeze, err)
		}
	}
	ep, err := cd.Join(j, conduits.Config{})
	if err != nil {
		return err
	}
	// What the launcher has left us open is not for programs that this one runs.
	if fd, err := strconv.Atoi(j.Env(launch.EnvSegFD)); err == nil {
		syscall.CloseOnExec(fd)
	}
	if s, ok := strings.CutPrefix(j.Env(seal.EnvKeyFile), "/proc/self/fd/"); ok {
		if fd, err := strconv.Atoi(s); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
	return runRanks(&cfg, []conduits.Endpoint{ep}, fn)
}

// watchLauncher ends the process when the launcher is gone, which closes the
// other end of the pipe that it left us.
func watchLauncher(s string) error {
	if s == "" {
		return nil
	}
	fd, err := strconv.Atoi(s)
	if err != nil || fd < 0 {
		return errs.BadArg("gas: %s=%q is no file descriptor; gasrun sets it", launch.EnvCtlFD, s)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return errs.BadArg("gas: %s=%d is not open (%v): environment of a rank without the rank; gasrun sets it", launch.EnvCtlFD, fd, err)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "control pipe")
	go func() {
		// Whatever comes is for later versions; the end is for us.
		io.Copy(io.Discard, f)
		fmt.Fprintln(os.Stderr, "argon: the launcher is gone")
		os.Exit(launch.StatusPeerFailed)
	}()
	return nil
}

// run is the ranks of one call of Run.
type run struct {
	cfg   *Config
	nodes []*Node

	mu    sync.Mutex
	first *RankError // of all failures the one to return
}

// runRanks runs fn on eps and closes them.
func runRanks(cfg *Config, eps []conduits.Endpoint, fn func(n *Node) error) error {
	r := &run{cfg: cfg}
	for _, ep := range eps {
		r.nodes = append(r.nodes, &Node{ep: ep, rank: ep.Rank(), size: ep.Size(), debug: cfg.Debug})
	}
	forget := diagnose(r)
	defer forget()
	conduits.Run(eps, func(i int) { r.rank(r.nodes[i], fn) })
	if r.first != nil {
		return r.first
	}
	return nil
}

// rank runs fn as n, from attach to close. It returns only by returning, unless
// fn ends the goroutine.
func (r *run) rank(n *Node, fn func(n *Node) error) {
	doing, killed := "attach", false
	defer func() {
		if doing != "" {
			p := recover()
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
		}
		n.stop.Store(true)
		n.ep.Wake(n.rank)
		if !killed {
			n.awaitProgress()
		}
		n.calls.failed()
		if err := errors.Join(n.withdraw(), n.ep.Close()); err != nil && n.ep.Err() == nil {
			r.fail(n, &RankError{Rank: n.rank, Err: err})
		}
	}()
	err := n.attach(r.cfg)
	if err == nil && r.cfg.PinLock {
		l := n.cache.Limits()
		err = lockable(len(r.nodes), uint64(l.Budget)*l.Bucket, sys.LockLimit(), sys.LocksBeyondLimit())
	}
	if err == nil {
		if r.cfg.Progress {
			n.helped.Store(true)
			conduits.Go(n.ep, n.progress)
		}
		doing = "the rank's function"
		err = fn(n)
		doing = "leaving"
		if err == nil {
			err = n.leave()
		}
	}
	doing = ""
	if err != nil {
		r.fail(n, &RankError{Rank: n.rank, Err: err})
	}
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
	r.mu.Lock()
	if r.first == nil || r.first.followed() && !err.followed() {
		r.first = err
	}
	r.mu.Unlock()
	// A rank that fails because of another one would only hide the cause.
	if n.ep.Err() == nil {
		n.ep.Fail(err.Err)
	}
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
		return errs.Resource("gas: a segment of %d bytes: the job allows %d a rank (gasrun -segment, ARGON_SEGMENT)", size, limit)
	}
	if err := n.pins(cfg); err != nil {
		return err
	}
	n.b = barrier.New()
	n.x = extended.New(extended.Config{AlwaysHandle: cfg.Debug, Firehose: n.cache, Space: n.space})
	runtimeEntries := append(n.b.Handlers(), n.x.Handlers()...)
	runtimeEntries = append(runtimeEntries, n.handlers()...)
	runtimeEntries = append(runtimeEntries, n.coll.handlers()...)
	attached := size
	if cfg.Large {
		attached = 0
	}
	var err error
	n.e, err = am.Attach(n.ep, am.Config{
		Handlers:    append([]am.Entry(nil), cfg.Handlers...),
		Runtime:     runtimeEntries,
		SegmentSize: attached,
		Lock:        cfg.PinLock,
		Completer:   n.x,
		Debug:       cfg.Debug,
	})
	if err != nil {
		return err
	}
	if err := n.b.Bind(n.e); err != nil {
		return err
	}
	if err := n.cache.BindAgreed(n.e); err != nil { // see meet
		return err
	}
	n.x.Bind(n.e)
	n.coll.bind(n.e)
	first, views := n.ep.Views()
	n.first, n.views = uint64(first), views
	return n.settle(size, cfg.Large)
}

// pages is size rounded up to whole pages.
func pages(size uint64) uint64 {
	return (size + segment.PageSize - 1) &^ (segment.PageSize - 1)
}

// leave waits until all ranks leave. It does so in the barrier and as a
// collective call at once, so that whoever is in either of them still learns
// that this rank will not come.
func (n *Node) leave() error {
	if err := n.b.Notify(leaveID, 0); err != nil {
		return fmt.Errorf("gas: the rank's function returned during a barrier: %w", err)
	}
	// If collectives did not match, the program has been told.
	if err := n.same(opLeave, 0, nil, 0, 0); err != nil && n.coll.mismatch() == nil {
		return err
	}
	if err := n.b.Wait(leaveID, 0); err != nil {
		return departed(err)
	}
	return nil
}

// departed says what it means when this package's barriers do not match.
func departed(err error) error {
	if errors.Is(err, ErrBarrierMismatch) {
		return fmt.Errorf("gas: some ranks have returned from the program's function (id %d) while others are in a barrier (id %d): %w",
			leaveID, barrierID, err)
	}
	return err
}

// progress answers peers until the rank leaves.
func (n *Node) progress() {
	defer func() {
		n.helped.Store(false)
		n.ep.Wake(n.rank)
	}()
	err := n.e.Wait(nil, n.stop.Load)
	if err != nil {
		n.calls.failed()
	}
}

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
		t := n.ep.Arm(nil)
		if !n.helped.Load() || n.ep.Poll() > 0 {
			n.ep.Disarm(t)
			continue
		}
		n.ep.Park(t)
		idle = 0
	}
}
