package rt

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/gas"
)

// eachOp does every operation of a domain, by one thread, beside what 7.6.4.3 says.
func eachOp[T Scalar](t *Thread, typ AtomicType, ops Op) {
	d := t.AllDomainAlloc(typ, ops)
	p := MakePhaseless((t.me+1)%t.threads, t.Base(objE).Addr())
	Put(t, p, T(5))
	var v T = 5
	for _, c := range []struct {
		op   Op
		a, b T
		want T // afterwards
	}{
		{OpGet, 0, 0, 5},
		{OpSet, 9, 0, 9},
		{OpCSwap, 8, 1, 9},
		{OpCSwap, 9, 12, 12},
		{OpAdd, 3, 0, 15},
		{OpSub, 5, 0, 10},
		{OpMult, 3, 0, 30},
		{OpInc, 0, 0, 31},
		{OpDec, 0, 0, 30},
		{OpMin, 40, 0, 30},
		{OpMin, 28, 0, 28},
		{OpMax, 29, 0, 29},
		{OpAnd, 28, 0, 28},
		{OpOr, 3, 0, 31},
		{OpXor, 16, 0, 15},
	} {
		if ops&c.op == 0 {
			continue
		}
		if old := Atomic(t, d, c.a == 3, c.op, p, c.a, c.b); old != v {
			t.failf("type %d, operation %v: %v was there, not %v", typ, c.op, old, v)
		}
		if v = Get[T](t, p); v != c.want {
			t.failf("type %d, operation %v: %v is there, not %v", typ, c.op, v, c.want)
		}
	}
	t.AllDomainFree(d)
}

func TestOp(t *testing.T) {
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
		d := t.AllDomainAlloc(AtomicDouble, OpMult|OpAdd|OpGet)
		p := t.Base(objE)
		if t.me == 0 {
			Put(t, p, 1.0)
			Put(t, p.AddLocal(1, 8), 0.0)
		}
		t.BarrierAny()
		for i := range 20 {
			Atomic(t, d, i%2 == 0, OpMult, p, 2.0, 0)
			Atomic(t, d, i%2 == 0, OpAdd, p.AddLocal(1, 8), 0.5, 0)
		}
		t.BarrierAny()
		if a, b := Get[float64](t, p), Get[float64](t, p.AddLocal(1, 8)); a != 1<<60 || b != 30 {
			t.failf("the product is %v and the sum %v", a, b)
		}
		t.AllDomainFree(d)
	})
}

// TestAtomicPointers: pointers-to-shared are compared as == does, whatever their phases (7.6.4.3),
// and operands lie where the program says.
func TestAtomicPointers(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		d := t.AllDomainAlloc(AtomicPTS, anyOps)
		p := MakePhaseless((t.me+1)%t.threads, t.Base(objE).Addr())
		two, none := makePhased(1, 2, p.Addr()), makePhased(1, 0, p.Addr())
		other, was := makePhased(1, 2, p.Addr()+8), Phased(0)
		Put(t, p, two)
		AtomicAt[Phased](t, d, true, unsafe.Pointer(&was), OpCSwap, p, unsafe.Pointer(&other), unsafe.Pointer(&none))
		if was != two || Get[Phased](t, p) != two {
			t.failf("%v was there, and a swap for another place leaves %v", was, Get[Phased](t, p))
		}
		AtomicAt[Phased](t, d, true, unsafe.Pointer(&was), OpCSwap, p, unsafe.Pointer(&none), unsafe.Pointer(&other))
		if was != two || Get[Phased](t, p) != other {
			t.failf("%v was there, and a swap for the same place leaves %v", was, Get[Phased](t, p))
		}
		// Of Phaseless ones, the bits at a phase's place are of the address.
		Put(t, p, Phaseless(two))
		AtomicAt[Phaseless](t, d, false, nil, OpCSwap, p, unsafe.Pointer(&none), unsafe.Pointer(&other))
		if got := Get[Phased](t, p); got != two {
			t.failf("a swap of a phaseless pointer leaves %v", got)
		}
		t.AllDomainFree(d)
	})
}

func TestAtomicMisuse(t *testing.T) {
	refused(t, 2, gas.ErrBadArg, "type 20 does not have UPC_AND", func(t *Thread) { t.AllDomainAlloc(AtomicDouble, OpAnd) })
	refused(t, 2, gas.ErrBadArg, "type 22 does not have UPC_ADD", func(t *Thread) { t.AllDomainAlloc(AtomicPTS, OpAdd) })
	refused(t, 2, gas.ErrBadArg, "on thread 0", func(t *Thread) { t.AllDomainAlloc(AtomicInt+AtomicType(t.me), OpAdd) })
	refused(t, 2, gas.ErrBadArg, "UPC_SUB of a domain with UPC_ADD", func(t *Thread) {
		Atomic[int32](t, t.AllDomainAlloc(AtomicInt32, OpAdd), false, OpSub, t.Base(objE), 1, 0)
	})
	refused(t, 2, gas.ErrBadArg, "of type int64", func(t *Thread) {
		Atomic[int64](t, t.AllDomainAlloc(AtomicInt32, OpAdd), false, OpAdd, t.Base(objE), 1, 0)
	})
	refused(t, 2, gas.ErrBadArg, "no domains of type 1", func(t *Thread) { t.AllDomainAlloc(1, OpAdd) })
	refused(t, 2, gas.ErrBadArg, "UPC_ADD without an operand", func(t *Thread) {
		AtomicAt[Phased](t, t.AllDomainAlloc(AtomicInt, OpAdd), false, nil, OpAdd, t.Base(objE), nil, nil)
	})
	refused(t, 2, gas.ErrBadArg, "there is no atomic domain at", func(t *Thread) {
		d := t.AllDomainAlloc(AtomicInt32, OpAdd)
		t.AllDomainFree(d)
		Atomic[int32](t, d, false, OpAdd, t.Base(objE), 1, 0)
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
	var exit *conduits.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("the job ends with %v", err)
	}
}
