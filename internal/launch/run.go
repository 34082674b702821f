package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/simrecord"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
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
	Status int    // 0, the status of the rank that failed first or that Exit had, or one of the launcher's own
	Failed int    // rank that failed first, or that called Exit with another status than 0, or -1
	Ranks  []Rank // one for each process
	// Simulated is the record that the process of a simulated job wrote of its jobs; nil
	// for other jobs.
	Simulated *simrecord.Record
	// Unread is true if nothing reads what is written to Config.Log: another write
	// might never return.
	Unread bool
}

// RankError is the failure of a rank that ended the job.
type RankError struct {
	Rank, Pid int            // rank -1: the process that simulates all ranks
	Host      string         // where it ran, "" if that was this machine
	Status    int            // exit status, or 128 plus the signal's number
	Signal    syscall.Signal // or 0
	Cause     string         // such as "killed by SIGKILL"
	Last      []string       // its last lines on standard error
}

// Error names the rank, its process and the cause.
func (e *RankError) Error() string {
	name := "the simulated job"
	if e.Rank >= 0 {
		name = fmt.Sprintf("rank %d", e.Rank)
	}
	return fmt.Sprintf("%s (pid %d%s) %s", name, e.Pid, on(e.Host), e.Cause)
}

// on is where a host of that name is, in messages; "" is this machine.
func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

// Is makes errors.Is(err, errs.ErrPeer) hold.
func (e *RankError) Is(target error) bool { return target == errs.ErrPeer }

// exit is the end of a job by a rank that has called Exit.
type exit struct{ rank, code int }

// lookForExit is how often the launcher looks whether a rank has called Exit: all
// ranks may compute then, and none of them end.
const lookForExit = 50 * time.Millisecond

var jobCount atomic.Uint32

func newJobID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%d.%d.%s", os.Getpid(), jobCount.Add(1), hex.EncodeToString(b[:]))
}

// rank is a rank as the running job knows it.
type rank struct {
	Rank
	host     *host // where it runs
	live     bool
	cause    string // why it counts as failed, or ""
	early    bool   // ended with status 0 before it attached
	follows  bool   // it has failed because of another rank, or after it
	order    int    // when it ended, among the others
	out, err *stream
}

type job struct {
	Config
	id      string
	memory  Memory
	hosts   []*host // in the order of their ranks
	ranks   []rank
	live    int
	sinks   []*sink // of standard output, of standard error, of the launcher's own lines
	log     *sink   // the last of them
	sinkErr chan error

	first     int   // rank whose failure decides, or -1
	ending    bool  // the job is being ended: SIGTERM or a forwarded signal is out
	killed    bool  // SIGKILL is out
	exit      *exit // how a rank has ended the job, if that decides
	told      bool  // to end, by a signal
	interrupt syscall.Signal
	verdict   error     // why the launcher ended the job, if not because of a rank
	status    int       // status that goes with verdict
	question  *question // that ranks are answering, or nil
	begun     time.Time
	watcher   where.Watch      // whether ranks get on
	stall     <-chan time.Time // asks them
	lookAt    time.Duration    // when viewers may have them asked again
	deaf      int              // how often none has answered that
	dump      dump
	thirst    sync.Once // the first demand of rank 0 for input from elsewhere
	grace     <-chan time.Time
	settle    <-chan time.Time
	watch     <-chan time.Time // looks whether a rank has attached after all
	overdue   <-chan time.Time // until then hosts must say that killed ranks have ended

	seats seats // of the ranks on this machine

	self, program *image     // what hosts may lack; nil if they are all this machine
	listenAt      netip.Addr // where the rendezvous listens; invalid: everywhere

	copyMu   sync.Mutex
	copyErrs int   // files in OutputDir that are not complete
	copyErr  error // why the first one is not

	traces traces

	eventMu  sync.Mutex
	events   []func()      // what the hosts' goroutines have for the loop
	eventful chan struct{} // there are some
}

