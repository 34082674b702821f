package segment

import "unsafe"

// View is one rank's attach segment as plain memory of this process: what
// a conduit hands to the layers above for direct access.
//
// The three sizes are the segment's length in bytes where the right is granted
// and 0 where it is not, so that one comparison checks bounds and rights
// together and costs the hot path nothing extra. A zero View refuses every
// access. Views are immutable once the job is attached, except that a conduit may
// set their sizes to 0 when the job has failed.
//
// The memory is shared and changes under the reader's hands. Aligned loads and stores
// of 1, 2, 4 and 8 bytes are single-copy atomic; what orders them, the memory model in
// the comment of package extended says.
type View struct {
	Base   unsafe.Pointer // byte 0 of the segment, page aligned; see At for what follows the last
	Read   uint64         // bytes that may be read, from 0
	Write  uint64         // bytes that may be written, from 0
	Atomic uint64         // bytes that atomics may touch, from 0
}

// NewView describes size bytes at base with rights.
func NewView(base unsafe.Pointer, size uint64, rights Rights) View {
	v := View{Base: base}
	if rights&RightRead != 0 {
		v.Read = size
	}
	if rights&RightWrite != 0 {
		v.Write = size
	}
	if rights&RightAtomic != 0 {
		v.Atomic = size
	}
	return v
}

// Shut sets the sizes to 0 while others may use the view, so that direct accesses end
// with an error from now on. An access that is under way and one that misses the stores
// reach the memory, which stays. The race detector is not told, as it does not know
// that this is harmless.
//
//go:norace
func (v *View) Shut() { v.Read, v.Write, v.Atomic = 0, 0, 0 }

// Size is the segment's length in bytes, whatever the rights.
func (v *View) Size() uint64 { return max(v.Read, v.Write, v.Atomic) }

// At returns the memory of n bytes at a, where limit is the View's size field
// for the right that the access needs, or false if any byte lies outside.
// Wrapping arithmetic cannot pass: an address below AttachBase becomes a huge
// offset. No bytes at the segment's end are inside: the pointer is then one behind
// the memory, so that a segment of the Go heap has more of the same object behind it: else
// the collector would take the pointer for one to the next object.
func (v *View) At(a NLA, n, limit uint64) (unsafe.Pointer, bool) {
	off := uint64(a - AttachBase)
	if off > limit || limit-off < n {
		return nil, false
	}
	return unsafe.Add(v.Base, off), true
}

// Bytes returns n bytes at a for an access that limit allows (see At).
func (v *View) Bytes(a NLA, n, limit uint64) ([]byte, bool) {
	p, ok := v.At(a, n, limit)
	if !ok {
		return nil, false
	}
	return unsafe.Slice((*byte)(p), n), true
}

// Views are those of the ranks from First on: all that a rank reaches by load and store. Its
// methods are the comparison that every direct access makes, once for all packages, and are
// inlined. Offsets count from AttachBase; what lies before it, or is no offset, gives one that is
// larger than any segment. The sum of offset and length must not wrap: the offset of an address of
// 40 bits is (a-AttachBase) mod 2^40, and that of any other at most MaxOffset.
type Views struct {
	All   []View
	First uint64
}

// MaxOffset is behind every segment, and no length of Go's memory added to it wraps.
const MaxOffset = 1 << 62

// NewViews is the views of the ranks from first on, as a conduit has them.
func NewViews(first int, all []View) Views { return Views{All: all, First: uint64(first)} }

// Of is rank's view, or nil if there is none.
func (s *Views) Of(rank uint64) *View {
	if i := rank - s.First; i < uint64(len(s.All)) {
		return &s.All[i]
	}
	return nil
}

// Write returns n bytes at offset off of rank's segment for storing, or false if they cannot be
// had. With n = 0 the pointer, which may be the segment's end, is not to be used. (The compiler
// makes one branch of ok and the caller's test of it; of nil and a test for nil it makes two.)
func (s *Views) Write(rank, off, n uint64) (p unsafe.Pointer, ok bool) {
	if i := rank - s.First; i < uint64(len(s.All)) {
		if v := &s.All[i]; off+n <= v.Write {
			return unsafe.Add(v.Base, off), true
		}
	}
	return nil, false
}

// Read is Write for loading.
func (s *Views) Read(rank, off, n uint64) (p unsafe.Pointer, ok bool) {
	if i := rank - s.First; i < uint64(len(s.All)) {
		if v := &s.All[i]; off+n <= v.Read {
			return unsafe.Add(v.Base, off), true
		}
	}
	return nil, false
}

// Atomic is Write for atomics, at a multiple of align, a power of two.
func (s *Views) Atomic(rank, off, n, align uint64) (p unsafe.Pointer, ok bool) {
	if i := rank - s.First; i < uint64(len(s.All)) {
		if v := &s.All[i]; off+n <= v.Atomic && off&(align-1) == 0 {
			return unsafe.Add(v.Base, off), true
		}
	}
	return nil, false
}

// Bytes of tables in memory that processes share, whole pages. A GAT that nothing has been
// stored in may still be a hole.
const (
	GATBytes       = uint64(unsafe.Sizeof(GAT{}))
	DirectoryBytes = uint64(unsafe.Sizeof(Directory{}))
)

// GATAt is the first GATBytes of mem as a table, or nil if there are fewer or
// they are not aligned to 8 bytes. mem must stay mapped.
func GATAt(mem []byte) *GAT { return viewAt[GAT](mem) }

// DirectoryAt is the first DirectoryBytes of mem as a directory, or nil if there
// are fewer or they are not aligned to 8 bytes. mem must stay mapped.
func DirectoryAt(mem []byte) *Directory { return viewAt[Directory](mem) }

// viewAt is for types of atomic words only: every content is a value of theirs.
func viewAt[T any](mem []byte) *T {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uint64(len(mem)) < uint64(unsafe.Sizeof(*(*T)(nil))) || uintptr(p)%8 != 0 {
		return nil
	}
	return (*T)(p)
}
