//go:build ofi && cgo

package ofi

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

const (
	leastFrame = 8 << 10 // bytes of a frame, unless a medium message needs more
	window     = 8       // frames of a class that a rank may send another one ahead of its taking them
	receives   = 64      // frames that the provider may fill before the rank looks
	batch      = 64      // operations that are over, taken at a time
	// mostAsked is how many pieces of puts and gets a rank asks another one for before
	// that has answered, which bounds the answers that wait at the other one.
	mostAsked = 1024
)

// transport is one rank's conduits.Transport.
type transport struct {
	*adapt.Seat
	fail       func(rank int, err error) // Seat.Fail; tests have others
	mates      *housemates               // if the ranks are in this process
	rank, size int
	id         uint32 // of the job, in frames
	frame      int    // bytes of a frame
	most       int    // of a frame without header
	medium     int    // bytes of the longest medium message
	owner      conduits.Owner
	segment    []byte // set before Attach
	area       fabric.Region
	atEnd      func() // see conduits.FarEndpoint; set before Attach

	attached, closed atomic.Bool
	polls            atomic.Uint32
	parked           atomic.Int32
	apart            bool // each rank of this host has a processor; set before Attach
	standby          standby
	manual           bool         // see announce; set by Attach
	wary             atomic.Int64 // until when standby sleeps lightly, nanoseconds of Now

	rx      sync.Mutex // held to take what has arrived; before mu
	done    [batch]fabric.Done
	events  uint64 // operations that were over
	arrived []arrival
	leaving []int // ranks that have left, of lefts, for the Poll under way
	ending  bool  // there was something in finished
	words   [conduits.TransportWords]uint32
	held    conc.Queue[heldFrame] // frames of messages that no Poll has seen yet
	replies []*peer               // with answers to be sent

	mu       sync.Mutex // guards what follows, and all of libfabric
	ep       *fabric.Endpoint
	over     bool // ep is closed
	peers    []*peer
	all      []conduits.Attached
	cards    []card
	bare     []uint32 // contexts without buffers that are free
	spare    []uint32 // contexts of frames that are free
	slots    []slot   // by context
	unposted []uint32 // contexts of frames to receive into
	due      []*peer  // with frames that may leave
	owed     []*peer  // that may have to be told what was taken
	ops      []operation
	idle     []uint32 // of ops
	own      ownKeys  // of this rank's registered memory
	hidden   hidden
	finished conc.Queue[completion] // to be reported by Poll
	lefts    conc.Queue[int]        // ranks that have left, to be reported by Poll
	timer    *time.Timer
	timed    bool // timer runs
	drained  chan struct{}
	noted    bool // drained is closed

	dead, lossTime, tick time.Duration // see watch.go
	watcher              *time.Timer
	watching             bool   // watcher runs
	flying               int64  // bytes of remote accesses under way, to all peers
	polled, looked       uint64 // looks at the completion queue, and of these before the watch's last
	stray                error  // of an injected frame, to a peer that the provider does not name
	asker                *time.Timer

	stuck  uint64 // posts that the provider had no room for
	frames uint64 // sent
	loans  uint64 // registrations for one access
}

// slot is the use of a context.
type slot struct {
	peer *peer // it is sent to; nil for a frame to receive into

	// Of a remote access.
	rma   bool
	stale bool // op has ended already
	op    uint32
	mem   []byte // in use until it is over
	pin   *runtime.Pinner
	key   *remoteKey    // of registered memory; nil of a segment
	local fabric.Region // of mem, if loaned
	loan  bool
	lent  *ownKey // of mem, if that is registered memory
	noted bool    // words follow it, which tell its target of it
}

// arrival is a frame that has arrived.
type arrival struct {
	context uint32
	frame   []byte // of context
}

// heldFrame is one of messages that waits for Poll.
type heldFrame struct {
	src   *peer
	frame []byte
}

// completion is an operation's end.
type completion struct {
	cookie uint64
	err    error
}

