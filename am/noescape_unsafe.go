package am

import "unsafe"

// noescape hides from the compiler that a slice goes through an interface. The
// contract says that Send and SendPayload only read them, and only during the call, so the
// arguments of a message can stay on the caller's stack; else every message
// would allocate.
//
//go:nosplit
//go:nocheckptr
func noescape[T uint32 | byte](s []T) []T {
	p := unsafe.Add(nil, uintptr(unsafe.Pointer(unsafe.SliceData(s))))
	return unsafe.Slice((*T)(p), len(s))
}
