package gas

// What is unsafe here: Sizeof only.

import (
	"fmt"
	"iter"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Layout is how a UPC shared array lies on the ranks: what the type "shared
// [Block] T" and the constant THREADS say in UPC 1.3.
type Layout = segment.Layout

// Block sizes with a meaning.
const (
	// Blocked gives every rank one run of elements, as equal as possible
	// (UPC's [*]).
	Blocked = 0
	// Cyclic deals elements out one by one (UPC's default).
	Cyclic = 1
)

// Array is a one-dimensional array spread block-cyclically over all ranks, by
// the layout rules of UPC 1.3: element i lies in block i/Block, which belongs to
// rank (i/Block) mod Size. A rank's blocks follow each other in its memory
// without gaps, so what is local to a rank is one slice. The value is the same
// on every rank and may be copied.
type Array[T any] struct {
	_      [0]*T
	base   segment.NLA // of element 0, and of every rank's first element
	length int
	layout Layout
}

// NewArray is collective: it allocates an array of length elements of T in blocks
// of block elements, or Blocked, or Cyclic; all elements are zero. The arguments
// are the same on all ranks; it returns when all ranks have the array. If any rank
// cannot, all return an error and nothing is allocated. [Array.Delete] takes it
// back.
func NewArray[T any](n *Node, length, block int) (Array[T], error) {
	if length <= 0 || block < 0 {
		_, err := newSlice[T](n, 0, 0, errs.BadArg("gas: NewArray: length %d and block %d: the length must be at least 1, the block at least 0", length, block))
		return Array[T]{}, err
	}
	if block == Blocked {
		block = (length-1)/n.size + 1
	}
	a := Array[T]{length: length, layout: Layout{Threads: n.size, Block: block}}
	size, err := byteSize[T]("NewArray", a.layout.Affinity(length, 0))
	p, err := newSlice[T](n, size, sayOfArray(length, block), err)
	if err != nil {
		return Array[T]{}, err
	}
	a.base = p.NLA()
	return a, nil
}

// Delete is collective: it takes the array's memory back on all ranks, as
// [Delete] does what New gave. No rank may use the array any more when any rank
// calls it.
func (a Array[T]) Delete(n *Node) error {
	return n.deleteAt(a.base, func() string {
		if a.length == 0 {
			return "the zero Array[" + typeName[T]() + "], which NewArray has not given"
		}
		return fmt.Sprintf("%v at %v", a, a.first())
	})
}

// first is the Ptr that NewSlice gave on rank 0.
func (a Array[T]) first() Ptr[T] { return Ptr[T]{w: makeWord(0, a.base)} }

// Len is the number of elements.
func (a Array[T]) Len() int { return a.length }

// Layout is the layout, for arithmetic on Shared; its Block is never 0.
func (a Array[T]) Layout() Layout { return a.layout }

// At points to element i; it is nil if i is not in 0..Len()-1.
func (a Array[T]) At(i int) Ptr[T] {
	if uint(i) >= uint(a.length) {
		strayed(i, a.length)
		return Ptr[T]{}
	}
	var t T
	rank, local := a.layout.Locate(i)
	return Ptr[T]{w: makeWord(rank, a.base+segment.NLA(local*int(unsafe.Sizeof(t))))}
}

// lastStray is the last index outside an array that At was given in this process, and
// the array's length plus 1: what the nil Ptr was that an access then refuses, most
// likely. Of two goroutines at once it may have one word each.
var lastStray struct{ index, length atomic.Int64 }

// strayed notes an index outside an array. A stencil may ask for one at each border
// again and again, so that it neither allocates nor stores what is there already,
// which would take the line from the other ranks of the process.
//
//go:noinline
func strayed(i, length int) {
	s := &lastStray
	if s.index.Load() != int64(i) {
		s.index.Store(int64(i))
	}
	if s.length.Load() != int64(length)+1 {
		s.length.Store(int64(length) + 1)
	}
}

// errNil is the error of an access by a nil Ptr.
func errNil(op string) error {
	if length := lastStray.length.Load() - 1; length >= 0 {
		return errs.BadArg("%s: nil Ptr: the zero one, or that of an index outside an array (Array.At); the last such was index %d of an array of %d elements",
			op, lastStray.index.Load(), length)
	}
	return errs.BadArg("%s: nil Ptr: the zero one (no index outside an array was given to Array.At)", op)
}

// Shared is the UPC pointer-to-shared to element i, which may be Len() or beyond: the result may
// then be used for arithmetic only. MakePtr of its Thread and Addr is the Ptr to the element.
func (a Array[T]) Shared(i int) segment.Shared {
	return segment.Shared{Addr: a.base}.Add(a.layout, i, sizeOf[T]())
}

// Owner is the rank that has element i, or -1 if i is not in 0..Len()-1.
func (a Array[T]) Owner(i int) int {
	if uint(i) >= uint(a.length) {
		return -1
	}
	rank, _ := a.layout.Locate(i)
	return rank
}

// Get loads element i.
func (a Array[T]) Get(n *Node, i int) (T, error) {
	if uint(i) >= uint(a.length) {
		var t T
		return t, a.outside("Get", i, 1)
	}
	return a.At(i).Get(n)
}

// Put stores v as element i.
func (a Array[T]) Put(n *Node, i int, v T) error {
	if uint(i) >= uint(a.length) {
		return a.outside("Put", i, 1)
	}
	return a.At(i).Put(n, v)
}

func (a Array[T]) outside(op string, i, count int) error {
	return errs.BadArg("gas: Array.%s: %d elements from %d on: the array has %d", op, count, i, a.length)
}

// LocalLen is how many elements rank has; 0 if there is no such rank.
func (a Array[T]) LocalLen(rank int) int { return a.layout.Affinity(a.length, rank) }

// LocalSlice is this rank's elements in array order. Element k of it is element
// Layout().Index(n.Rank(), k) of the array. It stays valid until Free.
func (a Array[T]) LocalSlice(n *Node) []T {
	s, _ := a.first().On(n.rank).LocalSlice(n, a.LocalLen(n.rank))
	return s
}

// Local walks this rank's elements in array order, with their index in the
// array.
func (a Array[T]) Local(n *Node) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for start, b := range a.LocalBlocks(n) {
			for k := range b {
				if !yield(start+k, &b[k]) {
					return
				}
			}
		}
	}
}

