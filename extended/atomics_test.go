package extended

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
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

// typed is all typed atomics of one type.
type typed[T number] struct {
	name  string
	size  int
	load  func(int, segment.NLA) (T, error)
	store func(int, segment.NLA, T) error
	cas   func(int, segment.NLA, T, T) (T, bool, error)
	fetch map[string]func(int, segment.NLA, T) (T, error) // by what the model calls it
	do    map[string]func(int, segment.NLA, T) error
	op    func(int, segment.NLA, AtomicOp, T, T) (T, error)
	nb    func(int, segment.NLA, *T, AtomicOp, T, T) (Handle, error)
	nbi   func(int, segment.NLA, *T, AtomicOp, T, T) error
	fcaa  func(int, segment.NLA, T, T) (T, bool, error)
	fcnb  func(int, segment.NLA, *T, *bool, T, T) (Handle, error)
	// bitwise is the model of and, or, xor; nil for floats.
	bitwise func(op string, old, v T) T
	gen     *rapid.Generator[T]
}

func bitwise[T integer](op string, old, v T) T {
	switch op {
	case "and":
		return old & v
	case "or":
		return old | v
	}
	return old ^ v
}

// model is what op makes of old.
func model[T number](a *typed[T], op string, old, v T) T {
	switch op {
	case "swap":
		return v
	case "add":
		return old + v
	case "sub":
		return old - v
	case "min":
		return extreme(old, v, func(x, y T) bool { return x < y }, math.Min)
	case "max":
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

var opNumbers = map[string]AtomicOp{
	"swap": AtomicSwap, "add": AtomicAdd, "and": AtomicAnd, "or": AtomicOr,
	"xor": AtomicXor, "min": AtomicMin, "max": AtomicMax,
}

func allTyped(x *Endpoint, g *Region) (i32 *typed[int32], u32 *typed[uint32], i64 *typed[int64], u64 *typed[uint64], f32 *typed[float32], f64 *typed[float64]) {
	i32 = &typed[int32]{
		name: "int32", size: 4, load: x.LoadInt32, store: x.StoreInt32, cas: x.CompareAndSwapInt32,
		op: x.AtomicInt32, nb: x.AtomicInt32NB, nbi: g.AtomicInt32NBI, fcaa: x.FetchCompareAddInt32, fcnb: x.FetchCompareAddInt32NB,
		fetch: map[string]func(int, segment.NLA, int32) (int32, error){
			"swap": x.SwapInt32, "add": x.FetchAddInt32, "sub": x.FetchSubInt32,
			"min": x.FetchMinInt32, "max": x.FetchMaxInt32, "and": x.FetchAndInt32, "or": x.FetchOrInt32, "xor": x.FetchXorInt32,
		},
		do: map[string]func(int, segment.NLA, int32) error{
			"add": x.AddInt32, "sub": x.SubInt32,
			"min": x.MinInt32, "max": x.MaxInt32, "and": x.AndInt32, "or": x.OrInt32, "xor": x.XorInt32,
		},
		bitwise: bitwise[int32], gen: rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{0, 1, -1, math.MinInt32, math.MaxInt32})),
	}
	u32 = &typed[uint32]{
		name: "uint32", size: 4, load: x.LoadUint32, store: x.StoreUint32, cas: x.CompareAndSwapUint32,
		op: x.AtomicUint32, nb: x.AtomicUint32NB, nbi: g.AtomicUint32NBI, fcaa: x.FetchCompareAddUint32, fcnb: x.FetchCompareAddUint32NB,
		fetch: map[string]func(int, segment.NLA, uint32) (uint32, error){
			"swap": x.SwapUint32, "add": x.FetchAddUint32, "sub": x.FetchSubUint32,
			"min": x.FetchMinUint32, "max": x.FetchMaxUint32, "and": x.FetchAndUint32, "or": x.FetchOrUint32, "xor": x.FetchXorUint32,
		},
		do: map[string]func(int, segment.NLA, uint32) error{
			"add": x.AddUint32, "sub": x.SubUint32,
			"min": x.MinUint32, "max": x.MaxUint32, "and": x.AndUint32, "or": x.OrUint32, "xor": x.XorUint32,
		},
		bitwise: bitwise[uint32], gen: rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 1, math.MaxUint32, 1 << 31})),
	}
	i64 = &typed[int64]{
		name: "int64", size: 8, load: x.LoadInt64, store: x.StoreInt64, cas: x.CompareAndSwapInt64,
		op: x.AtomicInt64, nb: x.AtomicInt64NB, nbi: g.AtomicInt64NBI, fcaa: x.FetchCompareAddInt64, fcnb: x.FetchCompareAddInt64NB,
		fetch: map[string]func(int, segment.NLA, int64) (int64, error){
			"swap": x.SwapInt64, "add": x.FetchAddInt64, "sub": x.FetchSubInt64,
			"min": x.FetchMinInt64, "max": x.FetchMaxInt64, "and": x.FetchAndInt64, "or": x.FetchOrInt64, "xor": x.FetchXorInt64,
		},
		do: map[string]func(int, segment.NLA, int64) error{
			"add": x.AddInt64, "sub": x.SubInt64,
			"min": x.MinInt64, "max": x.MaxInt64, "and": x.AndInt64, "or": x.OrInt64, "xor": x.XorInt64,
		},
		bitwise: bitwise[int64], gen: rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64, math.MaxInt64})),
	}
	u64 = &typed[uint64]{
		name: "uint64", size: 8, load: x.LoadUint64, store: x.StoreUint64, cas: x.CompareAndSwapUint64,
		op: x.AtomicUint64, nb: x.AtomicUint64NB, nbi: g.AtomicUint64NBI, fcaa: x.FetchCompareAddUint64, fcnb: x.FetchCompareAddUint64NB,
		fetch: map[string]func(int, segment.NLA, uint64) (uint64, error){
			"swap": x.SwapUint64, "add": x.FetchAddUint64, "sub": x.FetchSubUint64,
			"min": x.FetchMinUint64, "max": x.FetchMaxUint64, "and": x.FetchAndUint64, "or": x.FetchOrUint64, "xor": x.FetchXorUint64,
		},
		do: map[string]func(int, segment.NLA, uint64) error{
			"add": x.AddUint64, "sub": x.SubUint64,
			"min": x.MinUint64, "max": x.MaxUint64, "and": x.AndUint64, "or": x.OrUint64, "xor": x.XorUint64,
		},
		bitwise: bitwise[uint64], gen: rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, 1 << 63})),
	}
	f32 = &typed[float32]{
		name: "float32", size: 4, load: x.LoadFloat32, store: x.StoreFloat32, cas: x.CompareAndSwapFloat32,
		op: x.AtomicFloat32, nb: x.AtomicFloat32NB, nbi: g.AtomicFloat32NBI,
		fetch: map[string]func(int, segment.NLA, float32) (float32, error){
			"swap": x.SwapFloat32, "add": x.FetchAddFloat32, "sub": x.FetchSubFloat32,
			"min": x.FetchMinFloat32, "max": x.FetchMaxFloat32,
		},
		do: map[string]func(int, segment.NLA, float32) error{
			"add": x.AddFloat32, "sub": x.SubFloat32,
			"min": x.MinFloat32, "max": x.MaxFloat32,
		},
		gen: rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))})),
	}
	f64 = &typed[float64]{
		name: "float64", size: 8, load: x.LoadFloat64, store: x.StoreFloat64, cas: x.CompareAndSwapFloat64,
		op: x.AtomicFloat64, nb: x.AtomicFloat64NB, nbi: g.AtomicFloat64NBI,
		fetch: map[string]func(int, segment.NLA, float64) (float64, error){
			"swap": x.SwapFloat64, "add": x.FetchAddFloat64, "sub": x.FetchSubFloat64,
			"min": x.FetchMinFloat64, "max": x.FetchMaxFloat64,
		},
		do: map[string]func(int, segment.NLA, float64) error{
			"add": x.AddFloat64, "sub": x.SubFloat64,
			"min": x.MinFloat64, "max": x.MaxFloat64,
		},
		gen: rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, math.NaN(), math.Inf(1), math.Inf(-1)})),
	}
	return
}

