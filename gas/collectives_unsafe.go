package gas

// What is unsafe here: values are viewed as bytes and bytes as values, of types
// that CheckType has found to hold no pointers. Buffers for values are made of
// words, so that they are aligned for every type.

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/extended/collective"
)

// Scalar are the types that the ready-made operations of reductions take.
type Scalar interface {
	Bits | ~float32 | ~float64
}

// Bits are the types that bitwise operations of reductions take.
type Bits interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// The ready-made operations of reductions. Integers wrap around.

// Sum is a + b.
func Sum[T Scalar](a, b T) T { return a + b }

// Product is a * b.
func Product[T Scalar](a, b T) T { return a * b }

// Min is the smaller of a and b; NaN if either is NaN.
func Min[T Scalar](a, b T) T { return min(a, b) }

// Max is the larger of a and b; NaN if either is NaN.
func Max[T Scalar](a, b T) T { return max(a, b) }

// And is a & b.
func And[T Bits](a, b T) T { return a & b }

// Or is a | b.
func Or[T Bits](a, b T) T { return a | b }

// Xor is a ^ b.
func Xor[T Bits](a, b T) T { return a ^ b }

// makeOne makes the call of function name on v, which the result takes the place of; combine is nil or that of a reduction.
func makeOne[T any](g Group, name string, v T, call *collective.Call, combine collective.Combine) (T, error) {
	m, err := called[T](g, name, call)
	if err != nil {
		return v, err
	}
	buf, mine := m.cell.lend(int(unsafe.Sizeof(v)))
	own := view[T](buf)
	own[0] = v
	err = m.coll.Do(call.On(buf), combine)
	if err == nil {
		v = own[0]
	}
	m.cell.giveBack(mine)
	return v, err
}

// Broadcast is collective: it returns root's v on every rank of g. All ranks call it
// with the same root; the other ranks' v is ignored. T must not hold Go pointers.
//
// This and the other collectives take O(log Size) messages of a rank. Ranks need
// not call them at the same time, but make the same calls in the same order,
// from one goroutine each; a rank may go on when its own part is done, so they
// are no barriers. Ranks whose calls do not match (another function, root, type
// or size) get an error that names a rank of each call, and collectives fail from then
// on. Another operation is noticed with Config.Debug, if both are this package's (Sum, Max).
func Broadcast[T any](g Group, root int, v T) (T, error) {
	return makeOne(g, "Broadcast", v, collective.Broadcast(root, nil), nil)
}

// Reduce is collective: it combines the v of all ranks with op and returns the
// result on root, and the zero T elsewhere; see [Broadcast]. op must be commutative and associative, and do nothing
// but compute: [Sum], [Min], [Max], [And], [Or], [Xor] and [Product] are there
// for numbers. Where it is not exactly associative, as for floats, the result
// still depends on nothing but the values, Size and root.
func Reduce[T any](g Group, root int, v T, op func(a, b T) T) (T, error) {
	v, err := makeOne(g, "Reduce", v, with(g, collective.Reduce(root, nil), op), combining(op))
	if err != nil || g.Rank() != root {
		var zero T
		return zero, err
	}
	return v, err
}

// AllReduce is collective: it combines the v of all ranks with op, as [Reduce]
// does, and returns the result on all ranks: the same bits everywhere.
func AllReduce[T any](g Group, v T, op func(a, b T) T) (T, error) {
	return makeOne(g, "AllReduce", v, with(g, collective.AllReduce(nil), op), combining(op))
}

// Gather is collective: it returns the v of all ranks, by rank, on root, and nil
// elsewhere; see [Broadcast].
func Gather[T any](g Group, root int, v T) ([]T, error) {
	var all []T
	if g.Rank() == root {
		all = make([]T, g.Size())
	}
	if _, err := makeOne(g, "Gather", v, collective.Gather(root, nil, bytesOf(all)), nil); err != nil {
		return nil, err
	}
	return all, nil
}

// AllGather is collective: it returns the v of all ranks, by rank, on all ranks;
// see [Broadcast].
func AllGather[T any](g Group, v T) ([]T, error) {
	all := make([]T, g.Size())
	own := all[g.Rank():][:1]
	own[0] = v
	if err := makeCall[T](g, "AllGather", collective.AllGather(bytesOf(own), bytesOf(all)), nil); err != nil {
		return nil, err
	}
	return all, nil
}

// Scatter is collective: it returns vs[r] of root on rank r, for all r. vs has Size
// elements on root, and is not looked at elsewhere; see [Broadcast].
func Scatter[T any](g Group, root int, vs []T) (T, error) {
	own := make([]T, 1)
	err := ScatterSlice(g, root, vs, own)
	return own[0], err
}

// InclusiveScan is collective: it returns the combination with op of the v of all ranks up
// to this one, in order of their ranks; see [ExclusiveScan].
func InclusiveScan[T any](g Group, v T, op func(a, b T) T) (T, error) {
	s := []T{v}
	err := InclusiveScanSlice(g, s, op)
	return s[0], err
}

// ExclusiveScan is collective: it returns the combination with op of the v of all
// ranks below this one, in order of their ranks, and the zero T on rank 0; see
// [Broadcast]. op must be associative; it need not be commutative.
func ExclusiveScan[T any](g Group, v T, op func(a, b T) T) (T, error) {
	var zero T
	m := g.members()
	if err := CheckType[T](); err != nil {
		return zero, m.coll.Refuse(err)
	}
	// One buffer for both, each half aligned.
	size, half := sizeOf[T](), (sizeOf[T]()+7)&^7
	buf, mine := m.cell.lend(2 * half)
	acc, before := buf[:size], buf[half:][:size]
	view[T](acc)[0], view[T](before)[0] = v, zero
	err := m.coll.Do(collective.ExclusiveScan(acc, before), prepending(op))
	got := zero
	if err == nil {
		got = view[T](before)[0]
	}
	m.cell.giveBack(mine)
	return got, err
}

// collNames are the words of this package in messages of package collective.
var collNames = collective.Names{
	Package: "gas", Agree: "a collective allocation or free", Leave: "the end of the program's function",
	Handlers: "gas.collective",
}

// bytesAt is *v as bytes.
func bytesAt[T any](v *T) []byte { return bytesOf(unsafe.Slice(v, 1)) }

// cell is where the value lies that a collective call gives and gets, kept from one
// call to the next.
type cell struct {
	busy  atomic.Bool
	words []uint64
}

// lend is n bytes, aligned for every type; mine says to giveBack that they are the cell's.
// A second goroutine, whose call is bound to fail, has others.
func (c *cell) lend(n int) (buf []byte, mine bool) {
	if !c.busy.CompareAndSwap(false, true) {
		return bytesOf(make([]uint64, (n+7)/8))[:n], false
	}
	if k := (n + 7) / 8; k > len(c.words) {
		c.words = make([]uint64, k)
	}
	return bytesOf(c.words)[:n], true
}

// giveBack ends the use of what lend has returned.
func (c *cell) giveBack(mine bool) {
	if mine {
		c.busy.Store(false)
	}
}

// view is b, which is aligned for T, as values.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// sizeOf is the size of a T, bytes.
func sizeOf[T any]() int {
	var t T
	return int(unsafe.Sizeof(t))
}
