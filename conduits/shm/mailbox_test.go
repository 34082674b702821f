package shm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// sent is a reservation as the model knows it.
type sent struct {
	slot      conduits.Slot
	words     []uint32
	payload   []byte
	tag       conduits.Tag
	to        segment.NLA
	claimed   int // bytes of the landing buffer
	ready     bool
	cancelled bool
}

// lane is the ordered traffic of one source, destination and class.
type lane struct {
	src, dst int
	class    conduits.Class
	queue    []*sent // claimed and not consumed yet, in order
}

// mailboxModel is the model of a job's mailboxes: lanes of messages, which arrive in
// the order in which they were claimed, and segments as plain arrays.
type mailboxModel struct {
	eps      []*Endpoint
	lanes    map[string]*lane
	segments [][]byte
	pending  []*sent // neither committed nor cancelled
	laneOf   map[*sent]*lane
	nest     bool                                 // request handlers poll replies
	answer   func() (words, payload int, ok bool) // what request handlers reply
	fail     func(format string, args ...any)
	counts   [conduits.NumClasses]uint64
	serial   uint32
}

const mailboxSegment = 2 * page

func newMailbox(t tb, fm form, n int, c conduits.Config) *mailboxModel {
	b := &mailboxModel{eps: fm.open(t, n, c), lanes: map[string]*lane{}, laneOf: map[*sent]*lane{}}
	for range n {
		b.segments = append(b.segments, make([]byte, mailboxSegment))
	}
	attach(t, b.eps, mailboxSegment, b.receive)
	return b
}

func (b *mailboxModel) lane(src, dst int, c conduits.Class) *lane {
	k := fmt.Sprint(src, dst, c)
	if b.lanes[k] == nil {
		b.lanes[k] = &lane{src: src, dst: dst, class: c}
	}
	return b.lanes[k]
}

// receive checks an arrival against the model.
func (b *mailboxModel) receive(rank int, m *conduits.Message) {
	l := b.lane(m.Src, rank, m.Class)
	for len(l.queue) > 0 && l.queue[0].cancelled {
		l.queue = l.queue[1:]
	}
	if len(l.queue) == 0 || !l.queue[0].ready {
		b.fail("rank %d received from %d what was not sent: %+v", rank, m.Src, *m)
		return
	}
	s := l.queue[0]
	payload := s.payload
	if s.to != 0 && len(payload) > 0 {
		payload = b.segments[rank][s.to-segment.AttachBase:][:len(s.payload)]
	}
	if m.Tag != s.tag || fmt.Sprint(m.Words) != fmt.Sprint(s.words) || !bytes.Equal(m.Payload, payload) || m.To != s.to {
		b.fail("rank %d received from %d %+v, want %+v", rank, m.Src, *m, *s)
	}
	for i := range m.Payload {
		if s.to == 0 {
			m.Payload[i] = 0xee // the receiver may
		}
	}
	if !b.eps[rank].Polling() {
		b.fail("rank %d: Polling is false in Receive", rank)
	}
	if b.eps[rank].Poll() != 0 {
		b.fail("rank %d: Poll ran something in Receive", rank)
	}
	if m.Class == conduits.Request && b.nest {
		b.eps[rank].PollReplies()
	}
	l.queue = l.queue[1:]
	b.counts[m.Class]++
	if m.Class == conduits.Request && b.answer != nil {
		if words, payload, ok := b.answer(); ok {
			b.send(rank, m.Src, conduits.Reply, words, payload)
		}
	}
}

// send sends at a stretch, by Send or SendPayload.
func (b *mailboxModel) send(src, dst int, c conduits.Class, words, payload int) bool {
	e, l, s := b.eps[src], b.lane(src, dst, c), b.draw(words, payload)
	s.claimed = landing(words, payload)
	s.ready = true
	l.queue = append(l.queue, s) // before it can arrive
	var st conduits.Status
	if payload == 0 {
		st = e.Send(dst, c, s.tag, s.words)
	} else {
		st = e.SendPayload(dst, c, s.tag, s.words, s.payload, 0)
	}
	if st != conduits.Ready {
		l.queue = l.queue[:len(l.queue)-1]
	}
	b.justify(l, s, st)
	return st == conduits.Ready
}