// peer is a rank's state of another one that it has talked to.
type peer struct {
	rank     int
	addr     uint64 // in the address vector
	known    bool   // addr is
	called   bool   // something has been posted to it
	calls    uint32 // attempts at that
	credited bool   // its windows have opened
	left     bool
	lost     error // why nothing is posted to it any more
	dropped  bool  // messages for it were given up

	firstCall, nextCall time.Duration // see issue
	refusal             error         // of the last attempt that has failed

	out     [numClasses]outbox
	here    uint32               // frames of messages that have arrived there, as it has said
	refused bool                 // a Send has found no room
	asked   int                  // pieces of puts and gets that it has not answered
	pending conc.Queue[uint32]   // puts and gets with pieces to be sent
	remote  conc.Queue[uint32]   // remote accesses to be posted
	keys    remoteKeys           // of its registered memory
	notes   conc.Queue[[]uint32] // words that follow puts
	recalls conc.Queue[record]   // keys that it has to give up
	touch   bool                 // it is to be told that data there has changed
	writes  writes
	inDue   bool
	epoch   uint32 // polls at the last post
	posted  uint32 // frames and remote accesses
	full    bool   // the provider has had no room for the last one

	heard     uint32 // frames of it, and remote accesses that are over
	over      uint32 // remote accesses to it
	in        [numClasses]inbox
	flying    int64         // bytes of remote accesses under way
	theirs    int64         // of its to this rank, as it has said
	announced time.Duration // when it was last told of flying
	watch     *watch

	taken    [numClasses]uint32 // of its frames
	arrived  uint32             // of its frames of messages
	told     [numClasses]uint32 // of taken and arrived, what it has been told
	toldHere uint32
	wantsAck bool          // it has asked
	askAt    time.Duration // when to ask it again what has arrived, once this rank is closed
	askGap   time.Duration // and after which pause that is
	inOwed   bool

	replies   conc.Queue[reply] // guarded by rx
	inReplies bool
}

// outbox is the frames of a class on their way to a peer.
type outbox struct {
	open uint32 // context of the frame that is being filled, if used is not 0
	used int    // bytes of it
	// writing: open is written to without mu; drop leaves it to the writer.
	writing bool
	ready   conc.Queue[readyFrame]
	sent    uint32 // frames, modulo 2^32
	acked   uint32 // that the peer has taken
}

type readyFrame struct {
	context uint32
	bytes   int
}

// reply is an answer that a peer waits for.
type reply struct {
	record
	entry  uint64      // of a fault
	data   []byte      // of a key
	at     segment.NLA // of a get: what remains
	remain uint64
}

// operation is a put or get.
type operation struct {
	cookie   uint64
	peer     *peer
	mem      []byte
	addr     segment.NLA
	get      bool
	used     bool
	context  uint32     // of the remote access that it is
	note     []uint32   // to be sent when it is done, or posted by remote access
	key      *remoteKey // that it goes by, unless it is of a segment
	check    bool       // its owner is to be asked before
	sent     uint64     // bytes of which pieces have been sent
	parts    int        // pieces of a put that are not answered; of a get all
	got      uint64     // bytes of a get that are here, or will not come
	released int        // pieces of a get that peer.asked does not count any more
	err      error
	loan     fabric.Region // of mem for this access alone, if loaned, until the provider has the access
	loaned   bool

	mark     uint32 // see writes
	unproven bool
	moved    bool // the provider is done with it
}

var _ conduits.Transport = (*transport)(nil)

// newTransport opens a rank's endpoint.
func newTransport(s *adapt.Seat, ep *fabric.Endpoint) (*transport, error) {
	t := &transport{
		Seat: s, fail: s.Fail, rank: s.Rank(), size: s.Size(), id: s.Job(), ep: ep, apart: true,
		drained: make(chan struct{}), peers: make([]*peer, s.Size()),
	}
	t.medium = s.Limits().MaxMedium
	t.frame = frameBytes(s.Limits())
	t.most = t.frame - headerBytes
	t.standby.init()
	first, err := ep.Grow(receives, t.frame)
	if err != nil {
		return nil, err
	}
	t.slots = make([]slot, receives)
	for i := range uint32(receives) {
		t.unposted = append(t.unposted, first+i)
	}
	t.post()
	if len(t.unposted) == receives {
		return nil, errs.Resource("ofi: %s takes no buffers to receive into", ep.Provider)
	}
	t.timer = time.AfterFunc(time.Hour, t.late)
	t.timer.Stop()
	t.watcher = time.AfterFunc(time.Hour, t.lookAround)
	t.watcher.Stop()
	t.asker = time.AfterFunc(time.Hour, t.standby.poke)
	t.asker.Stop()
	t.lossTime = lossTime
	t.setDeadTime(unheardOf)
	s.OnFailure(t.standby.poke)
	s.OnLeave(t.departed)
	return t, nil
}

