package segment

import (
	"fmt"
	"sync"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// Alignments that the allocator gives unasked.
const (
	MinAlign  = 16 // alignment and size granule of every block, bytes
	CacheLine = 64 // the same for blocks of 64 bytes and more: they share no line with another block
)

// Errors of Free and FreeCollective. Both match ErrBadArg of every layer; neither matches
// the other.
var (
	ErrDoubleFree   = errs.BadArg("freed already")
	ErrNotAllocated = errs.BadArg("not an allocated block")
)

// Heap hands out blocks of a range of network logical addresses, one rank's
// shared heap. Its bookkeeping lies in ordinary Go memory: it never touches the
// range itself, so that nothing a peer writes there can corrupt it.
//
// The heap has two ends. Alloc, for the rank's own allocations, takes the
// highest place that fits; AllocCollective, for allocations that all ranks make
// in the same order, takes the lowest. Neither enters the part between its
// end and the other's outermost block, so the boundary between the two is
// wherever they meet, and
//
//	the addresses AllocCollective returns depend on the sequence of collective
//	calls alone,
//
// not on the rank's own allocations and not on the size of the heap. Where
// those leave no room it fails without a trace; if it failed on some ranks only,
// the others undo it with FreeCollective and all ranks' sequences agree again.
//
// All methods may be called by any goroutine. Alloc and Free take O(log n) time
// for n blocks; an alignment other than MinAlign, CacheLine or PageSize may have
// to look at every free block that is large enough but unsuitably placed.
// Adjacent free blocks are always merged.
type Heap struct {
	mu   sync.Mutex
	base uint64
	end  uint64

	// Blocks, free and allocated, partition [base, end). They are linked in
	// address order and form a tree by address, in which each knows the largest
	// free space below it. Its node numbers are theirs; 2^32 of them would take
	// 288 GiB.
	tree conc.Treap[block, *block]

	// Every collective block ends at or before top, every own block starts at
	// or after bottom; [top, bottom) is free, and open to both.
	top, bottom uint64

	// started remembers every address at which a block ever began, a bit for
	// each MinAlign bytes in chunks made as needed: a free of one that begins
	// none now is a double free. It grows to 1/128 of what was ever in use, which is nothing
	// beside a segment's memory, but not beside addresses without any: with unmarked set it
	// stays empty, and a double free is an ErrNotAllocated.
	started  map[uint64]*chunk
	unmarked bool

	usage Usage
}

const chunkBytes = 1 << 16 // of the heap

type chunk [chunkBytes / MinAlign / 64]uint64

type blockKind uint8

const (
	blockFree blockKind = iota
	blockOwn
	blockCollective
)

// String completes "a block that was allocated ...".
func (k blockKind) String() string {
	switch k {
	case blockOwn:
		return "by one rank alone"
	case blockCollective:
		return "collectively"
	}
	return "by no rank"
}

// block is one node's value; the node's key is its address. fit[c] is the most bytes
// that start at an address aligned to fitAlign[c] and lie in one free block of this
// node's subtree.
type block struct {
	size       uint64
	fit        [3]uint64
	prev, next uint32 // neighbours by address
	kind       blockKind
}

// Pull computes fit anew.
func (b *block) Pull(off uint64, left, right *block) {
	for c, align := range fitAlign {
		fit := max(left.fit[c], right.fit[c])
		if b.kind == blockFree {
			if at, end := alignUp(off, align), off+b.size; at < end {
				fit = max(fit, end-at)
			}
		}
		b.fit[c] = fit
	}
}

var fitAlign = [3]uint64{MinAlign, CacheLine, PageSize}

// Usage is a snapshot of a heap. Bytes count whole blocks, after rounding up.
type Usage struct {
	Size              uint64 // bytes of the heap
	Used              uint64 // in allocated blocks
	Collective        uint64 // the part of Used that was allocated collectively
	Free              uint64 // Size - Used
	Largest           uint64 // the most bytes that Alloc could return now
	LargestCollective uint64 // the most bytes that AllocCollective could return now
	Peak              uint64 // the largest Used so far
	Allocs            uint64 // blocks allocated so far
	Frees             uint64 // blocks freed so far
}

// NewHeap makes a heap of size bytes at base, both multiples of MinAlign; all of
// it is free. size may be 0. The addresses may be exposed ones, all of them.
func NewHeap(base NLA, size uint64) (*Heap, error) {
	limit := NLALimit
	if base.Exposed() {
		limit = ExposedLimit
	}
	if base >= limit || size > uint64(limit-base) {
		return nil, errs.BadArg("segment: heap of %d bytes at %v: addresses end at %v", size, base, limit-1)
	}
	if base%MinAlign != 0 || size%MinAlign != 0 {
		return nil, errs.BadArg("segment: heap of %d bytes at %v: size and address must be multiples of %d", size, base, MinAlign)
	}
	h := &Heap{
		base: uint64(base), end: uint64(base) + size,
		tree: conc.NewTreap[block](),
	}
	h.top, h.bottom = h.base, h.end
	if size > 0 {
		h.tree.Insert(h.base, block{size: size})
	}
	return h, nil
}

// Alloc returns the address of a free block of at least n bytes, aligned to
// align: a power of two up to the heap's size, or 0 for the alignment that the
// size gets by itself, MinAlign or CacheLine. The alignment is one of addresses
// in the segment, whose memory is aligned to PageSize. Contents are whatever
// was there before. Without room the error matches ErrResource.
func (h *Heap) Alloc(n, align uint64) (NLA, error) { return h.alloc(n, align, blockOwn) }

// AllocCollective is Alloc for an allocation that every rank makes: see Heap.
func (h *Heap) AllocCollective(n, align uint64) (NLA, error) {
	return h.alloc(n, align, blockCollective)
}

// Free gives back what Alloc returned. Any other address is an error, and
// nothing changes: ErrDoubleFree if a block that began there was freed before,
// else ErrNotAllocated, which names the block that lies there.
func (h *Heap) Free(a NLA) error { return h.free(a, blockOwn) }

// FreeCollective is Free for what AllocCollective returned.
func (h *Heap) FreeCollective(a NLA) error { return h.free(a, blockCollective) }

// CheckFree is the error that Free of a would be, or FreeCollective if collective is set.
func (h *Heap) CheckFree(a NLA, collective bool) error {
	kind := blockOwn
	if collective {
		kind = blockCollective
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.allocated(a, kind)
	return err
}

// Usage reports how full the heap is.
func (h *Heap) Usage() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.usage
	u.Size = h.end - h.base
	u.Free = u.Size - u.Used
	u.Largest = h.largest(h.top, h.end)
	u.LargestCollective = h.largest(h.base, h.bottom)
	return u
}

func (h *Heap) alloc(n, align uint64, kind blockKind) (NLA, error) {
	total := h.end - h.base
	if n == 0 {
		return 0, errs.BadArg("segment: allocation of 0 bytes")
	}
	if align&(align-1) != 0 {
		return 0, errs.BadArg("segment: allocation with alignment %d: not a power of two", align)
	}
	if align > max(total, MinAlign) {
		return 0, errs.BadArg("segment: allocation with alignment %d: the heap has %d bytes (-segment, ARGON_SEGMENT)", align, total)
	}
	granule := uint64(MinAlign)
	if n >= CacheLine {
		granule = CacheLine
	}
	align = max(align, granule)
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := n
	if asked > total {
		return 0, h.full(asked, align, kind)
	}
	n = alignUp(n, granule)

	// The lowest or highest place in the whole heap is in the other end's part
	// only if there is none before it.
	var b uint32
	var at uint64
	if kind == blockCollective {
		if b = h.lowest(h.tree.Root(), n, align, fitClass(align)); b != 0 {
			at = alignUp(h.tree.Key(b), align)
		}
		if b == 0 || at >= h.bottom {
			return 0, h.full(asked, align, kind)
		}
		h.top = max(h.top, at+n)
		h.usage.Collective += n
	} else {
		if b = h.highest(h.tree.Root(), n, align, fitClass(align)); b != 0 {
			at = (h.tree.Key(b) + h.tree.At(b).size - n) &^ (align - 1)
		}
		if b == 0 || at < h.top {
			return 0, h.full(asked, align, kind)
		}
		h.bottom = min(h.bottom, at)
	}
	h.carve(b, at, n, kind)
	h.mark(at)
	h.usage.Used += n
	h.usage.Peak = max(h.usage.Peak, h.usage.Used)
	h.usage.Allocs++
	return NLA(at), nil
}

// full is the out-of-memory error.
func (h *Heap) full(n, align uint64, kind blockKind) error {
	total := h.end - h.base
	largest := h.largest(h.top, h.end)
	if kind == blockCollective {
		largest = h.largest(h.base, h.bottom)
	}
	return errs.Resource("segment: out of memory: asked for %d bytes aligned to %d; largest free block %d, free %d of %d in total (-segment, ARGON_SEGMENT)",
		n, align, largest, total-h.usage.Used, total)
}

func (h *Heap) free(a NLA, kind blockKind) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.allocated(a, kind)
	if err != nil {
		return err
	}
	n := h.tree.At(b).size
	h.usage.Used -= n
	h.usage.Frees++
	if kind == blockCollective {
		h.usage.Collective -= n
	}
	end := uint64(a) + n
	f := h.release(b)
	if end == h.top && kind == blockCollective {
		h.top = h.tree.Key(f)
	}
	if uint64(a) == h.bottom && kind == blockOwn {
		h.bottom = h.tree.Key(f) + h.tree.At(f).size
	}
	return nil
}

