package gas

// What is unsafe here: the parts of a value that hold no Go pointers are copied as
// bytes, from and to the addresses that its type says. Strings and slices are written
// as such, so that the garbage collector sees them.

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// A codec turns the values of one type into bytes and back. In the order of the type:
//
//	no Go pointers   its memory as it is
//	string           8 bytes of length, the bytes
//	slice            8 bytes of length, nilSlice for nil; then the elements
//	array, struct    the elements, the fields
//
// Lengths are little-endian, and nothing is aligned.
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

// append puts the value at p behind b.
func (c *codec) append(b []byte, p unsafe.Pointer) []byte {
	switch c.form {
	case plain:
		return append(b, unsafe.Slice((*byte)(p), c.size)...)
	case formString:
		s := *(*string)(p)
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	case formSlice:
		// All slices have their data, length and capacity in these places.
		s := *(*[]byte)(p)
		if s == nil {
			return binary.LittleEndian.AppendUint64(b, nilSlice)
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		return c.appendElems(b, unsafe.Pointer(unsafe.SliceData(s)), len(s))
	case formArray:
		return c.appendElems(b, p, c.typ.Len())
	}
	for _, f := range c.parts {
		b = f.codec.append(b, unsafe.Add(p, f.offset))
	}
	return b
}

// appendElems puts n elements of c, from p on, behind b.
func (c *codec) appendElems(b []byte, p unsafe.Pointer, n int) []byte {
	if c.elem.form == plain {
		return append(b, unsafe.Slice((*byte)(p), uintptr(n)*c.elem.size)...)
	}
	for i := range n {
		b = c.elem.append(b, unsafe.Add(p, uintptr(i)*c.elem.size))
	}
	return b
}

// errShort is the error of bytes that are no value: they end too early, or a length in
// them is of more than there is.
var errShort = errs.BadArg("gas: the bytes of a call's value end too early")

// decode makes the value at p, which is zero, from the first bytes of b and returns the
// others. What it makes shares no memory with b, and is not larger than some multiple of b that
// the type alone says.
func (c *codec) decode(b []byte, p unsafe.Pointer) ([]byte, error) {
	if uint64(len(b)) < c.least {
		return nil, errShort
	}
	switch c.form {
	case plain:
		return b[bulk.Copy(unsafe.Slice((*byte)(p), c.size), b):], nil
	case formString:
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			return nil, errShort
		}
		*(*string)(p) = string(b[:n])
		return b[n:], nil
	case formSlice:
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n == nilSlice {
			return b, nil
		}
		if n > math.MaxInt || c.elem.least > 0 && n > uint64(len(b))/c.elem.least {
			return nil, errShort
		}
		s := reflect.MakeSlice(c.typ, int(n), int(n))
		b, err := c.decodeElems(b, s.UnsafePointer(), int(n))
		if err == nil {
			reflect.NewAt(c.typ, p).Elem().Set(s)
		}
		return b, err
	case formArray:
		return c.decodeElems(b, p, c.typ.Len())
	}
	var err error
	for _, f := range c.parts {
		if b, err = f.codec.decode(b, unsafe.Add(p, f.offset)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// decodeElems makes n elements of c, from p on. If they are plain, b has enough.
func (c *codec) decodeElems(b []byte, p unsafe.Pointer, n int) ([]byte, error) {
	if c.elem.form == plain {
		return b[bulk.Copy(unsafe.Slice((*byte)(p), uintptr(n)*c.elem.size), b):], nil
	}
	var err error
	for i := range n {
		if b, err = c.elem.decode(b, unsafe.Add(p, uintptr(i)*c.elem.size)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// encoded is the value at p as bytes, a multiple of 4 of them, behind those of b.
func (c *codec) encoded(b []byte, p unsafe.Pointer) []byte {
	b = c.append(b, p)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// decoded makes the value at p of b, which encoded has made.
func (c *codec) decoded(b []byte, p unsafe.Pointer) error {
	rest, err := c.decode(b, p)
	if err == nil && len(rest) > 3 {
		return errs.BadArg("gas: %d bytes behind a call's value", len(rest))
	}
	return err
}