// sendLong sends a long message by SendPayload.
func (b *mailboxModel) sendLong(src, dst int, c conduits.Class, words, payload, off int) bool {
	e, l, s := b.eps[src], b.lane(src, dst, c), b.draw(words, payload)
	s.to, s.ready = segment.AttachBase+segment.NLA(off), true
	l.queue = append(l.queue, s)
	st := e.SendPayload(dst, c, s.tag, s.words, s.payload, s.to)
	took := st != conduits.Apart
	inside := off >= 0 && off+payload <= mailboxSegment
	switch {
	case took != (inside || payload == 0):
		b.fail("%d bytes at %d of %d: taken %v", payload, off, mailboxSegment, took)
	case took && st == conduits.Ready:
		if payload > 0 {
			copy(b.segments[dst][off:], s.payload)
		}
	default:
		l.queue = l.queue[:len(l.queue)-1]
	}
	if took {
		b.justify(l, s, st)
	}
	clear(s.payload) // it is the caller's again
	return took && st == conduits.Ready
}

// landing is how much of the landing buffer a message takes.
func landing(words, payload int) int {
	if payload == 0 || inlineAt(words)+payload <= farBytes {
		return 0
	}
	return roundUp(payload, lineBytes)
}

// draw makes up a message.
func (b *mailboxModel) draw(words, payload int) *sent {
	s := &sent{words: make([]uint32, words), payload: make([]byte, payload)}
	b.serial++
	for i := range s.words {
		s.words[i] = b.serial<<8 | uint32(i)
	}
	for i := range s.payload {
		s.payload[i] = byte(b.serial) + byte(i)*7
	}
	s.tag = conduits.Tag(b.serial * 2654435761 & stTagMask)
	return s
}

// reserve tries to reserve room and checks that the answer is justified.
func (b *mailboxModel) reserve(src, dst int, c conduits.Class, words, payload int, long bool, off int) *sent {
	e, l, s := b.eps[src], b.lane(src, dst, c), b.draw(words, payload)
	var st conduits.Status
	if long {
		s.to = segment.AttachBase + segment.NLA(off)
		var ev conduits.Event
		if s.slot, ev, st = e.ReservePut(dst, c, words, s.to, s.payload, 0); st == conduits.Ready {
			copy(b.segments[dst][off:], s.payload)
			if ev != conduits.SourceDone|conduits.RemoteDone {
				b.fail("events %v", ev)
			}
		}
	} else {
		s.claimed = landing(words, payload)
		s.slot, st = e.Reserve(dst, c, words, payload)
	}
	if b.justify(l, s, st); st != conduits.Ready {
		return nil
	}
	if len(s.slot.Words) != words || !long && len(s.slot.Payload) != payload || long && s.slot.Payload != nil {
		b.fail("asked for %d words and %d bytes, got %d and %d", words, payload, len(s.slot.Words), len(s.slot.Payload))
	}
	// Fill it in at once: a later reservation that overlapped would show.
	copy(s.slot.Words, s.words)
	copy(s.slot.Payload, s.payload)
	l.queue = append(l.queue, s)
	b.laneOf[s] = l
	b.pending = append(b.pending, s)
	return s
}

