package rendezvous

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/awake"
)

// NoRank stands for the rank that has failed when the job has failed as a
// whole, such as when the launcher ends it.
const NoRank = -1

// Hello is a rank's first message, its place in the job and its address.
type Hello struct {
	// Rank and Size are its place in the job.
	Rank, Size int
	// Host names the machine: ranks with equal strings share memory. At most
	// MaxHost bytes.
	Host string
	// Port and Addr are where its datagrams are received. The zero Addr stands for
	// the local address of the TCP connection to the service, or what other hosts
	// see in its place if that is the loopback address.
	Port uint16
	Addr netip.Addr
	// Incarnation is the number of its run, see package seal.
	Incarnation uint64
	// Public is what it announces of a key of its own, see package seal: nothing, or as many
	// bytes as all ranks, at most MaxPublic.
	Public []byte
	// Agree is a text that must be equal on all ranks, such as "argon 1, datagram
	// 1400". At most MaxAgree bytes.
	Agree string
	// Job names the job, as far as the starter of the ranks does: a rank with
	// another name than the service's is one of another job that has the same key
	// and port. The empty name fits all. At most MaxJob bytes.
	Job string
}

// The longest texts of a Hello, bytes.
const (
	MaxHost   = 255
	MaxJob    = 255
	MaxPublic = 255
	MaxAgree  = 1024
)

// Events are called as the job goes on, one at a time, in the same order as the
// service has noticed them, until Close; nil ones are left out. They must not
// block, and not call Close, Leave, Put or Get of the Client. The first may come
// before Join has returned; none comes if Join fails.
type Events struct {
	// Attached: all ranks have called Attach, so that Segment knows.
	Attached func()
	// Failed: the job has failed, because of p.Rank (NoRank: none in particular); Own if that is this rank and
	// it has not said so itself. Called once at most, and no other event after it.
	Failed func(p *errs.PeerError)
	// Left: rank has left in good order.
	Left func(rank int)
}

// A Client is one rank's connection to the rendezvous. Its methods may be called
// by any goroutine. Addr, Incarnation, Public, Host and Segment panic if there is no such
// rank.
type Client struct {
	server string
	dial   string // the same, as this process reaches it
	rank   int
	size   int
	events Events
	conn   net.Conn // below TLS
	out    sender
	sign   welcome
	table  *table
	seg    atomic.Pointer[segments]

	ready   chan struct{} // closed when table is set
	missing chan missing  // answers to kWho
	parted  chan struct{} // closed when the service knows that the rank has left
	told    chan struct{} // closed when the job is known to have failed, after Events.Failed
	ended   chan struct{} // closed when nothing more comes from the service: it has ended, or the connection is lost
	open    func(ctx context.Context, network, addr string) (net.Conn, error)
	lookUp  func(ctx context.Context, host string) ([]string, error)
	serving func() // ends the service that this process runs; nil if it does not

	// Only the goroutine that reads uses these.
	part []byte // of the table that is arriving

	mu       sync.Mutex
	queue    []byte // frames to be written
	last     uint32 // number of the last request
	requests map[uint32]chan answer
	err      error // why no request can be made; sticky
	failed   bool  // Events.Failed was, or is about to be, called
	failing  bool  // this rank has declared itself failed
	attached bool  // Attach was called
	leaving  bool  // Leave was called
	over     bool  // the service has ended in good order
	closed   bool
}

// join connects to the service at server, "host:port", which this process reaches at dial, and returns when all
// ranks of the job are there. It tries again while no service answers there, the name
// is unknown, or another job's service answers, until ctx ends; if ctx has no deadline, for patience. inRank: rank 0 is to serve.
// It gives up within seconds if the system refuses to connect for a reason that does
// not go away: no route, no such address here, no permission.
// For how long ranks may be missing is up to the service.
//
// Errors: ErrBadArg for what is wrong in the arguments or does not fit the other
// ranks, and if the service has another key; ErrNotReady if ctx ends, which names
// the ranks that are missing; ErrResource if this host cannot connect to the service;
// ErrPeer if the job has failed.
func join(ctx context.Context, server, dial string, key jobkey.Key, h Hello, e Events, patience time.Duration, inRank bool) (*Client, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(server); err != nil {
		return nil, errs.BadArg("rendezvous: %q is not host:port (%s)", server, jobenv.Rendezvous)
	}
	id, err := newIdentity(key)
	if err != nil {
		return nil, err
	}
	c := newClient(server, dial, h, e)
	t, err := c.connect(ctx, id, h, patience, inRank)
	if err != nil {
		return nil, err
	}
	c.out.w, c.out.next = t, c.next
	go c.read(t)
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		// The table may have come right before the end.
		select {
		case <-c.ready:
			return c, nil
		default:
		}
		c.conn.Close()
		return nil, c.failure()
	case <-ctx.Done():
		err := c.impatient(ctx)
		c.Close()
		return nil, err
	}
}

