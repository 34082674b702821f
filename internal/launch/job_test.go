package launch_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

var killJobs = flag.Int("killjobs", 10, "jobs of TestKillAtRandom")

// never is a time that no test reaches.
const never = time.Hour

func TestMain(m *testing.M) {
	launch.SettleTime = time.Hour
	testjob.Main(m, map[string]func(){
		"ring":        ring,
		"early":       early,
		"exit":        exit,
		"misfit":      misfit,
		"follow":      follow,
		"own":         own,
		"orphans":     orphans,
		"stubborn":    stubborn,
		"signals":     signals,
		"answer":      answer,
		"affinity":    affinity,
		"nothing":     func() {},
		"environment": func() { fmt.Println(strings.Join(os.Environ(), "\n")) },
		"nested":      nested,
		"cat":         cat,
		"slated":      slated,
		"told":        told,
		"fail":        func() { os.Exit(7) },
	})
}

type inbox struct {
	got  int
	word uint32 // the last message's first
}

func (b *inbox) Receive(m *conduits.Message)                    { b.got, b.word = b.got+1, m.Words[0] }
func (b *inbox) Complete(uint64, conduits.Event, uint64, error) {}

func attach() (conduits.Endpoint, *inbox) {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	b := &inbox{}
	testjob.Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: b}))
	return ep, b
}

// block waits for what never comes.
func block(ep conduits.Endpoint) {
	testjob.Check(conduits.Wait(ep, nil, func() bool { return false }))
}

// stay waits for ever without a conduit.
func stay() {
	time.Sleep(never)
}

// send sends a message of a word.
func send(ep conduits.Endpoint, dst int, word uint32) {
	var s conduits.Slot
	testjob.Check(conduits.Wait(ep, nil, func() bool {
		var st conduits.Status
		s, st = ep.Reserve(dst, conduits.Request, 1, 0)
		return st == conduits.Ready
	}))
	s.Words[0] = word
	ep.Commit(dst, conduits.Request, s, 1, 0)
}

// pass sends messages around the ring, rounds times (0: for ever).
func pass(ep conduits.Endpoint, b *inbox, rounds int) {
	next := (ep.Rank() + 1) % ep.Size()
	for i := 1; rounds == 0 || i <= rounds; i++ {
		send(ep, next, uint32(i))
		testjob.Check(conduits.Wait(ep, nil, func() bool { return b.got >= i }))
	}
}

func ring() {
	ep, b := attach()
	rounds, err := strconv.Atoi(os.Args[1])
	testjob.Check(err)
	fmt.Println("attached")
	pass(ep, b, rounds)
	testjob.Check(ep.Close())
}

// early ends rank 1 with status 0: before it joins or after it has attached.
func early() {
	if os.Args[1] == "before" && testjob.Rank() == 1 {
		return
	}
	ep, _ := attach()
	if testjob.Rank() == 1 {
		os.Exit(0)
	}
	block(ep)
}

// exit ends the rank that is named in the way that is named; others wait.
func exit() {
	ep, b := attach()
	pass(ep, b, 3)
	if r, _ := strconv.Atoi(os.Args[1]); r == testjob.Rank() {
		switch how := os.Args[2]; how {
		case "panic":
			fmt.Fprintln(os.Stderr, "about to panic")
			panic("boom")
		case "segv":
			signal.Reset()
			syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			stay()
		default:
			n, err := strconv.Atoi(how)
			testjob.Check(err)
			fmt.Fprintln(os.Stderr, "the reason")
			os.Exit(n)
		}
	}
	block(ep)
}

// misfit ends each rank with its number as status, attaching nowhere.
func misfit() { os.Exit(testjob.Rank()) }

// follow has rank 0 end as if a peer had failed, before the one that really
// fails ends.
func follow() {
	ep, b := attach()
	if testjob.Rank() == 0 {
		s, _ := ep.Reserve(1, conduits.Request, 1, 0)
		ep.Commit(1, conduits.Request, s, 1, 0)
		os.Exit(jobenv.StatusPeerFailed)
	}
	conduits.Wait(ep, nil, func() bool { return b.got > 0 })
	os.Exit(7)
}

