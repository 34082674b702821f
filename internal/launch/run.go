package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// Rank is how one rank ended.
type Rank struct {
	Pid    int            // process id it had
	Status int            // exit status, or 128 plus the signal's number
	Signal syscall.Signal // signal that killed it, or 0
	State  State          // how far it got
	User   time.Duration  // processor time in user mode, with that of its reaped children
	System time.Duration  // processor time in the kernel
	MaxRSS int64          // largest resident set, bytes
}

// Result is how a job ended.
type Result struct {
	JobID  string
	Status int    // 0, the status of the rank that failed first, or one of the launcher's own
	Failed int    // rank that failed first, or -1
	Ranks  []Rank // one for each process
	// Simulated is what the process of a simulated job said of its jobs; nil for
	// other jobs.
	Simulated *sim.Record
}

// RankError says which rank's failure ended the job.
type RankError struct {
	Rank, Pid int            // rank -1: the process that simulates all ranks
	Status    int            // exit status, or 128 plus the signal's number
	Signal    syscall.Signal // or 0
	Cause     string         // such as "killed by SIGKILL"
	Last      []string       // its last lines on standard error
}

// Error names the rank, its process and the cause.
func (e *RankError) Error() string {
	if e.Rank < 0 {
		return fmt.Sprintf("the simulated job (pid %d) %s", e.Pid, e.Cause)
	}
	return fmt.Sprintf("rank %d (pid %d) %s", e.Rank, e.Pid, e.Cause)
}

// Is makes errors.Is(err, errs.ErrPeer) hold.
func (e *RankError) Is(target error) bool { return target == errs.ErrPeer }

var jobCount atomic.Uint32

func newJobID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%d.%d.%s", os.Getpid(), jobCount.Add(1), hex.EncodeToString(b[:]))
}

// rank is a rank as the running job knows it.
type rank struct {
	Rank
	live     bool
	stopped  bool   // by us, on behalf of the terminal
	cause    string // why it counts as failed, or ""
	early    bool   // ended with status 0 before it attached
	order    int    // when it ended, among the others
	out, err *stream
	held     *held
}

type job struct {
	Config
	id      string
	memory  Memory
	guard   *guard
	ranks   []rank
	live    int
	log     *sink
	sinkErr chan error

	first     int  // rank whose failure decides, or -1
	ending    bool // the job is being ended: SIGTERM or a forwarded signal is out
	killed    bool // SIGKILL is out
	interrupt syscall.Signal
	verdict   error // why the launcher ended the job, if not because of a rank
	status    int   // status that goes with verdict
	dump      *dump
	grace     <-chan time.Time
	settle    <-chan time.Time
	watch     <-chan time.Time // looks whether a rank has attached after all
}

// Run starts a job and waits for its end. The error says why the job failed: a
// *RankError if a rank did, something else if the launcher ended it, could not
// start it, or found the configuration wrong. Result.Status is not 0 then.
// When ctx ends, the job is ended as by SIGTERM, and the error is ctx's cause.
func Run(ctx context.Context, c Config) (Result, error) {
	c.EnsureDefaults()
	res := Result{Status: StatusUsage, Failed: -1}
	stdin := c.Stdin
	defer func() {
		if stdin != nil {
			stdin.Close()
		}
	}()
	if err := c.Validate(); err != nil {
		return res, err
	}
	path, err := lookProgram(c.Program, c.Dir)
	if err != nil {
		return res, err
	}
	j := &job{Config: c, id: newJobID(), first: -1, sinkErr: make(chan error, 3)}
	res.JobID, res.Status = j.id, StatusFailed
	if err := holdSubreaper(); err != nil {
		return res, err
	}
	defer dropSubreaper()
	if j.OutputDir != "" {
		if err := os.MkdirAll(j.OutputDir, 0o777); err != nil {
			return res, errs.BadArg("launch: output directory (-output-dir): %v", err)
		}
	}
	if c.Memory != nil {
		j.memory, err = c.Memory(c.Size, c.Segment)
	} else {
		j.memory, err = bootstraps[c.Conduit].memory(&j.Config)
	}
	if err != nil {
		return res, err
	}
	defer j.memory.Close()

	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)

	spawn := newSpawner()
	defer spawn.stop()
	if c.Guard != "" {
		if j.guard, err = startGuard(c.Guard, j.id, c.Remove, spawn); err != nil {
			return res, err
		}
		defer j.guard.end()
	}
	ctl, err := j.start(path, spawn)
	stdin = nil // start has closed it
	if ctl != nil {
		defer ctl.Close()
	}
	if err != nil {
		j.kill()
		j.drain(children)
		j.clean()
		return res, err
	}
	if j.Started != nil {
		pids := make([]int, len(j.ranks))
		for r := range j.ranks {
			pids[r] = j.ranks[r].Pid
		}
		told := make(chan struct{})
		go func() { defer close(told); j.Started(pids) }()
		defer func() { <-told }()
	}
	j.loop(ctx, children)
	j.clean()
	res, err = j.result()
	if err != nil {
		j.log.endLine()
	}
	return res, err
}