func newClient(server, dial string, h Hello, e Events) *Client {
	return &Client{
		server: server, dial: dial, rank: h.Rank, size: h.Size, events: e,
		ready: make(chan struct{}), missing: make(chan missing, 1), parted: make(chan struct{}), told: make(chan struct{}), ended: make(chan struct{}),
		requests: map[uint32]chan answer{},
		open:     new(net.Dialer).DialContext, lookUp: net.DefaultResolver.LookupHost,
	}
}

// check finds what no service would accept.
func (h *Hello) check() error {
	switch {
	case h.Size < 1 || h.Size > jobenv.MaxRanks:
		return errs.BadArg("rendezvous: a job of %d ranks; it must be 1 to %d", h.Size, jobenv.MaxRanks)
	case h.Rank < 0 || h.Rank >= h.Size:
		return errs.BadArg("rendezvous: rank %d in a job of %d ranks", h.Rank, h.Size)
	case len(h.Host) > MaxHost:
		return errs.BadArg("rendezvous: the name of the host has %d bytes, at most %d are allowed", len(h.Host), MaxHost)
	case len(h.Job) > MaxJob:
		return errs.BadArg("rendezvous: the name of the job has %d bytes, at most %d are allowed", len(h.Job), MaxJob)
	case len(h.Public) > MaxPublic:
		return errs.BadArg("rendezvous: a public key of %d bytes, at most %d are allowed", len(h.Public), MaxPublic)
	case len(h.Agree) > MaxAgree:
		return errs.BadArg("rendezvous: Hello.Agree has %d bytes, at most %d are allowed", len(h.Agree), MaxAgree)
	case h.Addr.IsUnspecified():
		return errs.BadArg("rendezvous: rank %d cannot be reached at %v, which means any address", h.Rank, h.Addr)
	}
	return local(h.Addr)
}

// local refuses addresses that mean something on one host only.
func local(a netip.Addr) error {
	if a.Zone() != "" {
		return errs.NotSupported("rendezvous: %v is a link-local address, whose zone other hosts do not know; choose another one (ARGON_IFACE, %s)", a, jobenv.Rendezvous)
	}
	return nil
}

// attemptTime bounds one attempt to reach the service.
const attemptTime = 30 * time.Second

// connect returns a connection on which the service has welcomed the rank.
func (c *Client) connect(ctx context.Context, id *identity, h Hello, patience time.Duration, inRank bool) (*tls.Conn, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = awake.WithTimeout(ctx, patience)
		defer cancel()
	}
	start := time.Now()
	// Ranks of a large job that all came at once would fill the system's queue at
	// the service, and wait for it to try again.
	const few, each = 512, 100 * time.Microsecond
	c.pause(ctx, rand.N(time.Duration(max(h.Size-few, 0))*each+1))
	var lasting sys.Tries
	t, again, err := c.try(ctx, id, h)
	for wait := 10 * time.Millisecond; err != nil; wait = min(2*wait, time.Second) {
		if !again {
			return nil, err
		}
		if lasting.Lasting(err, awake.Now()) {
			return nil, c.unreachable(err, &lasting)
		}
		if !c.pause(ctx, wait/2+rand.N(wait)) { // not all at the same time
			who := ""
			if inRank && c.rank != 0 {
				who = "; rank 0 is to, and has not come, or is elsewhere"
			}
			return nil, errs.NotReady("rendezvous: rank %d: nobody serves the job at %s after %v: %s%s (%s, %s)",
				c.rank, c.server, time.Since(start).Round(time.Millisecond), reason(err), who, jobenv.Rendezvous, jobenv.JoinTimeout)
		}
		last := err
		if t, again, err = c.try(ctx, id, h); err != nil && ctx.Err() != nil {
			again, err = true, last // the end of ctx is no reason
		}
	}
	return t, nil
}

// unreachable is join's error when the system refuses to connect to the service.
func (c *Client) unreachable(err error, l *sys.Tries) error {
	var no syscall.Errno
	errors.As(err, &no)
	return errs.Resource("rendezvous: rank %d: this host cannot connect to %s: %v (%s), %d times in %v; usual reasons: no route, a local firewall, the wrong address (%s)",
		c.rank, c.server, no, sys.ErrnoName(no), l.Count, l.Took.Round(time.Millisecond), jobenv.Rendezvous)
}

