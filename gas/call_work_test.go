package gas

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// tree sums up a tree of tasks, whose nodes are on all ranks and wait for their children.
var taskTree *Func[int, int]

func init() {
	taskTree = RegisterTask("test.tree", func(c *Call, depth int) (int, error) {
		if depth == 0 {
			return 1, nil
		}
		left, err := taskTree.Go(c.Node, (c.Rank()+1)%c.Size(), depth-1)
		if err != nil {
			return 0, err
		}
		right, err := taskTree.Call(c.Node, (c.Rank()+depth)%c.Size(), depth-1)
		if err != nil {
			return 0, err
		}
		sum, err := left.Wait()
		return sum + right, err
	})
}

var (
	taskLetter = RegisterTask("test.taskLetter", func(c *Call, l letter) (letter, error) { return l.answer(), nil })
	taskFails  = RegisterTask("test.taskFails", func(c *Call, how string) (int, error) {
		if how == "panic" {
			panic(fmt.Sprint("seven on ", c.Rank()))
		}
		return 0, fmt.Errorf("%s: %w", how, ErrResource)
	})
	// callForward defers an increment of a counter on the next rank.
	callForward = RegisterCall("test.forward", func(n *Node, p Ptr[int64]) struct{} {
		n.Defer(func(n *Node) {
			if _, err := FetchAdd(n, p.On((n.Rank()+1)%n.Size()), 1); err != nil {
				panic(err)
			}
		})
		return struct{}{}
	})
	// taskAmid waits for ever while something else panics on its goroutine.
	taskAmid = RegisterTask("test.taskAmid", func(c *Call, handler bool) (int, error) {
		if handler {
			if err := callPanics.Send(c.Node, c.Rank(), 7); err != nil {
				return 0, err
			}
		} else {
			c.Defer(func(*Node) { panic("seven") })
		}
		return 0, c.Wait(func() bool { return false })
	})
	taskUntil = RegisterTask("test.taskUntil", func(c *Call, p Ptr[int64]) (int64, error) {
		return 0, c.Wait(func() bool { v, _ := p.On(c.Rank()).Local(c.Node); return atomic.LoadInt64(v) != 0 })
	})
)

// tasksEverywhere has tasks call tasks, answer late, fail and defer.
func tasksEverywhere(n *Node) error {
	const depth = 6
	if v, err := taskTree.Call(n, (n.Rank()+1)%n.Size(), depth); err != nil || v != 1<<depth {
		return fmt.Errorf("a tree of %d leaves: %d (%w)", 1<<depth, v, err)
	}
	for _, size := range []int{0, 300, 20000} {
		for r := range n.Size() {
			if l, err := taskLetter.Call(n, r, letterOf(r, size)); err != nil || !l.equal(letterOf(r, size).answer()) {
				return fmt.Errorf("a letter of %d bytes: %w", size, err)
			}
			_, err := taskFails.Call(n, r, strings.Repeat("no", size))
			if !errors.Is(err, ErrResource) || !strings.Contains(err.Error(), "test.taskFails on rank ") {
				return err
			}
			_, err = taskFails.Call(n, r, "panic")
			var ce *CallError
			if !errors.As(err, &ce) || !ce.Panic || ce.Text != fmt.Sprint("seven on ", r) {
				return err
			}
		}
	}
	p, err := New[int64](n)
	if err != nil {
		return err
	}
	for i := range 4 * n.Size() {
		n.Must(callForward.Send(n, i%n.Size(), p))
	}
	err = n.Wait(func() bool {
		v, err := Load(n, p.On(n.Rank()))
		return err != nil || v == int64(4*n.Size())
	})
	n.Must(errors.Join(err, n.Barrier()))
	// A rank that waits for all in its barrier runs tasks for the others.
	if n.Rank() == 0 {
		return nil
	}
	_, err = taskTree.Call(n, 0, 2)
	return err
}

func TestTasks(t *testing.T) {
	runN(t, 3, tasksEverywhere)
	cfg := small(3)
	cfg.Progress = true
	if err := Run(cfg, tasksEverywhere); err != nil {
		t.Error(err)
	}
}

// taskMeets returns when as many tasks as there are workers run on its rank, of which none
// waits for anything that argon knows.
var (
	meeting   [3]sync.WaitGroup
	taskMeets = RegisterTask("test.meets", func(c *Call, _ int) (int, error) {
		meeting[c.Rank()].Done()
		meeting[c.Rank()].Wait()
		return c.Rank(), nil
	})
)