func TestAtomicsModel(t *testing.T) {
	t.Run("int32", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[int32] { a, _, _, _, _, _ := allTyped(x, x.Implicit()); return a })
	})
	t.Run("uint32", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[uint32] { _, a, _, _, _, _ := allTyped(x, x.Implicit()); return a })
	})
	t.Run("int64", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[int64] { _, _, a, _, _, _ := allTyped(x, x.Implicit()); return a })
	})
	t.Run("uint64", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[uint64] { _, _, _, a, _, _ := allTyped(x, x.Implicit()); return a })
	})
	t.Run("float32", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[float32] { _, _, _, _, a, _ := allTyped(x, x.Implicit()); return a })
	})
	t.Run("float64", func(t *testing.T) {
		checkModel(t, func(x *Endpoint) *typed[float64] { _, _, _, _, _, a := allTyped(x, x.Implicit()); return a })
	})
}

func checkModel[T number](t *testing.T, of func(*Endpoint) *typed[T]) {
	rapid.Check(t, func(t *rapid.T) {
		j := newFake(2, fakeOptions{
			direct: rapid.Bool().Draw(t, "direct"), eager: rapid.Bool().Draw(t, "eager"),
			seed: rapid.Uint64().Draw(t, "seed"), config: Config{AlwaysHandle: rapid.Bool().Draw(t, "always")},
		})
		x := j.eps[0].x
		a := of(x)
		var names, plain []string
		for _, n := range []string{"swap", "add", "sub", "min", "max", "and", "or", "xor"} {
			if a.fetch[n] != nil {
				names = append(names, n)
			}
			if a.do[n] != nil {
				plain = append(plain, n)
			}
		}
		words := make([]T, 6) // of rank 1, with guards between them
		addr := func(i int) segment.NLA { return at((i*2 + 1) * a.size) }
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
				if err := a.store(1, addr(i), v); err != nil {
					t.Fatal(err)
				}
			},
			"fetch": func(t *rapid.T) {
				i, v, n := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v"), rapid.SampledFrom(names).Draw(t, "op")
				got, err := a.fetch[n](1, addr(i), v)
				check(t, n, got, words[i], err)
				words[i] = model(a, n, words[i], v)
			},
			"plain": func(t *rapid.T) {
				i, v, n := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v"), rapid.SampledFrom(plain).Draw(t, "op")
				if err := a.do[n](1, addr(i), v); err != nil {
					t.Fatal(err)
				}
				words[i] = model(a, n, words[i], v)
			},
			"number": func(t *rapid.T) {
				i, v, n := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v"), rapid.SampledFrom(names).Draw(t, "op")
				op, ok := opNumbers[n]
				if !ok {
					t.Skip("no number")
				}
				old := words[i]
				words[i] = model(a, n, old, v)
				switch rapid.IntRange(0, 4).Draw(t, "form") {
				case 0:
					got, err := a.op(1, addr(i), op, v, 0)
					check(t, n, got, old, err)
				case 1:
					got := new(T)
					h, err := a.nb(1, addr(i), got, op, v, 0)
					wait(t, h, err)
					check(t, n, *got, old, nil)
				case 2:
					h, err := a.nb(1, addr(i), nil, op, v, 0)
					wait(t, h, err)
				case 3:
					got := new(T)
					if err := a.nbi(1, addr(i), got, op, v, 0); err != nil {
						t.Fatal(err)
					}
					if err := x.SyncNBI(Gets); err != nil {
						t.Fatal(err)
					}
					check(t, n, *got, old, nil)
				default:
					if err := a.nbi(1, addr(i), nil, op, v, 0); err != nil {
						t.Fatal(err)
					}
					if err := x.SyncNBI(Puts); err != nil {
						t.Fatal(err)
					}
				}
			},
			"loadStore": func(t *rapid.T) {
				i, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "v")
				got, err := a.op(1, addr(i), AtomicLoad, v, v)
				check(t, "load", got, words[i], err)
				got, err = a.op(1, addr(i), AtomicStore, v, 0)
				check(t, "store", got, words[i], err)
				words[i] = v
			},
			"cas": func(t *rapid.T) {
				i, old, v := rapid.IntRange(0, 5).Draw(t, "i"), a.gen.Draw(t, "old"), a.gen.Draw(t, "v")
				// Which NaN an operation leaves is not for the model to say.
				cur, err := a.load(1, addr(i))
				check(t, "load", cur, words[i], err)
				if rapid.Bool().Draw(t, "hit") {
					old = cur
				}
				want := sameBits(old, cur)
				if rapid.Bool().Draw(t, "number") {
					got, err := a.op(1, addr(i), AtomicCAS, old, v)
					check(t, "cas", got, words[i], err)
				} else {
					got, ok, err := a.cas(1, addr(i), old, v)
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
					got, ok, err = a.fcaa(1, addr(i), c, v)
				case 1:
					pg, po := new(T), new(bool)
					h, err := a.fcnb(1, addr(i), pg, po, c, v)
					wait(t, h, err)
					got, ok = *pg, *po
				default: // by number it yields the old word, as all do
					got, err = a.op(1, addr(i), AtomicFCAA, c, v)
					check(t, "fcaa by number", got, old, err)
					got, ok = words[i], want
				}
				check(t, "fcaa", got, words[i], err)
				if ok != want {
					t.Fatalf("fcaa said %v", ok)
				}
			},
			"": func(t *rapid.T) {
				for i, want := range words {
					got, err := a.load(1, addr(i))
					check(t, "load", got, want, err)
					guard, err := a.load(1, addr(i)+segment.NLA(a.size))
					check(t, "load of a guard", guard, 0, err)
				}
			},
		})
	})
}

