package gas

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// errEnough is why contexts of these tests end.
var errEnough = errors.New("that was enough")

// TestRunContext ends a job by its context, wherever its ranks wait.
func TestRunContext(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "hybrid", "sim") {
		t.Run(conduit, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			waits := make([]error, 4)
			err := RunContext(ctx, Config{Ranks: len(waits), Conduit: conduit}, func(n *Node) (err error) {
				defer func() { waits[n.Rank()] = err }()
				l, err := NewLock(n)
				if err == nil && n.Rank() == 0 {
					err = l.Lock(n)
				}
				if err == nil {
					err = n.Barrier()
				}
				if err != nil {
					return err
				}
				switch n.Rank() {
				case 0:
					cancel(errEnough)
					for n.Layers().Conduit.Err() == nil {
						n.Poll()
						runtime.Gosched()
					}
					err = n.Layers().Conduit.Err()
				case 1:
					err = l.Lock(n)
				case 2:
					err = n.Barrier()
				case 3:
					err = n.Wait(func() bool { return false })
				}
				return err
			})
			var r *RankError
			if !errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || !errors.As(err, &r) {
				t.Errorf("the job: %v", err)
			}
			for rank, err := range waits {
				var p *PeerError
				if !errors.As(err, &p) || !strings.Contains(err.Error(), errEnough.Error()) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

// TestRunContextOfFailed: the failure of a rank is not hidden by a context that ends
// because of it, and is not taken for one by the context.
func TestRunContextOfFailed(t *testing.T) {
	wrong := errors.New("wrong")
	for _, conduit := range testjob.Concurrent("shm", "udp", "hybrid", "sim") {
		for what, c := range map[string]struct {
			fail func(n *Node) error
			want error
		}{
			"error":    {func(*Node) error { return wrong }, wrong},
			"exit":     {func(n *Node) error { return n.Exit(3) }, ErrExit},
			"deadlock": {func(n *Node) error { return n.Wait(func() bool { return false }) }, nil}, // by the simulator
		} {
			if what == "deadlock" && conduit != "sim" {
				continue
			}
			t.Run(conduit+" "+what, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				err := RunContext(ctx, Config{Ranks: 3, Conduit: conduit}, func(n *Node) error {
					if n.Rank() == 1 {
						return c.fail(n)
					}
					err := n.Barrier()
					cancel(errEnough)
					for range 1000 { // so that the job most likely hears of it
						runtime.Gosched()
					}
					return err
				})
				if err == nil || c.want != nil && !errors.Is(err, c.want) || errors.Is(err, errEnough) || strings.Contains(err.Error(), errEnough.Error()) {
					t.Error(err)
				}
			})
		}
	}
}