// HeapError is the error of an address that a Heap was given, with the reason.
type HeapError struct {
	At  NLA
	Err error // what is wrong, without operation and address; matches ErrDoubleFree or ErrNotAllocated
}

// Error names the address first.
func (e *HeapError) Error() string { return fmt.Sprintf("segment: free of %v: %v", e.At, e.Err) }

// Unwrap returns an error that matches ErrDoubleFree or ErrNotAllocated.
func (e *HeapError) Unwrap() error { return e.Err }

// allocated finds the block of a kind that begins at a and is to be freed.
func (h *Heap) allocated(a NLA, kind blockKind) (uint32, error) {
	if uint64(a) < h.base || uint64(a) >= h.end {
		return 0, &HeapError{a, fmt.Errorf("%w: the heap has addresses %v up to %v", ErrNotAllocated, NLA(h.base), NLA(h.end))}
	}
	b := h.find(uint64(a))
	switch n := h.tree.At(b); {
	case n.kind == kind && h.tree.Key(b) == uint64(a):
		return b, nil
	case n.kind != blockFree && h.tree.Key(b) == uint64(a):
		return 0, &HeapError{a, fmt.Errorf("%w of this kind: it was allocated %v, and must be freed so", ErrNotAllocated, n.kind)}
	case n.kind != blockFree:
		return 0, &HeapError{a, fmt.Errorf("%w: it lies inside the one of %d bytes at %v", ErrNotAllocated, n.size, NLA(h.tree.Key(b)))}
	case h.marked(uint64(a)):
		return 0, &HeapError{a, ErrDoubleFree}
	}
	return 0, &HeapError{a, fmt.Errorf("%w: none ever began there", ErrNotAllocated)}
}

