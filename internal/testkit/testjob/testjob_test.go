package testjob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	Main(m, map[string]func(){
		"say":  func() { fmt.Printf("%d of %d: %s\n", Rank(), Size(), strings.Join(os.Args[1:], "|")) },
		"cat":  func() { io.Copy(os.Stdout, os.Stdin) },
		"fail": func() { Fatal("%s", "no luck") },
		"ring": ring,
		"wait": wait,
	})
}

// inbox counts what arrives.
type inbox struct{ got []uint32 }

func (b *inbox) Receive(m *conduits.Message)                    { b.got = append(b.got, m.Words[0]) }
func (b *inbox) Complete(uint64, conduits.Event, uint64, error) {}

func attach() (conduits.Endpoint, *inbox) {
	ep, err := Join(conduits.Config{})
	Check(err)
	b := &inbox{}
	Check(ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: b}))
	return ep, b
}

// ring passes one word around.
func ring() {
	ep, b := attach()
	next := (ep.Rank() + 1) % ep.Size()
	s, st := ep.Reserve(next, conduits.Request, 1, 0)
	if st != conduits.Ready {
		Fatal("no room for the first message: %v", st)
	}
	s.Words[0] = uint32(ep.Rank())
	ep.Commit(next, conduits.Request, s, 1, 0)
	Check(conduits.Wait(ep, nil, func() bool { return len(b.got) > 0 }))
	fmt.Println("from", b.got[0])
	Check(ep.Close())
}

// wait waits for a message that never comes.
func wait() {
	ep, b := attach()
	fmt.Println("attached")
	Check(conduits.Wait(ep, nil, func() bool { return len(b.got) > 0 }))
}

func TestOutputAndArguments(t *testing.T) {
	r := RunConfig(t, 3, "say", Config{NoConduit: true, Args: []string{"a b", "", "c"}}).Want(t, 0)
	for i, out := range r.Stdout {
		if want := fmt.Sprintf("%d of 3: a b||c\n", i); out != want {
			t.Errorf("rank %d wrote %q, want %q", i, out, want)
		}
	}
}

func TestStdinGoesToRank0(t *testing.T) {
	r := RunConfig(t, 2, "cat", Config{NoConduit: true, Stdin: "one\ntwo"}).Want(t, 0)
	if r.Stdout[0] != "one\ntwo" || r.Stdout[1] != "" {
		t.Errorf("ranks read %q", r.Stdout)
	}
}

func TestRingOverSharedMemory(t *testing.T) {
	r := Run(t, 4, "ring").Want(t, 0)
	for i, out := range r.Stdout {
		if want := fmt.Sprintf("from %d\n", (i+3)%4); out != want {
			t.Errorf("rank %d wrote %q, want %q", i, out, want)
		}
	}
	AssertNoLeftovers(t)
}

func TestFailureIsNamed(t *testing.T) {
	r := RunConfig(t, 1, "fail", Config{NoConduit: true}).Want(t, 1)
	var re *launch.RankError
	if !errors.As(r.Err, &re) || re.Rank != 0 || !strings.Contains(re.Error(), "no luck") {
		t.Errorf("error is %v", r.Err)
	}
}

// A rank that is killed while all wait for messages ends the job, whose status
// tells how.
func TestKilledRank(t *testing.T) {
	r := RunConfig(t, 3, "wait", Config{Started: func(pids []int) { syscall.Kill(pids[1], syscall.SIGKILL) }})
	r.Want(t, 128+int(syscall.SIGKILL))
	if r.Failed != 1 {
		t.Errorf("rank %d is named, want 1: %v", r.Failed, r.Err)
	}
	AssertNoLeftovers(t)
}

func TestOutputNamesRanks(t *testing.T) {
	r := &Result{Stdout: []string{"x\n", ""}, Stderr: []string{"", "y\n"}}
	sc := bufio.NewScanner(strings.NewReader(r.Output()))
	var lines []string
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	want := []string{"", "--- rank 0, stdout:", "x", "", "--- rank 1, stderr:", "y"}
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// TestStuck hangs in jobs of both kinds, in a process of its own.
func TestStuck(t *testing.T) {
	if os.Getenv(envStuck) == "" {
		t.Skip("is run by TestWatchdogNamesJobs")
	}
	go func() {
		c, err := conduits.Lookup("shm")
		if err != nil {
			t.Error(err)
			return
		}
		eps, err := c.Local(2, conduits.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		conduits.Run(eps, func(i int) {
			if err := eps[i].Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &inbox{}}); err != nil {
				t.Error(err)
			}
			_ = conduits.Wait(eps[i], lost(fmt.Sprintf("a letter to %d that is lost", i)), func() bool { return false })
		})
	}()
	Run(t, 2, "wait")
}

const envStuck = "ARGONTEST_STUCK"

type lost string

func (l lost) Blocked() string { return string(l) }

// The watchdog says what the ranks of jobs in the process, and those of jobs of
// several processes, wait for, and leaves no process behind.
func TestWatchdogNamesJobs(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^TestStuck$", "-test.timeout", "5m")
	c.Env = append(os.Environ(), envStuck+"=1", "ARGONTEST_WATCHDOG=1s")
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 2 {
		t.Errorf("ends with %v, want status 2", err)
	}
	for _, want := range []string{
		"testjob.TestStuck", "rank 0: a letter to 0 that is lost", "rank 1: a letter to 1 that is lost",
		"ended by SIGQUIT", "where each rank waits", "program wait of 2 ranks", "rank 1, stderr", "testjob.wait()",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
	for pid, job := range launch.JobProcesses() {
		if strings.HasPrefix(job, fmt.Sprintf("%d.", c.Process.Pid)) {
			t.Errorf("process %d is left", pid)
		}
	}
}
