package gas

// What is unsafe here: Sizeof only.

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// New allocates one T on every rank, all at the same offset, and returns the
// calling rank's; p.On(rank) is another's. It returns when all ranks have
// theirs. It is zero. Collective: if any rank cannot, all return an error and
// nothing is allocated.
func New[T any](n *Node) (Ptr[T], error) { return NewSlice[T](n, 1) }

// NewSlice is New for count consecutive elements of T on every rank. Ranks must
// ask for the same count.
func NewSlice[T any](n *Node, count int) (Ptr[T], error) {
	size, err := byteSize[T]("NewSlice", count)
	return newSlice[T](n, size, size, err)
}

// newSlice is NewSlice for size bytes. All ranks must say the same. failed is
// what is wrong with the arguments, which the other ranks have to be told.
func newSlice[T any](n *Node, size, say uint64, failed error) (Ptr[T], error) {
	a, err := n.allocCollective(size, say, failed)
	if err != nil {
		return Ptr[T]{}, err
	}
	return Ptr[T]{w: makeWord(n.rank, a)}, nil
}

func (n *Node) allocCollective(size, say uint64, failed error) (segment.NLA, error) {
	var a segment.NLA
	err := failed
	if err == nil {
		if a, err = n.heap.AllocCollective(size, 0); err != nil {
			err = fmt.Errorf("gas: collective allocation on rank %d: %w", n.rank, err)
		}
	}
	if err == nil {
		n.zero(a, size, true)
	}
	got := err == nil
	err = n.same(opNewSlice, say, err, size, n.heap.Usage().LargestCollective)
	if err == nil {
		// Equal sizes in equal sequence have equal addresses, see segment.Heap.
		return a, nil
	}
	if got {
		if ferr := n.heap.FreeCollective(a); ferr != nil {
			panic("gas: cannot undo a collective allocation: " + ferr.Error())
		}
	}
	return 0, err
}

// Delete frees what New or NewSlice gave; p may be any rank's counterpart of it.
// No rank may use the memory any more when any rank calls Delete. Collective; an
// error on one rank is an error on all.
func Delete[T any](n *Node, p Ptr[T]) error { return n.freeCollective(p.NLA()) }

func (n *Node) freeCollective(a segment.NLA) error {
	_, err := n.heap.SizeOf(a)
	if err := n.same(opDelete, uint64(a), err, 0, 0); err != nil {
		return err
	}
	return n.heap.FreeCollective(a)
}

// Alloc allocates count consecutive elements of T in this rank's segment. They
// are zero. Without room the error matches ErrResource and says how much was
// asked for and how much is free. Any rank may free them.
func Alloc[T any](n *Node, count int) (Ptr[T], error) {
	size, err := byteSize[T]("Alloc", count)
	if err != nil {
		return Ptr[T]{}, err
	}
	a, err := n.heap.Alloc(size, 0)
	if err != nil {
		return Ptr[T]{}, fmt.Errorf("gas: Alloc on rank %d: %w", n.rank, err)
	}
	n.zero(a, size, false)
	return Ptr[T]{w: makeWord(n.rank, a)}, nil
}

// Free gives back what Alloc gave on p's rank, at once for the own rank, else by
// a call to it. Freeing twice, or what Alloc did not give, is an error. Freeing
// nil does nothing.
func Free[T any](n *Node, p Ptr[T]) error {
	if p.IsNil() {
		return nil
	}
	return n.free(p.w)
}

func (n *Node) free(w uint64) error {
	rank := wordRank(w)
	if rank == n.rank {
		if err := n.freeOwn(wordNLA(w)); err != nil {
			return fmt.Errorf("gas: Free on rank %d: %w", rank, err)
		}
		return nil
	}
	if err := n.check("gas: Free", w, 0); err != nil {
		return err
	}
	text, err := remoteFree.Call(n, rank, uint64(wordNLA(w)))
	if err == nil && text.n != 0 {
		err = errs.BadArg("gas: Free: rank %d: %s", rank, text.text[:text.n])
	}
	return err
}

// freeOwn frees memory of this rank's segment.
func (n *Node) freeOwn(a segment.NLA) error {
	err := n.heap.Free(a)
	if err != nil && n.registered.has(a) {
		return errs.BadArg("%v is registered memory: Deregister takes it back", a)
	}
	return err
}

// refusal is an error's text on its way to another rank.
type refusal struct {
	n    uint32
	text [252]byte
}

var remoteFree = RegisterCall("gas.Free", func(n *Node, a uint64) (r refusal) {
	if err := n.freeOwn(segment.NLA(a)); err != nil {
		r.n = uint32(copy(r.text[:], err.Error()))
	}
	return r
})

// byteSize is the size of count elements of T, or what is wrong with asking for
// them.
func byteSize[T any](op string, count int) (uint64, error) {
	if err := CheckType[T](); err != nil {
		return 0, err
	}
	if count <= 0 {
		return 0, errs.BadArg("gas: %s: count %d: it must be at least 1", op, count)
	}
	var t T
	hi, size := bits.Mul64(uint64(count), uint64(unsafe.Sizeof(t)))
	if hi != 0 || size > uint64(segment.MaxAttach) {
		return 0, errs.Resource("gas: %s: %d elements of %d bytes are more than any segment can hold (%d bytes)",
			op, count, unsafe.Sizeof(t), uint64(segment.MaxAttach))
	}
	return size, nil
}

// zero clears the new block [a, a+size), except what was never allocated before
// and is zero because it was mapped so: large arrays are not touched before they
// are used.
func (n *Node) zero(a segment.NLA, size uint64, collective bool) {
	start := uint64(a - n.heapBase)
	end := start + size
	n.freshMu.Lock()
	low, high := n.freshLow, n.freshHigh
	if collective {
		n.freshLow = max(low, min(end, high))
	} else {
		n.freshHigh = min(high, max(start, low))
	}
	n.freshMu.Unlock()
	clean := func(from, to uint64) {
		if from < to {
			clear(n.heapMem[from:to])
		}
	}
	clean(start, min(end, low))
	clean(max(start, high), end)
}

// Usage says how full this rank's segment is.
func (n *Node) Usage() segment.Usage { return n.heap.Usage() }
