package engine

import (
	"encoding/binary"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

const (
	// backlog is how many bytes of answers to a peer may wait to be sent: beyond it
	// requests are not accepted, as if they had been lost.
	backlog = 32 << 20
	// itemBytes is about what an answer takes whose data lies in the segment.
	itemBytes = 256
)

// Receive takes a datagram that has come from rank src's address; -1 means that
// the datagram itself names its sender. It keeps no reference to b, and the
// sealer may open b in its place. No contents of a datagram do harm.
func (e *Engine) Receive(now time.Duration, src int, b []byte) {
	e.now = max(e.now, now)
	e.stats.Received++
	if e.c.Sealer != nil {
		from, plain, ok := e.c.Sealer.Open(b)
		if !ok || src >= 0 && src != from {
			e.stats.Malformed++
			return
		}
		src, b = from, plain
	}
	if e.follows(src, b) {
		return
	}
	e.run = run{}
	var h header
	ok := h.parse(b, e.c.Sealer != nil)
	if ok && src < 0 {
		src = int(h.src)
	}
	if !ok || uint(src) >= uint(e.c.Size) || h.src != uint32(e.c.rank(src)) {
		e.stats.Malformed++
		return
	}
	p := e.find(src)
	if h.dstEpoch != 0 && h.dstEpoch != e.c.Epoch || p != nil && (p.dead || p.epoch != 0 && p.epoch != h.epoch) {
		e.stats.Stale++
		return
	}
	var f frame
	if !e.wellFormed(&h, &f) {
		e.stats.Malformed++
		return
	}
	if p == nil {
		if first := uint32(e.first); h.cum != [2]uint32{first, first} || h.taken != [2]uint32{first, first} || h.top != first || len(h.words) > 0 {
			// It speaks of what this rank has never sent.
			e.stats.Malformed++
			return
		}
		p = e.peer(src)
	}
	var cum [conduits.NumClasses]uint64
	for c := range p.flows {
		f := &p.flows[c]
		cum[c] = expand(f.una, h.cum[c])
		// Late ones may be older than anything that is remembered; newer than what
		// was sent is nonsense.
		if older(f.next, cum[c]) || int32(h.taken[c]-f.messages) > 0 {
			e.stats.Malformed++
			return
		}
	}
	top := expand(p.acked, h.top)
	if older(p.pn, top) {
		e.stats.Malformed++
		return
	}
	p.epoch = h.epoch
	e.heard(p, h.flags)
	e.acknowledge(p, cum, top, h.delay, h.words)
	for c := range p.flows {
		f := &p.flows[c]
		if int32(h.taken[c]-f.consumed) > 0 {
			f.consumed = h.taken[c]
			f.refused = false
		}
	}
	if h.flags&flagAsk != 0 {
		p.ackNow = true
	}
	if h.flags&flagData != 0 {
		e.contents(p, &h, &f)
	} else if h.flags&flagSound != 0 {
		e.padding(p, &h)
	}
	e.touch(p)
	if e.run.dst != nil && h.frames == 1 && h.flags == flagData && len(h.words) == 0 {
		e.run.setHeader(p, b, &f)
	}
}

// run describes the last datagram, if it brought a fragment of a put into the
// segment: the next one is probably like it, but for its number and the place.
type run struct {
	dst   []byte // where all of the put goes; nil: it was no such one
	p     *peer  // nil: only dst is known
	head  [5]uint64
	epoch uint32
	to    segment.NLA
}

// setHeader completes r by datagram b, whose frame is f.
func (r *run) setHeader(p *peer, b []byte, f *frame) {
	le := binary.LittleEndian
	r.p, r.to = p, f.to
	r.head = [5]uint64{uint64(le.Uint32(b)), le.Uint64(b[8:]), uint64(le.Uint32(b[28:])), le.Uint64(b[32:]), le.Uint64(b[40:])}
	r.epoch = le.Uint32(b[16:])
}

// follows takes datagram b of rank src if it continues where the last one ended, and
// reports whether it does. Its acknowledgement and credits equal those of the last one, so
// that only its fragment has to be written and its number noted.
func (e *Engine) follows(src int, b []byte) bool {
	const fixed = headerBytes + 1 + 26
	r := &e.run
	if r.p == nil || src >= 0 && src != r.p.number || len(b) < fixed {
		return false
	}
	le := binary.LittleEndian
	if uint64(le.Uint32(b)) != r.head[0] || le.Uint64(b[8:]) != r.head[1] || le.Uint32(b[16:]) != r.epoch ||
		uint64(le.Uint32(b[28:])) != r.head[2] || le.Uint64(b[32:]) != r.head[3] || le.Uint64(b[40:]) != r.head[4] {
		return false
	}
	// It must not change when it is to be acknowledged.
	p := r.p
	f := &p.flows[conduits.Request]
	pn, seq := expand(p.top, le.Uint32(b[20:])), expand(f.cum, le.Uint32(b[24:]))
	if pn != p.top || seq != f.top || seq-f.cum >= uint64(e.c.Window) || f.hidden > 0 || p.silence.on || p.flows[conduits.Reply].waiting >= backlog ||
		p.unsaid+1 < e.ackEvery && !p.ackOwed || p.unsaid+1 >= e.ackEvery && !p.ackNow {
		return false
	}
	const at = headerBytes
	n, total, off := uint64(le.Uint16(b[at+1:])), le.Uint64(b[at+11:]), le.Uint64(b[at+19:])
	if b[at] != frPart || uint64(len(b)) != fixed+n || segment.NLA(le.Uint64(b[at+3:])) != r.to || total != uint64(len(r.dst)) || off > total || total-off < n {
		return false
	}
	if sum := le.Uint32(b[4:]); e.c.Sealer != nil && sum != 0 || e.c.Sealer == nil && sum != checksum(b, nil) {
		return false
	}
	p.note(e.now, pn)
	if seq == f.cum {
		f.cum++
		f.top = f.cum
		p.noteWhole()
	} else {
		f.mark(seq)
	}
	p.unsaid++
	e.stats.FramesIn++
	p.silence.heard = e.now
	copy(r.dst[off:], b[fixed:])
	return true
}

// wellFormed looks at the form of all frames, before any takes effect. f is the
// last of them afterwards.
func (e *Engine) wellFormed(h *header, f *frame) bool {
	if h.flags&(flagPiece|flagSound) != 0 {
		return true // a piece is looked at when it is complete
	}
	for b := h.body; len(b) > 0; {
		rest, ok := f.next(b, h.class())
		if !ok || (f.kind == frMessage || f.kind == frMedium) && f.total > uint64(e.c.MaxMedium) {
			return false
		}
		h.frames++
		b = rest
	}
	return true
}

// contents lets the frames of a datagram take effect unless it has come before.
// fr is the last of them.
func (e *Engine) contents(p *peer, h *header, fr *frame) {
	f := &p.flows[h.class()]
	pn, seq := expand(p.top, h.pn), expand(f.cum, h.seq)
	window := uint64(e.c.Window)
	if older(seq, f.cum) || f.has(seq) {
		e.stats.Twice++
		// If it was sent again, its peer may want to know that it need not have been.
		if p.note(e.now, pn) {
			if older(pn, p.whole) {
				p.whole = pn
			}
			p.ackNow = true
		}
		return
	}
	if seq-f.cum >= window || f.hidden > 0 && seq-f.shown >= window || p.flows[conduits.Reply].waiting >= backlog && h.class() == conduits.Request {
		e.stats.Beyond++
		return
	}
	// A datagram out of order is acknowledged at once (RFC 9000, 13.2.1).
	ordered := pn == p.top
	before, veil := f.cum, p.top
	if h.flags&flagPiece != 0 {
		whole, ok := f.assemble(seq, h.body)
		if !ok {
			e.stats.Beyond++
			return
		}
		p.ackNow = true
		if whole == nil {
			p.note(e.now, pn)
			p.unsaid++
			return
		}
		h.body, h.flags = whole, h.flags&^flagPiece|flagNow
		if !e.wellFormed(h, fr) {
			e.stats.Malformed++
			return
		}
	}
	p.note(e.now, pn)
	f.mark(seq)
	f.forget(seq)
	p.noteWhole()
	p.unsaid++
	if !ordered || h.flags&flagNow != 0 || p.unsaid >= e.ackEvery {
		p.ackNow = true
	} else {
		e.owe(p)
	}
	e.stats.FramesIn += uint64(h.frames)
	if h.frames == 1 {
		if err := e.perform(p, h.class(), fr); err != nil {
			e.refuse(p, f, before, veil, h.seq, 0, err)
		}
		return
	}
	for b := h.body; len(b) > 0; {
		at := len(h.body) - len(b)
		b, _ = fr.next(b, h.class())
		if err := e.perform(p, h.class(), fr); err != nil {
			e.refuse(p, f, before, veil, h.seq, at, err)
		}
	}
}

// padding acknowledges a probe of the path, and which of the packet numbers right before it
// have come: those that did not may have been too long.
func (e *Engine) padding(p *peer, h *header) {
	pn := expand(p.top, h.pn)
	p.mtu.told, p.ackNow = true, true
	if from := pn - min(64, pn-e.first); p.note(e.now, pn) && older(from, p.whole) {
		p.whole = from
	}
}

// perform lets a frame take effect. An error is a put's that was refused.
func (e *Engine) perform(p *peer, c conduits.Class, f *frame) error {
	switch f.kind {
	case frMessage, frMedium, frLong:
		e.accept(p, c, f)
	case frPart:
		to, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightWrite)
		if !ok {
			return e.store(p, f)
		}
		copy(to[f.off:], f.data)
		e.run.dst = to
	case frPut:
		to, ok := e.c.Memory.Target(p.rank, f.to, uint64(len(f.data)), segment.RightWrite)
		if !ok {
			f.total = uint64(len(f.data))
			return e.store(p, f)
		}
		copy(to, f.data)
	case frGet:
		from, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightRead)
		if f.total == 0 || !ok && !possible(f) {
			e.fault(p, f.id, fault(f))
			return nil
		}
		inline := f.total <= uint64(min(copied, p.room-dataFrame))
		if ok && inline {
			e.bring(p, f.id, from)
			return nil
		}
		if !ok {
			b, u, err := e.c.Memory.Access(p.rank, f.to, f.total, segment.RightRead)
			if err != nil {
				e.fault(p, f.id, err)
				return nil
			}
			if inline {
				// Not while the packet is being written: a page may be gone.
				there := segment.Touch(b, func() { copy(e.brought[:], b) })
				u.Exit()
				if !there {
					e.fault(p, f.id, segment.Gone(p.rank, f.to, f.total, segment.RightRead))
					return nil
				}
				e.bring(p, f.id, e.brought[:f.total])
				return nil
			}
			u.Exit() // what has become of it is seen when each fragment is cut
		}
		it := e.item(frData, conduits.Reply)
		it.id, it.data = f.id, from
		if !ok {
			it.to, it.size, it.peer = f.to, f.total, int32(p.rank)
		}
		r := &p.flows[conduits.Reply]
		r.waiting += itemBytes
		r.bulk.add(it)
	case frAtomic:
		if conduits.CheckAtomic("", f.op, f.typ, f.to) != nil {
			e.fault(p, f.id, fault(f))
			return nil
		}
		old, err := e.c.Memory.Atomic(p.rank, f.to, f.op, f.typ, f.a, f.b)
		if err != nil {
			e.fault(p, f.id, err)
			return nil
		}
		k := e.answer(p, 17)
		k.frames = appendResult(k.frames, f.id, old)
	case frData:
		o := e.findOp(p, f.id, frGet)
		if o == nil || f.off > uint64(len(o.dst)) || uint64(len(o.dst))-f.off < uint64(len(f.data)) {
			e.stats.Refused++
			return nil
		}
		copy(o.dst[f.off:], f.data)
		if o.got += uint64(len(f.data)); o.got >= uint64(len(o.dst)) {
			e.endOp(p, uint32(f.id), 0, nil)
		}
	case frResult:
		if o := e.findOp(p, f.id, frAtomic); o != nil {
			e.endOp(p, uint32(f.id), f.a, nil)
		} else {
			e.stats.Refused++
		}
	case frFault:
		if o := e.findOp(p, f.id, 0); o != nil {
			e.stats.Faults++
			need := segment.RightRead
			if o.kind == frAtomic {
				need = segment.RightAtomic
			}
			e.endOp(p, uint32(f.id), 0, e.refused(p, opNames[o.kind], o.from, o.size, need, f))
		} else {
			e.stats.Refused++
		}
	case frPutFault:
		if !e.putRefused(p, f) {
			e.stats.Refused++
		}
	}
	return nil
}

