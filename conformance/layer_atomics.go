package conformance

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// atomicChecks are testratomic's.
var atomicChecks = []check{
	{name: "atomics/model", seeded: true, run: atomicsModel},
	{name: "atomics/counters", seeded: true, run: atomicsCounters},
	{name: "atomics/bounded", seeded: true, run: atomicsBounded},
}

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

// atomics are all atomics of one type.
type atomics[T number] struct {
	name  string
	fcaa  func(x *extended.Initiator, rank int, to segment.NLA, limit, v T) (T, bool, error) // nil of floats
	model func(op extended.AtomicOp, old, a, b T) T
}

var atomicTypes = []func(s *stack){
	atomics[int32]{"int32", extended.FetchCompareAdd[int32], applyInteger[int32]}.check,
	atomics[uint32]{"uint32", extended.FetchCompareAdd[uint32], applyInteger[uint32]}.check,
	atomics[int64]{"int64", extended.FetchCompareAdd[int64], applyInteger[int64]}.check,
	atomics[uint64]{"uint64", extended.FetchCompareAdd[uint64], applyInteger[uint64]}.check,
	atomics[float32]{"float32", nil, applyFloat[float32]}.check,
	atomics[float64]{"float64", nil, applyFloat[float64]}.check,
}

// applyInteger is what op leaves.
func applyInteger[T int32 | uint32 | int64 | uint64](op extended.AtomicOp, old, a, b T) T {
	switch op {
	case extended.AtomicAnd:
		return old & a
	case extended.AtomicOr:
		return old | a
	case extended.AtomicXor:
		return old ^ a
	case extended.AtomicMin:
		return min(old, a)
	case extended.AtomicMax:
		return max(old, a)
	case extended.AtomicFCAA:
		if old <= a {
			return old + b
		}
		return old
	}
	return apply(op, old, a, b)
}

func applyFloat[T float32 | float64](op extended.AtomicOp, old, a, b T) T {
	switch op {
	case extended.AtomicMin:
		return T(math.Min(float64(old), float64(a)))
	case extended.AtomicMax:
		return T(math.Max(float64(old), float64(a)))
	}
	return apply(op, old, a, b)
}

func apply[T number](op extended.AtomicOp, old, a, b T) T {
	switch op {
	case extended.AtomicStore, extended.AtomicSwap:
		return a
	case extended.AtomicCAS:
		if bitsOf(old) == bitsOf(a) {
			return b
		}
	case extended.AtomicAdd:
		return old + a
	}
	return old
}

func bitsOf[T number](v T) uint64 {
	switch v := any(v).(type) {
	case int32:
		return uint64(uint32(v))
	case uint32:
		return uint64(v)
	case int64:
		return uint64(v)
	case uint64:
		return v
	case float32:
		return uint64(math.Float32bits(v))
	case float64:
		return math.Float64bits(v)
	}
	panic("no number")
}

func ofBits[T number](u uint64) (v T) {
	switch p := any(&v).(type) {
	case *int32:
		*p = int32(u)
	case *uint32:
		*p = uint32(u)
	case *int64:
		*p = int64(u)
	case *uint64:
		*p = u
	case *float32:
		*p = math.Float32frombits(uint32(u))
	case *float64:
		*p = math.Float64frombits(u)
	}
	return v
}

// sameNumber reports whether two values are the same bits, or both not a number.
func sameNumber[T number](a, b T) bool { return bitsOf(a) == bitsOf(b) || a != a && b != b }

// draw makes up a value, often one that is special or has been there before.
func (k *atomics[T]) draw(rng *rand.Rand, before []T) T {
	var v T
	if k.fcaa == nil {
		special := []float64{0, math.Copysign(0, -1), 1, -1.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, 1e-300}
		switch f := any(&v).(type) {
		case *float32:
			*f = float32(special[rng.IntN(len(special))])
		case *float64:
			*f = special[rng.IntN(len(special))]
		}
	} else {
		special := []uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 63, 1<<63 - 1, 1 << 32}
		v = ofBits[T](special[rng.IntN(len(special))])
	}
	switch rng.IntN(4) {
	case 0:
		v = before[rng.IntN(len(before))]
	case 1:
		v = T(rng.IntN(7))
	case 2:
		if k.fcaa != nil {
			v = ofBits[T](rng.Uint64())
		}
	}
	return v
}

const (
	atomicBytes = 64 // of each rank at each rank; the outer thirds stay as they are
	atomicFirst = 16
	atomicWords = 4
)

