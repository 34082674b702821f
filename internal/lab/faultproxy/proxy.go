package faultproxy

import (
	"container/heap"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// maxDatagram is the longest payload of UDP over IPv4, bytes.
const maxDatagram = 65507

// maxHeld is how many datagrams of a flow wait at most; what would be beyond
// passes at once.
const maxHeld = 4096

// All stands for every rank, where a rank is asked for.
const All = -1

// Config has the options of a proxy. Size is required.
type Config struct {
	Size   int    // ranks of the job
	Seed   uint64 // decides every fate
	Faults Faults // of all flows, to begin with
	// Listen is the address of the relays' sockets; the zero Addr means
	// 127.0.0.1. Ranks must be reachable from there.
	Listen netip.Addr
	// Tap, if not nil, is called with each datagram that a rank has sent, before
	// anything happens to it. b is valid during the call, which may come from
	// several goroutines at once, but from one for each flow.
	Tap func(from, to int, b []byte)
}

// Stats count what has happened to the datagrams of a flow, or of several.
type Stats struct {
	Received   uint64 // came from the sender
	Cut        uint64 // lost since the link was cut
	Dropped    uint64
	Duplicated uint64
	// Of the copies:
	Corrupted, Truncated, Extended uint64
	Reordered, Delayed             uint64
	Sent                           uint64 // passed on, those injected left out
	Injected                       uint64
}

func (s *Stats) add(o Stats) {
	for _, f := range []struct {
		to   *uint64
		from uint64
	}{
		{&s.Received, o.Received},
		{&s.Cut, o.Cut},
		{&s.Dropped, o.Dropped},
		{&s.Duplicated, o.Duplicated},
		{&s.Corrupted, o.Corrupted},
		{&s.Truncated, o.Truncated},
		{&s.Extended, o.Extended},
		{&s.Reordered, o.Reordered},
		{&s.Delayed, o.Delayed},
		{&s.Sent, o.Sent},
		{&s.Injected, o.Injected},
	} {
		*f.to += f.from
	}
}

// A Proxy relays the datagrams of one job. Its methods may be called by any
// goroutine at any time.
type Proxy struct {
	c     Config
	flows []*flow // from*Size + to
	done  chan struct{}
	wg    sync.WaitGroup

	mu     sync.Mutex // guards what follows; taken after a flow's
	late   queue
	woken  chan struct{} // the queue's first has changed
	closed bool
}

// A flow carries the datagrams of one rank to another. conn stands for rank to towards
// from: the latter sends to it, and datagrams of to for from leave from it.
type flow struct {
	p        *Proxy
	from, to int

	conn atomic.Pointer[net.UDPConn] // stored once, with mu held

	mu     sync.Mutex
	target netip.AddrPort // where to really is
	faults Faults
	cut    bool
	index  uint64 // of the next datagram
	held   []*held
	stats  Stats
}

// A held datagram waits for its time, or to be overtaken.
type held struct {
	f      *flow
	b      []byte
	behind int // by how many datagrams it has yet to be overtaken; 0: only time counts
	due    time.Time
	at     int // its index in the queue, -1 if it is not there
}

// New makes a proxy without relays: Rewrite makes them.
func New(c Config) (*Proxy, error) {
	if c.Size < 1 {
		return nil, errs.BadArg("faultproxy: Config.Size is %d; a job has at least one rank", c.Size)
	}
	if err := c.Faults.ensure(); err != nil {
		return nil, err
	}
	if !c.Listen.IsValid() {
		c.Listen = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	p := &Proxy{c: c, flows: make([]*flow, c.Size*c.Size), done: make(chan struct{}), woken: make(chan struct{}, 1)}
	for i := range p.flows {
		p.flows[i] = &flow{p: p, from: i / c.Size, to: i % c.Size, faults: c.Faults}
	}
	p.wg.Go(p.clock)
	return p, nil
}

func (p *Proxy) flow(from, to int) *flow {
	if uint(from) >= uint(p.c.Size) || uint(to) >= uint(p.c.Size) {
		panic("faultproxy: no such rank")
	}
	return p.flows[from*p.c.Size+to]
}

// each calls f for the flows from one rank to another, either of which may be
// All, with the flow's lock held.
func (p *Proxy) each(from, to int, f func(*flow)) {
	for _, l := range p.flows {
		if (from == All || from == l.from) && (to == All || to == l.to) {
			l.mu.Lock()
			f(l)
			l.mu.Unlock()
		}
	}
}

// Rewrite says where viewer is to send what is for rank, which is at addr. It may
// be called again, also with another address: the relay stays and sends there
// from now on. A rank's own address is not changed, nor is any if the system has
// no socket to give or the proxy is closed, which a job does not survive: the
// ranks' addresses would not fit together.
func (p *Proxy) Rewrite(viewer, rank int, addr netip.AddrPort) netip.AddrPort {
	if viewer == rank {
		return addr
	}
	there := p.flow(viewer, rank)
	there.mu.Lock()
	there.target = addr
	there.mu.Unlock()
	a, err := there.open()
	if err == nil {
		_, err = p.flow(rank, viewer).open() // what it sends leaves from there
	}
	if err != nil {
		return addr
	}
	return a
}

// open makes the flow's socket, unless it is there, and returns its address.
func (f *flow) open() (netip.AddrPort, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	conn := f.conn.Load()
	if conn == nil {
		var err error
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(f.p.c.Listen, 0)))
		if err != nil {
			return netip.AddrPort{}, errs.Resource("faultproxy: socket of the relay from rank %d to %d: %v", f.from, f.to, err)
		}
		f.p.mu.Lock()
		closed := f.p.closed
		if !closed {
			f.p.wg.Add(1)
		}
		f.p.mu.Unlock()
		if closed {
			conn.Close()
			return netip.AddrPort{}, errs.Closed("faultproxy: closed")
		}
		// As much as the system gives; datagrams that overflow are lost, as is usual on
		// a network.
		_ = conn.SetReadBuffer(8 << 20)
		_ = conn.SetWriteBuffer(8 << 20)
		f.conn.Store(conn)
		go f.relay(conn)
	}
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// relay reads what the flow's sender sends.
func (f *flow) relay(conn *net.UDPConn) {
	defer f.p.wg.Done()
	b := make([]byte, 1<<16)
	for {
		n, _, err := conn.ReadFromUDPAddrPort(b)
		select {
		case <-f.p.done:
			return
		default:
		}
		if err != nil {
			continue // that what was sent before found no socket is reported here
		}
		if f.p.c.Tap != nil {
			f.p.c.Tap(f.from, f.to, b[:n])
		}
		f.forward(b[:n])
	}
}

// forward passes a datagram on with the faults that the seed decides on.
func (f *flow) forward(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.index
	f.index++
	f.stats.Received++
	if f.cut {
		f.stats.Cut++
		return
	}
	x := decide(f.p.c.Seed, f.from, f.to, i, &f.faults)
	f.stats.Dropped += count(x.n == 0)
	f.stats.Duplicated += count(x.n == 2)
	for k := range x.n {
		c := &x.copy[k]
		f.stats.Corrupted += count(c.corrupt)
		f.stats.Truncated += count(c.truncate)
		f.stats.Extended += count(c.extend)
		f.stats.Reordered += count(c.behind > 0)
		f.stats.Delayed += count(c.delay > 0)
		out := c.apply(b)
		switch {
		case len(f.held) >= maxHeld:
			f.pass(out)
		case c.delay > 0:
			f.hold(out, 0, c.delay)
		case c.behind > 0:
			f.hold(out, c.behind, f.faults.ReorderFor)
		default:
			f.pass(out)
			f.overtaken()
		}
	}
}

func count(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// hold keeps b back.
func (f *flow) hold(b []byte, behind int, wait time.Duration) {
	h := &held{f: f, b: b, behind: behind, due: time.Now().Add(wait)}
	f.held = append(f.held, h)
	f.p.mu.Lock()
	heap.Push(&f.p.late, h)
	first := h.at == 0
	f.p.mu.Unlock()
	if first {
		select {
		case f.p.woken <- struct{}{}:
		default:
		}
	}
}

// overtaken tells those held that a datagram has passed, and lets go of those
// that have waited for it.
func (f *flow) overtaken() {
	for i := 0; i < len(f.held); {
		h := f.held[i]
		if h.behind > 0 {
			if h.behind--; h.behind == 0 {
				f.release(i) // no datagram is overtaken by one that was late itself
				continue
			}
		}
		i++
	}
}

// release passes on the i-th datagram held.
func (f *flow) release(i int) {
	h := f.held[i]
	f.held = slices.Delete(f.held, i, i+1)
	f.p.mu.Lock()
	if h.at >= 0 {
		heap.Remove(&f.p.late, h.at)
	}
	f.p.mu.Unlock()
	f.pass(h.b)
}

// pass sends a datagram on.
func (f *flow) pass(b []byte) {
	if f.cut {
		f.stats.Cut++
		return
	}
	f.stats.Sent++
	f.send(b)
}

// send sends b to the flow's end, from where its beginning is expected to be.
func (f *flow) send(b []byte) {
	back := f.p.flow(f.to, f.from).conn.Load()
	if back == nil || !f.target.IsValid() {
		return
	}
	// An error is as good as a loss.
	_, _ = back.WriteToUDPAddrPort(b, f.target)
}

// clock lets go of what has waited for its time.
func (p *Proxy) clock() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		next := time.Hour
		p.mu.Lock()
		for len(p.late) > 0 {
			h := p.late[0]
			if next = time.Until(h.due); next > 0 {
				break
			}
			heap.Pop(&p.late)
			p.mu.Unlock()
			h.f.let(h)
			p.mu.Lock()
			next = time.Hour
		}
		p.mu.Unlock()
		t.Reset(next)
		select {
		case <-p.done:
			return
		case <-p.woken:
		case <-t.C:
		}
	}
}

