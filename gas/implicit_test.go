package gas

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/conc"
)

// implicitKinds are operations that commute with themselves: a word gets operations of one
// kind between two syncs, in any order.
var implicitKinds = []string{"nothing", "put", "store", "add", "and", "or", "xor", "min", "max"}

// implicitly begins operation kind with v on p and does it on *model at once.
func implicitly[T Integer](n *Node, kind string, p Ptr[T], model *T, v T) error {
	switch kind {
	case "put":
		*model = v
		return p.PutNBI(n, v)
	case "store":
		*model = v
		return StoreNBI(n, p, v)
	case "add":
		*model += v
		return AddNBI(n, p, v)
	case "and":
		*model &= v
		return AndNBI(n, p, v)
	case "or":
		*model |= v
		return OrNBI(n, p, v)
	case "xor":
		*model ^= v
		return XorNBI(n, p, v)
	case "min":
		*model = min(*model, v)
		return MinNBI(n, p, v)
	case "max":
		*model = max(*model, v)
		return MaxNBI(n, p, v)
	}
	return nil
}

// checkImplicit has rank 0 begin operations on words of all ranks, and compares what is
// there after a sync with plain words.
func checkImplicit[T Integer](t *testing.T, n *Node, gen *rapid.Generator[T]) error {
	const words = 12
	base, err := NewSlice[T](n, words)
	if err != nil || n.Rank() != 0 {
		return errors.Join(err, n.Barrier())
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := n.SyncImplicit(); err != nil { // rapid may have given up a case half-way
			t.Fatal(err)
		}
		model := make([][]T, n.Size())
		for r := range model {
			model[r] = make([]T, words)
			if err := base.On(r).PutSliceNBI(n, model[r]); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.SyncImplicit(); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "syncs") {
			kinds := rapid.SliceOfN(rapid.SampledFrom(implicitKinds), words, words).Draw(t, "kinds")
			done := map[int]bool{}
			got := make([]T, words)
			from := rapid.IntRange(0, n.Size()-1).Draw(t, "from")
			want := slices.Clone(model[from])
			for range rapid.IntRange(0, 40).Draw(t, "operations") {
				r, i := rapid.IntRange(0, n.Size()-1).Draw(t, "rank"), rapid.IntRange(0, words-1).Draw(t, "word")
				kind, p := kinds[i], base.On(r).Add(i)
				if (kind == "put" || kind == "store") && done[r*words+i] {
					continue
				}
				done[r*words+i] = true
				if kind == "nothing" {
					if err := base.On(from).Add(i).GetNBI(n, &got[i]); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := implicitly(n, kind, p, &model[r][i], gen.Draw(t, "value")); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
			}
			sync := n.SyncImplicit
			if rapid.Bool().Draw(t, "by rank") {
				sync = func() (err error) {
					for r := range n.Size() {
						err = errors.Join(err, n.SyncImplicitRank(r))
					}
					return err
				}
			}
			if err := sync(); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if kinds[i] == "nothing" && v != 0 && v != want[i] {
					t.Fatalf("got %v of word %d, want %v", v, i, want[i])
				}
			}
			for r := range model {
				back := make([]T, words)
				if err := base.On(r).GetSliceNBI(n, back); err != nil {
					t.Fatal(err)
				}
				if err := n.SyncImplicitRank(r); err != nil || !slices.Equal(back, model[r]) {
					t.Fatalf("rank %d has %v (%v), want %v", r, back, err, model[r])
				}
			}
		}
	})
	return n.Barrier()
}

func TestImplicit(t *testing.T) {
	everywhere(t, small(3), func(n *Node) error {
		n.Must(checkImplicit(t, n, rapid.Uint64()))
		return checkImplicit(t, n, rapid.Int32())
	})
}

// TestImplicitTogether has all ranks, and on each two lanes, add to the same words: nothing
// is lost, and a struct is put and got whole.
func TestImplicitTogether(t *testing.T) {
	const times = 300
	type triple struct{ a, b, c uint32 }
	cfg := small(3)
	cfg.Lanes = 2
	everywhere(t, cfg, func(n *Node) error {
		sum := Must(New[float64](n))
		slots := Must(NewSlice[triple](n, n.Size()))
		l := Must(n.Lane())
		for i := range times {
			for _, m := range []*Node{n, l} {
				n.Must(AddNBI(m, sum.On(i%n.Size()), 0.5))
			}
		}
		var all []triple
		for r := range n.Size() {
			n.Must(slots.On(r).Add(n.Rank()).PutNBI(n, triple{uint32(n.Rank()), 7, uint32(r)}))
		}
		n.Must(errors.Join(n.SyncImplicit(), l.SyncImplicit(), l.Free(), n.Barrier()))
		for r := range n.Size() {
			v, err := sum.On(r).Get(n)
			if err != nil || v != float64(times*2*n.Size())/2/float64(n.Size()) {
				return fmt.Errorf("rank %d has %v (%v)", r, v, err)
			}
			all = append(all, triple{uint32(r), 7, uint32(n.Rank())})
		}
		back := make([]triple, n.Size())
		if err := slots.On(n.Rank()).GetSlice(n, back); err != nil || !slices.Equal(back, all) {
			return fmt.Errorf("%v (%v), want %v", back, err, all)
		}
		return n.Barrier()
	})
}

