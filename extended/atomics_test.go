package extended

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

type integer interface {
	int32 | uint32 | int64 | uint64
}

// typed is all atomics of one type.
type typed[T number] struct {
	name string
	fcaa func(x *Initiator, rank int, to segment.NLA, limit, v T) (T, bool, error) // nil of floats
	// bitwise is the model of and, or, xor; nil for floats.
	bitwise func(op AtomicOp, old, v T) T
	gen     *rapid.Generator[T]
}

// ops are the operations with one operand that a's type has.
func (a *typed[T]) ops() []AtomicOp {
	all := []AtomicOp{AtomicSwap, AtomicAdd, AtomicMin, AtomicMax, AtomicAnd, AtomicOr, AtomicXor}
	if a.bitwise == nil {
		return all[:4]
	}
	return all
}

func bitwise[T integer](op AtomicOp, old, v T) T {
	switch op {
	case AtomicAnd:
		return old & v
	case AtomicOr:
		return old | v
	}
	return old ^ v
}

// model is the result of op on old.
func model[T number](a *typed[T], op AtomicOp, old, v T) T {
	switch op {
	case AtomicSwap:
		return v
	case AtomicAdd:
		return old + v
	case AtomicMin:
		return extreme(old, v, func(x, y T) bool { return x < y }, math.Min)
	case AtomicMax:
		return extreme(old, v, func(x, y T) bool { return x > y }, math.Max)
	}
	return a.bitwise(op, old, v)
}

func extreme[T number](old, v T, before func(x, y T) bool, float func(x, y float64) float64) T {
	switch x := any(old).(type) {
	case float64:
		return any(float(x, any(v).(float64))).(T)
	case float32:
		return any(float32(float(float64(x), float64(any(v).(float32))))).(T)
	}
	if before(v, old) {
		return v
	}
	return old
}

// same compares bits, but one NaN is as good as another.
func same[T number](x, y T) bool {
	if x != x || y != y {
		return x != x && y != y
	}
	return x == y && math.Signbit(float64(x)) == math.Signbit(float64(y))
}

func sameBits[T number](x, y T) bool {
	switch x := any(x).(type) {
	case float64:
		return math.Float64bits(x) == math.Float64bits(any(y).(float64))
	case float32:
		return math.Float32bits(x) == math.Float32bits(any(y).(float32))
	}
	return x == y
}

var (
	ofInt32 = &typed[int32]{
		"int32", FetchCompareAdd[int32], bitwise[int32],
		rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{0, 1, -1, math.MinInt32, math.MaxInt32})),
	}
	ofUint32 = &typed[uint32]{
		"uint32", FetchCompareAdd[uint32], bitwise[uint32],
		rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 1, math.MaxUint32, 1 << 31})),
	}
	ofInt64 = &typed[int64]{
		"int64", FetchCompareAdd[int64], bitwise[int64],
		rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64, math.MaxInt64})),
	}
	ofUint64 = &typed[uint64]{
		"uint64", FetchCompareAdd[uint64], bitwise[uint64],
		rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, 1 << 63})),
	}
	ofFloat32 = &typed[float32]{
		"float32", nil, nil,
		rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))})),
	}
	ofFloat64 = &typed[float64]{
		"float64", nil, nil,
		rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, math.NaN(), math.Inf(1), math.Inf(-1)})),
	}
)

func TestAtomicsModel(t *testing.T) {
	t.Run("int32", func(t *testing.T) { checkModel(t, ofInt32) })
	t.Run("uint32", func(t *testing.T) { checkModel(t, ofUint32) })
	t.Run("int64", func(t *testing.T) { checkModel(t, ofInt64) })
	t.Run("uint64", func(t *testing.T) { checkModel(t, ofUint64) })
	t.Run("float32", func(t *testing.T) { checkModel(t, ofFloat32) })
	t.Run("float64", func(t *testing.T) { checkModel(t, ofFloat64) })
}

