package gas

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
		if err := open(2); err != nil {
			return err
		}
		if i, _, err := WaitAny(fs...); i != 2 || err != nil {
			return fmt.Errorf("WaitAny: %d, %w", i, err)
		}
		if i, _, err := WaitAny(fs...); i != -1 || wantErr(err, ErrBadArg, "Future 2 of 3", "taken twice") != nil {
			return fmt.Errorf("WaitAny of one that was taken: %d, %w", i, err)
		}
		if err := errors.Join(open(1), open(0)); err != nil {
			return err
		}
		if v, err := WaitAll(fs[:2]...); len(v) != 2 || err != nil {
			return fmt.Errorf("WaitAll: %v, %w", v, err)
		}
		if _, err := WaitAll(fs[0]); wantErr(err, ErrBadArg, "taken twice") != nil {
			return err
		}
		_, _, err = WaitAny[int]()
		if err := wantErr(err, ErrBadArg, "no Future"); err != nil {
			return err
		}
		then := 0
		for early := range 2 {
			f, err := callRank.Go(n, 1, struct{}{})
			if err != nil {
				return err
			}
			if early == 0 {
				if err := n.Wait(f.Ready); err != nil {
					return err
				}
			}
			if err := f.Then(func(n *Node, r int, err error) {
				if r == 1 && err == nil {
					_, err = callRank.Call(n, 1, struct{}{}) // it may wait
				}
				if err == nil {
					then++
				}
			}); err != nil {
				return err
			}
			if err := wantErr(f.Then(func(*Node, int, error) {}), ErrBadArg, "taken twice"); err != nil {
				return err
			}
			if err := n.Wait(func() bool { return then > early }); err != nil {
				return err
			}
		}
		if n.calls.sent.Load() < n.calls.handled.Load() {
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
