package firehose

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Receive answers a request of rank src: it appends the reply's payload to reply
// and returns it. It never waits, because there is always room for what a rank
// may ask for (see the package comment). ok is false if the payload is not a
// request at all, and nothing is to be answered.
func (m *Machine) Receive(src int, payload, reply []byte) (b []byte, ok bool) {
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
		m.serveLocal()
		return reply, false
	case h.kind != kindMove || len(rest) != 8*(h.unpins+h.pins) || h.pins == 0:
		m.stats.Violations++
		return reply, false
	}
	m.stats.Served++
	p := m.peer(src)
	grants := m.grants[:0]
	if code := m.exchange(p, h, rest); code != 0 {
		m.stats.Violations++
		for range h.pins {
			grants = append(grants, Grant{NLA: code})
		}
	} else {
		for i := range h.unpins {
			m.unhold(m.own.find(word(rest, i)))
		}
		for i := range h.pins {
			b := word(rest, h.unpins+i)
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
	reply = appendReply(reply, h, grants)
	m.serveLocal()
	return reply, true
}

// ReceiveMove is Receive for a Move, which is answered by the words that it returns.
func (m *Machine) ReceiveMove(src int, w Move) (Moved, bool) {
	if src < 0 || src >= m.c.Size || src == m.c.Rank {
		m.stats.Violations++
		return Moved{}, false
	}
	p := m.peer(src)
	if p.err != nil {
		m.stats.Violations++
		return Moved{}, false
	}
	m.stats.Served++
	return movedTo(w[moveID], m.exchangeOne(p, w)), true
}

// exchangeOne is exchange, and what follows it, for one bucket.
func (m *Machine) exchangeOne(p *peer, w Move) Grant {
	if w[moveDigest] != m.digest {
		m.stats.Violations++
		return Grant{NLA: refusedDisagree}
	}
	pin, held := uint64(w[movePin]), p.holds.n
	gone := uint32(0)
	if w[moveUnpin] > 0 {
		held--
		gone = p.holds.find(uint64(w[moveUnpin] - 1))
	}
	if again := w[moveUnpin] > 0 && uint64(w[moveUnpin]-1) == pin; gone == 0 && w[moveUnpin] > 0 || held >= m.l.Share ||
		pin > ^uint64(0)>>m.shift || !again && p.holds.find(pin) != 0 {
		m.stats.Violations++
		return Grant{NLA: refusedRule}
	}
	if gone != 0 {
		p.holds.remove(uint64(w[moveUnpin] - 1))
		m.unhold(gone)
	}
	i, g := m.hold(pin)
	if i != 0 {
		p.holds.set(pin, i)
	}
	m.serveLocal()
	return g
}

// unassigned stands in peer.holds for the slot of a bucket that is about to be held.
const unassigned = ^uint32(0)

// exchange enters in p.holds what a request gives up and asks for. A rank gives
// up what it holds, asks for what it does not hold, and keeps to its share; or
// nothing changes and the answer says why.
func (m *Machine) exchange(p *peer, h head, rest []byte) segment.NLA {
	if h.digest != m.digest {
		return refusedDisagree
	}
	if h.pins > m.l.maxBuckets || h.unpins > p.holds.n || p.holds.n-h.unpins+h.pins > m.l.Share {
		return refusedRule
	}
	for i := range h.unpins + h.pins {
		b := word(rest, i)
		held := p.holds.find(b) != 0
		if held != (i < h.unpins) || b > ^uint64(0)>>m.shift {
			for i--; i >= 0; i-- { // as it was
				if b := word(rest, i); i < h.unpins {
					p.holds.set(b, m.own.find(b))
				} else {
					p.holds.remove(b)
				}
			}
			return refusedRule
		}
		if held {
			p.holds.remove(b)
		} else {
			p.holds.set(b, unassigned)
		}
	}
	return 0
}

// hold gives a peer a firehose to a bucket of this rank: its slot, which is to be
// entered in peer.holds, or 0 and a refusal.
func (m *Machine) hold(bucket uint64) (uint32, Grant) {
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

// code is what a refusal because of err looks like.
func (m *Machine) code(err error) segment.NLA {
	if errors.Is(err, ErrNotExposed) {
		m.stats.Faults++
		return refusedNotExposed
	}
	return refusedResource
}

// unhold takes a user, local or not, from a bucket of this rank, by its slot. A
// bucket without users stays pinned until its room is needed, or soon will be.
func (m *Machine) unhold(i uint32) {
	if m.own.unuse(i) && m.own.slots[i].state == stale {
		s := m.own.slots[i]
		m.own.idle--
		m.own.remove(i)
		m.c.Memory.Forget(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
	}
}

// pin registers a bucket of this rank that is not, for its first user. If all of
// the budget is pinned, a bucket without users goes; there is one, because what
// peers hold and what is locally pinned are together within the budget.
func (m *Machine) pin(bucket uint64) (uint32, error) {
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
func (m *Machine) evict(k int) {
	for m.pinned+m.onceUse+k > m.l.Budget {
		i := m.own.victim()
		m.unpin(i)
		m.own.remove(i)
		m.stats.OwnVictims++
	}
}

// Vacate unpins a bucket that is not in use if there is no room for another one: to be
// called when a request has been answered, so that the next does not wait for it.
func (m *Machine) Vacate() {
	if m.pinned+m.onceUse >= m.l.Budget && m.own.idle > 0 {
		m.evict(1)
	}
}

// count counts k buckets that have been pinned.
func (m *Machine) count(k int) {
	m.stats.Pins += uint64(k)
	m.stats.BytesPinned += uint64(k) << m.shift
	m.stats.PeakPinned = max(m.stats.PeakPinned, uint64(m.pinned+m.onceUse)<<m.shift)
}

// unpin takes a bucket's registration back.
func (m *Machine) unpin(i uint32) {
	s := &m.own.slots[i]
	a := Addr(s.bucket << m.shift)
	if m.c.Move != nil {
		m.c.Move(a, m.c.Bucket)
	}
	m.c.Memory.Unpin(a, m.c.Bucket, s.grant)
	m.pinned--
	m.stats.Unpins++
}

// LocalPin pins own memory, as RemotePin does a peer's. It never communicates;
// it waits only while other local pins use up Config.Local.
func (m *Machine) LocalPin(a Addr, n uint64, cookie uint64) (r Pinned, ok bool, err error) {
	first, count, err := m.buckets("local pin", a, n, m.l.Local, m.l.MaxLocal, "Config.Local")
	if err == nil {
		err = m.closed
	}
	if err != nil {
		return r, false, err
	}
	if m.localQueue.Empty() {
		if r, ok, err = m.local(first, count); ok || err != nil {
			return r, ok, err
		}
	}
	m.stats.LocalWaits++
	m.localQueue.Add(m.request(cookie, first, count))
	return r, false, nil
}

// TryLocalPin is LocalPin that neither registers memory nor waits.
func (m *Machine) TryLocalPin(a Addr, n uint64) (r Pinned, ok bool) {
	first, count, err := m.buckets("local pin", a, n, m.l.Local, m.l.MaxLocal, "Config.Local")
	if err == nil && m.localQueue.Empty() {
		for b := first; ; b++ {
			if b == first+uint64(count) {
				r, ok, _ = m.local(first, count)
				break
			}
			if i := m.own.find(b); i == 0 || m.own.slots[i].state != present {
				break
			}
		}
	}
	if !ok {
		m.stats.LocalTries++
	}
	return r, ok
}

// local pins all buckets or none. ok is false if others must be released first.
func (m *Machine) local(first uint64, count int) (r Pinned, ok bool, err error) {
	more, missing := 0, 0
	for b := first; b < first+uint64(count); b++ {
		switch i := m.own.find(b); {
		case i == 0:
			missing++
			more++
		case m.own.slots[i].state == stale:
			m.stats.Faults++
			return r, false, fmt.Errorf("firehose: local pin of %#x: %w", b<<m.shift, ErrNotExposed)
		case m.own.slots[i].local == 0:
			more++
		}
	}
	if m.localUse+m.onceUse+more > m.l.Local {
		return r, false, nil
	}
	// Those that are there first, so that none of them is a victim.
	for b := first; b < first+uint64(count); b++ {
		if i := m.own.find(b); i != 0 {
			m.own.use(i)
			m.useLocal(i)
		}
	}
	for b, k := first, missing; k > 0; b++ {
		if m.own.find(b) != 0 {
			continue
		}
		i, err := m.pin(b)
		if err != nil {
			m.localBack(first, count)
			if errors.Is(err, ErrNotExposed) {
				m.stats.Faults++
			}
			return r, false, fmt.Errorf("firehose: local pin of %#x: %w", b<<m.shift, err)
		}
		m.useLocal(i)
		k--
	}
	if missing > 0 {
		m.stats.LocalMisses++
	} else {
		m.stats.LocalHits++
	}
	r = m.newRegion(m.c.Rank, &m.own, first, m.own.find(first), count)
	r.meta |= metaLocal
	return r, true, nil
}

// localBack undoes a local pin that failed half way: those of its buckets that
// are there are those that it uses.
func (m *Machine) localBack(first uint64, count int) {
	for b := first; b < first+uint64(count); b++ {
		if i := m.own.find(b); i != 0 {
			m.unuseLocal(i)
			m.unhold(i)
		}
	}
}

func (m *Machine) useLocal(i uint32) {
	if m.own.slots[i].local++; m.own.slots[i].local == 1 {
		m.localUse++
	}
}

func (m *Machine) unuseLocal(i uint32) {
	if m.own.slots[i].local--; m.own.slots[i].local == 0 {
		m.localUse--
	}
}

func (m *Machine) releaseLocal(r Pinned) error {
	if r.Rank() != m.c.Rank {
		return errs.BadArg("firehose: release of a local region of rank %d at rank %d", r.Rank(), m.c.Rank)
	}
	for k := range uint64(r.count()) {
		if i := m.own.find(r.first + k); i == 0 || m.own.slots[i].local == 0 {
			return errs.BadArg("firehose: release of a local region of rank %d that is not pinned: its bucket at %#x", m.c.Rank, (r.first+k)<<m.shift)
		}
	}
	for k := range uint64(r.count()) {
		i := m.own.find(r.first + k)
		m.unuseLocal(i)
		m.unhold(i)
	}
	m.serveLocal()
	return nil
}

// serveLocal goes on with local pins that wait.
func (m *Machine) serveLocal() {
	for !m.localQueue.Empty() {
		q := m.localQueue.First()
		r, ok, err := m.local(q.first, q.count)
		if !ok && err == nil {
			return
		}
		m.done.Add(Done{Cookie: q.cookie, Pinned: r, Err: err})
		m.localQueue.pop()
		m.spare = append(m.spare, q)
	}
}

// Withdraw says that own memory [a, a+n) is about to go: every bucket that has a
// byte of it is unpinned now, in use or not. Peers' accesses fault from then on,
// also by firehoses that they still hold, whose addresses are not given again
// until they have given them up; local users still release theirs. What is to be
// reachable again afterwards, under the same address, is so when no rank holds
// the bucket any more.
func (m *Machine) Withdraw(a Addr, n uint64) error {
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
	m.serveLocal()
	return nil
}

func (m *Machine) withdraw(i uint32) {
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
	at := Addr(s.bucket << m.shift)
	if m.c.Move != nil {
		m.c.Move(at, m.c.Bucket)
	}
	m.c.Memory.Revoke(at, m.c.Bucket, s.grant)
	s.state = stale
	m.pinned--
	m.stats.Unpins++
}

// Close unpins everything, in use or not, and nothing is pinned any more: pins
// fail with ErrClosed, those that wait by NextDone, and what peers ask for is
// dropped.
func (m *Machine) Close() {
	m.closed = errs.Closed("firehose: closed")
	for !m.localQueue.Empty() {
		m.done.Add(Done{Cookie: m.localQueue.pop().cookie, Err: m.closed})
	}
	for i := m.own.first(); i != 0; i = m.own.slots[i].next {
		s := &m.own.slots[i]
		if s.state == present {
			m.unpin(i)
		} else {
			m.c.Memory.Forget(Addr(s.bucket<<m.shift), m.c.Bucket, s.grant)
		}
	}
	m.own, m.localUse = table{}, 0
	for i := range m.onceHeld {
		m.endOnce(&m.onceHeld[i])
	}
	m.onceHeld = nil
	m.out = conc.Queue[Message]{}
	for _, p := range m.peers {
		p.holds = index{}
		m.Fail(p.rank, m.closed)
	}
}
