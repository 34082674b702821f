package am

import (
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
)

// noescape hides from the compiler that a slice goes through an interface. The
// contract says that Send and SendPayload only read them, and only during the call, so the
// arguments of a message can stay on the caller's stack; else every message
// would allocate.
//
//go:nosplit
//go:nocheckptr
func noescape[T uint32 | byte](s []T) []T {
	return unsafe.Slice((*T)(sys.Hide(unsafe.Pointer(unsafe.SliceData(s)))), len(s))
}
