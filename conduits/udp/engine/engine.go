package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// Engine is one rank's transport. It is used by one goroutine at a time.
type Engine struct {
	c        Config
	now      time.Duration // the latest that a caller said
	drained  time.Duration // by when all that had come has been received
	first    uint64        // number that all counts begin with
	ackEvery int
	row      int // datagrams that a peer may have in a row
	enough   int // bytes of small frames that gain nothing from more of them

	brought [copied]byte // registered memory that is being answered with

	peers   map[int]*peer
	recent  *peer // the one that was asked for last
	ready   *peer // first of those that may have a datagram to send
	last    *peer
	run     run   // what the last datagram was
	stale   *peer // its timers are brought up to date before they are looked at; see later
	watcher watcher
	timers  []*peer // heap by deadline
	waits   []*peer // those with small messages that wait, or did
	head    int     // what the sealer puts before a datagram,
	trail   int     // and after it
	plain   bool    // it looks at no more than what it puts before

	in    [conduits.NumClasses]queue[Message, *Message]
	done  conc.Queue[Completion]
	dead  conc.Queue[int]
	ops   []op
	idle  []uint32 // free ops
	stats Stats
	cause error // see Fail

	// In no use.
	pkts  pool[pkt, *pkt]
	items pool[item, *item]
	msgs  pool[Message, *Message]
	bufs  [][]byte // of MaxMedium bytes
	large [][]byte // of CopyMost bytes
	lent  int      // buffers of CopyMost bytes in use
}

// Message is one that has arrived. It is the engine's again after Release.
type Message struct {
	conduits.Message

	from  int // number of the peer
	words [conduits.MaxWords]uint32
	buf   []byte // the landing buffer; nil for long and for none
	num   uint32
	total uint64
	got   uint64 // of total
	regs  uint64 // registrations before any of it came
	bad   bool   // it goes where it must not, or did when a part of it came
	next  *Message
}

// Completion is the end of an operation; see conduits.Receiver.
type Completion struct {
	Cookie uint64
	Event  conduits.Event
	Value  uint64
	Err    error
}

// op is a get or an atomic whose answer is awaited.
type op struct {
	gen    uint32 // 0 is never used
	kind   byte   // frGet, frAtomic, or 0: free
	want   conduits.Event
	peer   int32
	cookie uint64
	from   segment.NLA
	size   uint64
	dst    []byte
	got    uint64
}

// peer is the engine's state of a rank that there was contact with.
type peer struct {
	number int
	rank   int    // number % Config.Ranks
	epoch  uint32 // 0: not known yet
	dead   bool
	left   bool // dead, but in good order
	path
	flows [conduits.NumClasses]flow

	// The largest datagram, bytes with all that the engine and the sealer add, and
	// what of it is for the acknowledgement's words and frames. Contents are cut when
	// they are sent for the first time, to what fits then.
	datagram, room int
	mtu            pathMTU

	turn int // flow that sends next
	run  int // datagrams of flows sent so far
	row  int // datagrams that it may still have in this row
	ops  int // gets and atomics on the way

	again uint64 // datagrams sent again

	push     bool // small messages do not wait
	waits    bool // in Engine.waits
	queued   bool // in the ready list
	next     *peer
	timer    int           // place in the heap, or -1
	deadline time.Duration // valid if in the heap
	silence  silence
	death    *SilentError // of a peer that was silent for too long
	asking   bool         // the next datagram asks for an answer
	ackNow   bool         // an acknowledgement is due
	ackOwed  bool         // one is due at ackAt
	ackAt    time.Duration
	unsaid   int // datagrams since the last acknowledgement
}

// item is data to be cut into fragments.
type item struct {
	kind   byte
	nwords uint8
	own    bool // data is the engine's buffer
	lent   bool // it is one of Engine.large
	want   conduits.Event
	class  conduits.Class
	msg    uint32
	tag    conduits.Tag
	to     segment.NLA
	id     uint64
	cookie uint64
	off    uint64 // fragmented so far
	open   int    // fragments that have not been acknowledged
	err    error  // of a put: the target has refused a fragment
	data   []byte
	size   uint64 // of registered memory that fragments are copied from when they are cut; data is nil
	peer   int32  // the rank that gets it: Memory's src
	words  [conduits.MaxWords]uint32
	next   *item
}

