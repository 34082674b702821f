package gas

// What is unsafe here: a Ptr becomes a Go pointer into a segment. Segments lie
// outside the Go heap or are pinned for the life of the job and never move; the
// bounds and the right are checked against the View of the owner first, and T
// holds no Go pointers (CheckType at the Ptr's creation). Registered memory, which
// only its owner has as Go pointers, is a slice of firehose.Space's.

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Ptr is a pointer to a T in some rank's segment, or in what it has registered: one 64-bit word that any rank
// may hold, that may itself lie in shared memory, travel as two arguments of an
// active message (Words) and be swapped by a remote CompareAndSwap.
//
//	63        40 39                      0
//	+-----------+------------------------+
//	| rank (24) | network logical addr   |
//	+-----------+------------------------+
//
// The zero Ptr is nil. Two Ptr are == if they name the same place. T must hold
// no Go pointers and must not be of size 0, see CheckType; whatever creates a
// Ptr checks that. Ptr of different T do not convert into each other; Cast and
// Field do that.
//
// Every access names the Node it is made from, because a process may run
// several ranks. An access outside the owner's segment and what it has
// registered is an error and moves nothing. Put and Get order nothing and wake no rank:
// for flags and counters that another rank waits for use Store, FetchAdd and their kin,
// which are atomic, sequentially consistent, and wake waiters.
type Ptr[T any] struct {
	_ [0]*T
	w uint64
}

// The halves of a Ptr.
const (
	rankBits = 24
	nlaBits  = 64 - rankBits
	nlaMask  = 1<<nlaBits - 1

	numStrays = 1 << 8
	maxRanks  = 1<<rankBits - numStrays // the largest job: what is above stands for ranks out of range, see strays

	// nowhere is the address of what has left a rank's addresses: no memory ends there.
	nowhere = nlaMask
)

// makeWord is the word of address a of rank, which are in range.
func makeWord(rank int, a segment.NLA) uint64 { return uint64(rank)<<nlaBits | uint64(a)&nlaMask }

func wordNLA(w uint64) segment.NLA { return segment.NLA(w & nlaMask) }

// wordRank is the rank that w was made for, which the job may not have.
func wordRank(w uint64) int {
	if w < maxRanks<<nlaBits {
		return int(w >> nlaBits)
	}
	return strayRank(w)
}

// MakePtr names the T at address a of rank. It checks T, and that rank and a fit
// a Ptr, not that anything is there: that is checked at each access.
func MakePtr[T any](rank int, a segment.NLA) (Ptr[T], error) {
	if err := CheckType[T](); err != nil {
		return Ptr[T]{}, err
	}
	if uint(rank) >= maxRanks {
		return Ptr[T]{}, errs.BadArg("gas: rank %d of a Ptr is not in 0..%d", rank, maxRanks-1)
	}
	if a == 0 || a >= segment.ExposedLimit {
		return Ptr[T]{}, errs.BadArg("gas: %#x of a Ptr is not an address; they are less than %#x", uint64(a), uint64(segment.ExposedLimit))
	}
	return Ptr[T]{w: makeWord(rank, a)}, nil
}

// strays are the ranks that no Ptr can name of which Ptr were made in this process
// nevertheless (On has no error): such a Ptr has the number of an entry here, counted from
// maxRanks, in place of its rank, so that it reaches no memory and its use reports the rank
// that was given. The last entry but one is always -1's, which is the same in every process;
// the last is not used, so that no sum of a Ptr and a few bytes overflows.
var strays = strayRanks{ranks: [numStrays]int{numStrays - 2: -1}}

type strayRanks struct {
	mu    sync.Mutex
	ranks [numStrays]int // 0: not in use
	next  int
}

// stray is the number of rank's entry in strays.
//
//go:noinline
func stray(rank int) int {
	s := &strays
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range &s.ranks {
		if r == rank {
			return maxRanks + i
		}
	}
	i := s.next
	s.ranks[i] = rank
	s.next = (i + 1) % (numStrays - 2) // of many, Ptr of the oldest report another one's
	return maxRanks + i
}

