package gas

// What is unsafe here: operands of 4 and 8 bytes are viewed as uint32 and uint64;
// the memory comes from Node.atomicAt, which checks bounds, right and alignment. The type
// word of an interface is read as a number, which names the type.

import (
	"math"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
)

// Integer are the types of 4 or 8 bytes that integer atomics take.
type Integer = extended.Integer

// Number are the types that atomics can add and compare.
type Number = extended.Number

// atomicAt returns size (4 or 8) aligned bytes at w for an atomic, or nil if
// they cannot be had directly.
func (n *Node) atomicAt(w, size uint64) unsafe.Pointer {
	q, _ := n.views.Atomic(w>>nlaBits, (w-base)&nlaMask, size, size)
	return q
}

// toBits is v as the low bytes of a word; T has 4 or 8 bytes.
func toBits[T any](v T) uint64 {
	if unsafe.Sizeof(v) == 8 {
		return *(*uint64)(unsafe.Pointer(&v))
	}
	return uint64(*(*uint32)(unsafe.Pointer(&v)))
}

// fromBits is the inverse of bits.
func fromBits[T any](b uint64) (v T) {
	if unsafe.Sizeof(v) == 8 {
		*(*uint64)(unsafe.Pointer(&v)) = b
	} else {
		*(*uint32)(unsafe.Pointer(&v)) = uint32(b)
	}
	return v
}

// wordType is the conduit's type for T seen as bits, and whether T is a word.
func wordType[T any]() (conduits.AtomicType, bool) {
	var t T
	switch unsafe.Sizeof(t) {
	case 4:
		return conduits.Uint32, true
	case 8:
		return conduits.Uint64, true
	}
	return 0, false
}

// wake lets waiters of rank look again after a direct atomic.
func (n *Node) wake(w uint64) { n.ep.Wake(int(w >> nlaBits)) } // w has been accessed

// Load reads *p atomically. T must have 4 or 8 bytes and p be aligned to them.
func Load[T any](n *Node, p Ptr[T]) (v T, err error) {
	if q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v))); q != nil {
		switch unsafe.Sizeof(v) {
		case 4:
			return fromBits[T](uint64(atomic.LoadUint32((*uint32)(q)))), nil
		case 8:
			return fromBits[T](atomic.LoadUint64((*uint64)(q))), nil
		}
	}
	return wordSlow[T](n, p.w, conduits.AtomicLoad, v, v)
}

// Store writes v atomically and wakes the waiters of p's rank. T must have 4 or 8
// bytes and p be aligned to them.
func Store[T any](n *Node, p Ptr[T], v T) error {
	if q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v))); q != nil {
		switch unsafe.Sizeof(v) {
		case 4:
			atomic.StoreUint32((*uint32)(q), uint32(toBits(v)))
			n.wake(p.w)
			return nil
		case 8:
			atomic.StoreUint64((*uint64)(q), toBits(v))
			n.wake(p.w)
			return nil
		}
	}
	_, err := wordSlow(n, p.w, conduits.AtomicStore, v, v)
	return err
}

// Swap writes v atomically, wakes the waiters of p's rank, and returns what was
// there. T must have 4 or 8 bytes and p be aligned to them.
func Swap[T any](n *Node, p Ptr[T], v T) (old T, err error) {
	if q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v))); q != nil {
		switch unsafe.Sizeof(v) {
		case 4:
			old = fromBits[T](uint64(atomic.SwapUint32((*uint32)(q), uint32(toBits(v)))))
			n.wake(p.w)
			return old, nil
		case 8:
			old = fromBits[T](atomic.SwapUint64((*uint64)(q), toBits(v)))
			n.wake(p.w)
			return old, nil
		}
	}
	return wordSlow(n, p.w, conduits.AtomicSwap, v, v)
}

// CompareAndSwap writes v atomically if *p is old, bit for bit, and returns what was
// there before and whether it wrote v; if so it wakes the waiters of p's rank. T must have
// 4 or 8 bytes and p be aligned to them. Types with padding or blank fields are refused, since
// equal values may differ there. Floats compare by their bits, too: 0 is not -0, and a NaN is
// what has the same bits.
func CompareAndSwap[T any](n *Node, p Ptr[T], old, v T) (prev T, swapped bool, err error) {
	if !compared[T]() {
		if err := compare[T](); err != nil {
			return prev, false, err
		}
	}
	if q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v))); q != nil {
		was := toBits(old)
		switch unsafe.Sizeof(v) {
		case 4:
			was = uint64(conduits.CompareExchange32((*uint32)(q), uint32(was), uint32(toBits(v))))
		case 8:
			was = conduits.CompareExchange64((*uint64)(q), was, toBits(v))
		}
		if was == toBits(old) {
			n.wake(p.w)
			return old, true, nil
		}
		return fromBits[T](was), false, nil
	}
	prev, err = wordSlow[T](n, p.w, conduits.AtomicCAS, old, v)
	return prev, err == nil && toBits(prev) == toBits(old), err
}

