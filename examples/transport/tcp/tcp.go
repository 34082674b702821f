// Package tcp is a conduit over TCP, between the ranks of a process, of a host, or of several: an
// example of a transport that lives outside of argon's repository, and uses nothing internal of it.
//
// A rank has a connection to each other one, by which all that it says to that rank goes in order:
// messages, puts and gets, and its answers to those of the other. A goroutine for each connection
// writes, so that Send never blocks, and one for each that has been accepted reads, whatever the
// rank does. A put is done when its target has answered. The last frame of a rank is its farewell.
//
// A rank that dials shows the secret of the one that it dials, which has come by the rendezvous of
// the job, and so by TLS. What follows on the connection is neither sealed nor encrypted: between
// hosts this conduit is for networks that are trusted. conduits/udp is one that is not so simple.
package tcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/segment"
)

// Name is the conduit's.
const Name = "tcp"

func init() { conduits.Register(adapt.Conduit(Name, Open)) }

const (
	room       = 1 << 20   // bytes that wait to be written, above which a message has none
	piece      = 256 << 10 // of a put or get that a reader holds at once
	secretSize = 16
	helloTime  = 10 * time.Second // in which one that dials shows the secret
)

// The kinds of frames.
const (
	message = iota // words, payload of size bytes
	put            // to addr, size bytes, which follow; cookie
	get            // from addr, size bytes; cookie
	data           // of a get's answer: size bytes, which follow, at offset addr; cookie
	done           // answer to a put or get; cookie, and if it is refused a segment.FaultError
	bye            // the last frame
)

// frame is the head of what goes over a connection, as encoding/binary has it.
type frame struct {
	Kind, Words  uint8
	Refused      bool
	_            [5]uint8
	Addr         segment.NLA
	Size, Cookie uint64
}

// head is a frame's bytes, with room for n more.
func (f *frame) head(n int) []byte {
	b, err := binary.Append(make([]byte, 0, binary.Size(f)+n), binary.LittleEndian, f)
	if err != nil {
		panic(err) // a frame has a fixed size
	}
	return b
}

// transport is one rank.
type transport struct {
	*adapt.Seat
	listener net.Listener
	secret   []byte
	owner    conduits.Owner // set when ready is closed, as are peers
	peers    []*peer        // by rank
	ready    chan struct{}  // closed by Attach
	closed   atomic.Bool

	mu    sync.Mutex    // guards what follows
	inbox []arrival     // for Poll, oldest first
	last  []arrival     // the inbox of the last Poll, for reuse
	ops   map[uint64]op // under way, by cookie; nil when the job has failed
	conns []net.Conn    // to be closed in the end; nil then
	gone  []bool        // ranks that have said their farewell
}

// arrival is a message, or the completion of an access, or a farewell.
type arrival struct {
	kind    int // message, done or bye
	src     int
	words   []uint32
	payload []byte
	cookie  uint64
	err     error
}

// op is a put or get under way.
type op struct {
	rank int
	dst  []byte // of a get
}

// peer is the connection by which this rank talks to another one.
type peer struct {
	rank int
	conn net.Conn
	more chan struct{} // holds one if there is something to write
	over chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	queue   [][]byte
	bytes   int  // in queue and being written
	refused bool // a Send has found no room
	closing bool // the queue ends with the farewell
}

// Open opens the transport of a rank, which listens then.
func Open(s *adapt.Seat) (conduits.Transport, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(s.Addr(s.Rank()), 0)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, conduits.ErrResource, err)
	}
	t := &transport{
		Seat: s, listener: l, secret: make([]byte, secretSize), ready: make(chan struct{}),
		ops: map[uint64]op{}, conns: []net.Conn{}, gone: make([]bool, s.Size()),
	}
	rand.Read(t.secret) // which never fails
	s.OnFailure(t.fall)
	go t.accept()
	return t, nil
}

