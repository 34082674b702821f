// The atomics library. What is unsafe here: Sizeof, and operands at addresses that the program
// of C names.

package rt

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/upc/races"
)

// AtomicType is upc_type_t (7.3.2), as far as atomic domains have the type (7.6.2). The values
// are those of the macros in <upc_types.h>.
type AtomicType int

// The types: UPC_INT and so on. AtomicPTS is a pointer-to-shared, packed.
const (
	AtomicInt    AtomicType = 5
	AtomicUint   AtomicType = 6
	AtomicLong   AtomicType = 7
	AtomicUlong  AtomicType = 8
	AtomicInt32  AtomicType = 15
	AtomicUint32 AtomicType = 16
	AtomicInt64  AtomicType = 17
	AtomicUint64 AtomicType = 18
	AtomicFloat  AtomicType = 19
	AtomicDouble AtomicType = 20
	AtomicPTS    AtomicType = 22
)

// word is the type of typ's width.
func (typ AtomicType) word() AtomicType {
	switch typ {
	case AtomicInt:
		return AtomicInt32
	case AtomicUint:
		return AtomicUint32
	case AtomicLong:
		return AtomicInt64
	case AtomicUlong:
		return AtomicUint64
	}
	return typ
}

// The operations of atomic domains, by the types that have them (7.6.2).
const (
	anyOps   = OpGet | OpSet | OpCSwap
	floatOps = anyOps | OpAdd | OpSub | OpMult | OpInc | OpDec | OpMin | OpMax
	intOps   = floatOps | OpAnd | OpOr | OpXor
)

// legal are the operations that typ has: none if domains do not have the type.
func (typ AtomicType) legal() Op {
	switch typ.word() {
	case AtomicInt32, AtomicUint32, AtomicInt64, AtomicUint64:
		return intOps
	case AtomicFloat, AtomicDouble:
		return floatOps
	case AtomicPTS:
		return anyOps
	}
	return 0
}

// Domain is upc_atomicdomain_t *: a type, and the operations that threads do on words of it as
// long as they use the domain for them alone. It is the same on all threads, which may keep it
// in shared memory. The zero Domain is null.
type Domain Phaseless

// domain is the type and the operations of a Domain.
type domain struct {
	typ AtomicType
	ops Op
}

// AllDomainAlloc is upc_all_atomicdomain_alloc (7.6.4.1): all threads call it with the same
// arguments. The hints of UPC choose nothing here.
func (t *Thread) AllDomainAlloc(typ AtomicType, ops Op) Domain {
	const what = "upc_all_atomicdomain_alloc"
	t.together(what)
	legal := typ.legal()
	if legal == 0 {
		t.must(errs.BadArg("upc: %s: there are no domains of type %d", what, typ))
	}
	if ops&^legal != 0 {
		t.must(errs.BadArg("upc: %s: type %d does not have %v", what, typ, ops&^legal))
	}
	mine := uint64(typ)<<32 | uint64(ops)
	first, err := gas.Broadcast(t.n, 0, mine)
	t.must(err)
	if first != mine {
		t.must(errs.BadArg("upc: %s: type and operations %#x, and %#x on thread 0", what, mine, first))
	}
	d := Domain(t.AllAlloc(1, granule))
	if d == 0 {
		t.must(errs.Resource("upc: %s: no room in the symmetric heap (Config.Heap)", what))
	}
	if t.domains == nil {
		t.domains = map[Domain]domain{}
	}
	t.domains[d] = domain{typ.word(), ops}
	return d
}

// AllDomainFree is upc_all_atomicdomain_free (7.6.4.2): all threads call it, and the domain
// stays until they all have. Null does nothing.
func (t *Thread) AllDomainFree(d Domain) {
	const what = "upc_all_atomicdomain_free"
	t.together(what)
	if d == 0 {
		return
	}
	t.domain(what, d)
	t.Fence()
	delete(t.domains, d)
	t.lastDomain = 0
	t.AllFree(Phaseless(d))
}

// domain finds the state of d. The one used last is found without the map.
func (t *Thread) domain(what string, d Domain) domain {
	if d == t.lastDomain && d != 0 {
		return t.last
	}
	o, ok := t.domains[d]
	if !ok {
		t.must(errs.BadArg("upc: %s: there is no atomic domain at %v, or it was freed", what, Phaseless(d)))
	}
	t.lastDomain, t.last = d, o
	return o
}

// AtomicIsFast is upc_atomic_isfast (7.6.4.4): whether operations on a place are single atomic
// instructions, on memory that is reached by load and store.
func (t *Thread) AtomicIsFast(typ AtomicType, ops Op, p Phaseless) bool {
	r := p.Thread()
	slow := OpMult
	if typ.legal() == floatOps {
		slow = floatOps &^ anyOps
	}
	return ops&slow == 0 && (r == t.me || t.n.Neighbour(r))
}