// justify checks the answer to an attempt to send s by what is under way in l
// beside it.
func (b *mailboxModel) justify(l *lane, s *sent, st conduits.Status) {
	claimed, landing := 0, 0
	for _, q := range l.queue {
		if q != s {
			claimed++
			landing += q.claimed
		}
	}
	// What was cancelled at the head may have been consumed or not.
	leastClaimed, leastLanding := claimed, landing
	for _, q := range l.queue {
		if !q.cancelled {
			break
		}
		leastClaimed--
		leastLanding -= q.claimed
	}
	e := b.eps[l.src]
	g := e.j.geometry
	switch st {
	case conduits.NoCredit:
		// Up to a quarter of either has been consumed and not been told, and of
		// the landing buffer up to a quarter was left at its end, or will be.
		// Replies may have skipped any number of cells, see align.
		if cells, bytes := g.cells-g.cells/4, g.landing/2-s.claimed; l.class == conduits.Request && claimed < cells && (s.claimed == 0 || landing < bytes) {
			b.fail("no credit with %d of %d cells and %d of %d bytes in use, %d wanted", claimed, g.cells, landing, g.landing, s.claimed)
		}
	case conduits.Dead:
		b.fail("dead: %v", e.Err())
	case conduits.Ready:
		if leastClaimed >= g.cells || leastLanding+s.claimed > g.landing {
			b.fail("room with %d of %d cells and %d of %d bytes in use, %d wanted", leastClaimed, g.cells, leastLanding, g.landing, s.claimed)
		}
	}
}

// settle commits n bytes of pending message i, or cancels it if n is negative.
func (b *mailboxModel) settle(i, n int) {
	s := b.pending[i]
	b.pending = append(b.pending[:i], b.pending[i+1:]...)
	l := b.laneOf[s]
	delete(b.laneOf, s)
	e := b.eps[l.src]
	if n < 0 {
		e.Cancel(l.dst, l.class, s.slot)
		s.cancelled = true
		return
	}
	if s.to == 0 {
		s.payload = s.payload[:n]
	}
	e.Commit(l.dst, l.class, s.slot, s.tag, n)
	s.ready = true
}

// head drops what the receiver has passed without delivering.
func (b *mailboxModel) drop() (waiting int) {
	for _, l := range b.lanes {
		for len(l.queue) > 0 && l.queue[0].cancelled {
			l.queue = l.queue[1:]
		}
		if len(l.queue) > 0 && l.queue[0].ready {
			waiting++
		}
	}
	return waiting
}

// TestMailbox drives mailboxes of several sizes at random beside the model.
// Everything runs on one goroutine: what is tested is arithmetic.
func TestMailbox(t *testing.T) {
	for _, c := range []conduits.Config{{Credits: 4, MaxMedium: 512}, {Credits: 8, MaxMedium: 600}, {Credits: 64, MaxMedium: 512}, {Credits: 8, MaxMedium: 4096}} {
		for _, fm := range []form{forms[1], forms[2]} {
			t.Run(fmt.Sprintf("%s/%d credits, %d bytes", fm.name, c.Credits, c.MaxMedium), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					n := rapid.IntRange(1, 3).Draw(rt, "ranks")
					b := newMailbox(rt, fm, n, c)
					b.fail = rt.Fatalf
					b.age(rapid.SampledFrom([]uint64{0, 0, 1<<24 - 3, 1<<40 - 3, 1<<40 + 1<<39}).Draw(rt, "age"))
					b.run(rt)
				})
			})
		}
	}
}

// age has all rings look as they do after so many messages: numbers that stand in
// fewer bits than they are counted in go round.
func (b *mailboxModel) age(messages uint64) {
	if messages == 0 {
		return
	}
	for _, e := range b.eps {
		for dst := range b.eps {
			for c := range conduits.Class(conduits.NumClasses) {
				r := e.ring(dst, c)
				r.tail, r.limit, r.cancelled = messages, messages+r.mask+1, messages
				r.written, r.landRead = messages*lineBytes, messages*lineBytes
				*r.head, *r.landHead = r.tail, r.written
			}
		}
	}
	for _, e := range b.eps {
		e.Poll() // takes up the rings
		for i, r := range e.in {
			r.head, r.published = messages, messages
			r.landRead, r.landPublished = messages*lineBytes, messages*lineBytes
			e.watch[i] = r.next()
		}
	}
}

