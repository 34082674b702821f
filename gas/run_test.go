package gas

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
)

var errTest = errors.New("this is the cause")

// One rank fails in each way while the others wait for it in each way: they all
// learn of it, and Run names it.
func TestOneRankFails(t *testing.T) {
	ways := map[string]func() error{
		"rank 1: this is the cause":                       func() error { return errTest },
		"rank 1: panic: out of luck":                      func() error { panic("out of luck") },
		"rank 1: the rank's function ended its goroutine": func() error { runtime.Goexit(); return nil },
	}
	waits := map[string]func(n *Node) error{
		"barrier":  (*Node).Barrier,
		"wait":     func(n *Node) error { return n.Wait(func() bool { return false }) },
		"new":      func(n *Node) error { _, err := New[int](n); return err },
		"call":     func(n *Node) error { return waitForCall(n) },
		"leave":    func(n *Node) error { return nil },
		"BarrierN": func(n *Node) error { return errors.Join(n.BarrierNotify(), n.BarrierWait()) },
	}
	for want, fail := range ways {
		for where, wait := range waits {
			t.Run(want+"/"+where, func(t *testing.T) {
				var mu sync.Mutex
				others := map[int]error{}
				err := Run(small(3), func(n *Node) error {
					if n.Rank() == 1 {
						return fail()
					}
					err := wait(n)
					mu.Lock()
					others[n.Rank()] = err
					mu.Unlock()
					return err
				})
				var re *RankError
				if !errors.As(err, &re) || re.Rank != 1 || !strings.HasPrefix(err.Error(), want) {
					t.Fatalf("Run: %v", err)
				}
				if s := string(re.Stack); s != "" && (!strings.Contains(s, "run_test.go") || strings.Contains(s, "conduits/boot") || strings.Contains(s, "gas.(*member)")) {
					t.Errorf("stack: %s", s)
				}
				if where == "leave" {
					return
				}
				for _, r := range []int{0, 2} {
					var pe *PeerError
					if !errors.As(others[r], &pe) || pe.Rank != 1 || !errors.Is(others[r], ErrPeer) {
						t.Errorf("rank %d: %v", r, others[r])
					}
				}
			})
		}
	}
}

// waitForCall calls rank 1, which does not answer any more or at all.
func waitForCall(n *Node) error {
	for {
		if _, err := callRank.Call(n, 1, struct{}{}); err != nil {
			return err
		}
	}
}

func TestAllRanksFail(t *testing.T) {
	err := Run(small(4), func(n *Node) error { return fmt.Errorf("rank %d's own", n.Rank()) })
	var re *RankError
	if !errors.As(err, &re) || !strings.Contains(re.Err.Error(), fmt.Sprintf("rank %d's own", re.Rank)) {
		t.Errorf("Run: %v", err)
	}
}

// Ranks that return while others go on together are noticed.
func TestRanksThatLeaveEarly(t *testing.T) {
	const departed = "has returned from the program's function"
	for name, c := range map[string]struct {
		rest func(n *Node) error
		kind error
		want string
	}{
		"barrier":  {(*Node).Barrier, ErrBarrierMismatch, departed},
		"wait":     {func(n *Node) error { return errors.Join(n.BarrierNotify(), n.BarrierWait()) }, ErrBarrierMismatch, departed},
		"try":      {tryBarrier, ErrBarrierMismatch, departed},
		"new":      {func(n *Node) error { _, err := New[int](n); return err }, ErrNotReady, ""},
		"newarray": {func(n *Node) error { _, err := NewArray[int](n, 10, 2); return err }, ErrNotReady, ""},
	} {
		for _, who := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, who), func(t *testing.T) {
				var mu sync.Mutex
				var all []error
				err := Run(small(3), func(n *Node) error {
					if n.Rank() == who {
						return nil
					}
					err := c.rest(n)
					mu.Lock()
					all = append(all, err)
					mu.Unlock()
					return err
				})
				if err == nil {
					t.Fatal("Run: no error")
				}
				for _, err := range all {
					if !errors.Is(err, ErrPeer) && (!errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want)) {
						t.Errorf("%v, want %v, %q", err, c.kind, c.want)
					}
				}
			})
		}
	}
}