// length is how much there is to be cut.
func (it *item) length() uint64 { return uint64(len(it.data)) + it.size }

// rowBytes is how much a peer may be sent in a row.
const rowBytes = 1 << 16

// New makes an engine.
func New(c Config) (*Engine, error) {
	if err := c.ensure(); err != nil {
		return nil, err
	}
	e := &Engine{c: c, peers: map[int]*peer{}}
	e.row = max(1, rowBytes/c.Datagram)
	e.enough = max(enough, min(c.Datagram/4, enoughMost))
	e.ackEvery = max(ackEvery, min(c.Window, shortDatagrams, shortBytes/c.Datagram)/quarters)
	if c.Sealer != nil {
		e.head, e.trail, e.plain = c.Sealer.Header(), c.Sealer.Trailer(), c.Sealer.Plain()
	}
	return e, nil
}

// Config is the engine's configuration with its defaults.
func (e *Engine) Config() Config { return e.c }

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	for n := range e.peers {
		first := true // of the numbers of its rank
		for m := n - e.c.Ranks; first && m >= 0; m -= e.c.Ranks {
			first = e.peers[m] == nil
		}
		if first {
			s.Peers++
		}
	}
	return s
}

// Again calls f with how many datagrams have been sent again, for each number of a peer to which some have.
func (e *Engine) Again(f func(rank int, n uint64)) {
	for _, p := range e.peers {
		if p.again > 0 {
			f(p.rank, p.again)
		}
	}
}

// find returns the state for the peer of that number, or nil.
func (e *Engine) find(number int) *peer {
	if p := e.recent; p != nil && p.number == number {
		return p
	}
	p := e.peers[number]
	if p != nil {
		e.recent = p
	}
	return p
}

// peer finds or makes the state for the peer of that number.
func (e *Engine) peer(number int) *peer {
	if p := e.find(number); p != nil {
		return p
	}
	p := &peer{number: number, rank: number % e.c.Ranks, timer: -1}
	e.discover(p)
	p.path.open(e.first, &e.c, number)
	p.resetWindow()
	for c := range p.flows {
		p.flows[c].open(conduits.Class(c), e.first)
	}
	e.peers[number] = p
	return p
}

// Dead reports whether rank has been declared dead.
func (e *Engine) Dead(rank int) bool {
	p := e.peers[rank]
	return p != nil && p.dead
}

// Reserve takes a credit for a message of class c to dst, which Send or SendLong
// uses and Cancel gives back.
func (e *Engine) Reserve(dst int, c conduits.Class) conduits.Status {
	p := e.peer(dst)
	if p.dead {
		return conduits.Dead
	}
	f := &p.flows[c]
	if f.messages-f.consumed >= uint32(e.c.Credits) {
		e.stats.NoCredit++
		if !f.small.empty() {
			p.push = true // nothing joins those that wait
			e.touch(p)
		}
		if !f.refused {
			f.refused = true
			if f.una == f.next && f.small.empty() && f.bulk.empty() {
				// The datagram that returned the credit may have been lost.
				p.asking, p.ackNow = true, true
			}
			e.touch(p)
		}
		return conduits.NoCredit
	}
	f.messages++
	return conduits.Ready
}

// Cancel gives the credit of Reserve back.
func (e *Engine) Cancel(dst int, c conduits.Class) { e.peer(dst).flows[c].messages-- }

// Send sends a message that credit has been reserved for. Words and payload, at
// most MaxMedium bytes, are copied.
func (e *Engine) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte) {
	p := e.peer(dst)
	if p.dead {
		return
	}
	e.stats.Frames++
	f := &p.flows[c]
	if n := 8 + 4*len(words) + len(payload); n <= p.room {
		k := e.collect(p, f, n)
		k.frames = appendMessage(k.frames, tag, words, payload)
	} else {
		it := e.item(frMedium, c)
		it.tag, it.nwords, it.msg = tag, uint8(len(words)), f.number
		copy(it.words[:], words)
		it.data, it.own = e.buffer(len(payload)), true
		copy(it.data, payload)
		f.number++
		f.bulk.add(it)
	}
	e.more(p, f)
}

