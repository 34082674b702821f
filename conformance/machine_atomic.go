package conformance

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// methods are those that package extended has for the atomics of one type.
type methods[T any] struct {
	op    func(int, segment.NLA, conduits.AtomicOp, T, T) (T, error)
	nb    func(int, segment.NLA, *T, conduits.AtomicOp, T, T) (extended.Handle, error)
	nbi   func(*extended.Region, int, segment.NLA, *T, conduits.AtomicOp, T, T) error
	load  func(int, segment.NLA) (T, error)
	store func(int, segment.NLA, T) error
	swap  func(int, segment.NLA, T) (T, error)
	cas   func(int, segment.NLA, T, T) (T, bool, error)
	// fetch and blind are the others by operation.
	fetch  map[conduits.AtomicOp]func(int, segment.NLA, T) (T, error)
	blind  map[conduits.AtomicOp]func(int, segment.NLA, T) error
	fcaa   func(int, segment.NLA, T, T) (T, bool, error) // nil for floats, as the next
	fcaaNB func(int, segment.NLA, *T, *bool, T, T) (extended.Handle, error)
}

// atomicPlan is one atomic and what the model says of it.
type atomicPlan struct {
	t        conduits.AtomicType
	op       conduits.AtomicOp
	a, b     uint64
	old, now uint64
	fits     bool // of AtomicFCAA: it adds
	silent   bool // the result is not asked for
}

