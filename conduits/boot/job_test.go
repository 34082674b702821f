package boot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestProcesses runs jobs of processes on a conduit without package gas.
func TestProcesses(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		testjob.Run(t, size, "all").Want(t, 0)
	}
}

func TestProcessFails(t *testing.T) {
	for how, c := range map[string]struct {
		status int
		says   string
	}{
		"error":  {1, "argon: rank 1: this is the cause"},
		"panic":  {1, "argon: rank 1: panic: out of luck"},
		"goexit": {1, "argon: rank 1: the rank's function ended its goroutine"},
		"exit":   {42, ""},
		"kill":   {128 + 9, ""},
	} {
		t.Run(how, func(t *testing.T) {
			r := testjob.RunConfig(t, 3, "fail", testjob.Config{Args: []string{how}, KillGrace: time.Hour}).Want(t, c.status)
			if r.Failed != 1 || !strings.Contains(r.Stderr[1], c.says) {
				t.Errorf("rank %d failed first, and rank 1 says %q", r.Failed, r.Stderr[1])
			}
			if how == "panic" && (!strings.Contains(r.Stderr[1], "main_test.go") || strings.Contains(r.Stderr[1], "conduits/boot.(*")) {
				t.Errorf("rank 1 says %s", r.Stderr[1])
			}
			for _, rank := range []int{0, 2} {
				// The launcher may have been quicker to end it.
				st := r.Ranks[rank].Status
				if st == 128+int(syscall.SIGTERM) {
					continue
				}
				if st != jobenv.StatusPeerFailed || !strings.Contains(r.Stderr[rank], fmt.Sprintf("argon: rank %d: ", rank)) || !strings.Contains(r.Stderr[rank], "rank 1 ") {
					t.Errorf("rank %d ended with status %d and says %q", rank, st, r.Stderr[rank])
				}
			}
		})
	}
	testjob.RunConfig(t, 3, "fail", testjob.Config{Args: []string{"status"}}).Want(t, 7)
}

func TestSIGQUIT(t *testing.T) {
	r := testjob.Run(t, 2, "quit").Want(t, jobenv.StatusQuit)
	stacks, line, _ := strings.Cut(r.Stderr[0], "\nargon: where each rank waits: ")
	if !strings.HasPrefix(line, "rank 0 waits for barrier phase") || !strings.Contains(line, "; requests sent ") {
		t.Errorf("the report is %q", line)
	}
	if !strings.Contains(stacks, "quitWhileWaiting") {
		t.Errorf("no stacks before it:\n%s", stacks)
	}
}

func runTwice() {
	if err := Run(context.Background(), Config{}, layered(around)); err != nil {
		Exit(err)
	}
	err := Run(context.Background(), Config{}, layered(around))
	if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "called again") {
		testjob.Fatal("the second time: %v", err)
	}
}

func TestRunTwiceInAProcess(t *testing.T) { testjob.Run(t, 2, "twice").Want(t, 0) }

func TestImpossibleEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"ARGON_RANK=7", "ARGON_SIZE=4"}, "ranks are 0 to 3"},
		{[]string{"ARGON_RANK=zero", "ARGON_SIZE=4"}, `ARGON_RANK="zero"`},
		{[]string{"ARGON_RANK=0"}, `ARGON_SIZE=""`},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=4"}, `ARGON_SEGFD=""`},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=4", "ARGON_SEGFD=77"}, "ARGON_SEGFD=77"},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=4", "ARGON_SEGFD=0"}, "ARGON_SEGFD=0"},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=4", "ARGON_CTLFD=88"}, "ARGON_CTLFD=88"},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=4", "ARGON_CTLFD=x"}, `ARGON_CTLFD="x"`},
		{[]string{"ARGON_VERBOSEENV=perhaps"}, `ARGON_VERBOSEENV="perhaps" is not 0 or 1`},
		{[]string{"ARGON_SHM_PROCESS_VM=no"}, `ARGON_SHM_PROCESS_VM="no" is not 0 or 1`},
		{[]string{"ARGON_SEGMNET="}, "did you mean ARGON_SEGMENT?"},
		{[]string{"ARGON_HOST=a\nb"}, `boot: ARGON_HOST="a\nb"; allowed: printable text on one line`},
		{[]string{"ARGON_SHM_DIR=/nonexistent/argon"}, `boot: ARGON_SHM_DIR="/nonexistent/argon": no such file or directory; allowed: a directory`},
		{[]string{"ARGON_GUARD=1"}, `boot: ARGON_GUARD="1"`},
		{[]string{"ARGON_DEPUTY=1"}, `boot: ARGON_DEPUTY="1"`},
		{[]string{"ARGON_SIM=seed=3"}, `ARGON_SIM="seed=3" is not used by conduit shm, but by sim`},
		{[]string{"ARGON_SIM_TRACE=none/file", "ARGON_CONDUIT=udp"}, `ARGON_SIM_TRACE="none/file" is not used by conduit udp`},
		{[]string{"ARGON_SIM=sed=3", "ARGON_CONDUIT=sim"}, "ARGON_SIM"},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_RENDEZVOUS=nowhere", "ARGON_JOB_KEY=" + strings.Repeat("0a", 32)}, `ARGON_RENDEZVOUS="nowhere"`},
		{[]string{"ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_RENDEZVOUS=localhost:1", "ARGON_AUTH=rot13"}, "ARGON_AUTH"},
		{[]string{"ARGON_CONDUIT=hybrid", "ARGON_HYBRID_HOST=none"}, `ARGON_HYBRID_HOST="none"; allowed`},
		{[]string{"ARGON_CONDUIT=pigeon"}, `no conduit "pigeon"; known: hybrid, shm, sim, udp`},
		{[]string{"ARGON_RANKS=-1"}, `boot: ARGON_RANKS="-1" is not a number of ranks from 1 to 16777216`},
		{[]string{"ARGON_SEGMENT=much"}, `boot: ARGON_SEGMENT="much"`},
		{[]string{"ARGON_SEGMENT=512G"}, "boot: Config.MaxSegment is 549755813888 bytes"},
		{[]string{"ARGON_SEGMNET=1M"}, "boot: ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT?"},
	} {
		testjob.Refused(t, "alone", c.want, c.env...)
	}
}

