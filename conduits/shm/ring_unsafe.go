package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// outRing is the sender's end of one ring: everything but the cells and the
// words behind the pointers is private to it.
type outRing struct {
	// A line that goroutines which send by strands read, too, and none writes.
	strands atomic.Pointer[strands] // of a first ring of requests, nil until goroutines crowd
	cells   unsafe.Pointer
	far     uint64 // bytes from a status to the second part of its cell
	mask    uint64
	parked  *uint32 // the receiver's, see notify
	dst     int32
	class   conduits.Class
	strand  uint8 // which it is, from 1 on; 0 of a first ring
	landing unsafe.Pointer

	landSize uint64 // bytes at landing

	lock  conc.Lock // guards what follows; held only to claim cells
	tail  uint64    // cells claimed
	limit uint64    // tail may not pass it: head as last seen, plus the ring

	written  uint64 // bytes of the landing buffer claimed
	landRead uint64 // bytes consumed, as last seen

	crowded        int32  // how often the lock was found taken since a goroutine last moved
	steady         int32  // of a ring of replies, see apart
	looked, before uint64 // of a strand: its tail, and the first ring's head, when homeward last looked

	head      *uint64 // published by the receiver
	landHead  *uint64
	cancelled uint64 // messages reserved and not sent, and skipped cells

	// Of a ring of replies: the ring of the requests that they answer, how far
	// apart the two were at the last reply, and for how many replies already.
	requests *inRing
	apart    uint64
	noCredit uint64
	payload  uint64 // bytes of payloads as they were claimed: see back

	back     atomic.Uint64 // bytes of payload that were not sent: of messages cancelled, and committed with less
	open     atomic.Int32  // messages reserved, and copied at length, that are not published yet
	sumWords *uint64       // what stands there is told, see auditSent
	told     sum
	last     sum // of the last audit
}

// inRing is the receiver's end.
type inRing struct {
	cells     unsafe.Pointer
	far       uint64
	head      uint64 // cells consumed
	mask      uint64
	published uint64
	quarter   uint64
	src       int
	class     conduits.Class
	strand    uint8     // as its outRing's
	index     int32     // in mailbox.in
	home      *inRing   // the first ring from there
	strands   []*inRing // of a first ring: its strands, which begin at
	base      unsafe.Pointer
	parked    *uint32 // the sender's: it may sleep for credit

	partner  *outRing // to the same rank, of the other class: see ahead
	answered uint64   // its tail when ahead last looked

	landing       unsafe.Pointer
	landSize      uint64
	landRead      uint64
	landPublished uint64

	headWord *uint64
	landWord *uint64
	sumWords *uint64 // the sender's
	audit

	delivered uint64 // messages given to the Receiver
	payload   uint64 // bytes of their payloads
	withdrawn uint64 // not given, since their memory is not there any more
	kind      uint64 // of the first message of the last poll: these bits of its status
}

// way is where messages of class c from src to dst travel: the
// conversation of the rank that sends the requests.
func (j *job) way(src, dst, lane int, c conduits.Class) unsafe.Pointer {
	if c == conduits.Reply {
		src, dst = dst, src
	}
	return j.talk(src, dst, lane)
}

// parts are those of a ring in the conversation, or the strand, at p.
func (j *job) parts(p unsafe.Pointer, c conduits.Class) (cells, words, landing unsafe.Pointer) {
	return unsafe.Add(p, talkCells+int(c)*nearClass), unsafe.Add(p, int(c)*talkClass), unsafe.Add(p, j.landingOffset(c))
}

// farFrom is how far the second part of a cell is from the first, by class.
func farFrom(c conduits.Class) uint64 { return uint64(farAt + int(c)*(farBytes-nearClass)) }

func (j *job) outRing(p unsafe.Pointer, dst, lane int, c conduits.Class) *outRing {
	cells, words, landing := j.parts(p, c)
	return &outRing{
		cells:    cells,
		far:      farFrom(c),
		mask:     uint64(j.cells - 1),
		limit:    uint64(j.cells),
		parked:   j.p32(dst, lane, ctlParked),
		dst:      int32(dst),
		class:    c,
		landing:  landing,
		landSize: uint64(j.landing),
		head:     (*uint64)(unsafe.Add(words, talkHead)),
		landHead: (*uint64)(unsafe.Add(words, talkLandRead)),
		sumWords: (*uint64)(unsafe.Add(words, talkSum)),
	}
}

