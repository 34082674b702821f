// Direct access: plain loads and stores in the memory of ranks of the
// neighbourhood. What is unsafe here is one thing only: pointers into a segment
// are made from segment.View.Base plus an offset that was compared with the
// view's limits before. A segment holds no Go pointers, never moves, and
// stays until the endpoint is closed, so such a pointer may be turned into *uint64 and the
// like at any alignment (amd64 and arm64 load and store unaligned words).

package extended

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// reach is the memory that load and store reach.
type reach struct{ segment.Views }

// offset is where a lies in a segment, from its byte 0 on; MaxOffset of an address that lies in none.
func offset(a segment.NLA) uint64 { return min(uint64(a-segment.AttachBase), segment.MaxOffset) }

// writable returns the n bytes at a of rank's segment for storing; false if that must not or cannot
// be done directly. Where n may be 0 the pointer is not to be used, as it may be the segment's end.
func (v *reach) writable(rank int, a segment.NLA, n uint64) (unsafe.Pointer, bool) {
	return v.Write(uint64(rank), offset(a), n)
}

// readable is writable for loading.
func (v *reach) readable(rank int, a segment.NLA, n uint64) (unsafe.Pointer, bool) {
	return v.Read(uint64(rank), offset(a), n)
}

// word64 is the aligned word at a of rank's segment for atomics, or nil.
func (v *reach) word64(rank int, a segment.NLA) *uint64 {
	p, _ := v.Atomic(uint64(rank), offset(a), 8, 8)
	return (*uint64)(p)
}

// lockWords are the words of a lock, or nil. Lock and Unlock have a short way for those
// that load and store reach: 20 ns both, where lock and unlock take 30.
func (v *reach) lockWords(rank int, at segment.NLA) *[LockSize / 8]uint64 {
	p, _ := v.Atomic(uint64(rank), offset(at), LockSize, 8)
	return (*[LockSize / 8]uint64)(p)
}

// ownWord is a word of the own segment whose address was checked.
func (x *Initiator) ownWord(a segment.NLA) *uint64 {
	return (*uint64)(unsafe.Add(x.mine.Base, uint64(a-segment.AttachBase)))
}

// Direct returns the n bytes at a of rank's segment, or of memory that this rank
// itself has exposed, as plain memory, or nil if rank is outside the neighbourhood
// or any byte is outside. It asks for no rights, but using them without is a fault
// of the caller. The memory is valid until the endpoint's conduit is closed, or
// what is exposed is unmapped, and changes under the reader's hands: see the
// package comment on ordering.
func (x *Initiator) Direct(rank int, a segment.NLA, n uint64) []byte {
	if a.Exposed() && x.exposed != nil && rank == x.ep.Rank() {
		mem, _ := x.exposed.Local(a, n)
		return mem
	}
	if !x.views.near(rank) {
		return nil
	}
	// One that refuses nothing when the job has failed.
	v := segment.NewView(x.views.Of(uint64(rank)).Base, x.ep.SegmentSize(rank), segment.RightsAll)
	if v.Size() == 0 {
		return nil
	}
	if uint64(a-segment.AttachBase) == v.Size() && n == 0 {
		return []byte{}
	}
	b, ok := v.Bytes(a, n, v.Size())
	if !ok {
		return nil
	}
	return b
}

// Put copies src to address to of rank dst's segment and returns when it is
// visible there. src may lie anywhere and may be reused when Put returns. An
// aligned 8-byte put to a segment is single-copy atomic. Putting nothing succeeds whatever
// the address. The source and the target must not overlap.
func (x *Initiator) Put(dst int, to segment.NLA, src []byte) error {
	if len(src) == 8 { // by itself: with one use of p the compiler makes one branch of ok and this
		if p, ok := x.views.writable(dst, to, 8); ok {
			*(*uint64)(p) = *(*uint64)(unsafe.Pointer(unsafe.SliceData(src)))
			return nil
		}
	} else if p, ok := x.views.writable(dst, to, uint64(len(src))); ok && len(src) > 0 {
		store(p, src)
		return nil
	}
	hidden := hide(src)
	return x.putSlow(dst, to, hidden)
}