// own has rank 0 end with a status of its own because rank 1 has failed, before rank 1 ends.
func own() {
	ep, b := attach()
	if testjob.Rank() == 0 {
		s, _ := ep.Reserve(1, conduits.Request, 1, 0)
		s.Words[0] = uint32(os.Getpid())
		ep.Commit(1, conduits.Request, s, 1, 0)
		_ = conduits.Wait(ep, nil, func() bool { return false })
		os.Exit(3)
	}
	testjob.Check(conduits.Wait(ep, nil, func() bool { return b.got > 0 }))
	ep.Fail(errors.New("out of luck"))
	for syscall.Kill(int(b.word), 0) == nil { // until the launcher has seen its end
		runtime.Gosched()
	}
	os.Exit(7)
}

// orphans leaves processes behind, in the group, out of it, out of the session,
// with nothing in their environment, and grandchildren of those.
func orphans() {
	ep, b := attach()
	start := func(env []string, setsid bool, script string) {
		c := exec.Command("/bin/sh", "-c", script)
		c.Env = env
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		c.Stdout = os.Stdout
		testjob.Check(c.Start())
	}
	start(os.Environ(), false, "sleep 10000")
	start(os.Environ(), true, "sleep 10000 & exec sleep 10000")
	start([]string{"PATH=" + os.Getenv("PATH")}, false, "sleep 10000 & (sleep 10000 & sleep 10000) & exec sleep 10000")
	pass(ep, b, 2)
	if os.Args[1] == "fail" && testjob.Rank() == 0 {
		os.Exit(9)
	}
	testjob.Check(ep.Close())
}

// stubborn ignores the signals that ask it to end, except in rank 0, which fails.
func stubborn() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	ep, b := attach()
	switch {
	case len(os.Args) == 1:
		pass(ep, b, 1)
		fmt.Println("ready")
	case ep.Rank() > 0:
		send(ep, 0, 1)
	default: // when none of the others, which stay, can hear of it any more
		testjob.Check(conduits.Wait(ep, nil, func() bool { return b.got == ep.Size()-1 }))
		os.Exit(5)
	}
	stay()
}

// signals prints the signals it gets and ends by SIGTERM.
func signals() {
	ch := make(chan os.Signal, 10)
	signal.Notify(ch, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGTERM) // not the runtime's own, which may fill it
	ep, b := attach()
	pass(ep, b, 1)
	fmt.Println("ready")
	for s := range ch {
		fmt.Println(sys.SignalName(s.(syscall.Signal)))
		if s == syscall.SIGTERM || s == syscall.SIGINT {
			testjob.Check(ep.Close())
			return
		}
	}
}

// answer says where it waits when asked, except rank 1, which the test stops,
// and rank 2, for which the Go runtime answers.
func answer() {
	ch := make(chan os.Signal, 1)
	if testjob.Rank() != 2 {
		signal.Notify(ch, syscall.SIGQUIT)
	}
	fmt.Println("ready")
	if testjob.Rank() == 2 {
		stay()
	}
	<-ch
	fmt.Fprintf(os.Stderr, "argon: where rank %d waits: for %d\n", testjob.Rank(), testjob.Rank()+10)
	fmt.Fprintf(os.Stderr, "stack of rank %d\n", testjob.Rank())
	if len(os.Args) > 1 {
		stay()
	}
	os.Exit(2)
}

// nested starts a job with more processes than it has itself, and is killed.
func nested() {
	self, err := os.Executable()
	testjob.Check(err)
	res, err := launch.Run(context.Background(), launch.Config{
		Size: 3, Program: self, Args: []string{"0"}, Env: []string{"ARGONTEST_JOB=ring"}, Segment: 1 << 20, Stdout: os.Stdout,
		Started: func(pids []int) { fmt.Println("pids", pids) },
	})
	fmt.Println(res.Status, err)
}

func affinity() {
	cpus, err := sys.Affinity()
	testjob.Check(err)
	fmt.Println(cpus)
}

