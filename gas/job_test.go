package gas

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){
		"all":   func() { Main(everything) },
		"fail":  func() { Main(failAsTold) },
		"quit":  func() { Main(quitWhileWaiting) },
		"twice": runTwice,
		"silent": func() {
			Main(func(n *Node) error { fmt.Println("ready"); return n.Wait(func() bool { return false }) })
		},
		"large": func() {
			os.Unsetenv(launch.EnvSegment)
			Exit(Run(Config{SegmentSize: 1 << 40}, func(*Node) error { return nil }))
		},
		"alone":      func() { Main(func(n *Node) error { fmt.Println("rank", n.Rank(), "of", n.Size()); return nil }) },
		"differ":     registerDifferently,
		"registered": func() { Main(registeredEverything) },
		"unmapped":   func() { Main(unmapped) },
		"pins": func() {
			if testjob.Rank() == 1 {
				os.Setenv(launch.EnvPinnable, "7M")
			}
			Main(func(*Node) error { return nil })
		},
		"lost": func() { Main(ownerIsKilled) },
		"kill": func() { Main(killed) },
	})
}

type account struct {
	lock    LockWord
	balance int64
	moves   int64
}

// everything uses what the package has, on any number of ranks, and checks it.
func everything(n *Node) error {
	a, err := NewArray[account](n, 10*n.Size()+3, 4)
	if err != nil {
		return err
	}
	for i, acc := range a.Local(n) {
		acc.balance = int64(i)
	}
	total, err := New[int64](n)
	if err != nil {
		return err
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	// Money moves under locks and by calls; none is lost.
	for k := range 300 {
		i := (k*7 + n.Rank()*13) % a.Len()
		l := LockAt(Field(a.At(i), func(a *account) *LockWord { return &a.lock }))
		b := Field(a.At(i), func(a *account) *int64 { return &a.balance })
		if err := l.Lock(n); err != nil {
			return err
		}
		v, err := b.Get(n)
		if err != nil {
			return err
		}
		if err := b.Put(n, v-1); err != nil {
			return err
		}
		if err := l.Unlock(n); err != nil {
			return err
		}
		if _, err := FetchAdd(n, total.On(k%n.Size()), 1); err != nil {
			return err
		}
		if _, err := callMoved.Call(n, a.Owner(i), Field(a.At(i), func(a *account) *int64 { return &a.moves })); err != nil {
			return err
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	var sum, moved, counted int64
	for i := range a.Len() {
		acc, err := a.Get(n, i)
		if err != nil {
			return err
		}
		if acc.lock != (LockWord{}) {
			return fmt.Errorf("account %d is left locked: %+v", i, acc.lock)
		}
		sum += acc.balance
		moved += acc.moves
	}
	for r := range n.Size() {
		v, err := total.On(r).Load(n)
		if err != nil {
			return err
		}
		counted += v
	}
	want := int64(300 * n.Size())
	if start := int64(a.Len() * (a.Len() - 1) / 2); sum != start-want || moved != want || counted != want {
		return fmt.Errorf("sum %d of %d, moved %d, counted %d, want %d", sum, start, moved, counted, want)
	}
	// A long transfer, and memory freed by another rank.
	p, err := Alloc[[1 << 10]uint32](n, 64)
	if err != nil {
		return err
	}
	box, err := New[Ptr[[1 << 10]uint32]](n)
	if err != nil {
		return err
	}
	if err := box.Put(n, p); err != nil {
		return err
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	q, err := box.On((n.Rank() + 1) % n.Size()).Get(n)
	if err != nil {
		return err
	}
	src := make([][1 << 10]uint32, 64)
	for i := range src {
		for j := range src[i] {
			src[i][j] = uint32(i*j + n.Rank())
		}
	}
	h, err := q.PutSliceNB(n, src)
	if err != nil {
		return err
	}
	if err := n.Sync(h); err != nil {
		return err
	}
	dst := make([][1 << 10]uint32, 64)
	if err := q.GetSlice(n, dst); err != nil {
		return err
	}
	for i := range src {
		if src[i] != dst[i] {
			return fmt.Errorf("row %d differs", i)
		}
	}
	if err := Free(n, q); err != nil {
		return err
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if err := wantErr(Free(n, p), ErrBadArg, "freed already"); err != nil {
		return err
	}
	fmt.Println("checked")
	return nil
}

var callMoved = RegisterCall("test.moved", func(n *Node, p Ptr[int64]) bool {
	v, ok := p.Local(n)
	if ok {
		*v++
	}
	return ok
})

func TestProcesses(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		r := testjob.Run(t, size, "all").Want(t, 0)
		for rank, out := range r.Stdout {
			if out != "checked\n" {
				t.Errorf("rank %d of %d printed %q", rank, size, out)
			}
		}
	}
}

// The same in one process: with all checks, and as on a conduit where only the
// own segment can be reached by load and store.
func TestEverythingInOneProcess(t *testing.T) {
	cfg := Config{Ranks: 3}
	for _, cfg.Debug = range []bool{false, true} {
		if err := Run(cfg, everything); err != nil {
			t.Errorf("debug %v: %v", cfg.Debug, err)
		}
	}
	cfg.Progress = true
	if err := Run(cfg, func(n *Node) error {
		own := make([]segment.View, n.Size())
		own[n.Rank()] = n.views[n.Rank()]
		n.views = own
		if n.Neighbour((n.Rank() + 1) % 3) {
			return errors.New("a neighbour is left")
		}
		// Who is inside a called function sees no neighbours either.
		if err := n.Barrier(); err != nil {
			return err
		}
		return everything(n)
	}); err != nil {
		t.Errorf("without direct access: %v", err)
	}
}

// failAsTold fails on rank 1 as the first argument says; the others wait as the
// second says.
func failAsTold(n *Node) error {
	if n.Rank() == 1 {
		switch os.Args[1] {
		case "error":
			return errTest
		case "panic":
			panic("out of luck")
		case "exit":
			os.Exit(42)
		case "kill":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "goexit":
			runtime.Goexit()
		}
	}
	switch os.Args[2] {
	case "barrier":
		return n.Barrier()
	case "new":
		_, err := New[int](n)
		return err
	case "call":
		return waitForCall(n)
	}
	return n.Wait(func() bool { return false })
}

func TestProcessFails(t *testing.T) {
	for how, c := range map[string]struct {
		status int
		says   []string
	}{
		"error":  {1, []string{"argon: rank 1: this is the cause"}},
		"panic":  {1, []string{"argon: rank 1: panic: out of luck", "job_test.go"}},
		"goexit": {1, []string{"argon: rank 1: the rank's function ended its goroutine"}},
		"exit":   {42, nil},
		"kill":   {128 + 9, nil},
	} {
		for _, where := range []string{"barrier", "new", "call", "wait"} {
			if testing.Short() && where != "wait" {
				continue
			}
			r := testjob.RunConfig(t, 3, "fail", testjob.Config{Args: []string{how, where}}).Want(t, c.status)
			if r.Failed != 1 {
				t.Errorf("%s/%s: rank %d failed first", how, where, r.Failed)
			}
			for _, s := range c.says {
				if !strings.Contains(r.Stderr[1], s) {
					t.Errorf("%s/%s: rank 1 does not say %q:\n%s", how, where, s, r.Stderr[1])
				}
			}
			for _, rank := range []int{0, 2} {
				// The launcher may have been quicker to end it.
				st := r.Ranks[rank].Status
				if st == 128+int(syscall.SIGTERM) {
					continue
				}
				if st != launch.StatusPeerFailed {
					t.Errorf("%s/%s: rank %d ended with status %d%s", how, where, rank, st, r.Output())
				}
				if !strings.Contains(r.Stderr[rank], fmt.Sprintf("argon: rank %d: ", rank)) || !strings.Contains(r.Stderr[rank], "rank 1 ") {
					t.Errorf("%s/%s: rank %d says %q", how, where, rank, r.Stderr[rank])
				}
			}
		}
	}
}

// quitWhileWaiting sends SIGQUIT to rank 0 when that waits in a barrier.
func quitWhileWaiting(n *Node) error {
	if n.Rank() == 0 {
		go func() {
			for !strings.Contains(n.diagnosis(), "barrier phase") {
				runtime.Gosched()
			}
			syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		}()
		return n.Barrier()
	}
	return n.Wait(func() bool { return false })
}

func TestSIGQUIT(t *testing.T) {
	r := testjob.Run(t, 2, "quit").Want(t, launch.StatusQuit)
	line, rest, _ := strings.Cut(r.Stderr[0], "\n")
	if !strings.HasPrefix(line, "argon: rank 0: barrier phase") || !strings.Contains(line, "handles outstanding 0") {
		t.Errorf("first line %q", line)
	}
	if !strings.Contains(rest, "quitWhileWaiting") {
		t.Errorf("no stacks:\n%s", rest)
	}
}

func TestSIGQUITInOneProcess(t *testing.T) {
	out, err := self("quit", "ARGON_RANKS=3").CombinedOutput()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.ExitCode() != launch.StatusQuit {
		t.Errorf("ended with %v", err)
	}
	lines := strings.SplitN(string(out), "\n", 4)
	for r, want := range []string{"argon: rank 0: barrier phase", "argon: rank 1: ", "argon: rank 2: "} {
		if !strings.HasPrefix(lines[r], want) {
			t.Errorf("line %d is %q, want %q", r, lines[r], want)
		}
	}
	if !strings.Contains(lines[3], "quitWhileWaiting") {
		t.Errorf("no stacks:\n%s", lines[3])
	}
}

func runTwice() {
	if err := Run(Config{}, func(n *Node) error { return nil }); err != nil {
		Exit(err)
	}
	err := Run(Config{}, func(n *Node) error { return nil })
	if wrong := wantErr(err, ErrNotReady, "called again"); wrong != nil {
		Exit(wrong)
	}
	os.Exit(0)
}

func TestRunTwiceInAProcess(t *testing.T) { testjob.Run(t, 2, "twice").Want(t, 0) }

func TestSegmentLargerThanTheJobAllows(t *testing.T) {
	r := testjob.Run(t, 2, "large").Want(t, 1)
	if s := r.Stderr[0] + r.Stderr[1]; !strings.Contains(s, "1099511627776") || !strings.Contains(s, "-segment") {
		t.Errorf("ranks say %q", s)
	}
}

// registerDifferently registers another function on rank 1.
func registerDifferently() {
	if testjob.Rank() == 1 {
		RegisterCall("test.one more", func(*Node, int) int { return 0 })
	}
	Main(func(n *Node) error { return nil })
}

func TestRanksRegisterDifferently(t *testing.T) {
	r := testjob.Run(t, 2, "differ").Want(t, 1)
	if s := r.Stderr[0] + r.Stderr[1]; !strings.Contains(s, "gas.call: ") {
		t.Errorf("ranks say %q", s)
	}
}

// self is this test binary running a program outside any job.
func self(program string, env ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "ARGON_TESTJOB="+program,
		"SLURM_PROCID=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=") // whoever runs the tests
	c.Env = append(c.Env, env...)
	return c
}

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
		{[]string{"ARGON_CONDUIT=pigeon"}, "shm"},
		{[]string{"ARGON_RANKS=-1"}, `ARGON_RANKS="-1"`},
		{[]string{"ARGON_SEGMENT=much"}, `ARGON_SEGMENT="much"`},
	} {
		out, err := self("alone", c.env...).CombinedOutput()
		var ee *exec.ExitError
		if !errors.As(err, &ee) || ee.ExitCode() != 1 {
			t.Errorf("%v: %v", c.env, err)
		}
		if s := string(out); !strings.HasPrefix(s, "argon: ") || strings.Count(s, "\n") != 1 || !strings.Contains(s, c.want) {
			t.Errorf("%v: %q, want it to name %s", c.env, s, c.want)
		}
	}
}

func TestRunsWithoutLauncher(t *testing.T) {
	out, err := self("alone", "ARGON_RANKS=3", "ARGON_SEGMENT=64K", "ARGON_VERBOSEENV=1").CombinedOutput()
	for _, want := range []string{"rank 0 of 3\n", "rank 1 of 3\n", "rank 2 of 3\n", "ARGON_SEGMENT", "64K"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s; want %q", err, out, want)
		}
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
	c := self("silent", "ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_SEGFD=3", "ARGON_CTLFD=4")
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
	if err := c.Wait(); !errors.As(err, &ee) || ee.ExitCode() != launch.StatusPeerFailed {
		t.Errorf("the rank ended with %v", err)
	}
}

// ARGON_FREEZE stops a rank before it joins, and says which process to continue.
func TestFreeze(t *testing.T) {
	m, err := shm.CreateJob(1, conduits.Config{MaxSegment: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := self("alone", "ARGON_RANK=0", "ARGON_SIZE=1", "ARGON_SEGFD=3", "ARGON_FREEZE=1")
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
	if st := m.State(0); st != shm.Starting {
		t.Errorf("the stopped rank is %v", st)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
