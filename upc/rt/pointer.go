package rt

import (
	"fmt"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// The two packed pointers-to-shared, of 8 bytes each, so that structures with such members
// have one layout whatever they point to:
//
//	Phaseless  63        40 39                           0
//	           +-----------+-----------------------------+
//	           | thread 24 | network logical address 40  |
//	           +-----------+-----------------------------+
//
//	Phased     63        54 53        34 33              0
//	           +-----------+------------+----------------+
//	           | thread 10 | phase 20   | offset 34      |
//	           +-----------+------------+----------------+
//
// The offset counts from segment.AttachBase. Run refuses jobs that do not fit.
const (
	addrBits   = 40
	offsetBits = 34
	phaseBits  = 20

	addrMask   = 1<<addrBits - 1
	offsetMask = 1<<offsetBits - 1
	phaseMask  = 1<<phaseBits - 1
	threadUnit = offsetBits + phaseBits // the lowest bit of a Phased's thread

	// MaxBlock is UPC_MAX_BLOCK_SIZE: the largest block size of a Phased, elements (UPC 1.3,
	// 6.3.3).
	MaxBlock = 1 << phaseBits
	// MaxThreads is the largest THREADS.
	MaxThreads = 1 << (64 - threadUnit)
	// MaxShared is the largest segment, bytes.
	MaxShared = 1 << offsetBits
)

// Arithmetic that leaves the addresses, which is undefined in UPC, gives null, whose use ends the
// thread: its carry would be another thread or phase. So do threads and addresses that do not fit.

// Phaseless is a pointer-to-shared whose phase is always 0: of a type with indefinite block
// size, or with block size 1. It has the bits of the gas.Ptr to the same place. The zero
// Phaseless is the null pointer. Operator == is UPC's.
type Phaseless uint64

// Phased is a pointer-to-shared of any block size, and the generic pointer-to-shared,
// "shared void *". The zero Phased is the null pointer; Equal is UPC's ==.
type Phased uint64

// Wide is an unpacked pointer-to-shared, without the limits of a Phased: thread, phase and
// address. The zero Wide is the null pointer; Equal is UPC's ==.
type Wide segment.Shared

// MakePhaseless points to address a of thread.
func MakePhaseless(thread int, a segment.NLA) Phaseless {
	if uint(thread) >= MaxThreads || a > addrMask {
		return 0
	}
	return Phaseless(uint64(thread)<<addrBits | uint64(a))
}

// Thread is upc_threadof (UPC 1.3, 7.2.3.1).
func (p Phaseless) Thread() int { return int(p >> addrBits) }

// Addr is the address in the thread's segment.
func (p Phaseless) Addr() segment.NLA { return segment.NLA(p & addrMask) }

// AddrField is upc_addrfield (7.2.3.4): the offset in the thread's segment, 0 for null.
func (p Phaseless) AddrField() uint64 { return addrField(p.Addr()) }

// AddLocal is p + n where the block size is indefinite: elements of size bytes on one thread
// (6.4.2p3).
func (p Phaseless) AddLocal(n, size int) Phaseless {
	r := p + Phaseless(n*size)
	if most := addrMask / max(size, 1); uint(n+most) > uint(2*most) || (r^p)>>addrBits != 0 {
		return 0
	}
	return r
}

// SubLocal is p - r where the block size is indefinite: elements of size bytes.
func (p Phaseless) SubLocal(r Phaseless, size int) int { return int(p-r) / max(size, 1) }

// Next is p + 1 where the block size is 1: the element on the next thread.
func (p Phaseless) Next(size, threads int) Phaseless {
	if p += 1 << addrBits; int(p>>addrBits) < threads {
		return p
	}
	return (p & addrMask).AddLocal(1, size)
}

// Add is p + n where the block size is 1 (6.4.2p4): n may be negative.
func (p Phaseless) Add(n, size, threads int) Phaseless {
	n += p.Thread() // where this overflows there are too many rounds
	rounds, thread := n/threads, n%threads
	if thread < 0 {
		rounds--
		thread += threads
	}
	a := int(p&addrMask) + rounds*size
	if most := addrMask / max(size, 1); uint(a) > addrMask || uint(rounds+most) > uint(2*most) {
		return 0
	}
	return Phaseless(thread)<<addrBits | Phaseless(a)
}

// Sub is p - r where the block size is 1 (6.4.2p8): the n for which r + n is p.
func (p Phaseless) Sub(r Phaseless, size, threads int) int {
	return int(p.Addr()-r.Addr())/max(size, 1)*threads + p.Thread() - r.Thread()
}

// Phased is the same place with phase 0. It must lie in a segment.
func (p Phaseless) Phased() Phased {
	if p == 0 {
		return 0
	}
	return makePhased(p.Thread(), 0, p.Addr())
}

// Wide is p unpacked.
func (p Phaseless) Wide() Wide { return Wide{Thread: p.Thread(), Addr: p.Addr()} }

// String prints thread and address.
func (p Phaseless) String() string { return p.Wide().String() }

func makePhased(thread, phase int, a segment.NLA) Phased {
	off := uint64(a - segment.AttachBase)
	if uint(thread) >= MaxThreads || uint(phase) > phaseMask || off > offsetMask {
		return 0
	}
	return Phased(uint64(thread)<<threadUnit | uint64(phase)<<offsetBits | off)
}

// Thread is upc_threadof (7.2.3.1).
func (q Phased) Thread() int { return int(q >> threadUnit) }

// Phase is upc_phaseof (7.2.3.2).
func (q Phased) Phase() int { return int(q >> offsetBits & phaseMask) }

// Addr is the address in the thread's segment; 0 for null.
func (q Phased) Addr() segment.NLA {
	if q == 0 {
		return 0
	}
	return segment.AttachBase + segment.NLA(q&offsetMask)
}

// AddrField is upc_addrfield (7.2.3.4): the offset in the thread's segment, 0 for null.
func (q Phased) AddrField() uint64 { return uint64(q & offsetMask) }

// ResetPhase is upc_resetphase (7.2.3.3).
func (q Phased) ResetPhase() Phased { return q &^ (phaseMask << offsetBits) }

// Equal is UPC's ==: the same place, whatever the phases (6.4.2p7).
func (q Phased) Equal(r Phased) bool { return (q^r)&^(phaseMask<<offsetBits) == 0 }

// Next is q + 1, of a type with blocks of block elements of size bytes.
func (q Phased) Next(block, size, threads int) Phased {
	if int(q>>offsetBits&phaseMask) != block-1 {
		return q + Phased(1<<offsetBits+size) // one element behind the end of any memory may be past the offsets
	}
	return q.nextBlock(block, size, threads)
}

// nextBlock is Next of a block's last element.
func (q Phased) nextBlock(block, size, threads int) Phased {
	// Back to the block's beginning, where the next thread has its block.
	off := int(q&offsetMask) - (block-1)*size
	t := q.Thread() + 1
	if t == threads {
		t, off = 0, off+block*size
	}
	if uint(off) > offsetMask {
		return 0
	}
	return Phased(t)<<threadUnit | Phased(off)
}

// Add is q + n, of a type with blocks of block elements, at least 1, of size bytes (6.4.2p3
// and p4): n may be negative.
func (q Phased) Add(n, block, size, threads int) Phased {
	if phase := q.Phase() + n; uint(phase) < uint(block) && uint(block) <= MaxBlock && uint(size) <= MaxShared {
		if uint(int(q&offsetMask)+n*size) > offsetMask {
			return 0
		}
		return q + Phased(n<<offsetBits+n*size)
	}
	w := segment.Shared(q.Wide()).Add(segment.Layout{Threads: threads, Block: block}, n, size)
	return makePhased(w.Thread, w.Phase, w.Addr)
}

// Sub is q - r, of a type with blocks of block elements of size bytes (6.4.2p8): the n for
// which r + n is q with the same phase. Where there is none, which UPC leaves undefined, it
// is 0.
func (q Phased) Sub(r Phased, block, size, threads int) int {
	n, _ := segment.Shared(q.Wide()).Sub(segment.Layout{Threads: threads, Block: block}, segment.Shared(r.Wide()), size)
	return n
}

// Phaseless is the same place without the phase: a cast to a type with indefinite block size
// or block size 1 (6.4.3p3).
func (q Phased) Phaseless() Phaseless {
	if q == 0 {
		return 0
	}
	return Phaseless(q>>threadUnit<<addrBits) + Phaseless(segment.AttachBase) + Phaseless(q&offsetMask)
}

// Wide is q unpacked.
func (q Phased) Wide() Wide { return Wide{Thread: q.Thread(), Phase: q.Phase(), Addr: q.Addr()} }

// String prints thread, phase and address.
func (q Phased) String() string { return q.Wide().String() }

// Phased is w packed, or false if it has no place there: a thread, phase or address beyond
// the limits, or the first byte of thread 0's segment, whose bits are those of null.
func (w Wide) Phased() (q Phased, ok bool) {
	if w == (Wide{}) {
		return 0, true
	}
	off := uint64(w.Addr - segment.AttachBase)
	if uint(w.Thread) >= MaxThreads || uint(w.Phase) >= MaxBlock || off > offsetMask {
		return 0, false
	}
	q = makePhased(w.Thread, w.Phase, w.Addr)
	return q, q != 0
}

// Phaseless is the same place without the phase.
func (w Wide) Phaseless() Phaseless { return MakePhaseless(w.Thread, w.Addr) }

// IsNull reports whether w is the null pointer.
func (w Wide) IsNull() bool { return w.Thread == 0 && w.Addr == 0 }

// AddrField is upc_addrfield (7.2.3.4): the offset in the thread's segment, 0 for null.
func (w Wide) AddrField() uint64 { return addrField(w.Addr) }

// ResetPhase is upc_resetphase (7.2.3.3).
func (w Wide) ResetPhase() Wide {
	w.Phase = 0
	return w
}

// Equal is UPC's ==: the same place, whatever the phases (6.4.2p7).
func (w Wide) Equal(r Wide) bool { return w.Thread == r.Thread && w.Addr == r.Addr }

// Add is w + n, of a type with blocks of block elements of size bytes (6.4.2p3 and p4): block
// 0 is the indefinite block size, and n may be negative.
func (w Wide) Add(n, block, size, threads int) Wide {
	return Wide(segment.Shared(w).Add(segment.Layout{Threads: threads, Block: block}, n, size))
}

// Sub is w - r (6.4.2p8), or false where that is undefined.
func (w Wide) Sub(r Wide, block, size, threads int) (n int, ok bool) {
	return segment.Shared(w).Sub(segment.Layout{Threads: threads, Block: block}, segment.Shared(r), size)
}

// String prints thread, phase and address.
func (w Wide) String() string {
	if w.IsNull() {
		return "null"
	}
	return fmt.Sprintf("%d:%d+%#x", w.Thread, w.Phase, w.AddrField())
}

// Type is the target type of a pointer-to-shared, as far as casts look at it. Size 0 is the
// generic "shared void".
type Type struct {
	Size  int // of an element, bytes
	Block int // elements of a block; 0 for indefinite
}

// Cast is w, a pointer to from, as a pointer to to (UPC 1.3, 6.4.3): a different size or
// block size gives phase 0, but for generic pointers, which keep the phase, and from which it
// is kept where the block size has phases. A phase that to does not have is undefined there,
// and 0 here.
func (w Wide) Cast(from, to Type) Wide {
	switch {
	case to.Size == 0, from == to: // 6.4.3p2
	case from.Size != 0: // p2
		w.Phase = 0
	case to.Block <= 1: // p3
		w.Phase = 0
	case w.Phase >= to.Block: // p3, undefined
		w.Phase = 0
	}
	return w
}

// AffinitySize is upc_affinitysize (7.2.3.5): how many bytes of a shared object of total
// bytes, in blocks of block bytes, lie on thread. block is 0 for the indefinite block size.
func AffinitySize(total, block, thread, threads int) int {
	return segment.Layout{Threads: threads, Block: block}.Affinity(total, thread)
}

// ToPtr is p as a pointer of package gas.
func ToPtr[T any](p Phaseless) gas.Ptr[T] { return gas.PtrFromUint64[T](uint64(p)) }

// FromPtr is a pointer of package gas as a pointer-to-shared.
func FromPtr[T any](p gas.Ptr[T]) Phaseless { return MakePhaseless(p.Rank(), p.NLA()) }

func addrField(a segment.NLA) uint64 {
	if a == 0 {
		return 0
	}
	return uint64(a - segment.AttachBase)
}

// divide is a div b rounding down, and a mod b, nonnegative; b is positive.
func divide(a, b int) (q, r int) {
	q, r = a/b, a%b
	if r < 0 {
		q--
		r += b
	}
	return q, r
}