func rankError(t *testing.T, r *testjob.Result, rank int, parts ...string) {
	t.Helper()
	var re *launch.RankError
	if !errors.As(r.Err, &re) || re.Rank != rank || r.Failed != rank {
		t.Fatalf("the job ended with %v, want rank %d named", r.Err, rank)
	}
	for _, p := range append(parts, fmt.Sprintf("(pid %d)", r.Ranks[rank].Pid)) {
		if !strings.Contains(re.Error(), p) {
			t.Errorf("%q does not name %q", re, p)
		}
	}
}

func TestGoodOrder(t *testing.T) {
	r := testjob.RunConfig(t, 4, "ring", testjob.Config{Args: []string{"100"}}).Want(t, 0)
	if r.Err != nil || r.Failed != -1 {
		t.Errorf("error %v, failed %d", r.Err, r.Failed)
	}
	for i, rk := range r.Ranks {
		if rk.State != launch.Finished || rk.Pid == 0 || rk.User+rk.System == 0 || rk.MaxRSS == 0 {
			t.Errorf("rank %d: %+v", i, rk)
		}
	}
}

func TestFirstFailureDecides(t *testing.T) {
	for _, tc := range []struct {
		how    string
		status int
		cause  string
	}{
		{"3", 3, "exited with status 3: the reason"},
		{"255", 255, "exited with status 255"},
		{"121", 121, "exited with status 121"},
		{"panic", 2, "exited with status 2: panic: boom"},
		{"segv", 139, "killed by SIGSEGV"},
	} {
		t.Run(tc.how, func(t *testing.T) {
			t.Parallel()
			r := testjob.RunConfig(t, 3, "exit", testjob.Config{Args: []string{"2", tc.how}, KillGrace: never})
			if tc.how != "segv" { // as Go programs die by it: status 2
				r.Want(t, tc.status)
				rankError(t, r, 2, tc.cause)
				return
			}
			if r.Failed != 2 || r.Status != 2 && r.Status != 139 {
				t.Errorf("status %d, %v", r.Status, r.Err)
			}
		})
	}
}

// If rank 0 fails because rank 1 failed, the job names rank 1, whichever exits first.
func TestConsequenceGivesWay(t *testing.T) {
	r := testjob.RunConfig(t, 2, "follow", testjob.Config{KillGrace: never}).Want(t, 7)
	rankError(t, r, 1, "status 7")
}

// So it is if the program makes of what it hears an end with a status of its own.
func TestOwnConsequence(t *testing.T) {
	r := testjob.RunConfig(t, 2, "own", testjob.Config{KillGrace: never}).Want(t, 7)
	rankError(t, r, 1, "status 7")
}

func TestExitBeforeEnd(t *testing.T) {
	for how, cause := range map[string]string{
		"before": "exited with status 0 before it attached, while others wait for it",
		"after":  "exited with status 0 before it left the job",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := testjob.RunConfig(t, 3, "early", testjob.Config{Args: []string{how}, KillGrace: never}).Want(t, 1)
			rankError(t, r, 1, cause)
		})
	}
}

func TestNoArgonProgram(t *testing.T) {
	r := testjob.Run(t, 3, "nothing").Want(t, 1)
	if r.Failed != -1 || !strings.Contains(r.Err.Error(), "probably not an argon program") {
		t.Errorf("error is %v", r.Err)
	}
	r = testjob.Run(t, 3, "misfit")
	if r.Status != 1 && r.Status != 2 || r.Failed != r.Status {
		t.Errorf("status %d, failed %d: %v", r.Status, r.Failed, r.Err)
	}
}

func TestOrphansAreKilled(t *testing.T) {
	// One after the other: only a launcher without other children can tell
	// whose a process without any mark is.
	for how, status := range map[string]int{"fail": 9, "end": 0} {
		t.Run(how, func(t *testing.T) {
			before := children(t)
			testjob.RunConfig(t, 2, "orphans", testjob.Config{
				Args:   []string{how},
				Launch: func(c *launch.Config) { c.Exclusive = true },
			}).Want(t, status)
			if after := children(t); len(after) > len(before) {
				t.Errorf("children %v before, %v after", before, after)
			}
		})
	}
	testjob.AssertNoLeftovers(t)
}

