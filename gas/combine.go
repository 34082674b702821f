package gas

import (
	"reflect"
	"runtime"
	"strings"

	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/conc"
)

// combining is op on bytes: acc[i] = op(acc[i], in[i]).
func combining[T any](op func(a, b T) T) collective.Combine {
	return func(acc, in []byte) {
		if looped(op, acc, in) {
			return
		}
		a, b := view[T](acc), view[T](in)
		for i := range a {
			a[i] = op(a[i], b[i])
		}
	}
}

// prepending is op on bytes: acc[i] = op(in[i], acc[i]), for scans.
func prepending[T any](op func(a, b T) T) collective.Combine {
	return func(acc, in []byte) {
		if looped(op, acc, in) {
			return
		}
		a, b := view[T](acc), view[T](in)
		for i := range a {
			a[i] = op(b[i], a[i])
		}
	}
}

// leastLoop is from how many bytes on looped gains more than it takes to look up the name of op.
const leastLoop = 256

// looped combines acc and in, if op is one of this package's, in a loop that has the operation in it: a quarter of the
// time of one that calls op for each element. All of them are commutative.
func looped[T any](op func(a, b T) T, acc, in []byte) bool {
	if len(acc) < leastLoop {
		return false
	}
	name := operationOf(op)
	if name == "" {
		return false
	}
	switch reflect.Kind(elementType[T]()) {
	case reflect.Int8:
		return loopBits[int8](name, acc, in)
	case reflect.Int16:
		return loopBits[int16](name, acc, in)
	case reflect.Int32:
		return loopBits[int32](name, acc, in)
	case reflect.Int64:
		return loopBits[int64](name, acc, in)
	case reflect.Uint8:
		return loopBits[uint8](name, acc, in)
	case reflect.Uint16:
		return loopBits[uint16](name, acc, in)
	case reflect.Uint32:
		return loopBits[uint32](name, acc, in)
	case reflect.Uint64:
		return loopBits[uint64](name, acc, in)
	case reflect.Float32:
		return loop[float32](name, acc, in)
	case reflect.Float64:
		return loop[float64](name, acc, in)
	}
	return false
}

// loop is looped of the operation with a name, which T has.
func loop[T Scalar](name string, acc, in []byte) bool {
	a, b := view[T](acc), view[T](in)
	b = b[:len(a)]
	switch name {
	case "Sum":
		for i := range a {
			a[i] += b[i]
		}
	case "Product":
		for i := range a {
			a[i] *= b[i]
		}
	case "Min":
		for i := range a {
			a[i] = min(a[i], b[i])
		}
	case "Max":
		for i := range a {
			a[i] = max(a[i], b[i])
		}
	default:
		return false
	}
	return true
}

// loopBits is loop for types that have more.
func loopBits[T Bits](name string, acc, in []byte) bool {
	a, b := view[T](acc), view[T](in)
	b = b[:len(a)]
	switch name {
	case "And":
		for i := range a {
			a[i] &= b[i]
		}
	case "Or":
		for i := range a {
			a[i] |= b[i]
		}
	case "Xor":
		for i := range a {
			a[i] ^= b[i]
		}
	default:
		return loop[T](name, acc, in)
	}
	return true
}

// operations are the names of operations of reductions that were looked up, by where their code is.
var operations = conc.NewMap[uintptr, string]()

// operationOf is the name of op if it is one of this package's, and "" if it is the program's, or one that a generic function of
// the program has taken with a type parameter.
func operationOf[T any](op func(a, b T) T) string {
	at := reflect.ValueOf(op).Pointer()
	name, ok := operations.Load(at)
	if !ok {
		name, _ = strings.CutSuffix(runtime.FuncForPC(at).Name(), "[...]")
		if name, ok = strings.CutPrefix(name, "github.com/argon-go/argon/gas."); !ok {
			name = ""
		}
		operations.Store(at, name)
	}
	return name
}
