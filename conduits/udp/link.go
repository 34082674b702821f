package udp

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// link carries datagrams, badly. All its methods may be called by several
// goroutines at once, except that one at a time is in Wait.
type link interface {
	// Send sends a copy of p to rank dst, or loses it.
	Send(dst int, p []byte)
	// Recv copies the next datagram that has come into p; ok is false if there is
	// none. src is -1 if the datagram itself says of whom it is.
	Recv(p []byte) (n, src int, ok bool)
	// Wait returns when there may be a datagram, at the time until (of Now; 0
	// means that no time ends it), or after Wake, also one before it.
	Wait(until time.Duration)
	Wake()
	Now() time.Duration
	// Err is why no datagram will ever come again, or nil.
	Err() error
	Close()
}

// book knows where ranks are. It may be used by several goroutines at once.
type book interface {
	// addr is where rank's datagrams are sent to.
	addr(rank int) netip.AddrPort
	// source is the rank whose datagrams come from an address, or -1 if the
	// datagrams themselves say of whom they are; ok is false if nobody's do.
	source(from netip.AddrPort) (rank int, ok bool)
}

// socket is a link over a UDP socket.
type socket struct {
	conn  *net.UDPConn
	raw   syscall.RawConn
	start time.Time
	book  book

	woken atomic.Bool

	// marks has a counter for each rank, which who sends to it changes before and
	// who receives there reads afterwards. The kernel's order is not known to Go's
	// memory model; this makes a datagram's arrival happen after it was sent. nil
	// if the ranks are processes.
	marks []atomic.Uint64
	rank  int

	mu   sync.Mutex // the fields below, which spare a closure for each call
	p    []byte
	n    int
	from netip.AddrPort
	ok   bool
	take func(fd uintptr)
	look func(fd uintptr) bool
}

// newSocket makes conn, which it closes, a link of a rank.
func newSocket(conn *net.UDPConn, rank int, b book, start time.Time) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errs.Resource("udp: socket of rank %d: %v", rank, err)
	}
	// As much as the system gives; what overflows is sent again.
	_ = conn.SetReadBuffer(4 << 20)
	_ = conn.SetWriteBuffer(4 << 20)
	s := &socket{conn: conn, raw: raw, start: start, book: b, rank: rank}
	s.take = func(fd uintptr) { s.n, s.from, s.ok = sys.Receive(fd, s.p) }
	s.look = func(fd uintptr) bool { return sys.Readable(fd) }
	return s, nil
}

func (s *socket) Send(dst int, p []byte) {
	if s.marks != nil {
		s.marks[dst].Add(1)
	}
	// An error is as good as a loss.
	_, _ = s.conn.WriteToUDPAddrPort(p, s.book.addr(dst))
}

func (s *socket) Recv(p []byte) (n, src int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.p, s.ok = p, false
		// Control, since it does not mind the deadline that Wake sets.
		err := s.raw.Control(s.take)
		s.p = nil
		if err != nil || !s.ok {
			return 0, 0, false
		}
		if src, ok := s.book.source(s.from); ok {
			if s.marks != nil {
				s.marks[s.rank].Load()
			}
			return s.n, src, true
		}
	}
}

func (s *socket) Wait(until time.Duration) {
	var t time.Time
	if until > 0 {
		t = s.start.Add(until)
	}
	_ = s.conn.SetReadDeadline(t)
	// Whoever set woken before has set his deadline before ours, too.
	if !s.woken.Load() {
		_ = s.raw.Read(s.look)
	}
	s.woken.Store(false)
}

func (s *socket) Wake() {
	s.woken.Store(true)
	_ = s.conn.SetReadDeadline(s.start)
}

func (s *socket) Now() time.Duration { return time.Since(s.start) + 1 }

func (s *socket) Err() error { return nil }

func (s *socket) Close() { _ = s.conn.Close() }
