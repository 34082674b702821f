package must_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/must"
)

var (
	add   = gas.RegisterTask("must_test.add", func(_ *gas.Call, x [2]int) (int, error) { return x[0] + x[1], nil })
	fails = gas.RegisterTask("must_test.fails", func(*gas.Call, int) (int, error) { return 0, errTest })
)

// boxes uses mailboxes, batches and futures once each, and operations on lists of indices.
func boxes(n *gas.Node) error {
	me, size := n.Rank(), n.Size()
	next := (me + 1) % size
	var got []int
	box := must.NewMailbox(n, "numbers", func(_ *gas.Node, source int, items []int) {
		for _, v := range items {
			got = append(got, 100*source+v)
		}
	})
	must.Push(n, box, next, 1)
	must.PushAll(n, box, next, []int{2, 3})
	must.Flush(n, box)
	must.PollMailbox(n, box)
	must.SyncMailbox(n, box)
	must.Push(n, box, next, 4)
	must.Done(n, box)
	prev := 100 * ((me + size - 1) % size)
	slices.Sort(got)
	if want := []int{prev + 1, prev + 2, prev + 3, prev + 4}; !slices.Equal(got, want) {
		return fmt.Errorf("mailbox: %v, want %v", got, want)
	}

	b := must.NewBatch(n, "squares", func(n *gas.Node, _, q int) int { return 100*n.Rank() + q*q })
	must.Ask(n, b, next, 3)
	must.Ask(n, b, me, 4)
	if got, want := must.Answers(n, b), []int{100*next + 9, 100*me + 16}; !slices.Equal(got, want) {
		return fmt.Errorf("batch: %v, want %v", got, want)
	}
	must.Done(n, b)

	a := must.NewArray[int](n, size, 1)
	must.AddAll(n, a, []int{me, next}, []int{1, 2})
	must.UpdateAll(n, a, []int{next}, []int{10}, func(old, v int) int { return old * v })
	two := make([]int, 2)
	must.GatherAt(n, a, []int{me, next}, two)
	if want := []int{30, 30}; !slices.Equal(two, want) {
		return fmt.Errorf("lists: %v, want %v", two, want)
	}
	must.Barrier(n)
	must.ScatterAt(n, a, []int{next}, []int{next})
	if v := must.GetAt(n, a, me); v != me {
		return fmt.Errorf("scattered %d, want %d", v, me)
	}

	pair := func() []gas.Future[int] {
		return []gas.Future[int]{must.Go(n, add, next, [2]int{1, 2}), must.Go(n, add, me, [2]int{3, 4})}
	}
	if got := must.WaitAll(n, pair()...); !slices.Equal(got, []int{3, 7}) {
		return fmt.Errorf("WaitAll: %v", got)
	}
	calls := pair()
	i, v := must.WaitAny(n, calls...)
	if other := must.Result(n, calls[1-i]); v != 3+4*i || other != 7-4*i {
		return fmt.Errorf("WaitAny: %d is %d, the other %d", i, v, other)
	}
	sum := 0
	must.Then(n, must.Go(n, add, next, [2]int{5, 6}), func(_ *gas.Node, r int) { sum = r })
	must.Quiesce(n)
	if sum != 11 {
		return fmt.Errorf("Then: %d", sum)
	}
	return nil
}

func TestBoxes(t *testing.T) {
	for _, conduit := range conduits {
		if err := gas.Run(gas.Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 20}, boxes); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestErrorsOfBoxes gives rank 1 alone what is refused, or what fails at its peer.
func TestErrorsOfBoxes(t *testing.T) {
	one := []int{1}
	box := func(n *gas.Node) *gas.Mailbox[int] {
		return must.NewMailbox(n, "numbers", func(*gas.Node, int, []int) {})
	}
	batch := func(n *gas.Node) *gas.Batch[int, int] {
		return must.NewBatch(n, "numbers", func(_ *gas.Node, _, q int) int { return q })
	}
	array := func(n *gas.Node) gas.Array[int] { return must.NewArray[int](n, 4, 1) }
	// bad is 0 on rank 0, and no rank or index on rank 1.
	bad := func(n *gas.Node) int { return 9 * n.Rank() }
	for name, op := range map[string]func(n *gas.Node){
		"Push":      func(n *gas.Node) { must.Push(n, box(n), bad(n), 1) },
		"PushAll":   func(n *gas.Node) { must.PushAll(n, box(n), bad(n), one) },
		"Ask":       func(n *gas.Node) { must.Ask(n, batch(n), bad(n), 1) },
		"AddAll":    func(n *gas.Node) { must.AddAll(n, array(n), []int{bad(n)}, one) },
		"GatherAt":  func(n *gas.Node) { must.GatherAt(n, array(n), []int{bad(n)}, []int{0}) },
		"ScatterAt": func(n *gas.Node) { must.ScatterAt(n, array(n), []int{bad(n)}, one) },
		"UpdateAll": func(n *gas.Node) {
			must.UpdateAll(n, array(n), []int{bad(n)}, one, func(_, v int) int { return v })
		},
		"WaitAny": func(n *gas.Node) {
			if n.Rank() == 1 {
				must.WaitAny[int](n)
			}
		},
	} {
		ends(t, name, gas.ErrBadArg, op)
	}
	for name, op := range map[string]func(n *gas.Node){
		"Flush": func(n *gas.Node) { must.Flush(n, broken{n}) },
		"Done":  func(n *gas.Node) { must.Done(n, broken{n}) },
	} {
		ends(t, name, errTest, op)
	}
	for name, op := range map[string]func(n *gas.Node, f gas.Future[int]){
		"Call":    func(n *gas.Node, f gas.Future[int]) { must.Result(n, f) },
		"WaitAll": func(n *gas.Node, f gas.Future[int]) { must.WaitAll(n, f) },
		"Then": func(n *gas.Node, f gas.Future[int]) {
			must.Then(n, f, func(*gas.Node, int) { t.Errorf("Then runs with the result of what has failed") })
			must.Wait(n, func() bool { return false })
		},
	} {
		// The error of a task arrives as a CallError, which says what it was.
		var failed *gas.CallError
		err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
			if n.Rank() == 1 {
				op(n, must.Go(n, fails, 0, 1))
				t.Errorf("%s: the function goes on", name)
			}
			return n.Barrier()
		})
		if !errors.As(err, &failed) || failed.Text != errTest.Error() {
			t.Errorf("%s: Run returned %v", name, err)
		}
	}
}

// broken cannot be flushed or ended on rank 1.
type broken struct{ n *gas.Node }

func (b broken) Flush() error {
	if b.n.Rank() == 1 {
		return errTest
	}
	return nil
}

func (b broken) Done() error { return b.Flush() }
