package contract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// exchange describes the messages that the ranks of a job send each other: parcels, whose shape and
// contents follow from their number. So a receiver knows what must arrive, and
// that it arrives exactly once, without asking the sender.
type exchange struct {
	most   int // requests from one rank to one other, at most
	shape  func(x *exchange, l parcel) shape
	table  func(x *exchange) []shape // instead of both: request i has shape i
	noPuts bool                      // the segments have no room for long payloads

	maxMedium int

	key      uint64
	init     sync.Once
	requests []atomic.Int64 // sent to each rank
	replies  []atomic.Int64 // likewise
}

// parcel names a message. The reply to a request has its number.
type parcel struct {
	src, dst int
	class    conduits.Class
	seq      int
}

func (l parcel) String() string {
	return fmt.Sprintf("%v %d from rank %d to rank %d", l.class, l.seq, l.src, l.dst)
}

// way is how a message is sent.
type way uint8

const (
	bySend way = iota
	bySendPayload
	byReserve
	byPut
	numWays
)

// shape is everything about a parcel but its contents.
type shape struct {
	how     way
	words   int
	payload int // committed
	reserve int // byReserve: asked for, at least payload
	cancel  bool
	reply   bool // requests: answer me
}

func (s shape) String() string {
	how := [numWays]string{"Send", "SendPayload", "Reserve", "ReservePut"}[s.how]
	text := fmt.Sprintf("(by %s, %d words, %d bytes", how, s.words, s.payload)
	if s.reserve != s.payload && s.how == byReserve {
		text += fmt.Sprintf(" of %d reserved", s.reserve)
	}
	if s.cancel {
		text += ", after one that was cancelled"
	}
	return text + ")"
}

// putStride is the room for one long payload: each has its own.
const putStride = 1024

// segment is how many bytes of segment each of n ranks needs.
func (x *exchange) segment(n int) int {
	if x.noPuts {
		return 0
	}
	return n * x.most * conduits.NumClasses * putStride
}

// to is where the data of a byPut parcel goes: at odd addresses too.
func (x *exchange) to(l parcel) segment.NLA {
	i := (l.src*x.most+l.seq)*conduits.NumClasses + int(l.class)
	return At(i*putStride + l.seq%16)
}

// contents is the key of what fills a parcel.
func (x *exchange) contents(l parcel) uint64 {
	return Mix(x.key, uint64(l.src), uint64(l.dst), uint64(l.class), uint64(l.seq))
}

// Tags are the numbers, spread over all 24 bits.
const (
	tagSpread   = 0x9e3779
	tagGather   = 0xb382c9 // tagSpread * tagGather = 1 mod 2^24
	tagMask     = 1<<conduits.TagBits - 1
	tagOfNobody = tagMask // of cancelled messages, which are not delivered
)

func tagOf(seq int) conduits.Tag { return conduits.Tag(uint32(seq) * tagSpread & tagMask) }
func seqOf(t conduits.Tag) int   { return int(uint32(t) * tagGather & tagMask) }

var wordCounts = []int{0, 1, 2, 5, 6, 7, 8, 15, 16, 17, conduits.MaxWords - 1, conduits.MaxWords}

// randomShape is a parcel of any kind.
func randomShape(x *exchange, l parcel) shape {
	rng := rand.New(rand.NewPCG(x.contents(l), 1))
	s := shape{how: way(rng.IntN(int(numWays))), words: rng.IntN(conduits.MaxWords + 1), cancel: rng.IntN(8) == 0, reply: rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		s.words = wordCounts[rng.IntN(len(wordCounts))]
	}
	if s.how == byPut && x.noPuts {
		s.how = byReserve
	}
	size := func() int {
		switch rng.IntN(8) {
		case 0:
			return x.maxMedium - rng.IntN(3)
		case 1:
			return rng.IntN(x.maxMedium + 1)
		case 2:
			return rng.IntN(10)
		}
		return rng.IntN(min(x.maxMedium, 300) + 1)
	}
	switch s.how {
	case bySendPayload:
		s.payload = max(size(), 1)
	case byReserve:
		s.reserve = size()
		s.payload = s.reserve
		if rng.IntN(3) == 0 {
			s.payload = rng.IntN(s.reserve + 1)
		}
	case byPut:
		s.payload = rng.IntN(putStride - 16 + 1)
		if rng.IntN(4) == 0 {
			s.payload = rng.IntN(2)
		}
	}
	return s
}