// copied is how much data of a put the engine copies, so that the source is free at once and
// several puts share a datagram; up to copiedMost while fewer than copiedQueue datagrams wait.
const (
	copied      = 256
	copiedMost  = 4 << 10
	copiedQueue = 64
)

// CopyMost is the most data of a long message that the engine copies, bytes.
const CopyMost = 64 << 10

const (
	// mostLent is how many copies of more than MaxMedium bytes there may be at a time,
	// 4 MiB of them: twice what a short path has under way. What is sent beyond them is
	// read from where it lies, and its sender waits until it has arrived.
	mostLent = 64
	// largeFree is how many of their buffers are kept.
	largeFree = 16
)

// Copy copies data, at most CopyMost bytes, for SendCopy or Uncopy. It returns nil if
// there are as many copies as may be.
func (e *Engine) Copy(data []byte) []byte {
	if e.lent == mostLent || len(data) > CopyMost {
		return nil
	}
	e.lent++
	var b []byte
	if n := len(e.large); n > 0 {
		b, e.large = e.large[n-1], e.large[:n-1]
	} else {
		b = make([]byte, CopyMost)
	}
	return b[:copy(b[:CopyMost], data)]
}

// Uncopy takes back what Copy has returned.
func (e *Engine) Uncopy(b []byte) {
	e.lent--
	if len(e.large) < largeFree {
		e.large = append(e.large, b)
	}
}

// SendLong sends a message, that credit has been reserved for, that follows data
// to address to. Up to MaxMedium bytes are copied. If the returned event lacks
// SourceDone, data must stay until that is reported for cookie.
func (e *Engine) SendLong(dst int, c conduits.Class, tag conduits.Tag, words []uint32, to segment.NLA, data []byte, cookie uint64) conduits.Event {
	p := e.peer(dst)
	if p.dead {
		return conduits.SourceDone
	}
	e.stats.Frames++
	f := &p.flows[c]
	if n := longFrame + 4*len(words) + len(data); len(data) <= e.c.MaxMedium && n <= p.room {
		k := e.collect(p, f, n)
		k.frames = appendLong(k.frames, f.number, tag, words, to, data)
		f.number++
		e.more(p, f)
		return conduits.SourceDone
	}
	it := e.long(f, tag, words, to)
	ev := conduits.Event(0)
	if len(data) <= e.c.MaxMedium {
		it.data, it.own = e.buffer(len(data)), true
		copy(it.data, data)
		ev = conduits.SourceDone
	} else {
		it.data, it.want, it.cookie = data, conduits.SourceDone, cookie
	}
	e.more(p, f)
	return ev
}

// SendCopy is SendLong of what Copy has returned, which is the engine's again.
func (e *Engine) SendCopy(dst int, c conduits.Class, tag conduits.Tag, words []uint32, to segment.NLA, data []byte) {
	p := e.peer(dst)
	if p.dead {
		e.Uncopy(data)
		return
	}
	e.stats.Frames++
	f := &p.flows[c]
	it := e.long(f, tag, words, to)
	it.data, it.own, it.lent = data, true, true
	e.more(p, f)
}

// long adds a message that follows data, which the caller provides, to f.
func (e *Engine) long(f *flow, tag conduits.Tag, words []uint32, to segment.NLA) *item {
	it := e.item(frLong, f.class)
	it.tag, it.nwords, it.to, it.msg = tag, uint8(len(words)), to, f.number
	copy(it.words[:], words)
	f.number++
	f.bulk.add(it)
	return it
}

func (e *Engine) peerError(p *peer, op string) error {
	switch {
	case e.cause != nil:
		return e.cause
	case p.left:
		return &conduits.PeerError{Rank: p.rank, Op: op, Err: errLeft}
	}
	return silentError(p, op)
}