// possible reports whether f's target range ends below NLALimit.
func possible(f *frame) bool {
	return f.to < segment.NLALimit && f.total <= uint64(segment.NLALimit-f.to)
}

// fault is the error of f, whose address was never one.
func fault(f *frame) error {
	return &segment.FaultError{Page: f.to &^ (segment.PageSize - 1)}
}

// store puts what f brings into registered memory: of a fragment only the bytes
// that it has are looked at, since each finds what is registered when it comes.
func (e *Engine) store(p *peer, f *frame) error {
	switch {
	case !possible(f):
		return fault(f)
	case len(f.data) == 0:
		return nil
	}
	to, u, err := e.c.Memory.Access(p.rank, f.to+segment.NLA(f.off), uint64(len(f.data)), segment.RightWrite)
	if err != nil {
		return err
	}
	if !segment.Touch(to, func() { copy(to, f.data) }) {
		err = segment.Gone(p.rank, f.to+segment.NLA(f.off), uint64(len(f.data)), segment.RightWrite)
	}
	u.Exit()
	return err
}

// refuse queues the refusal of the put at offset at of the frames of datagram seq. before is the number that was expected when that datagram came, and veil the
// packet number.
func (e *Engine) refuse(p *peer, f *flow, before, veil uint64, seq uint32, at int, err error) {
	e.stats.Refused++
	const n = 23
	k := e.answer(p, n)
	k.frames = appendPutFault(k.frames, seq, at, err)
	k.now = true
	k.faults++
	if f.hidden++; f.hidden == 1 {
		f.shown, p.veiled = before, veil
	}
}