// Run starts a job and waits for its end. The error says why the job failed: a
// *RankError if a rank did, something else if the launcher ended it, could not
// start it, or found the configuration wrong. Result.Status is not 0 then.
// When ctx ends, the job is ended as by SIGTERM, and the error is ctx's cause.
func Run(ctx context.Context, c Config) (Result, error) {
	jobenv.LeaveOuter() // programs other than gasrun launch jobs, too
	defer c.Feed.Close()
	c.EnsureDefaults()
	res := Result{Status: jobenv.StatusUsage, Failed: -1}
	stdin := c.Stdin
	defer func() {
		if stdin != nil {
			stdin.Close()
		}
	}()
	if err := c.Validate(); err != nil {
		return res, err
	}
	if c.Verbose || c.Feed != nil {
		c.Env = append(slices.Clip(c.Env), jobenv.Viewed+"=1") // on other hosts, too
	}
	path, err := lookProgram(c.Program, c.Dir)
	if err == nil && len(c.Hosts) > 0 {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return res, err
	}
	j := &job{Config: c, id: newJobID(), first: -1, sinkErr: make(chan error, 3), eventful: make(chan struct{}, 1)}
	res.JobID, res.Status = j.id, jobenv.StatusFailed
	if j.OutputDir != "" {
		if err := os.MkdirAll(j.OutputDir, 0o777); err != nil {
			return res, errs.BadArg("launch: output directory (-output-dir): %v", err)
		}
	}
	j.sinks = sinks(func(err error) { j.sinkErr <- err }, j.Stdout, j.Stderr, j.Log)
	j.log = j.sinks[2]
	if j.Verbose {
		j.logf = func(format string, args ...any) { j.log.printf("gasrun: "+format, args...) }
		for _, line := range env.Foreign(os.Environ()) {
			j.logf("%s", line)
		}
	}
	if !j.Quiet {
		j.remark = func(line string) { j.log.printf("gasrun: %s", line) }
	}
	j.ranks = make([]rank, j.processes())
	spawn := newSpawner()
	defer spawn.stop()

	err = j.prepare(path, spawn)
	defer j.self.close()
	defer j.program.close()
	defer func() { j.seats.claim.Release() }()
	if err != nil {
		return res, err
	}
	defer j.memory.Close()
	if h := j.hosts[0]; h.own {
		err = h.begin(path, spawn)
		defer h.inside.tearDown()
		j.happen() // their process ids
	} else {
		err = j.startHosts(ctx, spawn)
	}
	if stdin != nil && j.hosts[0].task.StdinHere {
		stdin.Close()
	}
	if err != nil {
		j.clean()
		eachHost(elsewhere(j.hosts), (*host).leave)
		if j.status != 0 { // the launcher was told to end
			res.Status = j.status
		}
		return res, err
	}
	j.announceFrozen()
	if j.Started != nil {
		pids := make([]int, len(j.ranks))
		for r := range j.ranks {
			pids[r] = j.ranks[r].Pid
		}
		told := make(chan struct{})
		go func() { defer close(told); j.Started(pids) }()
		defer func() { <-told }()
	}
	stop := j.listen()
	j.loop(ctx)
	stop()
	j.clean()
	res, err = j.result()
	res.Unread = j.log.abandoned.Load()
	if incomplete := j.incomplete(); incomplete != nil {
		if err != nil { // that is the worse
			j.log.printf("gasrun: %s", bare(incomplete))
		} else {
			res.Status, err = jobenv.StatusFailed, incomplete
		}
	}
	if err != nil {
		j.log.endLine(nil)
	}
	if j.Ended != nil {
		j.Ended(res, err)
	}
	j.lastTraces()
	eachHost(elsewhere(j.hosts), (*host).leave)
	return res, err
}

// newStreams makes the streams of a rank's output.
func (j *job) newStreams(r int) error {
	var copies [2]*os.File
	if j.OutputDir != "" {
		var err error
		if copies[0], copies[1], err = outputFiles(j.OutputDir, r, len(j.ranks)); err != nil {
			return errs.Resource("launch: output file (-output-dir): %v", err)
		}
	}
	for k, to := range []**stream{&j.ranks[r].out, &j.ranks[r].err} {
		*to = newStream(r, j.sinks[k], j.Label, len(j.ranks) == 1 && !j.Label, copies[k], j.copyFailed)
	}
	j.ranks[r].err.witness = &witness{}
	return nil
}

// copyFailed notes that a file in Config.OutputDir is not complete. The job goes on, and so
// does other output.
func (j *job) copyFailed(err error) {
	j.copyMu.Lock()
	j.copyErrs++
	first := j.copyErrs == 1
	if first {
		j.copyErr = err
	}
	j.copyMu.Unlock()
	if first {
		j.log.printf("gasrun: an output file is not complete: %v (-output-dir)", err)
	}
}

