package sys

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below do not block, so the scheduler is not told of them: on a
// loopback interface, where a send also does the receiver's part of the kernel's
// work, one may take some tens of microseconds, for which its P runs no goroutine.

// A Sockaddr is an address in the kernel's form. The zero value is none.
type Sockaddr struct {
	raw unix.RawSockaddrInet6
	n   uint32
}

// Set makes s the address a for sockets of IPv6 (six) or IPv4, the only kind for
// which Zone is left out; none, which nothing can be sent to, if a is not valid.
func (s *Sockaddr) Set(a netip.AddrPort, six bool) {
	if !a.IsValid() {
		*s = Sockaddr{}
		return
	}
	port := (*[2]byte)(unsafe.Pointer(&s.raw.Port)) // in network order
	binary.BigEndian.PutUint16(port[:], a.Port())
	if !six {
		r := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.raw))
		r.Family, r.Addr, r.Zero = unix.AF_INET, a.Addr().Unmap().As4(), [8]byte{}
		s.n = unix.SizeofSockaddrInet4
		return
	}
	s.raw.Family, s.raw.Flowinfo, s.raw.Addr, s.raw.Scope_id = unix.AF_INET6, 0, a.Addr().As16(), zone(a.Addr())
	s.n = unix.SizeofSockaddrInet6
}

// zone is the number of a's zone.
func zone(a netip.Addr) uint32 {
	n := uint32(0)
	for _, c := range []byte(a.Zone()) {
		if c < '0' || c > '9' || n > 1<<28 {
			return 0
		}
		n = 10*n + uint32(c-'0')
	}
	return n
}

// AddrPort is the address; IPv4 ones are not mapped.
func (s *Sockaddr) AddrPort() netip.AddrPort {
	port := (*[2]byte)(unsafe.Pointer(&s.raw.Port))
	p := binary.BigEndian.Uint16(port[:])
	switch s.raw.Family {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&s.raw)).Addr), p)
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.raw.Addr).Unmap(), p)
	}
	return netip.AddrPort{}
}

// Same reports whether two addresses of the same kind of socket are equal, but for
// what only the kernel fills in.
func (s *Sockaddr) Same(o *Sockaddr) bool {
	return s.raw.Family == o.raw.Family && s.raw.Port == o.raw.Port &&
		(s.raw.Family == unix.AF_INET && s.raw.Flowinfo == o.raw.Flowinfo || // where IPv4 addresses lie
			s.raw.Family == unix.AF_INET6 && s.raw.Addr == o.raw.Addr)
}

// MaxSegments is how many datagrams one message may be cut into, and
// MaxSegmented how many bytes it may have (both kinds of IP).
const (
	MaxSegments  = 64
	MaxSegmented = 65507
)

const (
	outMessages = 64
	outParts    = 256
	ctlSpace    = 32 // of one control message: a header and an int, aligned
)

type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

// An Outbox collects messages and sends them by few system calls. One goroutine
// at a time uses it; it is large and does not move, for the kernel reads it.
type Outbox struct {
	n, parts int
	msgs     [outMessages]mmsghdr
	to       [outMessages]Sockaddr
	iov      [outParts]unix.Iovec
	ctl      [outMessages][ctlSpace]byte
}

// Room reports whether a message, or one more part of it, can be added, and so many
// parts.
func (o *Outbox) Room(parts int) bool { return o.n < outMessages && o.parts+parts <= outParts }

// Message begins a message to an address, or, if to is nil or none, to the peer that the
// socket is connected to: one that is not refuses it with EDESTADDRREQ.
func (o *Outbox) Message(to *Sockaddr) {
	m := &o.msgs[o.n].hdr
	*m = unix.Msghdr{Iov: &o.iov[o.parts]}
	if to != nil && to.n > 0 {
		o.to[o.n] = *to
		m.Name, m.Namelen = (*byte)(unsafe.Pointer(&o.to[o.n].raw)), to.n
	}
	o.n++
}