func checkModel[T number](t *testing.T, a *typed[T]) {
	size := int(TypeOf[T]().Size())
	rapid.Check(t, func(t *rapid.T) {
		j := newFake(2, fakeOptions{
			direct: rapid.Bool().Draw(t, "direct"), eager: rapid.Bool().Draw(t, "eager"),
			seed: rapid.Uint64().Draw(t, "seed"), config: Config{AlwaysHandle: rapid.Bool().Draw(t, "always")},
		})
		x := j.eps[0].x
		ops := a.ops()
		words := make([]T, 6) // of rank 1, with guards between them
		addr := func(i int) segment.NLA { return at((i*2 + 1) * size) }
		check := func(t *rapid.T, what string, got, want T, err error) {
			if err != nil || !same(got, want) {
				t.Fatalf("%s gave %v, %v; not %v", what, got, err, want)
			}
		}
		wait := func(t *rapid.T, h Handle, err error) {
			if err == nil {
				err = x.Wait(h)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				i, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v")
				words[i] = v
				if err := Store(x, 1, addr(i), v); err != nil {
					t.Fatal(err)
				}
			},
			"swap": func(t *rapid.T) {
				i, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v")
				got, err := Swap(x, 1, addr(i), v)
				check(t, "swap", got, words[i], err)
				words[i] = v
			},
			"add": func(t *rapid.T) {
				i, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v")
				if rapid.Bool().Draw(t, "plain") {
					if err := Add(x, 1, addr(i), v); err != nil {
						t.Fatal(err)
					}
				} else {
					got, err := FetchAdd(x, 1, addr(i), v)
					check(t, "add", got, words[i], err)
				}
				words[i] = model(a, AtomicAdd, words[i], v)
			},
			"number": func(t *rapid.T) {
				i, v, op := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v"), rapid.SampledFrom(ops).Draw(t, "op")
				n := fmt.Sprint("operation ", op)
				old := words[i]
				words[i] = model(a, op, old, v)
				switch rapid.IntRange(0, 4).Draw(t, "form") {
				case 0:
					got, err := Atomic(x, 1, addr(i), op, v, 0)
					check(t, n, got, old, err)
				case 1:
					got := new(T)
					h, err := AtomicNB(x, 1, addr(i), got, op, v, 0)
					wait(t, h, err)
					check(t, n, *got, old, nil)
				case 2:
					h, err := AtomicNB(x, 1, addr(i), nil, op, v, 0)
					wait(t, h, err)
				case 3:
					got := new(T)
					if err := AtomicNBI(x.Implicit(), 1, addr(i), got, op, v, 0); err != nil {
						t.Fatal(err)
					}
					if err := x.Implicit().Sync(Gets); err != nil {
						t.Fatal(err)
					}
					check(t, n, *got, old, nil)
				default:
					if err := AtomicNBI(x.Implicit(), 1, addr(i), nil, op, v, 0); err != nil {
						t.Fatal(err)
					}
					if err := x.Implicit().Sync(Puts); err != nil {
						t.Fatal(err)
					}
				}
			},
			"loadStore": func(t *rapid.T) {
				i, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v")
				got, err := Atomic(x, 1, addr(i), AtomicLoad, v, v)
				check(t, "load", got, words[i], err)
				got, err = Atomic(x, 1, addr(i), AtomicStore, v, 0)
				check(t, "store", got, words[i], err)
				words[i] = v
			},
			"cas": func(t *rapid.T) {
				i, old, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "old"), a.gen.Draw(t, "v")
				// Which NaN an operation leaves is not for the model to say.
				cur, err := Load[T](x, 1, addr(i))
				check(t, "load", cur, words[i], err)
				if rapid.Bool().Draw(t, "hit") {
					old = cur
				}
				want := sameBits(old, cur)
				if rapid.Bool().Draw(t, "number") {
					got, err := Atomic(x, 1, addr(i), AtomicCAS, old, v)
					check(t, "cas", got, words[i], err)
				} else {
					got, ok, err := CompareAndSwap(x, 1, addr(i), old, v)
					check(t, "cas", got, words[i], err)
					if ok != want {
						t.Fatalf("cas of %v with %v said %v", words[i], old, ok)
					}
				}
				if want {
					words[i] = v
				}
			},
			"fcaa": func(t *rapid.T) {
				if a.fcaa == nil {
					t.Skip("integers only")
				}
				i, c, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "compare"), a.gen.Draw(t, "add")
				// The pseudo-code of Nüssle 2008, section 7.5.4, line by line.
				old, want := words[i], false
				if words[i] <= c {
					words[i] += v
					want = true
				}
				var got T
				var ok bool
				var err error
				switch rapid.IntRange(0, 2).Draw(t, "form") {
				case 0:
					got, ok, err = a.fcaa(x, 1, addr(i), c, v)
				case 1:
					old := new(T)
					h, err := AtomicNB(x, 1, addr(i), old, AtomicFCAA, c, v)
					wait(t, h, err)
					got, ok = *old, want
				default:
					got, err = Atomic(x, 1, addr(i), AtomicFCAA, c, v)
					ok = want
				}
				check(t, "fcaa", got, old, err)
				if ok != want {
					t.Fatalf("fcaa said %v", ok)
				}
			},
			"": func(t *rapid.T) {
				for i, want := range words {
					got, err := Load[T](x, 1, addr(i))
					check(t, "load", got, want, err)
					guard, err := Load[T](x, 1, addr(i)+segment.NLA(size))
					check(t, "load of a guard", guard, 0, err)
				}
			},
		})
	})
}