func (j *job) inRing(p unsafe.Pointer, src, lane int, c conduits.Class) *inRing {
	cells, words, landing := j.parts(p, c)
	return &inRing{
		cells:    cells,
		far:      farFrom(c),
		mask:     uint64(j.cells - 1),
		quarter:  uint64(j.cells / 4),
		src:      src,
		class:    c,
		parked:   j.p32(src, lane, ctlParked),
		landing:  landing,
		landSize: uint64(j.landing),
		headWord: (*uint64)(unsafe.Add(words, talkHead)),
		landWord: (*uint64)(unsafe.Add(words, talkLandRead)),
		sumWords: (*uint64)(unsafe.Add(words, talkSum)),
	}
}

// A Slot.Ref holds what Commit needs: the low 36 bits of the message's index, more
// than a ring or a status distinguishes, then the strand, the kind, and the line of the landing
// buffer where the payload begins. It waits in the Ref because a store to the cell
// before the payload is written would draw the line here only for the watching
// receiver to take it back: measured on 512 bytes, 2.8 instead of 2.0 times a bare flag.
const (
	refIndex       = 1<<36 - 1
	refStrandShift = 36
	refStrandMask  = 1<<4 - 1
	refPlace       = 1<<40 - 1 // both
	refKindShift   = 40
	refLineShift   = 42
	refLineMask    = 1<<17 - 1
	refAsked       = 1 << 62 // a long message whose data the receiver puts; instead of the line, its number
	refRefused     = 1 << 63 // a long message whose data could not be put
)

// cell is where the status of message t goes.
func (r *outRing) cell(t uint64) unsafe.Pointer {
	return unsafe.Add(r.cells, (t&r.mask)*cellBytes)
}

// body is where a body of size bytes goes, behind a header of head bytes: beside the
// status at p if it fits, which is one transfer of one line. bits go into the status.
func (r *outRing) body(p unsafe.Pointer, head, size int) (at unsafe.Pointer, bits uint64) {
	if head+size <= nearBytes {
		return unsafe.Add(p, 8+head), 0
	}
	return unsafe.Add(p, r.far), stFar
}

// A header lies beside the status although the body may not: a receiver that has the
// one has the other, and asks for the line of the body only when the handler does. Half
// a round trip of a medium message of 64 bytes, whose handler does not read it, took 2.6 x line with
// the header in the body's line, 1.7 like this (medians of seven, mostly far).
func head(p unsafe.Pointer) *uint64 { return (*uint64)(unsafe.Add(p, 8)) }

// next is the cell that the receiver looks at.
func (r *inRing) next() *uint64 {
	return (*uint64)(unsafe.Add(r.cells, (r.head&r.mask)*cellBytes))
}

// A reply travels fastest in the line of its request, which the replier has
// taken already to read it and the requester watches: measured 0.65 instead of
// 0.95 times a bare flag. Both rings advance by one for each request that is
// replied to; requests without a reply move them apart. align brings a ring of
// replies back to its requests when the distance has not changed for some time,
// by a message that says how many cells to skip.
func (r *outRing) align() {
	apart := (r.requests.head - r.tail) & r.mask
	if apart == 0 {
		return
	}
	if apart != r.apart {
		r.apart, r.steady = apart, 0
		return
	}
	if r.steady++; r.steady < steadyReplies {
		return
	}
	r.steady = 0
	if r.tail+apart >= r.limit {
		r.lookAtHead()
		if r.tail+apart >= r.limit {
			return
		}
	}
	t := r.tail
	r.tail += apart
	r.cancelled += apart
	conc.Release64((*uint64)(r.cell(t)), status(t, stSkip|apart))
}

// steadyReplies is how long a distance must last to be worth a skip.
const steadyReplies = 16

// room reports whether a cell can be claimed, looking at the receiver's head only
// when the last look does not suffice. The lock is held.
func (r *outRing) room() bool {
	if r.tail < r.limit {
		return true
	}
	r.lookAtHead()
	return r.tail < r.limit
}

// lookAtHead takes from the receiver's head how much room there is, unless no receiver of
// ours has written that: see nonsense.
func (r *outRing) lookAtHead() {
	if h, seen := atomic.LoadUint64(r.head), r.limit-r.mask-1; h-seen <= r.tail-seen {
		r.limit = h + r.mask + 1
	}
}