// frameBytes is the size of a frame: the longest message fits.
func frameBytes(l conduits.Limits) int {
	return max(leastFrame, headerBytes+messageBytes(conduits.TransportWords, l.MaxMedium))
}

// Attach exchanges addresses and starts the standby poller.
func (t *transport) Attach(o conduits.Owner, size uint64, rights segment.Rights) ([]conduits.Attached, error) {
	t.mu.Lock()
	t.owner = o
	mine, err := t.register(rights)
	t.hidden = hidden{ip: t.ep.IP, called: map[int]bool{}}
	t.hidden.port = t.hidden.portOf(mine.addr)
	if err == nil {
		err = t.prepare()
	}
	t.mu.Unlock()
	if err != nil {
		t.Fail(t.rank, err)
		return nil, err
	}
	cards, err := t.Share(mine.encode())
	if err != nil {
		return nil, err
	}
	all, err := t.Seat.Attach(size, rights)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.all, t.cards = all, make([]card, t.size)
	for r, b := range cards {
		c, ok := decodeCard(b)
		if !ok {
			t.mu.Unlock()
			err := errs.BadArg("ofi: rank %d has a card of %d bytes that is wrong", r, len(b))
			t.Fail(r, err)
			return nil, err
		}
		t.cards[r] = c
	}
	t.mu.Unlock()
	t.attached.Store(true)
	t.stand()
	return all, nil
}

// peer returns the state of rank, with mu held.
func (t *transport) peer(rank int) *peer {
	p := t.peers[rank]
	if p == nil {
		p = &peer{rank: rank, epoch: t.polls.Load() - 1}
		t.peers[rank] = p
	}
	return p
}

// reach makes p's address known to the provider, with mu held.
func (t *transport) reach(p *peer) bool {
	if p.known || p.lost != nil {
		return p.known
	}
	var err error
	if p.addr, err = t.ep.Insert(t.cards[p.rank].addr); err != nil {
		t.lose(p, fmt.Errorf("its address % x: %w", t.cards[p.rank].addr, err))
		return false
	}
	p.known = true
	return true
}

// context takes a free frame, with mu held.
func (t *transport) context() (uint32, error) {
	if len(t.spare) == 0 {
		n := max(16, len(t.slots)/2)
		first, err := t.ep.Grow(n, t.frame)
		if err != nil {
			return 0, err
		}
		t.slots = append(t.slots, make([]slot, n)...)
		for i := range n {
			t.spare = append(t.spare, first+uint32(n-1-i))
		}
	}
	c := t.spare[len(t.spare)-1]
	t.spare = t.spare[:len(t.spare)-1]
	return c, nil
}

func (t *transport) free(c uint32) {
	t.slots[c] = slot{}
	t.spare = append(t.spare, c)
}

// room finds room for n bytes in a frame of class c to p, with mu held; nil if there is
// none now.
func (t *transport) room(p *peer, c class, n int) []byte {
	o := &p.out[c]
	if o.used > 0 && o.used+n > t.frame {
		if !t.shut(p, c) {
			return nil
		}
	}
	if p.lost != nil {
		return nil
	}
	if o.used == 0 {
		if len(o.ready.All()) > 1 {
			return nil
		}
		var err error
		if o.open, err = t.context(); err != nil {
			t.lose(p, err)
			return nil
		}
		o.used = headerBytes
	}
	b := t.ep.Buffer(o.open)[o.used : o.used+n : o.used+n]
	o.used += n
	return b
}

// shut ends the open frame and posts what may be posted, with mu held; false if one has
// to wait already.
func (t *transport) shut(p *peer, c class) bool {
	o := &p.out[c]
	if o.used == 0 {
		return true
	}
	if !o.ready.Empty() {
		t.launch(p, c)
		switch {
		case p.lost != nil:
			return true // drop has freed the frame
		case !o.ready.Empty():
			return false
		}
	}
	o.ready.Add(readyFrame{o.open, o.used})
	o.used = 0
	t.launch(p, c)
	return true
}

