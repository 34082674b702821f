// The atomics library. What is unsafe here: Sizeof only.

package rt

import (
	"math"
	"unsafe"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// AtomicType is the type of an atomic domain (7.6.3).
type AtomicType int

// The types: UPC_INT32 and so on. AtomicPTS is a pointer-to-shared, packed.
const (
	AtomicInt32 AtomicType = iota
	AtomicUint32
	AtomicInt64
	AtomicUint64
	AtomicFloat
	AtomicDouble
	AtomicPTS
)

// AtomicOps is a set of operations of atomic domains (7.6.3).
type AtomicOps uint32

// The operations: UPC_GET and so on.
const (
	AtomicGet AtomicOps = 1 << iota
	AtomicSet
	AtomicCSwap
	AtomicAdd
	AtomicSub
	AtomicMult
	AtomicInc
	AtomicDec
	AtomicMin
	AtomicMax
	AtomicAnd
	AtomicOr
	AtomicXor

	anyOps   = AtomicGet | AtomicSet | AtomicCSwap
	floatOps = anyOps | AtomicAdd | AtomicSub | AtomicMult | AtomicInc | AtomicDec | AtomicMin | AtomicMax
	intOps   = floatOps | AtomicAnd | AtomicOr | AtomicXor
)

// Domain is upc_atomicdomain_t: a type, and the operations that threads do on words of it as
// long as they use the domain for them alone.
type Domain struct {
	typ AtomicType
	ops AtomicOps
}

// AllDomainAlloc is upc_all_atomicdomain_alloc (7.6.4.1): all threads call it with the same
// arguments. The hints of UPC choose nothing here.
func (t *Thread) AllDomainAlloc(typ AtomicType, ops AtomicOps) *Domain {
	const what = "upc_all_atomicdomain_alloc"
	t.together(what)
	legal := intOps
	switch typ {
	case AtomicFloat, AtomicDouble:
		legal = floatOps
	case AtomicPTS:
		legal = anyOps
	}
	if typ < 0 || typ > AtomicPTS || ops&^legal != 0 {
		t.must(errs.BadArg("upc: %s: operations %#x of type %d: it has %#x", what, uint32(ops), typ, uint32(legal)))
	}
	mine := uint64(typ)<<32 | uint64(ops)
	first, err := gas.Broadcast(t.n, 0, mine)
	t.must(err)
	if first != mine {
		t.must(errs.BadArg("upc: %s: type and operations %#x, and %#x on thread 0", what, mine, first))
	}
	return &Domain{typ, ops}
}

// AllDomainFree is upc_all_atomicdomain_free (7.6.4.2): all threads call it, when no operation
// of the domain is under way.
func (t *Thread) AllDomainFree(d *Domain) {
	t.together("upc_all_atomicdomain_free")
	t.Fence()
	t.meet()
	d.ops = 0
}

// Atomic is upc_atomic_strict (7.6.4.3) if strict, else upc_atomic_relaxed: it does op on the T
// at p and returns what was there. The operands are those of table 7.6.3: a of the operations
// with one, a and b of AtomicCSwap, which writes b if a is there. T is the domain's type, a
// Phased or Phaseless of AtomicPTS.
func Atomic[T Scalar](t *Thread, d *Domain, strict bool, op AtomicOps, p Phaseless, a, b T) T {
	if d.ops&op == 0 || op&(op-1) != 0 {
		t.must(errs.BadArg("upc: atomic operation %#x of a domain with %#x", uint32(op), uint32(d.ops)))
	}
	if size := d.typ.size(); int(unsafe.Sizeof(a)) != size {
		t.must(errs.BadArg("upc: atomic operation of type %T of a domain of type %d, of %d bytes", a, d.typ, size))
	}
	t.there("atomic operation", p)
	if strict {
		t.Fence()
	}
	switch op {
	case AtomicSub:
		op, a = AtomicAdd, -a
	case AtomicInc:
		op, a = AtomicAdd, 1
	case AtomicDec:
		op, a = AtomicAdd, 1
		a = -a
	}
	var old T
	if op == AtomicMult {
		old = multiply(t, d, p, a)
	} else {
		w, err := t.atomic(d.typ, p, codes[op], toWord(a), toWord(b))
		t.must(err)
		old = fromWord[T](w)
	}
	t.x.Wake(p.Thread())
	if strict {
		t.x.Fence()
		t.n.Poll()
	}
	return old
}

// multiply is AtomicMult, which package extended does not have.
func multiply[T Scalar](t *Thread, d *Domain, p Phaseless, a T) T {
	was, err := t.atomic(d.typ, p, extended.AtomicLoad, 0, 0)
	for {
		t.must(err)
		old := was
		was, err = t.atomic(d.typ, p, extended.AtomicCAS, old, toWord(fromWord[T](old)*a))
		if was == old {
			t.must(err)
			return fromWord[T](old)
		}
	}
}

var codes = map[AtomicOps]extended.AtomicOp{
	AtomicGet: extended.AtomicLoad, AtomicSet: extended.AtomicStore, AtomicCSwap: extended.AtomicCAS,
	AtomicAdd: extended.AtomicAdd, AtomicMin: extended.AtomicMin, AtomicMax: extended.AtomicMax,
	AtomicAnd: extended.AtomicAnd, AtomicOr: extended.AtomicOr, AtomicXor: extended.AtomicXor,
}

func (typ AtomicType) size() int {
	switch typ {
	case AtomicInt32, AtomicUint32, AtomicFloat:
		return 4
	}
	return 8
}

// atomic is an operation on the bits of a type.
func (t *Thread) atomic(typ AtomicType, p Phaseless, op extended.AtomicOp, a, b uint64) (uint64, error) {
	rank, at := p.Thread(), p.Addr()
	switch typ {
	case AtomicInt32:
		v, err := t.x.AtomicInt32(rank, at, op, int32(a), int32(b))
		return uint64(uint32(v)), err
	case AtomicUint32:
		v, err := t.x.AtomicUint32(rank, at, op, uint32(a), uint32(b))
		return uint64(v), err
	case AtomicInt64:
		v, err := t.x.AtomicInt64(rank, at, op, int64(a), int64(b))
		return uint64(v), err
	case AtomicFloat:
		v, err := t.x.AtomicFloat32(rank, at, op, math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b)))
		return uint64(math.Float32bits(v)), err
	case AtomicDouble:
		v, err := t.x.AtomicFloat64(rank, at, op, math.Float64frombits(a), math.Float64frombits(b))
		return math.Float64bits(v), err
	}
	return t.x.AtomicUint64(rank, at, op, a, b)
}
