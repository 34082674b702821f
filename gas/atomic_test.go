package gas

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// byFloat is of(a, b), or for floats the function of package math.
func byFloat[T Number](of func(a, b T) T, float func(a, b float64) float64, a, b T) T {
	switch any(a).(type) {
	case float32, float64:
		return T(float(float64(a), float64(b)))
	}
	return of(a, b)
}

// model performs one operation on a plain variable.
func numberModel[T Number](op int, v *T, a, b T) (old T, ok bool) {
	old = *v
	switch op {
	case 0:
		*v += a
	case 1:
		*v = byFloat(func(a, b T) T { return min(a, b) }, math.Min, *v, a)
	case 2:
		*v = byFloat(func(a, b T) T { return max(a, b) }, math.Max, *v, a)
	case 3:
		*v = a
	case 4:
		*v = a
	case 5:
		if ok = toBits(*v) == toBits(a); ok {
			*v = b
		}
	}
	return old, ok
}

func numberOp[T Number](n *Node, op int, p Ptr[T], a, b T) (old T, ok bool, err error) {
	switch op {
	case 0:
		old, err = FetchAdd(n, p, a)
	case 1:
		old, err = FetchMin(n, p, a)
	case 2:
		old, err = FetchMax(n, p, a)
	case 3:
		old, err = Swap(n, p, a)
	case 4:
		if old, err = Load(n, p); err == nil {
			err = Store(n, p, a)
		}
	case 5:
		old, ok, err = CompareAndSwap(n, p, a, b)
	}
	return old, ok, err
}

func integerModel[T Integer](op int, v *T, a, b T) (old T) {
	old = *v
	switch op {
	case 0:
		*v &= a
	case 1:
		*v |= a
	case 2:
		*v ^= a
	case 3:
		if *v <= a {
			*v += b
		}
	}
	return old
}

func integerOp[T Integer](n *Node, op int, p Ptr[T], a, b T) (T, error) {
	switch op {
	case 0:
		return FetchAnd(n, p, a)
	case 1:
		return FetchOr(n, p, a)
	case 2:
		return FetchXor(n, p, a)
	}
	v, added, err := FetchCompareAdd(n, p, a, b)
	if err == nil && added != (v <= a) {
		err = fmt.Errorf("FetchCompareAdd of %v to %v, if it is at most %v, said %v", b, v, a, added)
	}
	return v, err
}

// checkNumber runs random operations on a cell of rank 1 and on a variable.
func checkNumber[T Number](t *rapid.T, n *Node, gen *rapid.Generator[T], integer func(op int, p Ptr[T], v *T, a, b T) error) {
	var v T
	p, err := Alloc[T](n, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer Free(n, p)
	p = p.Add(1)
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		op := rapid.IntRange(0, 9).Draw(t, "op")
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if op == 5 && rapid.Bool().Draw(t, "equal") {
			a = v
		}
		if op > 5 {
			if integer == nil {
				continue
			}
			if err := integer(op-6, p, &v, a, b); err != nil {
				t.Fatal(err)
			}
		} else {
			want, wantOK := numberModel(op, &v, a, b)
			old, ok, err := numberOp(n, op, p, a, b)
			if err != nil || toBits(old) != toBits(want) || ok != wantOK {
				t.Fatalf("operation %d with %v, %v: %v %v %v, want %v %v", op, a, b, old, ok, err, want, wantOK)
			}
		}
		if got, err := p.Get(n); err != nil || toBits(got) != toBits(v) {
			t.Fatalf("operation %d with %v, %v leaves %v (%v), want %v", op, a, b, got, err, v)
		}
	}
	for _, i := range []int{-1, 1} {
		if beside, err := p.Add(i).Get(n); err != nil || toBits(beside) != 0 {
			t.Fatalf("the element beside has become %v (%v)", beside, err)
		}
	}
}

func checkInteger[T Integer](t *rapid.T, n *Node, gen *rapid.Generator[T]) {
	checkNumber(t, n, gen, func(op int, p Ptr[T], v *T, a, b T) error {
		want := integerModel(op, v, a, b)
		if old, err := integerOp(n, op, p, a, b); err != nil || old != want {
			return fmt.Errorf("integer operation %d with %v, %v: %v (%v), want %v", op, a, b, old, err, want)
		}
		return nil
	})
}

// TestAtomics runs each type's operations directly, and through the layers below
// as a conduit without direct access would have it.
func TestAtomics(t *testing.T) {
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) {
			runN(t, 1, func(n *Node) error {
				if !direct {
					v := n.views.All[0]
					v.Atomic = 0
					n.views.All = []segment.View{v}
				}
				rapid.Check(t, func(t *rapid.T) {
					switch rapid.SampledFrom([]string{"int32", "uint32", "int64", "uint64", "int", "uint", "uintptr", "float32", "float64"}).Draw(t, "type") {
					case "int32":
						checkInteger(t, n, rapid.Int32())
					case "uint32":
						checkInteger(t, n, rapid.Uint32())
					case "int64":
						checkInteger(t, n, rapid.Int64())
					case "uint64":
						checkInteger(t, n, rapid.Uint64())
					case "int":
						checkInteger(t, n, rapid.Int())
					case "uint":
						checkInteger(t, n, rapid.Uint())
					case "uintptr":
						checkInteger(t, n, rapid.Map(rapid.Uint64(), func(v uint64) uintptr { return uintptr(v) }))
					case "float32":
						checkNumber(t, n, rapid.Float32Range(-1e6, 1e6), nil)
					case "float64":
						checkNumber(t, n, rapid.Float64Range(-1e6, 1e6), nil)
					}
				})
				return nil
			})
		})
	}
}

