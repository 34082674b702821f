package gas

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestFlagsAgainstModel waits for own flags that compare already, and compares what it is
// told with plain words.
func TestFlagsAgainstModel(t *testing.T) {
	holds := map[Cmp]func(a, b uint64) bool{
		Eq: func(a, b uint64) bool { return a == b }, Ne: func(a, b uint64) bool { return a != b },
		Gt: func(a, b uint64) bool { return a > b }, Ge: func(a, b uint64) bool { return a >= b },
		Lt: func(a, b uint64) bool { return a < b }, Le: func(a, b uint64) bool { return a <= b },
	}
	everywhere(t, small(2), func(n *Node) error {
		p, err := NewSlice[uint64](n, 8)
		if err != nil || n.Rank() != 0 {
			return errors.Join(err, n.Barrier())
		}
		word := rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Just(^uint64(0)))
		rapid.Check(t, func(t *rapid.T) {
			words := rapid.SliceOfN(word, 8, 8).Draw(t, "words")
			for i, v := range words {
				if err := Store(n, p.Add(i), v); err != nil {
					t.Fatal(err)
				}
			}
			c, v := rapid.SampledFrom([]Cmp{Eq, Ne, Gt, Ge, Lt, Le}).Draw(t, "comparison"), word.Draw(t, "value")
			var flags []Ptr[uint64]
			var want []int
			for k, i := range rapid.SliceOfN(rapid.IntRange(0, 7), 1, 12).Draw(t, "flags") {
				flags = append(flags, p.Add(i))
				if holds[c](words[i], v) {
					want = append(want, k)
				}
			}
			some, err := TestUntilSome(n, nil, flags, c, v)
			if err != nil || !slices.Equal(some, want) {
				t.Fatalf("test some: %v (%v), want %v", some, err, want)
			}
			if len(want) == 0 {
				return
			}
			some, err = WaitUntilSome(n, []int{-7}, flags, c, v)
			if err != nil || !slices.Equal(some[1:], want) || some[0] != -7 {
				t.Fatalf("some: %v (%v), want %v behind -7", some, err, want)
			}
			after := rapid.IntRange(-1, len(flags)-1).Draw(t, "after")
			next := want[0]
			for _, k := range want {
				if k > after {
					next = k
					break
				}
			}
			if k, err := WaitUntilAny(n, flags, after, c, v); err != nil || k != next {
				t.Fatalf("any after %d: %d (%v), want %d", after, k, err, next)
			}
			if got, err := WaitUntil(n, flags[next], c, v); err != nil || !holds[c](got, v) {
				t.Fatalf("one: %d (%v)", got, err)
			}
			if len(want) == len(flags) {
				if err := WaitUntilAll(n, flags, c, v); err != nil {
					t.Fatal(err)
				}
			}
		})
		return errors.Join(WaitUntilAll(n, nil, Eq, 0), n.Barrier())
	})
}