// Where the kernel cannot make the launcher the parent of orphans, jobs run without
// that, and -v says so; what its ranks leave behind in their groups is found.
func TestWithoutSubreaper(t *testing.T) {
	defer launch.WithoutSubreaper()()
	var log bytes.Buffer
	run := func(program string, verbose bool, args ...string) *testjob.Result {
		log.Reset()
		return testjob.RunConfig(t, 2, program, testjob.Config{Args: args, Launch: func(c *launch.Config) {
			c.Log, c.Verbose, c.Quiet = &log, verbose, false
		}})
	}
	run("ring", true, "2").Want(t, 0)
	if !strings.Contains(log.String(), "PR_SET_CHILD_SUBREAPER: invalid argument") {
		t.Errorf("-v says %q", &log)
	}
	if run("ring", false, "2").Want(t, 0); log.Len() > 0 {
		t.Errorf("without -v it says %q", &log)
	}
}

// children lists the child processes of this one.
func children(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(all) == 0 {
		t.Fatalf("cannot list children: %v", err)
	}
	var pids []string
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

// Ranks that ignore SIGTERM are killed after the grace time, at the second
// signal, or when there is no grace.
func TestStubbornRanks(t *testing.T) {
	t.Run("grace", func(t *testing.T) {
		t.Parallel()
		r := testjob.RunConfig(t, 3, "stubborn", testjob.Config{Args: []string{"fail"}, KillGrace: time.Millisecond}).Want(t, 5)
		rankError(t, r, 0)
		if r.Ranks[1].Signal != syscall.SIGKILL {
			t.Errorf("rank 1 ended with %+v", r.Ranks[1])
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		r := testjob.RunConfig(t, 3, "stubborn", testjob.Config{Args: []string{"fail"}, KillGrace: -1}).Want(t, 5)
		rankError(t, r, 0)
	})
	t.Run("second", func(t *testing.T) {
		t.Parallel()
		sig := make(chan os.Signal, 2)
		out := onOutput("ready\n", 3, func() { sig <- syscall.SIGINT; sig <- syscall.SIGINT })
		r := testjob.RunConfig(t, 3, "stubborn", testjob.Config{KillGrace: never, Launch: func(c *launch.Config) {
			c.Signals, c.Stdout = sig, out
		}}).Want(t, 130)
		if r.Failed != -1 || !strings.Contains(r.Err.Error(), "SIGINT") {
			t.Errorf("error is %v", r.Err)
		}
	})
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		// RunConfig ends the job with the test's context; here another one.
		ctx, cancel := context.WithCancelCause(t.Context())
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		res, err := launch.Run(ctx, launch.Config{
			Size: 2, Program: self, Env: []string{"ARGONTEST_JOB=stubborn"}, Segment: 1 << 20, KillGrace: time.Millisecond,
			Stdout: onOutput("ready\n", 2, func() { cancel(errors.New("enough")) }),
		})
		if res.Status != 143 || err == nil || err.Error() != "enough" {
			t.Errorf("status %d, %v", res.Status, err)
		}
	})
}

// onOutput calls f once when text has been written n times.
func onOutput(text string, n int, f func()) *trigger { return &trigger{text: text, n: n, f: f} }

type trigger struct {
	bytes.Buffer
	text string
	n    int
	f    func()
}

func (w *trigger) Write(b []byte) (int, error) {
	w.Buffer.Write(b)
	if w.f != nil && strings.Count(w.String(), w.text) >= w.n {
		w.f()
		w.f = nil
	}
	return len(b), nil
}

