package gas

// What is unsafe here: values are viewed as bytes and bytes as values, of types
// that CheckType has found to hold no pointers. Buffers for values are made of
// words, so that they are aligned for every type.

import (
	"slices"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
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

// Broadcast is collective: it returns root's v on every rank. All ranks call it
// with the same root; the other ranks' v is ignored. T must not hold Go pointers.
//
// This and the other collectives take O(log Size) messages of a rank. Ranks need
// not call them at the same time, but make the same calls in the same order,
// from one goroutine each; a rank may go on when its own part is done, so they
// are no barriers. Ranks whose calls do not match (another function, root or
// size) get an error that says who called what, and collectives fail from then
// on; a different operation goes unnoticed.
func Broadcast[T any](n *Node, root int, v T) (T, error) {
	c := &n.coll
	if err := collCheck[T](n, "Broadcast", root); err != nil {
		return v, err
	}
	if err := c.begin(collCall{kind: collBroadcast, root: uint32(root), size: uint64(unsafe.Sizeof(v))}); err != nil {
		return v, err
	}
	buf := words(&c.cell, int(unsafe.Sizeof(v)))
	one := view[T](buf)
	one[0] = v
	err := c.broadcast(root, buf)
	got := one[0]
	if err := c.finish(err); err != nil {
		return v, err
	}
	return got, nil
}

// BroadcastSlice is collective: it copies root's s into every rank's s. Root and
// length are the same on all ranks; see [Broadcast].
func BroadcastSlice[T any](n *Node, root int, s []T) error {
	if err := collCheck[T](n, "BroadcastSlice", root); err != nil {
		return err
	}
	c, buf := &n.coll, bytesOf(s)
	if err := c.begin(collCall{kind: collBroadcast, root: uint32(root), size: uint64(len(buf))}); err != nil {
		return err
	}
	return c.finish(c.broadcast(root, buf))
}

// Reduce is collective: it combines the v of all ranks with op and returns the
// result on root, and the zero T elsewhere; see [Broadcast]. op must be commutative and associative, and do nothing
// but compute: [Sum], [Min], [Max], [And], [Or], [Xor] and [Product] are there
// for numbers. Where it is not exactly associative, as for floats, the result
// still depends on nothing but the values, Size and root.
func Reduce[T any](n *Node, root int, v T, op func(a, b T) T) (T, error) {
	var zero T
	if err := collCheck[T](n, "Reduce", root); err != nil {
		return zero, err
	}
	c := &n.coll
	if err := c.begin(collCall{kind: collReduce, root: uint32(root), size: uint64(unsafe.Sizeof(v))}); err != nil {
		return zero, err
	}
	buf := words(&c.cell, int(unsafe.Sizeof(v)))
	acc := view[T](buf)
	acc[0] = v
	err := c.reduce(root, buf, combining(op))
	got := acc[0]
	if err := c.finish(err); err != nil || n.rank != root {
		return zero, err
	}
	return got, nil
}

// ReduceSlice is collective: it combines the s of all ranks element by element into
// root's s, as [Reduce] does; the other ranks' s is garbage afterwards. Root and
// length are the same on all ranks.
func ReduceSlice[T any](n *Node, root int, s []T, op func(a, b T) T) error {
	if err := collCheck[T](n, "ReduceSlice", root); err != nil {
		return err
	}
	c, buf := &n.coll, bytesOf(s)
	if err := c.begin(collCall{kind: collReduce, root: uint32(root), size: uint64(len(buf))}); err != nil {
		return err
	}
	return c.finish(c.reduce(root, buf, combining(op)))
}

// AllReduce is collective: it combines the v of all ranks with op, as [Reduce]
// does, and returns the result on all ranks: the same bits everywhere.
func AllReduce[T any](n *Node, v T, op func(a, b T) T) (T, error) {
	if err := collCheck[T](n, "AllReduce", 0); err != nil {
		return v, err
	}
	err := allReduceTo(n, collAllReduce, &v, op)
	return v, err
}

// allReduceTo is AllReduce of *v as a call of some kind. It makes no copies, for the
// stacks of ranks that wait in it.
func allReduceTo[T any](n *Node, kind collKind, v *T, op func(a, b T) T) error {
	c := &n.coll
	if err := c.begin(collCall{kind: kind, size: uint64(unsafe.Sizeof(*v))}); err != nil {
		return err
	}
	buf := words(&c.cell, int(unsafe.Sizeof(*v)))
	acc := view[T](buf)
	acc[0] = *v
	err := c.allReduce(buf, combining(op))
	if err == nil {
		*v = acc[0] // before end, for then another call may use buf
	}
	return c.finish(err)
}

// AllReduceSlice is collective: it combines the s of all ranks element by element,
// as [Reduce] does, into every rank's s. The length is the same on all ranks.
func AllReduceSlice[T any](n *Node, s []T, op func(a, b T) T) error {
	if err := collCheck[T](n, "AllReduceSlice", 0); err != nil {
		return err
	}
	c, buf := &n.coll, bytesOf(s)
	if err := c.begin(collCall{kind: collAllReduce, size: uint64(len(buf))}); err != nil {
		return err
	}
	return c.finish(c.allReduce(buf, combining(op)))
}

// Gather is collective: it returns the v of all ranks, by rank, on root, and nil
// elsewhere; see [Broadcast].
func Gather[T any](n *Node, root int, v T) ([]T, error) {
	if err := collCheck[T](n, "Gather", root); err != nil {
		return nil, err
	}
	c := &n.coll
	if err := c.begin(collCall{kind: collGather, root: uint32(root), size: uint64(unsafe.Sizeof(v))}); err != nil {
		return nil, err
	}
	all, err := gather(c, root, v)
	if err := c.finish(err); err != nil || n.rank != root {
		return nil, err
	}
	// The tree's places begin with root; ranks with 0.
	slices.Reverse(all[:n.size-root])
	slices.Reverse(all[n.size-root:])
	slices.Reverse(all)
	return all, nil
}

// AllGather is collective: it returns the v of all ranks, by rank, on all ranks;
// see [Broadcast].
func AllGather[T any](n *Node, v T) ([]T, error) {
	if err := collCheck[T](n, "AllGather", 0); err != nil {
		return nil, err
	}
	c := &n.coll
	if err := c.begin(collCall{kind: collAllGather, size: uint64(unsafe.Sizeof(v))}); err != nil {
		return nil, err
	}
	all, err := gather(c, 0, v)
	if err == nil {
		if n.rank != 0 {
			all = make([]T, n.size)
		}
		err = c.broadcast(0, bytesOf(all))
	}
	if err := c.finish(err); err != nil {
		return nil, err
	}
	return all, nil
}

// gather returns the values of the ranks at and below this one in root's tree.
func gather[T any](c *collectives, root int, v T) ([]T, error) {
	all := make([]T, c.subtree(c.relative(root)))
	all[0] = v
	return all, c.gather(root, bytesOf(all), int(unsafe.Sizeof(v)))
}

// ExclusiveScan is collective: it returns the combination with op of the v of all
// ranks below this one, in order of their ranks, and the zero T on rank 0; see
// [Broadcast]. op must be associative; it need not be commutative.
func ExclusiveScan[T any](n *Node, v T, op func(a, b T) T) (T, error) {
	var zero T
	if err := collCheck[T](n, "ExclusiveScan", 0); err != nil {
		return zero, err
	}
	c := &n.coll
	if err := c.begin(collCall{kind: collScan, size: uint64(unsafe.Sizeof(v))}); err != nil {
		return zero, err
	}
	// One buffer for both, each half aligned.
	half := (int(unsafe.Sizeof(v)) + 7) &^ 7
	buf := words(&c.cell, 2*half)
	acc, before := buf[:unsafe.Sizeof(v)], buf[half:][:unsafe.Sizeof(v)]
	view[T](acc)[0], view[T](before)[0] = v, zero
	err := c.scan(acc, before, func(dst, src []byte) {
		d, s := view[T](dst), view[T](src)
		d[0] = op(s[0], d[0])
	})
	got := view[T](before)[0]
	if err := c.finish(err); err != nil {
		return zero, err
	}
	return got, nil
}

// collCheck checks what all collectives have to check.
func collCheck[T any](n *Node, name string, root int) error {
	err := CheckType[T]()
	if err == nil && uint(root) >= uint(n.size) {
		err = errs.BadArg("gas: %s: root %d out of range: the job has ranks 0..%d", name, root, n.size-1)
	}
	if err != nil {
		return n.coll.refuse(err)
	}
	return nil
}

// combining is op on bytes: dst[i] = op(dst[i], src[i]).
func combining[T any](op func(a, b T) T) func(dst, src []byte) {
	return func(dst, src []byte) {
		d, s := view[T](dst), view[T](src)
		for i := range d {
			d[i] = op(d[i], s[i])
		}
	}
}

// view is b, which is aligned for T, as values.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// words returns n bytes of *buf, which is made longer if need be.
func words(buf *[]uint64, n int) []byte {
	if k := (n + 7) / 8; k > len(*buf) {
		*buf = make([]uint64, k)
	}
	return bytesOf(*buf)[:n]
}
