package rt

import (
	"math/bits"
	"sync"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Star is the block size of "shared [*]": as many elements as make one block for each thread
// (UPC 1.3, 6.5.1.1p16).
const Star = -1

// Object is a shared object with static storage duration, as its declaration says: generated
// code registers one for each by Static.
type Object struct {
	Name string
	Size int // of an element, bytes, at least 1
	// Block is elements of a block, Star, or 0 for indefinite: all on thread 0, and each other thread has as much memory
	// at the same address, which [MakePhaseless] leads to and UPC does not use.
	Block int
	Count int // elements, at least 1; of an array with THREADS in its dimension for each thread
	// TimesThreads: THREADS is a factor of the dimension.
	TimesThreads bool
	// Align is what its address is a multiple of on each thread, a power of two of at most 4096; 0 for a cache line.
	Align int

	number int
}

var table struct {
	mu      sync.Mutex
	objects []*Object
}

// Static adds an object to the table of the program, which all threads have alike: package
// variables are initialised by it, before Run. The objects' memory is laid out when a program
// starts, in the order of the table, and is zero then.
func Static(o Object) *Object {
	table.mu.Lock()
	defer table.mu.Unlock()
	o.number = len(table.objects)
	table.objects = append(table.objects, &o)
	return &o
}

// elements is how many there are.
func (o *Object) elements(threads int) int {
	if o.TimesThreads {
		return o.Count * threads
	}
	return o.Count
}

// BlockSize is the block size, elements, which depends on THREADS for Star only
// (upc_blocksizeof, 6.4.1.3).
func (o *Object) BlockSize(threads int) int {
	if o.Block == Star {
		return (o.elements(threads)-1)/threads + 1
	}
	return o.Block
}

// LocalSize is upc_localsizeof (6.4.1.2): bytes that no thread has more of, the same on all.
func (o *Object) LocalSize(threads int) int {
	return segment.Layout{Threads: threads, Block: o.BlockSize(threads)}.Affinity(o.elements(threads), 0) * o.Size
}

// check returns the first fault of the declaration.
func (o *Object) check(threads int) error {
	if o.Size < 1 || o.Count < 1 || o.Block < Star {
		return errs.BadArg("upc: shared object %s: %d elements of %d bytes in blocks of %d", o.Name, o.Count, o.Size, o.Block)
	}
	factor := 1
	if o.TimesThreads {
		factor = threads
	}
	hi, n := bits.Mul64(uint64(o.Count), uint64(factor))
	if hi == 0 {
		hi, n = bits.Mul64(n, uint64(o.Size))
	}
	if hi != 0 || n > uint64(threads)*MaxShared {
		return errs.Resource("upc: shared object %s: %d elements of %d bytes are more than %d threads have shared memory (%d bytes each)",
			o.Name, o.Count, o.Size, threads, uint64(MaxShared))
	}
	if b := o.BlockSize(threads); b > MaxBlock {
		return errs.BadArg("upc: shared object %s: blocks of %d elements: at most %d (UPC_MAX_BLOCK_SIZE)", o.Name, b, MaxBlock)
	}
	return nil
}

// header keeps static objects away from the segment's first byte, which is null for a
// Phased of thread 0.
const header = segment.CacheLine

// layOut gives the objects of the table their addresses, the same on all threads.
func (t *Thread) layOut() error {
	table.mu.Lock()
	objects := table.objects[:len(table.objects):len(table.objects)]
	table.mu.Unlock()
	t.statics = make([]segment.NLA, len(objects))
	total, most := uint64(header), uint64(segment.CacheLine)
	for i, o := range objects {
		if err := o.check(t.threads); err != nil {
			return err
		}
		align := max(uint64(o.Align), segment.CacheLine)
		most = max(most, align)
		total = (total + align - 1) &^ (align - 1)
		t.statics[i] = segment.NLA(total)
		local := uint64(o.LocalSize(t.threads))
		total += (local + segment.CacheLine - 1) &^ (segment.CacheLine - 1)
		if size := t.n.Layers().Conduit.SegmentSize(t.me); total > size {
			return errs.Resource("upc: shared object %s: %d bytes on each thread, and %d of objects before it, are more than the segment of %d bytes (-segment, ARGON_SEGMENT)",
				o.Name, local, uint64(t.statics[i]), size)
		}
	}
	p, err := gas.NewSlice[byte](t.n, int(total+most-segment.CacheLine)) // which begins at a cache line
	if err != nil {
		return err
	}
	base := (p.NLA() + segment.NLA(most-1)) &^ segment.NLA(most-1)
	for i := range t.statics {
		t.statics[i] += base
	}
	return nil
}

// Base is a pointer to an object's first element, on thread 0 with phase 0, for types with
// block size 1 or the indefinite one.
func (t *Thread) Base(o *Object) Phaseless { return MakePhaseless(0, t.statics[o.number]) }

// BasePhased is Base for types with other block sizes.
func (t *Thread) BasePhased(o *Object) Phased { return makePhased(0, 0, t.statics[o.number]) }