// check does random atomics on words that no other rank uses, beside a model.
func (k atomics[T]) check(s *stack) {
	x, rng, base := s.ext, s.RNG, s.Rank*atomicBytes
	step := 8
	if bitsOf(ofBits[T](^uint64(0))) == 1<<32-1 {
		step = 4
	}
	at := func(w int) segment.NLA { return contract.At(base + atomicFirst + w*step) }
	model := make([][]T, s.Size)
	edge := make([]byte, atomicBytes)
	for r := range model {
		model[r] = make([]T, atomicWords)
		s.Must(x.Put(r, at(0)-atomicFirst, contract.Fill(edge, 1, 0)))
		for w := range model[r] {
			s.Must(extended.Store[T](x, r, at(w), 0))
		}
	}
	set := x.NewRegion()
	for range 150 {
		r, w := rng.IntN(s.Size), rng.IntN(atomicWords)
		old, a, b := model[r][w], k.draw(rng, model[r]), k.draw(rng, model[r])
		ops := []extended.AtomicOp{
			extended.AtomicLoad, extended.AtomicStore, extended.AtomicSwap, extended.AtomicCAS, extended.AtomicAdd, extended.AtomicMin, extended.AtomicMax,
			extended.AtomicAnd, extended.AtomicOr, extended.AtomicXor, extended.AtomicFCAA,
		}
		if k.fcaa == nil {
			ops = ops[:7]
		}
		op, how := ops[rng.IntN(len(ops))], rng.IntN(9)
		got, ok := old, false
		var err error
		var h extended.Handle
		switch how {
		case 0:
			if op = extended.AtomicStore; rng.IntN(2) == 0 {
				err = extended.Store(x, r, at(w), a)
			} else {
				op = extended.AtomicAdd
				err = extended.Add(x, r, at(w), a)
			}
		case 1:
			if op = extended.AtomicSwap; rng.IntN(2) == 0 {
				got, err = extended.Swap(x, r, at(w), a)
			} else {
				op = extended.AtomicAdd
				got, err = extended.FetchAdd(x, r, at(w), a)
			}
		case 2:
			got, err = extended.Atomic(x, r, at(w), op, a, b)
		case 3:
			got = a
			h, err = extended.AtomicNB(x, r, at(w), &got, op, a, b)
		case 4:
			h, err = extended.AtomicNB(x, r, at(w), nil, op, a, b)
		case 5:
			got = a
			s.Must(extended.AtomicNBI(set, r, at(w), &got, op, a, b))
			err = set.Sync(extended.Gets)
		case 6:
			s.Must(extended.AtomicNBI(set, r, at(w), nil, op, a, b))
			err = set.Sync(extended.Puts)
		case 7:
			op = extended.AtomicCAS
			got, ok, err = extended.CompareAndSwap(x, r, at(w), a, b)
			if want := bitsOf(old) == bitsOf(a); ok != want {
				s.Fatalf("%s: compare %v with %v and swap: %v", k.name, old, a, ok)
			}
		default:
			if k.fcaa == nil {
				op = extended.AtomicLoad
				got, err = extended.Load[T](x, r, at(w))
				break
			}
			op = extended.AtomicFCAA
			got, ok, err = k.fcaa(x, r, at(w), a, b)
			if ok != (old <= a) {
				s.Fatalf("%s: %v, compared with %v, plus %v: added %v", k.name, old, a, b, ok)
			}
		}
		s.Must(err)
		s.Must(x.Wait(h))
		if !sameNumber(got, old) {
			s.Fatalf("%s: operation %d, form %d, found %v, not %v", k.name, op, how, got, old)
		}
		now, err := extended.Load[T](x, r, at(w))
		s.Must(err)
		if want := k.model(op, old, a, b); !sameNumber(now, want) {
			s.Fatalf("%s: operation %d, form %d, on %v with %v and %v left %v, not %v", k.name, op, how, old, a, b, now, want)
		}
		model[r][w] = now // the bits of what is not a number are whose they are
	}
	for r := range model {
		for w := range model[r] {
			now, err := extended.Load[T](x, r, at(w))
			s.Must(err)
			if bitsOf(now) != bitsOf(model[r][w]) {
				s.Fatalf("%s: word %d at rank %d is %v, not %v", k.name, w, r, now, model[r][w])
			}
		}
		s.Must(x.Get(r, at(0)-atomicFirst, edge))
		end := atomicFirst + atomicWords*step
		if contract.Wrong(edge[:atomicFirst], 1, 0) >= 0 || contract.Wrong(edge[end:], 1, end) >= 0 {
			s.Fatalf("%s: bytes beside the words were changed at rank %d", k.name, r)
		}
	}
}

