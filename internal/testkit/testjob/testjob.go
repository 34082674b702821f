package testjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/live"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// envProgram tells a rank which program to run.
const envProgram = "ARGONTEST_JOB"

var registered map[string]func()

// Main runs the tests of a package, or, in a rank of a job that a test started,
// one of programs. It does not return. The tests are under the watchdog of package
// testmain.
func Main(m *testing.M, programs map[string]func()) {
	name := os.Getenv(envProgram)
	if name == "" {
		registered = programs
		launch.DefaultAskTime = time.Minute // jobs have Config.AnswerGrace, which tests may raise
		launch.SettleTime = time.Minute     // and Config.KillGrace
		launch.DeathGrace = 10 * time.Second
		os.Exit(testmain.Run(m))
	}
	p := programs[name]
	if p == nil {
		Fatal("no program %q in this test binary", name)
	}
	p()
	os.Exit(0)
}

// Rank is the calling rank's number, -1 outside a job.
func Rank() int { return number(jobenv.Rank, -1) }

// Size is the number of ranks of the calling rank's job, 0 outside a job.
func Size() int { return number(jobenv.Size, 0) }

func number(key string, none int) int {
	if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
		return n
	}
	return none
}

// Join opens the calling rank's endpoint of the job that it was started in.
func Join(c conduits.Config) (conduits.Endpoint, error) {
	cd, err := conduits.Lookup(os.Getenv(jobenv.Conduit))
	if err != nil {
		return nil, err
	}
	return cd.Join(conduits.Job{Rank: Rank(), Size: Size(), Env: os.Getenv}, c)
}

// Fatal ends the calling rank with status 1 and a message on standard error.
func Fatal(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "rank %d: "+format+"\n", append([]any{Rank()}, args...)...)
	os.Exit(1)
}

// Check ends the calling rank if err is not nil: with status 1, or with
// jobenv.StatusPeerFailed if another rank's failure is the cause.
func Check(err error) {
	if err == nil {
		return
	}
	if errors.Is(err, errs.ErrPeer) {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", Rank(), err)
		os.Exit(jobenv.StatusPeerFailed)
	}
	Fatal("%v", err)
}

// Config says how a job differs from the usual one.
type Config struct {
	Args      []string // arguments of the program: os.Args[1:]
	Env       []string // KEY=VALUE
	Stdin     string   // standard input of rank 0
	Segment   uint64   // largest segment per rank, bytes; 0 means 16 MiB
	NoConduit bool     // the program joins no conduit and attaches nowhere
	// Timeout after which ranks are asked where they wait and the job ends with
	// status 124; 0 means that only the test binary's own limit holds.
	Timeout time.Duration
	// KillGrace is the time ranks have to end after another one's failure; 0
	// means 5 s, negative means none.
	KillGrace time.Duration
	// Started is called when all ranks have been started, with their process
	// ids, in a goroutine of its own, whose end Run awaits.
	Started func(pids []int)
	// Launch changes anything else.
	Launch func(*launch.Config)
}

// Result is how a job ended.
type Result struct {
	launch.Result
	Err    error    // why the job failed, or nil
	Stdout []string // output by rank
	Stderr []string
}

// Run runs program as a job of n ranks and waits for its end.
func Run(t testing.TB, n int, program string) *Result {
	t.Helper()
	return RunConfig(t, n, program, Config{})
}

// runnable is nil, or the error of a kernel that does not know programs for this
// processor: an emulator runs the tests then, and cannot be told to run ranks.
var runnable = sync.OnceValue(func() error {
	self, err := os.Executable()
	if err != nil {
		return nil // the job will say so
	}
	c := exec.Command(self, "-test.list=^$")
	if err := c.Run(); errors.Is(err, syscall.ENOEXEC) {
		return err
	}
	return nil
})

// Runnable skips a test of processes where an emulator runs the test program, which
// the kernel cannot start.
func Runnable(t testing.TB) {
	t.Helper()
	if err := runnable(); err != nil {
		t.Skipf("testjob: this machine cannot start the test program, which is emulated: %v", err)
	}
}

// Command is a process of this test binary that runs program, which was given to
// Main, outside of any job, unless env (KEY=VALUE) makes it a rank. Its output is
// dropped if c does not say otherwise.
func Command(t testing.TB, program string, env ...string) *exec.Cmd {
	t.Helper()
	Runnable(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envProgram+"="+program,
		"SLURM_PROCID=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=") // of what runs the tests
	c.Env = append(c.Env, env...)
	return c
}

// Refused checks that program, run by Command with env, cannot be meant: it ends with
// status 2 and one line of output, which contains want.
func Refused(t testing.TB, program, want string, env ...string) {
	t.Helper()
	out, err := Command(t, program, env...).CombinedOutput()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.ExitCode() != jobenv.StatusUsage {
		t.Errorf("%v: %v, want status %d", env, err, jobenv.StatusUsage)
	}
	if s := string(out); !strings.HasPrefix(s, "argon: ") || strings.Count(s, "\n") != 1 || !strings.Contains(s, want) {
		t.Errorf("%v: %q, want it to name %s", env, s, want)
	}
}

// Misuse checks that program refuses arguments: as a job of one rank it ends with
// status 2 and says on standard error what belongs to the arguments, which are separated by
// spaces.
func Misuse(t testing.TB, program string, says map[string]string) {
	t.Helper()
	for args, want := range says {
		r := RunConfig(t, 1, program, Config{Args: strings.Fields(args)}).Want(t, jobenv.StatusUsage)
		if !strings.Contains(r.Stderr[0], want) {
			t.Errorf("%s %s: %q, want %q", program, args, r.Stderr[0], want)
		}
	}
}