func TestRunsWithoutLauncher(t *testing.T) {
	out, err := testjob.Command(t, "alone", "ARGON_RANKS=3", "ARGON_SEGMENT=64K", "ARGON_VERBOSEENV=1").CombinedOutput()
	for _, want := range []string{"rank 0 of 3\n", "rank 1 of 3\n", "rank 2 of 3\n", "ARGON_SEGMENT", "64K"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s; want %q", err, out, want)
		}
	}
}

// TestSiteEnvironment: variables for jobs on other conduits are no error.
func TestSiteEnvironment(t *testing.T) {
	out, err := testjob.Command(t, "alone", "ARGON_RANKS=1", "ARGON_SEGMENT=64K", "ARGON_IFACE=eth7", "ARGON_AUTH=encrypted", "ARGON_DATAGRAM=9000",
		"ARGON_DEADTIME=1m", "ARGON_JOB_KEY_FILE=none", "ARGON_SIM=", "ARGONTEST_ANY=1", "ARGON_XYZZY=1",
		"ARGON_SERVICE_HOST=10.0.0.1", "ARGON_PORT=tcp://10.0.0.1:80").CombinedOutput()
	if err != nil || string(out) != "rank 0 of 1\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// A rank whose launcher is gone does not stay behind.
func TestLauncherGone(t *testing.T) {
	m, err := shm.CreateJob(1, conduits.Config{MaxSegment: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := testjob.Command(t, "silent", "ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_SEGFD=3", "ARGON_CTLFD=4")
	c.ExtraFiles = []*os.File{m.File(), r}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Errorf("%q, %v", line, err)
	}
	w.Close()
	var ee *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ee) || ee.ExitCode() != jobenv.StatusPeerFailed {
		t.Errorf("the rank ended with %v", err)
	}
}

// ARGON_FREEZE stops a rank before it joins, and a message names the process to continue.
func TestFreeze(t *testing.T) {
	m, err := shm.CreateJob(1, conduits.Config{MaxSegment: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := testjob.Command(t, "alone", "ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_SEGFD=3", "ARGON_FREEZE=1")
	c.ExtraFiles = []*os.File{m.File()}
	c.Stdout = nil
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.Contains(line, "rank 0") || !strings.Contains(line, strconv.Itoa(c.Process.Pid)) {
		t.Errorf("%q, %v", line, err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Errorf("the rank has not stopped: %v, %v", ws, err)
	}
	if st := m.State(0); st != conduits.RankStarting {
		t.Errorf("the stopped rank is %v", st)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestOtherLauncher starts the program as other launchers do, without saying where
// the ranks meet.
func TestOtherLauncher(t *testing.T) {
	const runs, refused = true, false
	for _, c := range []struct {
		env    string
		runs   bool
		remark bool
	}{
		{"SLURM_PROCID=0 SLURM_NTASKS=8", runs, true}, // a script of sbatch
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", runs, true},
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=8", refused, false},
		{"SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=8", refused, false},
		{"PMI_RANK=0 PMI_SIZE=8", refused, false},
		{"PMI_RANK=0 PMI_SIZE=1", runs, true},
		{"PMIX_RANK=0", runs, true},
		{"PMIX_RANK=1", refused, false},
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", refused, false},
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 ARGON_ALONE=0", refused, false},
		{"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 ARGON_ALONE=1", runs, false},
		{"SLURM_PROCID=0 SLURM_NTASKS=8 ARGON_ALONE=1", runs, false},
	} {
		t.Run(c.env, func(t *testing.T) {
			var vars []string
			for _, kv := range strings.Fields(c.env) {
				k, v, _ := strings.Cut(kv, "=")
				t.Setenv(k, v)
				if k != "ARGON_ALONE" {
					vars = append(vars, kv)
				}
			}
			var said bytes.Buffer
			ran := atomic.Int32{}
			err := Run(context.Background(), Config{Ranks: 2, Output: &said}, layered(func(*rank) error { ran.Add(1); return nil }))
			if !c.runs {
				vars = append(vars, "ARGON_RENDEZVOUS", "ARGON_JOB_KEY_FILE", "gasrun", "ARGON_ALONE=1")
				if strings.HasPrefix(c.env, "SLURM") {
					vars = append(vars, "srun --mpi=pmi2")
				}
				wantErr(t, err, errs.ErrBadArg, vars...)
				if s := status(err); s != 2 || ran.Load() != 0 || strings.Contains(err.Error(), "\n") {
					t.Errorf("status %d, %d ranks ran: %v", s, ran.Load(), err)
				}
				return
			}
			if err != nil || ran.Load() != 2 {
				t.Errorf("%d ranks ran: %v", ran.Load(), err)
			}
			if got := strings.Count(said.String(), "\n"); c.remark != (got == 1) || !c.remark && got > 0 {
				t.Errorf("said %q", &said)
			}
			for _, kv := range vars {
				if c.remark && !strings.Contains(said.String(), kv) {
					t.Errorf("%s is not named: %s", kv, &said)
				}
			}
		})
	}
	t.Setenv("ARGON_ALONE", "yes")
	wantErr(t, Run(context.Background(), Config{}, func(conduits.Endpoint) error { return nil }), errs.ErrBadArg, `ARGON_ALONE="yes"`)
}
