package gas_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// errPatience is why contexts of these tests end.
var errPatience = errors.New("that took too long")

// ending is a context that ends when the rank waits, or has answered so many polls besides.
func ending(n *gas.Node) context.Context {
	ctx, cancel := context.WithCancelCause(n.Context())
	go func() {
		for len(n.Layers().Conduit.Waiting()) == 0 && ctx.Err() == nil {
			runtime.Gosched()
		}
		cancel(errPatience)
	}()
	return ctx
}

var withEcho = gas.RegisterCall("gas_test.withEcho", func(_ *gas.Node, x int) int { return x })

// TestWith: what waits by a view gives up when its context ends, and can be done again.
func TestWith(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hidden"} {
		t.Run(conduit, func(t *testing.T) {
			gastest.RunConfig(t, gas.Config{Ranks: 2, Conduit: conduit}, func(n *gas.Node) error {
				gaveUp := func(what string, err error) {
					if !errors.Is(err, errPatience) {
						t.Errorf("%s: %v", what, err)
					}
				}
				l := gas.Must(gas.NewLock(n))
				flags := gas.Must(gas.NewSlice[uint64](n, 2))
				both := []gas.Ptr[uint64]{flags, flags.Add(1)}
				for i := range both {
					both[i] = both[i].On(n.Rank())
				}
				if n.Rank() == 0 {
					n.Must(l.Lock(n))
				}
				n.Must(n.Barrier())
				if n.Rank() == 0 { // answers while rank 1 gives up, until it has done all
					gas.Must(gas.WaitUntil(n, both[0], gas.Eq, 1))
					n.Must(l.Unlock(n))
					gas.Must(gas.Must(gas.BarrierNB(n)).Wait())
					gas.Must(gas.WaitUntil(n, both[0], gas.Eq, 2))
					n.Must(n.Barrier())
					n.Must(l.Lock(n)) // which waiters that have given up do not get
					n.Must(l.Unlock(n))
					return n.Barrier()
				}
				for range 3 {
					gaveUp("lock", l.Lock(n.With(ending(n))))
				}
				gaveUp("shared lock", l.RLock(n.With(ending(n))))
				gaveUp("condition", n.With(ending(n)).Wait(func() bool { return false }))
				_, err := gas.WaitUntil(n.With(ending(n)), both[0], gas.Ge, 1)
				gaveUp("flag", err)
				gaveUp("all flags", gas.WaitUntilAll(n.With(ending(n)), both, gas.Ge, 1))
				i, err := gas.WaitUntilAny(n.With(ending(n)), both, 0, gas.Ge, 1)
				gaveUp("any flag", err)
				some, err := gas.WaitUntilSome(n.With(ending(n)), []int{7}, both, gas.Ge, 1)
				gaveUp("some flags", err)
				if i != -1 || len(some) != 1 {
					t.Errorf("flags %d and %v have changed", i, some)
				}
				f := gas.Must(gas.BarrierNB(n.With(ending(n))))
				_, err = f.Wait()
				gaveUp("future", err)
				_, _, err = gas.WaitAny(f)
				gaveUp("any future", err)
				n.Must(gas.Store(n, both[0].On(0), 1))
				gas.Must(f.WaitContext(n.Context()))
				// The lock is free now or soon, and has forgotten the requests.
				n.Must(l.Lock(n.With(n.Context())))
				n.Must(l.Unlock(n))
				n.Must(l.Lock(n))
				n.Must(l.Unlock(n))
				// This rank comes to the barrier and leaves it to itself.
				if err := n.With(ended()).Barrier(); err != nil {
					gaveUp("barrier", err)
					if err := n.Barrier(); !errors.Is(err, gas.ErrNotReady) {
						t.Errorf("a barrier in a barrier: %v", err)
					}
				} else {
					t.Error("rank 0 has not come to the barrier")
				}
				n.Must(gas.Store(n, both[0].On(0), 2))
				n.Must(n.BarrierWait())
				return n.Barrier()
			})
		})
	}
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errPatience)
	return ctx
}