func TestImplicitRefuses(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		p, err := NewSlice[uint64](n, 4)
		if err != nil {
			return err
		}
		q := p.On(1)
		var v uint64
		for what, err := range map[string]error{
			"put nil":       wantErr(Ptr[uint64]{}.PutNBI(n, 1), ErrBadArg, "gas: PutNBI: nil Ptr"),
			"get nil":       wantErr(Ptr[uint64]{}.GetNBI(n, &v), ErrBadArg, "gas: GetSliceNBI: nil Ptr"),
			"put slice nil": wantErr(Ptr[int32]{}.PutSliceNBI(n, []int32{1}), ErrBadArg, "gas: PutSliceNBI: nil Ptr"),
			"add nil":       wantErr(AddNBI(n, Ptr[int]{}, 1), ErrBadArg, "gas: AddNBI: nil Ptr"),
			"add":           wantErr(Add(n, Ptr[int]{}, 1), ErrBadArg, "gas: FetchAdd: nil Ptr"),
			"unaligned":     wantErr(OrNBI(n, Ptr[uint64]{w: q.w + 4}, 1), ErrBadArg, "gas: OrNBI", "align"),
			"bytes":         wantErr(StoreNBI(n, Ptr[[3]uint32]{w: q.w}, [3]uint32{}), ErrBadArg, "gas: Store", "12"),
			"no rank":       wantErr(MinNBI(n, p.On(2), 1), ErrBadArg, "gas: MinNBI", "rank 2"),
			"no memory":     wantErr(MaxNBI(n, q.Add(1<<18), 1), ErrBadArg, "gas: MaxNBI"),
			"sync":          n.SyncImplicit(),
			"sync with 1":   n.SyncImplicitRank(1),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		// What only the owner of the memory can find is found by the sync, once.
		err = AddNBI(n, q.Add(1<<30), 1)
		if err == nil {
			err = n.SyncImplicit()
		}
		return errors.Join(wantErr(err, ErrFault), n.SyncImplicit(), n.Barrier())
	})
}

// TestImplicitPeerDies: a rank that waits for implicit operations hears that the other one
// has failed. That one does not poll, so that over a network they are still under way.
func TestImplicitPeerDies(t *testing.T) {
	for _, conduit := range []string{"hidden", "udp"} {
		waits := make([]error, 2)
		begun := make(chan struct{})
		cfg := small(2)
		cfg.Conduit = conduit
		err := Run(cfg, func(n *Node) error {
			p, err := New[uint64](n)
			if err != nil {
				return err
			}
			if n.Rank() == 1 {
				<-begun
				return errTest
			}
			for range 100 {
				err = errors.Join(err, AddNBI(n, p.On(1), 1))
			}
			close(begun)
			if err != nil {
				return err
			}
			waits[0] = n.SyncImplicit()
			if waits[0] == nil {
				waits[0] = n.Barrier()
			}
			return waits[0]
		})
		var p *PeerError
		if !errors.Is(err, errTest) || !errors.As(waits[0], &p) || p.Rank != 1 {
			t.Errorf("%s: %v; rank 0 got %v", conduit, err, waits[0])
		}
	}
}

// allocates is the error of those ops that fail or allocate.
func allocates(ops map[string]func() error) error {
	var failed error
	for name, op := range ops {
		if a := testing.AllocsPerRun(200, func() { failed = errors.Join(failed, op()) }); a != 0 {
			failed = errors.Join(failed, fmt.Errorf("%s allocates %v times", name, a))
		}
	}
	return failed
}

// TestImplicitAllocates: no form allocates, and a sync with nothing under way neither.
func TestImplicitAllocates(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector allocates")
	}
	for _, conduit := range []string{"shm", "hidden"} {
		cfg := small(2)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error {
			p, err := NewSlice[uint64](n, 8)
			if err != nil || n.Rank() == 1 {
				return errors.Join(err, n.Barrier())
			}
			buf := make([]uint64, 4)
			q := p.On(1)
			ops := map[string]func() error{
				"nothing":     func() error { return nil },
				"PutNBI":      func() error { return q.PutNBI(n, 1) },
				"GetNBI":      func() error { return q.GetNBI(n, &buf[0]) },
				"PutSliceNBI": func() error { return q.PutSliceNBI(n, buf) },
				"GetSliceNBI": func() error { return q.GetSliceNBI(n, buf) },
				"StoreNBI":    func() error { return StoreNBI(n, q, 1) },
				"AddNBI":      func() error { return AddNBI(n, q, 1) },
				"XorNBI":      func() error { return XorNBI(n, q, 1) },
				"MaxNBI":      func() error { return MaxNBI(n, q, 1) },
			}
			for name, op := range ops {
				ops[name] = func() error { return errors.Join(op(), n.SyncImplicit(), n.SyncImplicitRank(1)) }
			}
			return errors.Join(allocates(ops), n.Barrier())
		}); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}