// Signed comparisons are signed, unsigned ones unsigned.
func TestAtomicComparisons(t *testing.T) {
	runN(t, 1, func(n *Node) error {
		i := Must(New[int32](n))
		if old, err := FetchMin(n, i, -1); old != 0 || err != nil {
			return fmt.Errorf("%d, %v", old, err)
		}
		if v, _ := Load(n, i); v != -1 {
			return fmt.Errorf("min(0, -1) left %d", v)
		}
		u := Must(Cast[uint32](i))
		Must(FetchMin(n, u, 5))
		if v, _ := Load(n, u); v != 5 {
			return fmt.Errorf("min(2^32-1, 5) left %d", v)
		}
		f := Must(New[float64](n))
		n.Must(Store(n, f, math.Inf(-1)))
		if old, err := FetchMax(n, f, 2.5); err != nil || !math.IsInf(old, -1) {
			return fmt.Errorf("%v, %v", old, err)
		}
		if v, _ := Load(n, f); v != 2.5 {
			return fmt.Errorf("max left %v", v)
		}
		return nil
	})
}

// All ranks hammer one cell: nothing is lost.
func TestAtomicsTogether(t *testing.T) {
	const times = 2000
	type bank struct {
		count  uint64
		sum    float64
		small  uint32
		bits   uint64
		most   int64
		parity uint32
		tenths int64 // FCAA: never above 100
	}
	runN(t, 4, func(n *Node) error {
		p := Must(New[bank](n))
		p = p.On(0)
		var errAll error
		check := func(_ any, err error) { errAll = errors.Join(errAll, err) }
		got := 0
		for i := range times {
			check(FetchAdd(n, Field(p, func(b *bank) *uint64 { return &b.count }), 1))
			check(FetchAdd(n, Field(p, func(b *bank) *float64 { return &b.sum }), 0.5))
			check(FetchAdd(n, Field(p, func(b *bank) *uint32 { return &b.small }), 3))
			check(FetchOr(n, Field(p, func(b *bank) *uint64 { return &b.bits }), 1<<(16*n.Rank()+i%16)))
			check(FetchMax(n, Field(p, func(b *bank) *int64 { return &b.most }), int64(i*n.Size()+n.Rank())))
			check(FetchXor(n, Field(p, func(b *bank) *uint32 { return &b.parity }), 1<<n.Rank()))
			_, added, err := FetchCompareAdd(n, Field(p, func(b *bank) *int64 { return &b.tenths }), 99, 1)
			check(nil, err)
			if added {
				got++
			}
		}
		if errAll != nil {
			return errAll
		}
		Must(FetchAdd(n, Field(p.On(1), func(b *bank) *uint64 { return &b.count }), uint64(got)))
		n.Must(n.Barrier())
		b := Must(p.Get(n))
		want := bank{count: 4 * times, sum: 2 * times, small: 12 * times, bits: ^uint64(0), most: 4*times - 1, tenths: 100}
		if b != want {
			return fmt.Errorf("%+v, want %+v", b, want)
		}
		if taken, err := p.On(1).Get(n); err != nil || taken.count != 100 {
			return fmt.Errorf("%d took, want 100 (%v)", taken.count, err)
		}
		return n.Barrier()
	})
}

type item struct {
	next Ptr[item]
	from uint32
	no   uint32
}

// A Ptr in shared memory is swapped like any word: a list built by all ranks at
// once loses no element.
func TestPtrInSharedMemory(t *testing.T) {
	const each = 200
	runN(t, 3, func(n *Node) error {
		head := Must(New[Ptr[item]](n))
		head = head.On(1)
		for i := range each {
			p := Must(Alloc[item](n, 1))
			for {
				first := Must(Load(n, head))
				n.Must(p.Put(n, item{first, uint32(n.Rank()), uint32(i)}))
				if _, ok, err := CompareAndSwap(n, head, first, p); err != nil {
					return err
				} else if ok {
					break
				}
			}
		}
		n.Must(n.Barrier())
		seen := map[item]bool{}
		p, err := Load(n, head)
		for !p.IsNil() && err == nil {
			var it item
			if it, err = p.Get(n); err != nil {
				return err
			}
			p = it.next
			it.next = Ptr[item]{}
			seen[it] = true
		}
		if err != nil || len(seen) != 3*each {
			return fmt.Errorf("the list has %d items, want %d (%v)", len(seen), 3*each, err)
		}
		return n.Barrier()
	})
}

// TestMinimumOfOddFloats: zeros are told apart and NaN is heeded, with direct
// access and without.
func TestMinimumOfOddFloats(t *testing.T) {
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	for _, direct := range []bool{true, false} {
		err := Run(Config{Ranks: 1}, func(n *Node) error {
			p := Must(Alloc[float64](n, 1))
			if !direct {
				views := n.views
				n.views = segment.Views{}
				defer func() { n.views = views }()
			}
			for _, was := range []float64{0, zero, 1, -1, nan, inf, -inf} {
				for _, v := range []float64{0, zero, 1, -1, nan, inf, -inf} {
					for i, op := range []func(*Node, Ptr[float64], float64) (float64, error){FetchMin[float64], FetchMax[float64]} {
						want := []func(a, b float64) float64{math.Min, math.Max}[i](was, v)
						n.Must(p.Put(n, was))
						Must(op(n, p, v))
						got := Must(p.Get(n))
						if got != want && (got == got || want == want) || math.Signbit(got) != math.Signbit(want) && got == 0 {
							t.Errorf("direct %v, operation %d on %v with %v: %v, want %v", direct, i, was, v, got, want)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