func TestAtomicsBadArguments(t *testing.T) {
	for _, direct := range []bool{true, false} {
		x := newFake(2, fakeOptions{direct: direct}).eps[0].x
		checkBad(t, x, ofInt32)
		checkBad(t, x, ofUint32)
		checkBad(t, x, ofInt64)
		checkBad(t, x, ofUint64)
		checkBad(t, x, ofFloat32)
		checkBad(t, x, ofFloat64)
		for _, op := range []AtomicOp{AtomicAnd, AtomicOr, AtomicXor, AtomicFCAA} {
			if _, err := Atomic[float64](x, 1, at(0), op, 1, 1); !errors.Is(err, ErrNotSupported) {
				t.Errorf("%d on a float: %v", op, err)
			}
			if _, err := AtomicNB[float32](x, 1, at(0), nil, op, 1, 1); !errors.Is(err, ErrNotSupported) {
				t.Errorf("%d on a float: %v", op, err)
			}
		}
	}
}

func checkBad[T number](t *testing.T, x *Initiator, a *typed[T]) {
	t.Helper()
	size, word := len(x.ep.(*fakeEP).job.segs[1]), int(TypeOf[T]().Size())
	for _, c := range []struct {
		what string
		rank int
		addr segment.NLA
	}{
		{"rank -1", -1, at(0)},
		{"rank 2", 2, at(0)},
		{"huge rank", math.MaxInt, at(0)},
		{"before", 1, segment.NLA(word)},
		{"end", 1, at(size)},
		{"far", 1, at(1 << 40)},
		{"zero", 1, 0},
		{"wrapping", 1, ^segment.NLA(0) - segment.NLA(word) + 1},
		{"unaligned by 1", 1, at(1)},
		{"unaligned by half", 1, at(word / 2)},
		{"across the end", 1, at(size - word/2)},
	} {
		bad := func(form string, err error) {
			t.Helper()
			if !errors.Is(err, ErrBadArg) {
				t.Errorf("%s %s, %s: %v", a.name, form, c.what, err)
			}
		}
		_, err := Load[T](x, c.rank, c.addr)
		bad("load", err)
		bad("store", Store[T](x, c.rank, c.addr, 1))
		_, err = Swap[T](x, c.rank, c.addr, 1)
		bad("swap", err)
		_, _, err = CompareAndSwap[T](x, c.rank, c.addr, 0, 1)
		bad("cas", err)
		bad("add", Add[T](x, c.rank, c.addr, 1))
		for _, op := range a.ops() {
			_, err = Atomic[T](x, c.rank, c.addr, op, 1, 0)
			bad("op", err)
			_, err = AtomicNB[T](x, c.rank, c.addr, nil, op, 1, 0)
			bad("nb", err)
			bad("nbi", AtomicNBI[T](x.Implicit(), c.rank, c.addr, nil, op, 1, 0))
		}
		if a.fcaa != nil {
			_, _, err = a.fcaa(x, c.rank, c.addr, 5, 1)
			bad("fcaa", err)
		}
	}
	if _, err := Atomic[T](x, 1, at(0), 200, 1, 1); !errors.Is(err, ErrBadArg) {
		t.Errorf("no such operation: %v", err)
	}
	for i, b := range x.ep.(*fakeEP).job.segs[1] {
		if b != 0 {
			t.Fatalf("%s: byte %d was written", a.name, i)
		}
	}
}

