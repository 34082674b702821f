// The memory of C programs. What is unsafe here: pointers into memory that this file maps, at
// places that its allocators give out once; and arithmetic on the pointers of the program,
// which is as safe as it is in C. A pointer to a function is one of Go, to what the linker has
// made of a function of package main: a word that is neither moved nor freed.

package libc

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

const (
	heapSize  = 64 << 30 // of the process, bytes; memory is taken when it is touched
	stackSize = 256 << 20
	header    = 16 // before a block: its size, and what says that it is one
	inUse     = 0x6172676f6e2d6d65
	inside    = 0x6172676f6e2d696e // the header of what lies in a block: how far from its beginning
)

// heap is the memory of malloc and of everything with static storage.
var heap struct {
	sync.Mutex
	base  unsafe.Pointer
	alloc *segment.Heap
}

func mapMemory(size int64) unsafe.Pointer {
	f, err := sys.CreateMemory("", "upc", size)
	if err != nil {
		panic(fmt.Sprintf("libc: no memory: %v", err))
	}
	defer f.Close()
	p, err := sys.Map(f.Fd(), size)
	if err != nil {
		panic(fmt.Sprintf("libc: no memory: %v", err))
	}
	return p
}

// allocate is a block of size bytes, or nil.
func allocate(size uint64) unsafe.Pointer {
	heap.Lock()
	defer heap.Unlock()
	if heap.base == nil {
		heap.base = mapMemory(heapSize)
		var err error
		if heap.alloc, err = segment.NewHeap(segment.AttachBase, heapSize); err != nil {
			panic(err)
		}
	}
	if size >= heapSize {
		return nil
	}
	// The lowest place: rows that a program allocates one after the other lie so, and the processor fetches ahead upwards.
	a, err := heap.alloc.AllocCollective(size+header, 0)
	if err != nil {
		return nil
	}
	p := unsafe.Add(heap.base, uint64(a-segment.AttachBase))
	h := (*[2]uint64)(p)
	h[0], h[1] = size, inUse
	return unsafe.Add(p, header)
}

// block is where the block begins that p lies in, and how many bytes of it there are from p on.
func block(what string, p unsafe.Pointer) (begin unsafe.Pointer, size uint64) {
	off := uintptr(p) - uintptr(heap.base)
	if heap.base != nil && off >= header && off < heapSize {
		switch h := (*[2]uint64)(unsafe.Add(p, -header)); h[1] {
		case inUse:
			return p, h[0]
		case inside:
			begin := unsafe.Add(p, -int(h[0]))
			return begin, (*[2]uint64)(unsafe.Add(begin, -header))[0] - h[0]
		}
	}
	panic(fmt.Sprintf("libc: %s(%p): invalid pointer, or freed before", what, p))
}

// Malloc is malloc. The memory is not cleared.
func (c *C) Malloc(size uint64) unsafe.Pointer { return allocate(max(size, 1)) }

// Calloc is calloc (C99, 7.20.3.1).
func (c *C) Calloc(n, size uint64) unsafe.Pointer {
	if size != 0 && n > heapSize/size {
		return nil
	}
	p := allocate(max(n*size, 1))
	if p != nil {
		bulk.Clear(unsafe.Slice((*byte)(p), n*size))
	}
	return p
}

// Realloc is realloc (C99, 7.20.3.4).
func (c *C) Realloc(p unsafe.Pointer, size uint64) unsafe.Pointer {
	if p == nil {
		return c.Malloc(size)
	}
	_, old := block("realloc", p)
	q := c.Malloc(size)
	if q != nil {
		bulk.Copy(unsafe.Slice((*byte)(q), size), unsafe.Slice((*byte)(p), old))
		c.Free(p)
	}
	return q
}

// Free is free (C99, 7.20.3.2).
func (c *C) Free(p unsafe.Pointer) {
	if p == nil {
		return
	}
	p, _ = block("free", p)
	heap.Lock()
	defer heap.Unlock()
	p = unsafe.Add(p, -header)
	(*[2]uint64)(p)[1] = 0
	if err := heap.alloc.FreeCollective(segment.AttachBase + segment.NLA(uintptr(p)-uintptr(heap.base))); err != nil {
		panic(fmt.Sprintf("libc: free(%p): %v", p, err))
	}
}

