package testjob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
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