// tryBarrier is a barrier that does not sleep.
func tryBarrier(n *Node) error {
	if err := n.BarrierNotify(); err != nil {
		return err
	}
	for {
		if done, err := n.BarrierTry(); done || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

func TestLeavingDuringABarrier(t *testing.T) {
	err := Run(small(2), func(n *Node) error { return n.BarrierNotify() })
	if err := wantErr(err, ErrNotReady, "during a barrier"); err != nil {
		t.Error(err)
	}
}

// With Config.Debug a handle that is not synchronized fails its rank.
func TestForgottenHandle(t *testing.T) {
	for _, debug := range []bool{false, true} {
		cfg := small(2)
		cfg.Debug = debug
		err := Run(cfg, func(n *Node) error {
			p := Must(NewSlice[int](n, 2))
			kept, err := p.PutNB(n, 1)
			if err == nil {
				err = n.Sync(kept)
			}
			if err == nil && n.Rank() == 1 {
				for i := 0; i < 2 && err == nil; i++ {
					_, err = p.Add(1).On(0).PutNB(n, 2)
				}
				if err == nil {
					err = n.x.BeginRegion(new(extended.Region))
				}
			}
			return err
		})
		if !debug && err != nil {
			t.Errorf("without Debug: %v", err)
		}
		if debug {
			for _, text := range []string{
				"rank 1 returned with 2 handles that were not synchronized and 1 access regions",
				"2 times non-blocking put, rank 0 (run_test.go:", "access region (run_test.go:",
			} {
				if err := wantErr(err, ErrNotReady, text); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestBarrierMisuse(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		n.Must(wantErr(n.BarrierWait(), ErrNotReady))
		n.Must(n.BarrierNotify())
		n.Must(wantErr(n.BarrierNotify(), ErrNotReady))
		for {
			done := Must(n.BarrierTry())
			if done {
				break
			}
			runtime.Gosched()
		}
		_, err := n.BarrierTry()
		return wantErr(err, ErrNotReady)
	})
}

func TestRunManyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			if err := Run(small(1+i%3), func(n *Node) error {
				p, err := New[int](n)
				if err != nil {
					return err
				}
				for range 20 {
					if _, err := FetchAdd(n, p.On(0), i); err != nil {
						return err
					}
				}
				if err := n.Barrier(); err != nil {
					return err
				}
				if v, err := p.On(0).Get(n); err != nil || v != 20*i*n.Size() {
					return fmt.Errorf("job %d: %d (%v)", i, v, err)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestNodeHasItsLayers(t *testing.T) {
	cfg := small(2)
	var got [2]atomic.Uint32
	cfg.Handlers = []am.Entry{{Index: 200, Name: "hello", Args: 1, Fn: func(t *am.Token, args []uint32, _ []byte) {
		got[t.Messenger().Rank()].Store(args[0])
	}}}
	if err := Run(cfg, func(n *Node) error {
		other := 1 - n.Rank()
		n.Must(n.Layers().AM.RequestShort(other, 200, uint32(100+other)))
		n.Must(n.Wait(func() bool { return got[n.Rank()].Load() != 0 }))
		if v := got[n.Rank()].Load(); v != uint32(100+n.Rank()) {
			return fmt.Errorf("got %d", v)
		}
		p := Must(New[uint64](n))
		n.Must(n.Layers().Extended.PutValue(other, p.NLA(), 77, 8))
		n.Must(n.Layers().Barriers.Notify(5, 0))
		n.Must(n.Layers().Barriers.Wait(5, 0))
		if v, err := p.Get(n); err != nil || v != 77 {
			return fmt.Errorf("%d, %v", v, err)
		}
		n.Fence()
		n.Wake(other)
		n.Wake(-1)
		if !n.Neighbour(other) || n.Neighbour(2) || n.Neighbour(-1) {
			return errors.New("the neighbourhood is wrong")
		}
		var s conduits.Stats
		n.Stats(&s)
		if s.Sent[conduits.Request] == 0 {
			return errors.New("nothing was counted")
		}
		if n.Layers().Conduit.Conduit() != "shm" {
			return errors.New(n.Layers().Conduit.Conduit())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestNonBlocking(t *testing.T) {
	for _, debug := range []bool{false, true} {
		cfg := small(2)
		cfg.Debug = debug
		if err := Run(cfg, func(n *Node) error {
			p := Must(NewSlice[[3]uint16](n, 100))
			other := p.On(1 - n.Rank())
			var hs []Handle
			for i := range 50 {
				h := Must(other.Add(i).PutNB(n, [3]uint16{uint16(i), 1, uint16(n.Rank())}))
				hs = append(hs, h)
			}
			src := make([][3]uint16, 50)
			for i := range src {
				src[i] = [3]uint16{uint16(50 + i), 2, uint16(n.Rank())}
			}
			h, err := other.Add(50).PutSliceNB(n, src)
			if err != nil {
				return err
			}
			if debug != (h != 0) {
				return fmt.Errorf("debug %v, handle %v", debug, h)
			}
			for done := false; !done; {
				if done, err = n.TrySync(h); err != nil {
					return err
				}
			}
			if debug {
				if err := wantErr(n.Sync(h), ErrBadArg); err != nil {
					return fmt.Errorf("synchronized twice: %w", err)
				}
			}
			n.Must(n.SyncAll(hs))
			n.Must(n.Barrier())
			dst := make([][3]uint16, 99)
			h = Must(p.Add(1).GetSliceNB(n, dst))
			var first [3]uint16
			h1 := Must(p.GetNB(n, &first))
			n.Must(errors.Join(n.Sync(h), n.Sync(h1)))
			for i, v := range append([][3]uint16{first}, dst...) {
				if want := ([3]uint16{uint16(i), uint16(1 + i/50), uint16(1 - n.Rank())}); v != want {
					return fmt.Errorf("element %d is %v, want %v", i, v, want)
				}
			}
			if done, err := n.TrySync(0); !done || err != nil {
				return fmt.Errorf("the zero handle: %v, %v", done, err)
			}
			return n.Barrier()
		}); err != nil {
			t.Fatalf("debug %v: %v", debug, err)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	fn := func(t *am.Token, args []uint32, payload []byte) {}
	c := Config{Ranks: -3, SegmentSize: 1 << 50, Conduit: "pigeon", Handlers: []am.Entry{
		{Index: 100, Name: "low", Fn: fn}, {Index: 130, Name: "one", Fn: fn}, {Index: 130, Name: "two", Fn: fn}, {Index: 131, Name: "empty"},
	}}
	err := Run(c, func(*Node) error { return nil })
	if err := wantErr(err, ErrBadArg, "Config.Ranks is -3", "1125899906842624", `"low" has index 100`, `"one" and "two"`, `"empty"`); err != nil {
		t.Error(err)
	}
	err = Run(Config{Conduit: "pigeon"}, func(*Node) error { return nil })
	if err := wantErr(err, ErrBadArg, "pigeon", "shm"); err != nil {
		t.Error(err)
	}
	if err := wantErr(Run(Config{}, nil), ErrBadArg); err != nil {
		t.Error(err)
	}
}

func TestConfigFromEnv(t *testing.T) {
	env := map[string]string{"ARGON_RANKS": "3", "ARGON_CONDUIT": "x", "ARGON_SEGMENT": "2M", "ARGON_PROGRESS": "1", "ARGON_DEBUG": "true"}
	c := Config{Ranks: 9, Conduit: "y", SegmentSize: 5}
	var said bytes.Buffer
	if err := (overridden{&c}).FromEnv(func(k string) string { return env[k] }, &said); err != nil {
		t.Fatal(err)
	}
	if c.Ranks != 3 || c.Conduit != "x" || c.SegmentSize != 2<<20 || !c.Progress || !c.Debug {
		t.Errorf("%+v", c)
	}
	for k, v := range env {
		if !strings.Contains(said.String(), k) || !strings.Contains(said.String(), v) {
			t.Errorf("ARGON_VERBOSEENV does not tell of %s=%s:\n%s", k, v, &said)
		}
	}
	env = map[string]string{"ARGON_RANKS": "0", "ARGON_SEGMENT": "2X", "ARGON_PROGRESS": "maybe", "ARGON_DEBUG": "2"}
	err := overridden{&c}.FromEnv(func(k string) string { return env[k] }, nil)
	if err := wantErr(err, ErrBadArg, `ARGON_RANKS="0"`, `ARGON_SEGMENT="2X"`, `ARGON_PROGRESS="maybe"`, `ARGON_DEBUG="2"`); err != nil {
		t.Error(err)
	}
}

// waits has the reasons of the goroutines of n's rank that wait.
func waits(n *Node) string {
	var all []string
	for _, b := range n.ep.Waiting() {
		all = append(all, b.Blocked())
	}
	return strings.Join(all, "; ")
}

// A waiting rank says what it waits for.
func TestDiagnosis(t *testing.T) {
	for name, c := range map[string]struct {
		wait func(n *Node) error
		want string
	}{
		"barrier": {(*Node).Barrier, "barrier phase"},
		"new":     {func(n *Node) error { _, err := New[int](n); return err }, "collective call 1, a collective allocation or free: waiting for data from rank 1"},
		"call":    {func(n *Node) error { _, err := callRank.Call(n, 1, struct{}{}); return err }, "call of test.rank on rank 1"},
		"lock": {func(n *Node) error {
			p, err := Alloc[LockWord](n, 1)
			if err != nil {
				return err
			}
			if err := LockAt(p).Lock(n); err != nil {
				return err
			}
			return LockAt(p).Lock(n)
		}, "which rank 0 holds exclusively"},
		"condition": {func(n *Node) error { return n.Wait(func() bool { return n.Size() == 0 }) }, "a condition of the program (run_test.go:"},
	} {
		t.Run(name, func(t *testing.T) {
			var waiting atomic.Pointer[Node]
			release := make(chan struct{})
			said := ""
			err := Run(small(2), func(n *Node) error {
				if n.Rank() == 0 {
					waiting.Store(n)
					return c.wait(n)
				}
				for { // until rank 0 sleeps
					if m := waiting.Load(); m != nil && strings.Contains(waits(m), c.want) {
						said = (*member)(m).Diagnosis()
						break
					}
					runtime.Gosched()
				}
				close(release)
				return errTest // ends rank 0's wait
			})
			<-release
			if !errors.Is(err, errTest) {
				t.Errorf("Run: %v", err)
			}
			if said != "handles outstanding 0" {
				t.Errorf("said %q", said)
			}
		})
	}
}