func (b *mailboxModel) run(rt *rapid.T) {
	n := len(b.eps)
	most := b.eps[0].Limits().MaxMedium
	rank := rapid.IntRange(0, n-1)
	class := rapid.SampledFrom([]conduits.Class{conduits.Request, conduits.Reply})
	words := rapid.IntRange(0, conduits.MaxWords)
	size := rapid.OneOf(rapid.IntRange(0, 150), rapid.IntRange(0, most), rapid.SampledFrom([]int{0, most, most - 1, most - 63, most - 64, most / 2}))
	settleOne := func(rt *rapid.T, i int) {
		s := b.pending[i]
		if rapid.IntRange(0, 4).Draw(rt, "cancel") == 0 {
			b.settle(i, -1)
			return
		}
		n := len(s.payload)
		if s.to == 0 && rapid.Bool().Draw(rt, "shorter") {
			n = rapid.IntRange(0, n).Draw(rt, "bytes")
		}
		b.settle(i, n)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"medium": func(rt *rapid.T) {
			if b.reserve(rank.Draw(rt, "src"), rank.Draw(rt, "dst"), class.Draw(rt, "class"), words.Draw(rt, "words"), size.Draw(rt, "size"), false, 0) != nil && rapid.Bool().Draw(rt, "now") {
				settleOne(rt, len(b.pending)-1)
			}
		},
		"long": func(rt *rapid.T) {
			off := rapid.IntRange(0, mailboxSegment).Draw(rt, "offset")
			n := rapid.IntRange(0, mailboxSegment-off).Draw(rt, "bytes")
			if b.reserve(rank.Draw(rt, "src"), rank.Draw(rt, "dst"), class.Draw(rt, "class"), words.Draw(rt, "words"), n, true, off) != nil && rapid.Bool().Draw(rt, "now") {
				settleOne(rt, len(b.pending)-1)
			}
		},
		"long at a stretch": func(rt *rapid.T) {
			src, dst := rank.Draw(rt, "src"), rank.Draw(rt, "dst")
			off := rapid.IntRange(-1, mailboxSegment+1).Draw(rt, "offset")
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, mailboxSegment+1)).Draw(rt, "bytes")
			for range rapid.IntRange(1, 40).Draw(rt, "messages") {
				if !b.sendLong(src, dst, conduits.Request, words.Draw(rt, "words"), n, off) {
					break
				}
			}
		},
		"send": func(rt *rapid.T) {
			src, dst, n := rank.Draw(rt, "src"), rank.Draw(rt, "dst"), size.Draw(rt, "size")
			for range rapid.IntRange(1, 40).Draw(rt, "messages") {
				if !b.send(src, dst, conduits.Request, words.Draw(rt, "words"), n) {
					break
				}
			}
		},
		// Requests that are replied to, one after the other and often enough for
		// rings that have drifted apart to be brought together.
		"converse": func(rt *rapid.T) {
			src, dst := rank.Draw(rt, "src"), rank.Draw(rt, "dst")
			n := rapid.SampledFrom([]int{0, 0, 1, 20, 130, most}).Draw(rt, "size")
			for range rapid.IntRange(1, 3*steadyReplies).Draw(rt, "times") {
				b.send(src, dst, conduits.Request, 2, 0)
				b.answer = func() (int, int, bool) { return 3, n, true }
				b.eps[dst].Poll()
				b.eps[dst].Spin()
				b.answer = nil
				b.eps[src].Poll()
				b.eps[src].Spin()
			}
		},
		"fill": func(rt *rapid.T) {
			src, dst, c := rank.Draw(rt, "src"), rank.Draw(rt, "dst"), class.Draw(rt, "class")
			for range rapid.IntRange(1, 40).Draw(rt, "messages") {
				n := size.Draw(rt, "size")
				if b.reserve(src, dst, c, 1, n, false, 0) == nil {
					break
				}
				if rapid.IntRange(0, 3).Draw(rt, "later") != 0 {
					b.settle(len(b.pending)-1, n)
				}
			}
		},
		"settle": func(rt *rapid.T) {
			if len(b.pending) == 0 {
				rt.Skip()
			}
			settleOne(rt, rapid.IntRange(0, len(b.pending)-1).Draw(rt, "which"))
		},
		"poll": func(rt *rapid.T) {
			b.nest = rapid.Bool().Draw(rt, "nest")
			e := b.eps[rank.Draw(rt, "rank")]
			if rapid.Bool().Draw(rt, "spin") {
				e.Spin()
			} else {
				e.Poll()
			}
		},
	})
	b.quiesce(rt)
}