// launch posts frames that are ready as far as the window and the provider go, with mu
// held.
func (t *transport) launch(p *peer, c class) {
	o := &p.out[c]
	for !o.ready.Empty() && p.lost == nil && !p.left && o.sent-o.acked < window {
		f := o.ready.First()
		if posted, _ := t.send(p, c, 0, f.context, f.bytes); !posted {
			return // it waits for room, or drop has freed it
		}
		o.ready.Take()
		o.sent++
	}
}

// send posts a frame, with mu held; if it does not, the frame stays the caller's. ok is
// false if the provider has no room now: p is due then. Else p is lost.
func (t *transport) send(p *peer, c class, flags uint8, context uint32, bytes int) (posted, ok bool) {
	if !t.reach(p) {
		return false, true
	}
	h := header{job: t.id, src: uint32(t.rank), class: c, flags: flags, taken: p.taken, here: p.arrived}
	h.busy = uint16(min((p.flying+1<<20-1)>>20, 1<<16-1))
	if c < numClasses {
		h.seq = p.out[c].sent
	}
	h.encode(t.ep.Buffer(context))
	op := [1]fabric.Op{{Kind: fabric.Send, Context: context, Peer: p.addr, Len: uint64(bytes)}}
	if bytes <= t.ep.Inject {
		op[0].Kind = fabric.Inject
	}
	again, err := t.issue(p, op[:])
	switch {
	case again:
		t.stuck++
		p.full = true
		t.makeDue(p)
		return false, false
	case err != nil:
		t.lose(p, err)
		return false, true
	}
	t.frames++
	if h.busy > 0 && t.manual {
		p.announced = t.Now()
	}
	p.posted++
	p.full = false
	p.told, p.toldHere, p.wantsAck = p.taken, p.arrived, false
	p.epoch = t.polls.Load()
	if op[0].Kind == fabric.Inject {
		t.free(context)
	} else {
		t.slots[context] = slot{peer: p}
	}
	return true, true
}

// makeDue has p looked at by the next poll, or by the timer, with mu held.
func (t *transport) makeDue(p *peer) {
	if !p.inDue {
		p.inDue = true
		t.due = append(t.due, p)
	}
	if !t.timed {
		t.timed = true
		t.timer.Reset(flushAfter)
	}
}

// flushAfter bounds how long messages wait in a frame for others when the rank does not
// poll.
const flushAfter = 200 * time.Microsecond

// late is called by the timer.
func (t *transport) late() {
	t.mu.Lock()
	t.timed = false
	if !t.over {
		t.flush()
	}
	t.mu.Unlock()
}

// filled has a frame to p that something has been added to leave: at once if it is the
// first since the rank polled, with mu held.
func (t *transport) filled(p *peer, c class) {
	if p.epoch != t.polls.Load() {
		t.shut(p, c)
	}
	if o := &p.out[c]; o.used > 0 {
		t.makeDue(p)
	}
}

// flush posts all frames that may leave, with mu held.
func (t *transport) flush() {
	due := t.due
	t.due = nil
	for i, p := range due {
		p.inDue = false
		t.flushPeer(p)
		due[i] = nil
	}
	if t.due == nil {
		t.due = due[:0]
	}
}

// flushPeer posts what may leave for p, with mu held.
func (t *transport) flushPeer(p *peer) {
	for again := true; again; {
		for c := range numClasses {
			t.launch(p, c)
		}
		again = t.cut(p)
		for c := range answers { // answer fills the frames of the others
			if p.out[c].used > 0 {
				t.shut(p, c)
			}
		}
		again = again && p.out[accesses].ready.Empty()
	}
	t.heed(p)
}

// flushCredit posts what the window to p has room for now, with mu held.
func (t *transport) flushCredit(p *peer) {
	for c := range numClasses {
		t.launch(p, c)
	}
	t.cut(p)
	t.heed(p)
}

// heed tells the rank of room for messages to p that it has asked for, with mu held.
func (t *transport) heed(p *peer) {
	if p.refused && p.out[messages].ready.Empty() {
		p.refused = false
		t.Kick()
	}
}