// atomicsModel: random atomics of each type, in all forms, against a model.
func atomicsModel(c *ctx) {
	const n = 3
	eachHandling(c, n, n*atomicBytes, func(s *stack) {
		for _, check := range atomicTypes {
			check(s)
		}
	})
}

// draws has every rank take tickets with take, and checks that all of them
// together are 0, 1, 2 and so on.
func draws(c *ctx, n, each int, what string, take func(s *stack) (float64, error)) {
	tickets := make([][]float64, n)
	c.stack(n, conduits.Config{}, layers{segment: segment.PageSize}, func(s *stack) {
		last := -1.0
		for range each {
			v, err := take(s)
			s.Must(err)
			if v <= last {
				s.Fatalf("%s: ticket %v after %v", what, v, last)
			}
			tickets[s.Rank], last = append(tickets[s.Rank], v), v
		}
		s.barrier()
		if s.Rank != 0 {
			return
		}
		all := slices.Sorted(slices.Values(slices.Concat(tickets...)))
		for i, v := range all {
			if v != float64(i) {
				s.Fatalf("%s: ticket %d of %d is %v", what, i, len(all), v)
			}
		}
	})
}

// atomicsCounters: one counter that all ranks add to, by every kind of addition:
// none is lost, no two get the same.
func atomicsCounters(c *ctx) {
	const n, each = 4, 60
	host := c.RNG.IntN(n)
	for what, take := range map[string]func(s *stack) (float64, error){
		"int32": func(s *stack) (float64, error) {
			v, err := extended.FetchAdd[int32](s.ext, host, contract.At(4), 1)
			return float64(v), err
		},
		"uint32": func(s *stack) (float64, error) {
			v, err := extended.FetchAdd[uint32](s.ext, host, contract.At(4), 1)
			return float64(v), err
		},
		"int64": func(s *stack) (float64, error) {
			v, err := extended.FetchAdd[int64](s.ext, host, contract.At(8), 1)
			return float64(v), err
		},
		"uint64": func(s *stack) (float64, error) {
			v, err := extended.FetchAdd[uint64](s.ext, host, contract.At(8), 1)
			return float64(v), err
		},
		"float32": func(s *stack) (float64, error) {
			v, err := extended.FetchAdd[float32](s.ext, host, contract.At(12), 1)
			return float64(v), err
		},
		"float64": func(s *stack) (float64, error) { return extended.FetchAdd[float64](s.ext, host, contract.At(16), 1) },
		"by handle": func(s *stack) (float64, error) {
			v := ^uint64(0)
			h, err := extended.AtomicNB[uint64](s.ext, host, contract.At(24), &v, extended.AtomicAdd, 1, 0)
			s.Must(err)
			return float64(v), s.ext.Wait(h)
		},
		"implicitly": func(s *stack) (float64, error) {
			v := int32(-1)
			r := s.ext.NewRegion()
			s.Must(extended.AtomicNBI[int32](r, host, contract.At(32), &v, extended.AtomicAdd, 1, 0))
			err := r.Sync(extended.All)
			return float64(v), err
		},
		"compare and swap": func(s *stack) (float64, error) {
			old, err := extended.Load[uint64](s.ext, host, contract.At(40))
			for err == nil {
				prev, ok, e := extended.CompareAndSwap[uint64](s.ext, host, contract.At(40), old, old+1)
				if ok {
					break
				}
				if prev == old {
					s.Fatalf("the word was %d as expected, and was not swapped", prev)
				}
				old, err = prev, e
			}
			return float64(old), err
		},
	} {
		draws(c, n, each, what, take)
		if c.Failed() {
			return
		}
	}
}

// atomicsBounded: fetch-compare-and-add lets no more through than there are
// places, from any ranks.
func atomicsBounded(c *ctx) {
	const n, each, places = 4, 50, 37
	var got [n]int
	c.stack(n, conduits.Config{}, layers{segment: segment.PageSize}, func(s *stack) {
		for i := range each {
			before, ok, err := extended.FetchCompareAdd[int32](s.ext, i%2, contract.At(8), places-1, 1)
			s.Must(err)
			if ok {
				got[s.Rank]++
			}
			if before < 0 || before > places || ok != (before < places) {
				s.Fatalf("place %d of %d, %v", before, places, ok)
			}
		}
		s.barrier()
		if s.Rank != 0 {
			return
		}
		sum := 0
		for _, k := range got {
			sum += k
		}
		if sum != 2*places {
			s.Errorf("%d came through, not %d", sum, 2*places)
		}
	})
}