// putRefused notes that p has refused a put, and reports whether such a put was under way:
// an honest peer sends the refusal before the acknowledgement.
func (e *Engine) putRefused(p *peer, fr *frame) bool {
	f := &p.flows[conduits.Request]
	seq := expand(f.una, fr.msg)
	if seq-f.una >= f.next-f.una {
		return false
	}
	k := *f.at(seq)
	if k == nil {
		return false
	}
	if it := k.item; it != nil {
		if it.kind != frPart || fr.off != 0 {
			return false
		}
		if it.err != nil { // another fragment was before
			return true
		}
		e.stats.Faults++
		if it.want&conduits.RemoteDone == 0 {
			e.stats.Unheard++
		}
		it.err = e.refused(p, "put", it.to, uint64(len(it.data)), segment.RightWrite, fr)
		if f.bulk.first == it { // the rest need not go
			f.bulk.take()
			it.off = it.length()
		}
		return true
	}
	var x frame
	if fr.off >= uint64(len(k.frames)) {
		return false
	}
	if _, ok := x.next(k.frames[fr.off:], conduits.Request); !ok || x.kind != frPut {
		return false
	}
	e.stats.Faults++
	for i := range k.done {
		if d := &k.done[i]; uint64(d.at) == fr.off {
			if k.refused == nil {
				k.refused = map[uint32]error{}
			}
			k.refused[d.at] = e.refused(p, "put", x.to, uint64(len(x.data)), segment.RightWrite, fr)
			return true
		}
	}
	e.stats.Unheard++
	return true
}

