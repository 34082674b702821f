package sys

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Receive takes the next datagram from the non-blocking IPv4 socket fd, cut to
// len(p), which must not be 0. ok is false if there is none.
func Receive(fd uintptr, p []byte) (n int, from netip.AddrPort, ok bool) {
	var a unix.RawSockaddrInet4
	size := uint32(unix.SizeofSockaddrInet4)
	// It does not block, so the scheduler need not know of it.
	r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&size)))
	if e != 0 {
		return 0, from, false
	}
	port := (*[2]byte)(unsafe.Pointer(&a.Port)) // in network order
	return int(r), netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(port[0])<<8|uint16(port[1])), true
}

// Readable says whether Receive would find a datagram, or an error waits.
func Readable(fd uintptr) bool {
	var b [1]byte
	_, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return e != unix.EAGAIN
}
