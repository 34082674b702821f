package gas

// What is unsafe here: the parts of a value that hold no Go pointers are copied as
// bytes, from and to the addresses that its type says. Strings and slices are written
// as such, so that the garbage collector sees them. Large ones are read where they lie.

import (
	"encoding/binary"
	"math"
	"reflect"
	"runtime"
	"slices"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// A codec turns the values of one type into bytes and back. In the order of the type:
//
//	no Go pointers   its memory as it is
//	string           8 bytes of length, the bytes
//	slice            8 bytes of length, nilSlice for nil; then the elements
//	array, struct    the elements, the fields
//
// Lengths are little-endian, and nothing is aligned. A length with the bit apart is of a string
// or a slice whose bytes, which hold no Go pointers, are not there but the next of a parcel's.
type codec struct {
	typ   reflect.Type
	form  form
	size  uintptr // of a value in memory
	least uint64  // bytes that a value takes at least; not 0 but for plain ones
	elem  *codec  // of slices and arrays
	parts []part  // of structs
}

// part is a field of a struct.
type part struct {
	offset uintptr
	codec  *codec
}

type form uint8

const (
	plain form = iota // holds no Go pointers
	formString
	formSlice
	formArray
	formStruct
)

// nilSlice is the length of a nil slice.
const nilSlice = math.MaxUint64

// apart is a bit that no length has.
const apart = 1 << 62

// parcel is a value as bytes: a stream, and the parts that are apart from it. Those of a value that
// was encoded are its own memory, those of one that arrived become the memory of the value.
type parcel struct {
	stream []byte
	apart  [][]byte
}

// leastApart is from how many bytes on a part travels by itself, in place, which takes two
// registrations less a copy; mostApart is how many do, so that a message of any conduit names them.
const (
	leastApart = 16 << 10
	mostApart  = 16
)

// size is how many bytes v has.
func (v *parcel) size() uint64 {
	n := uint64(len(v.stream))
	for _, b := range v.apart {
		n += uint64(len(b))
	}
	return n
}

// takes reports whether the n bytes at p travel apart, and enters them in v if so. A nil v has none apart, and
// those on the caller's stack, which moves, are not.
//
//go:nocheckptr
func (v *parcel) takes(p unsafe.Pointer, n uintptr) bool {
	if v == nil || n < leastApart || len(v.apart) == mostApart {
		return false
	}
	if lo, hi := sys.Stack(); lo <= uintptr(p) && uintptr(p) < hi {
		return false
	}
	// Hidden, lest the compiler put all that is ever encoded into the heap: it is there.
	v.apart = append(v.apart, unsafe.Slice((*byte)(sys.Hide(p)), n))
	runtime.KeepAlive(p) // while there is made room in the list
	return true
}

// next takes the first part of v, which must have n bytes.
func (v *parcel) next(n uint64) (*byte, error) {
	if v == nil || len(v.apart) == 0 || uint64(len(v.apart[0])) != n {
		return nil, errShort
	}
	b := v.apart[0]
	v.apart = v.apart[1:]
	return unsafe.SliceData(b), nil
}

// codecOf makes the codec of t, or returns the path of a field that cannot travel. around
// are the types that t is a part of.
func codecOf(t reflect.Type, around ...reflect.Type) (c *codec, path string, err error) {
	c = &codec{typ: t, size: t.Size(), least: uint64(t.Size())}
	if _, bad := findPointer(t); bad == nil {
		return c, "", nil
	}
	if slices.Contains(around, t) {
		return nil, "", errs.BadArg("has type %v, which holds itself: values of any depth cannot travel", t)
	}
	around = append(around[:len(around):len(around)], t)
	switch t.Kind() {
	case reflect.String:
		c.form, c.least = formString, 8
	case reflect.Slice, reflect.Array:
		c.form, c.least = formSlice, 8
		if c.elem, path, err = codecOf(t.Elem(), around...); err != nil {
			return nil, join("[]", path), err
		}
		if t.Kind() == reflect.Array {
			c.form, c.least = formArray, uint64(t.Len())*c.elem.least
		}
	case reflect.Struct:
		c.form, c.least = formStruct, 0
		for i := range t.NumField() {
			f := t.Field(i)
			e, path, err := codecOf(f.Type, around...)
			if err != nil {
				return nil, join(f.Name, path), err
			}
			c.parts = append(c.parts, part{f.Offset, e})
			c.least += e.least
		}
	default:
		return nil, "", errs.BadArg("has type %v, which means nothing to another rank", t)
	}
	return c, "", nil
}

// travelling is the codec of t, or an error that names the field that cannot travel.
func travelling(t reflect.Type) (*codec, error) {
	c, path, err := codecOf(t)
	if err == nil {
		return c, nil
	}
	if path == "" {
		return nil, errs.BadArg("type %v cannot travel: it %v", t, err)
	}
	return nil, errs.BadArg("type %v cannot travel: field %s %v", t, path, err)
}

// append puts the value at p behind b, but for what v takes.
func (c *codec) append(b []byte, p unsafe.Pointer, v *parcel) []byte {
	switch c.form {
	case plain:
		return append(b, unsafe.Slice((*byte)(p), c.size)...)
	case formString:
		s := *(*string)(p)
		if v.takes(unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))) {
			return binary.LittleEndian.AppendUint64(b, uint64(len(s))|apart)
		}
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	case formSlice:
		// All slices have their data, length and capacity in these places.
		s := *(*[]byte)(p)
		if s == nil {
			return binary.LittleEndian.AppendUint64(b, nilSlice)
		}
		at := unsafe.Pointer(unsafe.SliceData(s))
		if c.elem.form == plain && v.takes(at, uintptr(len(s))*c.elem.size) {
			return binary.LittleEndian.AppendUint64(b, uint64(len(s))|apart)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		return c.appendElems(b, at, len(s), v)
	case formArray:
		return c.appendElems(b, p, c.typ.Len(), v)
	}
	for _, f := range c.parts {
		b = f.codec.append(b, unsafe.Add(p, f.offset), v)
	}
	return b
}

