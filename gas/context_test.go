package gas

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/jobkey"
	"github.com/argon-go/argon/internal/testjob"
)

// errEnough is why contexts of these tests end.
var errEnough = errors.New("that was enough")

// TestRunContext ends a job by its context, wherever its ranks wait.
func TestRunContext(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hybrid", "sim"} {
		t.Run(conduit, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			waits := make([]error, 4)
			err := RunContext(ctx, Config{Ranks: len(waits), Conduit: conduit}, func(n *Node) (err error) {
				defer func() { waits[n.Rank()] = err }()
				l, err := NewLock(n)
				if err == nil && n.Rank() == 0 {
					err = l.Lock(n)
				}
				if err == nil {
					err = n.Barrier()
				}
				if err != nil {
					return err
				}
				switch n.Rank() {
				case 0:
					cancel(errEnough)
					for n.Conduit().Err() == nil {
						n.Poll()
						runtime.Gosched()
					}
					err = n.Conduit().Err()
				case 1:
					err = l.Lock(n)
				case 2:
					err = n.Barrier()
				case 3:
					err = n.Wait(func() bool { return false })
				}
				return err
			})
			var r *RankError
			if !errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || !errors.As(err, &r) {
				t.Errorf("the job: %v", err)
			}
			for rank, err := range waits {
				var p *PeerError
				if !errors.As(err, &p) || !strings.Contains(err.Error(), errEnough.Error()) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

// TestRunContextEnded: a context that ends before the job begins has no function
// called, and one that ends after it does no harm.
func TestRunContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if err := RunContext(ctx, Config{Ranks: 2}, func(n *Node) error { return n.Barrier() }); err != nil {
		t.Fatal(err)
	}
	var after error
	if err := RunContext(ctx, Config{}, func(n *Node) error {
		cancel() // the job may hear of it before it has ended
		return nil
	}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	after = RunContext(ctx, Config{Ranks: 2}, func(n *Node) error {
		t.Error("the function is called")
		return nil
	})
	if !errors.Is(after, context.Canceled) {
		t.Error(after)
	}
}

// TestRunContextOfFailed: the failure of a rank is not hidden by a context that ends
// because of it, and is not taken for one by the context.
func TestRunContextOfFailed(t *testing.T) {
	wrong := errors.New("wrong")
	for _, conduit := range []string{"shm", "udp", "hybrid", "sim"} {
		for what, c := range map[string]struct {
			fail func(n *Node) error
			want error
		}{
			"error":    {func(*Node) error { return wrong }, wrong},
			"exit":     {func(n *Node) error { return n.Exit(3) }, ErrExit},
			"deadlock": {func(n *Node) error { return n.Wait(func() bool { return false }) }, nil}, // by the simulator
		} {
			if what == "deadlock" && conduit != "sim" {
				continue
			}
			t.Run(conduit+" "+what, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				err := RunContext(ctx, Config{Ranks: 3, Conduit: conduit}, func(n *Node) error {
					if n.Rank() == 1 {
						return c.fail(n)
					}
					err := n.Barrier()
					cancel(errEnough)
					for range 1000 { // so that the job most likely hears of it
						runtime.Gosched()
					}
					return err
				})
				if err == nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, errEnough) || strings.Contains(err.Error(), errEnough.Error()) {
					t.Error(err)
				}
			})
		}
	}
}

// canceled is the program of TestRunContextLaunched: rank 1's context ends when all
// others wait, or with never before all have joined.
func canceled(never bool) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if never {
		cancel(errEnough)
	}
	err := RunContext(ctx, Config{}, func(n *Node) error {
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			cancel(errEnough)
		}
		return n.Wait(func() bool { return false })
	})
	if errors.Is(err, errEnough) {
		fmt.Println("ended by the context")
	}
	Exit(err)
}

// TestRunContextLaunched ends the context of one process of several.
func TestRunContextLaunched(t *testing.T) {
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

// canceledJoining is the program of TestRunContextJoining: the context of rank 1 ends
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
	err = RunContext(ctx, Config{Conduit: cd.Name}, func(*Node) error {
		testjob.Fatal("the function is called")
		return nil
	})
	var r *RankError
	if !errors.Is(err, errEnough) || errors.As(err, &r) {
		testjob.Fatal("RunContext: %v", err)
	}
	const keyFD = 3
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, keyFD, syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		testjob.Fatal("the key is left to children: flags %#x, %v", flags, errno)
	}
	fmt.Println("returned")
	buf := make([]byte, 1<<20)
	for strings.Contains(string(buf[:runtime.Stack(buf, true)]), "gas.joinJob") {
		time.Sleep(time.Millisecond)
	}
}

// TestRunContextJoining: RunContext returns when the context ends while ranks are
// missing, and Join, when they have come, leaves nothing behind and fails the job.
func TestRunContextJoining(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // rank 0 listens there
	key, err := jobkey.New().File()
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	var out [3]bytes.Buffer
	var cmds [3]*exec.Cmd
	start := func(r int, program string, env ...string) {
		c := self(t, program, append(env, "PMI_SIZE=3", fmt.Sprintf("PMI_RANK=%d", r), "ARGON_RENDEZVOUS="+l.Addr().String(),
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