// TestWithEnded: what need not wait succeeds although the context has ended.
func TestWithEnded(t *testing.T) {
	gastest.RunSeeds(t, 3, gas.Config{Ranks: 2}, func(n *gas.Node) error {
		l, p := gas.Must(gas.NewLock(n)), gas.Must(gas.New[uint64](n))
		n.Must(n.Barrier())
		v := n.With(ended())
		if n.Rank() == 0 {
			n.Must(l.Lock(v))
			n.Must(l.Unlock(v))
		}
		gas.Must(gas.WaitUntil(v, p.On(n.Rank()), gas.Eq, 0))
		n.Must(v.Wait(func() bool { return true }))
		f := gas.Must(withEcho.Go(n, 1-n.Rank(), 5))
		n.Must(n.Wait(f.Ready))
		if x := gas.Must(f.WaitContext(ended())); x != 5 {
			t.Errorf("got %d", x)
		}
		_, err := withEcho.Call(v, 1-n.Rank(), 5)
		if err != nil && !errors.Is(err, errPatience) {
			t.Errorf("call: %v", err)
		}
		return n.Quiesce()
	})
}

// TestContext ends with the function of the rank, and with the job.
func TestContext(t *testing.T) {
	type key struct{}
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		var after [3]context.Context
		wrong := errors.New("wrong")
		for _, failure := range []error{nil, wrong} {
			parent := context.WithValue(context.Background(), key{}, 7)
			err := gas.RunContext(parent, gas.Config{Ranks: 3, Conduit: conduit}, func(n *gas.Node) error {
				ctx := n.Context()
				after[n.Rank()] = ctx
				if ctx.Err() != nil || ctx != n.Context() || ctx.Value(key{}) != 7 {
					t.Errorf("%s, rank %d: %v", conduit, n.Rank(), ctx)
				}
				n.Must(n.Barrier())
				if failure == nil {
					return nil
				}
				if n.Rank() == 1 {
					return failure
				}
				if conduit == "sim" {
					return n.Barrier()
				}
				if conduit == "shm" {
					<-ctx.Done() // waits for nothing of this job
				}
				for ctx.Err() == nil {
					n.Poll()
				}
				if c := context.Cause(ctx); !errors.Is(c, gas.ErrPeer) {
					return fmt.Errorf("the cause is %w", c)
				}
				return n.Barrier()
			})
			if !errors.Is(err, failure) {
				t.Errorf("%s: %v, want %v", conduit, err, failure)
			}
			for rank, ctx := range after {
				if c := context.Cause(ctx); c == nil || rank != 1 && failure != nil && !errors.Is(c, gas.ErrPeer) {
					t.Errorf("%s: the context of rank %d: %v", conduit, rank, c)
				}
			}
		}
	}
}

// TestMustOfGroups: teams and groups have Must, of the rank that has them.
func TestMustOfGroups(t *testing.T) {
	wrong := errors.New("wrong")
	err := gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		team := gas.Must(n.World().Split(0, -n.Rank()))
		for _, g := range []gas.Group{n, team} {
			g.Must(g.Barrier())
		}
		if n.Rank() == 2 {
			team.Must(wrong)
		}
		team.Must(team.Barrier())
		return nil
	})
	var r *gas.RankError
	if !errors.As(err, &r) || r.Rank != 2 || !errors.Is(err, wrong) {
		t.Error(err)
	}
}

// A rank does not wait for a lock longer than it likes.
func ExampleNode_With() {
	_ = gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		l := gas.Must(gas.NewLock(n))
		if n.Rank() == 0 {
			n.Must(l.Lock(n))
		}
		n.Must(n.Barrier())
		if n.Rank() == 1 {
			ctx, cancel := context.WithTimeout(n.Context(), time.Millisecond)
			defer cancel()
			err := l.Lock(n.With(ctx))
			fmt.Println("in time:", !errors.Is(err, context.DeadlineExceeded))
		}
		n.Must(n.Barrier())
		if n.Rank() == 0 {
			n.Must(l.Unlock(n))
		}
		return nil
	})
	// Output: in time: false
}
