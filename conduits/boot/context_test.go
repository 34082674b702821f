package boot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// errEnough is why contexts of these tests end.
var errEnough = errors.New("that was enough")

// TestContextEnded: a context that ends before the job begins has no function
// called, and one that ends after it does no harm.
func TestContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if err := Run(ctx, Config{Ranks: 2}, layered((*rank).barrier)); err != nil {
		t.Fatal(err)
	}
	var after error
	if err := Run(ctx, Config{}, func(conduits.Endpoint) error {
		cancel() // the job may hear of it before it has ended
		return nil
	}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	after = Run(ctx, Config{Ranks: 2}, func(conduits.Endpoint) error {
		t.Error("the function is called")
		return nil
	})
	if !errors.Is(after, context.Canceled) {
		t.Error(after)
	}
}

// canceled is the program of TestContextLaunched: rank 1's context ends when all
// others wait, or with never before all have joined.
func canceled(never bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if never {
		cancel(errEnough)
	}
	err := Run(ctx, Config{}, layered(func(r *rank) error {
		if r.Rank() == 1 {
			cancel(errEnough)
		}
		return r.forever()
	}))
	if errors.Is(err, errEnough) {
		fmt.Println("ended by the context")
	}
	Exit(err)
}

// TestContextLaunched ends the context of one process of several.
func TestContextLaunched(t *testing.T) {
	testjob.Run(t, 3, "canceled").Want(t, jobenv.StatusFailed) // by gasrun's launcher, on shm
	for _, conduit := range []string{"udp", "hybrid"} {
		cmds, out := ranks(t, "canceled", 3, "PMI_RANK", "PMI_SIZE", "ARGON_CONDUIT="+conduit, "ARGON_JOB_KEY="+jobkey.New().Reveal())
		for r, c := range cmds {
			_ = c.Wait() // the status says more
			s := out[r].String()
			if c.ProcessState.ExitCode() != jobenv.StatusFailed || !strings.Contains(s, errEnough.Error()) || strings.Contains(s, "ended by the context") != (r == 1) {
				t.Errorf("%s: rank %d: %v\n%s", conduit, r, c.ProcessState, s)
			}
		}
	}
	m, out := ranks(t, "canceled-before", 1, "PMI_RANK", "PMI_SIZE", "ARGON_JOB_KEY="+jobkey.New().Reveal())
	_ = m[0].Wait()
	if s := out[0].String(); m[0].ProcessState.ExitCode() != jobenv.StatusFailed || !strings.Contains(s, "ended by the context") {
		t.Errorf("ended before: %v\n%s", m[0].ProcessState, s)
	}
}

// canceledJoining is the program of TestContextJoining: the context of rank 1 ends
// while it waits in Join for rank 2, which starts when it has said so.
func canceledJoining() {
	ctx, cancel := context.WithCancelCause(context.Background())
	cd, err := conduits.Lookup("udp")
	if err != nil {
		testjob.Fatal("%v", err)
	}
	join := cd.Join
	cd.Name = "canceling"
	cd.Join = func(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
		cancel(errEnough)
		return join(j, c)
	}
	conduits.Register(cd)
	err = Run(ctx, Config{Conduit: cd.Name}, func(conduits.Endpoint) error {
		testjob.Fatal("the function is called")
		return nil
	})
	var r *RankError
	if !errors.Is(err, errEnough) || errors.As(err, &r) {
		testjob.Fatal("Run: %v", err)
	}
	const keyFD = 3
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, keyFD, syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		testjob.Fatal("the key is left to children: flags %#x, %v", flags, errno)
	}
	fmt.Println("returned")
	buf := make([]byte, 1<<20)
	for strings.Contains(string(buf[:runtime.Stack(buf, true)]), "boot.joinJob") {
		time.Sleep(time.Millisecond)
	}
}

// TestContextJoining: Run returns when the context ends while ranks are
// missing, and Join, when they have come, leaves nothing behind and fails the job.
func TestContextJoining(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)) // rank 0 listens there
	key, err := jobkey.New().File()
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	var out [3]bytes.Buffer
	var cmds [3]*exec.Cmd
	start := func(r int, program string, env ...string) {
		c := testjob.Command(t, program, append(env, "PMI_SIZE=3", fmt.Sprintf("PMI_RANK=%d", r), "ARGON_RENDEZVOUS="+addr,
			jobenv.JobKeyFile+"="+jobenv.FDFolder+"3")...)
		c.ExtraFiles = []*os.File{key}
		c.Stdout, c.Stderr = &out[r], &out[r]
		if cmds[r] = c; r == 1 {
			c.Stdout = nil
		}
	}
	start(0, "canceled", "ARGON_CONDUIT=udp")
	start(1, "canceled-joining")
	start(2, "canceled", "ARGON_CONDUIT=udp")
	said, err := cmds[1].StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{0, 1, 2} {
		if r == 2 {
			if line, err := bufio.NewReader(said).ReadString('\n'); line != "returned\n" {
				t.Fatalf("rank 1: %q, %v\n%s", line, err, &out[1])
			}
		}
		if err := cmds[r].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmds[r].Process.Kill(); cmds[r].Wait() })
	}
	for r, c := range cmds {
		_ = c.Wait() // the status says more
		if status := c.ProcessState.ExitCode(); (status == 0) != (r == 1) || r != 1 && !strings.Contains(out[r].String(), errEnough.Error()) {
			t.Errorf("rank %d: %v\n%s", r, c.ProcessState, &out[r])
		}
	}
}