// Send adds a message to the frame for dst.
func (t *transport) Send(dst int, words []uint32, payload []byte) conduits.Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.Err() != nil {
		return conduits.Dead
	}
	p := t.peer(dst)
	if p.left {
		return conduits.Dead
	}
	var b []byte
	if p.lost == nil {
		b = t.room(p, messages, messageBytes(len(words), len(payload)))
	}
	if b == nil {
		p.refused = true
		return conduits.NoCredit
	}
	putMessage(b, words, payload)
	t.filled(p, messages)
	return conduits.Ready
}

// Put has dst's owner take src in pieces.
func (t *transport) Put(dst int, to segment.NLA, src []byte, cookie uint64) (bool, error) {
	return t.access(operation{cookie: cookie, mem: src, addr: to}, dst)
}

// Get asks src's owner for the data.
func (t *transport) Get(dst []byte, src int, from segment.NLA, cookie uint64) (bool, error) {
	return t.access(operation{cookie: cookie, mem: dst, addr: from, get: true}, src)
}

func (t *transport) access(op operation, rank int) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Err(); err != nil {
		return false, err
	}
	p := t.peer(rank)
	if t.over || t.closed.Load() || p.left {
		return false, conduits.ErrClosed
	}
	if len(t.idle) == 0 {
		t.idle = append(t.idle, uint32(len(t.ops)))
		t.ops = append(t.ops, operation{})
	}
	id := t.idle[len(t.idle)-1]
	t.idle = t.idle[:len(t.idle)-1]
	op.peer, op.used = p, true
	// An access that its owner refuses must move nothing, so it is asked before the first of several
	// pieces, unless adapt knows the answer.
	n, size := uint64(len(op.mem)), t.all[rank].Size
	inside := op.addr >= segment.AttachBase && uint64(op.addr-segment.AttachBase)+n <= size
	op.check = !inside && (op.get && n > mostGet || !op.get && n > uint64(t.most-recordBytes)/2)
	op.check = op.check || !inside && n >= leastRemote && t.cards[rank].keys
	t.ops[id] = op
	if p.lost != nil {
		return false, nil // ends when it is known what has become of p
	}
	if t.remote(&t.ops[id], rank) {
		t.startRemote(p, id)
		t.askProof(p)
		return false, nil
	}
	p.pending.Add(id)
	t.cut(p)
	t.filled(p, accesses)
	return false, nil
}

// cut sends pieces of puts and gets to p as far as there is room, with mu held, and says
// whether it was room that it lacked in the end.
func (t *transport) cut(p *peer) bool {
	t.postRemote(p)
	t.sendNotes(p)
	if p.touch && p.lost == nil && !p.left {
		b := t.room(p, accesses, recordBytes)
		if b == nil {
			return true
		}
		(&record{kind: kindTouched}).encode(b)
		p.touch = false
	}
	if p.writes.ask && p.lost == nil && !p.left {
		b := t.room(p, accesses, recordBytes)
		if b == nil {
			return true
		}
		(&record{kind: kindFlush, op: p.writes.marks}).encode(b)
		p.writes.marks++
		p.writes.ask = false
	}
	for !p.recalls.Empty() && p.lost == nil && !p.left {
		b := t.room(p, accesses, recordBytes)
		if b == nil {
			return true
		}
		r, _ := p.recalls.Take()
		r.encode(b)
	}
	for !p.pending.Empty() && p.asked < mostAsked && p.lost == nil && !p.left {
		id := p.pending.First()
		op := &t.ops[id]
		if op.check {
			b := t.room(p, accesses, recordBytes)
			if b == nil {
				return true
			}
			r := record{kind: kindCheck, addr: uint64(op.addr), op: id, length: uint32(len(op.mem)), high: uint32(uint64(len(op.mem)) >> 32)}
			if op.get {
				r.code = codeGet
			}
			r.encode(b)
			p.pending.Take() // and is there again when it is answered
			p.asked++
			continue
		}
		at, remain := op.addr+segment.NLA(op.sent), uint64(len(op.mem))-op.sent
		r := record{kind: kindGet, addr: uint64(at), op: id}
		if op.get {
			n := min(remain, mostGet)
			b := t.room(p, accesses, recordBytes)
			if b == nil {
				return true
			}
			r.length = uint32(n)
			r.encode(b)
			op.sent += n
		} else {
			n := t.piece(&p.out[accesses], at, remain)
			b := t.room(p, accesses, recordBytes+round(int(n)))
			if b == nil {
				return true
			}
			r.kind, r.length = kindPut, uint32(n)
			r.encode(b)
			bulk.Copy(b[recordBytes:], op.mem[op.sent:op.sent+n])
			op.sent += n
		}
		p.asked++
		op.parts++
		if op.sent == uint64(len(op.mem)) {
			p.pending.Take()
		}
	}
	return false
}

