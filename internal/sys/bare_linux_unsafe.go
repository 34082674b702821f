package sys

import (
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A BareSocket is a UDP socket with nothing between its caller and the kernel:
// no poller, no scheduler, no address with each datagram. Benchmarks take it for
// what the machine can do; the udp conduit sends to neighbours by one. One goroutine at a time may use it. Link-local IPv6
// addresses do not work, since they need a zone.
type BareSocket struct{ fd uintptr }

// OpenBare opens a socket on the address and the port; port 0 means any. buffer
// is the wanted size of its buffer each way, bytes; the system may give less.
func OpenBare(at netip.AddrPort, buffer int) (*BareSocket, error) {
	domain := unix.AF_INET6
	if at.Addr().Unmap().Is4() {
		domain = unix.AF_INET
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, sockaddr(at)); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	return &BareSocket{uintptr(fd)}, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// FD is the socket's descriptor, which stays the socket's.
func (s *BareSocket) FD() uintptr { return s.fd }

// Port is the socket's own.
func (s *BareSocket) Port() (uint16, error) {
	a, err := unix.Getsockname(int(s.fd))
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port), nil
	case *unix.SockaddrInet6:
		return uint16(a.Port), nil
	}
	return 0, os.NewSyscallError("getsockname", err)
}

// Buffer is how much the socket keeps of what arrives, bytes, as the kernel
// counts: its own structures included.
func (s *BareSocket) Buffer() int {
	n, err := unix.GetsockoptInt(int(s.fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n
}

// Connect says where Send sends to and whose datagrams arrive.
func (s *BareSocket) Connect(to netip.AddrPort) error {
	return os.NewSyscallError("connect", unix.Connect(int(s.fd), sockaddr(to)))
}

// Segment makes Send cut its argument into datagrams of size bytes (the last
// one may be shorter), and Receive take several at once. It reports whether the
// kernel can (Linux 5.0).
func (s *BareSocket) Segment(size int) bool {
	return unix.SetsockoptInt(int(s.fd), unix.SOL_UDP, unix.UDP_SEGMENT, size) == nil &&
		unix.SetsockoptInt(int(s.fd), unix.SOL_UDP, unix.UDP_GRO, 1) == nil
}

// Send sends p, which must not be empty. It returns false and no error if the
// socket has no room now.
func (s *BareSocket) Send(p []byte) (bool, error) {
	// It does not block, so the scheduler need not know of it.
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, s.fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0:
		return true, nil
	case unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
		return false, nil
	}
	return false, os.NewSyscallError("sendto", e)
}

// Receive takes the next datagram, or the next few if Segment was called. n is 0
// without an error if there is none, or if it was empty.
func (s *BareSocket) Receive(p []byte) (n int, err error) {
	r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, s.fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0:
		return int(r), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("recvfrom", e)
}

// Close closes the socket.
func (s *BareSocket) Close() error { return os.NewSyscallError("close", unix.Close(int(s.fd))) }