// atomicForms gives the forms of one atomic of type t.
func atomicForms(r *actor, f *flight, s Step, k atomicPlan) forms {
	switch k.t {
	case conduits.Int32:
		return formsOf(f, s, k, func(v int32) uint64 { return uint64(uint32(v)) }, func(v uint64) int32 { return int32(v) }, methods[int32]{
			op: r.x.AtomicInt32, nb: r.x.AtomicInt32NB, nbi: (*extended.Region).AtomicInt32NBI,
			load: r.x.LoadInt32, store: r.x.StoreInt32, swap: r.x.SwapInt32, cas: r.x.CompareAndSwapInt32,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, int32) (int32, error){
				conduits.AtomicAdd: r.x.FetchAddInt32,
				conduits.AtomicMin: r.x.FetchMinInt32,
				conduits.AtomicMax: r.x.FetchMaxInt32,
				conduits.AtomicAnd: r.x.FetchAndInt32,
				conduits.AtomicOr:  r.x.FetchOrInt32,
				conduits.AtomicXor: r.x.FetchXorInt32,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, int32) error{
				conduits.AtomicAdd: r.x.AddInt32,
				conduits.AtomicMin: r.x.MinInt32,
				conduits.AtomicMax: r.x.MaxInt32,
				conduits.AtomicAnd: r.x.AndInt32,
				conduits.AtomicOr:  r.x.OrInt32,
				conduits.AtomicXor: r.x.XorInt32,
			},
			fcaa: r.x.FetchCompareAddInt32, fcaaNB: r.x.FetchCompareAddInt32NB,
		})
	case conduits.Uint32:
		return formsOf(f, s, k, func(v uint32) uint64 { return uint64(v) }, func(v uint64) uint32 { return uint32(v) }, methods[uint32]{
			op: r.x.AtomicUint32, nb: r.x.AtomicUint32NB, nbi: (*extended.Region).AtomicUint32NBI,
			load: r.x.LoadUint32, store: r.x.StoreUint32, swap: r.x.SwapUint32, cas: r.x.CompareAndSwapUint32,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, uint32) (uint32, error){
				conduits.AtomicAdd: r.x.FetchAddUint32,
				conduits.AtomicMin: r.x.FetchMinUint32,
				conduits.AtomicMax: r.x.FetchMaxUint32,
				conduits.AtomicAnd: r.x.FetchAndUint32,
				conduits.AtomicOr:  r.x.FetchOrUint32,
				conduits.AtomicXor: r.x.FetchXorUint32,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, uint32) error{
				conduits.AtomicAdd: r.x.AddUint32,
				conduits.AtomicMin: r.x.MinUint32,
				conduits.AtomicMax: r.x.MaxUint32,
				conduits.AtomicAnd: r.x.AndUint32,
				conduits.AtomicOr:  r.x.OrUint32,
				conduits.AtomicXor: r.x.XorUint32,
			},
			fcaa: r.x.FetchCompareAddUint32, fcaaNB: r.x.FetchCompareAddUint32NB,
		})
	case conduits.Int64:
		return formsOf(f, s, k, func(v int64) uint64 { return uint64(v) }, func(v uint64) int64 { return int64(v) }, methods[int64]{
			op: r.x.AtomicInt64, nb: r.x.AtomicInt64NB, nbi: (*extended.Region).AtomicInt64NBI,
			load: r.x.LoadInt64, store: r.x.StoreInt64, swap: r.x.SwapInt64, cas: r.x.CompareAndSwapInt64,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, int64) (int64, error){
				conduits.AtomicAdd: r.x.FetchAddInt64,
				conduits.AtomicMin: r.x.FetchMinInt64,
				conduits.AtomicMax: r.x.FetchMaxInt64,
				conduits.AtomicAnd: r.x.FetchAndInt64,
				conduits.AtomicOr:  r.x.FetchOrInt64,
				conduits.AtomicXor: r.x.FetchXorInt64,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, int64) error{
				conduits.AtomicAdd: r.x.AddInt64,
				conduits.AtomicMin: r.x.MinInt64,
				conduits.AtomicMax: r.x.MaxInt64,
				conduits.AtomicAnd: r.x.AndInt64,
				conduits.AtomicOr:  r.x.OrInt64,
				conduits.AtomicXor: r.x.XorInt64,
			},
			fcaa: r.x.FetchCompareAddInt64, fcaaNB: r.x.FetchCompareAddInt64NB,
		})
	case conduits.Uint64:
		return formsOf(f, s, k, func(v uint64) uint64 { return v }, func(v uint64) uint64 { return v }, methods[uint64]{
			op: r.x.AtomicUint64, nb: r.x.AtomicUint64NB, nbi: (*extended.Region).AtomicUint64NBI,
			load: r.x.LoadUint64, store: r.x.StoreUint64, swap: r.x.SwapUint64, cas: r.x.CompareAndSwapUint64,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, uint64) (uint64, error){
				conduits.AtomicAdd: r.x.FetchAddUint64,
				conduits.AtomicMin: r.x.FetchMinUint64,
				conduits.AtomicMax: r.x.FetchMaxUint64,
				conduits.AtomicAnd: r.x.FetchAndUint64,
				conduits.AtomicOr:  r.x.FetchOrUint64,
				conduits.AtomicXor: r.x.FetchXorUint64,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, uint64) error{
				conduits.AtomicAdd: r.x.AddUint64,
				conduits.AtomicMin: r.x.MinUint64,
				conduits.AtomicMax: r.x.MaxUint64,
				conduits.AtomicAnd: r.x.AndUint64,
				conduits.AtomicOr:  r.x.OrUint64,
				conduits.AtomicXor: r.x.XorUint64,
			},
			fcaa: r.x.FetchCompareAddUint64, fcaaNB: r.x.FetchCompareAddUint64NB,
		})
	case conduits.Float32:
		return formsOf(f, s, k, func(v float32) uint64 { return uint64(math.Float32bits(v)) }, func(v uint64) float32 { return math.Float32frombits(uint32(v)) }, methods[float32]{
			op: r.x.AtomicFloat32, nb: r.x.AtomicFloat32NB, nbi: (*extended.Region).AtomicFloat32NBI,
			load: r.x.LoadFloat32, store: r.x.StoreFloat32, swap: r.x.SwapFloat32, cas: r.x.CompareAndSwapFloat32,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, float32) (float32, error){
				conduits.AtomicAdd: r.x.FetchAddFloat32,
				conduits.AtomicMin: r.x.FetchMinFloat32,
				conduits.AtomicMax: r.x.FetchMaxFloat32,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, float32) error{
				conduits.AtomicAdd: r.x.AddFloat32,
				conduits.AtomicMin: r.x.MinFloat32,
				conduits.AtomicMax: r.x.MaxFloat32,
			},
		})
	default:
		return formsOf(f, s, k, math.Float64bits, math.Float64frombits, methods[float64]{
			op: r.x.AtomicFloat64, nb: r.x.AtomicFloat64NB, nbi: (*extended.Region).AtomicFloat64NBI,
			load: r.x.LoadFloat64, store: r.x.StoreFloat64, swap: r.x.SwapFloat64, cas: r.x.CompareAndSwapFloat64,
			fetch: map[conduits.AtomicOp]func(int, segment.NLA, float64) (float64, error){
				conduits.AtomicAdd: r.x.FetchAddFloat64,
				conduits.AtomicMin: r.x.FetchMinFloat64,
				conduits.AtomicMax: r.x.FetchMaxFloat64,
			},
			blind: map[conduits.AtomicOp]func(int, segment.NLA, float64) error{
				conduits.AtomicAdd: r.x.AddFloat64,
				conduits.AtomicMin: r.x.MinFloat64,
				conduits.AtomicMax: r.x.MaxFloat64,
			},
		})
	}
}