// reach connects to the service. A host's name can stand for several addresses, and
// what net.Dial says is the first one's error: that it cannot be reached is only said
// if none of them can.
func (c *Client) reach(ctx context.Context) (net.Conn, error) {
	conn, err := c.open(ctx, "tcp", c.dial)
	if _, lasting := sys.Lasting(err); err == nil || !lasting {
		return conn, err
	}
	host, port, split := net.SplitHostPort(c.dial)
	if _, literal := netip.ParseAddr(host); split != nil || literal == nil {
		return nil, err
	}
	addrs, lost := c.lookUp(ctx, host)
	if lost != nil {
		return nil, lost
	}
	for _, a := range addrs {
		conn, no := c.open(ctx, "tcp", net.JoinHostPort(a, port))
		if _, lasting := sys.Lasting(no); no == nil || !lasting {
			return conn, no
		}
	}
	return nil, err
}

// pause waits for d. False means that ctx has ended.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// try connects once. again reports whether it may work later.
func (c *Client) try(ctx context.Context, id *identity, h Hello) (t *tls.Conn, again bool, err error) {
	// An attempt that is neither answered nor refused is worth a second one, but
	// there may be a long queue.
	attempt, cancel := awake.WithTimeout(ctx, attemptTime)
	defer cancel()
	conn, err := c.reach(attempt)
	if err != nil {
		return nil, true, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	t = tls.Client(conn, id.config())
	var notTLS tls.RecordHeaderError
	if err := t.HandshakeContext(attempt); err != nil {
		switch {
		case errors.Is(err, errOtherKey):
			return nil, false, errs.BadArg("rendezvous: rank %d: the server at %s does not hold the same job key (%s, %s)", c.rank, c.server, jobenv.JobKeyFile, jobenv.JobKey)
		case errors.As(err, &notTLS):
			return nil, false, errs.BadArg("rendezvous: rank %d: who answers at %s is not the rendezvous of a job (%s)", c.rank, c.server, jobenv.Rendezvous)
		}
		return nil, true, err
	}
	hi := hello{h, h.Addr.IsValid(), uint32(os.Getpid()), processes()}
	if !hi.chosen {
		hi.Addr = addrPort(conn.LocalAddr()).Addr()
		if err := local(hi.Addr); err != nil {
			return nil, false, err
		}
	}
	// Once it has said hello the rank has joined, and there is no second attempt
	// if the answer takes its time.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if _, err := t.Write(frame(nil, kHello, hi.append)); err != nil {
		stop()
		return nil, true, err
	}
	var buf []byte
	k, body, err := readFrame(t, &buf, maxFrame)
	if !stop() {
		return nil, false, errs.NotReady("rendezvous: rank %d gave up (%v) before %s answered", c.rank, ctx.Err(), c.server)
	}
	if err != nil {
		return nil, true, err
	}
	switch k {
	case kWelcome:
		w, ok := parseWelcome(body)
		if !ok {
			break
		}
		c.sign, c.conn = w, conn
		tune(conn, time.Duration(w.dead)*time.Millisecond)
		return t, false, nil
	case kRefuse:
		a, ok := parseAnswer(body)
		if !ok || a.v == good {
			break
		}
		if a.v == otherJob { // which may be about to end
			return nil, true, a.err()
		}
		return nil, a.v == goneService, fmt.Errorf("rendezvous: rank %d: %s refused it: %w", c.rank, c.server, a.err())
	}
	return nil, false, errs.BadArg("rendezvous: rank %d: %s answered in a way that is not understood (kind %d)", c.rank, c.server, k)
}

// impatient is join's error when ctx has ended before all ranks were there.
func (c *Client) impatient(ctx context.Context) error {
	const limit = time.Second
	who := "some ranks"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.send(kWho, nil)
		over, stop := awake.NewTimer(limit)
		defer stop()
		select {
		case m := <-c.missing:
			who = m.String()
		case <-c.ended:
			return c.failure()
		case <-over:
		}
	}
	err := errs.NotReady("rendezvous: rank %d gave up (%v) before %s joined at %s", c.rank, ctx.Err(), who, c.server)
	c.Fail(c.rank, jobenv.StatusFailed, fmt.Sprintf("it gave up (%v) before %s joined", ctx.Err(), who))
	return err
}