func TestSignalsAreForwarded(t *testing.T) {
	sig := make(chan os.Signal, 3)
	// Each is sent when all ranks have told of the one before.
	var out strings.Builder
	step, sends := 0, []syscall.Signal{syscall.SIGUSR2, syscall.SIGINT}
	w := writerFunc(func(b []byte) (int, error) {
		out.Write(b)
		if step < len(sends) && strings.Count(out.String(), "\n") == 3*(step+1) {
			sig <- sends[step]
			step++
		}
		return len(b), nil
	})
	r := testjob.RunConfig(t, 3, "signals", testjob.Config{KillGrace: never, Launch: func(c *launch.Config) {
		c.Signals, c.Stdout = sig, w
	}}).Want(t, 0)
	for i := range r.Stdout {
		if r.Stdout[i] != "ready\nSIGUSR2\nSIGINT\n" {
			t.Errorf("rank %d got %q", i, r.Stdout[i])
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestWhereRanksWait(t *testing.T) {
	var log bytes.Buffer
	sig := make(chan os.Signal, 1)
	pids := make(chan []int, 1)
	r := testjob.RunConfig(t, 5, "answer", testjob.Config{
		Started: func(p []int) { pids <- p },
		Launch: func(c *launch.Config) {
			c.Signals, c.Log, c.Stderr, c.AnswerGrace = sig, &log, &log, never
			c.Stdout = onOutput("ready\n", 5, func() {
				stop(t, (<-pids)[1])
				sig <- syscall.SIGQUIT
			})
		},
	}).Want(t, jobenv.StatusQuit)
	text := log.String()
	lines := []string{
		fmt.Sprintf("gasrun:   rank 1 (pid %d): has not attached; the process is stopped\n", r.Ranks[1].Pid),
		fmt.Sprintf("gasrun:   rank 2 (pid %d): has not attached", r.Ranks[2].Pid),
		"SIGQUIT: quit", // the Go runtime's own answer in rank 2
	}
	for _, i := range []int{0, 3, 4} {
		lines = append(lines, fmt.Sprintf("gasrun:   rank %d (pid %d): for %d\n", i, r.Ranks[i].Pid, i+10), fmt.Sprintf("stack of rank %d\n", i))
	}
	for _, l := range lines {
		if strings.Count(text, l) != 1 {
			t.Errorf("%q is there %d times, want once", l, strings.Count(text, l))
		}
	}
	if i, k := strings.Index(text, "rank 4 (pid"), strings.Index(text, "stack of"); i < 0 || k < i {
		t.Errorf("stacks come before the summary")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// stop stops a process and waits until it stands still.
func stop(t *testing.T, pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	for {
		f := sys.ProcStat(pid)
		if len(f) == 0 {
			t.Error("the process has ended")
		}
		if len(f) == 0 || f[0] == "T" {
			return
		}
		runtime.Gosched()
	}
}

// Ranks that go on after the question, or never hear it, are killed.
func TestTimeout(t *testing.T) {
	for _, program := range []string{"answer", "stubborn"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := testjob.RunConfig(t, 3, program, testjob.Config{Timeout: 50 * time.Millisecond, Args: []string{"go on"}, Launch: func(c *launch.Config) {
				c.Log, c.AnswerGrace = &log, 10*time.Millisecond
				if program == "stubborn" {
					c.Args = nil
				}
			}}).Want(t, jobenv.StatusTimeout)
			for i := range r.Ranks {
				if l := fmt.Sprintf("gasrun:   rank %d (pid %d): ", i, r.Ranks[i].Pid); !strings.Contains(log.String(), l) {
					t.Errorf("%q is missing from %q", l, log.String())
				}
			}
			if !strings.Contains(r.Err.Error(), "50ms (-timeout)") {
				t.Errorf("error is %v", r.Err)
			}
		})
	}
}

func TestOutputDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	var out bytes.Buffer
	testjobOut := testjob.RunConfig(t, 11, "environment", testjob.Config{NoConduit: true, Launch: func(c *launch.Config) {
		c.Stdout = &out
	}}).Want(t, 0)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	res, err := launch.Run(t.Context(), launch.Config{Size: 11, Program: self, Env: []string{"ARGONTEST_JOB=environment"}, OutputDir: dir, Segment: 1 << 20})
	if res.Status != 1 { // none attaches
		t.Fatal(res.Status, err)
	}
	for i := range 11 {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%02d.out", i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{string(b), testjobOut.Stdout[i]} {
			if !strings.Contains(s, fmt.Sprintf("ARGON_RANK=%d\n", i)) {
				t.Errorf("file of rank %d holds %q", i, s)
			}
		}
	}
	if strings.Count(out.String(), "ARGON_SIZE=11\n") != 11 {
		t.Errorf("the common output misses ranks")
	}
}

// TestIncompleteFiles: a file that does not get a rank's output is a status, a line, and no
// harm to other output; a failure of the job counts for more.
func TestIncompleteFiles(t *testing.T) {
	for _, tc := range []struct {
		name, program string
		status        int
		harm          func(t *testing.T, dir string) (atOutput func())
		want          string
	}{
		{"full", "ring", 1, func(t *testing.T, dir string) func() {
			if err := os.Symlink("/dev/full", filepath.Join(dir, "rank-0.out")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "1 of 4 output files are not complete: write .*/rank-0.out: no space left on device \\(-output-dir\\)"},
		{"deleted", "ring", 1, func(t *testing.T, dir string) func() {
			return func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			}
		}, "[1-4] of 4 output files are not complete: close .*: the file has been deleted \\(-output-dir\\)"},
		{"failure", "exit", 7, func(t *testing.T, dir string) func() {
			if err := os.Symlink("/dev/full", filepath.Join(dir, "rank-1.err")); err != nil {
				t.Fatal(err)
			}
			return nil
		}, "rank 1 .* exited with status 7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := onOutput("attached\n", 2, tc.harm(t, dir))
			var log bytes.Buffer
			args := []string{"2"}
			if tc.program == "exit" {
				args = []string{"1", "7"}
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			res, err := launch.Run(t.Context(), launch.Config{
				Size: 2, Program: self, Args: args, Env: []string{"ARGONTEST_JOB=" + tc.program}, Segment: 1 << 20,
				KillGrace: never, Stdout: out, Log: &log, OutputDir: dir,
			})
			if res.Status != tc.status || err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) {
				t.Errorf("status %d, %v, want %d and %q", res.Status, err, tc.status, tc.want)
			}
			if tc.program == "exit" {
				return
			}
			if !strings.Contains(log.String(), "gasrun: an output file is not complete: ") {
				t.Errorf("the log says %q", log.String())
			}
			if out.String() != "attached\nattached\n" {
				t.Errorf("wrote %q", out.String())
			}
			if b, err := os.ReadFile(filepath.Join(dir, "rank-1.out")); tc.name == "full" && (err != nil || string(b) != "attached\n") {
				t.Errorf("the other rank's file holds %q, %v", b, err)
			}
		})
	}
}

// TestUnreadOutput: a job that is told to end does so although nothing takes its output, of
// this machine and on hosts.
func TestUnreadOutput(t *testing.T) {
	defer launch.WithOutputLimit(time.Millisecond)()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, hosts := range []bool{false, true} {
		full := make(chan struct{})
		defer close(full)
		sig := make(chan os.Signal, 1)
		stuck := writerFunc(func(b []byte) (int, error) {
			select {
			case sig <- syscall.SIGTERM:
			default:
			}
			<-full
			return len(b), nil
		})
		var log safe
		c := launch.Config{
			Size: 2, Program: self, Args: []string{"0"}, Env: []string{"ARGONTEST_JOB=ring"}, Segment: 1 << 20,
			KillGrace: never, Stdout: stuck, Log: &log, Signals: sig,
		}
		if hosts {
			onTwo(t, &c, true, 1)
		}
		res, err := launch.Run(t.Context(), c)
		if res.Status != 143 || res.Unread || err == nil || !strings.Contains(log.String(), "nothing reads the output") {
			t.Errorf("on hosts %v: status %d, %v, unread %v, log %q", hosts, res.Status, err, res.Unread, log.String())
		}
	}
}

func TestBinding(t *testing.T) {
	all := testjob.RunConfig(t, 1, "affinity", testjob.Config{NoConduit: true}).Want(t, 0).Stdout[0]
	cpus := strings.Fields(strings.Trim(all, "[]\n"))
	n := len(cpus) + 1
	r := testjob.RunConfig(t, n, "affinity", testjob.Config{NoConduit: true, Launch: func(c *launch.Config) { c.Bind = launch.BindCore }}).Want(t, 0)
	for i := range n {
		if want := "[" + cpus[i*len(cpus)/n] + "]\n"; r.Stdout[i] != want {
			t.Errorf("rank %d runs on %q, want %q", i, r.Stdout[i], want)
		}
	}
	again := testjob.RunConfig(t, 1, "affinity", testjob.Config{NoConduit: true}).Want(t, 0).Stdout[0]
	if again != all {
		t.Errorf("after a bound job ranks may run on %q, before on %q", again, all)
	}
}

func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "noexec")
	if err := os.WriteFile(script, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken")
	testmain.Executable(t, broken, "\x7fELFnonsense")
	for _, tc := range []struct {
		name   string
		config launch.Config
		status int
		want   string
	}{
		{"missing", launch.Config{Program: "no-such-program"}, 2, `"no-such-program"`},
		{"not executable", launch.Config{Program: script}, 2, "permission denied"},
		{"broken", launch.Config{Program: broken, Segment: 1 << 20}, 1, "rank 0 of 1: " + broken + ": exec format error"},
		{"output directory", launch.Config{Program: "true", OutputDir: script, Segment: 1 << 20}, 1, "-output-dir"},
		{"too large", launch.Config{Program: "true", Segment: 1 << 60}, 1, "-segment"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := launch.Run(t.Context(), tc.config)
			if res.Status != tc.status || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("status %d, %v; want %d and an error with %q", res.Status, err, tc.status, tc.want)
			}
		})
	}
	testjob.AssertNoLeftovers(t)
}