// Part appends p, which must not be empty, to the message. It must not change, and
// the caller keeps a reference to it, until Flush.
func (o *Outbox) Part(p []byte) {
	m := &o.msgs[o.n-1].hdr
	b := unsafe.SliceData(p)
	if m.Iovlen > 0 {
		if v := &o.iov[o.parts-1]; uintptr(unsafe.Pointer(v.Base))+uintptr(v.Len) == uintptr(unsafe.Pointer(b)) {
			v.SetLen(int(v.Len) + len(p))
			return
		}
	}
	o.iov[o.parts] = unix.Iovec{Base: b}
	o.iov[o.parts].SetLen(len(p))
	o.parts++
	m.Iovlen++
}

// Segment has the message cut into datagrams of size bytes; the last may be
// shorter.
func (o *Outbox) Segment(size int) {
	m := &o.msgs[o.n-1].hdr
	c := &o.ctl[o.n-1]
	h := (*unix.Cmsghdr)(unsafe.Pointer(c))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(c[unix.CmsgLen(0):], uint16(size))
	m.Control = &c[0]
	m.SetControllen(unix.CmsgSpace(2))
}

// Flush sends the messages in order and forgets them. It returns how many went
// out, and the error of the first that did not; those after it are not tried.
func (o *Outbox) Flush(fd uintptr) (sent int, err syscall.Errno) {
	for sent < o.n {
		var r uintptr
		m := &o.msgs[sent].hdr
		switch {
		case o.n-sent > 1:
			r, _, err = unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.msgs[sent])), uintptr(o.n-sent), unix.MSG_DONTWAIT, 0, 0)
		case m.Iovlen == 1 && m.Control == nil:
			_, _, err = unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(m.Iov.Base)), uintptr(m.Iov.Len), unix.MSG_DONTWAIT,
				uintptr(unsafe.Pointer(m.Name)), uintptr(m.Namelen))
			r = 1
		default:
			_, _, err = unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT)
			r = 1
		}
		if err == unix.EINTR {
			continue
		}
		if err != 0 {
			break
		}
		sent += int(r)
	}
	o.Drop()
	return sent, err
}

// Drop forgets the messages.
func (o *Outbox) Drop() {
	clear(o.iov[:o.parts]) // what was sent need not be kept any longer
	o.n, o.parts = 0, 0
}

// Unsegmentable reports whether err of Flush means that the kernel, the interface or
// the path does not take messages to be cut into segments.
func Unsegmentable(err syscall.Errno) bool {
	switch err {
	case unix.EINVAL, unix.EIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT, unix.EMSGSIZE:
		return true
	}
	return false
}

// An Inbox receives messages by few system calls. One goroutine at a time uses
// it.
type Inbox struct {
	msgs  []mmsghdr
	from  []Sockaddr
	iov   []unix.Iovec
	ctl   [][ctlSpace]byte
	bufs  []byte
	size  int
	n     int
	names bool
	join  bool // the kernel joins datagrams, so each message needs to be told its segments
}

// NewInbox makes one for messages of up to size bytes, count at a time; names
// reports whether it is asked for their senders.
func NewInbox(count, size int, names bool) *Inbox {
	b := &Inbox{
		msgs: make([]mmsghdr, count), from: make([]Sockaddr, count), iov: make([]unix.Iovec, count), ctl: make([][ctlSpace]byte, count),
		bufs: make([]byte, count*size), size: size, names: names, n: count,
	}
	for i := range b.msgs {
		b.iov[i].Base = &b.bufs[i*size]
		b.iov[i].SetLen(size)
	}
	b.reset()
	return b
}

