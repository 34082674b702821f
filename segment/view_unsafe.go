package segment

import "unsafe"

// View is one rank's attach segment as plain memory of this process: what
// "direct access" hands to the layers above (design brief, section 4).
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

// What tables take in memory that processes share, in bytes: whole pages. Memory
// of a GAT that nothing has been stored in need not be there yet.
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