// mail is one rank's part in an exchange. Its goroutines may send at once.
type mail struct {
	*Peer
	x    *exchange
	sink sink
	// before runs at the begin of each delivery, and says false if the rest is not
	// to be done. May be nil.
	before func(m *conduits.Message) bool

	seen    map[parcel]bool
	next    []atomic.Int64 // requests sent to each rank
	sent    [conduits.NumClasses]atomic.Int64
	asked   atomic.Int64 // replies asked for
	refused atomic.Int64 // answers NoCredit

	mu     sync.Mutex // held for a moment only
	cookie uint64
	puts   map[uint64]source
}

// source is the data of a put that may still be read.
type source struct {
	data []byte
	key  uint64
}

// exchange runs body as each of n ranks that are attached, and checks at last
// that everything has arrived.
func (c *Case) exchange(n int, cfg conduits.Config, x *exchange, body func(m *mail)) {
	c.Helper()
	c.Job(n, cfg, func(p *Peer) {
		m := newMail(p, x)
		m.attach()
		body(m)
		m.finish()
	})
}

func newMail(p *Peer, x *exchange) *mail {
	m := &mail{Peer: p, x: x, seen: map[parcel]bool{}, puts: map[uint64]source{}, next: make([]atomic.Int64, p.Size)}
	x.init.Do(func() {
		x.key, x.maxMedium = p.C.Seed, p.EP.Limits().MaxMedium
		if x.table != nil {
			shapes := x.table(x)
			x.most = len(shapes)
			x.shape = func(_ *exchange, l parcel) shape { return shapes[l.seq] }
		}
		x.requests = make([]atomic.Int64, p.Size)
		x.replies = make([]atomic.Int64, p.Size)
	})
	m.sink.receive = m.receive
	m.sink.complete = m.complete
	return m
}

func (m *mail) attach() {
	m.C.Helper()
	m.Peer.attach(m.x.segment(m.Size), &m.sink)
}

// post sends the next request to dst, polling for credit.
func (m *mail) post(dst int) {
	m.C.Helper()
	l := m.address(dst)
	st := conduits.NoCredit
	m.Wait("credit for a request", func() bool {
		st = m.try(l)
		return st != conduits.NoCredit
	})
	if st != conduits.Ready {
		m.Must(m.EP.Err())
		m.Fatalf("request %d to rank %d: status %d", l.seq, dst, st)
	}
}

// address numbers the next request to dst.
func (m *mail) address(dst int) parcel {
	l := parcel{src: m.Rank, dst: dst, class: conduits.Request, seq: int(m.next[dst].Add(1)) - 1}
	if l.seq >= m.x.most {
		m.Fatalf("more than %d requests to rank %d", m.x.most, dst)
	}
	return l
}

// try sends l if there is credit. All buffers that it hands over are spoilt as
// soon as the contract allows.
func (m *mail) try(l parcel) conduits.Status {
	s, key := m.x.shape(m.x, l), m.x.contents(l)
	if s.cancel {
		if st := m.cancel(l, s); st != conduits.Ready {
			return st
		}
	}
	words := wordsOf(key, s.words)
	var st conduits.Status
	switch s.how {
	case bySend:
		st = m.EP.Send(l.dst, l.class, tagOf(l.seq), words)
	case bySendPayload:
		payload := Fill(make([]byte, s.payload), key, 0)
		st = m.EP.SendPayload(l.dst, l.class, tagOf(l.seq), words, payload, 0)
		Spoil(payload)
	case byReserve:
		var slot conduits.Slot
		if slot, st = m.EP.Reserve(l.dst, l.class, s.words, s.reserve); st == conduits.Ready {
			m.checkSlot(slot, s.words, s.reserve)
			copy(slot.Words, words)
			Fill(slot.Payload, key, 0)
			m.EP.Commit(l.dst, l.class, slot, tagOf(l.seq), s.payload)
		}
	case byPut:
		st = m.tryPut(l, s, key, words, false)
	}
	for i := range words {
		words[i] = ^words[i]
	}
	switch st {
	case conduits.NoCredit:
		m.refused.Add(1)
	case conduits.Ready:
		m.sent[l.class].Add(1)
		if l.class == conduits.Request {
			m.x.requests[l.dst].Add(1)
			if s.reply {
				m.asked.Add(1)
			}
		} else {
			m.x.replies[l.dst].Add(1)
		}
	}
	return st
}

func wordsOf(key uint64, n int) []uint32 {
	w := make([]uint32, n)
	for i := range w {
		w[i] = uint32(Mix(key, uint64(i)))
	}
	return w
}

