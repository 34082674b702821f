package extended

// What is unsafe here: numbers of 4 and 8 bytes are viewed as uint32 and uint64, and words of a
// segment are accessed that segment.Views has checked.

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// AtomicOp is an operation on an aligned word, for [Atomic] and its kin. All of them yield what
// the word was before. Subtraction is AtomicAdd of the negative operand.
type AtomicOp = conduits.AtomicOp

// AtomicType is the type of a word, where it is known only when the program runs.
type AtomicType = conduits.AtomicType

// The operations. a and b are the operands; those not named are ignored.
// Integer arithmetic wraps. Minimum and maximum of floats are those of math.Min
// and math.Max.
const (
	AtomicLoad  = conduits.AtomicLoad  // read
	AtomicStore = conduits.AtomicStore // write a
	AtomicSwap  = conduits.AtomicSwap  // write a
	AtomicCAS   = conduits.AtomicCAS   // if the word has the bits of a, write b
	AtomicAdd   = conduits.AtomicAdd   // write word + a
	AtomicAnd   = conduits.AtomicAnd   // write word & a; integers only, as the next two
	AtomicOr    = conduits.AtomicOr    // write word | a
	AtomicXor   = conduits.AtomicXor   // write word ^ a
	AtomicMin   = conduits.AtomicMin   // write min(word, a)
	AtomicMax   = conduits.AtomicMax   // write max(word, a)
	AtomicFCAA  = conduits.AtomicFCAA  // if word <= a, write word + b; integers only
)

// Integer are the types that all atomics are of.
type Integer interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~uintptr
}

// Number are the types that atomics are of.
type Number interface {
	Integer | ~float32 | ~float64
}

// TypeOf is T as conduits name it.
func TypeOf[T Number]() AtomicType {
	var one, two, zero T = 1, 2, 0
	small := unsafe.Sizeof(zero) == 4
	switch {
	case one/two != 0 && small:
		return conduits.Float32
	case one/two != 0:
		return conduits.Float64
	case zero-one < zero && small:
		return conduits.Int32
	case zero-one < zero:
		return conduits.Int64
	case small:
		return conduits.Uint32
	}
	return conduits.Uint64
}

// toBits is v as the low bytes of a word.
func toBits[T Number](v T) uint64 {
	if unsafe.Sizeof(v) == 8 {
		return *(*uint64)(unsafe.Pointer(&v))
	}
	return uint64(*(*uint32)(unsafe.Pointer(&v)))
}

// fromBits is the inverse of toBits.
func fromBits[T Number](w uint64) (v T) {
	if unsafe.Sizeof(v) == 8 {
		*(*uint64)(unsafe.Pointer(&v)) = w
	} else {
		*(*uint32)(unsafe.Pointer(&v)) = uint32(w)
	}
	return v
}

// wordOf is the aligned T at a of rank's segment, or nil if it is not reached by load and store.
func wordOf[T Number](x *Initiator, rank int, a segment.NLA) unsafe.Pointer {
	var v T
	p, _ := x.views.Atomic(uint64(rank), offset(a), uint64(unsafe.Sizeof(v)), uint64(unsafe.Sizeof(v)))
	return p
}

// slowAtomic is an atomic that the conduit carries.
//
//go:noinline
func slowAtomic[T Number](x *Initiator, rank int, to segment.NLA, op AtomicOp, a, b T) (old T, err error) {
	var q operation
	q.atomic(rank, to, op, TypeOf[T](), toBits(a), toBits(b))
	w, err := q.now(x)
	return fromBits[T](w), err
}

// Load reads the T at from of rank atomically (acquire).
func Load[T Number](x *Initiator, rank int, from segment.NLA) (v T, err error) {
	switch p := wordOf[T](x, rank, from); {
	case p == nil:
		return slowAtomic[T](x, rank, from, AtomicLoad, v, v)
	case unsafe.Sizeof(v) == 4:
		return fromBits[T](uint64(atomic.LoadUint32((*uint32)(p)))), nil
	default:
		return fromBits[T](atomic.LoadUint64((*uint64)(p))), nil
	}
}

// Store writes v to the T at to of rank atomically (release).
func Store[T Number](x *Initiator, rank int, to segment.NLA, v T) (err error) {
	switch p := wordOf[T](x, rank, to); {
	case p == nil:
		_, err = slowAtomic(x, rank, to, AtomicStore, v, v)
	case unsafe.Sizeof(v) == 4:
		atomic.StoreUint32((*uint32)(p), uint32(toBits(v)))
	default:
		atomic.StoreUint64((*uint64)(p), toBits(v))
	}
	return err
}

// Swap writes v to the T at to of rank and returns what was there.
func Swap[T Number](x *Initiator, rank int, to segment.NLA, v T) (old T, err error) {
	switch p := wordOf[T](x, rank, to); {
	case p == nil:
		return slowAtomic(x, rank, to, AtomicSwap, v, v)
	case unsafe.Sizeof(v) == 4:
		return fromBits[T](uint64(atomic.SwapUint32((*uint32)(p), uint32(toBits(v))))), nil
	default:
		return fromBits[T](atomic.SwapUint64((*uint64)(p), toBits(v))), nil
	}
}