// LocalBlocks walks this rank's blocks in array order: the index of the first
// element, and the elements. The last block of the array may be short.
func (a Array[T]) LocalBlocks(n *Node) iter.Seq2[int, []T] {
	return func(yield func(int, []T) bool) {
		s := a.LocalSlice(n)
		block := a.layout.Block
		start := n.rank * block
		for len(s) > 0 {
			k := min(block, len(s))
			if !yield(start, s[:k:k]) {
				return
			}
			s = s[k:]
			start += block * a.layout.Threads
		}
	}
}

// GetRange loads elements i to i+len(dst)-1.
func (a Array[T]) GetRange(n *Node, i int, dst []T) error {
	if !a.contains(i, len(dst)) {
		return a.outside("GetRange", i, len(dst))
	}
	for len(dst) > 0 {
		k := min(a.layout.Block-i%a.layout.Block, len(dst))
		if err := a.At(i).GetSlice(n, dst[:k]); err != nil {
			return err
		}
		i, dst = i+k, dst[k:]
	}
	return nil
}

// PutRange stores src as elements i to i+len(src)-1, and returns when they are
// visible to every rank.
func (a Array[T]) PutRange(n *Node, i int, src []T) error {
	if !a.contains(i, len(src)) {
		return a.outside("PutRange", i, len(src))
	}
	for len(src) > 0 {
		k := min(a.layout.Block-i%a.layout.Block, len(src))
		if err := a.At(i).PutSlice(n, src[:k]); err != nil {
			return err
		}
		i, src = i+k, src[k:]
	}
	return nil
}

func (a Array[T]) contains(i, count int) bool {
	return i >= 0 && i <= a.length && count <= a.length-i
}

// String describes the array.
func (a Array[T]) String() string {
	return fmt.Sprintf("Array[%s](%d elements in blocks of %d over %d ranks)", typeName[T](), a.length, a.layout.Block, a.layout.Threads)
}
