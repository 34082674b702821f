package udp

import (
	"net"
	"net/netip"
	"slices"
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
	// Send sends what is in o, or loses it.
	Send(o *outbox)
	// Recv receives some datagrams that have come into in, and reports whether there
	// are any.
	Recv(in *inbox) bool
	// Wait returns when there may be a datagram, at the time until (of Now; 0
	// means that no time ends it), or after Wake, also one before it.
	Wait(until time.Duration)
	Wake()
	Now() time.Duration
	// Unreachable is a rank that nothing can be sent to, and why, once; or -1.
	Unreachable() (rank int, err error)
	// Err is why no datagram will ever come again, or nil.
	Err() error
	Close()
}

// book knows where ranks are. It may be used by several goroutines at once.
type book interface {
	// addr is where rank's datagrams are sent to.
	addr(rank int) netip.AddrPort
	// source is the rank whose datagrams come from an address, or -1 if the
	// datagrams themselves name their rank; ok is false if those of no rank do.
	source(from netip.AddrPort) (rank int, ok bool)
}

// socket is a link over a UDP socket.
type socket struct {
	own   netip.AddrPort
	start time.Time
	book  book
	six   bool // an IPv6 socket
	whole bool // datagrams are not cut on their way; see function whole

	// How it waits. A rank that is a process has a waiter, which costs a thread. Ranks
	// of one process let the runtime's poller wait, although that wakes a thread with
	// every datagram: half a round trip between two processes took 7 us that way
	// instead of 4.5.
	waiter *sys.Waiter
	conn   *net.UDPConn // nil if there is a waiter
	raw    syscall.RawConn
	woken  atomic.Bool

	// marks has a counter for each rank, which a sender to it changes before and
	// the receiver there reads afterwards. The kernel's order is not known to Go's
	// memory model; this makes a datagram's arrival happen after it was sent. nil
	// if the ranks are processes.
	marks []atomic.Uint64
	rank  int

	// The socket, for calls that do not wait. Their caller holds one of the locks
	// below; Close holds both.
	fd     uintptr
	closed bool

	// Sending.
	out struct {
		sync.Mutex
		segments bool // messages may be cut into datagrams, as far as is known
		box      *sys.Outbox
		first    [outDatagrams]int // datagram that a message begins with
		dst      int               // whose address to is
		to       sys.Sockaddr
		refused  refusals

		// A socket that only sends, connected to a rank of this host: the kernel then
		// looks for the way once, and not for each datagram.
		direct struct {
			conn *sys.BareSocket // nil: there is none
			fd   uintptr
			to   int // the rank
			rank int // another one, to which
			runs int // so many Sends in a row have gone, and to no other rank
		}
	}
	// Receiving.
	in struct {
		sync.Mutex
		names bool         // it matters where a message is from
		busy  bool         // there may be many
		large bool         // and of messages so large that one at a time is better
		quiet int          // looks that found nothing since there were
		from  sys.Sockaddr // the last sender, and what the book says of it
		src   int
		ok    bool
	}
	look func(fd uintptr) bool
}

const (
	// socketBuffer is how much a socket should keep, bytes, each way.
	socketBuffer = 4 << 20

	// Messages that one system call receives, and their largest size: each may be
	// many datagrams.
	inMessages = 4
	inBytes    = 1 << 16

	// much is how large a datagram must be to be taken for one of many, bytes.
	much = 1024

	// large is from which size on messages are taken one by one, bytes: what is read
	// at once should stay in the cache.
	large = 16 << 10

	// looks is how often an idle rank looks at its socket in one poll.
	looks = 2

	// quiet is after how many looks that find nothing datagrams come one by one again, so that
	// the kernel need not join them, which makes each one dearer to receive.
	quiet = 256

	// loyal is after how many Sends in a row to one rank alone a socket is connected
	// to it, which costs as much as some ten datagrams.
	loyal = 256
)

// newSocket makes conn, which it closes, a link of a rank. alone: this is the only rank of
// its process.
func newSocket(conn *net.UDPConn, rank int, b book, start time.Time, alone bool) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errs.Resource("udp: socket of rank %d: %v", rank, err)
	}
	s := &socket{own: conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn: conn, raw: raw, start: start, book: b, rank: rank}
	s.out.box, s.out.dst, s.out.direct.rank = new(sys.Outbox), -1, -1
	if err := raw.Control(func(fd uintptr) {
		// As much as the system gives; datagrams that overflow are sent again.
		sys.Buffers(fd, socketBuffer)
		s.six = sys.IsIPv6(fd)
		s.out.segments = sys.SendSegments(fd)
		s.fd = fd
	}); err != nil {
		return nil, errs.Resource("udp: socket of rank %d: %v", rank, err)
	}
	s.look = func(fd uintptr) bool { return sys.Readable(fd) }
	if alone {
		if err := s.detach(); err != nil {
			return nil, errs.Resource("udp: socket of rank %d: %v", rank, err)
		}
	}
	return s, nil
}