// shut makes r full for good. The lock is held, or the pollers' for a ring
// of replies, or r is not in use yet.
func (r *outRing) shut() {
	never := ^r.mask // as a head, it leaves no room whatever tail is
	r.limit, r.head = 0, &never
}

// claim takes a cell for a message with a payload and, if it is to land, where it
// lands. The lock is held; it stays so, and nothing is taken, if there is no
// room.
func (r *outRing) claim(kind, payload uint64) (t, at uint64, ok bool) {
	if r.tail >= r.limit && !r.room() {
		return 0, 0, false
	}
	if kind == kindLanded {
		if at, ok = r.land(payload); !ok {
			return 0, 0, false
		}
	}
	t = r.tail
	r.tail++
	r.payload += payload
	return t, at, true
}

// inlineAt is where a payload begins in the body if it travels in the cell.
func inlineAt(words int) int { return (words*4 + 7) &^ 7 }

// land takes n bytes of the landing buffer and returns where they begin, in the
// buffer. The lock is held. A payload never wraps: what is left at the end is
// skipped, and the receiver skips it likewise.
func (r *outRing) land(n uint64) (at uint64, ok bool) {
	n = lines(n) * lineBytes
	at = r.written & (r.landSize - 1)
	skip := uint64(0)
	if at+n > r.landSize {
		skip, at = r.landSize-at, 0
	}
	if r.written+skip+n-r.landRead > r.landSize {
		if l := atomic.LoadUint64(r.landHead); l-r.landRead <= r.written-r.landRead {
			r.landRead = l
		}
		if r.written+skip+n-r.landRead > r.landSize {
			return 0, false
		}
	}
	r.written += skip + n
	return at, true
}

func lines(n uint64) uint64 { return (n + lineBytes - 1) / lineBytes }

func status(t uint64, bits uint64) uint64 {
	return (t+1)&stSeqMask<<stSeqShift | stValid | bits
}

// Header of a landed payload: where it begins and how much was claimed, both in
// lines, and its length.
func landed(at, claimed, length uint64) uint64 {
	return at/lineBytes<<44 | lines(claimed)<<24 | length
}

// Header of a long message to a segment: address and length, both of which a message
// beside must fit, or ReservePut sends it.
func directly(to segment.NLA, n uint64) uint64 { return uint64(to) | n<<directShift }

func directed(h uint64) (to segment.NLA, n uint64) {
	return segment.NLA(h & (1<<directShift - 1)), h >> directShift
}

const (
	directShift = 40
	mostDirect  = 1<<(64-directShift) - 1
)

// drain runs up to max messages of r, the first of which has status s.
func (box *mailbox) drain(r *inRing, s uint64, max int) int {
	m := &box.msg[r.class]
	n := 0
	for {
		p := unsafe.Add(r.cells, (r.head&r.mask)*cellBytes)
		if words := s >> stWordsShift & stWordsMask; s>>stSkipShift == plain(r.head) && words <= nearBytes/4 {
			m.Src = r.src
			m.Tag = conduits.Tag(s & stTagMask)
			m.Words = unsafe.Slice((*uint32)(unsafe.Add(p, 8)), words)
			r.delivered++
			// Before the handler, which may reply in the same line and thereby
			// lose it. The sender waits for head, not for this.
			conc.Release64((*uint64)(p), 0)
			box.receiver.Receive(m)
		} else if s&(stSkip|stDirect) == stSkip|stDirect && r.follows(s) {
			if !r.mayFollow(s) {
				return n
			}
			conc.Release64((*uint64)(p), 0)
		} else if ok := s&stDirect == 0 && box.deliver(r, m, p, s) || s&stDirect != 0 && box.deliverLong(r, m, p, s); !ok {
			box.corrupt(r, s)
			return n
		}
		r.head++
		if r.head-r.published >= r.quarter {
			r.published = r.head
			conc.Release64(r.headWord, r.head)
			box.credit(r)
		}
		n++
		if n >= max {
			return n
		}
		if s = atomic.LoadUint64(r.next()); s == 0 {
			return n
		}
	}
}