// Get copies len(dst) bytes from address from of rank src's segment to dst,
// which may lie anywhere, and returns when they are there. An aligned 8-byte
// get of a segment is single-copy atomic. Getting nothing succeeds whatever the address.
func (x *Initiator) Get(src int, from segment.NLA, dst []byte) error {
	if len(dst) == 8 {
		if p, ok := x.views.readable(src, from, 8); ok {
			*(*uint64)(unsafe.Pointer(unsafe.SliceData(dst))) = *(*uint64)(p)
			return nil
		}
	} else if p, ok := x.views.readable(src, from, uint64(len(dst))); ok && len(dst) > 0 {
		bulk.Copy(dst, bytesAt(p, len(dst)))
		return nil
	}
	hidden := hide(dst)
	return x.getSlow(src, from, hidden)
}

// putSlow is Put where load and store do not do it. src may be hidden.
//
//go:noinline
func (x *Initiator) putSlow(dst int, to segment.NLA, src []byte) error {
	var kept *[bounceSize]byte
	if onStack(src) {
		var heap []byte
		heap, kept = bounce(len(src))
		bulk.Copy(heap, src)
		src = heap
	}
	var err error
	if !hits(x, conduits.Put, dst, to, src) {
		var q operation
		q.put(dst, to, src, wantBulk)
		_, _, err = x.run(&q, nil, byReturn, nil)
	}
	unbounce(kept, err)
	return err
}

// getSlow is Get where load and store do not do it. dst may be hidden.
//
//go:noinline
func (x *Initiator) getSlow(src int, from segment.NLA, dst []byte) error {
	mem, stack := dst, onStack(dst)
	var kept *[bounceSize]byte
	if stack {
		mem, kept = bounce(len(dst))
	}
	var err error
	if !hits(x, conduits.Get, src, from, mem) {
		var q operation
		q.get(src, from, mem)
		_, _, err = x.run(&q, nil, byReturn, nil)
	}
	if stack && err == nil {
		bulk.Copy(dst, mem)
	}
	unbounce(kept, err)
	return err
}

// hits puts or gets mem if it is a hit, exposed memory that a firehose reaches.
func hits(x *Initiator, verb conduits.Verb, rank int, at segment.NLA, mem []byte) bool {
	return at.Exposed() && x.exposed != nil && x.exposed.Hit(verb, rank, at, mem)
}

// hide is b for a function which makes sure that nothing refers to b when that lies on
// the caller's stack, as onStack says, and the function returns or the stack moves. The
// compiler takes it for another slice, so that a local variable which is put or got
// needs no memory of the heap: 30 ns where a direct access takes 2.
//
// Under the race detector the compiler would check the slice by a call, over which it
// may keep the pointer as a number, which does not move with the stack.
//
//go:nocheckptr
func hide(b []byte) []byte {
	return unsafe.Slice((*byte)(sys.Hide(unsafe.Pointer(unsafe.SliceData(b)))), len(b))
}

// onStack reports whether b lies on the stack of the calling goroutine, or may.
func onStack(b []byte) bool {
	lo, hi := sys.Stack()
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return lo <= p && p < hi
}

// bounces are buffers for what conduits, and other goroutines for them, read and write
// while the caller of a blocking operation waits and its stack may move.
var bounces = sync.Pool{New: func() any { return new([bounceSize]byte) }}

const bounceSize = 4096

// bounce gives n bytes of the heap, and the one of bounces that they are, or nil.
func bounce(n int) ([]byte, *[bounceSize]byte) {
	if n > bounceSize {
		return make([]byte, n), nil
	}
	kept := bounces.Get().(*[bounceSize]byte)
	return kept[:n], kept
}

// unbounce takes back what bounce gave, if the operation that used it is complete: one
// that has failed may use it yet, and leaves it to the collector.
func unbounce(kept *[bounceSize]byte, err error) {
	if kept != nil && err == nil {
		bounces.Put(kept)
	}
}

// PutValue puts the low n bytes of v, n from 1 to 8, little-endian, to address
// to of rank. If n is 1, 2, 4 or 8 and to is a multiple of n, the put is
// single-copy atomic.
func (x *Initiator) PutValue(rank int, to segment.NLA, v uint64, n int) error {
	if n == 8 {
		if p, ok := x.views.writable(rank, to, 8); ok {
			*(*uint64)(p) = v
			return nil
		}
	} else if uint(n-1) < 8 && x.views.putValue(rank, to, v, n) {
		return nil
	}
	return putValueSlow(x, rank, to, v, n)
}

