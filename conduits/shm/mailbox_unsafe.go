package shm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// mailbox is this rank's ends of all rings: what it sends by, and what arrives. The lock of
// an outRing guards a ring of requests; connectMu the making of rings to send by; lock,
// which the goroutine that polls holds, everything that arrives, and the rings of replies.
// So a handler replies without taking one. Each lane has a mailbox.
type mailbox struct {
	// Fields that every send and poll reads, together.
	out     []atomic.Pointer[outRing] // by 2*(rank-first)+class, made on first use
	hot     *inRing                   // delivered last
	openSeq *uint32                   // ctlOpenSeq of this rank
	seen    uint32                    // its value when in was made
	spins   int                       // looks at the hot ring in Spin
	bell

	receiver conduits.Receiver
	msg      [conduits.NumClasses]conduits.Message // one a class: replies may nest
	opened   []uint32                              // the bits at ctlOpen that in was made for
	in       []*inRing                             // rings of all sources that have sent
	watch    []*uint64                             // next() of each, closer together
	cursor   int                                   // where the last look at others ended
	turn     uint64                                // polls, for fairness; other lanes look at it

	connectMu sync.Mutex
	mem       *memory    // where long messages lie
	life      *lifecycle // what a full ring, and one that holds nonsense, ask
	// Not in the line of turn and cursor, which each poll writes: a goroutine that tries
	// the lock would take it away.
	lock conc.Lock // held while polling

	auditDue   atomic.Bool // see audit
	untilAudit int         // looks; the watcher's

	statsMu    sync.Mutex     // guards what follows; two at once would keep each other from lock
	seenTotals conduits.Stats // of the rings that the poller has, as tally last saw them
	seenPeers  conduits.Stats // likewise with Peers, when it was last asked for them: so both add up
}

// Looks at the hot ring in one Spin, of about 15 ns each: while it lasts the
// other rings wait, so with few rings it lasts longer. Measured with two ranks:
// half round trips of 70 ns with 16 looks, 66 with 48.
const (
	spins     = 16
	longSpins = 48
	fewRings  = 4
)

// ring finds or opens the ring to dst.
func (box *mailbox) ring(dst int, c conduits.Class) *outRing {
	if r := box.out[(dst-box.first)*conduits.NumClasses+int(c)].Load(); r != nil {
		return r
	}
	return box.connect(dst, c)
}

// connect makes this rank known to dst, which will look at the ring from now on.
func (box *mailbox) connect(dst int, c conduits.Class) *outRing {
	box.connectMu.Lock()
	defer box.connectMu.Unlock()
	at := &box.out[(dst-box.first)*conduits.NumClasses+int(c)]
	if r := at.Load(); r != nil {
		return r
	}
	r := box.j.outRing(box.j.way(box.rank, dst, box.lane, c), dst, box.lane, c)
	me := box.here
	word := box.word(dst, ctlOpen+me/32*4)
	bit := uint32(1) << (me % 32)
	if atomic.OrUint32(word, bit)&bit == 0 {
		atomic.AddUint32(box.word(dst, ctlOpenSeq), 1)
		if box.lane != 0 {
			box.knock(dst)
		}
	}
	if box.life.closed.Load() {
		r.shut()
	}
	at.Store(r)
	return r
}

// Send sends a short message. It and SendPayload use the mailbox alone, and are not its
// methods only because an interface reaches those by one jump more, about 1 % of a message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	r := e.out[(dst-e.mailbox.first)*conduits.NumClasses+int(c)].Load()
	n := uint64(len(words))
	if r == nil || n > conduits.MaxWords {
		r = e.firstSend(dst, c, n)
	}
	// Replies are sent by the poller, which holds a lock already.
	if c == conduits.Request {
		if r.strands.Load() != nil || !conc.Enter(&r.lock) {
			r = e.lockRing(r)
		}
	} else if r.requests != nil {
		r.align()
	}
	t := r.tail
	if t >= r.limit && !r.room() {
		return e.fullFor(r, c)
	}
	r.tail = t + 1
	// The words of a message and its status in as few stores, and as close to
	// each other, as can be: the receiver's look may take the line away between.
	p := r.cell(t)
	to, bits := r.body(p, 0, int(n)*4)
	from := unsafe.Pointer(unsafe.SliceData(words))
	for i := uint64(0); i < n/2; i++ {
		*(*uint64)(unsafe.Add(to, 8*i)) = *(*uint64)(unsafe.Add(from, 8*i))
	}
	if n&1 != 0 {
		*(*uint32)(unsafe.Add(to, 4*n-4)) = words[n-1]
	}
	conc.Release64((*uint64)(p), status(t, uint64(tag)&stTagMask|n<<stWordsShift|bits))
	if c == conduits.Request {
		r.lock.Unlock()
	}
	if e.fence {
		e.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		e.wake(dst)
	}
	return conduits.Ready
}

