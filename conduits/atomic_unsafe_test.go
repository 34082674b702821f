package conduits

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

var typeNames = [NumAtomicTypes]string{"int32", "uint32", "int64", "uint64", "float32", "float64"}

// number has the types that the naive model computes with.
type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

// naive is Combine in the plain arithmetic of T.
func naive[T number](op AtomicOp, from func(uint64) T, to func(T) uint64, old, a, b uint64) (uint64, bool) {
	x, y := from(old), from(a)
	isNaN := func(v T) bool { return v != v }
	negative := func(v T) bool { return math.Signbit(float64(v)) }
	switch op {
	case AtomicLoad:
		return old, false
	case AtomicStore, AtomicSwap:
		return a, true
	case AtomicCAS:
		return b, old == a
	case AtomicAdd:
		return to(x + y), true
	case AtomicAnd:
		return old & a, true
	case AtomicOr:
		return old | a, true
	case AtomicXor:
		return old ^ a, true
	case AtomicMin:
		switch {
		case math.IsInf(float64(x), -1) || math.IsInf(float64(y), -1):
			return to(T(math.Inf(-1))), true
		case isNaN(x) || isNaN(y):
			return to(x + y), true
		case y < x || x == y && negative(y):
			return a, true
		}
		return old, true
	case AtomicMax:
		switch {
		case math.IsInf(float64(x), 1) || math.IsInf(float64(y), 1):
			return to(T(math.Inf(1))), true
		case isNaN(x) || isNaN(y):
			return to(x + y), true
		case y > x || x == y && negative(x):
			return a, true
		}
		return old, true
	case AtomicFCAA:
		return to(x + from(b)), x <= y
	}
	panic("no such operation")
}

func model(op AtomicOp, t AtomicType, old, a, b uint64) (uint64, bool) {
	switch t {
	case Int32:
		return naive(op, func(v uint64) int32 { return int32(v) }, func(v int32) uint64 { return uint64(uint32(v)) }, old, a, b)
	case Uint32:
		return naive(op, func(v uint64) uint32 { return uint32(v) }, func(v uint32) uint64 { return uint64(v) }, old, a, b)
	case Int64:
		return naive(op, func(v uint64) int64 { return int64(v) }, func(v int64) uint64 { return uint64(v) }, old, a, b)
	case Uint64:
		return naive(op, func(v uint64) uint64 { return v }, func(v uint64) uint64 { return v }, old, a, b)
	case Float32:
		return naive(op, func(v uint64) float32 { return math.Float32frombits(uint32(v)) }, func(v float32) uint64 { return uint64(math.Float32bits(v)) }, old, a, b)
	}
	return naive(op, math.Float64frombits, math.Float64bits, old, a, b)
}

// same compares bits; every NaN is like every other.
func same(t AtomicType, x, y uint64) bool {
	switch t {
	case Float32:
		a, b := math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y))
		return x == y || a != a && b != b
	case Float64:
		a, b := math.Float64frombits(x), math.Float64frombits(y)
		return x == y || a != a && b != b
	}
	return x == y
}

// operands are values at the edges of their type.
func operands(t AtomicType) []uint64 {
	switch t {
	case Int32, Uint32:
		return []uint64{0, 1, 2, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 2, 0x55555555}
	case Int64, Uint64:
		return []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 2, 1 << 31, 1<<32 - 1, 0x5555555555555555}
	case Float32:
		var l []uint64
		for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1} {
			l = append(l, uint64(math.Float32bits(float32(f))))
		}
		return l
	}
	var l []uint64
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1} {
		l = append(l, math.Float64bits(f))
	}
	return l
}

func check(t interface{ Errorf(string, ...any) }, op AtomicOp, ty AtomicType, old, a, b uint64) {
	want, writes := model(op, ty, old, a, b)
	if v, write := Combine(op, ty, old, a, b); write != writes || write && !same(ty, v, want) {
		t.Errorf("Combine(%d, %s, %#x, %#x, %#x) = %#x, %v; want %#x, %v", op, typeNames[ty], old, a, b, v, write, want, writes)
	}
	if !writes {
		want = old
	}
	// The neighbours must stay as they are.
	mem := [3]uint64{0x1111111111111111, 0x2222222222222222, 0x3333333333333333}
	p := unsafe.Pointer(&mem[1])
	if ty.Size() == 4 {
		*(*uint32)(p) = uint32(old)
	} else {
		mem[1] = old
	}
	got := ApplyAtomic(p, op, ty, a, b)
	now := mem[1]
	if ty.Size() == 4 {
		now = uint64(*(*uint32)(p))
		if *(*uint32)(unsafe.Add(p, 4)) != 0x22222222 {
			t.Errorf("%d on %s wrote 8 bytes", op, typeNames[ty])
		}
	}
	if got != old || !same(ty, now, want) || mem[0] != 0x1111111111111111 || mem[2] != 0x3333333333333333 {
		t.Errorf("ApplyAtomic(%d, %s, %#x, %#x) on %#x returned %#x and left %#x, want %#x", op, typeNames[ty], a, b, old, got, now, want)
	}
}

