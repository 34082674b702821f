package gas

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/argon-go/argon/internal/errs"
)

// checked remembers the verdict on every type that was asked about:
// reflect.Type -> error (nil included).
var checked sync.Map

// CheckType returns an error that names the offending field if values of type T
// must not live in shared memory: those that hold Go pointers (pointers, strings,
// slices, maps, channels, functions, interfaces), which mean nothing to another
// rank and are invisible to the garbage collector there, and those of size 0.
// Verdicts are cached.
func CheckType[T any]() error {
	t := reflect.TypeFor[T]()
	if k := t.Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
		return nil
	}
	if v, ok := checked.Load(t); ok {
		err, _ := v.(error)
		return err
	}
	err := checkType(t)
	checked.Store(t, err)
	return err
}

// mustType is CheckType where there is no error to return: T is known when the
// program is written.
func mustType[T any]() {
	if err := CheckType[T](); err != nil {
		panic(err)
	}
}

func checkType(t reflect.Type) error {
	if path, bad := findPointer(t); bad != nil {
		if path == "" {
			return errs.BadArg("gas: type %v holds Go pointers and cannot live in shared memory", t)
		}
		return errs.BadArg("gas: type %v cannot live in shared memory: field %s has type %v, which holds Go pointers", t, path, bad)
	}
	if t.Size() == 0 {
		return errs.BadArg("gas: type %v has size 0: there is nothing to share", t)
	}
	return nil
}

// findPointer returns the path to the first part of t that holds a Go pointer,
// such as "a.b[].c", and that part's type; nil if there is none.
func findPointer(t reflect.Type) (path string, bad reflect.Type) {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return "", nil
		}
		p, bad := findPointer(t.Elem())
		return join("[]", p), bad
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if p, bad := findPointer(f.Type); bad != nil {
				return join(f.Name, p), bad
			}
		}
		return "", nil
	case reflect.Pointer, reflect.String, reflect.Slice, reflect.Map, reflect.Chan,
		reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return "", t
	}
	return "", nil
}

// checkBits returns an error that names the field if values of type t that are equal may differ
// in their bits other than those of floats: in bytes between fields, which no program sees and
// which need not survive a copy, or of blank fields, which == does not look at. op compares bits.
func checkBits(op string, t reflect.Type) error {
	at, size, where := findUnseen(t, 0)
	if size == 0 {
		return nil
	}
	return errs.BadArg("%s: type %v cannot be compared by its bits: bytes %d to %d of its %d are %s, which are no part of the value, so that equal values may differ there; give them a name (such as Pad [%d]byte, always 0), or keep the value in an integer",
		op, t, at, at+size-1, t.Size(), where, size)
}

// findUnseen returns the first bytes of t, which lies at offset at, that are no part of a value,
// and between which fields they are; size is 0 if there are none.
func findUnseen(t reflect.Type, at uintptr) (from, size uintptr, where string) {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() > 0 {
			from, size, where = findUnseen(t.Elem(), at)
		}
	case reflect.Struct:
		end, last := uintptr(0), ""
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Offset > end {
				return at + end, f.Offset - end, fmt.Sprintf("padding of %v between its fields %s and %s", t, last, f.Name)
			}
			if f.Name == "_" && f.Type.Size() > 0 {
				return at + f.Offset, f.Type.Size(), fmt.Sprintf("field %d of %v, which is blank (_)", i, t)
			}
			if from, size, where = findUnseen(f.Type, at+f.Offset); size > 0 {
				return from, size, where
			}
			end, last = f.Offset+f.Type.Size(), f.Name
		}
		if t.Size() > end {
			return at + end, t.Size() - end, fmt.Sprintf("padding of %v after its last field, %s", t, last)
		}
	}
	return from, size, where
}

func join(a, b string) string {
	if b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}

// typeName is T's name for messages.
func typeName[T any]() string { return fmt.Sprint(reflect.TypeFor[T]()) }
