package gas

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/conc"
)

type odd [3]uint16 // 6 bytes: no word

// shapes drives strided and indexed transfers from rank 0 to the last rank, and plain slices
// beside them.
func shapes(t *testing.T, n *Node) error {
	const length = 60
	p, err := NewSlice[odd](n, length)
	if err != nil || n.Rank() != 0 {
		return errors.Join(err, n.Barrier())
	}
	p = p.On(n.Size() - 1)
	rapid.Check(t, func(t *rapid.T) {
		fill := func(s []odd, what uint16) []odd {
			for i := range s {
				s[i] = odd{uint16(i), what, rapid.Uint16().Draw(t, "value")}
			}
			return s
		}
		remote := fill(make([]odd, length), 1)
		local := fill(make([]odd, rapid.IntRange(0, length).Draw(t, "length")), 2)
		if err := p.PutSlice(n, remote); err != nil {
			t.Fatal(err)
		}
		put, nb := rapid.Bool().Draw(t, "put"), rapid.Bool().Draw(t, "nb")
		move := func(k, i int) {
			if put {
				remote[k] = local[i]
			} else {
				local[i] = remote[k]
			}
		}
		at := rapid.IntRange(0, length-1).Draw(t, "at")
		q := p.Add(at)
		got := slices.Clone(local)
		finish := func(h Handle, err error) error { return errors.Join(err, n.Sync(h)) }
		if rapid.Bool().Draw(t, "strided") {
			r := Shape{Count: rapid.IntRange(0, 6).Draw(t, "rows"), Len: rapid.IntRange(0, 6).Draw(t, "row")}
			far, near := max(r.Len, 1), max(r.Len, 1)
			if rapid.Bool().Draw(t, "gaps") {
				far, near = r.Len+rapid.IntRange(0, 9).Draw(t, "far"), r.Len+rapid.IntRange(0, 9).Draw(t, "near")
				r.Remote, r.Local = far, near
			}
			if r.Count > 0 && r.Len > 0 && (at+(r.Count-1)*far+r.Len > length || (r.Count-1)*near+r.Len > len(local)) {
				t.Skip("does not fit")
			}
			for i := range r.Count {
				for k := range r.Len {
					move(at+i*far+k, i*near+k)
				}
			}
			switch {
			case put && nb:
				err = finish(q.PutShapeNB(n, got, r))
			case put:
				err = q.PutShape(n, got, r)
			case nb:
				err = finish(q.GetShapeNB(n, got, r))
			default:
				err = q.GetShape(n, got, r)
			}
		} else {
			idx := rapid.SliceOfNDistinct(rapid.IntRange(-at, length-1-at), len(local), len(local), rapid.ID[int]).Draw(t, "indices")
			for k, i := range idx {
				move(at+i, k)
			}
			switch {
			case put && nb:
				err = finish(q.PutShapeNB(n, got, Shape{Index: idx}))
			case put:
				err = q.PutShape(n, got, Shape{Index: idx})
			case nb:
				err = finish(q.GetShapeNB(n, got, Shape{Index: idx}))
			default:
				err = q.GetShape(n, got, Shape{Index: idx})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		there := make([]odd, length)
		if err := p.GetSlice(n, there); err != nil || !slices.Equal(there, remote) {
			t.Fatalf("there is %v (%v), want %v", there, err, remote)
		}
		if !slices.Equal(got, local) {
			t.Fatalf("here is %v, want %v", got, local)
		}
	})
	return n.Barrier()
}

func TestShapes(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error { return shapes(t, n) })
	debug := small(2)
	debug.Debug = true
	everywhere(t, debug, func(n *Node) error { return shapes(t, n) })
}

func TestShapesRefuse(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		p := Must(NewSlice[uint32](n, 10))
		n.Must(n.Barrier())
		s, one := make([]uint32, 10), []uint32{9}
		q := p.On(1 - n.Rank())
		end := q.Add(1<<18 - int(q.Offset())/4) // behind the segment
		for what, err := range map[string]error{
			"nil strided":    wantErr(Ptr[uint32]{}.PutShape(n, s, Shape{Count: 1, Len: 1}), ErrBadArg, "gas: PutShape: nil Ptr"),
			"nil indexed":    wantErr(Ptr[uint32]{}.GetShape(n, one, Shape{Index: []int{0}}), ErrBadArg, "gas: GetShape: nil Ptr"),
			"nil, nothing":   wantErr(Ptr[uint32]{}.GetShape(n, nil, Shape{Index: nil}), ErrBadArg, "nil Ptr"),
			"nothing":        errors.Join(q.PutShape(n, nil, Shape{Index: nil}), q.GetShape(n, nil, Shape{Len: 3})),
			"negative":       wantErr(q.GetShape(n, s, Shape{Count: -1, Len: 1}), ErrBadArg, "Count:-1"),
			"slice":          wantErr(q.PutShape(n, s, Shape{Count: 3, Len: 3, Local: 4}), ErrBadArg, "slice of 10 elements", "Local:4"),
			"one long row":   wantErr(q.PutShape(n, s, Shape{Count: 1, Len: 11}), ErrBadArg, "slice of 10"),
			"overlap there":  wantErr(q.PutShape(n, s, Shape{Count: 2, Len: 2, Remote: 1}), ErrBadArg, "overlap"),
			"overlap here":   wantErr(q.GetShape(n, s, Shape{Count: 2, Len: 2, Local: 1}), ErrBadArg, "overlap"),
			"read again":     q.GetShape(n, s, Shape{Count: 5, Len: 2, Remote: 1}),
			"huge":           wantErr(q.PutShape(n, s, Shape{Count: 3, Len: 1, Remote: 1 << 62}), ErrBadArg, "addresses"),
			"segment":        wantErr(end.Add(-8).PutShape(n, s, Shape{Count: 2, Len: 2, Remote: 7}), ErrBadArg, "gas: PutShape"),
			"behind":         wantErr(end.Add(-1).PutShape(n, s[:3], Shape{Index: []int{-4, 0, 1}}), ErrBadArg, "gas: PutShape: index 1 (entry 2 of 3)"),
			"before":         wantErr(second(q.GetShapeNB(n, one, Shape{Index: []int{-1 << 30}})), ErrBadArg, "index -1073741824 (entry 0 of 1)"),
			"wraps":          wantErr(q.PutShape(n, one, Shape{Index: []int{1 << 62}}), ErrBadArg, "index 4611686018427387904"),
			"wraps below":    wantErr(q.PutShape(n, one, Shape{Index: []int{-1 << 63}}), ErrBadArg, "entry 0 of 1"),
			"as many":        wantErr(q.PutShape(n, one, Shape{Index: []int{1, 2}}), ErrBadArg, "2 indices for 1 elements"),
			"no rank":        wantErr(p.On(2).PutShape(n, one, Shape{Index: []int{1}}), ErrBadArg, "rank 2"),
			"no rank at all": wantErr(p.On(5).GetShape(n, s, Shape{Count: 1, Len: 1}), ErrBadArg, "rank 5"),
		} {
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		back := make([]uint32, 10)
		if err := q.GetSlice(n, back); err != nil || !slices.Equal(back, make([]uint32, 10)) {
			return fmt.Errorf("something was put: %v (%v)", back, err)
		}
		return n.Barrier()
	})
}