// strayRank is the rank out of range that w was made for, or a number beyond all ranks if
// another process made it.
//
//go:noinline
func strayRank(w uint64) int {
	s, r := &strays, int(w>>nlaBits)
	s.mu.Lock()
	defer s.mu.Unlock()
	if rank := s.ranks[r-maxRanks]; rank != 0 {
		return rank
	}
	return r
}

// PtrFromUint64 is the inverse of Uint64. It panics if T cannot live in shared
// memory.
func PtrFromUint64[T any](w uint64) Ptr[T] {
	mustType[T]()
	return Ptr[T]{w: w}
}

// PtrFromWords is the inverse of Words. It panics if T cannot live in shared
// memory.
func PtrFromWords[T any](lo, hi uint32) Ptr[T] {
	return PtrFromUint64[T](uint64(hi)<<32 | uint64(lo))
}

// Uint64 is the word that p is.
func (p Ptr[T]) Uint64() uint64 { return p.w }

// Words is p as two arguments of an active message.
func (p Ptr[T]) Words() (lo, hi uint32) { return uint32(p.w), uint32(p.w >> 32) }

// IsNil reports whether p is the zero Ptr.
func (p Ptr[T]) IsNil() bool { return p.w == 0 }

// Rank is the owner of what p points to. For nil it is 0.
func (p Ptr[T]) Rank() int {
	if p.w < maxRanks<<nlaBits { // as wordRank, which would be too much to be inlined in here
		return int(p.w >> nlaBits)
	}
	return strayRank(p.w)
}

// NLA is the address in the owner's global address tables, or the exposed address.
func (p Ptr[T]) NLA() segment.NLA { return wordNLA(p.w) }

// Offset is the byte of the owner's segment that p points to; for what Register
// has returned, and with Config.Large, a number that the owner has given it.
func (p Ptr[T]) Offset() uint64 { return offset(wordNLA(p.w)) }

// offset counts from the begin of the kind of addresses that a is of.
func offset(a segment.NLA) uint64 {
	if a.Exposed() {
		return uint64(a - segment.ExposedBase)
	}
	return uint64(a - segment.AttachBase)
}

// On is the same offset on another rank: with memory that New or NewSlice gave,
// that rank's counterpart. What Register gave has none. A rank that the job does not have
// gives a Ptr whose use is an error that names the rank.
func (p Ptr[T]) On(rank int) Ptr[T] {
	if uint(rank) >= maxRanks {
		rank = stray(rank)
	}
	return Ptr[T]{w: uint64(rank)<<nlaBits | p.w&nlaMask}
}

// Add moves p by k elements of T; k may be negative. As with Go and C pointers
// the result may be used only inside the same allocation. The rank never
// changes: what would leave the 40 bits of the address points nowhere, wherever it is moved
// from there, and its use is an error.
func (p Ptr[T]) Add(k int) Ptr[T] {
	var t T
	a := p.w + uint64(k)*uint64(unsafe.Sizeof(t))
	// Neither k elements nor their sum with the address, nor that with 1 (it is nowhere) leave the rank.
	if most := nlaMask / int(max(unsafe.Sizeof(t), 1)); uint(k+most) > uint(2*most) || ((a^p.w)|(p.w^(p.w+1)))>>nlaBits != 0 {
		a = p.w | nowhere
	}
	return Ptr[T]{w: a}
}

// errNowhere is the error of an access at nowhere.
func errNowhere(op string, w uint64) error {
	return errs.BadArg("%s: a Ptr of rank %d whose address is out of range: Add has moved it past the addresses of a rank, which end at %#x",
		op, wordRank(w), uint64(nlaMask))
}

// Sub is the number of elements from q to p, which must be on the same rank and
// a whole number of elements apart; else the result means nothing.
func (p Ptr[T]) Sub(q Ptr[T]) int {
	var t T
	return int(p.w-q.w) / int(max(unsafe.Sizeof(t), 1))
}

// Compare orders Ptr by rank, then by address: -1 if p comes before q, 0 if they
// are equal, +1 if p comes after. Nil comes first.
func (p Ptr[T]) Compare(q Ptr[T]) int {
	switch {
	case p.w < q.w:
		return -1
	case p.w > q.w:
		return 1
	}
	return 0
}

