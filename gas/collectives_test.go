package gas

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/conc"
)

// reading is a small struct with an odd size inside and a hole.
type reading struct {
	Count int64
	Sum   float32
	Tag   uint8
	Low   int64
}

func merge(a, b reading) reading {
	return reading{Count: a.Count + b.Count, Sum: a.Sum + b.Sum, Tag: a.Tag | b.Tag, Low: min(a.Low, b.Low)}
}

// step is one collective call of a random program, the same on all ranks.
type step struct {
	kind, root, length int
	seed               int64
}

// value is the contribution of a rank, at index i.
func (s step) value(rank, i int) int64 { return (s.seed+int64(rank)*7919+int64(i)*104729)%2003 - 1000 }

func (s step) reading(rank int) reading {
	v := s.value(rank, 0)
	return reading{Count: v, Sum: float32(v) * 0.1, Tag: uint8(1 << (v & 7)), Low: v}
}

const stepKinds = 12

// run performs s on n and compares with what one rank alone computes.
func (s step) run(n *Node) error {
	mine := s.value(n.rank, 0)
	fill := func(rank int) []int64 {
		v := make([]int64, s.length)
		for i := range v {
			v[i] = s.value(rank, i)
		}
		return v
	}
	fold := func(op func(a, b int64) int64, upTo, i int) int64 {
		acc := s.value(0, i)
		for r := 1; r < upTo; r++ {
			acc = op(acc, s.value(r, i))
		}
		return acc
	}
	same := func(what string, got, want any, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s from %d: got %.200v, want %.200v", what, s.root, got, want)
		}
		return nil
	}
	root := n.rank == s.root
	switch s.kind {
	case 0:
		got, err := Broadcast(n, s.root, mine)
		return same("Broadcast", got, s.value(s.root, 0), err)
	case 1:
		buf := fill(n.rank)
		err := BroadcastSlice(n, s.root, buf)
		return same("BroadcastSlice", buf, fill(s.root), err)
	case 2:
		got, err := Reduce(n, s.root, mine, Sum)
		want := int64(0)
		if root {
			want = fold(Sum, n.size, 0)
		}
		return same("Reduce", got, want, err)
	case 3:
		buf := fill(n.rank)
		err := ReduceSlice(n, s.root, buf, Max)
		if !root {
			return err
		}
		want := make([]int64, s.length)
		for i := range want {
			want[i] = fold(Max, n.size, i)
		}
		return same("ReduceSlice", buf, want, err)
	case 4:
		got, err := AllReduce(n, mine, Min)
		if err := same("AllReduce", got, fold(Min, n.size, 0), err); err != nil {
			return err
		}
		got, err = AllReduce(n, mine, And)
		return same("AllReduce of bits", got, fold(And, n.size, 0), err)
	case 5:
		buf := fill(n.rank)
		err := AllReduceSlice(n, buf, Xor)
		want := make([]int64, s.length)
		for i := range want {
			want[i] = fold(Xor, n.size, i)
		}
		return same("AllReduceSlice", buf, want, err)
	case 6:
		got, err := Gather(n, s.root, int32(mine))
		if !root {
			return same("Gather", len(got), 0, err)
		}
		var want []int32
		for r := range n.size {
			want = append(want, int32(s.value(r, 0)))
		}
		return same("Gather", got, want, err)
	case 7:
		got, err := AllGather(n, s.reading(n.rank))
		var want []reading
		for r := range n.size {
			want = append(want, s.reading(r))
		}
		return same("AllGather", got, want, err)
	case 8:
		got, err := ExclusiveScan(n, mine, Sum)
		want := int64(0)
		if n.rank > 0 {
			want = fold(Sum, n.rank, 0)
		}
		return same("ExclusiveScan", got, want, err)
	case 9:
		// The first of two does not commute: the scan must keep the order.
		got, err := ExclusiveScan(n, [2]int32{int32(n.rank), int32(n.rank)}, func(a, b [2]int32) [2]int32 { return [2]int32{a[0], b[1]} })
		want := [2]int32{}
		if n.rank > 0 {
			want = [2]int32{0, int32(n.rank - 1)}
		}
		return same("ExclusiveScan of spans", got, want, err)
	case 10:
		got, err := AllReduce(n, s.reading(n.rank), merge)
		if err != nil {
			return err
		}
		// Float sums depend on the order: compare ranks with each other, bit for
		// bit, and the rest with the model.
		all, err := AllGather(n, math.Float32bits(got.Sum))
		if err != nil {
			return err
		}
		if slices.Min(all) != slices.Max(all) {
			return fmt.Errorf("AllReduce of floats differs between ranks: %x", all)
		}
		want := s.reading(0)
		for r := 1; r < n.size; r++ {
			want = merge(want, s.reading(r))
		}
		if math.Abs(float64(got.Sum-want.Sum)) > 0.5 {
			return fmt.Errorf("AllReduce of floats: %v, want about %v", got.Sum, want.Sum)
		}
		got.Sum = want.Sum
		return same("AllReduce of structs", got, want, nil)
	default:
		err := n.Barrier()
		return same("Barrier", 0, 0, err)
	}
}

func TestCollectivesAgreeWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17}).Draw(t, "ranks")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			s := step{
				kind: rapid.IntRange(0, stepKinds-1).Draw(t, "kind"),
				root: rapid.IntRange(0, size-1).Draw(t, "root"),
				seed: rapid.Int64Range(0, 1<<40).Draw(t, "seed"),
			}
			// 0 elements, a few, more than a medium message, more than the scratch.
			s.length = rapid.SampledFrom([]int{0, 1, 3, 100, 1000, 10_000}).Draw(t, "length")
			return s
		}), 1, 8).Draw(t, "steps")
		skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 3, 50}), size, size).Draw(t, "skew")
		err := Run(small(size), func(n *Node) error {
			for i, s := range steps {
				for range skew[(n.rank+i)%size] {
					runtime.Gosched()
				}
				if err := s.run(n); err != nil {
					return fmt.Errorf("step %d: %w", i, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v", err)
		}
	})
}

// TestManyCollectives keeps ranks several calls apart where the calls allow it.
func TestManyCollectives(t *testing.T) {
	const rounds = 2000
	for _, size := range []int{2, 5} {
		runN(t, size, func(n *Node) error {
			for i := range rounds {
				if i%(n.rank+3) == 0 {
					runtime.Gosched()
				}
				s := step{kind: i % 5, root: i % size, length: i % 7, seed: int64(i)}
				if err := s.run(n); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			return nil
		})
	}
}

// TestLargeCollectives moves many times what a medium message or the buffers of
// the conduit hold.
func TestLargeCollectives(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		for i, kind := range []int{1, 3, 5} {
			s := step{kind: kind, root: i, length: 300_000, seed: 11}
			n.Must(s.run(n))
		}
		return nil
	})
}

// TestCollectiveMismatch has one rank make another call than the rest: the errors name
// both as programs of this package call them. Package collective tries all pairs.
func TestCollectiveMismatch(t *testing.T) {
	for i, a := range oddCalls {
		b := oddCalls[(i+1)%len(oddCalls)]
		everywhere(t, small(3), func(n *Node) error {
			f := a.f
			if n.rank == 1 {
				f = b.f
			}
			err := f(n)
			if err == nil {
				_, err = AllReduce(n, 1, Sum)
			}
			if !errors.Is(err, ErrBadArg) || !strings.HasPrefix(err.Error(), "gas: collective calls do not match: call 1 is ") ||
				!strings.Contains(err.Error(), a.name) || !strings.Contains(err.Error(), b.name) {
				return fmt.Errorf("rank 1 makes %s, the others %s; rank %d gets %v", b.name, a.name, n.rank, err)
			}
			return nil
		})
	}
}

