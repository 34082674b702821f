package gas

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// TestMakeSliceMisuse tries what the documentation forbids.
func TestMakeSliceMisuse(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		for what, err := range map[string]error{
			"none":      wantErr(third(MakeSlice[int64](n, 0)), ErrBadArg, "MakeSlice", "count 0"),
			"less":      wantErr(third(MakeSlice[int64](n, -1)), ErrBadArg, "count -1"),
			"too many":  wantErr(third(MakeSlice[int64](n, 1<<62)), ErrResource, "MakeSlice"),
			"strings":   wantErr(third(MakeSlice[string](n, 1)), ErrBadArg, "string"),
			"pointers":  wantErr(third(MakeSlice[struct{ p *int }](n, 1)), ErrBadArg, "field p has type *int"),
			"of size 0": wantErr(third(MakeSlice[struct{}](n, 5)), ErrBadArg, "size 0"),
			"nil":       Free(n, Ptr[int64]{}),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		s, p := Must2(MakeSlice[int64](n, 10))
		if len(s) != 10 || cap(s) != 10 {
			return fmt.Errorf("%d elements, room for %d", len(s), cap(s))
		}
		if q, ok := PtrTo(n, &s[3]); !ok || q != p.Add(3) {
			return fmt.Errorf("element 3 is at %v, %v", q, ok)
		}
		plain := Must(Register(n, make([]int64, 4)))
		seg := Must(Alloc[int64](n, 1))
		for what, err := range map[string]error{
			"the middle":         wantErr(Free(n, p.Add(1)), ErrBadArg, p.Add(1).String()),
			"another's":          wantErr(Free(n, p.On(1-n.Rank())), ErrBadArg, fmt.Sprintf("rank %d", 1-n.Rank())),
			"behind":             wantErr(p.Add(10).Put(n, 1), ErrFault),
			"across":             wantErr(p.Add(8).GetSlice(n, make([]int64, 3)), ErrFault),
			"once":               Free(n, p),
			"what is registered": Free(n, plain),
			"the segment's":      Free(n, seg),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		n.Must(wantErr(Free(n, p), ErrBadArg, p.String(), "already"))
		return wantErr(p.Put(n, 8), ErrFault)
	})
}

func third[T, U any](_ T, _ U, err error) error { return err }

// TestMakeSlice uses slices of other ranks in every way.
func TestMakeSlice(t *testing.T) {
	everywhere(t, Config{Ranks: 2, PinBucket: segment.PageSize}, madeSlices)
}

