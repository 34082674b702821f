// Windows on shared memory. What is unsafe here: slices of a segment and pointers into one, made from a view's base and
// an offset that was compared with its limits, and a type of which the size alone is of interest.

package rt

import (
	"math/bits"
	"unsafe"
)

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
// of q's block if there is more than one thread.
func Row[T Scalar, B any](t *Thread, q Phased, n int) Window[T, B] {
	if t.threads > 1 {
		n = min(n, int(unsafe.Sizeof(*(*B)(nil)))-q.Phase())
	}
	return Window[T, B]{reached[T](t, q.Phaseless(), n), uint64(q)}
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

// Run is where element i lies, and how many of n elements from i on lie there one behind the other in the window.
func (w Window[T, B]) Run(i, n int) (*T, int) {
	if uint(i) < uint(len(w.own)) {
		return &w.own[i], min(n, len(w.own)-i)
	}
	return nil, 0
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

// Spread is the elements of an array whose blocks lie on the threads in turn, or those around a pointer into one, for accesses
// with any index: it finds an element without a call or a division, if all threads are reached by load and store and their
// number is a power of two (a multiplication by an inverse takes as long as the calls where elements are far apart). Index
// 0 is the element that the spread was made for, which may be null so long as no element is accessed. B is as in [Window], of
// at least one byte. Spreads are values, of four words, which stay right as long as the memory is allocated.
type Spread[T Scalar, B any] struct {
	*everywhere
	off   uint64 // in thread 0's segment, of an element that element 0 follows so many elements behind, which begins a block
	shift int    // so many
	limit uint64 // how many of these lie in rounds of blocks that are in all segments
}

// everywhere is the memory of all threads, if spreads have it.
type everywhere struct {
	mask, log uint64                     // THREADS-1, and how often 2 is a factor of THREADS
	reach     uint64                     // bytes of the smallest segment that may be read and written
	table     [MaxThreads]unsafe.Pointer // where the segments begin
}

// look gives t the memory of all threads.
func look(t *Thread) {
	n := uint64(t.threads)
	if !t.Near() || n&(n-1) != 0 {
		return
	}
	t.all = &everywhere{mask: n - 1, log: uint64(bits.TrailingZeros64(n)), reach: MaxShared}
	for i := range t.views.All {
		v := &t.views.All[i]
		t.all.table[i], t.all.reach = v.Base, min(t.all.reach, v.Read, v.Write)
	}
}

// Cyclic is the spread of p, of a type with block size 1.
func Cyclic[T Scalar](t *Thread, p Phaseless) Spread[T, [1]byte] { return spread[T, [1]byte](t, p, 0) }

// Blocked is the spread of q, of a type with blocks as B says.
func Blocked[T Scalar, B any](t *Thread, q Phased) Spread[T, B] {
	return spread[T, B](t, q.Phaseless(), q.Phase())
}

func spread[T Scalar, B any](t *Thread, p Phaseless, phase int) Spread[T, B] {
	var v T
	size, block := uint64(unsafe.Sizeof(v)), uint64(unsafe.Sizeof(*(*B)(nil)))
	s := Spread[T, B]{off: uint64(p&addrMask) - base - uint64(phase)*size, shift: p.Thread()*int(block) + phase}
	if e := t.all; e != nil && s.off-1 < e.reach { // count from the segment's beginning on, but not from what is null
		rounds := (s.off - 1) / (block * size)
		s.off, s.shift = s.off-rounds*block*size, s.shift+int(rounds*block)*t.threads
		s.everywhere, s.limit = e, (e.reach-s.off)/size/block*block<<e.log
	}
	return s
}

// Has reports whether element i is reached by load and store.
func (s Spread[T, B]) Has(i int) bool { return uint64(i+s.shift) < s.limit }

// At is element i, which Has reports.
func (s Spread[T, B]) At(i int) (p *T) {
	n, block := uint64(i+s.shift), uint64(unsafe.Sizeof(*(*B)(nil)))
	b := n / block
	begin := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&s.table), b&s.mask*8)) // an index of the table, without a check of it
	return (*T)(unsafe.Add(begin, s.off+(b>>(s.log&63)*block+n-b*block)*uint64(unsafe.Sizeof(*p))))
}

// Row is [Row] from element i on.
func (s Spread[T, B]) Row(t *Thread, i, n int) Window[T, B] {
	block := uint64(unsafe.Sizeof(*(*B)(nil)))
	if !s.Has(i) || block > MaxBlock {
		return Row[T, B](t, s.phased(t, i), n)
	}
	at := uint64(i + s.shift)
	b := at / block
	phase := at - b*block
	thread, off := b&s.mask, s.off+(b>>(s.log&63)*block+phase)*uint64(unsafe.Sizeof(*new(T)))
	first, run := s.Run(t, i, n)
	return Window[T, B]{unsafe.Slice(first, run), thread<<threadUnit | phase<<offsetBits | off}
}

// Spill does nothing. Before a loop the call takes from registers all that the loop does not use: Go's compiler would have it in the
// same registers again at the end of each iteration.
//
//go:noinline
func Spill() {}

// Alone is [Spread.Run] of one thread, which finds its elements without a call; nil if it is not alone, or not all n elements are reached.
func (s Spread[T, B]) Alone(i, n int) (first *T, run int) {
	if at := uint64(i + s.shift); at < s.limit && uint64(n) <= s.limit-at && s.mask == 0 {
		first = (*T)(unsafe.Add(s.table[0], s.off+at*uint64(unsafe.Sizeof(*first))))
	}
	return first, n
}

// Run is where element i lies, and how many of n elements from i on lie there one behind the other and are reached by load
// and store, up to the end of i's block if there is more than one thread; none if i is not reached so. THREADS may be any
// number, and not all threads need be reached.
//
//go:noinline
func (s Spread[T, B]) Run(t *Thread, i, n int) (first *T, run int) {
	if n < 1 {
		return nil, n
	}
	block := uint64(unsafe.Sizeof(*(*B)(nil)))
	if s.Has(i) {
		at := uint64(i + s.shift)
		more := block - at%block
		if s.mask == 0 {
			more = s.limit - at
		}
		return s.At(i), int(min(uint64(n), more))
	}
	var own []T
	if block == 1 {
		own = reached[T](t, s.place(t, i), 1)
	} else {
		q := s.phased(t, i)
		own = reached[T](t, q.Phaseless(), min(n, int(block)-q.Phase()))
	}
	return unsafe.SliceData(own), len(own)
}

// Get is a relaxed read of element i.
func (s Spread[T, B]) Get(t *Thread, i int) T { return Get[T](t, s.place(t, i)) }

// Put is a relaxed write of element i.
func (s Spread[T, B]) Put(t *Thread, i int, v T) { Put(t, s.place(t, i), v) }

// place is where element i lies.
//
//go:noinline
func (s Spread[T, B]) place(t *Thread, i int) Phaseless {
	if unsafe.Sizeof(*(*B)(nil)) != 1 {
		return s.phased(t, i).Phaseless()
	}
	return (Phaseless(s.off+base) & addrMask).Add(i+s.shift, int(unsafe.Sizeof(*new(T))), t.threads)
}

// phased is place of a block size that is not 1.
func (s Spread[T, B]) phased(t *Thread, i int) Phased {
	first := makePhased(0, 0, (Phaseless(s.off+base) & addrMask).Addr())
	return first.Add(i+s.shift, int(unsafe.Sizeof(*(*B)(nil))), int(unsafe.Sizeof(*new(T))), t.threads)
}