var errLeft = errors.New("it has left the job")

// loss is the error of a put to p, which is dead; nil if p has left in good order: it
// needed nothing more, and its memory is gone.
func (e *Engine) loss(p *peer, op string) error {
	if p.left {
		return nil
	}
	return e.peerError(p, op)
}

// Put copies src to address to of dst. Whatever of want the returned event lacks
// is completed later; until SourceDone src must stay as it is.
func (e *Engine) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	p := e.peer(dst)
	switch {
	case p.dead:
		return 0, e.peerError(p, "udp: put")
	case len(src) == 0:
		return want, nil
	}
	e.stats.Frames++
	f := &p.flows[conduits.Request]
	if n := len(src); n <= p.room-11 && (n <= copied || n <= copiedMost && f.smalls < copiedQueue) {
		k := e.collect(p, f, 11+len(src))
		at := len(k.frames)
		k.frames = appendPut(k.frames, to, src)
		have := want & conduits.SourceDone
		if want &^= have; want != 0 {
			k.now = true
			k.done = append(k.done, ending{cookie, uint32(at), want})
		}
		e.more(p, f)
		return have, nil
	}
	it := e.item(frPart, conduits.Request)
	it.to, it.data, it.want, it.cookie = to, src, want, cookie
	f.bulk.add(it)
	e.more(p, f)
	return 0, nil
}

// Get copies from address from of src to dst, which must not be touched until
// want is completed.
func (e *Engine) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	p := e.peer(src)
	switch {
	case p.dead:
		return 0, e.peerError(p, "udp: get")
	case len(dst) == 0:
		return want, nil
	}
	e.stats.Frames++
	o, id := e.newOp(p, frGet, want, cookie)
	o.dst, o.from, o.size = dst, from, uint64(len(dst))
	f := &p.flows[conduits.Request]
	k := e.collect(p, f, 25)
	k.frames = appendGet(k.frames, id, from, uint64(len(dst)))
	e.more(p, f)
	return 0, nil
}

// Atomic performs op at address to of dst; RemoteDone and the old value are
// completed later.
func (e *Engine) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y, cookie uint64) error {
	p := e.peer(dst)
	if p.dead {
		return e.peerError(p, "udp: atomic")
	}
	e.stats.Frames++
	o, id := e.newOp(p, frAtomic, conduits.RemoteDone, cookie)
	o.from, o.size = to, uint64(t.Size())
	f := &p.flows[conduits.Request]
	k := e.collect(p, f, 35)
	k.frames = appendAtomic(k.frames, id, to, op, t, x, y)
	e.more(p, f)
	return nil
}

func (e *Engine) newOp(p *peer, kind byte, want conduits.Event, cookie uint64) (*op, uint64) {
	var i uint32
	if n := len(e.idle); n > 0 {
		i = e.idle[n-1]
		e.idle = e.idle[:n-1]
	} else {
		i = uint32(len(e.ops))
		e.ops = append(e.ops, op{gen: 1})
	}
	o := &e.ops[i]
	o.kind, o.want, o.peer, o.cookie, o.dst, o.got = kind, want, int32(p.number), cookie, nil, 0
	p.ops++
	return o, uint64(o.gen)<<32 | uint64(i)
}

// findOp is the operation that p answers, if there is such a one.
func (e *Engine) findOp(p *peer, id uint64, kind byte) *op {
	i := uint32(id)
	if uint64(i) >= uint64(len(e.ops)) {
		return nil
	}
	o := &e.ops[i]
	if o.gen != uint32(id>>32) || o.kind == 0 || kind != 0 && o.kind != kind || int(o.peer) != p.number {
		return nil
	}
	return o
}

// endOp completes the operation at index i.
func (e *Engine) endOp(p *peer, i uint32, value uint64, err error) {
	o := &e.ops[i]
	if o.want != 0 {
		e.done.Add(Completion{o.cookie, o.want, value, err})
	}
	p.ops--
	if o.gen++; o.gen == 0 {
		o.gen = 1
	}
	o.kind, o.dst = 0, nil
	e.idle = append(e.idle, i)
}