// let passes h on if it is still held.
func (f *flow) let(h *held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.held, h); i >= 0 {
		f.release(i)
	}
}

// Flush passes on everything that is held, in the order in which it came.
func (p *Proxy) Flush() {
	p.each(All, All, func(f *flow) {
		for len(f.held) > 0 {
			f.release(0)
		}
	})
}

// SetFaults changes what happens to datagrams from one rank to another, either of
// which may be All. What is held already stays so.
func (p *Proxy) SetFaults(from, to int, f Faults) error {
	if err := f.ensure(); err != nil {
		return err
	}
	p.each(from, to, func(l *flow) { l.faults = f })
	return nil
}

// Cut loses every datagram from one rank to another, either of which may be All,
// until Heal; also those that are held.
func (p *Proxy) Cut(from, to int) { p.each(from, to, func(f *flow) { f.cut = true }) }

// Heal ends what Cut began.
func (p *Proxy) Heal(from, to int) { p.each(from, to, func(f *flow) { f.cut = false }) }

// Isolate cuts rank off from all others, in both directions. Rejoin ends it.
func (p *Proxy) Isolate(rank int) {
	p.Cut(rank, All)
	p.Cut(All, rank)
}

// Rejoin ends what Isolate began.
func (p *Proxy) Rejoin(rank int) {
	p.Heal(rank, All)
	p.Heal(All, rank)
}