// Attach connects to all ranks.
func (t *transport) Attach(o conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	t.owner = o
	port := t.listener.Addr().(*net.TCPAddr).Port
	cards, err := t.Share(append(binary.LittleEndian.AppendUint16(nil, uint16(port)), t.secret...))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-t.Over():
			cancel()
		case <-ctx.Done():
		}
	}()
	t.peers = make([]*peer, t.Size())
	for r, card := range cards {
		if r == t.Rank() {
			continue
		}
		if len(card) != 2+secretSize {
			return nil, fmt.Errorf("%s: %w: rank %d has a card of %d bytes", Name, conduits.ErrBadArg, r, len(card))
		}
		c, err := new(net.Dialer).DialContext(ctx, "tcp", netip.AddrPortFrom(t.Addr(r), binary.LittleEndian.Uint16(card)).String())
		if err == nil && !t.hold(c) {
			err = t.Err()
		}
		if err == nil {
			_, err = c.Write(binary.LittleEndian.AppendUint32(append([]byte(nil), card[2:]...), uint32(t.Rank())))
		}
		if err != nil {
			if f := t.Err(); f != nil {
				return nil, f
			}
			return nil, fmt.Errorf("%s: %w: rank %d cannot be reached: %w", Name, conduits.ErrResource, r, err)
		}
		p := &peer{rank: r, conn: c, more: make(chan struct{}, 1), over: make(chan struct{})}
		t.peers[r] = p
		go t.write(p)
	}
	close(t.ready)
	return t.Seat.Attach(size, rights)
}

// hold keeps c to be closed when the job fails; false if it has.
func (t *transport) hold(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		c.Close()
		return false
	}
	t.conns = append(t.conns, c)
	return true
}

// fall ends all accesses and connections, since the job has failed.
func (t *transport) fall() {
	t.mu.Lock()
	for cookie := range t.ops {
		t.inbox = append(t.inbox, arrival{kind: done, cookie: cookie, err: t.Err()})
	}
	t.ops = nil
	t.mu.Unlock()
	t.release()
}

// release closes what is open.
func (t *transport) release() {
	t.mu.Lock()
	conns := t.conns
	t.conns = nil
	t.mu.Unlock()
	t.listener.Close()
	for _, c := range conns {
		c.Close()
	}
}

// accept takes connections until the listener is closed.
func (t *transport) accept() {
	for {
		c, err := t.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			t.Fail(t.Rank(), fmt.Errorf("%s: no connection can be accepted: %w", Name, err))
			return
		case t.hold(c):
			go t.greet(c)
		}
	}
}

// greet reads from the connection if it is a rank's, until its end.
func (t *transport) greet(c net.Conn) {
	defer c.Close()
	hello := make([]byte, secretSize+4)
	_ = c.SetReadDeadline(time.Now().Add(helloTime)) // of an open connection
	if _, err := io.ReadFull(c, hello); err != nil || subtle.ConstantTimeCompare(hello[:secretSize], t.secret) == 0 {
		return // a stranger
	}
	_ = c.SetReadDeadline(time.Time{})
	rank := int(binary.LittleEndian.Uint32(hello[secretSize:]))
	if rank >= t.Size() || rank == t.Rank() {
		return
	}
	select {
	case <-t.ready:
	case <-t.Over():
		return
	}
	if err := t.read(rank, bufio.NewReaderSize(c, 64<<10)); err != nil && !t.closed.Load() && t.Err() == nil {
		t.Lost(rank, fmt.Errorf("%s: the connection from rank %d has ended: %w", Name, rank, err))
	}
}

// read takes in what rank says, until its farewell.
func (t *transport) read(rank int, c *bufio.Reader) error {
	buf := make([]byte, piece)
	for {
		var f frame
		if err := binary.Read(c, binary.LittleEndian, &f); err != nil {
			return err
		}
		var err error
		switch {
		case f.Kind == message && f.Words <= conduits.TransportWords && f.Size <= uint64(t.Limits().MaxMedium):
			a := arrival{kind: message, src: rank, words: make([]uint32, f.Words), payload: make([]byte, f.Size)}
			if err = binary.Read(c, binary.LittleEndian, a.words); err == nil {
				_, err = io.ReadFull(c, a.payload)
			}
			if err == nil {
				t.arrive(a)
			}
		case f.Kind == put:
			err = t.readPut(rank, f, c, buf)
		case f.Kind == get:
			t.answerGet(rank, f, buf)
		case f.Kind == data:
			err = t.readData(rank, f, c, buf)
		case f.Kind == done:
			err = t.readDone(rank, f, c)
		case f.Kind == bye:
			t.farewell(rank)
			return nil
		default:
			return t.blame(rank, f)
		}
		if err != nil {
			return err
		}
	}
}

// blame fails rank for a frame that it must not send.
func (t *transport) blame(rank int, f frame) error {
	err := fmt.Errorf("%s: rank %d has sent a frame that cannot be: %+v", Name, rank, f)
	t.Fail(rank, err)
	return err
}