// Static is memory for a T that lives as long as the process, with value 0.
func Static[T any]() *T {
	var v T
	p := (*T)(allocate(uint64(unsafe.Sizeof(v))))
	*p = v
	return p
}

// StaticAligned is Static at a multiple of align bytes.
func StaticAligned[T any](align uint64) *T {
	var v T
	p := (*T)(Aligned(align, uint64(unsafe.Sizeof(v))))
	*p = v
	return p
}

// Str is a string constant, which ends with its 0.
func Str(s string) *int8 {
	p := allocate(uint64(len(s)))
	copy(unsafe.Slice((*byte)(p), len(s)), s)
	return (*int8)(p)
}

// stack is a thread's stack of variables whose address is taken.
type stack struct {
	base, end unsafe.Pointer
	top       unsafe.Pointer
}

// Mark is the top of the stack, for Release.
func (c *C) Mark() unsafe.Pointer { return c.stack.top }

// Release gives back what Local has taken since top was the top of the stack.
func (c *C) Release(top unsafe.Pointer) { c.stack.top = top }

// Local is a variable on the stack, with value 0.
func Local[T any](c *C) *T {
	var v T
	p := c.stack.top
	c.stack.top = unsafe.Add(p, (unsafe.Sizeof(v)+15)&^15)
	if uintptr(c.stack.top) > uintptr(c.stack.end) {
		panic("libc: stack overflow")
	}
	q := (*T)(p)
	*q = v
	return q
}

// LocalAligned is Local at a multiple of align bytes, a power of two.
func LocalAligned[T any](c *C, align uintptr) *T {
	c.stack.top = unsafe.Add(c.stack.top, -uintptr(c.stack.top)&(align-1))
	return Local[T](c)
}

// Push pushes the variable arguments of a call onto the stack, from which the function that is
// called takes them.
func (c *C) Push(words ...uint64) *uint64 {
	p := c.stack.top
	c.stack.top = unsafe.Add(p, (len(words)*8+15)&^15)
	if uintptr(c.stack.top) > uintptr(c.stack.end) {
		panic("libc: stack overflow")
	}
	copy(unsafe.Slice((*uint64)(p), len(words)), words)
	return (*uint64)(p)
}

// Integer is an integer type of C.
type Integer interface {
	~int | ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// At is p + i.
func At[T any, I Integer](p *T, i I) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), int(i)*int(unsafe.Sizeof(*p))))
}

// Diff is p - q, elements.
func Diff[T any](p, q *T) int64 {
	return (int64(uintptr(unsafe.Pointer(p))) - int64(uintptr(unsafe.Pointer(q)))) / int64(unsafe.Sizeof(*p))
}

// Recast is a pointer to a function as one of another type, or as another pointer, which has to be
// one of the first type again before it is called, but that pointers of all types are passed alike.
func Recast[To, From any](p From) To { return *(*To)(unsafe.Pointer(&p)) }

// FromInt is an integer as a pointer.
func FromInt(i int64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&i)) }

