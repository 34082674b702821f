package gas_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var poolSquare = gas.RegisterFunc("gas_test.poolSquare", func(_ *gas.Call, x int) (int, error) {
	if x < 0 {
		return 0, fmt.Errorf("%d is negative", x)
	}
	return x * x, nil
})

// TestPool: all results come, no more than the pool may have are under way, and errors are said once.
func TestPool(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		gastest.RunConfig(t, gas.Config{Ranks: 3, Conduit: conduit}, func(n *gas.Node) error {
			begun, came, sum := 0, 0, 0
			p := gas.NewPool(n, 5, func(_ *gas.Node, v int) { came++; sum += v })
			want := 0
			for x := range 100 {
				n.Must(p.Add(poolSquare.Go(n, (n.Rank()+x)%3, x)))
				want += x * x
				if begun++; begun-came >= 5 {
					t.Errorf("%s: %d are under way", conduit, begun-came)
				}
			}
			n.Must(p.Wait())
			if sum != want || came != begun {
				t.Errorf("%s: %d of %d came, with sum %d of %d", conduit, came, begun, sum, want)
			}
			for _, x := range []int{1, -7, 2, 3, 4, 5, 6} {
				_ = p.Add(poolSquare.Go(n, (n.Rank()+1)%3, x))
			}
			if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "-7 is negative") || came != begun+6 {
				t.Errorf("%s: %v, %d of %d came", conduit, err, came, begun+6)
			}
			if err := p.Add(poolSquare.Go(n, 99, 1)); !errors.Is(err, gas.ErrBadArg) {
				t.Errorf("%s: %v", conduit, err)
			}
			if err := p.Wait(); !errors.Is(err, gas.ErrBadArg) {
				t.Errorf("%s: %v", conduit, err)
			}
			f := gas.Must(poolSquare.Go(n, (n.Rank()+1)%3, 2))
			n.Must(p.Add(f, nil))
			n.Must(p.Add(poolSquare.Go(n, (n.Rank()+2)%3, 3)))
			before := came
			gas.Must(f.Wait()) // which another one must not
			if err := p.Wait(); !errors.Is(err, gas.ErrBadArg) || came != before+1 {
				t.Errorf("%s: %v, and %d of 1 came", conduit, err, came-before)
			}
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			q := gas.NewPool(n.With(ended), 9, func(*gas.Node, int) { came++ })
			n.Must(q.Add(poolSquare.Go(n, (n.Rank()+1)%3, 4)))
			for err := q.Wait(); err != nil; err = q.Wait() { // the pool's context, not that of the call, ends it
				if !errors.Is(err, context.Canceled) {
					return err
				}
			}
			if came != before+2 {
				t.Errorf("%s: %d of 2 came", conduit, came-before)
			}
			return p.Wait()
		})
	}
}

// TestPoolOfFailed: Wait ends when the job fails.
func TestPoolOfFailed(t *testing.T) {
	wrong := errors.New("wrong")
	err := gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		if n.Rank() == 1 {
			return wrong
		}
		p := gas.NewPool[struct{}](n, 2, nil)
		_ = p.Add(gas.BarrierNB(n))
		if err := p.Wait(); !errors.Is(err, gas.ErrPeer) {
			t.Errorf("%v", err)
		}
		return n.Barrier()
	})
	if !errors.Is(err, wrong) {
		t.Error(err)
	}
}

// TestBlocks compares the elements that Blocks walks with a slice, also of a walk that is left early and done again.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, block := rapid.IntRange(1, 300).Draw(t, "length"), rapid.IntRange(0, 40).Draw(t, "block")
		from := rapid.IntRange(0, length).Draw(t, "from")
		to, ahead := rapid.IntRange(from, length).Draw(t, "to"), rapid.IntRange(-1, 5).Draw(t, "ahead")
		left := rapid.IntRange(0, 10).Draw(t, "left")
		conduit := rapid.SampledFrom([]string{"shm", "hidden", "gastest"}).Draw(t, "conduit")
		gastest.RunConfig(t, gas.Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 16}, func(n *gas.Node) error {
			a := gas.Must(gas.NewArray[int32](n, length, block))
			for i, v := range a.Local(n) {
				*v = int32(i)
			}
			n.Must(n.Barrier())
			var err error
			walk := a.Blocks(n, from, to, ahead, &err)
			rounds := 0
			for range walk {
				if rounds++; rounds > left {
					break
				}
			}
			n.Must(err)
			want := from
			for i, part := range walk {
				if i != want || len(part) == 0 {
					return fmt.Errorf("element %d comes after %d, with %d", i, want, len(part))
				}
				for k, v := range part {
					if int(v) != i+k {
						return fmt.Errorf("element %d is %d", i+k, v)
					}
				}
				want += len(part)
			}
			if want != to {
				return fmt.Errorf("the walk ends before %d, not %d", want, to)
			}
			for range a.Blocks(n, from, length+1, ahead, &err) {
				return errors.New("there are elements beyond the array")
			}
			if !errors.Is(err, gas.ErrBadArg) {
				return fmt.Errorf("the error is %w", err)
			}
			return n.Barrier()
		})
	})
}

// TestAccumulate: what all ranks add to a slice is all there.
func TestAccumulate(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hidden"} {
		gastest.RunConfig(t, gas.Config{Ranks: 3, Conduit: conduit}, func(n *gas.Node) error {
			p := gas.Must(gas.NewSlice[float64](n, 50))
			src := make([]float64, 50)
			for i := range src {
				src[i] = float64(i)
			}
			for r := range n.Size() {
				n.Must(gas.AccumulateNBI(n, p.On(r), src, gas.AddNBI[float64]))
			}
			clear(src)
			n.Must(n.SyncImplicit())
			n.Must(n.Barrier())
			n.Must(p.On(n.Rank()).GetSlice(n, src))
			for i, v := range src {
				if v != 3*float64(i) {
					t.Errorf("%s, rank %d: element %d is %v", conduit, n.Rank(), i, v)
				}
			}
			return n.Barrier()
		})
	}
}

// Records have the rank.
func ExampleLogger() {
	_ = gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		var out bytes.Buffer
		log := gas.Logger(n, slog.NewTextHandler(&out, nil))
		log.Warn("too warm", "degrees", 31)
		if n.Rank() == 1 {
			_, line, _ := strings.Cut(out.String(), "level=")
			fmt.Print(line)
		}
		return n.Barrier()
	})
	// Output: WARN msg="too warm" rank=1 ranks=2 degrees=31
}

// The sum of an array, whose elements are fetched while others are summed.
func ExampleArray_Blocks() {
	_ = gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		a := gas.Must(gas.NewArray[int](n, 100, 10))
		for i, v := range a.Local(n) {
			*v = i
		}
		n.Must(n.Barrier())
		if n.Rank() == 0 {
			var err error
			sum := 0
			for _, part := range a.Blocks(n, 0, a.Len(), 4, &err) {
				for _, v := range part {
					sum += v
				}
			}
			n.Must(err)
			fmt.Println(sum)
		}
		return n.Barrier()
	})
	// Output: 4950
}
