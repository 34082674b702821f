package gas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// gates returns so many Futures of tasks on rank 1, which end once their word there is set.
func gates(n *Node, count int) (fs []Future[int64], open func(i int) error, err error) {
	var words []Ptr[int64]
	for range count {
		p, err := New[int64](n)
		if err != nil {
			return nil, nil, err
		}
		words = append(words, p)
	}
	if n.Rank() != 0 {
		return nil, nil, nil
	}
	for _, p := range words {
		f, err := taskUntil.Go(n, 1, p)
		if err != nil {
			return nil, nil, err
		}
		fs = append(fs, f)
	}
	return fs, func(i int) error {
		err := Store(n, words[i].On(1), 1)
		n.Wake(1)
		return err
	}, nil
}

func TestFutureCombinators(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		fs, open, err := gates(n, 3)
		if err != nil || n.Rank() != 0 {
			return errors.Join(err, n.Barrier())
		}
		// The last that rank 1 runs is on top of the others: it opens first.
		ctx, cancel := context.WithCancelCause(context.Background())
		go cancel(errEnough)
		if _, err := fs[2].WaitContext(ctx); !errors.Is(err, errEnough) {
			return fmt.Errorf("the context's end: %w", err)
		}
		n.Must(open(2))
		if i, _, err := WaitAny(fs...); i != 2 || err != nil {
			return fmt.Errorf("WaitAny: %d, %w", i, err)
		}
		if i, _, err := WaitAny(fs...); i != -1 || wantErr(err, ErrBadArg, "Future 2 of 3", "taken twice") != nil {
			return fmt.Errorf("WaitAny of one that was taken: %d, %w", i, err)
		}
		n.Must(errors.Join(open(1), open(0)))
		if v, err := WaitAll(fs[:2]...); len(v) != 2 || err != nil {
			return fmt.Errorf("WaitAll: %v, %w", v, err)
		}
		_, err = WaitAll(fs[0])
		n.Must(wantErr(err, ErrBadArg, "taken twice"))
		_, _, err = WaitAny[int]()
		n.Must(wantErr(err, ErrBadArg, "no Future"))
		then := 0
		for early := range 2 {
			f := Must(callRank.Go(n, 1, struct{}{}))
			if early == 0 {
				n.Must(n.Wait(f.Ready))
			}
			n.Must(f.Then(func(n *Node, r int, err error) {
				if r == 1 && err == nil {
					_, err = callRank.Call(n, 1, struct{}{}) // it may wait
				}
				if err == nil {
					then++
				}
			}))
			n.Must(wantErr(f.Then(func(*Node, int, error) {}), ErrBadArg, "taken twice"))
			n.Must(n.Wait(func() bool { return then > early }))
		}
		if n.calls.started() < n.calls.finished() {
			return errors.New("more was handled than begun")
		}
		return n.Barrier()
	})
}

// TestQuiesceAfterThen: what Then is given has run when Quiesce returns, and Quiesce does return.
func TestQuiesceAfterThen(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		for range 2 {
			got := -1
			f, err := callRank.Go(n, 1-n.Rank(), struct{}{})
			if err == nil {
				err = f.Then(func(_ *Node, r int, _ error) { got = r })
			}
			if err == nil {
				err = n.Quiesce()
			}
			if err != nil || got != 1-n.Rank() {
				return fmt.Errorf("Then has run with %d: %w", got, err)
			}
		}
		return nil
	})
}

// TestTransferFutures: a Handle becomes a Future, which is used as that of a call is.
func TestTransferFutures(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "hybrid", "sim", "hidden") {
		for _, large := range []bool{false, true} {
			cfg := Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 20, Large: large}
			if err := Run(cfg, transferFutures); err != nil {
				t.Errorf("%s, large %v: %v", conduit, large, err)
			}
		}
	}
}

func transferFutures(n *Node) error {
	const count = 10000
	next := 1 - n.Rank()
	p := Must(NewSlice[int](n, count))
	src, dst := make([]int, count), make([]int, count)
	src[count-1] = n.Rank() + 1
	put := Must(n.Future(p.On(next).PutSliceNB(n, src)))
	Must(put.Wait())
	if _, err := put.Wait(); !errors.Is(err, ErrBadArg) {
		return fmt.Errorf("taken twice: %w", err)
	}
	n.Must(n.Barrier())

	// The function of Then runs once, with the data there.
	ran := 0
	get := Must(n.Future(p.On(next).GetSliceNB(n, dst)))
	n.Must(get.Then(func(_ *Node, _ struct{}, err error) {
		if ran++; err != nil || dst[count-1] != n.Rank()+1 {
			ran += 100
		}
	}))
	n.Must(n.Wait(func() bool { return ran != 0 }))
	n.Must(n.Quiesce())
	if ran != 1 {
		return fmt.Errorf("Then: %d", ran)
	}

	// One of several, one with a context, and one whose channel closes.
	fs := []Future[struct{}]{Must(n.Future(p.On(next).GetSliceNB(n, dst))), Must(n.Future(p.On(next).PutNB(n, 5)))}
	i, _ := Must2(WaitAny(fs...))
	done := fs[1-i].Done()
	Must(fs[1-i].WaitContext(context.Background()))
	select {
	case <-done:
	default:
		return errors.New("the channel of what has been waited for is open")
	}
	if f := Must(n.Future(0, nil)); !f.Ready() {
		return errors.New("the Future of nothing is not ready")
	}
	if _, err := n.Future(Handle(12345), nil); !errors.Is(err, ErrBadArg) {
		return fmt.Errorf("a Handle that is none: %w", err)
	}
	if _, err := n.Future(Ptr[int]{}.PutNB(n, 1)); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "nil Ptr") {
		return fmt.Errorf("a transfer that has not begun: %w", err)
	}
	n.Must(n.Barrier())

	// A failure arrives by the Future.
	all := Must(AllGather(n, Must(Register(n, src))))
	n.Must(n.Barrier())
	n.Must(Free(n, all[n.Rank()]))
	n.Must(n.Barrier())
	f, err := n.Future(all[next].GetSliceNB(n, dst))
	if err == nil {
		_, err = f.Wait()
	}
	if !errors.Is(err, ErrFault) {
		return fmt.Errorf("freed memory: %w", err)
	}
	return n.Barrier()
}