// incomplete is an error if files in Config.OutputDir are not complete. All streams have
// ended.
func (j *job) incomplete() error {
	j.copyMu.Lock()
	defer j.copyMu.Unlock()
	if j.copyErrs == 0 {
		return nil
	}
	return errs.Resource("launch: %d of %d output files are not complete: %v (-output-dir)", j.copyErrs, 2*len(j.ranks), j.copyErr)
}

// started notes that rank r runs.
func (j *job) started(r, pid int, where string) {
	if j.ranks[r].Pid != 0 {
		return
	}
	j.ranks[r].Pid, j.ranks[r].live = pid, true
	j.live++
	if j.Verbose {
		j.log.printf("gasrun: %s is pid %d%s%s", j.name(r), pid, on(j.ranks[r].host.label), where)
	}
}

// named is rank r with its process, in messages.
func (j *job) named(r int) string {
	return fmt.Sprintf("%s (pid %d%s)", j.name(r), j.ranks[r].Pid, on(j.ranks[r].host.label))
}

// announceFrozen logs the ranks that wait for a debugger.
func (j *job) announceFrozen() {
	for _, r := range j.Freeze {
		if pid := j.ranks[r].Pid; !j.Quiet {
			j.log.printf("gasrun: %s stops before it runs: attach a debugger (dlv attach %d, gdb -p %d) or let it go (kill -CONT %d)", j.named(r), pid, pid, pid)
		}
	}
}