// reset restores what the kernel has overwritten.
func (b *Inbox) reset() {
	for i := range b.n {
		m := &b.msgs[i].hdr
		*m = unix.Msghdr{Iov: &b.iov[i], Iovlen: 1, Control: &b.ctl[i][0]}
		m.SetControllen(ctlSpace)
		if b.names {
			m.Name, m.Namelen = (*byte)(unsafe.Pointer(&b.from[i].raw)), unix.SizeofSockaddrInet6
		}
	}
}

// Join has messages arrive that consist of several datagrams, if the kernel can
// (Linux 5.0), or no more: what has been joined already is then taken for one
// datagram, which is too long. It makes Receive of one message dearer.
func (b *Inbox) Join(fd uintptr, on bool) {
	if on != b.join {
		v := 0
		if on {
			v = 1
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, v)
		b.join = on
	}
}

// Receive takes messages that have come and returns how many; those of the last call
// are overwritten. If many is false, it takes one, which is less work, and
// looks for it so many times, at least once.
func (b *Inbox) Receive(fd uintptr, many bool, looks int) int {
	if !many && !b.join && !b.names {
		return b.one(fd, looks)
	}
	b.reset()
	b.n = 0
	if many {
		r, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.msgs[0])), uintptr(len(b.msgs)), unix.MSG_DONTWAIT, 0, 0)
		if e == 0 {
			b.n = int(r)
		}
		return b.n
	}
	for range looks {
		r, _, e := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&b.msgs[0].hdr)), unix.MSG_DONTWAIT)
		if e == 0 {
			b.msgs[0].n, b.n = uint32(r), 1
			break
		}
	}
	return b.n
}

// one is Receive of one message that is one datagram, of which nothing but its
// contents matters.
func (b *Inbox) one(fd uintptr, looks int) int {
	b.n = 0
	for range looks {
		r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b.bufs[0])), uintptr(b.size), unix.MSG_DONTWAIT, 0, 0)
		if e == 0 {
			m := &b.msgs[0]
			m.n, b.n = uint32(r), 1
			m.hdr.SetControllen(0)
			break
		}
	}
	return b.n
}

// Full reports whether the last Receive had room for no more.
func (b *Inbox) Full() bool { return b.n == len(b.msgs) }

// Message is the i-th that Receive has brought, and the size of the datagrams
// that it consists of (the last may be shorter). What was too long is cut off.
func (b *Inbox) Message(i int) (p []byte, segment int) {
	m := &b.msgs[i]
	start := i * b.size
	n := min(int(m.n), b.size)
	p, segment = b.bufs[start:start+n:start+n], n
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b.ctl[i]))
	if int(m.hdr.Controllen) >= unix.CmsgLen(4) && h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO {
		if s := int(binary.NativeEndian.Uint32(b.ctl[i][unix.CmsgLen(0):])); s > 0 {
			segment = s
		}
	}
	return p, segment
}

// From is the sender of the i-th message, if names were asked for.
func (b *Inbox) From(i int) *Sockaddr { return &b.from[i] }

// Buffers asks for room for so many bytes each way; the system may give less.
func Buffers(fd uintptr, bytes int) {
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, bytes)
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, bytes)
}

// SendSegments reports whether the kernel cuts messages into datagrams (Linux 4.18).
func SendSegments(fd uintptr) bool {
	_, err := unix.GetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT)
	return err == nil
}

// ProbePath has datagrams of fd, a socket of IPv6 if six, go as they are: none is
// cut on its way, and what the system thinks that a path carries does not matter
// (IP_PMTUDISC_PROBE; ip(7), ipv6(7)). One that the interface does not take is
// refused with EMSGSIZE.
func ProbePath(fd uintptr, six bool) error {
	if six {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
}

// TooLong reports whether err of Flush means that a datagram is longer than what the
// interface takes.
func TooLong(err syscall.Errno) bool { return err == unix.EMSGSIZE }

// IsIPv6 reports whether fd is a socket of IPv6.
func IsIPv6(fd uintptr) bool {
	d, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
	return err == nil && d == unix.AF_INET6
}