// Instance is a number that no other job has, such as for jobkey.Key.ForJob; the
// same on all ranks.
func (c *Client) Instance() [16]byte { return c.sign.instance }

// Addr is where rank receives datagrams.
func (c *Client) Addr(rank int) netip.AddrPort {
	return netip.AddrPortFrom(c.table.addrs[c.table.addr.at(rank)], uint16(c.table.port.at(rank)))
}

// Incarnation is the one that rank has said in its Hello.
func (c *Client) Incarnation(rank int) uint64 { return c.table.incarnation.at(rank) }

// Public is what rank has announced in its Hello. It must not be written to.
func (c *Client) Public(rank int) []byte {
	n := len(c.table.public) / c.table.size
	return c.table.public[rank*n:][:n:n]
}

// Host numbers the hosts from 0 in the order of their first ranks: ranks of
// which it is equal share one.
func (c *Client) Host(rank int) int { return int(c.table.host.at(rank)) }

// Attach announces this rank's segment, its size in bytes, and its rights. It
// does not wait. Once.
func (c *Client) Attach(size uint64, rights uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.attached:
		return errs.BadArg("rendezvous: rank %d attaches twice", c.rank)
	}
	c.attached = true
	seg := segment{size, rights}
	c.enqueue(kAttach, seg.append)
	return nil
}

// Segment returns the size and rights that rank has announced by Attach; zeros until all
// ranks have and Events.Attached is called.
func (c *Client) Segment(rank int) (size uint64, rights uint32) {
	s := c.seg.Load()
	if s == nil {
		return 0, 0
	}
	return s.size.at(rank), uint32(s.rights.at(rank))
}

// The bounds of the key-value store: bytes of a key and of a value, and keys of
// a job. Together keys and values have at most 64 MiB.
const (
	MaxKey   = 255
	MaxValue = 32 << 10
	MaxKeys  = 1 << 16
)

// Said is the key of a line that ServerConfig.Logf is to print.
const Said = "said"

// Put stores a value for all ranks and returns when the service has it. A key is
// put once; putting the same value again does nothing. At most 1,024 Puts and
// Gets of a rank may wait.
func (c *Client) Put(key string, value []byte) error {
	if len(value) > MaxValue {
		return errs.BadArg("rendezvous: the value of key %q has %d bytes, at most %d are allowed", key, len(value), MaxValue)
	}
	_, err := c.request(context.Background(), kPut, key, value)
	return err
}

// Get waits until a rank has put key and returns its value, which is the
// caller's. It ends with an error when ctx does or the job fails.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	return c.request(ctx, kGet, key, nil)
}

func (c *Client) request(ctx context.Context, k kind, key string, value []byte) ([]byte, error) {
	if len(key) > MaxKey {
		return nil, errs.BadArg("rendezvous: a key of %d bytes, at most %d are allowed", len(key), MaxKey)
	}
	return c.ask(ctx, fmt.Sprintf("key %q", key), k, func(id uint32) func([]byte) []byte {
		r := request{id, key, value}
		return r.append
	})
}

// ask sends a message whose body has the number that its answer will have, and waits for
// that.
func (c *Client) ask(ctx context.Context, what string, k kind, body func(id uint32) func([]byte) []byte) ([]byte, error) {
	done := make(chan answer, 1)
	c.mu.Lock()
	if err := c.err; err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if len(c.requests) >= maxRequests {
		c.mu.Unlock()
		return nil, errs.Resource("rendezvous: rank %d waits for %d Puts and Gets already", c.rank, maxRequests)
	}
	c.last++
	id := c.last
	c.requests[id] = done
	c.enqueue(k, body(id))
	c.mu.Unlock()
	select {
	case a, ok := <-done:
		switch {
		case !ok:
			return nil, c.failure()
		case a.v != good:
			return nil, fmt.Errorf("rendezvous: %w", a.err())
		}
		return a.data, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, waits := c.requests[id]; waits {
			delete(c.requests, id)
			c.enqueue(kForget, (&request{id: id}).append)
		}
		return nil, errs.NotReady("rendezvous: rank %d waited for %s: %v", c.rank, what, context.Cause(ctx))
	}
}

// Fail declares that rank, this one or another one, has failed, and tells all,
// with the exit status that the job should have. It does not block. Only the first
// failure of a job counts.
func (c *Client) Fail(rank, status int, cause string) {
	if rank < 0 || rank >= c.size {
		rank = NoRank
	}
	f := failure{rank, status, cause}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = c.failing || rank == c.rank
	c.enqueue(kFail, f.append)
}