// CompareAndSwap writes v to the T at to of rank if it is old, bit for bit: of floats 0 is not -0,
// and a NaN equals one of the same bits. It returns what was there before and whether v was written.
func CompareAndSwap[T Number](x *Initiator, rank int, to segment.NLA, old, v T) (prev T, swapped bool, err error) {
	switch p := wordOf[T](x, rank, to); {
	case p == nil:
		prev, err = slowAtomic(x, rank, to, AtomicCAS, old, v)
	case unsafe.Sizeof(v) == 4:
		prev = fromBits[T](uint64(conduits.CompareExchange32((*uint32)(p), uint32(toBits(old)), uint32(toBits(v)))))
	default:
		prev = fromBits[T](conduits.CompareExchange64((*uint64)(p), toBits(old), toBits(v)))
	}
	return prev, err == nil && toBits(prev) == toBits(old), err
}

// FetchAdd adds v to the T at to of rank and returns what was there before.
func FetchAdd[T Number](x *Initiator, rank int, to segment.NLA, v T) (old T, err error) {
	var one, two T = 1, 2
	switch p := wordOf[T](x, rank, to); {
	case p == nil:
		return slowAtomic(x, rank, to, AtomicAdd, v, v)
	case one/two != 0:
		for {
			if unsafe.Sizeof(v) == 4 {
				w := atomic.LoadUint32((*uint32)(p))
				if old = fromBits[T](uint64(w)); atomic.CompareAndSwapUint32((*uint32)(p), w, uint32(toBits(old+v))) {
					return old, nil
				}
				continue
			}
			w := atomic.LoadUint64((*uint64)(p))
			if old = fromBits[T](w); atomic.CompareAndSwapUint64((*uint64)(p), w, toBits(old+v)) {
				return old, nil
			}
		}
	case unsafe.Sizeof(v) == 4:
		return T(atomic.AddUint32((*uint32)(p), uint32(toBits(v)))) - v, nil
	default:
		return T(atomic.AddUint64((*uint64)(p), toBits(v))) - v, nil
	}
}

// Add is [FetchAdd] without the result.
func Add[T Number](x *Initiator, rank int, to segment.NLA, v T) error {
	_, err := FetchAdd(x, rank, to, v)
	return err
}

// FetchCompareAdd is fetch-compare-and-add (Nüssle 2008, section 7.5.4): if the T at to of rank is
// at most limit, v is added to it. It returns what was there before and whether v was added.
func FetchCompareAdd[T Integer](x *Initiator, rank int, to segment.NLA, limit, v T) (old T, added bool, err error) {
	p := wordOf[T](x, rank, to)
	if p == nil {
		old, err = slowAtomic(x, rank, to, AtomicFCAA, limit, v)
		return old, err == nil && old <= limit, err
	}
	for {
		if unsafe.Sizeof(v) == 4 {
			old = T(atomic.LoadUint32((*uint32)(p)))
		} else {
			old = T(atomic.LoadUint64((*uint64)(p)))
		}
		switch {
		case old > limit:
			return old, false, nil
		case unsafe.Sizeof(v) == 4 && atomic.CompareAndSwapUint32((*uint32)(p), uint32(old), uint32(old+v)),
			unsafe.Sizeof(v) == 8 && atomic.CompareAndSwapUint64((*uint64)(p), uint64(old), uint64(old+v)):
			return old, true, nil
		}
	}
}

// Atomic performs op on the T at to of rank and returns what was there before.
func Atomic[T Number](x *Initiator, rank int, to segment.NLA, op AtomicOp, a, b T) (old T, err error) {
	w, err := x.AtomicBits(rank, to, op, TypeOf[T](), toBits(a), toBits(b))
	return fromBits[T](w), err
}

// AtomicNB begins an [Atomic]. Once the handle is synchronized, *old is what was there; old may be
// nil.
func AtomicNB[T Number](x *Initiator, rank int, to segment.NLA, old *T, op AtomicOp, a, b T) (Handle, error) {
	var q operation
	q.atomic(rank, to, op, TypeOf[T](), toBits(a), toBits(b))
	q.result = unsafe.Pointer(old)
	return q.begun(x)
}

// AtomicNBI is [AtomicNB] counted in the region: as a get, or as a put if old is nil.
func AtomicNBI[T Number](r *Region, rank int, to segment.NLA, old *T, op AtomicOp, a, b T) error {
	var q operation
	q.atomic(rank, to, op, TypeOf[T](), toBits(a), toBits(b))
	q.result = unsafe.Pointer(old)
	return q.counted(r)
}

// AtomicBits is [Atomic] for a type that is known only when the program runs: t. The operands a and
// b, and what was there before, are the low bytes of words.
func (x *Initiator) AtomicBits(rank int, to segment.NLA, op AtomicOp, t AtomicType, a, b uint64) (old uint64, err error) {
	if conduits.CheckAtomic("", op, t, 0) == nil {
		if old, ok := x.views.apply(rank, to, op, t, a, b); ok {
			return old, nil
		}
	}
	var q operation
	q.atomic(rank, to, op, t, a, b)
	return q.now(x)
}

// AtomicBitsNBI begins an [Initiator.AtomicBits] without its result. The region counts it as a put.
func (r *Region) AtomicBitsNBI(rank int, to segment.NLA, op AtomicOp, t AtomicType, a, b uint64) error {
	var q operation
	q.atomic(rank, to, op, t, a, b)
	return q.counted(r)
}