// TestWorkers has tasks run side by side while the goroutines of their rank do nothing
// for them.
func TestWorkers(t *testing.T) {
	const workers = 4
	for _, conduit := range []string{"shm", "udp"} {
		cfg := small(3)
		cfg.Conduit, cfg.Workers = conduit, workers
		for i := range meeting {
			meeting[i].Add(workers)
		}
		var called sync.WaitGroup
		called.Add(3)
		if err := Run(cfg, func(n *Node) error {
			var fs []Future[int]
			for range workers {
				f := Must(taskMeets.Go(n, (n.Rank()+1)%3, 0))
				fs = append(fs, f)
			}
			for _, f := range fs {
				<-f.Done()
			}
			called.Done()
			called.Wait()
			_, err := WaitAll(fs...)
			return err
		}); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
		if err := Run(cfg, tasksEverywhere); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

var taskSpoils = RegisterTask("test.spoils", func(c *Call, exit bool) (int, error) {
	if exit {
		runtime.Goexit()
	}
	panic("seven")
})

// TestWorkerFails ends workers by what a task does for which nothing waits.
func TestWorkerFails(t *testing.T) {
	for _, exit := range []bool{false, true} {
		cfg := small(2)
		cfg.Workers = 2
		failed := make(chan struct{})
		err := Run(cfg, func(n *Node) error {
			if n.Rank() == 1 {
				<-failed
				return nil
			}
			defer close(failed)
			n.Must(taskSpoils.Send(n, 1, exit))
			return n.Wait(func() bool { return false })
		})
		want := "rank 1 failed: gas: panic on a goroutine of Config.Progress or Config.Workers: seven"
		if exit {
			want = "rank 1 failed: gas: a task or a handler ended its goroutine"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTooManyWorkers(t *testing.T) {
	for _, k := range []int{-1, MaxWorkers + 1} {
		err := Run(Config{Ranks: 1, Workers: k}, func(*Node) error { return nil })
		if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), fmt.Sprintf("Config.Workers (ARGON_WORKERS) is %d", k)) {
			t.Errorf("%d workers: %v", k, err)
		}
	}
}

// Poll runs what was deferred, once, in order, and not what that defers.
func TestPollRunsDeferred(t *testing.T) {
	runN(t, 1, func(n *Node) error {
		var ran []int
		for i := range 100 {
			n.Defer(func(n *Node) {
				ran = append(ran, i)
				n.Defer(func(*Node) { ran = append(ran, 100+i) })
			})
		}
		for round := range 2 {
			if k := n.Poll(); k != 100 || len(ran) != 100*(round+1) {
				return fmt.Errorf("%d ran, %d of them now", len(ran), k)
			}
		}
		for i, v := range ran {
			if i != v {
				return fmt.Errorf("%d ran as number %d", v, i)
			}
		}
		if n.work.Pending() || n.calls.started() != n.calls.finished() {
			return errors.New("something is left")
		}
		return nil
	})
}

// Beyond Config.Tasks calls are refused by a named error; there is room for as many again afterwards.
func TestTooManyTasks(t *testing.T) {
	cfg := small(2)
	cfg.Tasks = 3
	err := Run(cfg, func(n *Node) error {
		p := Must(New[int64](n))
		for round := 0; n.Rank() == 0 && round < 2; round++ {
			n.Must(Store(n, p.On(1), 0))
			var fs []Future[int64]
			for range 5 {
				f := Must(taskUntil.Go(n, 1, p))
				fs = append(fs, f)
			}
			for _, f := range fs[3:] {
				_, err := f.Wait()
				n.Must(wantErr(err, ErrResource, "test.taskUntil", "rank 1 has 3 tasks", "Config.Tasks"))
			}
			n.Must(Store(n, p.On(1), 1))
			n.Wake(1)
			for i, f := range fs[:3] {
				if _, err := f.Wait(); err != nil {
					return fmt.Errorf("round %d, task %d of 3 that there is room for: %w", round, i, err)
				}
			}
		}
		return n.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

// What nothing waits for, and panics, fails its rank, also amid a task whose panics are caught.
func TestDeferredPanicIsTheRanks(t *testing.T) {
	for name, how := range map[string]func(n *Node) error{
		"deferred": func(n *Node) error {
			n.Defer(func(*Node) { panic("seven") })
			return n.Barrier()
		},
		"amid a task":           func(n *Node) error { return second(taskAmid.Call(n, 0, false)) },
		"a handler amid a task": func(n *Node) error { return second(taskAmid.Call(n, 0, true)) },
	} {
		err := Run(small(2), how)
		var re *RankError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), "seven") || strings.Contains(err.Error(), "panicked: ") {
			t.Errorf("%s: Run: %v", name, err)
		}
	}
}

// TestBarrierTryRunsTasks has a rank that only tries its barrier run what calls put off.
func TestBarrierTryRunsTasks(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		if n.Rank() == 0 {
			if v, err := callDoubled.Call(n, 1, 21); v != 42 || err != nil {
				return fmt.Errorf("task: %d, %v", v, err)
			}
			return n.Barrier()
		}
		n.Must(n.BarrierNotify())
		for {
			if done, err := n.BarrierTry(); done || err != nil {
				return err
			}
		}
	})
}

var callDoubled = RegisterTask("test.doubled", func(_ *Call, v int) (int, error) { return 2 * v, nil })

// typedNil is an error whose method takes no nil pointer.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

var callTypedNil = RegisterFunc("test.typednil", func(*Call, int) (int, error) {
	var e *typedNil
	return 0, e
})

// TestTypedNilError is a mistake of a called function that is its caller's to hear of.
func TestTypedNilError(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		var e *CallError
		if _, err := callTypedNil.Call(n, 1-n.Rank(), 0); !errors.As(err, &e) {
			return fmt.Errorf("got %v", err)
		}
		return n.Barrier()
	})
}

// taskQuiet has nothing to return.
var taskQuiet = RegisterTask("test.quiet", func(*Call, struct{}) (struct{}, error) { return struct{}{}, nil })

// TestTaskWithoutResult awaits, and in debug mode looks after, tasks whose answers have no
// bytes.
func TestTaskWithoutResult(t *testing.T) {
	for _, debug := range []bool{false, true} {
		if err := Run(Config{Ranks: 2, Debug: debug}, func(n *Node) error {
			Must(taskQuiet.Call(n, 1-n.Rank(), struct{}{}))
			n.Must(taskQuiet.Send(n, 1-n.Rank(), struct{}{}))
			return n.Quiesce()
		}); err != nil {
			t.Errorf("debug %v: %v", debug, err)
		}
	}
}