// TestCancelGivesBack: what was cancelled costs nothing, however often and with
// whatever was cancelled.
func TestCancelGivesBack(t *testing.T) {
	eps := forms[1].open(t, 2, conduits.Config{Credits: 4, MaxMedium: 512})
	attach(t, eps, page, func(_ int, m *conduits.Message) { t.Errorf("received %+v", *m) })
	for i := range 200 {
		for _, n := range []int{512, 0, 449, 60}[:1+i%4] {
			s, st := eps[0].Reserve(1, conduits.Request, 1, n)
			if st != conduits.Ready {
				t.Fatalf("round %d: no room for %d bytes", i, n)
			}
			eps[0].Cancel(1, conduits.Request, s)
			for eps[1].Poll() > 0 {
			}
		}
	}
}

// quiesce lets everything arrive and checks that all credit has come back.
func (b *mailboxModel) quiesce(rt *rapid.T) {
	for len(b.pending) > 0 {
		b.settle(0, len(b.pending[0].payload))
	}
	for i := 0; ; i++ {
		n := 0
		for _, e := range b.eps {
			n += e.Poll()
		}
		if n == 0 && b.drop() == 0 {
			break
		}
		if i > 1000 {
			rt.Fatalf("%d lanes are stuck", b.drop())
		}
	}
	for k, l := range b.lanes {
		if len(l.queue) != 0 {
			rt.Fatalf("lane %s: %d messages never came", k, len(l.queue))
		}
	}
	for r, e := range b.eps {
		if got := e.views[r]; !bytes.Equal(mustBytes(got), b.segments[r]) {
			rt.Fatalf("rank %d: the segment differs from the model", r)
		}
	}
	b.checkStats(rt)
	// Credit is told by the quarter, so at least three quarters are there now,
	// and three quarters of the landing buffer less what its end wastes.
	g := b.eps[0].j.geometry
	for _, l := range b.lanes {
		for range g.cells - g.cells/4 {
			if b.reserve(l.src, l.dst, l.class, 1, 0, false, 0) == nil {
				rt.Fatalf("lane %+v: credit is lost", l)
			}
		}
		for len(b.pending) > 0 {
			b.settle(0, -1)
		}
		for i := 0; i < 8; i++ {
			b.eps[l.dst].Poll()
		}
		b.drop()
		for range 2 {
			if b.reserve(l.src, l.dst, l.class, 0, g.maxMedium(), false, 0) == nil {
				rt.Fatalf("lane %+v: landing buffer is lost", l)
			}
		}
		for len(b.pending) > 0 {
			b.settle(0, g.maxMedium())
		}
		for i := 0; i < 8; i++ {
			b.eps[l.dst].Poll()
		}
	}
	if b.drop(); len(b.pending) > 0 {
		rt.Fatal("not quiet")
	}
	b.checkStats(rt)
}

// checkStats compares the counters with the model.
func (b *mailboxModel) checkStats(rt *rapid.T) {
	var sent, received [conduits.NumClasses]uint64
	for _, e := range b.eps {
		var s conduits.Stats
		e.Stats(&s)
		for c := range sent {
			sent[c] += s.Sent[c]
			received[c] += s.Received[c]
		}
	}
	if sent != b.counts || received != b.counts {
		rt.Fatalf("counted %v sent and %v received, delivered were %v", sent, received, b.counts)
	}
}

func mustBytes(v segment.View) []byte {
	b, ok := v.Bytes(segment.AttachBase, v.Size(), v.Size())
	if !ok {
		panic("view without bytes")
	}
	return b
}