// Bool is the value of a comparison.
func Bool(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// Byte is an integer as an unsigned char. Go refuses the conversion of a constant such as -1.
func Byte[I Integer](i I) byte { return byte(i) }

// Bits is the bit-field of n bits from bit shift of w on.
func Bits[T Integer](w T, shift, n uint) T {
	size := uint(unsafe.Sizeof(w)) * 8
	return w << (size - shift - n) >> (size - n)
}

// SetBits sets a bit-field of *p and is its new value.
func SetBits[T Integer](p *T, shift, n uint, v T) T {
	mask := (T(1)<<n - 1) << shift
	*p = *p&^mask | v<<shift&mask
	return Bits(*p, shift, n)
}

// PackedBits is the bit-field of n bits from bit shift on of the bytes at p.
func PackedBits[T Integer](p unsafe.Pointer, shift, n uint) T {
	var v uint64
	for i := uint(0); i < n; {
		at := (shift + i) % 8
		v |= uint64(*(*uint8)(unsafe.Add(p, (shift+i)/8))>>at) << i
		i += 8 - at
	}
	return Bits(T(v), 0, n)
}

// SetPackedBits sets such a bit-field, and no other bits, and is its new value.
func SetPackedBits[T Integer](p unsafe.Pointer, shift, n uint, v T) T {
	for i := uint(0); i < n; {
		at := (shift + i) % 8
		SetBits((*uint8)(unsafe.Add(p, (shift+i)/8)), at, min(8-at, n-i), uint8(v>>i))
		i += 8 - at
	}
	return Bits(v, 0, n)
}

// SetStr sets the elements of a character array from the first on.
func SetStr[T Integer](a []T, s string) {
	for i := range len(s) {
		a[i] = T(int8(s[i]))
	}
}

// bytesAt is n bytes at p.
func bytesAt(p unsafe.Pointer, n uint64) []byte { return unsafe.Slice((*byte)(p), n) }

func chars(p *int8) unsafe.Pointer { return unsafe.Pointer(p) }

// text is the string at p, without its 0, in place.
func text(p *int8) []byte {
	if p == nil {
		return nil
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
}

// Bytes is n bytes at p, as package rt takes private memory.
func Bytes(p unsafe.Pointer, n uint64) []byte { return bytesAt(p, n) }

// Args makes argv.
func Args(args []string) **int8 {
	p := allocate(uint64(len(args)+1) * 8)
	v := unsafe.Slice((**int8)(p), len(args)+1)
	for i, a := range args {
		v[i] = Str(a + "\x00")
	}
	v[len(args)] = nil
	return &v[0]
}

// Memcpy is memcpy, and memmove.
func (c *C) Memcpy(dst, src unsafe.Pointer, n uint64) unsafe.Pointer {
	bulk.Copy(bytesAt(dst, n), bytesAt(src, n))
	return dst
}

// Memmove is memmove (C99, 7.21.2.2).
func (c *C) Memmove(dst, src unsafe.Pointer, n uint64) unsafe.Pointer { return c.Memcpy(dst, src, n) }

// Memset is memset (C99, 7.21.6.1).
func (c *C) Memset(p unsafe.Pointer, v int32, n uint64) unsafe.Pointer {
	b := bytesAt(p, n)
	for i := range b {
		b[i] = byte(v)
	}
	return p
}

// Qsort is qsort, by cmp.
func (c *C) Qsort(p unsafe.Pointer, n, size uint64, cmp func(a, b unsafe.Pointer) int32) {
	tmp := make([]byte, size)
	at := func(i uint64) unsafe.Pointer { return unsafe.Add(p, i*size) }
	swap := func(i, j uint64) {
		copy(tmp, bytesAt(at(i), size))
		copy(bytesAt(at(i), size), bytesAt(at(j), size))
		copy(bytesAt(at(j), size), tmp)
	}
	// Heap sort: in place, and bounded whatever cmp says.
	sift := func(i, n uint64) {
		for {
			k := 2*i + 1
			if k >= n {
				return
			}
			if k+1 < n && cmp(at(k), at(k+1)) < 0 {
				k++
			}
			if cmp(at(i), at(k)) >= 0 {
				return
			}
			swap(i, k)
			i = k
		}
	}
	for i := n / 2; i > 0; i-- {
		sift(i-1, n)
	}
	for i := n; i > 1; i-- {
		swap(0, i-1)
		sift(0, i-1)
	}
}

// Bsearch is bsearch, by cmp.
func (c *C) Bsearch(key, p unsafe.Pointer, n, size uint64, cmp func(a, b unsafe.Pointer) int32) unsafe.Pointer {
	for n > 0 {
		at := unsafe.Add(p, n/2*size)
		switch d := cmp(key, at); {
		case d == 0:
			return at
		case d > 0:
			p, n = unsafe.Add(at, size), n-n/2-1
		default:
			n /= 2
		}
	}
	return nil
}

// Memchr is memchr (C99, 7.21.5.1).
func (c *C) Memchr(p unsafe.Pointer, ch int32, n uint64) unsafe.Pointer {
	for i := range n {
		if at := (*byte)(unsafe.Add(p, i)); *at == byte(ch) {
			return unsafe.Pointer(at)
		}
	}
	return nil
}

// Strchr is strchr (C99, 7.21.5.2).
func (c *C) Strchr(s *int8, ch int32) *int8 {
	for ; ; s = At(s, 1) {
		if *s == int8(ch) {
			return s
		}
		if *s == 0 {
			return nil
		}
	}
}

// Strrchr is strrchr (C99, 7.21.5.5).
func (c *C) Strrchr(s *int8, ch int32) *int8 {
	var last *int8
	for ; ; s = At(s, 1) {
		if *s == int8(ch) {
			last = s
		}
		if *s == 0 {
			return last
		}
	}
}