func TestAtomicsBadArguments(t *testing.T) {
	for _, direct := range []bool{true, false} {
		x := newFake(2, fakeOptions{direct: direct}).eps[0].x
		i32, u32, i64, u64, f32, f64 := allTyped(x, x.Implicit())
		checkBad(t, x, i32)
		checkBad(t, x, u32)
		checkBad(t, x, i64)
		checkBad(t, x, u64)
		checkBad(t, x, f32)
		checkBad(t, x, f64)
		for _, op := range []AtomicOp{AtomicAnd, AtomicOr, AtomicXor, AtomicFCAA} {
			if _, err := x.AtomicFloat64(1, at(0), op, 1, 1); !errors.Is(err, ErrNotSupported) {
				t.Errorf("%d on a float: %v", op, err)
			}
			if _, err := x.AtomicFloat32NB(1, at(0), nil, op, 1, 1); !errors.Is(err, ErrNotSupported) {
				t.Errorf("%d on a float: %v", op, err)
			}
		}
	}
}

func checkBad[T number](t *testing.T, x *Endpoint, a *typed[T]) {
	t.Helper()
	size := len(x.ep.(*fakeEP).job.segs[1])
	for _, c := range []struct {
		what string
		rank int
		addr segment.NLA
	}{
		{"rank -1", -1, at(0)},
		{"rank 2", 2, at(0)},
		{"huge rank", math.MaxInt, at(0)},
		{"before", 1, segment.NLA(a.size)},
		{"end", 1, at(size)},
		{"far", 1, at(1 << 40)},
		{"zero", 1, 0},
		{"wrapping", 1, ^segment.NLA(0) - segment.NLA(a.size) + 1},
		{"unaligned by 1", 1, at(1)},
		{"unaligned by half", 1, at(a.size / 2)},
		{"across the end", 1, at(size - a.size/2)},
	} {
		bad := func(form string, err error) {
			t.Helper()
			if !errors.Is(err, ErrBadArg) {
				t.Errorf("%s %s, %s: %v", a.name, form, c.what, err)
			}
		}
		_, err := a.load(c.rank, c.addr)
		bad("load", err)
		bad("store", a.store(c.rank, c.addr, 1))
		_, _, err = a.cas(c.rank, c.addr, 0, 1)
		bad("cas", err)
		for n, f := range a.fetch {
			_, err := f(c.rank, c.addr, 1)
			bad("fetch "+n, err)
		}
		for n, f := range a.do {
			bad(n, f(c.rank, c.addr, 1))
		}
		_, err = a.op(c.rank, c.addr, AtomicAdd, 1, 0)
		bad("op", err)
		_, err = a.nb(c.rank, c.addr, nil, AtomicAdd, 1, 0)
		bad("nb", err)
		bad("nbi", a.nbi(c.rank, c.addr, nil, AtomicAdd, 1, 0))
		if a.fcaa != nil {
			_, _, err = a.fcaa(c.rank, c.addr, 5, 1)
			bad("fcaa", err)
			_, err = a.fcnb(c.rank, c.addr, nil, nil, 5, 1)
			bad("fcaa nb", err)
		}
	}
	if _, err := a.op(1, at(0), 200, 1, 1); !errors.Is(err, ErrBadArg) {
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
					_, err := x.FetchAddUint64(0, at(0), 3)
					must(err)
					must(x.AddInt32(0, at(8), -1))
					must(x.AddFloat64(0, at(16), 0.5))
					must(x.AddFloat32(0, at(24), 1))
					must(x.MaxInt64(0, at(32), int64(r*n+i)))
					must(x.MinInt32(0, at(40), int32(-r*n-i)))
					must(x.XorUint32(0, at(44), 1<<r))
					for ok := false; !ok; {
						old, err := x.LoadUint64(0, at(48))
						must(err)
						_, ok, err = x.CompareAndSwapUint64(0, at(48), old, old+1)
						must(err)
					}
					// Count up to n, all ranks together.
					_, _, err = x.FetchCompareAddInt64(0, at(56), n-1, 1)
					must(err)
					if r == 0 {
						own := j.segs[0]
						addOwn(own, 64)
					} else {
						must(x.AddUint64(0, at(64), 1))
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
		u, err := x.LoadUint64(0, at(0))
		check("sum", u, uint64(3*ranks*n), err)
		i, err := x.LoadInt32(0, at(8))
		check("int32 sum", i, int32(-ranks*n), err)
		f, err := x.LoadFloat64(0, at(16))
		check("float64 sum", f, 0.5*ranks*n, err)
		g, err := x.LoadFloat32(0, at(24))
		check("float32 sum", g, float32(ranks*n), err)
		m, err := x.LoadInt64(0, at(32))
		check("max", m, int64(ranks*n-1), err)
		l, err := x.LoadInt32(0, at(40))
		check("min", l, int32(-ranks*n+1), err)
		w, err := x.LoadUint32(0, at(44))
		check("xor", w, uint32(0), err)
		u, err = x.LoadUint64(0, at(48))
		check("cas", u, uint64(ranks*n), err)
		m, err = x.LoadInt64(0, at(56))
		check("fcaa", m, int64(n), err)
		u, err = x.LoadUint64(0, at(64))
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
		if err := x.Implicit().AtomicUint64NBI(1, at(0), &got[i], AtomicAdd, 1, 0); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := x.SyncNBI(Gets); err != nil {
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

// TestGenerated: atomics_gen.go is what gen.go writes.
func TestGenerated(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out") // a name in .go would be compiled
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(tool, "run", "gen.go", out)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("atomics_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("atomics_gen.go is not what gen.go writes: run go generate")
	}
}
