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
	backlog = 16 << 20
	// itemBytes is about what an answer takes whose data lies in the segment.
	itemBytes = 256
)

// Receive takes a datagram that has come from rank src's address; -1 means that
// the datagram itself says of whom it is. It copies what it needs, and the
// sealer may open b in its place. Whatever a datagram may contain, it does no
// harm.
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
	var h header
	ok := h.parse(b, e.c.Sealer != nil)
	if ok && src < 0 {
		src = int(h.src)
	}
	if !ok || uint(src) >= uint(e.c.Size) || h.src != uint32(src) || max(h.nsack[0], h.nsack[1]) > e.c.Window/64 {
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
		if h.cum != [2]uint32{} || h.taken != [2]uint32{} || h.nsack != [2]int{} {
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
		if int64(cum[c]) > int64(f.next) || int32(h.taken[c]-f.messages) > 0 {
			e.stats.Malformed++
			return
		}
	}
	p.epoch = h.epoch
	if p.since >= 0 {
		p.since, p.probes = e.now, 0
		p.probeAt = e.now + 2*p.rto(&e.c, 0)
	}
	sacks := h.sacks
	for c := range p.flows {
		f := &p.flows[c]
		n := 8 * h.nsack[c]
		if int64(cum[c]) >= 0 {
			e.acknowledge(p, f, cum[c], sacks[:n])
		}
		sacks = sacks[n:]
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
	}
	e.touch(p)
}

// wellFormed looks at the form of all frames, before any takes effect. f is the
// last of them afterwards.
func (e *Engine) wellFormed(h *header, f *frame) bool {
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
	seq := expand(f.cum, h.seq)
	if int64(seq) < int64(f.cum) || seq < f.cum+f.window() && f.has(seq) {
		// The acknowledgement was lost, or the datagram was sent twice.
		e.stats.Twice++
		p.ackNow = true
		return
	}
	if seq >= f.cum+f.window() || p.flows[conduits.Reply].waiting >= backlog && h.class() == conduits.Request {
		e.stats.Beyond++
		return
	}
	// Who has sent it again waits to hear that it has filled the gap.
	ordered := seq == f.cum && f.top <= f.cum
	f.mark(seq)
	f.unsaid++
	if !ordered || h.flags&flagNow != 0 || f.unsaid >= e.ackEvery {
		p.ackNow = true
	} else {
		e.owe(p)
	}
	e.stats.FramesIn += uint64(h.frames)
	if h.frames == 1 {
		e.perform(p, h.class(), fr)
		return
	}
	for b := h.body; len(b) > 0; {
		b, _ = fr.next(b, h.class())
		e.perform(p, h.class(), fr)
	}
}

// perform lets a frame take effect.
func (e *Engine) perform(p *peer, c conduits.Class, f *frame) {
	switch f.kind {
	case frMessage, frMedium, frLong:
		e.accept(p, c, f)
	case frPart:
		to, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightWrite)
		if !ok {
			e.fault(p, 0)
			return
		}
		copy(to[f.off:], f.data)
	case frPut:
		to, ok := e.c.Memory.Target(p.rank, f.to, uint64(len(f.data)), segment.RightWrite)
		if !ok {
			e.fault(p, 0)
			return
		}
		copy(to, f.data)
	case frGet:
		from, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightRead)
		if !ok || f.total == 0 {
			e.fault(p, f.id)
			return
		}
		it := e.item(frData, conduits.Reply)
		it.id, it.data = f.id, from
		r := &p.flows[conduits.Reply]
		r.waiting += itemBytes
		r.bulk.add(it)
	case frAtomic:
		if conduits.CheckAtomic("", f.op, f.typ, f.to) != nil {
			e.fault(p, f.id)
			return
		}
		old, ok := e.c.Memory.Atomic(p.rank, f.to, f.op, f.typ, f.a, f.b)
		if !ok {
			e.fault(p, f.id)
			return
		}
		k := e.answer(p, 17)
		k.frames = appendResult(k.frames, f.id, old)
	case frData:
		o := e.findOp(p, f.id, frGet)
		if o == nil || f.off > uint64(len(o.dst)) || uint64(len(o.dst))-f.off < uint64(len(f.data)) {
			e.stats.Refused++
			return
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
		e.stats.Faults++
		if o := e.findOp(p, f.id, 0); o != nil {
			e.endOp(p, uint32(f.id), 0, ErrRefused)
		}
	}
}

// answer returns contents of a reply with room for n bytes of frames.
func (e *Engine) answer(p *peer, n int) *pkt {
	r := &p.flows[conduits.Reply]
	k := e.collect(r, n)
	k.answers += n
	r.waiting += n
	return k
}

// fault says that operation id, or a put, was refused. That of a put is only
// counted by its initiator, so it is left out if much else waits: who never takes
// an answer must not have us keep any number of them.
func (e *Engine) fault(p *peer, id uint64) {
	e.stats.Refused++
	if id == 0 && p.flows[conduits.Reply].waiting >= backlog/1024 {
		return
	}
	k := e.answer(p, 9)
	k.frames = appendFault(k.frames, id)
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
		m = e.message(p.rank, c)
		m.Tag, m.num, m.total = f.tag, f.msg, f.total
		if f.kind == frLong {
			m.To = f.to
		} else if f.total > 0 {
			m.buf = e.buffer(int(f.total))
			m.Payload = m.buf
		}
		if f.kind != frMessage && uint64(len(f.data)) < f.total {
			if fl.parts == nil {
				fl.parts = map[uint32]*Message{}
			}
			fl.parts[f.msg] = m
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
		to, ok := e.c.Memory.Target(p.rank, f.to, f.total, segment.RightWrite)
		if !ok {
			e.fault(p, 0)
			m.bad = true
		} else {
			copy(to[f.off:], f.data)
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
		e.consume(p, c)
		e.drop(m)
		return
	}
	e.in[c].add(m)
}