// each calls f for all operations that exist for a type.
func each(f func(op AtomicOp, ty AtomicType)) {
	for ty := range NumAtomicTypes {
		for op := range NumAtomicOps {
			if CheckAtomic("test", op, ty, 0) == nil {
				f(op, ty)
			}
		}
	}
}

func TestAtomicsAtTheEdges(t *testing.T) {
	n := 0
	each(func(op AtomicOp, ty AtomicType) {
		l := operands(ty)
		for _, old := range l {
			for _, a := range l {
				for _, b := range l {
					check(t, op, ty, old, a, b)
					n++
				}
			}
		}
	})
	if n < 20000 {
		t.Errorf("only %d cases", n)
	}
}

func TestAtomicsAtRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each(func(op AtomicOp, ty AtomicType) {
			v := rapid.Uint64()
			if ty.Size() == 4 {
				v = rapid.Custom(func(t *rapid.T) uint64 { return uint64(rapid.Uint32().Draw(t, "v")) })
			}
			check(t, op, ty, v.Draw(t, "old"), v.Draw(t, "a"), v.Draw(t, "b"))
		})
	})
}

// TestAtomicsAreAtomic: of many concurrent operations none is lost.
func TestAtomicsAreAtomic(t *testing.T) {
	const goroutines, times = 4, 500
	for ty := range NumAtomicTypes {
		for _, op := range []AtomicOp{AtomicAdd, AtomicXor, AtomicFCAA, AtomicMax, AtomicCAS} {
			if CheckAtomic("test", op, ty, 0) != nil {
				continue
			}
			var word uint64
			one, most := uint64(1), uint64(1<<30)
			switch ty {
			case Float32:
				one = uint64(math.Float32bits(1))
			case Float64:
				one = math.Float64bits(1)
			}
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := range uint64(times) {
						p := unsafe.Pointer(&word)
						switch op {
						case AtomicFCAA:
							ApplyAtomic(p, op, ty, most, one)
						case AtomicMax:
							if ty.Float() {
								ApplyAtomic(p, AtomicAdd, ty, one, 0)
							} else {
								ApplyAtomic(p, op, ty, i*goroutines+uint64(g)+1, 0)
							}
						case AtomicCAS:
							for {
								old := ApplyAtomic(p, AtomicLoad, ty, 0, 0)
								sum, _ := Combine(AtomicAdd, ty, old, one, 0)
								if ApplyAtomic(p, AtomicCAS, ty, old, sum) == old {
									break
								}
							}
						case AtomicXor:
							ApplyAtomic(p, op, ty, i*goroutines+uint64(g), 0)
						default:
							ApplyAtomic(p, op, ty, one, 0)
						}
					}
				}()
			}
			wg.Wait()
			want := uint64(goroutines * times)
			switch {
			case op == AtomicXor:
				want = 0
				for i := range uint64(goroutines * times) {
					want ^= i
				}
			case ty == Float32:
				want = uint64(math.Float32bits(goroutines * times))
			case ty == Float64:
				want = math.Float64bits(goroutines * times)
			}
			if word != want {
				t.Errorf("%d on %s: %#x, want %#x", op, typeNames[ty], word, want)
			}
		}
	}
}

func TestCheckAtomic(t *testing.T) {
	for ty := range NumAtomicTypes {
		for op := range NumAtomicOps {
			err := CheckAtomic("op", op, ty, segment.AttachBase)
			if bits := op == AtomicAnd || op == AtomicOr || op == AtomicXor || op == AtomicFCAA; bits && ty.Float() {
				wantError(t, fmt.Sprint(op, ty), err, ErrNotSupported, "integers only")
			} else if err != nil {
				t.Errorf("%d on %s: %v", op, typeNames[ty], err)
			}
		}
		for off := range segment.NLA(8) {
			err := CheckAtomic("op", AtomicAdd, ty, segment.AttachBase+off)
			if n := ty.Size(); int(off)%n == 0 {
				if err != nil {
					t.Errorf("%s at %d: %v", typeNames[ty], off, err)
				}
			} else {
				wantError(t, typeNames[ty], err, ErrBadArg, "op: ", "not aligned", fmt.Sprint(n), (segment.AttachBase + off).String())
			}
		}
	}
	wantError(t, "an operation that does not exist", CheckAtomic("op", NumAtomicOps, Int32, 0), ErrBadArg, "11")
	wantError(t, "a type that does not exist", CheckAtomic("op", AtomicAdd, NumAtomicTypes, 0), ErrBadArg, "6")
}