// A stopped rank does not keep a job from ending.
func TestStoppedRank(t *testing.T) {
	r := testjob.RunConfig(t, 3, "ring", testjob.Config{Args: []string{"0"}, KillGrace: never, Started: func(pids []int) {
		stop(t, pids[1])
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}}).Want(t, 137)
	rankError(t, r, 0, "killed by SIGKILL")
}

// If the launcher is killed, its ranks die too.
func TestLauncherIsKilled(t *testing.T) {
	r := testjob.RunConfig(t, 1, "nested", testjob.Config{NoConduit: true, Launch: func(c *launch.Config) {
		// The inner job's ranks have attached: kill the rank that launched them.
		var pid int
		pidKnown := make(chan struct{})
		c.Started = func(pids []int) { pid = pids[0]; close(pidKnown) }
		c.Stdout = onOutput("attached\n", 3, func() { go func() { <-pidKnown; syscall.Kill(pid, syscall.SIGKILL) }() })
	}}).Want(t, 137)
	if strings.Count(r.Stdout[0], "attached\n") != 3 {
		t.Errorf("the inner job wrote %q", r.Stdout[0])
	}
	for pid, id := range launch.JobProcesses() {
		// The kernel has killed it, but it may not have got to die yet.
		if strings.HasPrefix(id, fmt.Sprintf("%d.", r.Ranks[0].Pid)) && !sys.AwaitExit(pid, time.Minute) {
			t.Errorf("process %d of the inner job is left", pid)
		}
	}
}