// formsOf is atomicForms for the methods m of one type, whose values travel as
// bits here.
func formsOf[T any](f *flight, s Step, k atomicPlan, bits func(T) uint64, from func(uint64) T, m methods[T]) forms {
	rank, to, op, ta, tb := s.Peer, addr(s.At), k.op, from(k.a), from(k.b)
	result, ok := new(T), new(bool)
	*result = from(^k.old)
	p := result
	if k.silent {
		p = nil
	}
	told := func(want uint64) func() string {
		return func() string {
			if got := bits(*result); got != want {
				return fmt.Sprintf("atomic %d with %#x and %#x on %#x gives %#x, not %#x", op, k.a, k.b, k.old, got, want)
			}
			return ""
		}
	}
	f.check = told(k.old)
	block := func() (err error) { *result, err = m.op(rank, to, op, ta, tb); return err }
	if s.Form == "named" {
		block = func() (err error) {
			switch {
			case op == conduits.AtomicLoad:
				*result, err = m.load(rank, to)
			case op == conduits.AtomicStore:
				f.check = nil
				err = m.store(rank, to, ta)
			case op == conduits.AtomicSwap:
				*result, err = m.swap(rank, to, ta)
			case op == conduits.AtomicCAS:
				*result, *ok, err = m.cas(rank, to, ta, tb)
				f.check = both(f.check, ok, k.old == k.a)
			case op == conduits.AtomicFCAA:
				*result, *ok, err = m.fcaa(rank, to, ta, tb)
				f.check = both(told(k.now), ok, k.fits)
			case k.silent:
				f.check = nil
				err = m.blind[op](rank, to, ta)
			default:
				*result, err = m.fetch[op](rank, to, ta)
			}
			return err
		}
	}
	nb := func() (extended.Handle, error) { return m.nb(rank, to, p, op, ta, tb) }
	if op == conduits.AtomicFCAA && m.fcaaNB != nil && s.Value&8 == 0 && s.Form == "nb" {
		f.check = both(told(k.now), ok, k.fits)
		nb = func() (extended.Handle, error) { return m.fcaaNB(rank, to, result, ok, ta, tb) }
	} else if k.silent && s.Form != "" && s.Form != "named" {
		f.check = nil
	}
	return forms{block: block, nb: nb, nbi: func(g *extended.Region) error { return m.nbi(g, rank, to, p, op, ta, tb) }}
}

// both is a check of a value and of a bool.
func both(check func() string, ok *bool, want bool) func() string {
	return func() string {
		if *ok != want {
			return fmt.Sprintf("atomic says %v, not %v", *ok, want)
		}
		return check()
	}
}