// mostGet is the longest piece of a get, bytes. The owner divides it by frames.
const mostGet = 1 << 20

// leastPiece is how much room a frame must have left for a piece of what does not fit.
const leastPiece = 1 << 10

// piece is how much of a put to at goes into the next record: what fits in the open frame,
// or else in the next one, up to a multiple of 8 of the target's addresses, so that no
// aligned word is divided.
func (t *transport) piece(o *outbox, at segment.NLA, remain uint64) uint64 {
	have := t.most - recordBytes
	if o.used > 0 {
		whole := round(int(min(remain, uint64(have))))
		if here := t.frame - o.used - recordBytes; here >= min(whole, leastPiece) {
			have = here
		}
	}
	have &^= 7
	if remain <= uint64(have) {
		return remain
	}
	return uint64(have) - uint64(at)&7
}

// finish ends operation id, with mu held.
func (t *transport) finish(id uint32, err error) {
	op := &t.ops[id]
	if s := &t.slots[op.context]; s.rma && s.op == id {
		s.stale = true // the provider may still have it
	}
	if err == nil {
		t.follow(op)
	}
	if op.loaned && !t.over { // Close has ended all registrations
		if err := t.ep.Deregister(op.loan); err != nil {
			t.failSoon(t.rank, err)
		}
	}
	t.finished.Add(completion{op.cookie, err})
	*op = operation{}
	t.idle = append(t.idle, id)
}

// lose notes that p cannot be reached any more, with mu held.
func (t *transport) lose(p *peer, err error) {
	if p.lost != nil || p.left {
		return
	}
	p.lost = err
	t.drop(p)
	t.doubt(p.rank, fmt.Errorf("ofi: %s: rank %d cannot be reached: %w", t.ep.Provider, p.rank, err))
}

// drop frees what waits to be sent to p, with mu held.
func (t *transport) drop(p *peer) {
	p.dropped = p.dropped || t.owes(p)
	for c := range p.out {
		o := &p.out[c]
		if o.used > 0 && !o.writing {
			t.free(o.open)
			o.used = 0
		}
		for !o.ready.Empty() {
			f, _ := o.ready.Take()
			t.free(f.context)
		}
	}
	p.notes = conc.Queue[[]uint32]{}
	p.pending, p.remote = conc.Queue[uint32]{}, conc.Queue[uint32]{}
	p.writes = writes{}
}

// departed hears that rank has left.
func (t *transport) departed(rank int) {
	t.mu.Lock()
	p := t.peer(rank)
	if !p.left {
		p.left = true
		if !t.over {
			t.drop(p)
		}
		t.abandon(p, conduits.ErrClosed)
		t.attend()
		t.lefts.Add(rank)
	}
	t.mu.Unlock()
	t.Kick()
	t.standby.poke()
}

// abandon ends all operations on p, or on all ranks if it is nil, with mu held. One that
// the provider has is over when the provider says so, for it may still write to memory
// that is the caller's then; if the job has failed, the endpoint is closed before.
func (t *transport) abandon(p *peer, err error) {
	cut := true
	for id := range t.ops {
		op := &t.ops[id]
		if !op.used || p != nil && op.peer != p {
			continue
		}
		if t.underway(uint32(id)) {
			op.err = err
			if p != nil {
				continue
			}
			if cut = t.ep.Cut(); !cut {
				continue // it is tried again
			}
		}
		t.finish(uint32(id), err)
	}
	t.forgo(p, cut)
}

// underway reports whether the provider has operation id, with mu held.
func (t *transport) underway(id uint32) bool {
	s := &t.slots[t.ops[id].context]
	return s.rma && !s.stale && s.op == id
}

// Fail declares rank failed.
func (t *transport) Fail(rank int, err error) { t.fail(rank, err) }