// RunConfig is Run with a configuration. The test fails if the job cannot be
// started or leaves a process behind; how the job ended is for the caller to
// check, see Result.Want.
func RunConfig(t testing.TB, n int, program string, c Config) *Result {
	t.Helper()
	if registered != nil && registered[program] == nil {
		t.Fatalf("testjob: no program %q was given to Main", program)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	Runnable(t)
	dir := t.TempDir()
	lc := launch.Config{
		Size:      n,
		Program:   self,
		Args:      c.Args,
		Env:       append([]string{envProgram + "=" + program}, c.Env...),
		Segment:   c.Segment,
		OutputDir: dir,
		Log:       logWriter{t: t, m: new(sync.Mutex)},
		Timeout:   c.Timeout,
		KillGrace: c.KillGrace,
		Started:   c.Started,
		Quiet:     true,
	}
	if lc.Segment == 0 {
		lc.Segment = 16 << 20
	}
	if c.Stdin != "" {
		lc.Stdin = textFile(t, dir, c.Stdin)
	}
	if c.NoConduit {
		lc.Memory = func(n int, _ uint64) (launch.Memory, error) { return newNoMemory() }
	}
	if c.Launch != nil {
		c.Launch(&lc)
	}
	// A test that is given up for lost takes its job with it.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	if lc.Signals == nil { // else the test sends them itself
		signals := make(chan os.Signal, 1)
		lc.Signals = signals
		j := &live.Job{Ask: func() {
			signals <- syscall.SIGQUIT
			<-ended
		}}
		live.Add(j)
		defer live.Remove(j)
	}
	r := &Result{}
	r.Result, r.Err = launch.Run(ctx, lc)
	if len(r.Ranks) == 0 && (r.Status == jobenv.StatusUsage || errors.Is(r.Err, errs.ErrResource) || errors.Is(r.Err, errs.ErrNotSupported)) {
		t.Fatalf("testjob: %v", r.Err)
	}
	read := func(ext string) []string {
		out := make([]string, n)
		for i := range out {
			b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%0*d.%s", len(strconv.Itoa(n-1)), i, ext)))
			if err != nil && len(r.Ranks) == n {
				t.Fatal(err)
			}
			out[i] = string(b)
		}
		return out
	}
	r.Stdout, r.Stderr = read("out"), read("err")
	if testmain.Barked() {
		fmt.Fprintf(os.Stderr, "testjob: program %s of %d ranks:%s\n", program, n, r.Output())
	}
	if left := launch.Leftovers(r.JobID); len(left) > 0 {
		t.Errorf("testjob: processes %v are left of the job", left)
	}
	return r
}

// Want fails the test unless the job ended with status, and returns r. The
// output of the ranks is shown.
func (r *Result) Want(t testing.TB, status int) *Result {
	t.Helper()
	if r.Status != status {
		t.Fatalf("testjob: the job ended with status %d (%v), want %d%s", r.Status, r.Err, status, r.Output())
	}
	return r
}

// Output is everything that the ranks wrote, for a test's message.
func (r *Result) Output() string {
	var b strings.Builder
	for i := range r.Stdout {
		for _, o := range []struct{ name, text string }{{"stdout", r.Stdout[i]}, {"stderr", r.Stderr[i]}} {
			if o.text != "" {
				fmt.Fprintf(&b, "\n--- rank %d, %s:\n%s", i, o.name, o.text)
			}
		}
	}
	return b.String()
}

// AssertNoLeftovers fails the test if a process of any job of this test binary
// still runs, or shared memory of argon is left. No job may be running.
func AssertNoLeftovers(t testing.TB) {
	t.Helper()
	ours := fmt.Sprintf("%d.", os.Getpid())
	for pid, id := range launch.JobProcesses() {
		if strings.HasPrefix(id, ours) {
			t.Errorf("testjob: process %d is left of job %s", pid, id)
		}
	}
	// Memory in a directory has a name for a moment, before it is unlinked, and there
	// may be other jobs on this machine that make some.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left, err := filepath.Glob("/dev/shm/*argon*")
		if err != nil {
			t.Fatal(err)
		}
		// The table of what is locked stays for the next job.
		left = slices.DeleteFunc(left, func(name string) bool { return strings.HasPrefix(name, "/dev/shm/argon-locked-") })
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("testjob: shared memory is left: %v", left)
			return
		}
	}
}

// logWriter passes the launcher's own lines on to the test's log.
type logWriter struct {
	t testing.TB
	m *sync.Mutex
}

func (w logWriter) Write(b []byte) (int, error) {
	w.m.Lock()
	defer w.m.Unlock()
	if testmain.Barked() { // nothing will print the test's log
		return os.Stderr.Write(b)
	}
	for _, l := range slices.Collect(strings.Lines(string(bytes.TrimRight(b, "\n")))) {
		w.t.Log(strings.TrimRight(l, "\n"))
	}
	return len(b), nil
}

// textFile is an open file that holds s.
func textFile(t testing.TB, dir, s string) *os.File {
	name := filepath.Join(dir, "stdin")
	if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// noMemory stands for the memory of a job whose ranks share none: each of them
// may end when it likes.
type noMemory struct{ file *os.File }

func newNoMemory() (launch.Memory, error) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return noMemory{f}, nil
}

func (m noMemory) File() *os.File                                   { return m.file }
func (noMemory) State(int) launch.State                             { return launch.Finished }
func (noMemory) Fail(int, int, string)                              {}
func (noMemory) Failure() (rank, status int, cause string, ok bool) { return }
func (m noMemory) Close() error                                     { return m.file.Close() }