// TestAtomicsConcurrently: ranks hammer words of rank 0 in ways that leave a
// known sum, and Go's own atomics on the same memory join in.
func TestAtomicsConcurrently(t *testing.T) {
	const ranks, n = 4, 400
	for _, direct := range []bool{true, false} {
		j := newFake(ranks, fakeOptions{direct: direct, eager: true, seed: 3})
		var wg sync.WaitGroup
		for r := range ranks {
			wg.Go(func() {
				x := j.eps[r].x
				must := func(err error) {
					if err != nil {
						t.Error(err)
					}
				}
				for i := range n {
					_, err := FetchAdd[uint64](x, 0, at(0), 3)
					must(err)
					must(Add[int32](x, 0, at(8), -1))
					must(Add[float64](x, 0, at(16), 0.5))
					must(Add[float32](x, 0, at(24), 1))
					_, err = Atomic[int64](x, 0, at(32), AtomicMax, int64(r*n+i), 0)
					must(err)
					_, err = Atomic[int32](x, 0, at(40), AtomicMin, int32(-r*n-i), 0)
					must(err)
					_, err = Atomic[uint32](x, 0, at(44), AtomicXor, 1<<r, 0)
					must(err)
					for ok := false; !ok; {
						old, err := Load[uint64](x, 0, at(48))
						must(err)
						_, ok, err = CompareAndSwap[uint64](x, 0, at(48), old, old+1)
						must(err)
					}
					// Count up to n, all ranks together.
					_, _, err = FetchCompareAdd[int64](x, 0, at(56), n-1, 1)
					must(err)
					if r == 0 {
						own := j.segs[0]
						addOwn(own, 64)
					} else {
						must(Add[uint64](x, 0, at(64), 1))
					}
				}
			})
		}
		wg.Wait()
		x := j.eps[0].x
		check := func(what string, got, want any, err error) {
			if err != nil || got != want {
				t.Errorf("direct=%v: %s is %v, %v; not %v", direct, what, got, err, want)
			}
		}
		u, err := Load[uint64](x, 0, at(0))
		check("sum", u, uint64(3*ranks*n), err)
		i, err := Load[int32](x, 0, at(8))
		check("int32 sum", i, int32(-ranks*n), err)
		f, err := Load[float64](x, 0, at(16))
		check("float64 sum", f, 0.5*ranks*n, err)
		g, err := Load[float32](x, 0, at(24))
		check("float32 sum", g, float32(ranks*n), err)
		m, err := Load[int64](x, 0, at(32))
		check("max", m, int64(ranks*n-1), err)
		l, err := Load[int32](x, 0, at(40))
		check("min", l, int32(-ranks*n+1), err)
		w, err := Load[uint32](x, 0, at(44))
		check("xor", w, uint32(0), err)
		u, err = Load[uint64](x, 0, at(48))
		check("cas", u, uint64(ranks*n), err)
		m, err = Load[int64](x, 0, at(56))
		check("fcaa", m, int64(n), err)
		u, err = Load[uint64](x, 0, at(64))
		check("with the owner's own atomics", u, uint64(ranks*n), err)
	}
}

// TestManyFetchingImplicit: more atomics with results than there are slots.
func TestManyFetchingImplicit(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const n = numSlots + 1000
	j := newFake(2, fakeOptions{seed: 5})
	x := j.eps[0].x
	got := make([]uint64, n)
	for i := range got {
		if err := AtomicNBI[uint64](x.Implicit(), 1, at(0), &got[i], AtomicAdd, 1, 0); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := x.Implicit().Sync(Gets); err != nil {
		t.Fatal(err)
	}
	seen := make([]bool, n)
	for i, v := range got {
		if v >= n || seen[v] {
			t.Fatalf("result %d is %d, out of range or twice", i, v)
		}
		seen[v] = true
	}
	if x.table.outstanding() != 0 || x.table.used > numSlots {
		t.Fatal(x.table.outstanding(), x.table.used)
	}
}
