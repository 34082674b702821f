package gas

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var mustConduits = testjob.Concurrent("shm", "udp", "hybrid", "sim")

var breaks = RegisterCall("gas_test.breaks", func(n *Node, x int) int { return Must(x, errTest) })

// two is an operation with two results, which fails on rank 1.
func two(n *Node) (int, bool, error) {
	if n.Rank() == 1 {
		return 0, false, errTest
	}
	return n.Rank(), true, nil
}

// plainly finds what is wrong with err as what Run returns when rank ended with a plain error
// at a line of this file.
func plainly(err error, rank int, kind error) error {
	var r *RankError
	switch {
	case !errors.As(err, &r) || r.Rank != rank || r.Stack != nil:
		return fmt.Errorf("Run returned %#v (%w)", err, err)
	case !errors.Is(err, kind) || !strings.Contains(err.Error(), " must_test.go:") || strings.Contains(err.Error(), "panic"):
		return fmt.Errorf("Run returned %w", err)
	}
	return nil
}

// TestMust: each form passes results on, and ends the function of rank 1, to which alone the
// operation is an error, while rank 0 waits.
func TestMust(t *testing.T) {
	for name, op := range map[string]func(n *Node, p Ptr[int64]){
		"Must":       func(n *Node, p Ptr[int64]) { Must(p.Get(n)) },
		"Must2":      func(n *Node, p Ptr[int64]) { Must2(CompareAndSwap(n, p, 1, 2)) },
		"Node.Must":  func(n *Node, p Ptr[int64]) { n.Must(p.Put(n, 1)) },
		"a deferred": func(n *Node, p Ptr[int64]) { defer n.Must(nil); Must(Load(n, p)) },
	} {
		waited := error(nil)
		var done atomic.Bool // a job that has failed gives no access to memory after a while
		err := Run(Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *Node) error {
			p := Must(New[int64](n))
			if n.Rank() == 0 {
				op(n, p)
				done.Store(true)
				waited = n.Barrier()
				return waited
			}
			for !done.Load() {
				runtime.Gosched()
			}
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%s: recover found %v", name, v)
				}
			}()
			op(n, Ptr[int64]{})
			t.Errorf("%s: the function goes on", name)
			return nil
		})
		var peer *PeerError
		if err := plainly(err, 1, ErrBadArg); err != nil || !errors.As(waited, &peer) || peer.Rank != 1 {
			t.Errorf("%s: %v; rank 0 got %v", name, err, waited)
		}
	}
}

// TestMustResults: without an error the results are those of the operation, and the last of
// many ranks of a process is told from the others.
func TestMustResults(t *testing.T) {
	for _, conduit := range mustConduits {
		err := Run(Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 16}, func(n *Node) error {
			if n.Rank() == 0 {
				if v, ok := Must2(two(n)); v != 0 || !ok {
					t.Errorf("%s: %d, %v", conduit, v, ok)
				}
				return n.Barrier()
			}
			Must2(two(n))
			return nil
		})
		if err := plainly(err, 1, errTest); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestMustOnGoroutine ends a rank's function by a goroutine that it has started, with what the
// function returns and with what it waits for. Must takes the goroutine for one of rank 0.
func TestMustOnGoroutine(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hybrid"} {
		for how, fn := range map[string]func(n *Node, wg *sync.WaitGroup) error{
			"returns nil":   func(_ *Node, wg *sync.WaitGroup) error { wg.Wait(); return nil },
			"returns other": func(_ *Node, wg *sync.WaitGroup) error { wg.Wait(); return errors.New("another") },
			"waits":         func(n *Node, _ *sync.WaitGroup) error { return n.Wait(func() bool { return false }) },
			"must": func(n *Node, wg *sync.WaitGroup) error {
				n.Must(n.Wait(func() bool { return false }))
				return nil
			},
		} {
			for rank, fails := range []func(l *Node){
				func(*Node) { Must(0, errTest) },
				func(l *Node) { l.Must(errTest) },
			} {
				err := Run(Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 16, Lanes: 2}, func(n *Node) error {
					if n.Rank() != rank {
						return n.Barrier()
					}
					l := Must(n.Lane())
					var wg sync.WaitGroup
					for range 2 {
						wg.Go(func() { fails(l) })
					}
					return fn(n, &wg)
				})
				if err := plainly(err, rank, errTest); err != nil {
					t.Errorf("%s, %s: %v", conduit, how, err)
				}
			}
		}
	}
}