// comparedTypes are types whose bits may be compared: each by the address that its pointer
// type has in interfaces, where that address says. It takes one load to find one; the table
// is kept instead of a map because an atomic takes less time than a look into a map.
var comparedTypes [256]atomic.Uintptr

// comparedAt is T's place in comparedTypes, and what stands there.
func comparedAt[T any]() (*atomic.Uintptr, uintptr) {
	i := any((*T)(nil))
	t := *(*uintptr)(unsafe.Pointer(&i))
	return &comparedTypes[t>>5%uintptr(len(comparedTypes))], t
}

// compared reports whether T is known as a type whose bits may be compared.
func compared[T any]() bool {
	at, t := comparedAt[T]()
	return at.Load() == t
}

// compare is the error of a compare-and-swap of a T, which it notes as compared if there is none.
//
//go:noinline
func compare[T any]() error {
	op := opNames[conduits.AtomicCAS]
	if _, ok := wordType[T](); !ok {
		return notWord[T](op)
	}
	err := checkBits(op, reflect.TypeFor[T]())
	if err == nil {
		at, t := comparedAt[T]()
		at.Store(t)
	}
	return err
}

func notWord[T any](op string) error {
	var t T
	return errs.BadArg("%s: atomics need a type of 4 or 8 bytes; %s has %d", op, typeName[T](), unsafe.Sizeof(t))
}

var opNames = [conduits.NumAtomicOps]string{
	"gas: Load", "gas: Store", "gas: Swap", "gas: CompareAndSwap", "gas: FetchAdd",
	"gas: FetchAnd", "gas: FetchOr", "gas: FetchXor", "gas: FetchMin", "gas: FetchMax", "gas: FetchCompareAdd",
}

// wordSlow performs an atomic on T as bits through the conduit, or returns an error if T or
// its address cannot have one.
//
//go:noinline
func wordSlow[T any](n *Node, w uint64, op conduits.AtomicOp, a, b T) (old T, err error) {
	t, ok := wordType[T]()
	if !ok {
		return old, notWord[T](opNames[op])
	}
	v, err := n.atomicSlow(w, op, t, toBits(a), toBits(b))
	return fromBits[T](v), err
}

// numberSlow is wordSlow for operations that compute.
//
//go:noinline
func numberSlow[T Number](n *Node, w uint64, op conduits.AtomicOp, a, b T) (old T, err error) {
	v, err := n.atomicSlow(w, op, extended.TypeOf[T](), toBits(a), toBits(b))
	return fromBits[T](v), err
}

// FetchAdd adds d to *p atomically, wakes the waiters of p's rank, and returns
// what was there before. Integers wrap around.
func FetchAdd[T Number](n *Node, p Ptr[T], d T) (old T, err error) {
	var one, two T = 1, 2
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(d)))
	switch {
	case q == nil:
		return numberSlow(n, p.w, conduits.AtomicAdd, d, d)
	case one/two != 0:
		return update(n, p.w, q, func(old T) (T, bool) { return old + d, true }), nil
	case unsafe.Sizeof(d) == 4:
		old = T(atomic.AddUint32((*uint32)(q), uint32(toBits(d)))) - d
	default:
		old = T(atomic.AddUint64((*uint64)(q), toBits(d))) - d
	}
	n.wake(p.w)
	return old, nil
}

// update replaces *q, which is w, atomically by what f makes of it, unless f
// says false.
func update[T Number](n *Node, w uint64, q unsafe.Pointer, f func(old T) (T, bool)) T {
	for {
		var was uint64
		var t T
		if unsafe.Sizeof(t) == 4 {
			was = uint64(atomic.LoadUint32((*uint32)(q)))
		} else {
			was = atomic.LoadUint64((*uint64)(q))
		}
		old := fromBits[T](was)
		v, change := f(old)
		if !change {
			return old
		}
		done := false
		if unsafe.Sizeof(t) == 4 {
			done = atomic.CompareAndSwapUint32((*uint32)(q), uint32(was), uint32(toBits(v)))
		} else {
			done = atomic.CompareAndSwapUint64((*uint64)(q), was, toBits(v))
		}
		if done {
			n.wake(w)
			return old
		}
	}
}

