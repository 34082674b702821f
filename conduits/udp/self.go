package udp

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/segment"
)

// loopback carries what a rank sends to itself: it never leaves the process, and
// neither the engine nor the socket sees it. Guarded by driver.mu but for waiting
// and turns.
type loopback struct {
	waiting atomic.Int32  // messages that can be run
	turns   atomic.Uint32 // polls that found some
	queues  [conduits.NumClasses]struct{ first, last *selfMessage }
	open    [conduits.NumClasses]int // credits taken
	next    bool                     // requests from here come before the engine's
	free    *selfMessage
	used    bool   // there has been a message
	unheard uint64 // long messages to memory that was not there any more
}

// selfMessage is a message of a rank to itself.
type selfMessage struct {
	conduits.Message

	words [conduits.MaxWords]uint32
	buf   []byte // for a medium payload; nil until there is one
	long  int    // bytes of a long message in registered memory
	regs  uint64 // registrations before they were written
	next  *selfMessage
}

// selfTurns is how many polls in a row may run messages of the rank to itself and
// not look at the socket, which takes ten times as long as such a message.
const selfTurns = 8

// lookElsewhere reports whether a poll is to look at the socket, too.
func (l *loopback) lookElsewhere() bool {
	return l.waiting.Load() == 0 || l.turns.Add(1)%selfTurns == 0
}

// reserveSelf takes a credit for a message to this rank, with mu held.
func (box *mailbox) reserveSelf(c conduits.Class) conduits.Status {
	l := &box.loop
	if l.open[c] >= 2*box.limits.Credits { // as the engine
		box.tally.Refused(box.d.life.rank)
		return conduits.NoCredit
	}
	l.open[c]++
	return conduits.Ready
}

// message returns a free message with n words, with mu held.
func (l *loopback) message(rank int, c conduits.Class, tag conduits.Tag, words []uint32) *selfMessage {
	m := l.free
	if m == nil {
		m = new(selfMessage)
	} else {
		l.free = m.next
	}
	l.used = true
	m.Src, m.Class, m.Tag, m.next = rank, c, tag, nil
	m.Words = m.words[:copy(m.words[:], words)]
	return m
}

// sendSelf sends a message that a credit has been taken for, with mu held. The
// caller notifies afterwards.
func (box *mailbox) sendSelf(c conduits.Class, tag conduits.Tag, words []uint32, payload []byte) {
	m := box.loop.message(box.d.life.rank, c, tag, words)
	if len(payload) > 0 {
		if m.buf == nil {
			m.buf = make([]byte, box.limits.MaxMedium)
		}
		m.Payload = m.buf[:copy(m.buf, payload)]
	}
	box.loop.add(m)
}

// sendSelfLong is sendSelf of a message that data goes ahead of.
func (box *mailbox) sendSelfLong(c conduits.Class, tag conduits.Tag, words []uint32, to segment.NLA, data []byte) {
	m := box.loop.message(box.d.life.rank, c, tag, words)
	m.To = to
	if n := uint64(len(data)); n > 0 {
		if b, ok := box.mem.seg.bytes(to, n); ok {
			bulk.Copy(b, data)
			m.Payload = b
		} else {
			m.long, m.regs = len(data), box.mem.Registrations()
			if box.mem.own("put", to, n, segment.RightWrite, func(b []byte) { bulk.Copy(b, data) }) != nil {
				box.loop.unheard++
				box.releaseSelf(m)
				return
			}
		}
	}
	box.loop.add(m)
}

func (l *loopback) add(m *selfMessage) {
	q := &l.queues[m.Class]
	if q.first == nil {
		q.first = m
	} else {
		q.last.next = m
	}
	q.last = m
	l.waiting.Add(1)
}

// nextSelf takes the next message of class c to this rank itself, or nil, with mu
// held.
func (box *mailbox) nextSelf(c conduits.Class) *selfMessage {
	l := &box.loop
	for {
		q := &l.queues[c]
		m := q.first
		if m == nil {
			return nil
		}
		q.first = m.next
		l.waiting.Add(-1)
		if m.long == 0 {
			return m
		}
		if m.Payload = conduits.Landed(box.mem.atu(), box.d.life.rank, m.To, uint64(m.long), m.regs); m.Payload != nil {
			return m
		}
		l.unheard++ // withdrawn since it was written
		box.releaseSelf(m)
	}
}

// releaseSelf gives m and its credit back, with mu held.
func (box *mailbox) releaseSelf(m *selfMessage) {
	l := &box.loop
	l.open[m.Class]--
	m.Message = conduits.Message{}
	m.long = 0
	m.next, l.free = l.free, m
}