// firstSend is the part of Send for a ring that is not open yet.
//
//go:noinline
func (box *mailbox) firstSend(dst int, c conduits.Class, words uint64) *outRing {
	if words > conduits.MaxWords {
		panic(fmt.Sprintf("shm: send of %d words; limit %d", words, conduits.MaxWords))
	}
	return box.ring(dst, c)
}

// fullFor is full for a ring that is locked only for requests.
func (box *mailbox) fullFor(r *outRing, c conduits.Class) conduits.Status {
	if c == conduits.Reply {
		r.lock.Lock()
	}
	return box.full(r)
}

// Reserve claims the cell of a message. Its body goes into the far part, which
// no receiver watches while it is being filled.
func (box *mailbox) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	r := box.ring(dst, c)
	kind := box.payloadKind(words, payload)
	r = box.lockFor(r, c)
	t, at, ok := r.claim(kind, uint64(payload))
	if !ok {
		return conduits.Slot{}, box.full(r)
	}
	r.open.Add(1)
	r.lock.Unlock()
	body := unsafe.Add(r.cell(t), r.far)
	s := conduits.Slot{
		Words: unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kind])), words),
		Ref:   t&refIndex | uint64(r.strand)<<refStrandShift | kind<<refKindShift | at/lineBytes<<refLineShift,
	}
	switch kind {
	case kindLanded:
		s.Payload = unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), payload)
	case kindInline:
		s.Payload = unsafe.Slice((*byte)(unsafe.Add(body, inlineAt(words))), payload)
	}
	return s, conduits.Ready
}

// lockFor locks the ring for a message that is reserved; r is the first one.
func (box *mailbox) lockFor(r *outRing, c conduits.Class) *outRing {
	if c == conduits.Request {
		return box.lockRing(r)
	}
	r.lock.Lock()
	return r
}

// full unlocks r and says why there is no room.
func (box *mailbox) full(r *outRing) conduits.Status {
	r.noCredit++
	if what := r.nonsense(); what != "" {
		box.damaged(what)
	}
	r.lock.Unlock()
	if box.life.Err() != nil || conduits.RankState(atomic.LoadUint32(box.j.c32(int(r.dst), ctlState))) >= conduits.RankFinished {
		return conduits.Dead
	}
	return conduits.NoCredit
}

// payloadKind says how a payload travels: in the cell if it fits there.
func (box *mailbox) payloadKind(words, payload int) uint64 {
	if uint(words) > conduits.MaxWords || uint(payload) > uint(box.j.maxMedium()) {
		panic(fmt.Sprintf("shm: message of %d words and %d bytes; limits %d and %d", words, payload, conduits.MaxWords, box.j.maxMedium()))
	}
	switch {
	case payload == 0:
		return kindShort
	case inlineAt(words)+payload <= farBytes:
		return kindInline
	}
	return kindLanded
}

// SendPayload sends a medium message. The cell is written last and at a stretch,
// as in Send.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return e.sendLong(dst, c, tag, words, to, payload)
	}
	r := e.ring(dst, c)
	kind := e.payloadKind(len(words), len(payload))
	if c == conduits.Request {
		if r.strands.Load() != nil || !conc.Enter(&r.lock) {
			r = e.lockRing(r)
		}
	} else if r.requests != nil {
		r.align()
	}
	t, at, ok := r.claim(kind, uint64(len(payload)))
	if !ok {
		return e.fullFor(r, c)
	}
	if c == conduits.Request {
		r.lock.Unlock()
	}
	p := r.cell(t)
	h := uint64(len(payload))
	size := 4 * len(words)
	if kind == kindLanded {
		copy(unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), len(payload)), payload)
		h = landed(at, h, h)
	} else {
		size = inlineAt(len(words)) + len(payload)
	}
	body, bits := r.body(p, headBytes, size)
	if kind == kindInline {
		copy(unsafe.Slice((*byte)(unsafe.Add(body, inlineAt(len(words)))), len(payload)), payload)
	}
	copy(unsafe.Slice((*uint32)(body), len(words)), words)
	*head(p) = h
	conc.Release64((*uint64)(p), status(t, uint64(tag)&stTagMask|uint64(len(words))<<stWordsShift|kind<<stKindShift|bits))
	e.notify(r)
	return conduits.Ready
}

func (box *mailbox) publish(dst int, c conduits.Class, s conduits.Slot, payload int, bits uint64) {
	r := box.ring(dst, c).of(s)
	t := s.Ref & refIndex
	kind := s.Ref >> refKindShift & stKindMask
	p := r.cell(t)
	switch kind {
	case kindLanded:
		*head(p) = landed(s.Ref>>refLineShift*lineBytes, uint64(len(s.Payload)), uint64(payload))
	case kindInline:
		*head(p) = uint64(payload)
	}
	if left := len(s.Payload) - payload; left > 0 && kind != kindLong {
		r.back.Add(uint64(left))
	}
	conc.Release64((*uint64)(p), status(t, bits|kind<<stKindShift|stFar))
	r.open.Add(-1)
	box.notify(r)
}