func (m *mail) checkSlot(s conduits.Slot, words, payload int) {
	switch {
	case len(s.Words) != words || len(s.Payload) != payload:
		m.Errorf("asked for %d words and %d bytes, got a slot of %d and %d", words, payload, len(s.Words), len(s.Payload))
	case payload == 0 && s.Payload != nil:
		m.Errorf("a slot without payload has one that is not nil")
	case payload > 0 && !aligned(s.Payload, 8):
		m.Errorf("a slot's payload is not aligned to 8 bytes")
	}
}

// cancel reserves and takes it back.
func (m *mail) cancel(l parcel, s shape) conduits.Status {
	slot, st := m.EP.Reserve(l.dst, l.class, s.words, s.reserve)
	if st == conduits.NoCredit {
		m.refused.Add(1)
	}
	if st != conduits.Ready {
		return st
	}
	m.checkSlot(slot, s.words, s.reserve)
	for i := range slot.Words {
		slot.Words[i] = tagOfNobody
	}
	Fill(slot.Payload, tagOfNobody, 0)
	m.EP.Cancel(l.dst, l.class, slot)
	return conduits.Ready
}

// tryPut sends l with its payload put. The source stays as it is until it is
// said to be reusable, and no longer. Every other one is sent in
// one call, if the endpoint can. With cancel, the message is taken back.
func (m *mail) tryPut(l parcel, s shape, key uint64, words []uint32, cancel bool) conduits.Status {
	data := Fill(make([]byte, s.payload), key, 0)
	if !cancel && key&1 == 0 {
		st := m.EP.SendPayload(l.dst, l.class, tagOf(l.seq), words, data, m.x.to(l))
		switch {
		case st != conduits.Apart:
			Spoil(data)
			return st
		case Wrong(data, key, 0) >= 0:
			m.Errorf("SendPayload has changed its source")
		}
	}
	m.mu.Lock()
	m.cookie++
	cookie := m.cookie<<8 | uint64(m.Rank)
	m.puts[cookie] = source{data: data, key: key}
	m.mu.Unlock()
	slot, ev, st := m.EP.ReservePut(l.dst, l.class, s.words, m.x.to(l), data, cookie)
	if st != conduits.Ready || ev&conduits.SourceDone != 0 {
		m.reusable(cookie)
	}
	if st == conduits.Ready {
		m.checkSlot(slot, s.words, 0)
		if cancel {
			m.EP.Cancel(l.dst, l.class, slot)
			return st
		}
		copy(slot.Words, words)
		m.EP.Commit(l.dst, l.class, slot, tagOf(l.seq), s.payload)
	}
	return st
}

// reusable spoils the source of a put, which must be unchanged.
func (m *mail) reusable(cookie uint64) {
	m.mu.Lock()
	s, ok := m.puts[cookie]
	delete(m.puts, cookie)
	m.mu.Unlock()
	switch {
	case !ok:
		m.Errorf("the source of put %#x is reusable twice, or there is no such put", cookie)
	case Wrong(s.data, s.key, 0) >= 0:
		m.Errorf("the source of a put was changed")
	}
	Spoil(s.data)
}

func (m *mail) complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	if ev&conduits.SourceDone == 0 {
		m.Errorf("completion %d of notification put %#x, want that of its source", ev, cookie)
		return
	}
	if err != nil && !m.C.Failed() {
		m.Errorf("completion of notification put %#x: %v", cookie, err)
	}
	m.reusable(cookie)
}

// receive compares what has arrived with what was to be sent, and replies if
// that is asked for.
func (m *mail) receive(g *conduits.Message) {
	if m.before != nil && !m.before(g) {
		return
	}
	l := parcel{src: g.Src, dst: m.Rank, class: g.Class, seq: seqOf(g.Tag)}
	if l.seq >= m.x.most {
		m.Errorf("a message that was not sent: tag %#x from rank %d", g.Tag, g.Src)
		return
	}
	if m.seen[l] {
		m.Errorf("%v %d from rank %d was delivered twice", l.class, l.seq, l.src)
		return
	}
	m.seen[l] = true
	s, key := m.x.shape(m.x, l), m.x.contents(l)
	to := segment.NLA(0)
	if s.how == byPut {
		to = m.x.to(l)
	}
	switch {
	case len(g.Words) != s.words:
		m.Errorf("%v %v arrived with %d words", l, s, len(g.Words))
		return
	case len(g.Payload) != s.payload:
		m.Errorf("%v %v arrived with %d bytes", l, s, len(g.Payload))
		return
	case g.To != to:
		m.Errorf("%v %v arrived with address %v, want %v", l, s, g.To, to)
	case s.how == bySend && g.Payload != nil:
		m.Errorf("%v %v arrived with a payload that is not nil", l, s)
	}
	want := wordsOf(key, s.words)
	for i := range want {
		if g.Words[i] != want[i] {
			m.Errorf("%v %v: word %d is %#x, want %#x", l, s, i, g.Words[i], want[i])
			return
		}
	}
	if i := Wrong(g.Payload, key, 0); i >= 0 {
		m.Errorf("%v %v: byte %d is %#x, want %#x", l, s, i, g.Payload[i], ByteOf(key, i))
		return
	}
	if mem := memory(m.EP, m.Rank, to, len(g.Payload)); to != 0 && !bytes.Equal(mem, g.Payload) && m.EP.SegmentSize(m.Rank) > 0 {
		m.Errorf("%v %v: the segment at %v differs from the payload", l, s, to)
	}
	Fill(g.Payload, ^key, 0) // a receiver may
	if l.class == conduits.Reply || !s.reply {
		return
	}
	m.reply(l)
	// The replies that ran meanwhile have memory of their own.
	for i := range want {
		if g.Words[i] != want[i] {
			m.Errorf("%v %v: word %d changed to %#x while its handler replied", l, s, i, g.Words[i])
			return
		}
	}
	if i := Wrong(g.Payload, ^key, 0); i >= 0 && to == 0 || g.Src != l.src || seqOf(g.Tag) != l.seq || g.Class != l.class {
		m.Errorf("%v %v: the message changed while its handler replied", l, s)
	}
}