// TestMustOfPeer: a rank whose operation ends because another one has failed is not the cause.
func TestMustOfPeer(t *testing.T) {
	for _, conduit := range mustConduits {
		err := Run(Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 16}, func(n *Node) error {
			f := Must(New[uint64](n))
			switch n.Rank() {
			case 0:
				Must(WaitUntil(n, f, Ne, 0))
			case 1:
				n.Must(errTest)
			}
			n.Must(n.Barrier())
			return nil
		})
		if err := plainly(err, 1, errTest); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestMustInCall: a called function that must ends the rank that runs it.
func TestMustInCall(t *testing.T) {
	for _, conduit := range mustConduits {
		err := Run(Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 16}, func(n *Node) error {
			if n.Rank() == 0 {
				Must(breaks.Call(n, 1, 1))
			}
			return n.Barrier()
		})
		if err := plainly(err, 1, errTest); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestMustOfThoseLeft: a rank that waits in a barrier names the one that has returned, and the
// status of Node.Exit stays.
func TestMustOfThoseLeft(t *testing.T) {
	err := Run(Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *Node) error {
		if n.Rank() == 1 {
			n.Must(n.Barrier())
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "has returned from") {
		t.Errorf("Run returned %v", err)
	}
	err = Run(Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *Node) error {
		if n.Rank() == 0 {
			n.Must(n.Exit(7))
		}
		n.Must(n.Barrier())
		return nil
	})
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("Run returned %v", err)
	}
}

// TestMustOutsideOfRun: when no rank runs any more a goroutine ends alone; in a process in which
// none has, Must panics with the error.
func TestMustOutsideOfRun(t *testing.T) {
	if err := Run(Config{Ranks: 2, SegmentSize: 1 << 16}, func(*Node) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if len(running.ranks) != 0 {
		t.Errorf("%d ranks run", len(running.ranks))
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		Must(0, errTest)
		t.Error("the goroutine goes on")
	})
	wg.Wait()
	saved := running.ranks
	defer func() {
		running.ranks = saved
		if err, ok := recover().(error); !ok || !errors.Is(err, errTest) {
			t.Errorf("recovered %v", err)
		}
	}()
	running.ranks = nil
	Must(0, errTest)
}

func TestMustAllocatesNothing(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector allocates")
	}
	err := Run(Config{Ranks: 1, SegmentSize: 1 << 16}, func(n *Node) error {
		p, buf := Must(NewSlice[uint64](n, 8)), make([]uint64, 4)
		a := Must(NewArray[uint64](n, 8, 2))
		if got := testing.AllocsPerRun(100, func() {
			n.Must(p.Put(n, Must(p.Get(n))+1))
			n.Must(p.PutSlice(n, buf))
			Must(FetchAdd(n, p, 1))
			Must2(CompareAndSwap(n, p, 1, 2))
			n.Must(a.Put(n, 3, Must(a.Get(n, 4))))
		}); got != 0 {
			return fmt.Errorf("%v allocations", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// BenchmarkMust is a get, a put and a fetch-and-add on another rank's word in reach of load
// and store, with errors that the program looks at and without.
func BenchmarkMust(b *testing.B) {
	for name, access := range map[string]func(n *Node, p Ptr[uint64], count int) error{
		"errors": func(n *Node, p Ptr[uint64], count int) error {
			for range count {
				v, err := p.Get(n)
				if err != nil {
					return err
				}
				if err := p.Put(n, v+1); err != nil {
					return err
				}
				if _, err := FetchAdd(n, p, 1); err != nil {
					return err
				}
			}
			return nil
		},
		"must": func(n *Node, p Ptr[uint64], count int) error {
			for range count {
				n.Must(p.Put(n, Must(p.Get(n))+1))
				Must(FetchAdd(n, p, 1))
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			err := Run(Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *Node) error {
				p := Must(New[uint64](n))
				if n.Rank() == 1 {
					return nil
				}
				b.ResetTimer()
				defer b.StopTimer()
				return access(n, p.On(1), b.N)
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
