package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Readable reports whether there is a datagram to be received from the non-blocking socket fd, or an error waits.
func Readable(fd uintptr) bool {
	var b [1]byte
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return e != unix.EAGAIN
}