// blameTime bounds, in time that this process runs, how long Blame waits. The service answers within a round trip, its
// connection ends, or this host is cut off from it as well: three packets lost in a row leave TCP 0.6 s of this.
const blameTime = 2 * time.Second

// Blame is Fail, because of err. It waits until Events.Failed has named the failed rank, unless it is this one. So two ranks that no
// longer hear each other do not give different names to the same failure, and a process that ends because of the failure does
// not do so before others can know of it, or it would be taken for the reason. A rank that ends the job by Exit waits as well,
// for another one may have done so with another status.
func (c *Client) Blame(rank int, err error) {
	c.Fail(rank, errs.CarriedStatus(err), err.Error())
	if rank != c.rank || errors.Is(err, errs.ErrExit) {
		c.hear(blameTime)
	}
}

// hear waits for the job's failure, until nothing more comes, or for limit.
func (c *Client) hear(limit time.Duration) {
	over, stop := awake.NewTimer(limit)
	defer stop()
	select {
	case <-c.told:
	case <-c.ended:
	case <-over:
	}
}

// Leave announces that this rank leaves in good order, and returns when the service
// knows, within 10 s if it can be reached at all. No event comes
// after it. Close is still to be called. Once the job has failed, Leave returns
// the failure.
func (c *Client) Leave() error {
	const limit = 10 * time.Second
	c.mu.Lock()
	if c.err != nil || c.over || c.leaving {
		defer c.mu.Unlock()
		if c.over {
			return nil
		}
		return c.err
	}
	c.leaving = true
	c.enqueue(kLeave, nil)
	c.mu.Unlock()
	over, stop := awake.NewTimer(limit)
	defer stop()
	select {
	case <-c.parted:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failed {
			return c.err
		}
		return nil
	case <-c.ended:
	case <-over:
		return errs.NotReady("rendezvous: rank %d leaves, but %s has not answered for %v", c.rank, c.server, limit)
	}
	select {
	case <-c.parted:
		return nil
	default:
		return c.failure()
	}
}

// Close ends the connection. Without Leave the rank has failed. An event that
// is being called may go on until after Close has returned.
func (c *Client) Close() error {
	const limit = time.Second // for what Fail has left to be written
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if c.err == nil {
		c.failRequests(errs.Closed("rendezvous: rank %d has closed its connection", c.rank))
	}
	c.mu.Unlock()
	if !first {
		return nil
	}
	over, stop := awake.NewTimer(limit)
	select {
	case <-c.out.flushed():
	case <-over:
	}
	stop()
	err := c.conn.Close()
	if c.serving != nil {
		c.serving()
	}
	return err
}

// failRequests ends all requests with err, and further ones too. The lock is held.
func (c *Client) failRequests(err error) {
	c.err = err
	for id, done := range c.requests {
		close(done)
		delete(c.requests, id)
	}
}

// failure is why nothing can be asked of the service any more.
func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// send queues a message.
func (c *Client) send(k kind, body func([]byte) []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(k, body)
}

// enqueue is send with the lock held.
func (c *Client) enqueue(k kind, body func([]byte) []byte) {
	if c.closed {
		return
	}
	c.queue = frame(c.queue, k, body)
	c.out.kick()
}

// next is the sender's.
func (c *Client) next() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.queue
	c.queue = nil
	return b
}

// read handles what comes from the service until the connection ends.
func (c *Client) read(r io.Reader) {
	defer close(c.ended)
	var buf []byte
	for {
		k, body, err := readFrame(r, &buf, maxFrame)
		if err == nil {
			err = c.handle(k, body)
		}
		if err != nil {
			c.lost(err)
			return
		}
	}
}