// Inject sends b to rank to as if rank from had, without faults, whether or not
// they are cut off from each other. It answers false if from and to do not know
// each other's relays yet, or the system does not send b.
func (p *Proxy) Inject(from, to int, b []byte) bool {
	f := p.flow(from, to)
	f.mu.Lock()
	defer f.mu.Unlock()
	back := p.flow(to, from).conn.Load()
	if back == nil || !f.target.IsValid() {
		return false
	}
	f.stats.Injected++
	_, err := back.WriteToUDPAddrPort(b, f.target)
	return err == nil
}

// Target is where rank to is, as told to Rewrite for from.
func (p *Proxy) Target(from, to int) netip.AddrPort {
	f := p.flow(from, to)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.target
}

// Stats sums up the flows from one rank to another, either of which may be All.
func (p *Proxy) Stats(from, to int) Stats {
	var s Stats
	p.each(from, to, func(f *flow) { s.add(f.stats) })
	return s
}

// Close ends all relays; what is held is lost. It waits until no goroutine of the
// proxy is left.
func (p *Proxy) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	p.mu.Unlock()
	if was {
		return errs.Closed("faultproxy: closed")
	}
	close(p.done)
	for _, f := range p.flows {
		// Relays are made with the flow's lock held.
		f.mu.Lock()
		if c := f.conn.Load(); c != nil {
			c.Close()
		}
		f.mu.Unlock()
	}
	p.wg.Wait()
	return nil
}

// queue has the datagram first that is due first.
type queue []*held

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	h := x.(*held)
	h.at = len(*q)
	*q = append(*q, h)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	h.at = -1
	return h
}