// reply answers request l.
func (m *mail) reply(l parcel) {
	r := parcel{src: m.Rank, dst: l.src, class: conduits.Reply, seq: l.seq}
	st := conduits.NoCredit
	if !m.sink.await("credit for a reply", func() bool {
		st = m.try(r)
		return st != conduits.NoCredit
	}) {
		return
	}
	if st != conduits.Ready && !m.C.Failed() {
		m.Errorf("reply %d to rank %d: status %d, error %v", l.seq, l.src, st, m.EP.Err())
	}
}

// sources is how many puts are under way.
func (m *mail) sources() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.puts)
}

// finish waits until everything that any rank has sent has arrived, and checks
// that nothing comes beyond it and that the statistics say the same.
func (m *mail) finish() {
	m.C.Helper()
	m.Meet() // all requests have been sent
	requests := m.x.requests[m.Rank].Load()
	m.Must(conduits.Wait(m.EP, m, func() bool {
		return m.sink.got[conduits.Request].Load() >= requests && m.sink.got[conduits.Reply].Load() >= m.asked.Load() && m.sources() == 0
	}))
	m.Meet()
	m.linger()
	m.Meet()
	for c, want := range [conduits.NumClasses]int64{requests, m.x.replies[m.Rank].Load()} {
		if got := m.sink.got[c].Load(); got != want {
			m.Fatalf("%d messages of class %v arrived, %d were sent", got, conduits.Class(c), want)
		}
	}
	if a, r := m.asked.Load(), m.sink.got[conduits.Reply].Load(); a != r {
		m.Fatalf("%d replies were asked for, %d came", a, r)
	}
	if len(m.seen) != int(requests+m.asked.Load()) {
		m.Fatalf("%d different messages arrived, want %d", len(m.seen), requests+m.asked.Load())
	}
	m.statistics()
	m.Meet()
}

// Blocked counts the messages and puts that finish waits for.
func (m *mail) Blocked() string {
	return fmt.Sprintf("conformance: have %d of %d requests, %d of %d replies, and %d puts under way",
		m.sink.got[conduits.Request].Load(), m.x.requests[m.Rank].Load(), m.sink.got[conduits.Reply].Load(), m.asked.Load(), m.sources())
}

// statistics compares Stats with what was done. The job is quiet.
func (m *mail) statistics() {
	m.C.Helper()
	s := addsUp(m.Peer)
	for c := range conduits.NumClasses {
		if s.Sent[c] != uint64(m.sent[c].Load()) || s.Received[c] != uint64(m.sink.got[c].Load()) {
			m.Fatalf("statistics of %v: sent %d, received %d; really %d and %d", conduits.Class(c),
				s.Sent[c], s.Received[c], m.sent[c].Load(), m.sink.got[c].Load())
		}
	}
	if n := uint64(m.refused.Load()); s.NoCredit < n {
		m.Fatalf("statistics: no credit %d times; really %d times", s.NoCredit, n)
	}
	peers := 0
	for dst := range m.next {
		if m.next[dst].Load() > 0 {
			peers++
		}
	}
	if s.PeersUsed < peers || s.PeersUsed > m.Size {
		m.Fatalf("statistics: %d peers used; sent requests to %d of %d", s.PeersUsed, peers, m.Size)
	}
}