// readPut writes what follows to this rank's memory, and answers.
func (t *transport) readPut(rank int, f frame, c io.Reader, buf []byte) error {
	var refused error
	for at, left := f.Addr, f.Size; left > 0; {
		b := buf[:min(left, piece)]
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if refused == nil {
			refused = t.owner.Access(rank, at, uint64(len(b)), segment.RightWrite, func(mem []byte) { conduits.Copy(mem, b) })
		}
		n := min(left, piece)
		at, left = at+segment.NLA(n), left-n
	}
	t.answer(rank, f.Cookie, refused)
	t.Kick() // this rank may wait for what has been written
	return nil
}

// answerGet sends what is asked for.
func (t *transport) answerGet(rank int, f frame, buf []byte) {
	for off := uint64(0); off < f.Size; {
		n := min(f.Size-off, piece)
		h := frame{Kind: data, Addr: segment.NLA(off), Size: n, Cookie: f.Cookie}
		b := buf[:n]
		if err := t.owner.Access(rank, f.Addr+segment.NLA(off), n, segment.RightRead, func(mem []byte) { conduits.Copy(b, mem) }); err != nil {
			t.answer(rank, f.Cookie, err)
			return
		}
		t.peers[rank].send(append(h.head(len(b)), b...), false)
		off += n
	}
	t.answer(rank, f.Cookie, nil)
}

// answer tells rank how its access has ended. It hears by this rank's farewell that it has left, or
// of the job's failure.
func (t *transport) answer(rank int, cookie uint64, err error) {
	f := frame{Kind: done, Cookie: cookie}
	var refused *segment.FaultError
	var body bytes.Buffer
	switch {
	case errors.As(err, &refused):
		f.Refused = true
		_ = binary.Write(&body, binary.LittleEndian, refused) // of fixed size, to memory
	case err != nil:
		return
	}
	t.peers[rank].send(append(f.head(body.Len()), body.Bytes()...), false)
}

// readData takes in a part of what a get has asked for.
func (t *transport) readData(rank int, f frame, c io.Reader, buf []byte) error {
	if f.Size > piece {
		return t.blame(rank, f)
	}
	b := buf[:f.Size]
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	t.mu.Lock()
	o, ok := t.ops[f.Cookie]
	ok = ok && o.rank == rank && uint64(f.Addr) <= uint64(len(o.dst)) && f.Size <= uint64(len(o.dst))-uint64(f.Addr)
	if ok {
		copy(o.dst[f.Addr:], b) // with mu held: after the job's failure the memory is the caller's again
	}
	t.mu.Unlock()
	if !ok && t.Err() == nil {
		return t.blame(rank, f)
	}
	return t.Err()
}

// readDone completes an access.
func (t *transport) readDone(rank int, f frame, c io.Reader) error {
	a := arrival{kind: done, cookie: f.Cookie}
	if f.Refused {
		refused := new(segment.FaultError)
		if err := binary.Read(c, binary.LittleEndian, refused); err != nil {
			return err
		}
		a.err = conduits.Fault(Name, rank, refused)
	}
	t.mu.Lock()
	o, ok := t.ops[f.Cookie]
	delete(t.ops, f.Cookie)
	t.mu.Unlock()
	if !ok && t.Err() != nil {
		return t.Err()
	}
	if !ok || o.rank != rank {
		return t.blame(rank, f)
	}
	t.arrive(a)
	return nil
}

func errLeft(rank int) error {
	return fmt.Errorf("%s: rank %d has left: %w", Name, rank, conduits.ErrClosed)
}

// farewell is the end of all that rank says, and of what it was asked for.
func (t *transport) farewell(rank int) {
	t.mu.Lock()
	t.gone[rank] = true
	for cookie, o := range t.ops {
		if o.rank == rank {
			delete(t.ops, cookie)
			t.inbox = append(t.inbox, arrival{kind: done, cookie: cookie, err: errLeft(rank)})
		}
	}
	t.inbox = append(t.inbox, arrival{kind: bye, src: rank})
	t.mu.Unlock()
	t.Kick()
}

// arrive has Poll find a.
func (t *transport) arrive(a arrival) {
	t.mu.Lock()
	t.inbox = append(t.inbox, a)
	t.mu.Unlock()
	t.Kick()
}

