package gas

// What is unsafe here: the place of memory is taken as a number, to find it again.
// Memory of the Go heap does not move, and is held on to as long as it is registered.

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Rights say what peers may do with registered memory.
type Rights = segment.Rights

// The rights. An atomic needs RightAtomic alone; it reads and writes.
const (
	RightRead   = segment.RightRead
	RightWrite  = segment.RightWrite
	RightAtomic = segment.RightAtomic
	RightsAll   = segment.RightsAll
)

// AnyPeer in place of a rank means all of them.
const AnyPeer = segment.AnyPeer

// Register makes s, memory of this rank's own such as a slice of the Go heap,
// reachable for all ranks, and returns the Ptr to its first element: everything
// that there is for a Ptr works with it, and it may be sent and stored as others.
// s may be of any size and is not copied; the rank goes on using it as it likes,
// within the rules for memory that others write to, see the package comment.
// It stays in memory until [Free], also if the program forgets it; what
// append makes of it is other memory, which is not registered. Memory that cannot
// be written (a constant's, a file mapped for reading) is registered by RegisterFor
// without the rights to write: a peer's put would end this process.
//
// To register costs next to nothing. What does is the first access of a peer to
// a part of it (a message to this rank, which has to poll), see Config.Pinnable.
//
// The same memory may be registered many times, in parts and overlapping; each
// time gives another Ptr, which Free ends by itself. Each takes addresses, of
// which a rank has 512 GiB, in whole buckets (Config.PinBucket). Memory that is mapped
// (by mmap) must be freed before it is unmapped, or its file is cut off: else
// accesses end with an error that matches ErrFault, or reach what is mapped there next.
func Register[T any](n *Node, s []T) (Ptr[T], error) {
	return RegisterFor(n, s, RightsAll, AnyPeer)
}

// RegisterFor is Register for one rank, or for AnyPeer, which may do what rights
// say. Any other access is an error that matches ErrFault, except by this rank,
// which needs no rights.
func RegisterFor[T any](n *Node, s []T, rights Rights, peer int) (Ptr[T], error) {
	if err := CheckType[T](); err != nil {
		return Ptr[T]{}, err
	}
	switch {
	case len(s) == 0:
		return Ptr[T]{}, errs.BadArg("gas: Register: a slice of 0 elements: there is nothing to register")
	case rights == 0 || rights&^RightsAll != 0:
		return Ptr[T]{}, errs.BadArg("gas: Register with rights %#x: some of %#x are needed (%v)", uint8(rights), uint8(RightsAll), RightsAll)
	case peer != AnyPeer && uint(peer) >= uint(n.size):
		return Ptr[T]{}, errs.BadArg("gas: Register for rank %d: the job has ranks 0..%d, and AnyPeer is %d", peer, n.size-1, AnyPeer)
	}
	a, err := n.register(bytesOf(s), rights, peer)
	if err != nil {
		return Ptr[T]{}, err
	}
	return Ptr[T]{w: makeWord(n.rank, a)}, nil
}

// PtrTo is the Ptr to what q points to: memory that this rank has registered, or
// its segment. It is the inverse of Ptr.Local for the rank's own memory. If the
// memory is registered several times the last one counts. False if q points
// elsewhere, or T cannot be shared.
func PtrTo[T any](n *Node, q *T) (Ptr[T], bool) {
	if q == nil || CheckType[T]() != nil {
		return Ptr[T]{}, false
	}
	a, ok := n.addressOf(unsafe.Pointer(q), unsafe.Sizeof(*q))
	if !ok {
		return Ptr[T]{}, false
	}
	return Ptr[T]{w: makeWord(n.rank, a)}, true
}

// registered has the registrations of a rank, by place in memory and by address.
type registered struct {
	mu    sync.RWMutex
	spans *spans                 // nil before the first
	made  map[segment.NLA][]byte // the mappings of MakeSlice; nil before the first
}

func (n *Node) register(mem []byte, rights Rights, peer int) (segment.NLA, error) {
	return n.registerOf(mem, nil, rights, peer)
}

// registerOf is register of memory of MakeSlice, whose mapping is whole, or of others' if
// that is nil. What the rank takes back when it leaves is complete, see unmapSlices: with
// errLeft the memory is exposed, and the caller's.
func (n *Node) registerOf(mem, whole []byte, rights Rights, peer int) (segment.NLA, error) {
	a, err := n.x.Expose(mem, rights, peer)
	if errors.Is(err, ErrResource) {
		return 0, fmt.Errorf("gas: Register: %w (-pin-bucket, ARGON_PIN_BUCKET)", err)
	}
	if err != nil {
		return 0, fmt.Errorf("gas: Register: %w", err)
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	g := &n.registered
	g.mu.Lock()
	defer g.mu.Unlock()
	if whole != nil {
		if n.stop.Load() { // before unmapSlices has the lock
			return a, errLeft
		}
		if g.made == nil {
			g.made = map[segment.NLA][]byte{}
		}
		g.made[a] = whole
	}
	if g.spans == nil {
		g.spans = newSpans()
	}
	g.spans.add(span{from: from, to: from + uintptr(len(mem)), at: a})
	return a, nil
}

// take forgets what is registered from a on; made is its mapping if MakeSlice made it.
func (g *registered) take(a segment.NLA) (made []byte, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.spans == nil || !g.spans.has(a) {
		return nil, false
	}
	g.spans.remove(a)
	made = g.made[a]
	delete(g.made, a)
	return made, true
}

// has reports whether something is registered from a on.
func (g *registered) has(a segment.NLA) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.spans != nil && g.spans.has(a)
}

// addressOf is the address of the size bytes at q.
func (n *Node) addressOf(q unsafe.Pointer, size uintptr) (segment.NLA, bool) {
	from := uintptr(q)
	if off := from - uintptr(unsafe.Pointer(unsafe.SliceData(n.heapMem))); off < uintptr(len(n.heapMem)) {
		return n.heapBase + segment.NLA(off), size <= uintptr(len(n.heapMem))-off
	}
	g := &n.registered
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.spans == nil {
		return 0, false
	}
	return g.spans.find(from, from+size)
}

// exposed is direct for addresses beyond the attach segment: the rank's
// own memory.
//
//go:noinline
func (n *Node) exposed(w, size uint64) unsafe.Pointer {
	a := wordNLA(w)
	if !a.Exposed() || wordRank(w) != n.rank {
		return nil
	}
	b, ok := n.space.Local(firehose.Addr(a-segment.ExposedBase), size)
	if !ok {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(b))
}

// checkExposed is check for exposed memory, of which only the owner knows what is
// there.
func (n *Node) checkExposed(op string, w, size uint64) error {
	if err := conduits.CheckRank(n.ep, op, wordRank(w)); err != nil {
		return err
	}
	if a := wordNLA(w); size > uint64(segment.ExposedLimit-a) {
		return errs.BadArg("%s: address %v of rank %d and length %d: addresses end at %#x", op, a, wordRank(w), size, uint64(segment.ExposedLimit))
	}
	return nil
}