// TestBarrierAgainstCollective has one rank in a barrier, or in a call that begins with one, while
// the others are in a collective call: they get an error that names both, and the
// barrier is one that they may still come to.
func TestBarrierAgainstCollective(t *testing.T) {
	// By shared memory, and by messages of both.
	for _, conduit := range []string{"", "calls-apart"} {
		testBarrierAgainst(t, conduit)
	}
}

func testBarrierAgainst(t *testing.T, conduit string) {
	for _, a := range oddCalls {
		for name, meet := range map[string]func(n *Node) error{"Barrier": (*Node).Barrier, "Quiesce": (*Node).Quiesce} {
			for who := range 3 {
				cfg := small(3)
				cfg.Conduit = conduit
				if err := Run(cfg, func(n *Node) error {
					if n.rank == who {
						n.Must(meet(n))
						if _, err := AllGather(n, [3]int{}); !errors.Is(err, ErrBadArg) {
							return fmt.Errorf("%s against %s, then AllGather: %v", name, a.name, err)
						}
						return nil
					}
					err := a.f(n)
					if err == nil {
						_, err = AllReduce(n, 1, Sum)
					}
					if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), fmt.Sprintf("is a barrier on rank %d", who)) {
						return fmt.Errorf("rank %d is in %s, the others in %s; rank %d gets %v", who, name, a.name, n.rank, err)
					}
					return meet(n)
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestBarrierBehindCall has one of two ranks in a barrier, while the other one makes a call that it need not wait in. It hears that in its
// next call.
func TestBarrierBehindCall(t *testing.T) {
	for _, conduit := range []string{"", "calls-apart", "udp"} {
		cfg := small(2)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error {
			if n.rank == 1 {
				n.Must(n.Barrier())
				if _, err := AllGather(n, 1); !errors.Is(err, ErrBadArg) {
					return fmt.Errorf("%s: rank 1 gets %v", conduit, err)
				}
				return nil
			}
			_, err := Broadcast(n, 0, int64(1))
			if err == nil {
				_, err = findingCall.Call(n, 1, 1) // while rank 1 says that it waits in the barrier
			}
			if err == nil {
				_, err = Broadcast(n, 0, int64(2))
			}
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "is a barrier on rank 1") {
				return fmt.Errorf("%s: rank 0 gets %v", conduit, err)
			}
			return n.Barrier()
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// oddCalls are collective calls of which each rank that makes one waits, then or in the
// next AllReduce, for a rank that does not.
var oddCalls = []struct {
	name string
	f    func(n *Node) error
}{
	{"Broadcast from rank 0 of 8 bytes", func(n *Node) error { _, err := Broadcast(n, 0, int64(1)); return err }},
	{"Broadcast from rank 0 of 80000 bytes", func(n *Node) error { return BroadcastSlice(n, 0, make([]byte, 80000)) }},
	{"Reduce to rank 0 of 8 bytes", func(n *Node) error { _, err := Reduce(n, 0, 1, Sum); return err }},
	{"a collective allocation or free", func(n *Node) error { _, err := New[int](n); return err }},
	{"AllReduce of 8 bytes", func(n *Node) error { _, err := AllReduce(n, 1, Sum); return err }},
	{"Gather to rank 1 of 8 bytes", func(n *Node) error { _, err := Gather(n, 1, 1); return err }},
	{"AllGather of 8 bytes", func(n *Node) error { _, err := AllGather(n, 1); return err }},
	{"a collective with bad arguments", func(n *Node) error { _, _ = Broadcast(n, -1, 1); return nil }},
	{"ExclusiveScan of 8 bytes", func(n *Node) error { _, err := ExclusiveScan(n, 1, Sum); return err }},
}

// TestLastCollectivesDiffer has ranks end their functions with calls that do not match, and
// that none of them waits in.
func TestLastCollectivesDiffer(t *testing.T) {
	err := Run(small(2), func(n *Node) error {
		var err error
		if n.Rank() == 0 {
			_, err = Reduce(n, 1, 1, Sum)
		} else {
			_, err = Broadcast(n, 1, 1)
		}
		return err
	})
	if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "call 1 is ") {
		t.Error(err)
	}
}

func TestCollectiveAfterPeerReturned(t *testing.T) {
	for gone := range 3 {
		err := Run(small(3), func(n *Node) error {
			if n.rank == gone {
				return nil
			}
			_, err := AllReduce(n, 1, Sum)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "the end of the program's function") || !strings.Contains(err.Error(), "AllReduce") {
			t.Errorf("rank %d returned early: %v", gone, err)
		}
	}
}

func TestCollectiveBadArguments(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		bad := func(what string, err error, text string) {
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), text) {
				t.Errorf("rank %d: %s: %v", n.rank, what, err)
			}
		}
		_, err := Broadcast(n, 3, 1)
		bad("root 3", err, "Broadcast: root 3 out of range: the job has ranks 0..2")
		_, err = Reduce(n, -1, 1, Sum)
		bad("root -1", err, "Reduce: root -1 out of range")
		_, err = AllReduce(n, struct{ Name string }{"x"}, func(a, b struct{ Name string }) struct{ Name string } { return a })
		bad("string", err, "field Name")
		bad("pointers", BroadcastSlice(n, 0, []*int{nil}), "Go pointers")
		// All ranks erred alike, so they are still in step.
		if v, err := AllReduce(n, n.rank, Sum); v != 3 || err != nil {
			t.Errorf("rank %d: afterwards: %d, %v", n.rank, v, err)
		}
		return nil
	})
}

func TestCollectivesDoNotAllocate(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector has sync.Pool drop at random what it is given")
	}
	const runs = 100
	runN(t, 3, func(n *Node) error {
		var failed error
		round := func() {
			if _, err := AllReduce(n, n.rank, Sum); err != nil {
				failed = err
			}
			if _, err := AllReduce(n, reading{}, merge); err != nil {
				failed = err
			}
			if _, err := Broadcast(n, 1, 2.5); err != nil {
				failed = err
			}
			if _, err := Reduce(n, 2, uint8(3), Or); err != nil {
				failed = err
			}
			if _, err := ExclusiveScan(n, 1, Sum); err != nil {
				failed = err
			}
		}
		for range 20 {
			round()
		}
		if n.rank > 0 {
			for range runs + 1 {
				round()
			}
		} else if a := testing.AllocsPerRun(runs, round); a != 0 {
			t.Errorf("%v allocations for five collectives on three ranks", a)
		}
		return failed
	})
}

func ExampleAllReduce() {
	err := Run(Config{Ranks: 4}, func(n *Node) error {
		total := Must(AllReduce(n, n.Rank()+1, Sum))
		largest := Must(AllReduce(n, float64(n.Rank())/2, Max))
		if n.Rank() == 2 {
			fmt.Println(total, largest)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 10 1.5
}

func ExampleBroadcast() {
	type settings struct {
		Width, Height int32
		Scale         float64
	}
	err := Run(Config{Ranks: 3}, func(n *Node) error {
		var s settings
		if n.Rank() == 0 {
			s = settings{Width: 640, Height: 480, Scale: 0.5} // read from a file, say
		}
		s = Must(Broadcast(n, 0, s))
		if n.Rank() == 2 {
			fmt.Println(s)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: {640 480 0.5}
}

func ExampleExclusiveScan() {
	err := Run(Config{Ranks: 4}, func(n *Node) error {
		// Each rank has some lines; where does its first one go?
		lines := 10 * (n.Rank() + 1)
		first := Must(ExclusiveScan(n, lines, Sum))
		all, err := Gather(n, 0, first)
		if n.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [0 10 30 60]
}