// madeSlices gives each rank a neighbour's slice, which ends while it is used.
func madeSlices(n *Node) error {
	for round := range 3 {
		if err := madeSlice(n, 2+round*1500); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

func madeSlice(n *Node, count int) error {
	s, p, err := MakeSlice[uint64](n, count)
	if err != nil {
		return err
	}
	if err := unchanged(s); err != nil {
		return fmt.Errorf("not zero: %w", err)
	}
	s[count-1] = uint64(n.Rank() + 1)
	q, err := swapped(n, p)
	if err != nil {
		return err
	}
	var before, after conduits.Stats
	n.Stats(&before)
	for range 3 { // the first one may go without a firehose
		if v, err := q.Add(count - 1).Get(n); err != nil || v != uint64(q.Rank()+1) {
			return fmt.Errorf("last element of rank %d: %d, %w", q.Rank(), v, err)
		}
		if _, err := FetchAdd(n, q, 1<<32); err != nil {
			return err
		}
		if err := q.Add(count-1).Put(n, uint64(q.Rank()+1)); err != nil {
			return err
		}
	}
	n.Stats(&after)
	if after.SystemCalls != before.SystemCalls || after.Asked != before.Asked {
		return fmt.Errorf("%d system calls and %d questions", after.SystemCalls-before.SystemCalls, after.Asked-before.Asked)
	}
	for what, err := range map[string]error{
		"behind": wantErr(q.Add(count).Put(n, 1), ErrFault),
		"across": wantErr(q.Add(count-1).GetSlice(n, make([]uint64, 2)), ErrFault),
		"atomic": wantErr(second(FetchAdd(n, q.Add(count), 1)), ErrFault),
	} {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if v := s[0] >> 32; v != 3 {
		return fmt.Errorf("counted to %d", v)
	}
	// Each rank frees its own while the other one, which has seen it alive, uses it on.
	if err := n.BarrierNotify(); err != nil {
		return err
	}
	if err := n.BarrierWait(); err != nil {
		return err
	}
	if n.Rank() == 0 {
		if err := Free(n, p); err != nil {
			return err
		}
	} else {
		for err == nil {
			err = q.Add(count/2).Put(n, 7)
		}
		if err := wantErr(err, ErrFault); err != nil {
			return fmt.Errorf("put to what is freed: %w", err)
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if n.Rank() == 0 {
		return nil // rank 1's ends with the job
	}
	for what, err := range map[string]error{
		"Get":      second(q.Get(n)),
		"FetchAdd": second(FetchAdd(n, q, 1)),
		"NB":       sync2(n)(q.PutSliceNB(n, make([]uint64, 1))),
	} {
		if err := wantErr(err, ErrFault); err != nil {
			return fmt.Errorf("%s of what is freed: %w", what, err)
		}
	}
	return nil
}

// plainSlices uses what the statistics tell of: memory that MakeSlice should have made.
func plainSlices(n *Node) error {
	p := Must(Register(n, make([]uint64, 100)))
	q := Must(swapped(n, p))
	var before, after conduits.Stats
	n.Stats(&before)
	for range 10 {
		n.Must(q.Put(n, 1))
		n.Must(q.GetSlice(n, make([]uint64, 50)))
	}
	n.Stats(&after)
	if after.Asked+after.SystemCalls < before.Asked+before.SystemCalls+10 {
		return fmt.Errorf("%d system calls and %d questions of 20 accesses", after.SystemCalls-before.SystemCalls, after.Asked-before.Asked)
	}
	return n.Barrier()
}

// TestMadeSlicesProcesses: between processes, too, slices are reached by load and store,
// and plain ones are counted.
func TestMadeSlicesProcesses(t *testing.T) {
	for _, program := range []string{"slices", "plain slices"} {
		t.Run(program, func(t *testing.T) {
			testjob.RunConfig(t, 2, program, testjob.Config{}).Want(t, 0)
		})
	}
}

// TestSlicesAreLeft: what is not freed is given back when the rank leaves, and nothing is made
// afterwards.
func TestSlicesAreLeft(t *testing.T) {
	var left [2]*Node
	everywhere(t, Config{Ranks: 2}, func(n *Node) error {
		left[n.Rank()] = n
		for range 3 {
			if _, _, err := MakeSlice[byte](n, 100); err != nil {
				return err
			}
		}
		return nil
	})
	for _, n := range left {
		if n.registered.made != nil || n.registered.spans.tree.Root() != 0 {
			t.Errorf("rank %d: %d slices are left", n.rank, len(n.registered.made))
		}
		if err := wantErr(third(MakeSlice[byte](n, 1)), ErrClosed); err != nil {
			t.Error(err)
		}
	}
}

var (
	callMakeSlice = RegisterCall("test.makeSlice", func(n *Node, count int) Ptr[uint32] {
		s, p, err := MakeSlice[uint32](n, count)
		if err != nil || slices.Max(s) != 0 {
			return Ptr[uint32]{}
		}
		return p
	})
	callFreeSlice = RegisterCall("test.freeSlice", func(n *Node, p Ptr[uint32]) bool { return Free(n, p) == nil })
)

// TestMadeSlicesAgainstModel makes, uses and frees slices of all ranks, with more buckets
// than there is room for.
func TestMadeSlicesAgainstModel(t *testing.T) {
	const ranks = 3
	everywhere(t, tight(ranks), func(n *Node) error {
		if n.Rank() != 0 {
			return nil
		}
		rapid.Check(t, func(t *rapid.T) {
			type made struct {
				p     Ptr[uint32]
				model []uint32
			}
			var live []made
			check := func(what string, err error) {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			free := func(i int) {
				m := live[i]
				live = slices.Delete(live, i, i+1)
				ok, err := callFreeSlice.Call(n, m.p.Rank(), m.p)
				check("free", err)
				if !ok {
					t.Fatalf("cannot free %v", m.p)
				}
				check("put after the end", wantErr(m.p.Put(n, 1), ErrFault))
			}
			defer func() { // rapid tries again when something has failed
				for _, m := range live {
					_, _ = callFreeSlice.Call(n, m.p.Rank(), m.p)
				}
			}()
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				i := rapid.IntRange(0, 5).Draw(t, "which")
				if i >= len(live) {
					count := rapid.IntRange(1, 5000).Draw(t, "count")
					p, err := callMakeSlice.Call(n, rapid.IntRange(0, ranks-1).Draw(t, "rank"), count)
					check("make", err)
					if p.IsNil() {
						t.Fatalf("cannot make %d elements", count)
					}
					live = append(live, made{p, make([]uint32, count)})
					continue
				}
				m := live[i]
				from := rapid.IntRange(0, len(m.model)-1).Draw(t, "from")
				to := rapid.IntRange(from+1, len(m.model)).Draw(t, "to")
				switch rapid.IntRange(0, 4).Draw(t, "do") {
				case 0:
					free(i)
				case 1:
					v := rapid.Uint32().Draw(t, "value")
					check("put", m.p.Add(from).Put(n, v))
					m.model[from] = v
				case 2:
					b := slices.Repeat([]uint32{rapid.Uint32().Draw(t, "value")}, to-from)
					check("put slice", m.p.Add(from).PutSlice(n, b))
					copy(m.model[from:], b)
				default:
					b := make([]uint32, to-from)
					check("get slice", m.p.Add(from).GetSlice(n, b))
					if !slices.Equal(b, m.model[from:to]) {
						t.Fatalf("elements %d to %d of %v differ", from, to, m.p)
					}
					if to == len(m.model) {
						check("one more", wantErr(m.p.Add(from).GetSlice(n, make([]uint32, to-from+1)), ErrFault))
					}
				}
			}
		})
		return nil
	})
}

// TestGoroutinesMakeSlices: goroutines of a rank make slices, use each other's and free
// them.
func TestGoroutinesMakeSlices(t *testing.T) {
	const workers, rounds = 4, 20
	everywhere(t, tight(2), func(n *Node) error {
		shared, p := Must2(MakeSlice[uint64](n, workers))
		q := Must(swapped(n, p))
		var left atomic.Int32
		left.Store(workers)
		errs := make([]error, workers)
		for w := range workers {
			conduits.Go(n.Layers().Conduit, func() {
				for k := range rounds {
					s, own, err := MakeSlice[uint64](n, 1000*(w+1))
					if err == nil {
						s[k] = 1
						err = errors.Join(own.Add(k).Put(n, 2), q.Add(w).Put(n, uint64(k+1)), Free(n, own))
					}
					if err != nil {
						errs[w] = err
						break
					}
				}
				left.Add(-1)
				n.Wake(n.Rank())
			})
		}
		n.Must(n.Wait(func() bool { return left.Load() == 0 }))
		n.Must(errors.Join(append(errs, n.Barrier())...))
		for w, v := range shared {
			if v != rounds {
				return fmt.Errorf("worker %d has put %d", w, v)
			}
		}
		return Free(n, p)
	})
}