// Less reports whether p comes before q in the order of Compare.
func (p Ptr[T]) Less(q Ptr[T]) bool { return p.w < q.w }

// String prints rank and offset, as "3+0x40", for registered memory and with
// Config.Large as "3@0x40"; or "nil"; "3+nowhere" for what Add has moved out of the
// rank's addresses.
func (p Ptr[T]) String() string {
	switch {
	case p.IsNil():
		return "nil"
	case p.w&nlaMask == nowhere:
		return fmt.Sprintf("%d+nowhere", p.Rank())
	case p.NLA().Exposed():
		return fmt.Sprintf("%d@%#x", p.Rank(), p.Offset())
	}
	return fmt.Sprintf("%d+%#x", p.Rank(), p.Offset())
}

// Cast is the same place seen as a U: the program answers for what it finds
// there.
func Cast[U, T any](p Ptr[T]) (Ptr[U], error) {
	if err := CheckType[U](); err != nil {
		return Ptr[U]{}, err
	}
	return Ptr[U]{w: p.w}, nil
}

// Field points to a part of *p, which of names, as in
//
//	gas.Field(p, func(e *entry) *uint64 { return &e.count })
//
// of is called with a T of the caller's own and must return the address of some
// part of it; it panics otherwise.
func Field[F, T any](p Ptr[T], of func(*T) *F) Ptr[F] {
	var t T
	f := of(&t)
	off := uintptr(unsafe.Pointer(f)) - uintptr(unsafe.Pointer(&t))
	if off > unsafe.Sizeof(t) || unsafe.Sizeof(t)-off < unsafe.Sizeof(*f) || unsafe.Sizeof(*f) == 0 {
		panic("gas: Field: the function returned no part of its argument")
	}
	return Ptr[F]{w: min(p.w+uint64(off), p.w|nowhere)}
}

// One comparison checks bounds and right of an access of size bytes at word w:
//
//	(w-base)&nlaMask + size <= limit
//
// An address below the segment, or an exposed one, becomes an offset larger than
// any segment, and the sum cannot wrap; limit is 0 outside the neighbourhood and where the right
// is missing, see segment.Views, whose methods make it.
const base = uint64(segment.AttachBase)

// writable is the size bytes at word w for storing, or false if they are not reached so.
func (n *Node) writable(w, size uint64) (unsafe.Pointer, bool) {
	return n.views.Write(w>>nlaBits, (w-base)&nlaMask, size)
}

// readable is writable for loading.
func (n *Node) readable(w, size uint64) (unsafe.Pointer, bool) {
	return n.views.Read(w>>nlaBits, (w-base)&nlaMask, size)
}

// Put stores v. It returns when v is visible to every rank. An aligned put of 8
// bytes is atomic against others.
func (p Ptr[T]) Put(n *Node, v T) error {
	if q, ok := n.writable(p.w, uint64(unsafe.Sizeof(v))); ok {
		*(*T)(q) = v
		return nil
	}
	return putSlow(n, p.w, v)
}

// Get loads the T that p points to.
func (p Ptr[T]) Get(n *Node) (v T, err error) {
	if q, ok := n.readable(p.w, uint64(unsafe.Sizeof(v))); ok {
		return *(*T)(q), nil
	}
	return getSlow[T](n, p.w)
}

// Local is *p as memory of this process, if the owner is in the neighbourhood
// of n's rank and grants reading and writing; it stays valid until the job ends.
// Registered memory (Register, Config.Large) is local to its owner only.
// Accesses through it are plain memory accesses: ordering them against other
// ranks is the program's business (barriers, atomics).
func (p Ptr[T]) Local(n *Node) (*T, bool) {
	var t T
	q := n.direct(p.w, uint64(unsafe.Sizeof(t)))
	return (*T)(q), q != nil
}

// LocalSlice is Local for count elements from p on.
func (p Ptr[T]) LocalSlice(n *Node, count int) ([]T, bool) {
	var t T
	size := uint64(unsafe.Sizeof(t))
	if uint64(count) > nlaMask/size {
		return nil, false
	}
	if count == 0 {
		return nil, n.Neighbour(p.Rank()) || p.Rank() == n.rank
	}
	q := n.direct(p.w, uint64(count)*size)
	if q == nil {
		return nil, false
	}
	return unsafe.Slice((*T)(q), count), true
}