// FetchAnd replaces *p atomically by *p & m, wakes the waiters of p's rank, and
// returns what was there before.
func FetchAnd[T Integer](n *Node, p Ptr[T], m T) (old T, err error) {
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(m)))
	if q == nil {
		return numberSlow(n, p.w, conduits.AtomicAnd, m, m)
	}
	if unsafe.Sizeof(m) == 4 {
		old = T(atomic.AndUint32((*uint32)(q), uint32(toBits(m))))
	} else {
		old = T(atomic.AndUint64((*uint64)(q), toBits(m)))
	}
	n.wake(p.w)
	return old, nil
}

// FetchOr replaces *p atomically by *p | m, wakes the waiters of p's rank, and
// returns what was there before.
func FetchOr[T Integer](n *Node, p Ptr[T], m T) (old T, err error) {
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(m)))
	if q == nil {
		return numberSlow(n, p.w, conduits.AtomicOr, m, m)
	}
	if unsafe.Sizeof(m) == 4 {
		old = T(atomic.OrUint32((*uint32)(q), uint32(toBits(m))))
	} else {
		old = T(atomic.OrUint64((*uint64)(q), toBits(m)))
	}
	n.wake(p.w)
	return old, nil
}

// FetchXor replaces *p atomically by *p ^ m, wakes the waiters of p's rank, and
// returns what was there before.
func FetchXor[T Integer](n *Node, p Ptr[T], m T) (old T, err error) {
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(m)))
	if q == nil {
		return numberSlow(n, p.w, conduits.AtomicXor, m, m)
	}
	return update(n, p.w, q, func(old T) (T, bool) { return old ^ m, true }), nil
}

// changed is v, and whether that is another value than old.
func changed[T Number](old, v T) (T, bool) { return v, toBits(v) != toBits(old) }

// lesser and greater are those of the conduits' atomics: for floats math.Min and
// math.Max, which tell zeros apart and heed NaN.
func lesser[T Number](a, b T) T {
	if one, two := T(1), T(2); one/two != 0 {
		return T(math.Min(float64(a), float64(b)))
	}
	return min(a, b)
}

func greater[T Number](a, b T) T {
	if one, two := T(1), T(2); one/two != 0 {
		return T(math.Max(float64(a), float64(b)))
	}
	return max(a, b)
}

// FetchMin replaces *p atomically by v if v is less (of floats: math.Min), wakes
// the waiters of p's rank if so, and returns what was there before.
func FetchMin[T Number](n *Node, p Ptr[T], v T) (old T, err error) {
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v)))
	if q == nil {
		return numberSlow(n, p.w, conduits.AtomicMin, v, v)
	}
	return update(n, p.w, q, func(old T) (T, bool) { return changed(old, lesser(old, v)) }), nil
}

// FetchMax replaces *p atomically by v if v is greater (of floats: math.Max),
// wakes the waiters of p's rank if so, and returns what was there before.
func FetchMax[T Number](n *Node, p Ptr[T], v T) (old T, err error) {
	q := n.atomicAt(p.w, uint64(unsafe.Sizeof(v)))
	if q == nil {
		return numberSlow(n, p.w, conduits.AtomicMax, v, v)
	}
	return update(n, p.w, q, func(old T) (T, bool) { return changed(old, greater(old, v)) }), nil
}

// FetchCompareAdd adds d to *p atomically if *p is at most limit, and returns what was there
// before and whether it added, which is when it wakes the waiters of p's rank.
// Integers wrap around. This is the card's FCAA (Nüssle 2008, section 7.5.4), which
// locks, semaphores and bounded counters are made of.
func FetchCompareAdd[T Integer](n *Node, p Ptr[T], limit, d T) (old T, added bool, err error) {
	if q := n.atomicAt(p.w, uint64(unsafe.Sizeof(d))); q != nil {
		old = update(n, p.w, q, func(old T) (T, bool) { return old + d, old <= limit })
	} else if old, err = numberSlow(n, p.w, conduits.AtomicFCAA, limit, d); err != nil {
		return 0, false, err
	}
	return old, old <= limit, nil
}
