package conduits

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// ApplyAtomic performs op on the word at p, which the caller has checked to be
// shared, aligned and of type t (CheckAtomic), and returns its old content. It
// is atomic with respect to every processor that reaches the word. Minimum and
// maximum of floats are math.Min and math.Max: a NaN operand gives NaN unless the
// other is the infinity that no number beats, -0 is below +0.
func ApplyAtomic(p unsafe.Pointer, op AtomicOp, t AtomicType, a, b uint64) uint64 {
	if t.Size() == 4 {
		return apply32((*uint32)(p), op, t, uint32(a), uint32(b))
	}
	return apply64((*uint64)(p), op, t, a, b)
}

// CompareExchange32 is a compare-and-swap that returns what was there: old if it has
// written v.
func CompareExchange32(p *uint32, old, v uint32) uint32 {
	for {
		if atomic.CompareAndSwapUint32(p, old, v) {
			return old
		}
		if w := atomic.LoadUint32(p); w != old {
			return w
		}
	}
}

// CompareExchange64 is CompareExchange32 for 8 bytes.
func CompareExchange64(p *uint64, old, v uint64) uint64 {
	for {
		if atomic.CompareAndSwapUint64(p, old, v) {
			return old
		}
		if w := atomic.LoadUint64(p); w != old {
			return w
		}
	}
}

func apply64(p *uint64, op AtomicOp, t AtomicType, a, b uint64) uint64 {
	switch {
	case op == AtomicLoad:
		return atomic.LoadUint64(p)
	case op == AtomicStore, op == AtomicSwap:
		return atomic.SwapUint64(p, a)
	case op == AtomicAdd && t != Float64:
		return atomic.AddUint64(p, a) - a
	case op == AtomicAnd:
		return atomic.AndUint64(p, a)
	case op == AtomicOr:
		return atomic.OrUint64(p, a)
	}
	for {
		old := atomic.LoadUint64(p)
		v, write := Combine(op, t, old, a, b)
		if !write || atomic.CompareAndSwapUint64(p, old, v) {
			return old
		}
	}
}

func apply32(p *uint32, op AtomicOp, t AtomicType, a, b uint32) uint64 {
	switch {
	case op == AtomicLoad:
		return uint64(atomic.LoadUint32(p))
	case op == AtomicStore, op == AtomicSwap:
		return uint64(atomic.SwapUint32(p, a))
	case op == AtomicAdd && t != Float32:
		return uint64(atomic.AddUint32(p, a) - a)
	case op == AtomicAnd:
		return uint64(atomic.AndUint32(p, a))
	case op == AtomicOr:
		return uint64(atomic.OrUint32(p, a))
	}
	for {
		old := atomic.LoadUint32(p)
		v, write := Combine(op, t, uint64(old), uint64(a), uint64(b))
		if !write || atomic.CompareAndSwapUint32(p, old, uint32(v)) {
			return uint64(old)
		}
	}
}

// Combine is the arithmetic of an atomic without the memory: the new content of
// a word that holds old, and whether anything is to be written at all.
func Combine(op AtomicOp, t AtomicType, old, a, b uint64) (v uint64, write bool) {
	switch op {
	case AtomicLoad:
		return old, false
	case AtomicStore, AtomicSwap:
		return a, true
	case AtomicCAS:
		return b, old == a
	case AtomicAnd:
		return old & a, true
	case AtomicOr:
		return old | a, true
	case AtomicXor:
		return old ^ a, true
	case AtomicFCAA:
		v, _ = Combine(AtomicAdd, t, old, b, 0)
		return v, !less(t, a, old)
	}
	switch t {
	case Float32:
		x, y := math.Float32frombits(uint32(old)), math.Float32frombits(uint32(a))
		if op == AtomicAdd {
			return uint64(math.Float32bits(x + y)), true
		}
		return uint64(math.Float32bits(float32(combineFloat(op, float64(x), float64(y))))), true
	case Float64:
		x, y := math.Float64frombits(old), math.Float64frombits(a)
		return math.Float64bits(combineFloat(op, x, y)), true
	}
	switch op {
	case AtomicAdd:
		v = old + a
	case AtomicMin:
		if v = old; less(t, a, old) {
			v = a
		}
	case AtomicMax:
		if v = old; less(t, old, a) {
			v = a
		}
	}
	if t.Size() == 4 {
		v = uint64(uint32(v))
	}
	return v, true
}

func combineFloat(op AtomicOp, x, y float64) float64 {
	switch op {
	case AtomicMin:
		return math.Min(x, y)
	case AtomicMax:
		return math.Max(x, y)
	}
	return x + y
}

// less compares integers of type t.
func less(t AtomicType, x, y uint64) bool {
	switch t {
	case Int32:
		return int32(x) < int32(y)
	case Uint32:
		return uint32(x) < uint32(y)
	case Int64:
		return int64(x) < int64(y)
	}
	return x < y
}