// TestShapesRegistered moves to and from a slice that its owner has registered.
func TestShapesRegistered(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		mine := make([]uint64, 100)
		p := Must(Register(n, mine))
		all := Must(AllGather(n, p))
		q := all[1-n.Rank()]
		var got [4]uint64
		idx := []int{99, 3, 50, 7}
		r := Shape{Count: 2, Len: 2, Remote: 30}
		err := errors.Join(
			q.PutShape(n, []uint64{1, 2, 3, 4}, Shape{Index: idx}),
			q.Add(10).PutShape(n, []uint64{5, 6, 7, 8}, r),
			q.GetShape(n, got[:], Shape{Index: []int{7, 99, 10, 41}}))
		if err != nil || got != [4]uint64{4, 1, 5, 8} {
			return fmt.Errorf("%v, %w", got, err)
		}
		return errors.Join(wantErr(q.PutShape(n, got[:1], Shape{Index: []int{1 << 20}}), ErrFault), n.Barrier(), Free(n, p))
	})
}

func TestShapesAllocate(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector allocates")
	}
	for _, conduit := range []string{"shm", "hidden"} {
		cfg := small(2)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error {
			p, err := NewSlice[uint64](n, 64)
			if err != nil || n.Rank() == 1 {
				return errors.Join(err, n.Barrier())
			}
			q, buf, idx, r := p.On(1), make([]uint64, 4), []int{5, 3, 60, 8}, Shape{Count: 2, Len: 2, Remote: 8}
			failed := allocates(map[string]func() error{
				"PutShape":   func() error { return q.PutShape(n, buf, r) },
				"GetShape":   func() error { return q.GetShape(n, buf, r) },
				"PutIndexed": func() error { return q.PutShape(n, buf, Shape{Index: idx}) },
				"GetIndexedNB": func() error {
					h, err := q.GetShapeNB(n, buf, Shape{Index: idx})
					return errors.Join(err, n.Sync(h))
				},
			})
			return errors.Join(failed, n.Barrier())
		}); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}