// NextCompletion takes the next operation that has ended.
func (e *Engine) NextCompletion() (Completion, bool) { return e.done.Take() }

// NextDead takes the next rank that has been declared dead.
func (e *Engine) NextDead() (int, bool) { return e.dead.Take() }

// NextMessage takes the next message of class c that has arrived, or nil.
func (e *Engine) NextMessage(c conduits.Class) *Message {
	for {
		m := e.in[c].take()
		if m == nil || m.To == 0 || m.total == 0 {
			return m
		}
		var ok bool
		if m.Payload, ok = e.c.Memory.Target(e.c.Rank, m.To, m.total, 0); ok {
			return m
		}
		b, u, err := e.c.Memory.Access(m.Src, m.To, m.total, segment.RightWrite)
		if err == nil {
			u.Exit()
			if !e.c.Memory.Since(m.To, m.total, m.regs) {
				m.Payload = b
				return m
			}
		}
		e.stats.Unheard++ // withdrawn since the data came
		e.Release(m)
	}
}

// Release gives m back, and its sender the credit for another one.
func (e *Engine) Release(m *Message) {
	if p := e.find(m.from); p != nil && !p.dead {
		e.consume(p, m.Class)
	}
	e.drop(m)
}

func (e *Engine) consume(p *peer, c conduits.Class) {
	f := &p.flows[c]
	f.taken++
	switch {
	case e.tellable(f):
		p.ackNow = true
	case p.ackOwed:
		return // nothing is due any sooner
	default:
		e.owe(p)
	}
	e.touch(p)
}

// tellable reports whether the peer should be told at once of the credit that has
// returned: if it is worth a datagram. Each credit by itself would have a peer that
// waits for some send as many messages in as many datagrams. It does hear of
// credit in the end: a peer without any has so many messages under way that their
// consumption is worth a datagram.
func (e *Engine) tellable(f *flow) bool { return f.taken-f.told >= uint32(max(1, e.c.Credits/4)) }

// owe makes an acknowledgement due soon.
func (e *Engine) owe(p *peer) {
	if !p.ackOwed {
		p.ackOwed = true
		p.ackAt = e.now + e.c.AckDelay
	}
}

// Quiet reports whether nothing is left to be sent, acknowledged or answered.
func (e *Engine) Quiet() bool {
	for _, p := range e.peers {
		if !p.dead && (p.ackNow || p.ackOwed || p.awaiting()) {
			return false
		}
	}
	return true
}

// Drained reports whether everything that this rank has sent has arrived.
func (e *Engine) Drained() bool {
	for _, p := range e.peers {
		for c := range p.flows {
			if f := &p.flows[c]; f.una != f.next || !f.small.empty() || !f.bulk.empty() {
				return false
			}
		}
	}
	return true
}

// Pending reports whether a message or completion can be taken.
func (e *Engine) Pending() bool {
	return !e.done.Empty() || !e.in[conduits.Request].empty() || !e.in[conduits.Reply].empty()
}

// refused is the error of an operation that p has refused, for the reason that
// fr tells.
func (e *Engine) refused(p *peer, op string, a segment.NLA, n uint64, need segment.Rights, fr *frame) error {
	return conduits.Fault("udp: "+op, p.rank, &segment.FaultError{
		Addr: a, Len: n, Need: need, VPID: uint16(min(e.c.Rank, segment.AnyVPID)),
		Page: segment.NLA(fr.a), Have: segment.Entry(fr.b),
	})
}

// Complete adds a completion to those that the caller takes: one that it knows of
// itself.
func (e *Engine) Complete(c Completion) { e.done.Add(c) }

// Fail ends everything that is under way to any peer with err, the job's failure.
func (e *Engine) Fail(err error) {
	e.cause = err
	ranks := make([]int, 0, len(e.peers))
	for r := range e.peers {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks) // the same program does the same
	for _, r := range ranks {
		e.kill(e.peers[r])
	}
}

