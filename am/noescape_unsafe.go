package am

import "unsafe"

// noescape hides from the compiler that words goes through an interface. The
// contract says that Send only reads words, and only during the call, so the
// arguments of a message can stay on the caller's stack; else every message
// would allocate.
//
//go:nosplit
//go:nocheckptr
func noescape(words []uint32) []uint32 {
	p := unsafe.Add(nil, uintptr(unsafe.Pointer(unsafe.SliceData(words))))
	return unsafe.Slice((*uint32)(p), len(words))
}