// loop runs until all ranks have ended and been reaped.
func (j *job) loop(ctx context.Context) {
	var children <-chan os.Signal
	inside := j.hosts[0].inside
	if inside != nil {
		children = inside.children
		inside.reap()
	}
	var timeout <-chan time.Time
	if j.Timeout > 0 {
		t := time.NewTimer(j.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	var look <-chan time.Time
	if !j.single() { // one process ends by itself, or by the simulator
		t := time.NewTicker(lookForExit)
		defer t.Stop()
		look = t.C
	}
	watch := j.newStillWatch()
	var stillTick <-chan time.Time
	if watch != nil {
		t := time.NewTicker(watch.every)
		defer t.Stop()
		stillTick = t.C
	}
	j.begun, j.watcher.Stall = time.Now(), j.Stall
	j.nextLook()
	j.Feed.Begin(seenAs(j), func() {
		j.post(func() {
			if j.Feed.Wanted() {
				j.nextLook()
			}
		})
	})
	done := ctx.Done()
	j.happen()
	for j.live > 0 {
		select {
		case <-j.stall:
			j.lookStall()
		case <-children:
			inside.reap()
		case <-j.eventful:
			j.happen()
		case s := <-j.Signals:
			if sig, ok := s.(syscall.Signal); ok {
				j.signal(sig)
			}
		case <-timeout:
			timeout = nil
			if !j.ending {
				j.askLast(jobenv.StatusTimeout, fmt.Errorf("the job did not end within %v (-timeout)", j.Timeout))
			}
		case <-done:
			done = nil
			j.conclude(128+int(syscall.SIGTERM), context.Cause(ctx))
			j.terminate(syscall.SIGTERM)
		case err := <-j.sinkErr:
			if errors.Is(err, syscall.EPIPE) {
				j.conclude(128+int(syscall.SIGPIPE), errors.New("nobody reads the output any more"))
			} else {
				j.conclude(jobenv.StatusFailed, fmt.Errorf("cannot write the output: %w", err))
			}
			j.terminate(syscall.SIGTERM)
		case <-j.grace:
			j.grace = nil
			j.kill()
		case <-j.overdue:
			j.overdue = nil
			for _, h := range j.hosts {
				if h.cmd != nil && j.runsOn(h) {
					h.lose(fmt.Sprintf("does not say, for %v, that its ranks have been killed", killLimit))
				}
			}
		case <-j.settle:
			j.settle = nil
			j.terminate(syscall.SIGTERM)
		case <-j.watch:
			j.early()
		case <-look:
			j.exited()
		case <-stillTick:
			j.lookStill(watch)
		case <-j.dump.quiet:
			j.endWhenQuiet()
		}
	}
}

// ended notes which ranks have ended.
func (j *job) ended(endings []ending) {
	over := j.exited()
	for _, e := range endings {
		rk := &j.ranks[e.rank]
		if !rk.live { // so a deputy says that is not to be trusted
			continue
		}
		rk.live = false
		j.live--
		if e.rank == 0 && j.Stdin != nil {
			j.Stdin.Close() // what writes to it learns that no process reads
		}
		rk.order = len(j.ranks) - j.live
		rk.Status, rk.Signal, rk.cause = e.status, e.signal, e.cause
		rk.User, rk.System, rk.MaxRSS = e.user, e.system, e.maxRSS
		rk.State = j.memory.State(e.rank)
		if rk.cause == "" && rk.State != Finished {
			if rk.State == Starting {
				rk.early = true
			} else {
				rk.cause = j.unfinished(e.rank)
			}
		}
		if over { // however ranks end then, it is no failure
			rk.cause, rk.early = "", false
		}
		rk.follows = j.consequence(e.rank)
	}
	// Of those that ended at the same time, as far as we can tell, one that was
	// not a consequence comes first.
	for _, consequence := range []bool{false, true} {
		for _, e := range endings {
			if rk := &j.ranks[e.rank]; rk.cause != "" && rk.follows == consequence {
				j.fail(e.rank)
			}
		}
	}
	j.early()
}

// exited reports whether a rank has ended the job by Exit before anything else has
// decided how it ends. Ranks have a moment to end by themselves then, as when one
// has failed; those that compute get SIGTERM.
func (j *job) exited() bool {
	if j.exit != nil {
		return true
	}
	if j.first >= 0 || j.verdict != nil {
		return false
	}
	rank, status, _, ok := j.memory.Failure()
	code, exited := errs.CarriedExit(status)
	if !ok || !exited || rank < 0 || rank >= j.Size {
		return false
	}
	j.exit = &exit{rank, code}
	for r := range j.ranks {
		j.ranks[r].early = false
	}
	if !j.ending && j.settle == nil {
		j.settle = awake.After(min(max(j.KillGrace, 0), SettleTime))
	}
	return true
}

// unfinished is the cause of the failure of rank r, which has exited with status 0 but not
// left the job.
func (j *job) unfinished(r int) string {
	if j.ranks[r].State == Failed {
		// That its connection has ended is only how the service heard of its end first.
		if who, _, cause, ok := j.memory.Failure(); ok && who == r && !strings.HasPrefix(cause, rendezvous.Gone) {
			return "exited with status 0 although it has failed: " + errs.Line(cause, textMost)
		}
	}
	return "exited with status 0 before it left the job: it ended without Close (a rank ends by returning from the function of gas.Run or boot.Run, " +
		"or by Close of its conduit's endpoint after a last barrier)"
}

// SettleTime is how long a rank that is the cause of what another one has ended of
// may take to end, at most Config.KillGrace. Tests have more of it for slow machines: a SIGTERM would come before its own end.
var SettleTime = time.Second

// fail notes that rank r has failed.
func (j *job) fail(r int) {
	rk := &j.ranks[r]
	if !j.dump.begun { // else the others would no longer wait where they do
		j.memory.Fail(r, rk.Status, rk.cause)
	}
	switch {
	case j.first < 0:
		j.first = r
	case j.ranks[j.first].follows && !rk.follows && !(j.ending && (rk.Signal == syscall.SIGTERM || rk.Signal == syscall.SIGKILL)):
		j.first = r
	}
	if j.ending {
		return
	}
	if rk.follows && j.first == r && j.live > 0 && j.settle == nil {
		// Some other rank is the cause and about to end; a SIGTERM now would
		// hide how.
		j.settle = awake.After(min(max(j.KillGrace, 0), SettleTime))
		return
	}
	if !rk.follows {
		j.terminate(syscall.SIGTERM)
	}
}

// consequence reports whether rank r, which has ended, failed because of another rank: it
// says so by its status, or the failure of another one was known before its end. A program
// may make an error of its own, and a status, of what it hears of others.
func (j *job) consequence(r int) bool {
	if j.ranks[r].Status == jobenv.StatusPeerFailed {
		return true
	}
	who, _, _, ok := j.memory.Failure()
	return ok && who != r && who >= 0 && who < len(j.ranks) && !j.ranks[who].follows
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
		if j.ending || j.told {
			if !j.dump.begun {
				j.question = nil
			}
			j.kill()
			return
		}
		j.told = true
		if j.first < 0 && j.verdict == nil {
			j.interrupt = sig
		}
		if j.Quiet {
			j.terminate(sig)
			return
		}
		name := sys.SignalName(sig)
		j.log.printf("gasrun: %s: ending the job; once more kills it", name)
		end := func() { j.terminate(sig) }
		if !anyAttached(j) {
			end()
			return
		}
		j.askAside(min(DefaultAskTime, j.AnswerGrace), &question{head: name, most: fewLines, then: end})
	case syscall.SIGUSR1:
		if (j.question == nil || j.question.silent) && !j.ending {
			rearm(j)
			j.askAside(j.AnswerGrace, &question{head: "SIGUSR1", most: fewLines, then: j.nameLast})
		}
	case syscall.SIGQUIT:
		if j.dump.begun {
			j.kill()
			return
		}
		j.askLast(jobenv.StatusQuit, errors.New("ended by SIGQUIT"))
	case syscall.SIGTSTP:
		eachHost(j.hosts, (*host).suspend)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case syscall.SIGCONT:
		eachHost(j.hosts, (*host).resume)
	default:
		j.signalRanks(j.alive(), sig, false)
	}
}

// alive lists the ranks that have not ended.
func (j *job) alive() []int {
	live := make([]int, 0, j.live)
	for r := range j.ranks {
		if j.ranks[r].live {
			live = append(live, r)
		}
	}
	return live
}

// conclude notes why the launcher ends the job, unless something else came first.
func (j *job) conclude(status int, err error) {
	if j.first < 0 && j.verdict == nil && j.interrupt == 0 && j.exit == nil {
		j.status, j.verdict = status, err
	}
}

// terminate asks all ranks to end by sig, and kills those that do not.
func (j *job) terminate(sig syscall.Signal) {
	if j.ending {
		return
	}
	j.ending = true
	j.settle = nil
	recorded(j, min(DefaultAskTime, j.AnswerGrace), func() {
		j.signalGroups(sig)
		j.signalGroups(syscall.SIGCONT) // a stopped one could not obey
		if j.KillGrace < 0 {
			j.kill()
			return
		}
		j.grace = awake.After(j.KillGrace)
	})
}

// kill ends all ranks now.
func (j *job) kill() {
	j.ending, j.killed = true, true
	j.signalGroups(syscall.SIGKILL)
	if j.overdue == nil {
		j.overdue = awake.After(killLimit)
	}
}

func (j *job) signalGroups(sig syscall.Signal) { j.signalRanks(j.alive(), sig, true) }

// eachHost calls f for all hosts at once.
func eachHost(hosts []*host, f func(*host)) {
	var wg sync.WaitGroup
	for _, h := range hosts {
		wg.Go(func() { f(h) })
	}
	wg.Wait()
}

// byHost sorts ranks by the hosts that they run on.
func (j *job) byHost(ranks []int) map[*host][]int {
	by := map[*host][]int{}
	for _, r := range ranks {
		by[j.ranks[r].host] = append(by[j.ranks[r].host], r)
	}
	return by
}

func (j *job) signalRanks(ranks []int, sig syscall.Signal, group bool) {
	for h, rs := range j.byHost(ranks) {
		h.signal(rs, sig, group)
	}
}

// look learns what the processes of ranks do, as far as that is known.
func look(by map[*host][]int) map[int]process {
	all := map[int]process{}
	var mu sync.Mutex
	eachHost(slices.Collect(maps.Keys(by)), func(h *host) {
		seen := h.look(by[h], false)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(all, seen)
	})
	return all
}

// runsOn reports whether a rank is alive on h.
func (j *job) runsOn(h *host) bool {
	for r := h.first; r < h.first+h.size; r++ {
		if j.ranks[r].live {
			return true
		}
	}
	return false
}

// clean kills what ranks have left behind and waits for the output.
func (j *job) clean() {
	eachHost(j.hosts, (*host).stop)
	if j.awaitOutput() {
		j.stacks()
		return
	}
	for _, s := range j.sinks {
		s.abandon()
	}
	j.log.printf("gasrun: nothing reads the output: what is left of it is lost")
}

// awaitOutput waits for the end of all output, and reports whether it has come: a reader
// that takes none of it keeps gasrun, but not once the job has been told to end and for
// outputLimit nothing was taken, or at a further signal.
func (j *job) awaitOutput() bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for r := range j.ranks {
			for _, st := range []*stream{j.ranks[r].out, j.ranks[r].err} {
				if st == nil {
					continue
				}
				if st.hurry(); st.foreign {
					j.log.printf("gasrun: a process outside the job holds the output of %s", j.name(r))
				}
			}
		}
	}()
	taken := int64(-1)
	look := awake.After(0)
	for {
		select {
		case <-ended:
			return true
		case <-look:
			was := taken
			if taken = j.taken(); taken == was && (j.verdict != nil || j.interrupt != 0) {
				return false
			}
			look = awake.After(outputLimit)
		case s := <-j.Signals:
			if sig, ok := s.(syscall.Signal); ok && (sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT) {
				if j.verdict == nil && j.interrupt == 0 {
					j.conclude(128+int(sig), fmt.Errorf("ended by %s while nothing reads its output", sys.SignalName(sig)))
				}
				return false
			}
		}
	}
}

