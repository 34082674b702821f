package gas

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/launch"
)

// ranks starts size processes that another launcher's variables tell their rank,
// and whose rank 0 serves the rendezvous.
func ranks(t *testing.T, program string, size int, rankVar, sizeVar string, env ...string) (cmds []*exec.Cmd, out []bytes.Buffer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // rank 0 listens there
	out = make([]bytes.Buffer, size)
	for r := range size {
		c := self(program, append(env, "ARGON_RENDEZVOUS="+l.Addr().String(),
			fmt.Sprintf("%s=%d", rankVar, r), fmt.Sprintf("%s=%d", sizeVar, size))...)
		c.Stdout, c.Stderr = &out[r], &out[r]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		cmds = append(cmds, c)
	}
	return cmds, out
}

// TestOtherLaunchers runs programs that nobody has told of them.
func TestOtherLaunchers(t *testing.T) {
	key := "ARGON_JOB_KEY=" + seal.NewKey().Reveal()
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
	cmds, out := ranks(t, "kill", 3, "PMI_RANK", "PMI_SIZE", "ARGON_CONDUIT=udp", "ARGON_JOB_KEY="+seal.NewKey().Reveal())
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
		if s := out[r].String(); exit.ExitCode() != launch.StatusPeerFailed || !strings.Contains(s, "rank 1 failed") {
			t.Errorf("rank %d: %v\n%s", r, err, s)
		}
	}
}

// killed has rank 1 killed while the others wait for it.
func killed(n *Node) error {
	if n.Rank() == 1 {
		return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	}
	return n.Wait(func() bool { return false })
}