// send queues a frame, which is not copied; last is set for the farewell, behind which come answers alone.
func (p *peer) send(b []byte, last bool) {
	p.mu.Lock()
	p.queue = append(p.queue, b)
	p.bytes += len(b)
	p.closing = p.closing || last
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// write writes what is queued, until the farewell has been written or the job has failed.
func (t *transport) write(p *peer) {
	defer close(p.over)
	w := bufio.NewWriterSize(p.conn, 64<<10)
	for {
		select {
		case <-p.more:
		case <-t.Over():
			return
		}
		p.mu.Lock()
		q := p.queue
		p.queue = nil
		p.mu.Unlock()
		n := 0
		for _, b := range q {
			_, _ = w.Write(b) // Flush has the error, too
			n += len(b)
		}
		if err := w.Flush(); err != nil {
			if t.Err() == nil && !t.hasLeft(p.rank) {
				t.Lost(p.rank, fmt.Errorf("%s: the connection to rank %d has ended: %w", Name, p.rank, err))
			}
			return
		}
		p.mu.Lock()
		p.bytes -= n
		refused, last := p.refused, p.closing && len(p.queue) == 0
		p.refused = false
		p.mu.Unlock()
		if refused {
			t.Kick()
		}
		if last {
			return
		}
	}
}

// hasLeft reports whether rank has said its farewell.
func (t *transport) hasLeft(rank int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone[rank]
}

// Send queues a message unless much is queued already.
func (t *transport) Send(dst int, words []uint32, payload []byte) conduits.Status {
	if t.closed.Load() || t.Err() != nil || t.hasLeft(dst) {
		return conduits.Dead
	}
	p := t.peers[dst]
	p.mu.Lock()
	full := p.bytes > room
	p.refused = p.refused || full
	p.mu.Unlock()
	if full {
		return conduits.NoCredit
	}
	f := frame{Kind: message, Words: uint8(len(words)), Size: uint64(len(payload))}
	b := f.head(4*len(words) + len(payload))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	p.send(append(b, payload...), false)
	return conduits.Ready
}

// Put sends a copy of src along: the answer may come before the call that writes it has returned.
func (t *transport) Put(dst int, to segment.NLA, src []byte, cookie uint64) (bool, error) {
	f := frame{Kind: put, Addr: to, Size: uint64(len(src)), Cookie: cookie}
	return t.access(dst, f, nil, src)
}

// Get asks for what is to be read.
func (t *transport) Get(dst []byte, src int, from segment.NLA, cookie uint64) (bool, error) {
	f := frame{Kind: get, Addr: from, Size: uint64(len(dst)), Cookie: cookie}
	return t.access(src, f, dst, nil)
}

func (t *transport) access(rank int, f frame, dst, src []byte) (bool, error) {
	if err := t.Err(); err != nil {
		return false, err
	}
	if t.closed.Load() {
		return false, conduits.ErrClosed
	}
	t.mu.Lock()
	left := t.gone[rank]
	if !left && t.ops != nil {
		t.ops[f.Cookie] = op{rank, dst}
	}
	failed := t.ops == nil
	t.mu.Unlock()
	switch {
	case failed:
		return false, t.Err()
	case left:
		return false, errLeft(rank)
	}
	b := f.head(len(src))
	n := len(b)
	b = b[:n+len(src)]
	conduits.Copy(b[n:], src)
	t.peers[rank].send(b, false)
	return false, nil
}

// Poll hands over what is in the inbox when it begins.
func (t *transport) Poll() int {
	if t.closed.Load() {
		return 0
	}
	t.mu.Lock()
	arrived := t.inbox
	t.inbox = t.last[:0]
	t.mu.Unlock()
	for i, a := range arrived {
		switch a.kind {
		case message:
			t.owner.Deliver(a.src, a.words, a.payload)
		case done:
			t.owner.Complete(a.cookie, a.err)
		case bye:
			t.owner.Left(a.src)
		}
		arrived[i] = arrival{}
	}
	t.mu.Lock()
	t.last = arrived
	t.mu.Unlock()
	return len(arrived)
}

// Close says farewell to all ranks, behind all that is queued, and leaves when it is written. In a
// job that has failed it says nothing: a rank that has not heard of that must not take it for one
// that has left in good order.
func (t *transport) Close() error {
	t.closed.Store(true)
	for _, p := range t.peers {
		if p == nil || t.Err() != nil {
			continue
		}
		p.send((&frame{Kind: bye}).head(0), true)
	}
	for _, p := range t.peers {
		if p == nil {
			continue
		}
		select {
		case <-p.over:
		case <-t.Over():
		}
	}
	t.Leave()
	t.release()
	return nil
}