// whole has the datagrams of conn arrive whole or not at all, so that it can be found
// out how long those may be that a path carries (RFC 8899, section 4.5).
func whole(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err == nil {
		if e := raw.Control(func(fd uintptr) { err = sys.ProbePath(fd, sys.IsIPv6(fd)) }); e != nil {
			err = e
		}
	}
	if err != nil {
		return errs.Resource("udp: socket at %v: path MTU discovery: %v", conn.LocalAddr(), err)
	}
	return nil
}

// detach takes the socket away from the runtime's poller.
func (s *socket) detach() error {
	fd, err := sys.Detach(s.fd)
	if err != nil {
		return err
	}
	if s.waiter, err = sys.NewWaiter(fd); err != nil {
		sys.CloseFile(fd)
		return err
	}
	_ = s.conn.Close()
	s.fd, s.conn, s.raw = fd, nil, nil
	return nil
}

func (s *socket) Send(o *outbox) {
	w := &s.out
	w.Lock()
	defer w.Unlock()
	if s.closed || len(o.list) == 0 {
		return
	}
	fd := s.fd
	direct := s.connected(o)
	if direct {
		fd = w.direct.fd
	}
	for i := 0; i < len(o.list); {
		messages := 0
		next := i
		for next < len(o.list) && messages < len(w.first) {
			n := s.run(o.list[next:], direct)
			if n == 0 {
				break
			}
			w.first[messages] = next
			messages++
			next += n
		}
		sent, err := w.box.Flush(fd)
		if sent == messages {
			w.refused.passed(o.list[i:next])
			i = next
			continue
		}
		w.refused.passed(o.list[i:w.first[sent]])
		i = w.first[sent]
		n := next - i
		if sent+1 < messages {
			n = w.first[sent+1] - i
		}
		if n > 1 && sys.Unsegmentable(err) && !(s.whole && sys.TooLong(err)) {
			w.segments = false // and try those again one by one
			continue
		}
		// Any other error is as good as a loss, unless it lasts: of a datagram that is
		// too long, too, whose size the engine finds out by that, and by a shorter one which
		// follows in the same message and is not to be lost with it.
		if sys.TooLong(err) {
			long := o.list[i].size()
			if k := slices.IndexFunc(o.list[i:i+n], func(d outgoing) bool { return d.size() < long }); k > 0 {
				n = k
			}
		}
		dst := o.list[i].dst
		w.refused.note(dst, err, s.Now(), func() string { return s.book.addr(dst).String() })
		i += n
	}
}

// connected reports whether what is in o is for the rank that the direct socket is
// connected to, and no other. It connects one when it pays.
func (s *socket) connected(o *outbox) bool {
	d := &s.out.direct
	dst := o.list[0].dst
	for i := range o.list {
		if o.list[i].dst != dst {
			return false
		}
	}
	if d.conn != nil && dst == d.to {
		d.runs = 0
		return true
	}
	if dst != d.rank {
		d.rank, d.runs = dst, 0
	}
	if d.runs++; d.runs < loyal {
		return false
	}
	d.runs = 0
	return s.connect(dst)
}

// connect connects the direct socket to a rank, if it is one of this host: between
// hosts there may be a filter that lets datagrams through by the port that they are
// from. It must not matter to the rank from where they come.
func (s *socket) connect(dst int) bool {
	d := &s.out.direct
	own, to := s.own.Addr(), s.book.addr(dst)
	if _, anyone := s.book.source(netip.AddrPort{}); !anyone || own.Unmap() != to.Addr().Unmap() {
		return false
	}
	conn, err := sys.OpenBare(netip.AddrPortFrom(own, 0), socketBuffer)
	if err != nil {
		return false // it would only be faster
	}
	if conn.Connect(to) != nil {
		_ = conn.Close()
		return false
	}
	if d.conn != nil {
		_ = d.conn.Close()
	}
	d.conn, d.fd, d.to = conn, conn.FD(), dst
	return true
}

