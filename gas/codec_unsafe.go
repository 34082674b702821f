package gas

// What is unsafe here: a value is given to its codec as an address, with the codec of
// its type.

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
)

// Codec turns values of type T into bytes and back as calls do, for libraries that put several
// values into one argument. It may be copied, and used by many goroutines at once.
type Codec[T any] struct{ c *codec }

// NewCodec returns the codec of T, which may hold what arguments of calls may hold; see
// [RegisterCall]. Otherwise the error matches ErrBadArg and names the field.
func NewCodec[T any]() (Codec[T], error) {
	c, err := travelling(reflect.TypeFor[T]())
	if err != nil {
		return Codec[T]{}, fmt.Errorf("gas: %w", err)
	}
	return Codec[T]{c}, nil
}

// Size is how many bytes each value takes, and whether that is so: values that hold strings or
// slices take 8 bytes for the length of each, and their elements.
func (c Codec[T]) Size() (n int, fixed bool) { return int(c.c.size), c.c.form == plain }

// Bytes is the memory of *v if that travels as it is, which Size calls fixed, and nil otherwise.
func (c Codec[T]) Bytes(v *T) []byte {
	if c.c.form != plain {
		return nil
	}
	return bytesAt(v)
}

// Append puts the value behind b.
func (c Codec[T]) Append(b []byte, v *T) []byte {
	if c.c.form == plain {
		return append(b, bytesAt(v)...)
	}
	return c.c.append(b, unsafe.Pointer(v), nil)
}

// Decode makes *v of the first bytes of b and returns the others. What it makes shares no memory
// with b. Bytes that no Append has made give an error, or another value.
func (c Codec[T]) Decode(b []byte, v *T) ([]byte, error) {
	if c.c.form == plain {
		d := bytesAt(v)
		if len(b) < len(d) {
			return nil, errShort
		}
		return b[bulk.Copy(d, b):], nil
	}
	*v = *new(T)
	return c.c.decode(b, unsafe.Pointer(v), nil)
}