// TestFlags has each rank send numbered messages to all others, whose flags it sets or adds
// to, with and without a Handle, and wait for those of the others in each way.
func TestFlags(t *testing.T) {
	const rounds, length = 12, 5
	everywhere(t, small(4), func(n *Node) error {
		data := Must(NewSlice[uint32](n, n.Size()*length))
		base, err := NewSlice[uint64](n, n.Size())
		if err != nil {
			return err
		}
		var flags []Ptr[uint64]
		var from []int
		for r := range n.Size() {
			if r != n.Rank() {
				flags, from = append(flags, base.On(n.Rank()).Add(r)), append(from, r)
			}
		}
		message := func(sender, to int, round uint64) (m []uint32) {
			for i := range length {
				m = append(m, uint32(sender*1000+to*100)+uint32(round)*10+uint32(i))
			}
			return m
		}
		look := func(sender int, round uint64) error {
			got := make([]uint32, length)
			err := data.On(n.Rank()).Add(sender*length).GetSlice(n, got)
			if want := message(sender, n.Rank(), round); err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("round %d: rank %d sent %v, want %v", round, sender, got, want)
			}
			return err
		}
		for round := uint64(1); round <= rounds; round++ {
			for _, r := range from {
				at, flag, m := data.On(r).Add(n.Rank()*length), base.On(r).Add(n.Rank()), message(n.Rank(), r, round)
				var h Handle
				switch round % 4 {
				case 0:
					err = at.PutSignal(n, m, flag, SignalAdd, 1)
				case 1:
					err = at.PutSignal(n, m, flag, SignalSet, round)
				case 2:
					h, err = at.PutSignalNB(n, m, flag, SignalAdd, 1)
				case 3:
					h, err = at.PutSignalNB(n, m, flag, SignalSet, round)
				}
				if err = errors.Join(err, n.Sync(h)); err != nil {
					return err
				}
			}
			switch round % 3 {
			case 0:
				err = WaitUntilAll(n, flags, Ge, round)
			case 1:
				for _, f := range flags {
					_, e := WaitUntil(n, f, Gt, round-1)
					err = errors.Join(err, e)
				}
			case 2:
				var found []int
				left := slices.Clone(flags)
				for len(left) > 0 && err == nil {
					if k, e := WaitUntilAny(n, left, -1, Eq, round); e != nil || k >= len(left) {
						return errors.Join(e, fmt.Errorf("any of %d flags is %d", len(left), k))
					}
					found, err = WaitUntilSome(n, found[:0], left, Ne, round-1)
					for i := len(found) - 1; i >= 0; i-- {
						left = slices.Delete(left, found[i], found[i]+1)
					}
				}
			}
			for _, r := range from {
				err = errors.Join(err, look(r, round))
			}
			if err = errors.Join(err, n.Barrier()); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestFlagsRefuse(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		p := Must(NewSlice[uint64](n, 4))
		mine, other := p.On(n.Rank()), p.On(1-n.Rank())
		odd := Ptr[uint64]{w: mine.w + 4}
		for what, err := range map[string]error{
			"nil":           wantErr(second(WaitUntil(n, Ptr[uint64]{}, Eq, 0)), ErrBadArg, "gas: WaitUntil: nil Ptr"),
			"other":         wantErr(second(WaitUntil(n, other, Eq, 0)), ErrBadArg, "not in the memory of rank"),
			"unaligned":     wantErr(second(WaitUntil(n, odd, Eq, 0)), ErrBadArg, "align"),
			"comparison":    wantErr(second(WaitUntil(n, mine, Le+1, 0)), ErrBadArg, "no comparison 6"),
			"all, other":    wantErr(WaitUntilAll(n, []Ptr[uint64]{mine, other}, Eq, 0), ErrBadArg, "gas: WaitUntilAll: flag 1 of 2"),
			"all, odd":      wantErr(WaitUntilAll(n, []Ptr[uint64]{mine, odd}, Eq, 0), ErrBadArg, "word 1 of 2"),
			"any, nil":      wantErr(second(WaitUntilAny(n, make([]Ptr[uint64], 3), -1, Eq, 0)), ErrBadArg, "gas: WaitUntilAny: flag 0 of 3"),
			"any, none":     wantErr(second(WaitUntilAny(n, nil, -1, Eq, 0)), ErrBadArg, "no words"),
			"any, after":    wantErr(second(WaitUntilAny(n, []Ptr[uint64]{mine}, 1, Eq, 0)), ErrBadArg, "index 1"),
			"some, none":    wantErr(second(WaitUntilSome(n, nil, nil, Eq, 0)), ErrBadArg, "no words"),
			"some, other":   wantErr(second(WaitUntilSome(n, nil, []Ptr[uint64]{other}, Eq, 0)), ErrBadArg, "gas: WaitUntilSome"),
			"test, other":   wantErr(second(TestUntilSome(n, nil, []Ptr[uint64]{other}, Eq, 0)), ErrBadArg, "gas: TestUntilSome"),
			"test, behind":  wantErr(second(TestUntilSome(n, nil, []Ptr[uint64]{mine.Add(1 << 17)}, Eq, 0)), ErrBadArg),
			"set, ranks":    wantErr(mine.PutSignal(n, nil, other, SignalSet, 1), ErrBadArg, "gas: PutSignal", "different ranks"),
			"set nb, nil":   wantErr(second(Ptr[int]{}.PutSignalNB(n, nil, mine, SignalSet, 1)), ErrBadArg, "gas: PutSignalNB: nil Ptr"),
			"nb, unaligned": wantErr(second(mine.PutSignalNB(n, []uint64{1}, odd, SignalAdd, 1)), ErrBadArg, "align"),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if v, err := mine.Get(n); err != nil || v != 0 {
			return fmt.Errorf("something was put: %d, %v", v, err)
		}
		return n.Barrier()
	})
}

// TestFlagsPeerDies: a wait for a flag that will not change any more ends when a rank has
// failed.
func TestFlagsPeerDies(t *testing.T) {
	everyWait := map[string]func(n *Node, f []Ptr[uint64]) error{
		"one":  func(n *Node, f []Ptr[uint64]) error { return second(WaitUntil(n, f[0], Ne, 0)) },
		"all":  func(n *Node, f []Ptr[uint64]) error { return WaitUntilAll(n, f, Ne, 0) },
		"any":  func(n *Node, f []Ptr[uint64]) error { return second(WaitUntilAny(n, f, -1, Ne, 0)) },
		"some": func(n *Node, f []Ptr[uint64]) error { return second(WaitUntilSome(n, nil, f, Ne, 0)) },
	}
	for name, wait := range everyWait {
		for _, conduit := range testjob.Concurrent("shm", "hidden", "udp", "sim") {
			got := make([]error, 2)
			var there atomic.Bool // so that rank 0 hears of the failure in the wait
			cfg := small(2)
			cfg.Conduit = conduit
			err := Run(cfg, func(n *Node) error {
				p := Must(NewSlice[uint64](n, 2))
				if n.Rank() == 1 {
					for !there.Load() {
						n.Poll()
						runtime.Gosched()
					}
					return errTest
				}
				there.Store(true)
				got[0] = wait(n, []Ptr[uint64]{p.On(0), p.On(0).Add(1)})
				return got[0]
			})
			var p *PeerError
			if !errors.Is(err, errTest) || !errors.As(got[0], &p) || p.Rank != 1 {
				t.Errorf("%s on %s: %v; the wait ended with %v", name, conduit, err, got[0])
			}
		}
	}
}

func TestFlagsAllocate(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector allocates")
	}
	runN(t, 2, func(n *Node) error {
		p, err := NewSlice[uint64](n, 8)
		if err != nil || n.Rank() == 1 {
			return errors.Join(err, n.Barrier())
		}
		flags, found, buf := []Ptr[uint64]{p, p.Add(1), p.Add(2)}, make([]int, 0, 3), make([]uint64, 2)
		failed := allocates(map[string]func() error{
			"WaitUntil":     func() error { return second(WaitUntil(n, p, Eq, 0)) },
			"WaitUntilAll":  func() error { return WaitUntilAll(n, flags, Eq, 0) },
			"WaitUntilAny":  func() error { return second(WaitUntilAny(n, flags, -1, Eq, 0)) },
			"WaitUntilSome": func() error { return second(WaitUntilSome(n, found, flags, Eq, 0)) },
			"TestUntilSome": func() error { return second(TestUntilSome(n, found, flags, Eq, 0)) },
			"a set signal":  func() error { return p.On(1).Add(4).PutSignal(n, buf, p.On(1), SignalSet, 1) },
		})
		return errors.Join(failed, n.Barrier())
	})
}
