package segment

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/argon-go/argon/internal/bulk"
)

// Touch runs f, which accesses mem, and reports whether all of mem that it touched
// was there. A page that is not (because a program has unmapped it before it was
// deregistered, or has cut off the file that is mapped there) ends f, not the
// process, which would otherwise die of SIGSEGV or SIGBUS; what f had done by then
// stays done. A fault at any other address, such as that of an operation's own
// buffer, is a panic as ever. Part of the cost is runtime/debug.SetPanicOnFault, of
// the calling goroutine alone, part of it the deferred call: some 10 ns together.
func Touch(mem []byte, f func()) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if !ok {
			missing(mem, recover())
		}
	}()
	f()
	return true
}

// missing panics again with r unless that is a fault in mem.
func missing(mem []byte, r any) {
	if e, is := r.(interface {
		runtime.Error
		Addr() uintptr
	}); !is || e.Addr()-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) >= uintptr(len(mem)) {
		panic(r)
	}
}

// TouchCopy is Touch for a copy from src to dst, which are as long as mem, one of them:
// of 2, 4 or 8 bytes by one load and one store. It takes a fifth less than with a function.
func TouchCopy(mem, dst, src []byte) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if !ok {
			missing(mem, recover())
		}
	}()
	p, q := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	switch len(mem) {
	case 8:
		*(*uint64)(p) = *(*uint64)(q)
	case 4:
		*(*uint32)(p) = *(*uint32)(q)
	case 2:
		*(*uint16)(p) = *(*uint16)(q)
	default:
		bulk.Copy(dst, src)
	}
	return true
}

// Gone is the error of an access that Touch has found to have no memory behind it.
func Gone(src int, a NLA, n uint64, need Rights) error {
	return &FaultError{Addr: a, Len: n, Need: need, VPID: uint16(min(src, AnyVPID)), Page: a &^ (PageSize - 1)}
}