// appendElems puts n elements of c, from p on, behind b, but for what v takes.
func (c *codec) appendElems(b []byte, p unsafe.Pointer, n int, v *parcel) []byte {
	if c.elem.form == plain {
		return append(b, unsafe.Slice((*byte)(p), uintptr(n)*c.elem.size)...)
	}
	for i := range n {
		b = c.elem.append(b, unsafe.Add(p, uintptr(i)*c.elem.size), v)
	}
	return b
}

// errShort is the error of bytes that are no value: they end too early, or a length in
// them is of more than there is.
var errShort = errs.BadArg("gas: the bytes of a call's value end too early")

// decode makes the value at p, which is zero, from the first bytes of b and the first parts of v, and
// returns the other bytes. What it makes shares no memory with b, and is not larger than some multiple of b that
// the type alone says, and those parts.
func (c *codec) decode(b []byte, p unsafe.Pointer, v *parcel) ([]byte, error) {
	if uint64(len(b)) < c.least {
		return nil, errShort
	}
	switch c.form {
	case plain:
		return b[bulk.Copy(unsafe.Slice((*byte)(p), c.size), b):], nil
	case formString:
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n&^(apart-1) == apart {
			n &^= apart
			at, err := v.next(n)
			if err == nil {
				*(*string)(p) = unsafe.String(at, n)
			}
			return b, err
		}
		if n > uint64(len(b)) {
			return nil, errShort
		}
		*(*string)(p) = string(b[:n])
		return b[n:], nil
	case formSlice:
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n == nilSlice {
			return b, nil
		}
		if n&^(apart-1) == apart && c.elem.form == plain && c.elem.size > 0 {
			n &^= apart
			if n > math.MaxInt/uint64(c.elem.size) {
				return nil, errShort
			}
			at, err := v.next(n * uint64(c.elem.size))
			if err == nil {
				*(*[]byte)(p) = unsafe.Slice(at, n)
			}
			return b, err
		}
		if n > math.MaxInt || c.elem.least > 0 && n > uint64(len(b))/c.elem.least {
			return nil, errShort
		}
		s := reflect.MakeSlice(c.typ, int(n), int(n))
		b, err := c.decodeElems(b, s.UnsafePointer(), int(n), v)
		if err == nil {
			reflect.NewAt(c.typ, p).Elem().Set(s)
		}
		return b, err
	case formArray:
		return c.decodeElems(b, p, c.typ.Len(), v)
	}
	var err error
	for _, f := range c.parts {
		if b, err = f.codec.decode(b, unsafe.Add(p, f.offset), v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// decodeElems makes n elements of c, from p on. If they are plain, b has enough.
func (c *codec) decodeElems(b []byte, p unsafe.Pointer, n int, v *parcel) ([]byte, error) {
	if c.elem.form == plain {
		return b[bulk.Copy(unsafe.Slice((*byte)(p), uintptr(n)*c.elem.size), b):], nil
	}
	var err error
	for i := range n {
		if b, err = c.elem.decode(b, unsafe.Add(p, uintptr(i)*c.elem.size), v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// encoded is the value at p as a parcel, whose stream has a multiple of 4 bytes. No part is apart if all fits
// into most bytes; else a stream that does not fit beside a list of the parts is the first of them.
func (c *codec) encoded(p unsafe.Pointer, most int) parcel {
	var v parcel
	v.stream = c.append(nil, p, &v)
	if len(v.apart) > 0 && v.size() <= uint64(most) {
		v = parcel{stream: c.append(nil, p, nil)}
	}
	for len(v.stream)%4 != 0 {
		v.stream = append(v.stream, 0)
	}
	if room := most - len(v.apart)*partBytes; len(v.stream) > room {
		v.apart = slices.Insert(v.apart, 0, v.stream)
		v.stream = nil
	}
	return v
}

// decoded makes the value at p of v, which encoded has made.
func (c *codec) decoded(v parcel, p unsafe.Pointer) error {
	if v.stream == nil && len(v.apart) > 0 {
		v.stream, v.apart = v.apart[0], v.apart[1:]
	}
	rest, err := c.decode(v.stream, p, &v)
	if err == nil && (len(rest) > 3 || len(v.apart) > 0) {
		return errs.BadArg("gas: %d bytes and %d parts behind a call's value", len(rest), len(v.apart))
	}
	return err
}
