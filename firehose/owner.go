package firehose

import (
	"errors"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Receive answers a request of rank src: it appends the reply's payload to reply
// and returns it. It never waits, because there is always room for what a rank
// may ask for (see the package comment). ok is false if the payload is not a
// request at all, and nothing is to be answered.
func (m *machine) Receive(src int, payload, reply []byte) (b []byte, ok bool) {
	h, rest, ok := parseHead(payload)
	if !ok || src < 0 || src >= m.c.Size || src == m.c.Rank || m.peer(src).err != nil {
		m.stats.Violations++
		return reply, false
	}
	switch {
	case h.kind == kindOnce && len(rest) == 16 && h.unpins == 0 && h.pins == 1:
		m.stats.Served++
		m.grants = append(m.grants[:0], m.grantOnce(src, h, Addr(word(rest, 0)), word(rest, 1)))
		return appendReply(reply, h, m.grants), true
	case h.kind == kindDrop && len(rest) == 0 && h.unpins == 0 && h.pins == 0:
		if h.digest != m.digest || !m.dropOnce(src, h.id) {
			m.stats.Violations++
		}
		return reply, false
	case h.kind != kindMove || len(rest) != 8*(h.unpins+h.pins) || h.pins == 0:
		m.stats.Violations++
		return reply, false
	}
	m.stats.Served++
	words := m.words[:0]
	for i := range h.unpins + h.pins {
		words = append(words, word(rest, i))
	}
	m.words = words
	return appendReply(reply, h, m.trade(m.peer(src), h.digest, words[:h.unpins], words[h.unpins:])), true
}

// ReceiveMove is Receive for a move, which is answered by the words that it returns.
func (m *machine) ReceiveMove(src int, w move) (moved, bool) {
	if src < 0 || src >= m.c.Size || src == m.c.Rank {
		m.stats.Violations++
		return moved{}, false
	}
	p := m.peer(src)
	if p.err != nil {
		m.stats.Violations++
		return moved{}, false
	}
	m.stats.Served++
	words := m.words[:0]
	if w[moveUnpin] > 0 {
		words = append(words, uint64(w[moveUnpin]-1))
	}
	words = append(words, uint64(w[movePin]))
	m.words = words
	k := len(words) - 1
	return movedTo(w[moveID], m.trade(p, w[moveDigest], words[:k], words[k:])[0]), true
}

// trade gives p firehoses to come in place of those to gone: a grant for each, or a
// refusal's code.
func (m *machine) trade(p *peer, digest uint32, gone, come []uint64) []Grant {
	grants := m.grants[:0]
	if code := m.exchange(p, digest, gone, come); code != 0 {
		m.stats.Violations++
		for range come {
			grants = append(grants, Grant{NLA: code})
		}
	} else {
		for _, b := range gone {
			m.unhold(m.own.find(b))
		}
		for _, b := range come {
			slot, g := m.hold(b)
			if slot != 0 {
				p.holds.change(b, slot)
			} else {
				p.holds.remove(b)
			}
			grants = append(grants, g)
		}
	}
	m.grants = grants[:0]
	return grants
}

// unassigned stands in peer.holds for the slot of a bucket that is about to be held.
const unassigned = ^uint32(0)

// exchange enters in p.holds what a request gives up and asks for. A rank gives
// up what it holds, asks for what it does not hold, and keeps to its share; or
// nothing changes and the answer says why.
func (m *machine) exchange(p *peer, digest uint32, gone, come []uint64) segment.NLA {
	if digest != m.digest {
		return refusedDisagree
	}
	if len(come) > m.l.maxBuckets || len(gone) > p.holds.n || p.holds.n-len(gone)+len(come) > m.l.Share {
		return refusedRule
	}
	for i, b := range gone {
		if p.holds.find(b) == 0 {
			p.restore(&m.own, gone[:i], nil)
			return refusedRule
		}
		p.holds.remove(b)
	}
	for i, b := range come {
		if p.holds.find(b) != 0 || b > ^uint64(0)>>m.shift {
			p.restore(&m.own, gone, come[:i])
			return refusedRule
		}
		p.holds.set(b, unassigned)
	}
	return 0
}

// restore undoes what exchange has entered.
func (p *peer) restore(own *table, gone, come []uint64) {
	for _, b := range come {
		p.holds.remove(b)
	}
	for _, b := range gone {
		p.holds.set(b, own.find(b))
	}
}

// hold gives a peer a firehose to a bucket of this rank: its slot, which is to be
// entered in peer.holds, or 0 and a refusal.
func (m *machine) hold(bucket uint64) (uint32, Grant) {
	i := m.own.find(bucket)
	var err error
	switch {
	case i == 0:
		i, err = m.pin(bucket)
	case m.own.slots[i].state == stale:
		err = ErrNotExposed
	default:
		m.own.use(i)
	}
	if err == nil {
		return i, m.own.slots[i].grant
	}
	return 0, Grant{NLA: m.code(err)}
}

// code is the address that stands for a refusal because of err.
func (m *machine) code(err error) segment.NLA {
	if errors.Is(err, ErrNotExposed) {
		m.stats.Faults++
		return refusedNotExposed
	}
	return refusedResource
}

// unhold takes a peer from the users of a bucket of this rank, by its slot. A
// bucket without users stays pinned until its room is needed, or soon will be.
func (m *machine) unhold(i uint32) {
	if m.own.unuse(i) && m.own.slots[i].state == stale {
		s := m.own.slots[i]
		m.own.idle--
		m.own.remove(i)
		m.c.Memory.Forget(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
	}
}

// pin registers a bucket of this rank that is not, for its first user. If all of
// the budget is pinned, a bucket without users goes; there is one, because what
// peers hold and what is pinned once are together within the budget.
func (m *machine) pin(bucket uint64) (uint32, error) {
	m.evict(1)
	g, err := m.c.Memory.Pin(Addr(bucket<<m.shift), m.c.Bucket)
	if err != nil {
		return 0, err
	}
	if !valid(g.NLA) {
		m.c.Memory.Unpin(Addr(bucket<<m.shift), m.c.Bucket, g)
		return 0, errs.BadArg("firehose: address %v of bucket %#x is in the first page, or none", g.NLA, bucket<<m.shift)
	}
	m.pinned++
	m.count(1)
	i := m.own.insert(bucket, present)
	m.own.slots[i].grant = g
	return i, nil
}

// valid reports whether an address is none of those that stand for a refusal.
func valid(a segment.NLA) bool { return a >= segment.PageSize && a < segment.NLALimit }

// evict makes room for k buckets, which there is; see pin.
func (m *machine) evict(k int) {
	for m.pinned+m.onceUse+k > m.l.Budget {
		i := m.own.victim()
		m.unpin(i)
		m.own.remove(i)
		m.stats.OwnVictims++
	}
}

// Vacate unpins a bucket that is not in use if there is no room for another one: to be
// called when a request has been answered, so that the next does not wait for it.
func (m *machine) Vacate() {
	if m.pinned+m.onceUse >= m.l.Budget && m.own.idle > 0 {
		m.evict(1)
	}
}

// count counts k buckets that have been pinned.
func (m *machine) count(k int) {
	m.stats.Pins += uint64(k)
	m.stats.BytesPinned += uint64(k) << m.shift
	m.stats.PeakPinned = max(m.stats.PeakPinned, uint64(m.pinned+m.onceUse)<<m.shift)
}

// unpin takes a bucket's registration back.
func (m *machine) unpin(i uint32) {
	s := &m.own.slots[i]
	m.c.Memory.Unpin(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
	m.pinned--
	m.stats.Unpins++
}

// Withdraw says that own memory [a, a+n) is about to go: every bucket that has a
// byte of it is unpinned now, in use or not. Peers' accesses fault from then on,
// also by firehoses that they still hold, whose addresses are not given again
// until they have given them up. What is to be reachable again afterwards, under the same address, is so when no rank holds
// the bucket any more.
func (m *machine) Withdraw(a Addr, n uint64) error {
	if n == 0 || uint64(a)+n-1 < uint64(a) {
		return errs.BadArg("firehose: withdrawal of %d bytes at %#x", n, uint64(a))
	}
	first, last := uint64(a)>>m.shift, (uint64(a)+n-1)>>m.shift
	if last-first < uint64(m.own.index.n) {
		for b := first; b <= last; b++ {
			m.withdraw(m.own.find(b))
		}
	} else {
		for i := m.own.first(); i != 0; {
			next := m.own.slots[i].next
			if b := m.own.slots[i].bucket; first <= b && b <= last {
				m.withdraw(i)
			}
			i = next
		}
	}
	for i := range m.onceHeld {
		if h := &m.onceHeld[i]; h.a <= a+Addr(n-1) && a <= h.a+Addr(h.n-1) {
			m.revokeOnce(h)
		}
	}
	return nil
}

func (m *machine) withdraw(i uint32) {
	if i == 0 || m.own.slots[i].state != present {
		return
	}
	s := &m.own.slots[i]
	if s.users == 0 {
		m.unpin(i)
		m.own.idle--
		m.own.remove(i)
		return
	}
	m.c.Memory.Revoke(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
	s.state = stale
	m.pinned--
	m.stats.Unpins++
}

// Close unpins everything, in use or not, and nothing is pinned any more: pins
// fail with ErrClosed, those that wait by NextDone, and what peers ask for is
// dropped.
func (m *machine) Close() {
	m.closed = errs.Closed("firehose: closed")
	for i := m.own.first(); i != 0; i = m.own.slots[i].next {
		s := &m.own.slots[i]
		if s.state == present {
			m.unpin(i)
		} else {
			m.c.Memory.Forget(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
		}
	}
	m.own = table{}
	for i := range m.onceHeld {
		m.endOnce(&m.onceHeld[i])
	}
	m.onceHeld = nil
	m.out = conc.Queue[message]{}
	for _, p := range m.peers {
		p.holds = index{}
		m.Fail(p.rank, m.closed)
	}
}