// start starts all ranks. It returns the write end of the control pipe.
func (j *job) start(path string, spawn *spawner) (ctl *os.File, err error) {
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	keep := func(f *os.File) *os.File { opened = append(opened, f); return f }

	if j.Stdin != nil {
		keep(j.Stdin)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errs.Resource("launch: %v", err)
	}
	keep(null)
	ctlR, ctlW, err := os.Pipe()
	if err != nil {
		return nil, errs.Resource("launch: %v", err)
	}
	keep(ctlR)

	sk := sinks(func(err error) { j.sinkErr <- err }, j.Stdout, j.Stderr, j.Log)
	j.log = sk[2]
	var in inheritance
	if j.single() { // it has the parent death signal
		in.file(j.memory.File(), sim.EnvStatus, "")
	} else {
		if f := j.memory.File(); f != nil {
			in.file(f, EnvSegFD, "")
		}
		in.file(ctlR, EnvCtlFD, "")
	}
	if b, ok := j.memory.(bequeather); ok {
		b.bequeath(&in)
	}
	var cpus []int
	if j.Bind == BindCore {
		spawn.do(func() { cpus, err = sys.Affinity() })
		if err != nil || len(cpus) == 0 {
			return ctlW, errs.Resource("launch: cannot learn which processors may be used: %v (-bind)", err)
		}
	}
	j.ranks = make([]rank, j.processes())
	argv := append([]string{j.Program}, j.Args...)
	for r := range j.ranks {
		rk := &j.ranks[r]
		files := append([]*os.File{null, nil, nil}, in.files...)
		if r == 0 && j.Stdin != nil {
			files[0] = j.Stdin
		}
		var copies [2]*os.File
		if j.OutputDir != "" {
			copies[0], copies[1], err = outputFiles(j.OutputDir, r, len(j.ranks))
			if err != nil {
				return ctlW, errs.Resource("launch: output file (-output-dir): %v", err)
			}
		}
		var readers [2]*os.File
		for k := range 2 {
			if readers[k], files[1+k], err = os.Pipe(); err != nil {
				keep(readers[0])
				keep(files[1])
				return ctlW, errs.Resource("launch: cannot start %s of %d: %v%s", j.name(r), j.Size, err, hint(err))
			}
		}
		for k := range 2 {
			st := newStream(r, sk[k], readers[k], j.Label, len(j.ranks) == 1 && !j.Label, copies[k], func(err error) {
				j.log.printf("gasrun: output file of rank %d: %v", r, err)
			})
			if k == 0 {
				rk.out = st
			} else {
				rk.err = st
			}
		}
		sp := spec{path: path, argv: argv, env: j.environ(j.id, r, in.vars), dir: j.Dir, files: files}
		var pid int
		var errStart error
		spawn.do(func() {
			if cpus == nil {
				pid, errStart = sp.start()
				return
			}
			err = onCore(r, cpus, func() { pid, errStart = sp.start() })
		})
		files[1].Close()
		files[2].Close()
		go rk.out.run()
		go rk.err.run()
		if errStart != nil {
			return ctlW, errs.Resource("launch: cannot start %s of %d: %v%s", j.name(r), j.Size, errStart, hint(errStart))
		}
		j.guard.say("+ %d", pid)
		rk.Pid, rk.live = pid, true
		j.live++
		if err != nil {
			return ctlW, errs.Resource("launch: cannot bind rank %d: %v (-bind)", r, err)
		}
		if j.Verbose {
			at := ""
			if cpus != nil {
				at = fmt.Sprintf(" on processor %d", cpus[r%len(cpus)])
			}
			j.log.printf("gasrun: %s is pid %d%s", j.name(r), pid, at)
		}
	}
	for _, r := range j.Freeze {
		if pid := j.ranks[r].Pid; !j.Quiet {
			j.log.printf("gasrun: rank %d (pid %d) stops before it runs: attach a debugger (dlv attach %d, gdb -p %d) or let it go (kill -CONT %d)", r, pid, pid, pid, pid)
		}
	}
	return ctlW, nil
}

