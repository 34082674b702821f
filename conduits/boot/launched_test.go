package boot

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/fakepmi"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// ranks starts size processes that another launcher's variables tell their rank,
// and whose rank 0 serves the rendezvous.
func ranks(t *testing.T, program string, size int, rankVar, sizeVar string, env ...string) (cmds []*exec.Cmd, out []bytes.Buffer) {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)) // rank 0 listens there
	out = make([]bytes.Buffer, size)
	for r := range size {
		c := testjob.Command(t, program, append(env, "ARGON_RENDEZVOUS="+addr,
			fmt.Sprintf("%s=%d", rankVar, r), fmt.Sprintf("%s=%d", sizeVar, size), fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_RANK=%d", r))...)
		c.Stdout, c.Stderr = &out[r], &out[r]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		cmds = append(cmds, c)
	}
	return cmds, out
}

// TestOtherLaunchers runs programs that have not been told of them.
func TestOtherLaunchers(t *testing.T) {
	key := "ARGON_JOB_KEY=" + jobkey.New().Reveal()
	for _, l := range [...][3]string{
		{"SLURM_PROCID", "SLURM_NTASKS", ""},
		{"PMI_RANK", "PMI_SIZE", "udp"},
		{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "udp"},
		{"JOB_COMPLETION_INDEX", "ARGON_SIZE", ""},
	} {
		t.Run(l[0]+" "+l[2], func(t *testing.T) {
			env := []string{key}
			if l[2] != "" {
				env = append(env, "ARGON_CONDUIT="+l[2])
			}
			cmds, out := ranks(t, "all", 3, l[0], l[1], env...)
			for r, c := range cmds {
				if err := c.Wait(); err != nil {
					t.Errorf("rank %d: %v\n%s", r, err, &out[r])
				}
			}
		})
	}
}

// TestOtherLauncherKills has a rank die in a job without our launcher: the others
// end because of it.
func TestOtherLauncherKills(t *testing.T) {
	cmds, out := ranks(t, "kill", 3, "PMI_RANK", "PMI_SIZE", "ARGON_CONDUIT=udp", "ARGON_JOB_KEY="+jobkey.New().Reveal())
	for r, c := range cmds {
		err := c.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Errorf("rank %d: %v", r, err)
			continue
		}
		if r == 1 {
			if s := exit.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
				t.Errorf("rank 1: %v\n%s", err, &out[r])
			}
			continue
		}
		if s := out[r].String(); exit.ExitCode() != jobenv.StatusFailed || !strings.Contains(s, "rank 1 failed") {
			t.Errorf("rank %d: %v\n%s", r, err, s)
		}
	}
}

// TestOtherLauncherStatus has a rank fail, on each conduit, with a status that the
// rendezvous is told of: the others end with the same, also one that only
// computes, when the launcher ends it, and the one that has failed says no more than why.
func TestOtherLauncherStatus(t *testing.T) {
	for _, conduit := range []string{"udp", "hybrid"} {
		t.Run(conduit, func(t *testing.T) {
			cmds, out := ranks(t, "status42", 3, "PMI_RANK", "PMI_SIZE", "ARGON_CONDUIT="+conduit, "ARGON_JOB_KEY="+jobkey.New().Reveal())
			for r := range cmds {
				c := cmds[r]
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = c.Wait()
				}()
				tick := time.NewTicker(10 * time.Millisecond)
				for waiting := true; waiting; {
					select {
					case <-ended:
						waiting = false
					case <-tick.C:
						if r != 0 { // which ends by itself; it may not have heard yet
							_ = c.Process.Signal(syscall.SIGTERM)
						}
					}
				}
				tick.Stop()
				says := "no more ink"
				if r == 1 {
					says = "argon: rank 1: " + says
				}
				if s := out[r].String(); c.ProcessState.ExitCode() != 42 || !strings.Contains(s, says) {
					t.Errorf("rank %d: %v\n%s", r, c.ProcessState, s)
				}
			}
		})
	}
}

// TestProcessManager has processes find each other by their process manager, with nothing
// else given; a program that a rank runs is none of them.
func TestProcessManager(t *testing.T) {
	for _, conduit := range []string{"", "udp"} {
		m := &fakepmi.Manager{Size: 3}
		out := make([]bytes.Buffer, m.Size)
		var cmds []*exec.Cmd
		for r := range m.Size {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			theirs, f := os.NewFile(uintptr(pair[0]), "process"), os.NewFile(uintptr(pair[1]), "manager")
			defer theirs.Close()
			ours, err := net.FileConn(f)
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
			go m.Serve(t, ours)
			c := testjob.Command(t, "nests", "PMI_FD=3", fmt.Sprint("PMI_RANK=", r), "PMI_SIZE=3", "ARGON_CONDUIT="+conduit)
			c.ExtraFiles, c.Stdout, c.Stderr = []*os.File{theirs}, &out[r], &out[r]
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Kill(); c.Wait() })
			cmds = append(cmds, c)
		}
		for r, c := range cmds {
			if err := c.Wait(); err != nil || !strings.Contains(out[r].String(), "rank 0 of 1\n") {
				t.Errorf("%s: rank %d: %v\n%s", conduit, r, err, &out[r])
			}
		}
		if m.Ended() != m.Size {
			t.Errorf("%d processes have told the manager that they end", m.Ended())
		}
	}
}