// lost is called when the connection has ended.
func (c *Client) lost(err error) {
	c.conn.Close() // if it was handle that did not understand something
	c.mu.Lock()
	select {
	case <-c.parted:
		c.over = true
	default:
	}
	if c.over || c.closed || c.failed {
		if c.err == nil {
			c.failRequests(errs.Closed("rendezvous: the service at %s has ended", c.server))
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	f := failure{c.rank, jobenv.StatusFailed, fmt.Sprintf("lost the rendezvous at %s: %s", c.server, reason(err))}
	if c.sign.inRank && c.rank != 0 {
		<-awake.After(wordGrace) // on the reader's goroutine, which has nothing to read any more
		f.rank = 0
		f.cause = fmt.Sprintf("the rendezvous at %s, which it served, is lost: %s", c.server, reason(err))
	}
	c.fail(f)
}

// fail ends what waits, and says so.
func (c *Client) fail(f failure) {
	c.mu.Lock()
	first := !c.failed
	if first {
		c.failed = true
		c.failRequests(f.err())
	}
	tell, own := first && !c.closed && c.isReady(), f.rank == c.rank && !c.failing
	c.mu.Unlock()
	if tell && c.events.Failed != nil {
		c.events.Failed(&errs.PeerError{Rank: f.rank, Err: errs.Carried(f.status, f.cause), Own: own})
	}
	if first {
		close(c.told)
	}
}

func (c *Client) isReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// quiet reports whether no more events are to be called.
func (c *Client) quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.failed
}

func (c *Client) handle(k kind, body []byte) error {
	malformed := func() error { return fmt.Errorf("a message of kind %d that is not well-formed", k) }
	switch k {
	case kTable:
		whole, err := c.piece(body, maxTable(c.size))
		if whole == nil || err != nil {
			return err
		}
		if c.isReady() {
			return malformed()
		}
		if c.table, err = parseTable(whole, c.size); err != nil {
			return err
		}
		close(c.ready)
	case kAttached:
		whole, err := c.piece(body, maxSegments(c.size))
		if whole == nil || err != nil {
			return err
		}
		seg, err := parseSegments(whole, c.size)
		if err != nil {
			return err
		}
		if !c.isReady() || !c.seg.CompareAndSwap(nil, seg) {
			return malformed()
		}
		if !c.quiet() && c.events.Attached != nil {
			c.events.Attached()
		}
	case kLeft:
		ranks, ok := parseRanks(body)
		if !ok || !c.isReady() {
			return malformed()
		}
		for _, r := range ranks {
			if int(r) >= c.size {
				return malformed()
			}
			if int(r) != c.rank && !c.quiet() && c.events.Left != nil {
				c.events.Left(int(r))
			}
		}
	case kFailed:
		f, ok := parseFailure(body)
		if !ok || f.rank >= c.size {
			return malformed()
		}
		c.fail(f)
		if !c.isReady() {
			return errors.New("the job has failed") // Join has its error already
		}
	case kAnswer:
		a, ok := parseAnswer(body)
		if !ok {
			return malformed()
		}
		c.mu.Lock()
		done := c.requests[a.id]
		delete(c.requests, a.id)
		c.mu.Unlock()
		if done != nil { // else it was given up
			a.data = bytes.Clone(a.data)
			done <- a
		}
	case kEcho:
		if !c.echoed(body) {
			return malformed()
		}
	case kMissing:
		m, ok := parseMissing(body)
		if !ok {
			return malformed()
		}
		select {
		case c.missing <- m:
		default:
		}
	case kBye:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.leaving || c.over {
			return malformed()
		}
		c.over = true
		close(c.parted)
	case kOver:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		if c.err == nil {
			c.failRequests(errs.Closed("rendezvous: the service at %s has ended in good order before this rank", c.server))
		}
	default:
		return fmt.Errorf("a message of unknown kind %d", k)
	}
	return nil
}

// piece collects the parts of something; nil until it is complete.
func (c *Client) piece(body []byte, limit int) ([]byte, error) {
	p, ok := parsePart(body)
	if !ok || int64(p.total) > int64(limit) || len(c.part)+len(p.data) > int(p.total) {
		return nil, errors.New("a part of a table that does not fit the others")
	}
	if c.part == nil {
		c.part = make([]byte, 0, p.total)
	}
	c.part = append(c.part, p.data...)
	if len(c.part) < int(p.total) {
		return nil, nil
	}
	whole := c.part
	c.part = nil
	return whole, nil
}

// err is the failure as an error of every rank.
func (f *failure) err() error {
	if f.rank == NoRank {
		return errs.WithStatus(fmt.Errorf("the job has failed: %s (%w)", f.cause, errs.ErrPeer), f.status)
	}
	return &errs.PeerError{Rank: f.rank, Err: errs.Carried(f.status, f.cause)}
}

// err returns the error of an answer that is not good.
func (a *answer) err() error {
	text := errs.Line(string(a.data), maxText)
	switch a.v {
	case jobFailed:
		f, ok := parseFailure(a.data)
		if !ok {
			return errs.ErrPeer
		}
		return f.err()
	case resource:
		return errs.Resource("%s", text)
	case goneService:
		return errs.Closed("%s", text)
	}
	return errs.BadArg("%s", text)
}
