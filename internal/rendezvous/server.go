package rendezvous

import (
	"bytes"
	"container/list"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
)

// State is the state of a rank as the service knows it.
type State uint8

// The states. A rank that has Left or Failed stays so.
const (
	Missing  State = iota // has not joined yet
	Joined                // is there
	Attached              // has announced its segment
	Left                  // has left in good order
	Failed                // its connection ended before it left, or it was declared failed
)

// String names the state in one word.
func (s State) String() string {
	switch s {
	case Missing:
		return "missing"
	case Joined:
		return "joined"
	case Attached:
		return "attached"
	case Left:
		return "left"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// ServerConfig has the options of a Server.
type ServerConfig struct {
	// Key is the job's; what does not hold it does not get in. Required.
	Key jobkey.Key
	// Size is the number of ranks, 1 to jobenv.MaxRanks.
	Size int
	// Job is the job's name, see Hello.Job; "" if it has none.
	Job string
	// Patience is how long ranks may be missing, counted from Serve; 0 means
	// DefaultPatience. Then the job fails, and the failure names them.
	Patience time.Duration
	// Grace is how long a rank whose connection has ended without Leave is not
	// declared failed, so that a launcher can say by Fail how it ended; 0 means
	// not at all.
	Grace time.Duration
	// DeadTime is how long a host may be silent, while the system asks it whether
	// it is still there, until its connections are given up, on both sides; 0 means
	// DefaultDeadTime. At least 2 s.
	DeadTime time.Duration
	// InRank: rank 0's process serves, so that rank 0 has failed if the service is
	// lost.
	InRank bool
	// Rewrite, if not nil, returns the address that viewer gets for rank, in place of
	// addr, so that a test can put a relay between them. It is called with the
	// Server's lock held, once all ranks have joined.
	Rewrite func(viewer, rank int, addr netip.AddrPort) netip.AddrPort
	// Process, if not nil, looks at the process of a rank that this process does not see,
	// and gives its number; ok is false if it cannot. It may take a second.
	Process func(rank int) (a sys.Activity, pid int, ok bool)
	// Note, if not nil, tells the user something of a rank.
	Note func(rank int, text string)
	// Logf prints a line, without a newline at its end; nil drops it. Called
	// from several goroutines.
	Logf func(format string, args ...any)

	handshake, handshakeLow time.Duration // instead of the constants, for tests
}

// Defaults of ServerConfig, for zeros.
const (
	DefaultPatience = 60 * time.Second
	DefaultDeadTime = 30 * time.Second
)

// leastDead is the least time after which a silent host's connections are given up.
const leastDead = 2 * time.Second

// Bounds on connections that have not shown yet that they hold the key.
const (
	maxPending    = 256              // connections at once; further ones wait in the system's queue
	maxUnproven   = 16 << 10         // bytes that one may send
	handshakeTime = 10 * time.Second // until it must have said which rank it is
	handshakeLow  = time.Second      // the same for the oldest one when there are too many and no rank gets in
)

// Bounds on a rank.
const (
	maxRequests = 1024     // Puts and Gets of one rank at once
	maxStore    = 64 << 20 // bytes of keys and values of a job
)

// A Server is the rendezvous of one job. Its methods may be called by any
// goroutine.
type Server struct {
	c        ServerConfig
	l        net.Listener
	tls      *tls.Config
	instance [16]byte

	slots chan struct{} // one is taken per pending connection
	done  chan struct{} // closed by Close
	wg    sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	pending   list.List // of *pending, oldest first
	admitted  time.Time // the last rank
	strangers uint64
	others    uint64 // ranks of other jobs
	patience  *awake.Timer

	seats []seat
	peers map[*peer]struct{} // the ranks that are let in and connected

	watchers map[*watcher]struct{} // connected
	joined   int                   // seats that have ever been taken
	agree    string                // what the first rank to join has said
	agreed   int                   // that rank
	public   int                   // bytes that each rank announces of its key
	hosts    map[string]uint16     // number of each host, in order of arrival

	attached       int
	tableFrames    []byte // once all have joined
	attachedFrames []byte // once all have attached

	ended     int      // seats that have Left or Failed
	gone      []uint16 // ranks that have Left, in order
	told      int      // so many of gone may be told to the others
	gathering bool     // until a timer ends, leaves are gathered

	failed  *failure
	spread  bool          // rank 0, which serves, may be told of failed
	over    bool          // the service ends before the job does
	settled chan struct{} // closed when all have left or the job has failed

	processes uint64                // that this process sees
	looks     map[int]*look         // under way, by rank
	busyTold  map[int]time.Duration // how long a rank had been silent when Note was called last
	echoes    map[uint32]chan echo  // that are waited for
	lastEcho  uint32

	values  map[string][]byte
	stored  int // bytes of values and their keys
	waiting map[string][]waiter
}

// A seat has the announcements of one rank that are needed later.
type seat struct {
	state       State
	loop        bool // addr is a loopback address that was not chosen
	port        uint16
	host        uint16
	addr        netip.Addr
	incarnation uint64
	public      []byte
	pid         uint32
	processes   uint64 // among which pid is one
	segment     segment
	from        netip.AddrPort // the other end of its connection
	at          netip.Addr     // the service's address as the rank has reached it
}

// A peer is one rank's connection.
type peer struct {
	rank int
	conn net.Conn // below TLS
	out  sender

	// Guarded by Server.mu. What the sender has taken:
	welcomed, table, attached, failed, over, parted bool
	left                                            int // so many of Server.gone
	// Messages for the rank:
	answers  []answer
	echoes   []echo
	who, bye bool

	gets map[uint32]string // those that wait, by number
}

// A waiter is a kGet that waits for its value.
type waiter struct {
	p  *peer
	id uint32
}

// pending is a connection that has not said hello yet.
type pending struct {
	conn    net.Conn
	since   time.Time
	evicted bool // slot has closed conn
}

// Serve answers on l, which the Server closes, until Close. It returns at once.
func Serve(l net.Listener, c ServerConfig) (*Server, error) {
	if c.Size < 1 || c.Size > jobenv.MaxRanks {
		return nil, errs.BadArg("rendezvous: a job of %d ranks; it must be 1 to %d", c.Size, jobenv.MaxRanks)
	}
	for _, d := range [...]struct {
		name string
		v    *time.Duration
		zero time.Duration
	}{
		{"Patience", &c.Patience, DefaultPatience},
		{"Grace", &c.Grace, 0},
		{"DeadTime", &c.DeadTime, DefaultDeadTime},
		{"handshake", &c.handshake, handshakeTime},
		{"handshakeLow", &c.handshakeLow, handshakeLow},
	} {
		if *d.v < 0 {
			return nil, errs.BadArg("rendezvous: %s is %v", d.name, *d.v)
		}
		if *d.v == 0 {
			*d.v = d.zero
		}
	}
	c.DeadTime = min(max(c.DeadTime, leastDead), 24*time.Hour)
	id, err := newIdentity(c.Key)
	if err != nil {
		return nil, err
	}
	const others = 24 // files that are not ranks' connections, at a guess
	if most := sys.FileLimit(); most < uint64(c.Size+others) {
		return nil, errs.Resource("rendezvous: %d ranks need as many connections, and %d files are needed beside; this process may open %d (ulimit -n)", c.Size, others, most)
	}
	s := &Server{
		c: c, l: l, tls: id.config(),
		slots: make(chan struct{}, maxPending), done: make(chan struct{}), settled: make(chan struct{}),
		seats: make([]seat, c.Size), peers: map[*peer]struct{}{}, watchers: map[*watcher]struct{}{}, hosts: map[string]uint16{},
		processes: processes(), looks: map[int]*look{}, busyTold: map[int]time.Duration{}, echoes: map[uint32]chan echo{},
		values: map[string][]byte{}, waiting: map[string][]waiter{},
	}
	rand.Read(s.instance[:]) // never fails: see crypto/rand
	s.patience = awake.AfterFunc(c.Patience, s.impatient)
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where the service listens; zero if not on a TCP socket.
func (s *Server) Addr() netip.AddrPort { return addrPort(s.l.Addr()) }

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// State returns the state of rank; Missing for a number that is no rank.
func (s *Server) State(rank int) State {
	if rank < 0 || rank >= s.c.Size {
		return Missing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seats[rank].state
}

// Fail declares that rank has failed, with the exit status that the job should
// have, and tells all ranks. Only the first failure of a job counts. rank may be
// NoRank.
func (s *Server) Fail(rank, status int, cause string) {
	if rank < 0 || rank >= s.c.Size {
		rank = NoRank
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(failure{rank, status, cause})
}

// Failure is the job's failure; ok is false if there is none.
func (s *Server) Failure() (rank, status int, cause string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return 0, 0, "", false
	}
	return s.failed.rank, s.failed.status, s.failed.cause, true
}

// Strangers counts connections that ended before they had shown the job's key
// and named their rank.
func (s *Server) Strangers() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strangers
}

// Close ends the service and all its connections, and returns when nothing of it
// is left. Ranks that have not left treat it as a failure.
func (s *Server) Close() error {
	s.mu.Lock()
	var err error
	if !s.closed {
		s.closed = true
		close(s.done)
		s.patience.Stop()
		err = s.l.Close()
		for e := s.pending.Front(); e != nil; e = e.Next() {
			e.Value.(*pending).conn.Close()
		}
		for p := range s.peers {
			p.conn.Close()
		}
		for w := range s.watchers {
			w.conn.Close()
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

// shutdown closes a service that lives in a rank, when all have left or the job has
// failed, but after linger at the latest: then the others go on without it.
func (s *Server) shutdown(linger time.Duration) {
	late, stop := awake.NewTimer(linger)
	select {
	case <-s.settled:
	case <-late:
	case <-s.done:
	}
	stop()
	s.mu.Lock()
	if s.failed == nil && s.ended < s.c.Size {
		s.over = true
		s.tellAll()
	}
	var told []<-chan struct{}
	for p := range s.peers {
		told = append(told, p.out.flushed())
	}
	s.mu.Unlock()
	s.await(told)
	s.Close()
}

func (s *Server) logf(format string, args ...any) {
	if s.c.Logf != nil {
		s.c.Logf(format, args...)
	}
}

// accept takes connections, no more at a time than there are slots.
func (s *Server) accept() {
	var pause time.Duration
	for s.slot() {
		conn, err := s.l.Accept()
		if err != nil {
			<-s.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Such as too many open files: some will be closed.
			if pause == 0 {
				s.logf("rendezvous: cannot accept connections at %v: %s", s.l.Addr(), reason(err))
			}
			pause = min(max(2*pause, 10*time.Millisecond), time.Second)
			if !s.sleep(pause) {
				return
			}
			continue
		}
		pause = 0
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		e := s.pending.PushBack(&pending{conn: conn, since: time.Now()})
		s.wg.Go(func() { s.serve(conn, e) })
		s.mu.Unlock()
	}
}

// sleep returns false at once if the service ends.
func (s *Server) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}

// slot takes a slot for one more pending connection, if need be from the oldest
// one, so that one that says nothing does not keep ranks out for long. False
// means that the service ends.
func (s *Server) slot() bool {
	for {
		select {
		case s.slots <- struct{}{}:
			return true
		case <-s.done:
			return false
		default:
		}
		wait := s.c.handshakeLow
		s.mu.Lock()
		if e := s.pending.Front(); e != nil {
			old := e.Value.(*pending)
			// As long as ranks get in they may be many, and slow because of that.
			since := old.since
			if s.admitted.After(since) {
				since = s.admitted
			}
			if wait -= time.Since(since); wait <= 0 {
				old.evicted = true
				old.conn.Close() // its goroutine gives the slot back
				s.pending.Remove(e)
				wait = s.c.handshakeLow
			}
		}
		s.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case s.slots <- struct{}{}:
			t.Stop()
			return true
		case <-s.done:
			t.Stop()
			return false
		case <-t.C:
		}
	}
}

// limited is a connection from which only so many bytes are read.
type limited struct {
	net.Conn
	left int // -1: no limit
}

func (l *limited) Read(b []byte) (int, error) {
	switch {
	case l.left < 0:
		return l.Conn.Read(b)
	case l.left == 0:
		return 0, fmt.Errorf("more than %d bytes before it has said who it is", maxUnproven)
	}
	n, err := l.Conn.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}

// serve is a connection's goroutine.
func (s *Server) serve(conn net.Conn, e *list.Element) {
	defer conn.Close()
	p, t, buf := s.greet(conn, e)
	if p == nil {
		if t != nil {
			s.watched(conn, t)
		}
		return
	}
	err := s.listen(p, t, buf)
	s.lost(p, err)
}

// greet returns the rank at the other end of conn, or nil; then the connection too
// if a watcher is there.
func (s *Server) greet(conn net.Conn, e *list.Element) (*peer, *tls.Conn, []byte) {
	defer func() {
		s.mu.Lock()
		s.pending.Remove(e) // does nothing if it is done
		s.mu.Unlock()
		<-s.slots
	}()
	// A deadline of the connection would go on while this process is stopped, and
	// come before what has arrived meanwhile is read.
	late := awake.AfterFunc(s.c.handshake, func() { conn.SetDeadline(time.Unix(1, 0)) })
	below := &limited{conn, maxUnproven}
	t := tls.Server(below, s.tls)
	err := t.Handshake()
	var (
		buf  []byte
		k    kind
		body []byte
	)
	if err == nil {
		k, body, err = readFrame(t, &buf, maxHello)
	}
	if !late.Stop() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		s.stranger(conn, err)
		return nil, nil, nil
	}
	const farewell = time.Second // for a few bytes, of which nothing is awaited
	if k == kProbe && len(body) == 0 {
		conn.SetWriteDeadline(time.Now().Add(farewell))
		t.Write(frame(nil, kBye, nil))
		t.Close()
		return nil, nil, nil
	}
	if k == kWatch && len(body) == 0 {
		below.left = -1
		tune(conn, s.c.DeadTime)
		return nil, t, nil
	}
	p, refusal := s.admit(conn, e, t, k, body)
	if p == nil {
		conn.SetWriteDeadline(time.Now().Add(farewell))
		t.Write(frame(nil, kRefuse, refusal.append))
		t.Close()
		return nil, nil, nil
	}
	below.left = -1
	tune(conn, s.c.DeadTime)
	p.out.kick()
	return p, t, buf
}

// stranger counts a connection that did not get as far as to be a rank's. It logs the
// first of them, the second, the fourth and so on.
func (s *Server) stranger(conn net.Conn, err error) {
	s.mu.Lock()
	s.strangers++
	n, closed := s.strangers, s.closed
	s.mu.Unlock()
	if n&(n-1) == 0 && !closed {
		s.logf("rendezvous: a connection from %v was of no rank: %s (%d so far)", conn.RemoteAddr(), reason(err), n)
	}
}

// admit gives a rank its seat, or says why not. A rank that is let in is not
// pending any more.
func (s *Server) admit(conn net.Conn, e *list.Element, t *tls.Conn, k kind, body []byte) (*peer, answer) {
	from := addrPort(conn.RemoteAddr())
	h, v, ok := parseHello(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(rank int, format string, args ...any) (*peer, answer) {
		text := fmt.Sprintf(format, args...)
		s.logf("rendezvous: refused a rank at %v: %s", from, text)
		// As long as ranks are missing, one that does not fit will be missed. Later
		// ones can only be of another job.
		if s.joined < s.c.Size && !s.closed {
			s.fail(failure{rank, jobenv.StatusFailed, text})
		}
		return nil, answer{v: badArg, data: []byte(clip(text, maxCause))}
	}
	switch {
	case s.closed, e.Value.(*pending).evicted: // the answer will not arrive
		return nil, answer{v: goneService, data: []byte("the service is closing")}
	case ok && k == kHello && h.Job != "" && s.c.Job != "" && h.Job != s.c.Job:
		// Such as one that an earlier job has left behind, or that has come before
		// the service of its own.
		if s.others++; s.others&(s.others-1) == 0 {
			s.logf("rendezvous: sent rank %d at %v away: it is of job %q, this is job %q (%d so far)", h.Rank, from, h.Job, s.c.Job, s.others)
		}
		return nil, answer{v: otherJob, data: fmt.Appendf(nil, "it serves job %q, and the rank is of job %q", s.c.Job, h.Job)}
	case s.failed != nil:
		return nil, answer{v: jobFailed, data: s.failed.append(nil)}
	case k != kHello || !ok:
		return refuse(NoRank, "its first message is not a hello")
	case v != version:
		return refuse(NoRank, "it speaks version %d of the rendezvous, the service version %d: all programs of a job must be built with the same argon", v, version)
	case h.Size != s.c.Size:
		return refuse(NoRank, "rank %d says that the job has %d ranks; it has %d", h.Rank, h.Size, s.c.Size)
	case h.Rank >= s.c.Size:
		return refuse(NoRank, "rank %d in a job of %d ranks", h.Rank, s.c.Size)
	}
	seat := &s.seats[h.Rank]
	switch {
	case seat.state != Missing:
		hint := ""
		if h.Job == "" || s.c.Job == "" { // else it is of this job
			hint = "; if there are two jobs, each needs a port or a key of its own (ARGON_RENDEZVOUS), or a name (ARGON_JOBID)"
		}
		return refuse(h.Rank, "rank %d came twice: from %v of host %q and from %v of host %q%s", h.Rank, seat.from, s.hostName(seat.host), from, h.Host, hint)
	case s.joined > 0 && h.Agree != s.agree:
		return refuse(h.Rank, "rank %d has %q and rank %d has %q; all must have the same", s.agreed, s.agree, h.Rank, h.Agree)
	case s.joined > 0 && len(h.Public) != s.public:
		return refuse(h.Rank, "rank %d has announced %d bytes of a public key and rank %d %d; all must be of one version", h.Rank, len(h.Public), s.agreed, s.public)
	case !h.Addr.IsValid():
		return refuse(h.Rank, "rank %d has no address", h.Rank)
	}
	if s.joined == 0 {
		s.agree, s.agreed, s.public = h.Agree, h.Rank, len(h.Public)
	}
	host, known := s.hosts[h.Host]
	if !known {
		host = uint16(len(s.hosts))
		s.hosts[h.Host] = host
	}
	seat.state = Joined
	seat.loop = !h.chosen && h.Addr.IsLoopback()
	seat.port, seat.host, seat.addr, seat.incarnation = h.Port, host, h.Addr, h.Incarnation
	seat.pid, seat.processes, seat.public = h.pid, h.processes, slices.Clone(h.Public)
	seat.from, seat.at = from, addrPort(conn.LocalAddr()).Addr()
	p := &peer{rank: h.Rank, conn: conn, gets: map[uint32]string{}}
	p.out.w, p.out.next = t, func() []byte { return s.next(p) }
	s.peers[p] = struct{}{}
	s.pending.Remove(e) // before slot finds it old
	s.admitted = time.Now()
	if s.joined++; s.joined == s.c.Size {
		s.patience.Stop()
		s.tableFrames = parts(kTable, s.table(NoRank))
		s.tellAll()
	}
	return p, answer{}
}

// hostName is for errors.
func (s *Server) hostName(number uint16) string {
	for name, n := range s.hosts {
		if n == number {
			return name
		}
	}
	return ""
}

// table is the table of all ranks, which have all joined, for viewer; for NoRank
// the one that all get unless ServerConfig.Rewrite makes a difference.
func (s *Server) table(viewer int) []byte {
	// A rank on the service's own host may have come over the loopback interface,
	// where no rank of other hosts finds it: where those have found the service
	// they find the rank.
	var outside netip.Addr
	for i := range s.seats {
		if q := &s.seats[i]; !q.addr.IsLoopback() && q.at.IsValid() && !q.at.IsLoopback() {
			outside = q.at
			break
		}
	}
	n := len(s.seats)
	var (
		addrs       []netip.Addr
		numbers     = map[netip.Addr]uint16{}
		hosts       = map[uint16]uint16{} // by order of ranks
		addr        = make([]uint16, n)
		port        = make([]uint16, n)
		incarnation = make([]uint64, n)
		host        = make([]uint16, n)
		public      []byte
	)
	for i := range s.seats {
		q := &s.seats[i]
		a := q.addr
		if q.loop && outside.IsValid() {
			a = outside
		}
		port[i] = q.port
		if s.c.Rewrite != nil && viewer != NoRank {
			told := s.c.Rewrite(viewer, i, netip.AddrPortFrom(a, q.port))
			a, port[i] = told.Addr(), told.Port()
		}
		if _, ok := numbers[a]; !ok {
			numbers[a] = uint16(len(addrs))
			addrs = append(addrs, a)
		}
		if _, ok := hosts[q.host]; !ok {
			hosts[q.host] = uint16(len(hosts))
		}
		addr[i], incarnation[i], host[i] = numbers[a], q.incarnation, hosts[q.host]
		public = append(public, q.public...)
	}
	return appendTable(nil, addrs, addr, port, incarnation, host, public)
}

// impatient is called when ranks have been missing for too long.
func (s *Server) impatient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.missing(); m.count > 0 {
		s.fail(failure{
			m.first[0], jobenv.StatusFailed,
			fmt.Sprintf("%v of %d did not join within %v (%s)", m, s.c.Size, s.c.Patience, jobenv.JoinTimeout),
		})
	}
}

func (s *Server) missing() (m missing) {
	if m.count = s.c.Size - s.joined; m.count == 0 {
		return m
	}
	for i := range s.seats {
		if s.seats[i].state == Missing {
			if m.first = append(m.first, i); len(m.first) == min(m.count, namedRanks) {
				break
			}
		}
	}
	return m
}

// tellAll has the senders of all connections look for news.
func (s *Server) tellAll() {
	for p := range s.peers {
		if s.seats[p.rank].state != Left {
			p.out.kick()
		}
	}
	for w := range s.watchers {
		w.out.kick()
	}
}

// fail notes the job's failure, if it is the first.
func (s *Server) fail(f failure) {
	if s.failed != nil || s.closed {
		return
	}
	f.cause = clip(f.cause, maxCause)
	s.failed = &f
	if !s.c.InRank { // which says it itself
		s.logf("rendezvous: %v", f.err())
	}
	if f.rank != NoRank {
		s.ends(f.rank, Failed)
	}
	clear(s.waiting) // the ranks end them themselves
	s.conclude()
	s.tellAll()
	if !s.c.InRank {
		return
	}
	// The process that serves may end when it hears of it, and would take with it what
	// the others have not been told yet.
	var told []<-chan struct{}
	for p := range s.peers {
		if p.rank != 0 {
			told = append(told, p.out.flushed())
		}
	}
	s.wg.Go(func() {
		s.await(told)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.spread = true
		s.tellAll()
	})
}

// await returns when all that told waits for is written or cannot be, after farewell, for
// a connection may be stuck, or when the service ends.
func (s *Server) await(told []<-chan struct{}) {
	const farewell = 2 * time.Second
	late, stop := awake.NewTimer(farewell)
	defer stop()
	for _, c := range told {
		select {
		case <-c:
		case <-late:
			return
		case <-s.done:
			return
		}
	}
}

// ends notes that a rank has Left or Failed, unless it has ended before.
func (s *Server) ends(rank int, st State) {
	if q := &s.seats[rank]; q.state != Left && q.state != Failed {
		q.state = st
		s.ended++
	}
	if s.ended == s.c.Size {
		s.conclude()
	}
}

// conclude lets shutdown go on. The lock is held.
func (s *Server) conclude() {
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}

// Gone is how the cause of a failure begins that the service has seen by the end of a
// rank's connection, as when its process ends.
const Gone = "its connection to the rendezvous ended before it had left"

// lost is called when p's connection has ended.
func (s *Server) lost(p *peer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
	for id := range p.gets {
		s.forget(p, id)
	}
	if s.closed || s.seats[p.rank].state == Left {
		return
	}
	if s.failed != nil || s.over {
		s.ends(p.rank, Failed)
		return
	}
	f := failure{p.rank, jobenv.StatusFailed, fmt.Sprintf("%s: %s", Gone, reason(err))}
	if s.c.Grace == 0 {
		s.fail(f)
		return
	}
	awake.AfterFunc(s.c.Grace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail(f)
		s.ends(f.rank, Failed) // if it was not the first
	})
}

// leave notes that p's rank leaves in good order. The others are told at once,
// or together with all that leave within a time that lets the service do other
// things meanwhile.
func (s *Server) leave(p *peer) {
	s.ends(p.rank, Left)
	s.gone = append(s.gone, uint16(p.rank))
	if !s.gathering {
		s.tellGone()
	}
}

func (s *Server) tellGone() {
	const (
		least = 5 * time.Millisecond
		each  = 20 * time.Microsecond // about what it takes to tell one rank
	)
	s.told = len(s.gone)
	s.tellAll()
	s.gathering = true
	time.AfterFunc(max(least, time.Duration(len(s.peers))*each), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.gathering = false; s.told < len(s.gone) && !s.closed {
			s.tellGone()
		}
	})
}

// listen handles a rank's messages until its connection ends.
func (s *Server) listen(p *peer, t *tls.Conn, buf []byte) error {
	for {
		k, body, err := readFrame(t, &buf, maxFrame)
		if err == nil {
			err = s.handle(p, k, body)
		}
		if err != nil {
			return err
		}
	}
}

// handle does what a rank asks for. An error ends the connection.
func (s *Server) handle(p *peer, k kind, body []byte) error {
	malformed := func() error { return fmt.Errorf("a message of kind %d that is not well-formed", k) }
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.seats[p.rank]
	if q.state == Left {
		return fmt.Errorf("a message of kind %d after it has left", k)
	}
	switch k {
	case kAttach:
		seg, ok := parseSegment(body)
		if !ok {
			return malformed()
		}
		if q.state == Failed {
			return nil
		}
		if q.state != Joined || s.tableFrames == nil {
			return errors.New("it attaches twice, or before all ranks have joined")
		}
		q.state, q.segment = Attached, seg
		if s.attached++; s.attached == s.c.Size {
			s.attachedFrames = parts(kAttached, s.segments())
			s.tellAll()
		}
	case kPut, kGet, kForget:
		r, ok := parseRequest(body)
		if !ok {
			return malformed()
		}
		switch k {
		case kPut:
			s.answer(p, s.put(r))
		case kGet:
			s.get(p, r)
		default:
			s.forget(p, r.id)
		}
		if len(p.answers) > 2*maxRequests || len(p.gets) > 2*maxRequests {
			return fmt.Errorf("more than %d requests at once", maxRequests)
		}
	case kLook:
		q, ok := parseQuestion(body)
		if !ok {
			return malformed()
		}
		s.look(p, q)
	case kEcho:
		e, ok := parseEcho(body)
		if !ok {
			return malformed()
		}
		s.echoed(e)
	case kFail:
		f, ok := parseFailure(body)
		if !ok || f.rank >= s.c.Size {
			return malformed()
		}
		s.fail(f)
	case kWho:
		p.who = true
		p.out.kick()
	case kLeave:
		if s.tableFrames == nil {
			return errors.New("it leaves before all ranks have joined")
		}
		p.bye = true
		if q.state == Failed || s.failed != nil {
			s.ends(p.rank, Failed)
		} else {
			s.leave(p)
		}
		p.out.kick()
	default:
		return fmt.Errorf("a message of unknown kind %d", k)
	}
	return nil
}

func (s *Server) segments() []byte {
	size, rights := make([]uint64, len(s.seats)), make([]uint32, len(s.seats))
	for i := range s.seats {
		size[i], rights[i] = s.seats[i].segment.size, s.seats[i].segment.rights
	}
	return appendSegments(nil, size, rights)
}

func (s *Server) answer(p *peer, a answer) {
	p.answers = append(p.answers, a)
	p.out.kick()
}

// put stores a value and gives it to the ranks that wait for it.
func (s *Server) put(r request) answer {
	no := func(v verdict, format string, args ...any) answer {
		return answer{r.id, v, fmt.Appendf(nil, format, args...)}
	}
	old, known := s.values[r.key]
	n := len(r.key) + len(r.value)
	switch {
	case known && bytes.Equal(old, r.value):
		return answer{id: r.id}
	case known:
		return no(badArg, "key %q has been put already, with another value", r.key)
	case len(s.values) == MaxKeys:
		return no(resource, "a job has at most %d keys", MaxKeys)
	case s.stored+n > maxStore:
		return no(resource, "the keys and values of a job have at most %d bytes together", maxStore)
	}
	s.stored += n
	if r.key == Said {
		s.logf("%s", errs.Line(string(r.value), len(r.value)))
	}
	value := bytes.Clone(r.value)
	s.values[r.key] = value
	for _, w := range s.waiting[r.key] {
		delete(w.p.gets, w.id)
		s.answer(w.p, answer{id: w.id, data: value})
	}
	delete(s.waiting, r.key)
	return answer{id: r.id}
}

// get answers, or has p wait.
func (s *Server) get(p *peer, r request) {
	if v, ok := s.values[r.key]; ok {
		s.answer(p, answer{id: r.id, data: v})
		return
	}
	if s.failed == nil {
		p.gets[r.id] = r.key
		s.waiting[r.key] = append(s.waiting[r.key], waiter{p, r.id})
	}
}

// forget ends that p waits.
func (s *Server) forget(p *peer, id uint32) {
	key, ok := p.gets[id]
	if !ok {
		return
	}
	delete(p.gets, id)
	w := slices.DeleteFunc(s.waiting[key], func(w waiter) bool { return w.p == p && w.id == id })
	if len(w) > 0 {
		s.waiting[key] = w
	} else {
		delete(s.waiting, key)
	}
}

// next is the sender's: all that p is to be told now.
func (s *Server) next(p *peer) (b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.parted:
		return nil
	case !p.welcomed:
		p.welcomed = true
		w := welcome{s.instance, s.c.InRank, uint32(s.c.DeadTime.Milliseconds())}
		b = frame(b, kWelcome, w.append)
	}
	if p.who {
		p.who = false
		m := s.missing()
		b = frame(b, kMissing, m.append)
	}
	if s.failed == nil && s.tableFrames != nil {
		// The long frames belong to all.
		if !p.table {
			if b == nil {
				p.table, b = true, s.tableFrames
				if s.c.Rewrite != nil {
					b = parts(kTable, s.table(p.rank))
				}
			}
			return b
		}
		if s.attachedFrames != nil && !p.attached {
			if b == nil {
				p.attached, b = true, s.attachedFrames
			}
			return b
		}
		if p.left < s.told {
			ranks := s.gone[p.left:min(s.told, p.left+maxRanks)]
			p.left += len(ranks)
			b = frame(b, kLeft, func(b []byte) []byte { return appendRanks(b, ranks) })
		}
	}
	for _, e := range p.echoes {
		b = frame(b, kEcho, e.append)
	}
	p.echoes = nil
	for len(p.answers) > 0 && len(b) < maxFrame {
		b = frame(b, kAnswer, p.answers[0].append)
		if p.answers = p.answers[1:]; len(p.answers) == 0 {
			p.answers = nil
		}
	}
	switch {
	case s.failed != nil && !p.failed && (s.spread || p.rank != 0 || !s.c.InRank):
		p.failed = true
		b = frame(b, kFailed, s.failed.append)
	case s.over && !p.over && !p.bye:
		p.over = true
		b = frame(b, kOver, nil)
	}
	if p.bye && len(p.answers) == 0 {
		p.parted = true
		b = frame(b, kBye, nil)
	}
	return b
}