// answer returns contents of a reply with room for n bytes of frames.
func (e *Engine) answer(p *peer, n int) *pkt {
	r := &p.flows[conduits.Reply]
	k := e.collect(p, r, n)
	k.answers += n
	r.waiting += n
	return k
}

// dataFrame is how long the frame of a get's data is without the data, bytes.
const dataFrame = 19

// bring answers get id, whose data is b: little data shares a datagram with other
// answers, as results of atomics do. It is read now and kept until it has arrived, so
// that a datagram that is sent again brings the same.
func (e *Engine) bring(p *peer, id uint64, b []byte) {
	k := e.answer(p, dataFrame+len(b))
	k.frames = appendData(k.frames, id, b)
}

// fault answers that operation id was refused.
func (e *Engine) fault(p *peer, id uint64, err error) {
	e.stats.Refused++
	k := e.answer(p, 25)
	k.frames = appendFault(k.frames, id, err)
}

// accept takes a message or a fragment of one.
func (e *Engine) accept(p *peer, c conduits.Class, f *frame) {
	fl := &p.flows[c]
	var m *Message
	if f.kind != frMessage {
		m = fl.parts[f.msg]
	}
	if m != nil && uint64(len(f.data)) == f.total {
		e.stats.Refused++ // the whole of a message of which parts have come
		return
	}
	if m == nil {
		if fl.arrived-fl.taken >= uint32(e.c.Credits) {
			e.stats.Beyond++ // the peer does not keep to its credit
			return
		}
		fl.arrived++
		m = e.message(p, c)
		m.Tag, m.num, m.total = f.tag, f.msg, f.total
		if f.kind == frLong {
			m.To, m.regs = f.to, e.c.Memory.Registrations()
		} else if f.total > 0 {
			m.buf = e.buffer(int(f.total))
			m.Payload = m.buf
		}
		if f.kind != frMessage && uint64(len(f.data)) < f.total {
			if fl.parts == nil {
				fl.parts = map[uint32]*Message{}
			}
			fl.parts[f.msg] = m
			clear(m.buf) // of another message before; nothing says that parts which come twice leave no gap
		}
	}
	if m.total != f.total || m.To != f.to || (m.buf == nil) != (f.kind == frLong || f.total == 0) {
		e.stats.Refused++ // another message with its number
		return
	}
	if f.off == 0 {
		m.Words = m.words[:len(f.words)/4]
		for i := range m.Words {
			m.Words[i] = binary.LittleEndian.Uint32(f.words[4*i:])
		}
	}
	if f.kind == frLong && f.total > 0 {
		if to, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightWrite); ok {
			copy(to[f.off:], f.data)
		} else if e.store(p, f) != nil {
			e.stats.Refused++
			m.bad = true
		}
	} else {
		copy(m.Payload[f.off:], f.data)
	}
	if m.got += uint64(len(f.data)); m.got < m.total {
		return
	}
	if f.kind != frMessage && uint64(len(f.data)) < f.total {
		delete(fl.parts, m.num)
	}
	if m.bad {
		e.stats.Unheard++
		e.consume(p, c)
		e.drop(m)
		return
	}
	e.in[c].add(m)
}
