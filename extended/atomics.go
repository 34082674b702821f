package extended

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// fcaaResult is what fetch-compare-and-add leaves, and whether it added.
func fcaaResult(t conduits.AtomicType, old, compare, add uint64) (after uint64, ok bool) {
	switch t {
	case conduits.Int32:
		ok = int32(old) <= int32(compare)
	case conduits.Int64:
		ok = int64(old) <= int64(compare)
	default:
		ok = old <= compare
	}
	if !ok {
		return old, false
	}
	if t.Size() == 4 {
		return uint64(uint32(old) + uint32(add)), true
	}
	return old + add, true
}

// checkOp reports whether op exists for t.
func checkOp(what string, op conduits.AtomicOp, t conduits.AtomicType) error {
	return conduits.CheckAtomic(what, op, t, 0)
}

// checkAtomic says what is wrong with an atomic, nil if the conduit, or direct
// access, may perform it.
func (x *Endpoint) checkAtomic(what string, rank int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType) error {
	if err := x.checkRank(what, rank); err != nil {
		return err
	}
	if err := conduits.CheckAtomic(what, op, t, to); err != nil {
		return err
	}
	return x.check(what, rank, to, uint64(t.Size()), segment.RightAtomic)
}

// atomicSlow performs a blocking atomic through the conduit.
//
//go:noinline
func (x *Endpoint) atomicSlow(what string, rank int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, err error) {
	if x.exposed != nil && to.Exposed() {
		k := conduits.Access{Verb: conduits.Atomic, Op: op, Type: t, Rank: rank, At: to, A: a, B: b}
		if x.exposed.Now(&k) {
			return k.Value, nil
		}
	}
	if err := x.checkAtomic(what, rank, to, op, t); err != nil {
		return 0, err
	}
	f, err := x.begin(rank, wantBulk)
	if err != nil {
		return 0, err
	}
	f.wait, f.o.kind = true, resultWord64
	return f.value(f.atomic(to, op, t, a, b))
}

// atomicOp is the blocking form with the operation as a number.
func (x *Endpoint) atomicOp(what string, rank int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, err error) {
	if err := checkOp(what, op, t); err != nil {
		return 0, err
	}
	if old, ok := x.applyDirect(rank, to, op, t, a, b); ok {
		return old, nil
	}
	return x.atomicSlow(what, rank, to, op, t, a, b)
}

// result says where the outcome of a non-blocking atomic goes: nil for nowhere.
type result struct {
	kind resultKind
	r32  *uint32
	r64  *uint64
	ok   *bool
}

func (r *result) set(t conduits.AtomicType, old, a, b uint64) {
	o := op{kind: r.kind, typ: t, r32: r.r32, r64: r.r64, ok: r.ok, a: a, b: b}
	o.deliver(old)
}

func (f *flight) expect(r *result, t conduits.AtomicType, a, b uint64) {
	o := f.o
	o.kind, o.typ, o.r32, o.r64, o.ok, o.a, o.b = r.kind, t, r.r32, r.r64, r.ok, a, b
}

// atomicNB is the form with a handle.
func (x *Endpoint) atomicNB(what string, rank int, to segment.NLA, r result, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (Handle, error) {
	if err := x.checkAtomic(what, rank, to, op, t); err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if old, ok := x.applyDirect(rank, to, op, t, a, b); ok {
		r.set(t, old, a, b)
		return x.complete(what, rank)
	}
	f, err := x.beginNB(what, rank, wantBulk)
	if err != nil {
		return 0, err
	}
	f.expect(&r, t, a, b)
	return f.detach(f.atomic(to, op, t, a, b))
}

// atomicNBI is the form that a region counts: as a get if it has a result.
func (r *Region) atomicNBI(what string, rank int, to segment.NLA, res result, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) error {
	x, err := r.endpoint(what)
	if err != nil {
		return err
	}
	if err := x.checkAtomic(what, rank, to, op, t); err != nil {
		return err
	}
	if old, ok := x.applyDirect(rank, to, op, t, a, b); ok {
		res.set(t, old, a, b)
		return nil
	}
	if res.r32 == nil && res.r64 == nil && res.ok == nil {
		f, err := r.begin(rank, wantBulk, Puts)
		if err != nil {
			return err
		}
		return f.detachImplicit(f.atomic(to, op, t, a, b))
	}
	f, err := r.beginChild(rank, Gets)
	if err != nil {
		return err
	}
	f.expect(&res, t, a, b)
	return f.detachChild(f.atomic(to, op, t, a, b))
}

func result32(p *uint32) result { return result{kind: resultWord32, r32: p} }
func result64(p *uint64) result { return result{kind: resultWord64, r64: p} }
func fcaaTo32(p *uint32, ok *bool) result {
	return result{kind: resultFCAA32, r32: p, ok: ok}
}

func fcaaTo64(p *uint64, ok *bool) result {
	return result{kind: resultFCAA64, r64: p, ok: ok}
}