// deliverLong is deliver for a message of sendLong.
func (box *mailbox) deliverLong(r *inRing, m *conduits.Message, p unsafe.Pointer, s uint64) bool {
	words := s >> stWordsShift & stWordsMask
	window, body := uint64(nearBytes-headBytes), unsafe.Add(p, 8+headBytes)
	if s&stFar != 0 {
		window, body = farBytes, unsafe.Add(p, r.far)
	}
	to, n := directed(*head(p))
	// The sender checked the range; the segment is ours, so check it again
	// before making a slice of it.
	v := &box.mem.views[box.rank-box.first]
	b, ok := v.Bytes(to, n, v.Size())
	if s&^stFar>>stSkipShift != plain(r.head)|kindLong<<(stKindShift-stSkipShift) || words > conduits.MaxWords || words*4 > window || !ok && n > 0 {
		return false
	}
	m.Src = r.src
	m.Tag = conduits.Tag(s & stTagMask)
	m.Words = unsafe.Slice((*uint32)(body), words)
	m.To, m.Payload = to, b
	conc.Release64((*uint64)(p), 0)
	r.delivered++
	r.payload += n
	box.receiver.Receive(m)
	m.Payload, m.To = nil, 0
	return true
}

// plain is the upper part of the status of message t if that is short and near.
func plain(t uint64) uint64 { return (t+1)&stSeqMask<<(stSeqShift-stSkipShift) | stValid>>stSkipShift }

// deliver is the rest of drain: everything but a short message beside its
// status. It trusts nothing that it reads and returns false if no sender of ours wrote it.
func (box *mailbox) deliver(r *inRing, m *conduits.Message, p unsafe.Pointer, s uint64) bool {
	kind, words := s>>stKindShift&stKindMask, s>>stWordsShift&stWordsMask
	window, body := uint64(nearBytes-headBytes), unsafe.Add(p, 8+headBytes)
	switch {
	case s&stFar != 0:
		window, body = farBytes, unsafe.Add(p, r.far)
	case kind == kindShort:
		window, body = nearBytes, unsafe.Add(p, 8)
	}
	used := uint64(wordsAt[kind]) + words*4
	skip := uint64(0) // see align
	if s&stSkip != 0 && kind == kindShort {
		skip = s & stTagMask
	}
	if s&stValid == 0 || skip > r.mask || s>>stSeqShift != (r.head+1)&stSeqMask || words > conduits.MaxWords || used > window {
		return false
	}
	m.Src = r.src
	m.Tag = conduits.Tag(s & stTagMask)
	m.Words = unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kind])), words)
	var h, end uint64
	if kind != kindShort {
		h = *head(p)
	}
	switch kind {
	case kindLanded:
		at, claimed, n := h>>44*lineBytes, h>>24&(1<<20-1)*lineBytes, h&(1<<24-1)
		// Payloads lie one behind the other, but for what land skips.
		if next := r.landRead & (r.landSize - 1); at != next {
			if at != 0 || next+claimed <= r.landSize {
				return false
			}
			r.landRead = (r.landRead | (r.landSize - 1)) + 1
		}
		end = r.landRead + claimed
		if at+claimed > r.landSize || n > claimed {
			return false
		}
		m.Payload = unsafe.Slice((*byte)(unsafe.Add(r.landing, at)), n)
	case kindInline:
		at := (used + 7) &^ 7
		if h > window || at+h > window {
			return false
		}
		m.Payload = unsafe.Slice((*byte)(unsafe.Add(body, at)), h)
	case kindLong:
		m.To = *(*segment.NLA)(body)
		n := *(*uint64)(unsafe.Add(body, 8))
		// The sender checked the range; the segment is ours, so check it again
		// before making a slice of it.
		v := &box.mem.views[box.rank-box.first]
		b, ok := v.Bytes(m.To, n, v.Size())
		if !ok && n > 0 && s&stSkip == 0 {
			if !conduits.Registered(v.Size(), m.To, n) {
				return false
			}
			if b = box.mem.longAt(r.src, m.To, n, *(*uint64)(unsafe.Add(body, 16))); b == nil {
				s |= stSkip // the memory has been withdrawn since
				r.withdrawn++
			}
		}
		m.Payload = b
	}
	conc.Release64((*uint64)(p), 0)
	switch {
	case s&stSkip == 0:
		r.delivered++
		r.payload += uint64(len(m.Payload))
		box.receiver.Receive(m)
	case skip > 0:
		r.head += skip - 1
	}
	m.Payload, m.To = nil, 0
	if kind == kindLanded {
		r.landRead = end
		if end-r.landPublished >= r.landSize/4 {
			r.landPublished = end
			conc.Release64(r.landWord, end)
			box.credit(r)
		}
	}
	return true
}
