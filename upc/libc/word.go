package libc

import (
	"reflect"
)

// word is an integer or pointer argument, as 64 bits.
func word(a any) (uint64, bool) {
	switch v := a.(type) {
	case int32:
		return uint64(v), true
	case uint32:
		return uint64(v), true
	case int64:
		return uint64(v), true
	case uint64:
		return v, true
	}
	v := reflect.ValueOf(a)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.UnsafePointer:
		return uint64(v.Pointer()), true
	case v.CanInt():
		return uint64(v.Int()), true
	case v.CanUint():
		return v.Uint(), true
	}
	return 0, false
}