//go:noinline
func putValueSlow(x *Initiator, rank int, to segment.NLA, v uint64, n int) error {
	var q operation
	q.putValue(rank, to, v, n)
	_, err := q.now(x)
	return err
}

// GetValue gets n bytes, n from 1 to 8, from address from of rank, as a
// little-endian number extended with zeros. Atomic as PutValue is.
func (x *Initiator) GetValue(rank int, from segment.NLA, n int) (uint64, error) {
	if n == 8 {
		if p, ok := x.views.readable(rank, from, 8); ok {
			return *(*uint64)(p), nil
		}
	} else if uint(n-1) < 8 {
		if v, ok := x.views.getValue(rank, from, n); ok {
			return v, nil
		}
	}
	return getValueSlow(x, rank, from, n)
}

//go:noinline
func getValueSlow(x *Initiator, rank int, from segment.NLA, n int) (uint64, error) {
	var q operation
	q.getValue(rank, from, nil, n)
	return q.now(x)
}

// put does a put if that is possible directly.
func (v *reach) put(dst int, to segment.NLA, src []byte) bool {
	p, ok := v.writable(dst, to, uint64(len(src)))
	if !ok || len(src) == 0 {
		return false
	}
	if len(src) == 8 {
		*(*uint64)(p) = *(*uint64)(unsafe.Pointer(unsafe.SliceData(src)))
		return true
	}
	store(p, src)
	return true
}

// get does a get if that is possible directly.
func (v *reach) get(src int, from segment.NLA, dst []byte) bool {
	p, ok := v.readable(src, from, uint64(len(dst)))
	if !ok || len(dst) == 0 {
		return false
	}
	if len(dst) == 8 {
		*(*uint64)(unsafe.Pointer(unsafe.SliceData(dst))) = *(*uint64)(p)
		return true
	}
	bulk.Copy(dst, unsafe.Slice((*byte)(p), len(dst)))
	return true
}

// putValue does a put of 1 to 8 bytes if that is possible directly.
func (v *reach) putValue(rank int, to segment.NLA, value uint64, n int) bool {
	p, ok := v.writable(rank, to, uint64(n))
	if !ok {
		return false
	}
	switch n {
	case 8:
		*(*uint64)(p) = value
	case 4:
		*(*uint32)(p) = uint32(value)
	case 2:
		*(*uint16)(p) = uint16(value)
	default:
		b := unsafe.Slice((*byte)(p), n)
		for i := range b {
			b[i] = byte(value >> (8 * i))
		}
	}
	return true
}

// getValue does a get of 1 to 8 bytes if that is possible directly.
func (v *reach) getValue(rank int, from segment.NLA, n int) (uint64, bool) {
	p, ok := v.readable(rank, from, uint64(n))
	if !ok {
		return 0, false
	}
	switch n {
	case 8:
		return *(*uint64)(p), true
	case 4:
		return uint64(*(*uint32)(p)), true
	case 2:
		return uint64(*(*uint16)(p)), true
	}
	return littleEndian(unsafe.Slice((*byte)(p), n)), true
}

// memset fills n bytes if that is possible directly.
func (v *reach) memset(rank int, to segment.NLA, value byte, n uint64) bool {
	p, ok := v.writable(rank, to, n)
	if !ok {
		return false
	}
	fill(unsafe.Slice((*byte)(p), n), value)
	return true
}

// apply performs op if that is possible directly. op must exist for t.
func (v *reach) apply(rank int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (uint64, bool) {
	p, ok := v.Atomic(uint64(rank), offset(to), uint64(t.Size()), uint64(t.Size()))
	if !ok {
		return 0, false
	}
	return conduits.ApplyAtomic(p, op, t, a, b), true
}

// store copies src to p, where as much has room.
func store(p unsafe.Pointer, src []byte) { bulk.Copy(bytesAt(p, len(src)), src) }

// bytesAt is n bytes of a segment, from p on, which was checked for as many.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// loadWord reads an aligned word atomically.
func loadWord(mem []byte) (v uint64, ok bool) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%8 != 0 {
		return 0, false
	}
	return atomic.LoadUint64((*uint64)(p)), true
}