// carve makes [at, at+n) of free block b a block of its own.
func (h *Heap) carve(b uint32, at, n uint64, kind blockKind) {
	free := h.tree.At(b)
	off, size := h.tree.Key(b), free.size
	head, tail := at-off, off+size-(at+n)
	if head > 0 {
		free.size = head
	} else {
		free.size, free.kind = n, kind
	}
	last := b
	if head > 0 {
		last = h.follow(b, at, block{size: n, kind: kind})
	}
	if tail > 0 {
		h.follow(last, at+n, block{size: tail})
	}
	h.tree.Refresh(b)
}

// follow inserts a block at off, which follows b.
func (h *Heap) follow(b uint32, off uint64, v block) uint32 {
	v.prev, v.next = b, h.tree.At(b).next
	x := h.tree.Insert(off, v)
	h.tree.At(b).next = x
	if v.next != 0 {
		h.tree.At(v.next).prev = x
	}
	return x
}

// release makes b free, merges it with free neighbours and returns the result.
func (h *Heap) release(b uint32) uint32 {
	n := h.tree.At(b)
	n.kind = blockFree
	prev := n.prev
	if next := n.next; next != 0 && h.tree.At(next).kind == blockFree {
		h.absorb(b, next)
	}
	if prev != 0 && h.tree.At(prev).kind == blockFree {
		h.absorb(prev, b)
		b = prev
	}
	h.tree.Refresh(b)
	return b
}

// absorb adds x to its neighbour b below it, which is to be refreshed.
func (h *Heap) absorb(b, x uint32) {
	n, gone := h.tree.At(b), h.tree.At(x)
	n.size += gone.size
	n.next = gone.next
	if n.next != 0 {
		h.tree.At(n.next).prev = b
	}
	h.tree.Remove(x)
}