// Close leaves when all that this rank has sent has arrived, which a rank that is a
// process waits for.
func (t *transport) Close() error {
	t.closed.Store(true)
	if !t.attached.Load() {
		t.leave()
		return nil
	}
	t.standby.poke()
	if t.mates != nil { // which may not be waited for
		go t.linger()
	} else {
		t.linger()
	}
	return nil
}

func (t *transport) linger() {
	<-t.drained
	t.leave()
}

// leave leaves the job and closes the endpoint.
func (t *transport) leave() {
	t.Leave()
	t.release()
	if t.mates != nil {
		t.mates.released()
	}
}

// release closes the endpoint.
func (t *transport) release() {
	t.standby.quit()
	t.rx.Lock()
	defer t.rx.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.forgo(nil, true) // whatever Close says: pins keep what the provider may write to
	t.timer.Stop()
	t.watcher.Stop()
	t.asker.Stop()
	closed := t.ep.Close()
	for i := range t.slots {
		switch p := t.slots[i].pin; { // of an access that was under way when the job failed
		case p == nil:
		case closed:
			p.Unpin()
		default:
			lost.Lock()
			lost.pins = append(lost.pins, p)
			lost.Unlock()
		}
	}
}

// lost keeps what endpoints may still write to that their providers could not close.
var lost struct {
	sync.Mutex
	pins []*runtime.Pinner
}

// drain sees whether all that this rank has sent has arrived, once it is closed, and asks
// peers for word of it, with mu held.
func (t *transport) drain() {
	if !t.closed.Load() || t.noted {
		return
	}
	clear, now, next := true, t.Now(), mostAskGap
	if t.Err() == nil {
		for _, p := range t.peers {
			if p == nil || p.left {
				continue
			}
			if t.owes(p) {
				clear = false
				if p.lost != nil {
					continue // and has left, or fails
				}
				if now >= p.askAt {
					t.ack(p, wantAck)
					p.askGap = min(max(2*p.askGap, leastAskGap), mostAskGap)
					p.askAt = now + p.askGap
				}
				next = min(next, p.askAt-now)
			}
		}
	}
	if clear {
		t.noted = true
		close(t.drained)
	} else {
		t.asker.Reset(next)
	}
}

// The pauses between questions of a closed rank to a peer, which double while it says
// nothing new: one that computes may not take messages for long.
const (
	leastAskGap = time.Millisecond
	mostAskGap  = 100 * time.Millisecond
)

// owes reports whether p has not had all that this rank has sent, with mu held.
func (t *transport) owes(p *peer) bool {
	for c := range p.out {
		o := &p.out[c]
		has := o.acked
		if class(c) == messages {
			has = p.here
		}
		if o.used > 0 || !o.ready.Empty() || o.sent != has {
			return true
		}
	}
	return p.touch || p.dropped || !p.notes.Empty() || !p.pending.Empty()
}

var _ conduits.Diagnoser = (*transport)(nil)

// Diagnosis says how far frames have got, by peer, for reports of hangs.
func (t *transport) Diagnosis() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := fmt.Sprintf("%d frames sent, %d times no room", t.frames, t.stuck)
	for _, p := range t.peers {
		if p != nil {
			s += fmt.Sprintf("; rank %d: %d pieces asked for, frames", p.rank, p.asked)
			for c := range p.out {
				o := &p.out[c]
				s += fmt.Sprintf(" %d sent %d taken %d ready %d bytes open,", o.sent, o.acked, len(o.ready.All()), o.used)
			}
		}
	}
	return s
}

// standby looks after the endpoint while the rank does not poll.
type standby struct {
	asked chan struct{} // holds one if the rank waits, or there is news
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	file  *os.File // of the endpoint's descriptor; nil if it has none
	fd    int      // the library's
	conn  syscall.RawConn
	blind bool // reading file has failed; the standby poller's own
	left  int  // bytes that were unread in connections; the standby poller's own
	began atomic.Bool
}

func (s *standby) init() {
	s.asked, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// poke has the standby poller look.
func (s *standby) poke() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	if s.began.Load() && s.file != nil {
		_ = s.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// quit ends the standby poller.
func (s *standby) quit() {
	s.once.Do(func() { close(s.stop) })
	if s.began.Load() {
		s.poke()
		<-s.done
	}
	if s.file != nil {
		s.file.Close()
	}
}
