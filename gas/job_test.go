package gas

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){
		"all":  func() { Main(everything) },
		"fail": func() { Main(failAsTold) },
		"quit": func() { Main(quitWhileWaiting) },
		"large": func() {
			os.Unsetenv(jobenv.Segment)
			Exit(Run(Config{SegmentSize: 1 << 40}, func(*Node) error { return nil }))
		},
		"alone":          func() { Main(func(n *Node) error { fmt.Println("rank", n.Rank(), "of", n.Size()); return nil }) },
		"differ":         registerDifferently,
		"registered":     func() { Main(registeredEverything) },
		"unmapped":       func() { Main(unmapped) },
		"unmapped early": func() { Main(unmappedTooEarly) },
		"pins": func() {
			if testjob.Rank() == 1 {
				os.Setenv(jobenv.Pinnable, "7M")
			}
			Main(func(*Node) error { return nil })
		},
		"lost":          func() { Main(ownerIsKilled) },
		"slices":        func() { Main(madeSlices) },
		"plain slices":  func() { Main(plainSlices) },
		"plain pieces":  func() { Main(plainPieces) },
		"counted":       func() { Main(counted) },
		"asked to quit": func() { Main(askedToQuit) },
		"without room":  func() { Main(withoutRoom) },
		"killed":        func() { Main(killed) },
	})
}

type account struct {
	lock    LockWord
	balance int64
	moves   int64
}

// everything uses what the package has, on any number of ranks, and checks it.
func everything(n *Node) error {
	a := Must(NewArray[account](n, 10*n.Size()+3, 4))
	for i, acc := range a.Local(n) {
		acc.balance = int64(i)
	}
	total := Must(New[int64](n))
	n.Must(n.Barrier())
	// Money moves under locks and by calls; none is lost.
	for k := range 300 {
		i := (k*7 + n.Rank()*13) % a.Len()
		l := LockAt(Field(a.At(i), func(a *account) *LockWord { return &a.lock }))
		b := Field(a.At(i), func(a *account) *int64 { return &a.balance })
		n.Must(l.Lock(n))
		v := Must(b.Get(n))
		n.Must(b.Put(n, v-1))
		n.Must(l.Unlock(n))
		Must(FetchAdd(n, total.On(k%n.Size()), 1))
		Must(callMoved.Call(n, a.Owner(i), Field(a.At(i), func(a *account) *int64 { return &a.moves })))
	}
	n.Must(n.Barrier())
	var sum, moved, counted int64
	for i := range a.Len() {
		acc := Must(a.Get(n, i))
		if acc.lock.state != 0 || acc.lock.tail != 0 {
			return fmt.Errorf("account %d is left locked: %+v", i, acc.lock)
		}
		sum += acc.balance
		moved += acc.moves
	}
	for r := range n.Size() {
		v := Must(Load(n, total.On(r)))
		counted += v
	}
	want := int64(300 * n.Size())
	if start := int64(a.Len() * (a.Len() - 1) / 2); sum != start-want || moved != want || counted != want {
		return fmt.Errorf("sum %d of %d, moved %d, counted %d, want %d", sum, start, moved, counted, want)
	}
	// A long transfer, and memory freed by another rank.
	p := Must(Alloc[[1 << 10]uint32](n, 64))
	box := Must(New[Ptr[[1 << 10]uint32]](n))
	n.Must(box.Put(n, p))
	n.Must(n.Barrier())
	q := Must(box.On((n.Rank() + 1) % n.Size()).Get(n))
	src := make([][1 << 10]uint32, 64)
	for i := range src {
		for j := range src[i] {
			src[i][j] = uint32(i*j + n.Rank())
		}
	}
	h := Must(q.PutSliceNB(n, src))
	n.Must(n.Sync(h))
	dst := make([][1 << 10]uint32, 64)
	n.Must(q.GetSlice(n, dst))
	for i := range src {
		if src[i] != dst[i] {
			return fmt.Errorf("row %d differs", i)
		}
	}
	n.Must(Free(n, q))
	n.Must(n.Barrier())
	n.Must(wantErr(Free(n, p), ErrBadArg, "freed already"))
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
		own[n.Rank()] = n.views.All[n.Rank()]
		n.views.All = own
		if n.Neighbour((n.Rank() + 1) % 3) {
			return errors.New("a neighbour is left")
		}
		// A rank inside a called function sees no neighbours either.
		n.Must(n.Barrier())
		return everything(n)
	}); err != nil {
		t.Errorf("without direct access: %v", err)
	}
}

// failAsTold fails on rank 1 as the first argument says; the others wait as the
// second says.
func failAsTold(n *Node) error {
	if os.Args[2] == "loop" {
		// The launcher ends ranks by SIGTERM first: these go on until they have heard
		// of the failure, or for as long as the launcher lets them.
		signal.Ignore(syscall.SIGTERM)
		if err := n.Barrier(); err != nil {
			return err
		}
	}
	var l Lock
	if where := os.Args[2]; where == "lock" || where == "queue" { // rank 1 holds it, or waits for it
		var err error
		if l, err = NewLock(n); err != nil {
			return err
		}
		if n.Rank() == 0 == (where == "queue") && n.Rank() < 2 {
			err = l.Lock(n)
		}
		if err := errors.Join(err, n.Barrier()); err != nil {
			return err
		}
		if where == "queue" && n.Rank() == 1 {
			go l.Lock(n)
			if err := entered(n, l, -1); err != nil {
				return err
			}
		}
	}
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
	case "lock":
		return l.Lock(n)
	case "queue":
		if n.Rank() == 2 {
			if err := entered(n, l, 1); err != nil {
				return err
			}
			return l.Lock(n)
		}
	case "barrier":
		return n.Barrier()
	case "new":
		_, err := New[int](n)
		return err
	case "call":
		return waitForCall(n)
	case "loop":
		return accessUntilError(n, 2-n.Rank()/2)
	}
	return n.Wait(func() bool { return false })
}

