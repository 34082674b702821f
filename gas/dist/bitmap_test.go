package dist_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/gas/gastest"
)

// flips is a bitmap beside a plain slice, of which each rank has bits of its own in a phase.
type flips struct {
	g     gas.Group
	b     *dist.Bitmap
	model []bool
}

// do does accesses of rank to bits idx to the model, and to the bitmap if rank is this one.
func (f *flips) do(op int, idx []int, rank int) error {
	var have, want []bool
	var err error
	for _, i := range idx {
		want = append(want, f.model[i])
		if op < 6 && op != 4 {
			f.model[i] = op%2 == 0
		}
	}
	if rank%f.g.Size() != f.g.Rank() {
		return nil
	}
	switch op {
	case 0, 1, 4:
		for _, i := range idx {
			fn := []func(int) (bool, error){f.b.Set, f.b.Clear, nil, nil, f.b.Test}[op]
			is, failed := fn(i)
			have = append(have, is)
			err = errors.Join(err, failed)
		}
	case 2:
		err = f.b.SetAll(idx)
	case 3, 5:
		err = f.b.ClearAll(idx)
	case 6:
		have, err = f.b.TestAll(idx)
	}
	if err == nil && have != nil && !slices.Equal(have, want) {
		err = fmt.Errorf("rank %d, operation %d on bits %v: were %v, want %v", rank, op, idx, have, want)
	}
	return err
}

// compare looks at all bits.
func (f *flips) compare() error {
	total, count := 0, 0
	for i, is := range f.model {
		if is {
			total++
		}
		if is && f.b.Owner(i) == f.g.Rank() {
			count++
		}
	}
	have, err := f.b.Count()
	if err != nil {
		return err
	}
	if have != total || f.b.CountOwn() != count {
		return fmt.Errorf("%d bits are set, %d of them on rank %d; want %d and %d", have, f.b.CountOwn(), f.g.Rank(), total, count)
	}
	last := -1
	for i := range f.b.All() {
		if i <= last || !f.model[i] || f.b.Owner(i) != f.g.Rank() {
			return fmt.Errorf("rank %d shows bit %d after %d", f.g.Rank(), i, last)
		}
		last = i
		count--
	}
	if count != 0 {
		return fmt.Errorf("rank %d did not show %d bits", f.g.Rank(), count)
	}
	return f.g.Barrier()
}

