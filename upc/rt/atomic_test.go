package rt

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/gas"
)

// eachOp does every operation of a domain, by one thread, beside what 7.6.3 says.
func eachOp[T Scalar](t *Thread, typ AtomicType, ops AtomicOps) {
	d := t.AllDomainAlloc(typ, ops)
	p := MakePhaseless((t.me+1)%t.threads, t.Base(objE).Addr())
	Put(t, p, T(5))
	var v T = 5
	for _, c := range []struct {
		op   AtomicOps
		a, b T
		want T // afterwards
	}{
		{AtomicGet, 0, 0, 5},
		{AtomicSet, 9, 0, 9},
		{AtomicCSwap, 8, 1, 9},
		{AtomicCSwap, 9, 12, 12},
		{AtomicAdd, 3, 0, 15},
		{AtomicSub, 5, 0, 10},
		{AtomicMult, 3, 0, 30},
		{AtomicInc, 0, 0, 31},
		{AtomicDec, 0, 0, 30},
		{AtomicMin, 40, 0, 30},
		{AtomicMin, 28, 0, 28},
		{AtomicMax, 29, 0, 29},
		{AtomicAnd, 28, 0, 28},
		{AtomicOr, 3, 0, 31},
		{AtomicXor, 16, 0, 15},
	} {
		if ops&c.op == 0 {
			continue
		}
		if old := Atomic(t, d, c.a == 3, c.op, p, c.a, c.b); old != v {
			t.failf("type %d, operation %#x: %v was there, not %v", typ, c.op, old, v)
		}
		if v = Get[T](t, p); v != c.want {
			t.failf("type %d, operation %#x: %v is there, not %v", typ, c.op, v, c.want)
		}
	}
	t.AllDomainFree(d)
}

func TestAtomicOps(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		eachOp[int32](t, AtomicInt32, intOps)
		eachOp[uint32](t, AtomicUint32, intOps)
		eachOp[int64](t, AtomicInt64, intOps)
		eachOp[uint64](t, AtomicUint64, intOps)
		eachOp[float32](t, AtomicFloat, floatOps)
		eachOp[float64](t, AtomicDouble, floatOps)
		eachOp[Phaseless](t, AtomicPTS, anyOps)
	})
}

// TestAtomic: no operation of many threads on one word is lost.
func TestAtomic(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		d := t.AllDomainAlloc(AtomicDouble, AtomicMult|AtomicAdd|AtomicGet)
		p := t.Base(objE)
		if t.me == 0 {
			Put(t, p, 1.0)
			Put(t, p.AddLocal(1, 8), 0.0)
		}
		t.BarrierAny()
		for i := range 20 {
			Atomic(t, d, i%2 == 0, AtomicMult, p, 2.0, 0)
			Atomic(t, d, i%2 == 0, AtomicAdd, p.AddLocal(1, 8), 0.5, 0)
		}
		t.BarrierAny()
		if a, b := Get[float64](t, p), Get[float64](t, p.AddLocal(1, 8)); a != 1<<60 || b != 30 {
			t.failf("the product is %v and the sum %v", a, b)
		}
		t.AllDomainFree(d)
	})
}

func TestAtomicMisuse(t *testing.T) {
	refused(t, 2, gas.ErrBadArg, "operations 0x400 of type 5", func(t *Thread) { t.AllDomainAlloc(AtomicDouble, AtomicAnd) })
	refused(t, 2, gas.ErrBadArg, "of type 6", func(t *Thread) { t.AllDomainAlloc(AtomicPTS, AtomicAdd) })
	refused(t, 2, gas.ErrBadArg, "on thread 0", func(t *Thread) { t.AllDomainAlloc(AtomicType(t.me), AtomicAdd) })
	refused(t, 2, gas.ErrBadArg, "of a domain with 0x8", func(t *Thread) {
		Atomic[int32](t, t.AllDomainAlloc(AtomicInt32, AtomicAdd), false, AtomicSub, t.Base(objE), 1, 0)
	})
	refused(t, 2, gas.ErrBadArg, "of type int64", func(t *Thread) {
		Atomic[int64](t, t.AllDomainAlloc(AtomicInt32, AtomicAdd), false, AtomicAdd, t.Base(objE), 1, 0)
	})
	refused(t, 2, gas.ErrBadArg, "of a domain with 0x0", func(t *Thread) {
		d := t.AllDomainAlloc(AtomicInt32, AtomicAdd)
		t.AllDomainFree(d)
		Atomic[int32](t, d, false, AtomicAdd, t.Base(objE), 1, 0)
	})
}

// TestCastable: what threads say of memory is what casts give.
func TestCastable(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		for r := range t.threads {
			p := MakePhaseless(r, t.Base(objE).Addr()).AddLocal(t.me, 8)
			info := t.Info(r)
			q := (*uint64)(t.Cast(p, 8))
			if (q != nil) != (info.Guaranteed == CastableAll) || info.Guaranteed != info.Probable || r == t.me && q == nil {
				t.failf("memory of thread %d is castable as %+v, and the cast gives %v", r, info, q)
			}
			if q == nil {
				continue
			}
			*q = 77
			if Get[uint64](t, p) != 77 {
				t.failf("the cast of %v leads elsewhere", p)
			}
		}
		if t.Cast(0, 8) != nil {
			t.failf("null is cast to something")
		}
		a := t.TicksNow()
		t.BarrierAny()
		if b := t.TicksNow(); b < a || TicksToNS(b-a) != b-a {
			t.failf("ticks go from %d to %d", a, b)
		}
	})
}

func TestGlobalExit(t *testing.T) {
	err := run("shm", 2, func(t *Thread) {
		if t.me == 1 {
			t.GlobalExit(7)
		}
		t.BarrierAny()
	})
	var exit *boot.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("the job ends with %v", err)
	}
}