// accessUntilError accesses rank's memory directly and never polls.
func accessUntilError(n *Node, rank int) error {
	at := Ptr[uint64]{w: uint64(rank)<<nlaBits | base}
	x := n.Layers().Extended
	for i := uint64(0); ; i++ {
		var err error
		switch i >> 10 % 6 {
		case 0:
			err = at.Put(n, i)
		case 1:
			_, err = at.Get(n)
		case 2:
			_, err = FetchAdd(n, at, 1)
		case 3:
			err = x.PutValue(rank, at.NLA(), i, 8)
		case 4:
			_, err = extended.Atomic[uint64](x, rank, at.NLA(), conduits.AtomicAdd, 1, 0)
		case 5:
			err = at.PutSlice(n, []uint64{i, i})
		}
		if err != nil {
			return err
		}
	}
}

// TestDirectLoopLearns: a loop of direct accesses, which runs no code of the
// conduit, ends with the job's error when another rank fails.
func TestDirectLoopLearns(t *testing.T) {
	for _, conduit := range []string{"shm", "hybrid"} {
		t.Run(conduit, func(t *testing.T) {
			var looping atomic.Int64
			errs := make([]error, 5)
			_ = Run(Config{Ranks: len(errs), Conduit: conduit}, func(n *Node) error {
				if n.Rank() == 1 {
					for looping.Load() < int64(len(errs)-1) {
						runtime.Gosched()
					}
					return errTest
				}
				looping.Add(1)
				// Ranks 0 to 2 and 3 to 4 share memory on a hybrid, where all others
				// hear of the failure over the network.
				rank := n.Rank()
				if rank >= 3 {
					rank = 7 - rank
				}
				errs[n.Rank()] = accessUntilError(n, rank)
				if v, ok := (Ptr[uint64]{w: uint64(n.Rank())<<nlaBits | base}).Local(n); !ok || v == nil {
					t.Errorf("rank %d has lost its own memory", n.Rank())
				}
				return errs[n.Rank()]
			})
			for r, err := range errs {
				var pe *PeerError
				if r != 1 && (!errors.As(err, &pe) || pe.Rank != 1) {
					t.Errorf("rank %d ended with %v", r, err)
				}
			}
		})
	}
}

// TestDirectLoopOfProcessesLearns is the same for processes.
func TestDirectLoopOfProcessesLearns(t *testing.T) {
	r := testjob.RunConfig(t, 3, "fail", testjob.Config{Args: []string{"exit", "loop"}}).Want(t, 42)
	for _, rank := range []int{0, 2} {
		if st := r.Ranks[rank].Status; st != jobenv.StatusPeerFailed {
			t.Errorf("rank %d ended with status %d%s", rank, st, r.Output())
		}
	}
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
		for _, where := range []string{"barrier", "new", "call", "wait", "lock", "queue"} {
			if locks := where == "lock" || where == "queue"; testing.Short() && where != "wait" || locks && how != "kill" {
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
				if st != jobenv.StatusPeerFailed {
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
			for !strings.Contains(waits(n), "barrier phase") {
				runtime.Gosched()
			}
			syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		}()
		return n.Barrier()
	}
	return n.Wait(func() bool { return false })
}

func TestSIGQUIT(t *testing.T) {
	r := testjob.Run(t, 2, "quit").Want(t, jobenv.StatusQuit)
	stacks, report, _ := strings.Cut(r.Stderr[0], "\nargon: where each rank waits: ")
	if !strings.HasPrefix(report, "rank 0 waits for barrier phase") || !strings.Contains(report, "handles outstanding 0") {
		t.Errorf("the report is %q", report)
	}
	if !strings.Contains(stacks, "quitWhileWaiting") {
		t.Errorf("no stacks before it:\n%s", stacks)
	}
}

func TestSIGQUITInOneProcess(t *testing.T) {
	out, err := testjob.Command(t, "quit", "ARGON_RANKS=3").CombinedOutput()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.ExitCode() != jobenv.StatusQuit {
		t.Errorf("ended with %v", err)
	}
	stacks, report, _ := strings.Cut(string(out), "\nargon: where each rank waits: ")
	for r, want := range []string{"argon:   rank 0: barrier phase", "argon:   rank 1: ", "argon:   rank 2: "} {
		if !strings.Contains(report, "\n"+want) {
			t.Errorf("no line %d with %q: %s", r, want, report)
		}
	}
	if !strings.Contains(stacks, "quitWhileWaiting") {
		t.Errorf("no stacks before the report:\n%s", stacks)
	}
}

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
	if s := r.Stderr[0] + r.Stderr[1]; !strings.Contains(s, "gas.call: ") || !strings.Contains(s, "test.one more(int) int") {
		t.Errorf("ranks say %q", s)
	}
}

func TestImpossibleEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"ARGON_CONDUIT=pigeon"}, "shm"},
		{[]string{"ARGON_RANKS=-1"}, `ARGON_RANKS="-1"`},
		{[]string{"ARGON_SEGMENT=much"}, `ARGON_SEGMENT="much"`},
		{[]string{"ARGON_PINNABLE=-1"}, `ARGON_PINNABLE="-1"`},
		{[]string{"ARGON_PIN_BUCKET=100"}, "(-pin-bucket, ARGON_PIN_BUCKET)"},
		{[]string{"ARGON_DEBUG=perhaps"}, `ARGON_DEBUG="perhaps" is neither 0 nor 1`},
		{[]string{"ARGON_SEGMNET=1M"}, "ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT?"},
	} {
		testjob.Refused(t, "alone", c.want, c.env...)
	}
}
