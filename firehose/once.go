package firehose

import (
	"slices"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// once is a region of PinOnce as the rank knows it that has it.
type once struct {
	rank int    // -1 if the slot is free
	id   uint32 // of the request, by which the owner knows it
	at   segment.NLA
}

// onceHeld is one as its owner knows it.
type onceHeld struct {
	src     int
	id      uint32
	a       Addr
	n       uint64
	buckets int // of the budget that it takes; 0 if it was revoked
	grant   Grant
}

// PinOnce asks for exactly [a, a+n) of rank's memory: NextDone gives it with
// cookie after one round trip, or an error that matches ErrResource if rank cannot
// pin so much now. It is pinned within Config.Local of rank's budget, and is not waited
// for, so that no pin waits for ever: see the package comment.
func (m *machine) PinOnce(rank int, a Addr, n, cookie uint64) error {
	const op = "remote pin at once"
	if err := m.checkRange(op, rank, a, n); err != nil {
		return err
	}
	if n > m.l.MaxOnce {
		m.stats.OnceRefused++
		return errs.Resource("firehose: %s of %d bytes at %#x: at most %d fit (Config.Local)", op, n, uint64(a), m.l.MaxOnce)
	}
	p := m.peer(rank)
	if p.err != nil {
		return p.err
	}
	f := m.flight()
	f.once, f.cookie, f.a, f.n = true, cookie, a, n
	b := appendHead(m.buffer(), head{digest: m.digest, id: m.launch(p, f), kind: kindOnce, pins: 1})
	m.out.Add(message{Dst: rank, Payload: appendWord(appendWord(b, uint64(a)), n)})
	return nil
}

// receiveOnce takes the answer to PinOnce.
func (m *machine) receiveOnce(p *peer, f *flight, h head, rest []byte) {
	grants, ok := parseReply(rest, h, m.grants[:0])
	m.grants = grants[:0]
	if !ok || h.kind != kindOnce || h.pins != 1 {
		m.stats.Violations++
		return
	}
	p.flights.remove(f)
	d := ended{Cookie: f.cookie}
	if g := grants[0]; !valid(g.NLA) {
		m.stats.OnceRefused++
		d.Err = m.refusal(p.rank, f.a, g.NLA)
	} else {
		i := uint32(len(m.once))
		if k := len(m.freeOnce) - 1; k >= 0 {
			i, m.freeOnce = m.freeOnce[k], m.freeOnce[:k]
		} else {
			m.once = append(m.once, once{})
		}
		m.once[i] = once{p.rank, h.id, g.NLA}
		m.stats.Once++
		d.Pinned = region{packed(g.NLA, p.rank), g.Key, uint64(f.a), metaOnce | uint64(i)<<onceSlot | f.n}
	}
	m.land(f)
	m.done.Add(d)
}

// releaseOnce gives back what PinOnce has pinned.
func (m *machine) releaseOnce(r region) error {
	p := m.peer(r.Rank())
	if p.err != nil {
		return nil // all of it has gone
	}
	i := r.meta >> onceSlot & (onceSlots - 1)
	if i >= uint64(len(m.once)) || m.once[i].rank != r.Rank() || m.once[i].at != r.grant().NLA {
		return errs.BadArg("firehose: release of a region of rank %d that is not pinned", r.Rank())
	}
	m.out.Add(message{Dst: r.Rank(), Payload: appendHead(m.buffer(), head{digest: m.digest, id: m.once[i].id, kind: kindDrop})})
	m.once[i] = once{rank: -1}
	m.freeOnce = append(m.freeOnce, uint32(i))
	return nil
}

// grantOnce pins [a, a+n) for src if there is room for it in Config.Local. Then there is
// room in the budget, see pin.
func (m *machine) grantOnce(src int, h head, a Addr, n uint64) Grant {
	switch {
	case h.digest != m.digest:
		m.stats.Violations++
		return Grant{NLA: refusedDisagree}
	case n == 0 || uint64(a)+n-1 < uint64(a) || n > m.l.MaxOnce:
		m.stats.Violations++
		return Grant{NLA: refusedRule}
	}
	k := int((n + m.c.Bucket - 1) >> m.shift)
	if m.onceUse+k > m.l.Local {
		return Grant{NLA: refusedResource}
	}
	for i := range m.onceHeld {
		if h.id == m.onceHeld[i].id && src == m.onceHeld[i].src {
			m.stats.Violations++
			return Grant{NLA: refusedRule}
		}
	}
	m.evict(k)
	g, err := m.c.Memory.PinOnce(a, n)
	if err == nil && !valid(g.NLA) {
		m.c.Memory.Unpin(a, n, g)
		return Grant{NLA: refusedResource}
	}
	if err != nil {
		return Grant{NLA: m.code(err)}
	}
	m.onceUse += k
	m.count(k)
	m.onceHeld = append(m.onceHeld, onceHeld{src, h.id, a, n, k, g})
	return g
}

// dropOnce ends what was granted to src, and reports whether it was.
func (m *machine) dropOnce(src int, id uint32) bool {
	i := slices.IndexFunc(m.onceHeld, func(h onceHeld) bool { return h.src == src && h.id == id })
	if i < 0 {
		return false
	}
	m.endOnce(&m.onceHeld[i])
	m.onceHeld = slices.Delete(m.onceHeld, i, i+1)
	return true
}

// revokeOnce takes memory back under src's hands.
func (m *machine) revokeOnce(h *onceHeld) {
	if h.buckets == 0 {
		return
	}
	m.uncount(h)
	m.c.Memory.Revoke(h.a, h.n, h.grant)
}

// endOnce takes it back when src has done with it.
func (m *machine) endOnce(h *onceHeld) {
	if h.buckets == 0 {
		m.c.Memory.Forget(h.a, h.n, h.grant)
		return
	}
	m.uncount(h)
	m.c.Memory.Unpin(h.a, h.n, h.grant)
}

// uncount takes h off the budget.
func (m *machine) uncount(h *onceHeld) {
	m.onceUse -= h.buckets
	m.stats.Unpins += uint64(h.buckets)
	h.buckets = 0
}

// forsake ends all that src, which has failed, was granted.
func (m *machine) forsake(src int) {
	m.onceHeld = slices.DeleteFunc(m.onceHeld, func(h onceHeld) bool {
		if h.src != src {
			return false
		}
		m.endOnce(&h)
		return true
	})
	for i := range m.once {
		if m.once[i].rank == src {
			m.once[i].rank = -1
			m.freeOnce = append(m.freeOnce, uint32(i))
		}
	}
}