// outputLimit is how long a job that was told to end waits for a reader of its output that
// takes nothing.
var outputLimit = 5 * time.Second

// taken is how many bytes of output have been written.
func (j *job) taken() (n int64) {
	for _, s := range j.sinks {
		n += s.taken.Load()
	}
	return n
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
			j.log.printf("gasrun: %s ended with status %d, %v, %v of processor time", j.named(r), rk.Status, rk.State, (rk.User + rk.System).Round(time.Millisecond))
		}
	}
	if j.exit != nil {
		res.Status, res.Failed = j.exit.code, -1
		if res.Status == 0 {
			return res, nil
		}
		res.Failed = j.exit.rank
		rk := &j.ranks[0] // of a simulated job the only process
		if !simulated {
			rk = &j.ranks[j.exit.rank]
		}
		return res, &RankError{
			Rank: j.exit.rank, Pid: rk.Pid, Host: rk.host.label, Status: j.exit.code,
			Cause: fmt.Sprintf("ended the job with status %d (Exit)", j.exit.code),
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
		last, cause := rk.err.lastLines(), rk.cause
		if why := rk.err.why(rk.Status, rk.Signal); why != "" {
			cause += ": " + why
		} else if rk.Signal == syscall.SIGBUS {
			cause += busRemedy
		}
		cause += limitIn(rk.host.own, append(last, cause)...)
		res.Failed = j.first
		if res.Status = rk.Status; res.Status == 0 {
			res.Status = jobenv.StatusFailed
		}
		err := &RankError{Rank: j.first, Pid: rk.Pid, Host: rk.host.label, Status: rk.Status, Signal: rk.Signal, Cause: cause, Last: last}
		if simulated {
			sm.explain(err, rk.MaxRSS)
			res.Failed, res.Status = err.Rank, err.Status
		}
		return res, err
	}
	if !attached {
		res.Status = jobenv.StatusFailed
		return res, fmt.Errorf("no rank of %s attached, and all exited with status 0: this is probably not an argon program (one that calls gas.Run or boot.Run), or a process between gasrun and it removes the variables ARGON_* from the environment (env -i, sudo without -E)", filepath.Base(j.Program))
	}
	res.Status = 0
	return res, nil
}

