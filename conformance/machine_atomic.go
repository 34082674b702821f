package conformance

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

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
		return formsOf(r.x, f, s, k, extended.FetchCompareAdd[int32])
	case conduits.Uint32:
		return formsOf(r.x, f, s, k, extended.FetchCompareAdd[uint32])
	case conduits.Int64:
		return formsOf(r.x, f, s, k, extended.FetchCompareAdd[int64])
	case conduits.Uint64:
		return formsOf(r.x, f, s, k, extended.FetchCompareAdd[uint64])
	case conduits.Float32:
		return formsOf[float32](r.x, f, s, k, nil)
	default:
		return formsOf[float64](r.x, f, s, k, nil)
	}
}

// formsOf is atomicForms for one type, whose values travel as bits here; fcaa is its
// fetch-compare-and-add, if it has one.
func formsOf[T number](x *extended.Initiator, f *flight, s Step, k atomicPlan, fcaa func(*extended.Initiator, int, segment.NLA, T, T) (T, bool, error)) forms {
	rank, to, op, ta, tb := s.Peer, addr(s.At), k.op, ofBits[T](k.a), ofBits[T](k.b)
	result, ok := new(T), new(bool)
	*result = ofBits[T](^k.old)
	p := result
	if k.silent {
		p = nil
	}
	f.check = func() string {
		if got := bitsOf(*result); got != k.old {
			return fmt.Sprintf("atomic %d with %#x and %#x on %#x gives %#x", op, k.a, k.b, k.old, got)
		}
		return ""
	}
	block := func() (err error) { *result, err = extended.Atomic(x, rank, to, op, ta, tb); return err }
	if s.Form == "named" {
		block = func() (err error) {
			switch {
			case op == conduits.AtomicLoad:
				*result, err = extended.Load[T](x, rank, to)
			case op == conduits.AtomicStore:
				f.check = nil
				err = extended.Store(x, rank, to, ta)
			case op == conduits.AtomicSwap:
				*result, err = extended.Swap(x, rank, to, ta)
			case op == conduits.AtomicCAS:
				*result, *ok, err = extended.CompareAndSwap(x, rank, to, ta, tb)
				f.check = both(f.check, ok, k.old == k.a)
			case op == conduits.AtomicFCAA:
				*result, *ok, err = fcaa(x, rank, to, ta, tb)
				f.check = both(f.check, ok, k.fits)
			case op == conduits.AtomicAdd && k.silent:
				f.check = nil
				err = extended.Add(x, rank, to, ta)
			case op == conduits.AtomicAdd:
				*result, err = extended.FetchAdd(x, rank, to, ta)
			default:
				*result, err = extended.Atomic(x, rank, to, op, ta, tb)
			}
			return err
		}
	} else if k.silent && s.Form != "" {
		f.check = nil
	}
	return forms{
		block: block,
		nb:    func() (extended.Handle, error) { return extended.AtomicNB(x, rank, to, p, op, ta, tb) },
		nbi:   func(g *extended.Region) error { return extended.AtomicNBI(g, rank, to, p, op, ta, tb) },
	}
}

// number is the types of atomics.
type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
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

// both is a check of a value and of a bool.
func both(check func() string, ok *bool, want bool) func() string {
	return func() string {
		if *ok != want {
			return fmt.Sprintf("atomic says %v, not %v", *ok, want)
		}
		return check()
	}
}