// Atomic is upc_atomic_strict (7.6.4.3) if strict, else upc_atomic_relaxed: it does op on the T
// at p and returns what was there. The operands are those of 7.6.4.3: a of the operations with
// one, a and b of OpCSwap, which writes b if a is there: bit for bit, so that of floats 0 is not
// -0 and a NaN equals one with the same bits. T is the domain's type, a Phased or
// Phaseless of AtomicPTS; OpCSwap of Phased ones ignores phases, as == does.
func Atomic[T Scalar](t *Thread, d Domain, strict bool, op Op, p Phaseless, a, b T) T {
	o := t.domain("atomic operation", d)
	if o.ops&op == 0 || op&(op-1) != 0 {
		t.must(errs.BadArg("upc: atomic operation %v of a domain with %v", op, o.ops))
	}
	if size := o.typ.size(); int(unsafe.Sizeof(a)) != size {
		t.must(errs.BadArg("upc: atomic operation of type %T of a domain of type %d, of %d bytes", a, o.typ, size))
	}
	t.there("atomic operation", p)
	if strict {
		t.Fence()
	}
	if checked {
		k := races.AtomicWrites
		if op == OpGet {
			k = races.AtomicReads
		}
		saw(t, p, o.typ.size(), k)
		if strict {
			t.races.Release(t.me, uint64(p), o.typ.size())
			t.races.Writes(t.me, uint64(p))
		}
	}
	old := operate(t, o.typ, op, p, a, b)
	if checked && strict {
		t.races.Writes(t.me, 0)
		t.races.Acquire(t.me, uint64(p), o.typ.size())
	}
	t.x.Wake(p.Thread())
	if strict {
		t.x.Fence()
		t.n.Poll()
	}
	return old
}

// operate is the operation itself.
func operate[T Scalar](t *Thread, typ AtomicType, op Op, p Phaseless, a, b T) T {
	switch op {
	case OpSub:
		op, a = OpAdd, -a
	case OpInc:
		op, a = OpAdd, 1
	case OpDec:
		op, a = OpAdd, 1
		a = -a
	case OpMult:
		return replace(t, typ, p, func(old T) (T, bool) { return old * a, true })
	case OpCSwap:
		if q, ok := any(a).(Phased); ok {
			return replace(t, typ, p, func(old T) (T, bool) { return b, Phased(toWord(old)).Equal(q) })
		}
	}
	w, err := t.atomic(typ, p, codes[op], toWord(a), toWord(b))
	t.must(err)
	return fromWord[T](w)
}

// replace is an atomic operation that package extended does not have: next is the value after
// old, or false where nothing is to be written.
func replace[T Scalar](t *Thread, typ AtomicType, p Phaseless, next func(old T) (T, bool)) T {
	was, err := t.atomic(typ, p, extended.AtomicLoad, 0, 0)
	for {
		t.must(err)
		old := was
		v, ok := next(fromWord[T](old))
		if !ok {
			return fromWord[T](old)
		}
		was, err = t.atomic(typ, p, extended.AtomicCAS, old, toWord(v))
		if was == old {
			t.must(err)
			return fromWord[T](old)
		}
	}
}

// AtomicAt is Atomic as the library of C has it: the type is the domain's, the operands lie at
// a and b, nil if op has none, and the old value is left at fetch, if that is not nil. P is
// the type of the packed pointers-to-shared of a domain of AtomicPTS.
func AtomicAt[P Phased | Phaseless](t *Thread, d Domain, strict bool, fetch unsafe.Pointer, op Op, p Phaseless, a, b unsafe.Pointer) {
	const what = "atomic operation"
	switch {
	case a == nil && op&(OpGet|OpInc|OpDec) == 0, b == nil && op == OpCSwap:
		t.must(errs.BadArg("upc: %s %v without an operand", what, op))
	case fetch == nil && op == OpGet:
		t.must(errs.BadArg("upc: %s %v: nowhere to leave the value", what, op))
	}
	switch t.domain(what, d).typ {
	case AtomicInt32:
		atomicAt[int32](t, d, strict, fetch, op, p, a, b)
	case AtomicUint32:
		atomicAt[uint32](t, d, strict, fetch, op, p, a, b)
	case AtomicInt64:
		atomicAt[int64](t, d, strict, fetch, op, p, a, b)
	case AtomicUint64:
		atomicAt[uint64](t, d, strict, fetch, op, p, a, b)
	case AtomicFloat:
		atomicAt[float32](t, d, strict, fetch, op, p, a, b)
	case AtomicDouble:
		atomicAt[float64](t, d, strict, fetch, op, p, a, b)
	default:
		atomicAt[P](t, d, strict, fetch, op, p, a, b)
	}
}

func atomicAt[T Scalar](t *Thread, d Domain, strict bool, fetch unsafe.Pointer, op Op, p Phaseless, a, b unsafe.Pointer) {
	var x, y T
	if a != nil {
		x = *(*T)(a)
	}
	if b != nil {
		y = *(*T)(b)
	}
	old := Atomic(t, d, strict, op, p, x, y)
	if fetch != nil {
		*(*T)(fetch) = old
	}
}

var codes = map[Op]extended.AtomicOp{
	OpGet: extended.AtomicLoad, OpSet: extended.AtomicStore, OpCSwap: extended.AtomicCAS,
	OpAdd: extended.AtomicAdd, OpMin: extended.AtomicMin, OpMax: extended.AtomicMax,
	OpAnd: extended.AtomicAnd, OpOr: extended.AtomicOr, OpXor: extended.AtomicXor,
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
	return t.x.AtomicBits(p.Thread(), p.Addr(), op, bitTypes[typ], a, b)
}

// bitTypes are the types of words; that of AtomicPTS is not arithmetic.
var bitTypes = [AtomicPTS + 1]extended.AtomicType{
	AtomicInt32: conduits.Int32, AtomicUint32: conduits.Uint32, AtomicInt64: conduits.Int64, AtomicUint64: conduits.Uint64,
	AtomicFloat: conduits.Float32, AtomicDouble: conduits.Float64, AtomicPTS: conduits.Uint64,
}
