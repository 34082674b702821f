// Windows on shared memory. What is unsafe here: slices of a segment, made from a view's base and an
// offset that was compared with its limits, and a type of which the size alone is of interest.

package rt

import "unsafe"

// Window is a run of elements that lie one after the other on one thread, as a slice if the
// calling thread reaches them by load and store, so that an access in a loop costs what one to a
// slice does. Index 0 is the element that the window was made for; any other, negative ones too,
// is the element so many behind it, by [Get] and [Put] if it lies outside of the window. Windows
// are values, which stay right as long as the memory is allocated.
//
// The size of B in bytes is the number of elements of a block, such as that of [64]byte; 0 is the
// indefinite block size. As a part of the type it takes no room, so that a window is four words,
// which the compiler keeps in registers; and the small bodies of Get and Put are expanded in place.
type Window[T Scalar, B any] struct {
	own []T    // from element 0 on
	p   uint64 // element 0: a Phaseless if the block size is indefinite, else a Phased
}

// Span is a window of at most n elements from p on, a pointer with the indefinite block size. p may
// be null so long as no element is accessed.
func Span[T Scalar](t *Thread, p Phaseless, n int) Window[T, struct{}] {
	return Window[T, struct{}]{reached[T](t, p, n), uint64(p)}
}

// Row is a window of at most n elements from q on, of a type with blocks as B says, up to the end
// of q's block.
func Row[T Scalar, B any](t *Thread, q Phased, n int) Window[T, B] {
	return Window[T, B]{reached[T](t, q.Phaseless(), min(n, int(unsafe.Sizeof(*(*B)(nil)))-q.Phase())), uint64(q)}
}

// reached is those of n elements from p on that are reached by load and store.
func reached[T Scalar](t *Thread, p Phaseless, n int) []T {
	w := t.views.Of(uint64(p >> addrBits))
	if w == nil {
		return nil
	}
	off, limit := (uint64(p)-base)&addrMask, min(w.Read, w.Write)
	if off >= limit {
		return nil
	}
	var v T
	return unsafe.Slice((*T)(unsafe.Add(w.Base, off)), min(n, int(limit-off)/int(unsafe.Sizeof(v))))
}

// Within narrows from and to, the bounds of a loop whose variable i makes the window's indices
// i+least-first to i+most-first, so that all of these are in Own. There is no such loop if from is
// not less than to.
func (w Window[T, B]) Within(from, to, first, least, most int) (int, int) {
	return max(from, first-least), min(to, first+len(w.own)-most)
}

// Own is the elements from 0 on that are reached by load and store.
func (w Window[T, B]) Own() []T { return w.own }

// Get is a relaxed read of element i.
func (w Window[T, B]) Get(t *Thread, i int) T {
	if uint(i) < uint(len(w.own)) {
		return w.own[i]
	}
	return w.get(t, i)
}

// Put is a relaxed write of element i.
func (w Window[T, B]) Put(t *Thread, i int, v T) {
	if uint(i) < uint(len(w.own)) {
		w.own[i] = v
	} else {
		w.put(t, i, v)
	}
}

//go:noinline
func (w Window[T, B]) get(t *Thread, i int) T { return Get[T](t, w.place(t, i)) }

//go:noinline
func (w Window[T, B]) put(t *Thread, i int, v T) { Put(t, w.place(t, i), v) }

// place is where element i lies.
func (w Window[T, B]) place(t *Thread, i int) Phaseless {
	var v T
	size := int(unsafe.Sizeof(v))
	if block := int(unsafe.Sizeof(*(*B)(nil))); block != 0 {
		return Phased(w.p).Add(i, block, size, t.threads).Phaseless()
	}
	return Phaseless(w.p).AddLocal(i, size)
}