// find returns the block that contains off, which lies in the heap.
func (h *Heap) find(off uint64) uint32 {
	best := uint32(0)
	for t := h.tree.Root(); t != 0; {
		if h.tree.Key(t) <= off {
			best, t = t, h.tree.Right(t)
		} else {
			t = h.tree.Left(t)
		}
	}
	return best
}

// lowest returns the lowest free block of subtree t that has room for n bytes
// aligned to align, or 0. A subtree whose fit for class c, at most align, is too
// small has none.
func (h *Heap) lowest(t uint32, n, align uint64, c int) uint32 {
	for t != 0 && h.tree.At(t).fit[c] >= n {
		if b := h.lowest(h.tree.Left(t), n, align, c); b != 0 {
			return b
		}
		if h.room(t, n, align) {
			return t
		}
		t = h.tree.Right(t)
	}
	return 0
}

// highest is lowest from the other end.
func (h *Heap) highest(t uint32, n, align uint64, c int) uint32 {
	for t != 0 && h.tree.At(t).fit[c] >= n {
		if b := h.highest(h.tree.Right(t), n, align, c); b != 0 {
			return b
		}
		if h.room(t, n, align) {
			return t
		}
		t = h.tree.Left(t)
	}
	return 0
}

// room reports whether block t itself is free and has room.
func (h *Heap) room(t uint32, n, align uint64) bool {
	b := h.tree.At(t)
	off := h.tree.Key(t)
	at, end := alignUp(off, align), off+b.size
	return b.kind == blockFree && at < end && end-at >= n
}

// largest is the size of the largest free block in [from, to), whose ends are
// ends of blocks.
func (h *Heap) largest(from, to uint64) uint64 { return h.largestIn(h.tree.Root(), from, to) }

func (h *Heap) largestIn(t uint32, from, to uint64) uint64 {
	if t == 0 {
		return 0
	}
	n := h.tree.At(t)
	switch {
	case h.tree.Key(t) < from:
		return h.largestIn(h.tree.Right(t), from, to)
	case h.tree.Key(t) >= to:
		return h.largestIn(h.tree.Left(t), from, to)
	}
	// From here on each side is bounded on its other side only.
	most := max(h.largestFrom(h.tree.Left(t), from), h.largestTo(h.tree.Right(t), to))
	if n.kind == blockFree {
		most = max(most, n.size)
	}
	return most
}

func (h *Heap) largestFrom(t uint32, from uint64) (most uint64) {
	for t != 0 {
		n := h.tree.At(t)
		if h.tree.Key(t) < from {
			t = h.tree.Right(t)
			continue
		}
		most = max(most, h.tree.At(h.tree.Right(t)).fit[0])
		if n.kind == blockFree {
			most = max(most, n.size)
		}
		t = h.tree.Left(t)
	}
	return most
}

func (h *Heap) largestTo(t uint32, to uint64) (most uint64) {
	for t != 0 {
		n := h.tree.At(t)
		if h.tree.Key(t) >= to {
			t = h.tree.Left(t)
			continue
		}
		most = max(most, h.tree.At(h.tree.Left(t)).fit[0])
		if n.kind == blockFree {
			most = max(most, n.size)
		}
		t = h.tree.Right(t)
	}
	return most
}

func (h *Heap) mark(at uint64) {
	if h.unmarked {
		return
	}
	i := at - h.base
	c := h.started[i/chunkBytes]
	if c == nil {
		if h.started == nil {
			h.started = map[uint64]*chunk{}
		}
		c = new(chunk)
		h.started[i/chunkBytes] = c
	}
	c[i%chunkBytes/MinAlign/64] |= 1 << (i / MinAlign % 64)
}

func (h *Heap) marked(at uint64) bool {
	i := at - h.base
	c := h.started[i/chunkBytes]
	return c != nil && i%MinAlign == 0 && c[i%chunkBytes/MinAlign/64]&(1<<(i/MinAlign%64)) != 0
}

// fitClass is the index of the largest alignment in fitAlign up to align, which
// is at least MinAlign.
func fitClass(align uint64) int {
	switch {
	case align >= PageSize:
		return 2
	case align >= CacheLine:
		return 1
	}
	return 0
}

func alignUp(a, align uint64) uint64 { return (a + align - 1) &^ (align - 1) }