// Jobs that lose a random rank at a random moment end by themselves with the
// right status and leave nothing. Run more with -killjobs.
func TestKillAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for i := range *killJobs {
		n := 2 + rng.IntN(4)
		victim := rng.IntN(n)
		// From before the first instruction to amid the exchange.
		delay := time.Duration(rng.IntN(60)) * time.Millisecond
		if rng.IntN(4) == 0 {
			delay = 0
		}
		r := testjob.RunConfig(t, n, "ring", testjob.Config{Args: []string{"0"}, KillGrace: never, Started: func(pids []int) {
			time.Sleep(delay)
			syscall.Kill(pids[victim], syscall.SIGKILL)
		}})
		if r.Status != 137 || r.Failed != victim {
			t.Errorf("job %d: rank %d of %d killed after %v: status %d, failed %d, %v%s", i, victim, n, delay, r.Status, r.Failed, r.Err, r.Output())
		}
	}
	testjob.AssertNoLeftovers(t)
}

func TestLeftoversAreSeen(t *testing.T) {
	c := exec.Command("sleep", "10000")
	c.Env = []string{"ARGON_JOBID=some.job"}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	got := launch.Leftovers("some.job")
	for ; len(got) == 0; got = launch.Leftovers("some.job") { // amid exec it has no environment
		runtime.Gosched()
	}
	if !slices.Equal(got, []int{c.Process.Pid}) {
		t.Errorf("leftovers are %v, want %d", got, c.Process.Pid)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if got := launch.Leftovers("some.job"); len(got) != 0 {
		t.Errorf("leftovers are %v, want none", got)
	}
}