// direct returns size bytes at w for reading and writing, or nil if they cannot
// be had. size is at most nlaMask.
func (n *Node) direct(w, size uint64) unsafe.Pointer {
	if v := n.views.Of(w >> nlaBits); v != nil {
		if off := (w - base) & nlaMask; off+size <= min(v.Read, v.Write) {
			return unsafe.Add(v.Base, off)
		}
		// When the job has failed the views refuse what they allowed, so that accesses
		// learn of it; memory that is asked for as such stays to be had.
		const both = segment.RightRead | segment.RightWrite
		if rank := wordRank(w); v.Base != nil && conduits.InSegment(n.ep, rank, wordNLA(w), size) && n.ep.SegmentRights(rank)&both == both {
			return unsafe.Add(v.Base, (w-base)&nlaMask)
		}
	}
	return n.exposed(w, size)
}

// PutSlice stores the elements of src at p and after it, and returns when they
// are visible to every rank.
func (p Ptr[T]) PutSlice(n *Node, src []T) error {
	return n.putBytes(p.w, bytesOf(src))
}

// GetSlice loads len(dst) elements from p on into dst.
func (p Ptr[T]) GetSlice(n *Node, dst []T) error {
	return n.getBytes(p.w, bytesOf(dst))
}

// PutNB begins to store v; the copy of v is taken before it returns.
func (p Ptr[T]) PutNB(n *Node, v T) (Handle, error) {
	if q, ok := n.writable(p.w, uint64(unsafe.Sizeof(v))); ok && !n.debug {
		*(*T)(q) = v
		return 0, nil
	}
	return putNBSlow(n, p.w, v)
}

// GetNB begins to load *p into *dst, which must be left alone until the Handle
// has been synchronized.
func (p Ptr[T]) GetNB(n *Node, dst *T) (Handle, error) {
	return p.GetSliceNB(n, unsafe.Slice(dst, 1))
}

// PutSliceNB begins to store the elements of src at p and after it. src must be
// left alone until the Handle has been synchronized.
func (p Ptr[T]) PutSliceNB(n *Node, src []T) (Handle, error) {
	return n.putBytesNB(p.w, bytesOf(src))
}

// GetSliceNB begins to load len(dst) elements from p on into dst, which must be
// left alone until the Handle has been synchronized.
func (p Ptr[T]) GetSliceNB(n *Node, dst []T) (Handle, error) {
	return n.getBytesNB(p.w, bytesOf(dst))
}

// bytesOf is s as bytes.
func bytesOf[T any](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

func (n *Node) putBytes(w uint64, src []byte) error {
	if n.putDirect(w, src) {
		return nil
	}
	return n.putBytesSlow(w, src)
}

func (n *Node) getBytes(w uint64, dst []byte) error {
	if n.getDirect(w, dst) {
		return nil
	}
	return n.getBytesSlow(w, dst)
}

// putDirect copies src to w if that can be done directly. Not if src is empty:
// its end could be the segment's, and there must be no pointer to that.
func (n *Node) putDirect(w uint64, src []byte) bool {
	if len(src) > 0 {
		if q, ok := n.writable(w, uint64(len(src))); ok {
			bulk.Copy(unsafe.Slice((*byte)(q), len(src)), src)
			return true
		}
	}
	return false
}

// getDirect is putDirect the other way.
func (n *Node) getDirect(w uint64, dst []byte) bool {
	if len(dst) > 0 {
		if q, ok := n.readable(w, uint64(len(dst))); ok {
			bulk.Copy(dst, unsafe.Slice((*byte)(q), len(dst)))
			return true
		}
	}
	return false
}

// check is the error that an access of size bytes at w deserves, if any.
func (n *Node) check(op string, w, size uint64) error {
	switch {
	case w == 0:
		return errNil(op)
	case w&nlaMask == nowhere:
		return errNowhere(op, w)
	}
	if wordNLA(w).Exposed() {
		return n.checkExposed(op, w, size)
	}
	return conduits.CheckRemote(n.ep, op, wordRank(w), wordNLA(w), size)
}
