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

func join(a, b string) string {
	if b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}

// typeName is T's name for messages.
func typeName[T any]() string { return fmt.Sprint(reflect.TypeFor[T]()) }
