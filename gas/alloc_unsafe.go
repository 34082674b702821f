package gas

// What is unsafe here: Sizeof only.

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// New is collective: it allocates one T on every rank, all at the same offset, and
// returns the calling rank's; p.On(rank) is another's. It returns when all ranks
// have theirs. It is zero. If any rank cannot, all return an error and nothing is
// allocated. [Delete] takes it back.
func New[T any](n *Node) (Ptr[T], error) { return NewSlice[T](n, 1) }

// NewSlice is collective: it is New for count consecutive elements of T on every
// rank. Ranks must ask for the same count.
func NewSlice[T any](n *Node, count int) (Ptr[T], error) {
	size, err := byteSize[T]("NewSlice", count)
	return newSlice[T](n, size, size, err)
}

// newSlice is NewSlice for size bytes. All ranks must say the same. failed is
// what is wrong with the arguments, which the other ranks have to be told.
func newSlice[T any](n *Node, size, say uint64, failed error) (Ptr[T], error) {
	var t T
	a, err := n.allocCollective(size, say, uint64(unsafe.Sizeof(t)), failed)
	if err != nil {
		return Ptr[T]{}, err
	}
	return Ptr[T]{w: makeWord(n.rank, a)}, nil
}

// allocCollective is newSlice for elements of elem bytes.
func (n *Node) allocCollective(size, say, elem uint64, failed error) (segment.NLA, error) {
	var a segment.NLA
	err := failed
	if n.stop.Load() {
		return 0, errLeft
	}
	if err == nil {
		if a, err = n.heap.AllocCollective(size, 0); err != nil {
			err = fmt.Errorf("gas: collective allocation on rank %d: %w", n.rank, err)
		}
	}
	if err == nil {
		n.zero(a, size, true)
	}
	got := err == nil
	err = n.same(opNewSlice, say, elem, err, size, n.heap.Usage().LargestCollective)
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

// Delete is collective: it takes back on all ranks what New or NewSlice gave; p may
// be any rank's counterpart of it. No rank may use the memory any more when any
// rank calls Delete. What New did not give, nil included, is an error; an error on
// one rank is an error on all.
func Delete[T any](n *Node, p Ptr[T]) error {
	return n.deleteAt(p.NLA(), func() string { return fmt.Sprintf("%v, a %T", p, p) })
}

// deleteAt is Delete of what lies at a; errors name it as what says.
func (n *Node) deleteAt(a segment.NLA, what func() string) error {
	err := n.heap.CheckFree(a, true)
	if err != nil {
		err = fmt.Errorf("gas: Delete of %s: %w", what(), n.heapReason(a, true, err))
	}
	return n.freeCollective(a, err)
}

// freeCollective frees what is at a on all ranks; err is why this rank cannot.
func (n *Node) freeCollective(a segment.NLA, err error) error {
	if err := n.same(opDelete, uint64(a), 0, err, 0, 0); err != nil {
		return err
	}
	return n.heap.FreeCollective(a)
}

// Alloc allocates count consecutive elements of T in this rank's segment. They
// are zero. Without room the error matches ErrResource and says how much was
// asked for and how much is free. Any rank may free them, by [Free].
func Alloc[T any](n *Node, count int) (Ptr[T], error) {
	size, err := byteSize[T]("Alloc", count)
	if err == nil && n.stop.Load() {
		err = errLeft
	}
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

// Free gives back what one rank has taken by itself: memory that Alloc or MakeSlice gave, or the
// Ptr that Register gave; one rank calls it, once. What Alloc gave any rank may free, at once its
// own, else by a call to p's rank; the rest only the rank that has it. Freeing nil does nothing,
// freeing twice, a Ptr to the middle, or what New gave is an error.
//
// When it returns no access of any rank reaches registered memory and that of MakeSlice by p, or
// by what was derived from it; later ones are errors that match ErrFault. It waits for accesses
// that are being made, not for ranks; transfers that have begun and are not synchronized may fail.
// Memory of MakeSlice is gone then: use of the slice itself ends the process. On an error about the
// system's part it stays until the process ends.
func Free[T any](n *Node, p Ptr[T]) error {
	if p.IsNil() {
		return nil
	}
	if err := n.free(p.w); err != nil {
		return fmt.Errorf("gas: Free of %v, a %T: %w", p, p, err)
	}
	return nil
}

// heapReason is err of a free of a, or a collective one, without the address: what names the
// operation names it.
func (n *Node) heapReason(a segment.NLA, collective bool, err error) error {
	var h *segment.HeapError
	switch {
	case !errors.As(err, &h):
		return err
	case a == 0:
		return because{"nothing was allocated there", err}
	case errors.Is(err, segment.ErrDoubleFree) && collective:
		return because{"deleted already", err}
	case n.heap.CheckFree(a, !collective) != nil:
		return h.Err
	case collective:
		return because{"this rank alone has it, by Alloc: Free gives it back", err}
	}
	return because{"all ranks have one, by New, NewSlice or NewArray: Delete takes it back", err}
}

// because is err in other words.
type because struct {
	text string
	err  error
}

func (b because) Error() string { return b.text }
func (b because) Unwrap() error { return b.err }

func (n *Node) free(w uint64) error {
	rank := wordRank(w)
	if rank == n.rank {
		return n.freeOwn(wordNLA(w))
	}
	if uint(rank) >= uint(n.size) {
		return errs.BadArg("rank %d out of range: the job has ranks 0..%d", rank, n.size-1)
	}
	text, err := remoteFree.Call(n, rank, uint64(wordNLA(w)))
	if err == nil && text.n != 0 {
		// The other rank's program may have written what it likes.
		s := text.text[:min(int(text.n), len(text.text))]
		err = errs.BadArg("rank %d: %s", rank, errs.Line(string(s), 0))
	}
	return err
}

// freeOwn frees what this rank has at a.
func (n *Node) freeOwn(a segment.NLA) error {
	switch made, ok := n.registered.take(a); {
	case ok && made != nil:
		return n.unmapSlice(a, made)
	case ok:
		return n.x.Conceal(a)
	}
	return n.freeHeap(a)
}

// freeHeap frees memory of this rank's segment.
func (n *Node) freeHeap(a segment.NLA) error {
	if !a.Exposed() || uint64(a-n.heapBase) < uint64(len(n.heapMem)) {
		return n.heapReason(a, false, n.heap.Free(a))
	}
	if n.registered.has(a) {
		return errs.BadArg("it is what rank %d has from Register or MakeSlice, and it alone frees it", n.rank)
	}
	return errs.BadArg("it is not what Alloc, MakeSlice or Register has returned on rank %d, or is freed already", n.rank)
}

// refusal is an error's text on its way to another rank.
type refusal struct {
	n    uint32
	text [252]byte
}

var remoteFree = RegisterCall("gas.Free", func(n *Node, a uint64) (r refusal) {
	if err := n.freeHeap(segment.NLA(a)); err != nil {
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
			bulk.Clear(n.heapMem[from:to])
		}
	}
	clean(start, min(end, low))
	clean(max(start, high), end)
}

// errLeft is the error of allocation once the memory is not the rank's any more.
var errLeft = errs.Closed("gas: allocation by a Node whose job has ended: it is valid until the function that Run gave it to returns")

// Usage reports how full this rank's segment is.
func (n *Node) Usage() segment.Usage { return n.heap.Usage() }
