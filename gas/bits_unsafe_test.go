package gas

// What is unsafe here: bytes of values that are no part of them are written.

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// Types of one word whose equal values may differ in their bits.
type (
	between struct {
		Open  bool
		Count int32
	}
	atEnd struct {
		Count int32
		Open  bool
	}
	nested struct {
		Low, Mid uint16
		Pair     struct {
			A uint8
			B uint16
		}
	}
	ofArray struct {
		Parts [2]struct {
			A uint16
			B uint8
		}
	}
	blank struct {
		A uint16
		_ uint16
	}
	emptyEnd struct {
		A uint32
		_ struct{}
	}
	emptyArray struct {
		A uint32
		B [0]uint32
	}
	// These have none.
	whole8 struct {
		A uint8
		B [3]uint8
		C struct{ D, E uint16 }
	}
	emptyFront struct {
		_ [0]uint32
		A uint32
	}
	short struct{ A, B bool }
)

// swaps tries a compare-and-swap at the first word of w, with bytes of old that are no part of it
// set; want is what the error has to say, nothing if there must be none.
func swaps[T any](n *Node, w Ptr[uint64], want ...string) error {
	p, err := Cast[T](w)
	if err != nil {
		return err
	}
	var old, v T
	for _, fill := range []byte{0, 0xff} {
		for i := range bytesAt(&old) { // also where this changes the value, which then differs from what is there
			*(*byte)(unsafe.Add(unsafe.Pointer(&old), i)) = fill
		}
		_, swapped, err := CompareAndSwap(n, p, old, v)
		switch {
		case len(want) == 0 && (err != nil || swapped != (fill == 0)):
			return fmt.Errorf("%T: swapped %v, %w", old, swapped, err)
		case len(want) > 0 && swapped:
			return fmt.Errorf("%T is swapped", old)
		case len(want) > 0:
			if err := wantErr(err, ErrBadArg, append(want, "gas: CompareAndSwap", fmt.Sprint(reflect.TypeFor[T]()))...); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestSwapsOfPadding: types with bytes that no program sees are refused by what compares bits,
// wherever the memory lies; others are not, and floats compare by their bits.
func TestSwapsOfPadding(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "calls-sim", "hidden", "calls-apart") {
		for _, debug := range []bool{false, true} {
			t.Run(fmt.Sprint(conduit, debug), func(t *testing.T) {
				cfg := small(2)
				cfg.Conduit, cfg.Debug = conduit, debug
				if err := Run(cfg, swapsOfPadding); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func swapsOfPadding(n *Node) error {
	all := Must(NewSlice[uint64](n, 2))
	p := all.On((n.Rank() + 1) % n.Size())
	return errors.Join(
		swaps[between](n, p, "bytes 1 to 3 of its 8", "between its fields Open and Count", "Pad [3]byte"),
		swaps[atEnd](n, p, "bytes 5 to 7 of its 8", "after its last field, Open"),
		swaps[nested](n, p, "bytes 5 to 5 of its 8", "between its fields A and B"),
		swaps[struct {
			A uint8
			B struct {
				C uint8
				D uint32
			}
		}](n, p, "has 12"),
		swaps[ofArray](n, p, "bytes 3 to 3 of its 8", "after its last field, B"),
		swaps[[1]between](n, p, "bytes 1 to 3"),
		swaps[blank](n, p, "bytes 2 to 3 of its 4", "field 1", "blank"),
		swaps[emptyEnd](n, p, "bytes 4 to 7 of its 8", "after its last field, _"),
		swaps[emptyArray](n, p, "bytes 4 to 7 of its 8", "after its last field, B"),
		swaps[short](n, p, "4 or 8 bytes"),
		swaps[whole8](n, p), swaps[emptyFront](n, p), swaps[Ptr[int]](n, p), swaps[[4]bool](n, p), swaps[complex64](n, p),
		swapsOfFloats(n, p.Add(1)),
	)
}

func swapsOfFloats(n *Node, w Ptr[uint64]) error {
	p, err := Cast[float64](w)
	if err != nil {
		return err
	}
	nan := math.NaN()
	for _, c := range []struct {
		is, old float64
		want    bool
	}{{0, math.Copysign(0, -1), false}, {nan, nan, true}, {nan, -nan, false}} {
		if err := p.Put(n, c.is); err != nil {
			return err
		}
		if _, swapped, err := CompareAndSwap(n, p, c.old, 1); err != nil || swapped != c.want {
			return fmt.Errorf("%v for %v: swapped %v (%v), want %v", c.old, c.is, swapped, err, c.want)
		}
	}
	return nil
}

// TestStrayRanks: a rank that no Ptr can name is not another one's, and is reported as it was given.
func TestStrayRanks(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		p := Must(New[uint64](n))
		for _, rank := range []int{
			-1, -2, 3, maxRanks - 1, maxRanks, 1<<24 - 1, 1 << 24, 1<<24 + 1, 1 << 31, -1 << 31, 1 << 32, 1 << 40, 1<<40 + 1, 1 << 62,
			math.MaxInt, math.MinInt,
		} {
			for name, q := range map[string]Ptr[uint64]{
				"On": p.On(rank), "On and Add": p.Add(-1).On(rank).Add(1),
				"words": PtrFromWords[uint64](p.On(rank).Words()), "Field": Field(p.On(rank), func(v *uint64) *uint64 { return v }),
			} {
				if q.Rank() != rank || q.On(1) != p.On(1) || !strings.HasPrefix(q.String(), fmt.Sprint(rank, "+")) {
					return fmt.Errorf("%s: rank %d became %v of rank %d", name, rank, q, q.Rank())
				}
				want := fmt.Sprintf("rank %d out of range: the job has ranks 0..2", rank)
				_, loadErr := Load(n, q)
				_, getErr := q.Get(n)
				_, _, casErr := CompareAndSwap(n, q, 0, 1)
				for op, err := range map[string]error{
					"Put": q.Put(n, 1), "Get": getErr, "Load": loadErr, "Store": Store(n, q, 1), "CompareAndSwap": casErr,
					"PutSlice": q.PutSlice(n, []uint64{1}), "PutIndexed": q.PutShape(n, []uint64{1}, Shape{Index: []int{0}}),
					"PutShape": q.PutShape(n, []uint64{1, 2}, Shape{Count: 2, Len: 1}), "PutNBI": q.PutNBI(n, 1), "AddNBI": AddNBI(n, q, 1),
					"PutSignal": q.PutSignal(n, []uint64{1}, q, SignalAdd, 1), "Free": Free(n, q), "Lock": LockAt(castTo[LockWord](q)).Lock(n),
				} {
					if err := wantErr(err, ErrBadArg, want); err != nil {
						return fmt.Errorf("%s by %s: %w", op, name, err)
					}
				}
				if _, ok := q.Local(n); ok {
					return fmt.Errorf("%s: rank %d has memory", name, rank)
				}
				if _, ok := q.LocalSlice(n, 0); ok {
					return fmt.Errorf("%s: rank %d has no memory", name, rank)
				}
			}
		}
		n.Must(n.Barrier()) // the ranks of this process have one table
		var all [numStrays + 5]Ptr[uint64]
		for i := range all { // more than there is room for: none of them is a rank
			all[i] = p.On(maxRanks + i)
		}
		for i, q := range all {
			if r := q.Rank(); r >= 0 && r < maxRanks {
				return fmt.Errorf("%d ranks out of range later %d is rank %d", len(all), maxRanks+i, r)
			}
		}
		// What another process has made is none either, and -1 is the same there.
		if r := PtrFromUint64[int](1<<64 - 1).Rank(); r < maxRanks {
			return fmt.Errorf("the last word is of rank %d", r)
		}
		if w := (Ptr[int]{}).On(-1).Uint64(); w != 0xfffffe<<nlaBits {
			return fmt.Errorf("-1 is %#x", w)
		}
		return nil
	})
}

func castTo[U, T any](p Ptr[T]) Ptr[U] { return Ptr[U]{w: p.w} }