// TestBitmapModel compares with a plain slice, where each rank has bits of its own.
func TestBitmapModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conduit := rapid.SampledFrom(names).Draw(t, "conduit")
		groups := rapid.SampledFrom(dist.Groupings).Draw(t, "groups")
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		length := rapid.SampledFrom([]int{0, 1, 63, 64, 65, 320, 1000, 20000}).Draw(t, "length")
		seed := rapid.Uint64().Draw(t, "seed")
		run := func(g gas.Group) error {
			b := gas.Must(dist.NewBitmap(g, "model", length))
			f := &flips{g, b, make([]bool, length)}
			if first, end := b.Range(g.Rank()); b.Len() != length || (end-first+63)/64 != len(b.Words()) {
				return fmt.Errorf("rank %d has bits %d to %d of %d in %d words", g.Rank(), first, end, b.Len(), len(b.Words()))
			}
			rng := rand.New(rand.NewPCG(seed, 1))
			for phase := range 3 {
				for rank := range ranks {
					for range rng.IntN(6) {
						op := rng.IntN(7)
						most := 500
						if op == 0 || op == 1 || op == 4 {
							most = 5
						}
						var idx []int
						for range rng.IntN(most) {
							if i := rng.IntN(length/ranks+1)*ranks + (rank+phase)%ranks; i < length {
								idx = append(idx, i)
							}
						}
						slices.Sort(idx)
						g.Must(f.do(op, slices.Compact(idx), rank))
					}
				}
				if err := f.compare(); err != nil {
					return fmt.Errorf("phase %d: %w", phase, err)
				}
			}
			for _, v := range []bool{true, false} {
				assign := b.Reset
				if v {
					assign = b.Fill
				}
				g.Must(assign())
				for i := range f.model {
					f.model[i] = v
				}
				if err := f.compare(); err != nil {
					return fmt.Errorf("all %v: %w", v, err)
				}
			}
			g.Must(b.Delete())
			if _, err := b.Test(0); !errors.Is(err, gas.ErrNotReady) || !strings.Contains(err.Error(), `Test of bitmap "model"`) {
				return fmt.Errorf("Test after Delete: %v", err)
			}
			return nil
		}
		err := gas.Run(small(conduit, ranks), func(n *gas.Node) error { return dist.InGroups(n, groups, run) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestBitmapContended: of all ranks that set a bit one learns that it was clear, whichever way they
// set it.
func TestBitmapContended(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "gastest", "dist-chaos"} {
		t.Run(conduit, func(t *testing.T) {
			const length = 300
			gastest.RunConfig(t, small(conduit, 3), func(n *gas.Node) error {
				b := gas.Must(dist.NewBitmap(n, "contended", length))
				mine := 0
				var idx []int
				for i := range length {
					i = (i*7 + n.Rank()*100) % length
					if i%2 == 1 {
						idx = append(idx, i)
						n.Must(b.SetNBI((i + 1) % length))
						continue
					}
					// Even ones are set without an answer, by odd i.
					gas.Must(b.Test(i))
				}
				n.Must(n.SyncImplicit())
				n.Must(b.SetAll(idx))
				if k, err := b.Count(); err != nil || k != length {
					return fmt.Errorf("%d bits are set, want %d (%v)", k, length, err)
				}
				n.Must(b.Reset())
				for i := range length {
					was := gas.Must(b.Set((i + n.Rank()*50) % length))
					if !was {
						mine++
					}
				}
				if all, err := gas.AllReduce(n, mine, gas.Sum); err != nil || all != length {
					return fmt.Errorf("ranks were first %d times, want %d (%v)", all, length, err)
				}
				return b.Delete()
			})
		})
	}
}

// TestBitmapMisuse has each mistake end with an error that names it.
func TestBitmapMisuse(t *testing.T) {
	on := func(fn func(b *dist.Bitmap) error) func(n *gas.Node) error {
		return func(n *gas.Node) error {
			b := gas.Must(dist.NewBitmap(n, "bits", 100))
			return fn(b)
		}
	}
	for name, c := range map[string]struct {
		want string
		kind error
		fn   func(n *gas.Node) error
	}{
		"negative": {`NewBitmap "bits": a length of -1 bits; it must be 0 to`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewBitmap(n, "bits", -1)
			return err
		}},
		"lengths": {`gave different arguments`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewBitmap(n, "bits", 10+n.Rank()/2)
			return err
		}},
		"memory": {`(-segment, ARGON_SEGMENT)`, gas.ErrResource, func(n *gas.Node) error {
			_, err := dist.NewBitmap(n, "bits", 1<<30)
			return err
		}},
		"beyond":        {`Set of bitmap "bits": bit 100; it has 100 bits`, gas.ErrBadArg, on(func(b *dist.Bitmap) error { _, err := b.Set(100); return err })},
		"below":         {`Test of bitmap "bits": bit -1; it has 100 bits`, gas.ErrBadArg, on(func(b *dist.Bitmap) error { _, err := b.Test(-1); return err })},
		"beyond in all": {`SetAll of bitmap "bits": bit 200; it has 100 bits`, gas.ErrBadArg, on(func(b *dist.Bitmap) error { return b.SetAll([]int{1, 200}) })},
		"done":          {`SetAll of bitmap "bits" on rank`, gas.ErrNotReady, on(func(b *dist.Bitmap) error { return errors.Join(b.Delete(), b.SetAll([]int{1})) })},
		"killed": {"rank 1", nil, on(func(b *dist.Bitmap) error {
			for {
				if err := b.SetAll([]int{0, 64, 99}); err != nil {
					return err
				}
			}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			conduit := "shm"
			if name == "killed" {
				conduit = "dist-killed"
			}
			err := gas.Run(small(conduit, 3), c.fn)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}