// run puts the datagrams at the beginning of l that one message can carry into
// the outbox, and returns how many those are: 0 if it is full. direct: the socket is
// connected to their target.
func (s *socket) run(l []outgoing, direct bool) int {
	w := &s.out
	if !w.box.Room(2) {
		return 0
	}
	d := &l[0]
	if s.marks != nil {
		s.marks[d.dst%len(s.marks)].Add(1) // a number, see networks
	}
	if direct {
		w.box.Message(nil)
	} else {
		if d.dst != w.dst {
			w.dst = d.dst
			w.to.Set(s.book.addr(d.dst), s.six)
		}
		w.box.Message(&w.to)
	}
	size, total, n := len(d.head)+len(d.data), 0, 0
	for i := range l {
		o := &l[i]
		m := len(o.head) + len(o.data)
		if i > 0 && (!w.segments || o.dst != d.dst || m > size || i == sys.MaxSegments || total+m > sys.MaxSegmented || !w.box.Room(2)) {
			break
		}
		w.box.Part(o.head)
		if len(o.data) > 0 {
			w.box.Part(o.data)
		}
		total += m
		n++
		if m < size {
			break
		}
	}
	if n > 1 {
		w.box.Segment(size)
	}
	return n
}

func (s *socket) Recv(in *inbox) bool {
	r := &s.in
	r.Lock()
	defer r.Unlock()
	if s.closed {
		return false
	}
	box, _ := in.link.(*sys.Inbox)
	if box == nil {
		// A book that knows no rank by its address says so of any.
		r.src, r.ok = s.book.source(netip.AddrPort{})
		r.names = !r.ok
		box = sys.NewInbox(inMessages, inBytes, r.names)
		if r.names {
			box.Join(s.fd, true) // that it is dearer does not matter: names are, too
		}
		in.link = box
	}
	in.list, in.more, in.others, in.otherBytes = in.list[:0], false, 0, 0
	many := r.busy && !r.large
	n := box.Receive(s.fd, many, looks)
	if n == 0 {
		r.busy, r.large = false, false
		if r.quiet++; r.quiet == quiet && !r.names {
			box.Join(s.fd, false)
		}
		return false
	}
	if s.marks != nil {
		s.marks[s.rank].Load()
	}
	in.more = many && box.Full() || r.large
	bytes := 0
	for i := range n {
		if r.names {
			if from := box.From(i); !r.from.Same(from) {
				r.from = *from
				r.src, r.ok = s.book.source(from.AddrPort())
			}
			if !r.ok {
				p, _ := box.Message(i)
				in.others, in.otherBytes = in.others+1, in.otherBytes+len(p)
				continue
			}
		}
		p, size := box.Message(i)
		bytes += len(p)
		for ; len(p) > size; p = p[size:] {
			in.list = append(in.list, incoming{r.src, p[:size:size]})
		}
		in.list = append(in.list, incoming{r.src, p}) // also an empty one: it is to be counted
	}
	// Large datagrams, and several at once, are followed by more.
	r.busy = n > 1 || len(in.list) > 1 || len(in.list) == 1 && len(in.list[0].b) >= much
	r.large = bytes >= large*n
	if r.busy {
		r.quiet = 0
		box.Join(s.fd, true)
	}
	return true
}

func (s *socket) Wait(until time.Duration) {
	if s.waiter != nil {
		timeout := time.Duration(-1)
		if until > 0 {
			timeout = max(until-s.Now(), 0)
		}
		s.waiter.Wait(timeout)
		return
	}
	var t time.Time
	if until > 0 {
		t = s.start.Add(until)
	}
	_ = s.conn.SetReadDeadline(t)
	// The goroutine that set woken before has set its deadline before ours, too.
	if !s.woken.Load() {
		_ = s.raw.Read(s.look)
	}
	s.woken.Store(false)
}

func (s *socket) Wake() {
	if s.waiter != nil {
		s.waiter.Wake()
		return
	}
	s.woken.Store(true)
	_ = s.conn.SetReadDeadline(s.start)
}

func (s *socket) Now() time.Duration { return time.Since(s.start) + 1 }

func (s *socket) Err() error { return nil }

func (s *socket) Unreachable() (rank int, err error) {
	if s.out.refused.verdict.Load() == nil {
		return -1, nil
	}
	if u := s.out.refused.verdict.Swap(nil); u != nil {
		return u.rank, u.err
	}
	return -1, nil
}

func (s *socket) Close() {
	s.out.Lock()
	s.in.Lock()
	s.closed = true
	if s.out.direct.conn != nil {
		_ = s.out.direct.conn.Close()
	}
	s.in.Unlock()
	s.out.Unlock()
	if s.waiter != nil {
		s.waiter.Close()
		return
	}
	_ = s.conn.Close()
}