// name is what the job's process r is called.
func (j *job) name(r int) string {
	if j.single() {
		return "the simulated job"
	}
	return fmt.Sprintf("rank %d", r)
}

// hint names the limit that an error of the system comes from.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return " (ulimit -n: the launcher holds two files for each rank)"
	case errors.Is(err, syscall.EAGAIN):
		return " (ulimit -u: processes and threads of the user)"
	}
	return ""
}

// loop runs until all ranks have ended and been reaped.
func (j *job) loop(ctx context.Context, children <-chan os.Signal) {
	var timeout <-chan time.Time
	if j.Timeout > 0 {
		t := time.NewTimer(j.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	done := ctx.Done()
	j.reap()
	for j.live > 0 {
		select {
		case <-children:
			j.reap()
		case s := <-j.Signals:
			if sig, ok := s.(syscall.Signal); ok {
				j.signal(sig)
			}
		case <-timeout:
			timeout = nil
			if !j.ending {
				j.ask(StatusTimeout, fmt.Errorf("the job did not end within %v (-timeout)", j.Timeout))
			}
		case <-done:
			done = nil
			j.conclude(128+int(syscall.SIGTERM), context.Cause(ctx))
			j.end(syscall.SIGTERM)
		case err := <-j.sinkErr:
			if errors.Is(err, syscall.EPIPE) {
				j.conclude(128+int(syscall.SIGPIPE), errors.New("nobody reads the output any more"))
			} else {
				j.conclude(StatusFailed, fmt.Errorf("cannot write the output: %w", err))
			}
			j.end(syscall.SIGTERM)
		case <-j.grace:
			j.grace = nil
			j.kill()
		case <-j.settle:
			j.settle = nil
			j.end(syscall.SIGTERM)
		case <-j.watch:
			j.early()
		case <-j.dump.next():
			j.summarise()
		case <-j.dump.still():
			j.settled()
		}
	}
}

// drain reaps what kill has killed.
func (j *job) drain(children <-chan os.Signal) {
	for j.reap(); j.live > 0; j.reap() {
		<-children
	}
}

// reap looks which ranks have ended. Only this goroutine reaps and signals, so
// a process id that it signals is never one that has been given away.
func (j *job) reap() {
	if j.live == 0 {
		return
	}
	var ended []int
	for r := range j.ranks {
		rk := &j.ranks[r]
		if !rk.live {
			continue
		}
		var ws syscall.WaitStatus
		var ru syscall.Rusage
		pid, err := syscall.Wait4(rk.Pid, &ws, syscall.WNOHANG, &ru)
		for errors.Is(err, syscall.EINTR) {
			pid, err = syscall.Wait4(rk.Pid, &ws, syscall.WNOHANG, &ru)
		}
		switch {
		case err != nil: // somebody else has reaped it
			rk.Status, rk.cause = StatusFailed, fmt.Sprintf("was reaped by another part of this process: %v", err)
		case pid != rk.Pid:
			continue
		case ws.Signaled():
			rk.Signal = ws.Signal()
			rk.Status = 128 + int(rk.Signal)
			rk.cause = "killed by " + sys.SignalName(rk.Signal)
		default:
			rk.Status = ws.ExitStatus()
			if rk.Status != 0 {
				rk.cause = fmt.Sprintf("exited with status %d", rk.Status)
			}
		}
		j.guard.say("- %d", rk.Pid)
		rk.live = false
		j.live--
		rk.order = len(j.ranks) - j.live
		rk.State = j.memory.State(r)
		rk.User = time.Duration(ru.Utime.Nano())
		rk.System = time.Duration(ru.Stime.Nano())
		rk.MaxRSS = ru.Maxrss << 10
		if rk.cause == "" && rk.State != Finished {
			if rk.State == Starting {
				rk.early = true
			} else {
				rk.cause = "exited with status 0 before it left the job"
			}
		}
		ended = append(ended, r)
	}
	// Of those that ended at the same time, as far as we can tell, one that was
	// not a consequence comes first.
	for _, consequence := range []bool{false, true} {
		for _, r := range ended {
			if rk := &j.ranks[r]; rk.cause != "" && (rk.Status == StatusPeerFailed) == consequence {
				j.fail(r)
			}
		}
	}
	j.early()
}

// fail notes that rank r has failed.
func (j *job) fail(r int) {
	rk := &j.ranks[r]
	if j.dump == nil { // else the others would no longer wait where they do
		j.memory.Fail(r, rk.Status, rk.cause)
	}
	peer := rk.Status == StatusPeerFailed
	switch {
	case j.first < 0:
		j.first = r
	case j.ranks[j.first].Status == StatusPeerFailed && !peer && !(j.ending && (rk.Signal == syscall.SIGTERM || rk.Signal == syscall.SIGKILL)):
		j.first = r
	}
	if j.ending {
		return
	}
	if peer && j.first == r && j.live > 0 && j.settle == nil {
		// Some other rank is the cause and about to end; a SIGTERM now would
		// hide how.
		j.settle = time.After(min(max(j.KillGrace, 0), time.Second))
		return
	}
	if !peer {
		j.end(syscall.SIGTERM)
	}
}

// early looks after ranks that ended with status 0 before they attached. That
// is a failure as soon as any other rank has attached, and an earlier one than
// what others do about it.
func (j *job) early() {
	first := -1
	for r := range j.ranks {
		if rk := &j.ranks[r]; rk.early && (first < 0 || rk.order < j.ranks[first].order) {
			first = r
		}
	}
	j.watch = nil
	if first < 0 || j.first >= 0 && j.ranks[j.first].order < j.ranks[first].order {
		return
	}
	rk := &j.ranks[first]
	for r := range j.ranks {
		st := j.ranks[r].State
		if j.ranks[r].live {
			st = j.memory.State(r)
		}
		if r != first && !j.ranks[r].early && st != Starting {
			rk.early, rk.cause = false, "exited with status 0 before it attached, while others wait for it"
			j.first = -1
			j.fail(first)
			return
		}
	}
	if j.live > 0 {
		j.watch = time.After(50 * time.Millisecond)
	}
}

// signal acts on a signal sent to the launcher.
func (j *job) signal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		if j.ending {
			j.kill()
			return
		}
		if j.first < 0 && j.verdict == nil {
			j.interrupt = sig
		}
		if !j.Quiet {
			j.log.printf("gasrun: %s: ending the job; once more kills it", sys.SignalName(sig))
		}
		j.end(sig)
	case syscall.SIGQUIT:
		if j.dump != nil {
			j.kill()
			return
		}
		j.ask(StatusQuit, errors.New("ended by SIGQUIT"))
	case syscall.SIGTSTP:
		for r := range j.ranks {
			rk := &j.ranks[r]
			if p, ok := readProcess(rk.Pid); rk.live && ok && !p.stopped() {
				_ = syscall.Kill(-rk.Pid, syscall.SIGSTOP)
				rk.stopped = true
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case syscall.SIGCONT:
		for r := range j.ranks {
			if rk := &j.ranks[r]; rk.live && rk.stopped {
				_ = syscall.Kill(-rk.Pid, syscall.SIGCONT)
				rk.stopped = false
			}
		}
	default:
		for r := range j.ranks {
			if j.ranks[r].live {
				_ = syscall.Kill(j.ranks[r].Pid, sig)
			}
		}
	}
}

// conclude notes why the launcher ends the job, unless something else came first.
func (j *job) conclude(status int, err error) {
	if j.first < 0 && j.verdict == nil && j.interrupt == 0 {
		j.status, j.verdict = status, err
	}
}

// end asks all ranks to end by sig, and sees to it that they do.
func (j *job) end(sig syscall.Signal) {
	if j.ending {
		return
	}
	j.ending = true
	j.settle = nil
	j.signalGroups(sig)
	j.signalGroups(syscall.SIGCONT) // a stopped one could not obey
	if j.KillGrace < 0 {
		j.kill()
		return
	}
	j.grace = time.After(j.KillGrace)
}

// kill ends all ranks now.
func (j *job) kill() {
	j.ending, j.killed = true, true
	j.signalGroups(syscall.SIGKILL)
}

func (j *job) signalGroups(sig syscall.Signal) {
	for r := range j.ranks {
		if j.ranks[r].live {
			_ = syscall.Kill(-j.ranks[r].Pid, sig)
		}
	}
}

// clean kills what ranks have left behind and waits for the output.
func (j *job) clean() {
	groups := make(map[int]bool, len(j.ranks))
	for r := range j.ranks {
		if j.ranks[r].Pid != 0 {
			groups[j.ranks[r].Pid] = true
		}
	}
	killed, stuck := sweep(j.id, groups, j.Exclusive, j.guard)
	if killed > 0 && j.Verbose {
		j.log.printf("gasrun: killed %d processes that ranks had left behind", killed)
	}
	for _, pid := range stuck {
		j.log.printf("gasrun: process %d of the job does not die", pid)
	}
	for r := range j.ranks {
		for _, st := range []*stream{j.ranks[r].out, j.ranks[r].err} {
			if st == nil {
				continue
			}
			st.in.SetReadDeadline(time.Now().Add(time.Second))
			if <-st.ended; st.foreign {
				j.log.printf("gasrun: a process outside the job holds the output of %s", j.name(r))
			}
		}
	}
	j.stacks()
}

// result sums up.
func (j *job) result() (Result, error) {
	res := Result{JobID: j.id, Failed: j.first, Ranks: make([]Rank, len(j.ranks))}
	attached := false
	sm, simulated := j.memory.(*simMemory)
	if simulated {
		res.Simulated = sm.record()
	}
	for r := range j.ranks {
		rk := &j.ranks[r]
		res.Ranks[r] = rk.Rank
		attached = attached || rk.State != Starting
		if j.Verbose {
			j.log.printf("gasrun: %s (pid %d) ended with status %d, %v, %v of processor time", j.name(r), rk.Pid, rk.Status, rk.State, (rk.User + rk.System).Round(time.Millisecond))
		}
	}
	if j.verdict != nil {
		res.Status, res.Failed = j.status, -1
		return res, j.verdict
	}
	if j.interrupt != 0 && (j.first < 0 && !attached || j.first >= 0 && j.obeyed()) {
		res.Status, res.Failed = 128+int(j.interrupt), -1
		return res, fmt.Errorf("ended by %s", sys.SignalName(j.interrupt))
	}
	if j.first >= 0 {
		j.origin()
		rk := &j.ranks[j.first]
		last, panicd := rk.err.lastLines()
		cause := rk.cause
		if panicd != "" && rk.Signal == 0 {
			cause += ": " + panicd
		} else if len(last) > 0 && rk.Signal == 0 {
			cause += ": " + last[len(last)-1]
		}
		res.Failed = j.first
		if res.Status = rk.Status; res.Status == 0 {
			res.Status = StatusFailed
		}
		err := &RankError{Rank: j.first, Pid: rk.Pid, Status: rk.Status, Signal: rk.Signal, Cause: cause, Last: last}
		if simulated {
			sm.explain(err, rk.MaxRSS)
			res.Failed, res.Status = err.Rank, err.Status
		}
		return res, err
	}
	if !attached {
		res.Status = StatusFailed
		return res, fmt.Errorf("no rank of %s attached, and all exited with status 0: this is probably not an argon program (one that calls gas.Run)", filepath.Base(j.Program))
	}
	res.Status = 0
	return res, nil
}

// obeyed says whether the first rank that failed after a signal had been
// forwarded did so because of it.
func (j *job) obeyed() bool {
	switch rk := &j.ranks[j.first]; {
	case rk.Signal != 0:
		return rk.Signal == j.interrupt || j.killed && rk.Signal == syscall.SIGKILL
	case rk.Status == StatusPeerFailed:
		for r := range j.ranks {
			if j.ranks[r].Signal == j.interrupt {
				return true
			}
		}
	case rk.Status == 0:
		return true
	}
	return false
}

// origin looks, if only a consequence is known to have failed the job, for the
// rank that announced its own failure and was ended by us before it could exit.
func (j *job) origin() {
	if j.ranks[j.first].Status != StatusPeerFailed {
		return
	}
	r, status, cause, ok := j.memory.Failure()
	if !ok || r == j.first || r < 0 || r >= len(j.ranks) {
		return
	}
	rk := &j.ranks[r]
	if rk.Status == 0 || rk.Signal != 0 {
		rk.Status, rk.Signal, rk.cause = max(status, StatusFailed)&0xff, 0, "failed: "+cause
	}
	j.first = r
}

// Report writes why a job failed, as gasrun does: the last lines of the rank
// that failed, if any, then one line. Nothing is written if err is nil.
func Report(w io.Writer, err error) {
	if err == nil {
		return
	}
	var re *RankError
	if errors.As(err, &re) && len(re.Last) > 1 && re.Rank >= 0 { // one process has written nothing else
		fmt.Fprintf(w, "gasrun: last lines of rank %d on standard error:\n", re.Rank)
		for _, l := range re.Last {
			fmt.Fprintf(w, "gasrun:   %s\n", l)
		}
	}
	for _, l := range strings.Split(err.Error(), "\n") {
		fmt.Fprintf(w, "gasrun: %s\n", strings.TrimPrefix(l, "launch: "))
	}
}
