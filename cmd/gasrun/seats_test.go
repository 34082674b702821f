package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/sys/place"
	"github.com/argon-go/argon/internal/testkit/sandbox"
)

// A seatedJob is a gasrun whose ranks have said where they run, and wait for the end of their input.
type seatedJob struct {
	cmd   *exec.Cmd
	in    io.Closer
	where []string // of each rank, by the system
	rest  io.Reader
}

// seated starts a job of n ranks.
func seated(t *testing.T, n int, args ...string) *seatedJob {
	t.Helper()
	cmd, _ := command(t, append(args, "sh", "-c", "grep Cpus_allowed_list /proc/self/status; cat; sleep 1000")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j := &seatedJob{cmd: cmd, in: in, where: make([]string, n)}
	lines := bufio.NewReader(out)
	j.rest = lines
	for range n {
		line, err := lines.ReadString('\n')
		rank := 0
		if n > 1 && len(line) > 1 { // labels
			rank = int(line[1] - '0')
		}
		if f := strings.Fields(line); err == nil && len(f) > 0 {
			j.where[rank] = f[len(f)-1]
		}
	}
	return j
}

// kill ends gasrun, and returns when the system has taken its ranks and deputies and their sockets.
func (j *seatedJob) kill(t *testing.T) {
	t.Helper()
	all := family(j.cmd)
	_ = j.cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, j.rest)
	_ = j.cmd.Wait()
	awaitEnd(t, all)
}

// TestJobsTakeOtherProcessors has two jobs at once on different processors, a third one share, and the
// processor of a job whose gasrun was killed go to the next.
func TestJobsTakeOtherProcessors(t *testing.T) {
	sandbox.OnTwoProcessors(t, func(two []int) {
		cpus := []string{place.List(two[:1]), place.List(two[1:])}
		both := cpus[0] + cpus[1]
		first, second := seated(t, 1, "-bind", "core"), seated(t, 1, "-bind", "core")
		if got := first.where[0] + second.where[0]; got != both {
			t.Errorf("two jobs run on %q and %q", first.where, second.where)
		}
		second.kill(t)
		second = seated(t, 1, "-bind", "core", "-hosts", "a", "-iface", "lo", "-ssh", fakeSSH(t, sshHere))
		if got := first.where[0] + second.where[0]; got != both {
			t.Errorf("a job and one behind ssh run on %q and %q", first.where, second.where)
		}
		third := seated(t, 1, "-bind", "core")
		if !strings.Contains(both, third.where[0]) {
			t.Errorf("the third job runs on %q, want one of %v", third.where, cpus)
		}
		third.kill(t)
		second.kill(t)
		if again := seated(t, 1, "-bind", "core"); again.where[0] != cpus[1] {
			t.Errorf("after the job on processor %s was killed the next one is on %q", cpus[1], again.where)
		}
	})
}

// TestRanksAreSpread has ranks of a job, also of several hosts that are this machine, run on
// processors of their own, and says so at -v; those without a processor of their own share.
func TestRanksAreSpread(t *testing.T) {
	ssh := fakeSSH(t, sshHere)
	sandbox.OnTwoProcessors(t, func(two []int) {
		cpus, both := []string{place.List(two[:1]), place.List(two[1:])}, place.List(two)
		for _, tc := range []struct {
			args string
			env  string
			want []string
		}{
			{"-n 2", "", cpus},
			{"-n 1", "", []string{both}},
			{"-n 3", "", []string{cpus[0], cpus[0], cpus[1]}},
			{"-n 2 -bind none", "", []string{both, both}},
			{"-n 2 -bind numa", "", []string{both, both}},
			{"-n 2", "none", []string{both, both}},
			{"-n 2 -bind core", "none", cpus},
			{"-n 2 -hosts localhost,localhost", "", cpus},
			{"-n 2 -hosts a:2 -iface lo -ssh SSH", "", cpus},
			{"-n 3 -hosts a:3 -iface lo -ssh SSH", "", []string{cpus[0], cpus[0], cpus[1]}},
			{"-n 2 -hosts a:2 -iface lo -ssh SSH", "none", []string{both, both}},
			{"-n 2 -hosts a:2 -iface lo -ssh SSH -bind none", "", []string{both, both}},
		} {
			t.Setenv("ARGON_BIND", tc.env)
			args := append(strings.Fields(strings.ReplaceAll(tc.args, "SSH", ssh)), "-q", "-conduit", "shm")
			if strings.Contains(tc.args, "-hosts") {
				args[len(args)-1] = "hybrid"
			}
			if len(tc.want) > 1 {
				args = append(args, "-l")
			}
			j := seated(t, len(tc.want), args...)
			if got := strings.Join(j.where, " "); got != strings.Join(tc.want, " ") {
				t.Errorf("gasrun %s, ARGON_BIND=%s: ranks on %q, want %q", tc.args, tc.env, j.where, tc.want)
			}
			j.kill(t)
		}
		os.Unsetenv("ARGON_BIND")
		r := gasrun(t, "-v", "-n", "3", "true")
		for i, want := range []string{cpus[0] + " with 1 more", cpus[0] + " with 1 more", cpus[1]} {
			if line := "gasrun: rank " + string(rune('0'+i)) + " is pid "; !strings.Contains(r.stderr, line) || !strings.Contains(r.stderr, ", processors "+want+"\n") {
				t.Errorf("-v does not say that rank %d is on %s: %s", i, want, r.stderr)
			}
		}
		r = gasrun(t, "-x", "ARGON_BIND=core", "true")
		r.want(t, 2, "ARGON_BIND", "-x")
		t.Setenv("ARGON_BIND", "socket")
		gasrun(t, "true").want(t, 2, `ARGON_BIND="socket"`, "spread, core, numa")
	})
}