// Part notes that rank has left the job, having had all that it was sent as far as
// it cares: what is under way to it is forgotten, puts are completed, gets and
// atomics end with an error. It is as good as dead from now on, but not reported
// by NextDead. If there was no contact with it, nothing is remembered: that it has
// left is the caller's to know.
func (e *Engine) Part(rank int) {
	if p := e.peers[rank]; p != nil && !p.dead {
		p.left = true
		e.kill(p)
	}
}

// kill forgets what is under way to p, and completes it with an error.
func (e *Engine) kill(p *peer) {
	if p.dead {
		return
	}
	p.dead = true
	e.unwatch(p)
	e.run = run{}
	if !p.left {
		e.stats.Deaths++
		e.dead.Add(p.number)
	}
	for c := range p.flows {
		f := &p.flows[c]
		for k := f.small.take(); k != nil; k = f.small.take() {
			e.bury(p, k)
		}
		for it := f.bulk.take(); it != nil; it = f.bulk.take() {
			it.open++
			it.off = it.length()
			e.closeItem(it, e.loss(p, "udp"))
		}
		for i, k := range f.ring {
			if k != nil {
				f.ring[i] = nil
				e.bury(p, k)
			}
		}
		for _, m := range f.parts {
			e.drop(m)
		}
		*f = flow{}
	}
	if p.ops > 0 {
		for i := range e.ops {
			if o := &e.ops[i]; o.kind != 0 && int(o.peer) == p.number {
				e.endOp(p, uint32(i), 0, e.peerError(p, "udp: "+opNames[o.kind]))
			}
		}
	}
	p.path = path{}
	p.asking, p.ackNow, p.ackOwed = false, false, false
	e.touch(p)
}

var opNames = map[byte]string{frGet: "get", frAtomic: "atomic"}

func (e *Engine) bury(p *peer, k *pkt) {
	k.finish(&e.done, e.loss(p, "udp: put"))
	if it := k.item; it != nil {
		it.off = it.length()
		e.closeItem(it, e.loss(p, "udp: put"))
	}
	e.freePkt(k)
}

// closeItem notes that a fragment needs the item no more.
func (e *Engine) closeItem(it *item, err error) {
	if it.open--; it.open > 0 || it.off < it.length() {
		return
	}
	if it.err != nil && it.want&conduits.RemoteDone != 0 {
		err = it.err
	}
	if it.want != 0 {
		e.done.Add(Completion{it.cookie, it.want, 0, err})
	}
	switch {
	case it.lent:
		e.Uncopy(it.data)
	case it.own:
		e.keep(it.data)
	}
	*it = item{}
	e.items.add(it)
}

// Storage.

func (e *Engine) item(kind byte, c conduits.Class) *item {
	it := e.items.take()
	if it == nil {
		it = new(item)
	}
	it.kind, it.class = kind, c
	return it
}

func (e *Engine) buffer(n int) []byte {
	if k := len(e.bufs); k > 0 {
		b := e.bufs[k-1]
		e.bufs = e.bufs[:k-1]
		return b[:n]
	}
	return make([]byte, n, max(e.c.MaxMedium, copied))
}

func (e *Engine) keep(b []byte) {
	if len(e.bufs)*cap(b) < freeBytes {
		e.bufs = append(e.bufs, b)
	}
}

func (e *Engine) message(p *peer, c conduits.Class) *Message {
	m := e.msgs.take()
	if m == nil {
		m = new(Message)
	}
	m.Src, m.from, m.Class = p.rank, p.number, c
	return m
}

func (e *Engine) drop(m *Message) {
	if m.buf != nil {
		e.keep(m.buf)
	}
	m.Message = conduits.Message{}
	m.buf, m.total, m.got, m.bad = nil, 0, 0, false
	e.msgs.add(m)
}

func (e *Engine) pkt() *pkt {
	if k := e.pkts.take(); k != nil {
		return k
	}
	return new(pkt)
}

func (e *Engine) freePkt(k *pkt) {
	*k = pkt{frames: k.frames[:0], done: k.done[:0]}
	e.pkts.add(k)
}