// obeyed reports whether the first rank that failed after a signal had been
// forwarded did so because of it.
func (j *job) obeyed() bool {
	switch rk := &j.ranks[j.first]; {
	case rk.Signal != 0:
		return rk.Signal == j.interrupt || j.killed && rk.Signal == syscall.SIGKILL
	case rk.Status == jobenv.StatusPeerFailed:
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
	if !j.ranks[j.first].follows {
		return
	}
	r, status, cause, ok := j.memory.Failure()
	if !ok || r == j.first || r < 0 || r >= len(j.ranks) {
		return
	}
	rk := &j.ranks[r]
	if rk.Status == 0 || rk.Signal != 0 {
		rk.Status, rk.Signal, rk.cause = max(status, jobenv.StatusFailed)&0xff, 0, "failed: "+errs.Line(cause, textMost)
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
	if !errors.As(err, &re) {
		err = limited(err)
	} else if len(re.Last) > 1 && re.Rank >= 0 { // one process has written nothing else
		fmt.Fprintf(w, "gasrun: last lines of rank %d on standard error:\n", re.Rank)
		for _, l := range re.Last {
			fmt.Fprintf(w, "gasrun:   %s\n", l)
		}
	}
	for _, l := range strings.Split(err.Error(), "\n") {
		fmt.Fprintf(w, "gasrun: %s\n", errs.Printable(strings.TrimPrefix(l, "launch: "), 4*textMost))
	}
}
