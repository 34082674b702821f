package firehose

import (
	"fmt"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// machine is the protocol of one rank as a state machine without I/O, locks or
// goroutines: one caller at a time. What drives it carries the messages that
// NextMessage gives, as requests, to their ranks; gives what arrives to Receive
// and sends its result back as the reply; gives replies to ReceiveReply; and
// takes completions from NextDone. Cache does that over active messages.
type machine struct {
	c      Config
	l      Limits
	shift  uint // bytes of a bucket as a power of two
	agreed agreement
	digest uint32
	closed error // by Close

	own    table
	pinned int     // buckets of own that are registered: those that are present
	peers  []*peer // those heard of
	ranks  index   // rank to 1 + its place in peers
	last   *peer   // that was looked for

	// first, unless nil, sends a move at once, if that can be: the tables are brought up to
	// date while it travels.
	first func(dst int, w move) bool

	once     []once // regions of PinOnce, by slot; this rank has them
	freeOnce []uint32
	onceUse  int        // buckets' worth of own memory that is pinned once
	onceHeld []onceHeld // by peers

	out     conc.Queue[message]
	done    conc.Queue[ended]
	nextID  uint32
	stats   Stats
	grants  []Grant
	words   []uint64 // of a request
	spare   []*request
	landed  []*flight
	payload [][]byte // of messages that have been sent
}

// peer is the state of this rank for another.
type peer struct {
	rank int
	err  error // it has failed

	// As the one that holds firehoses.
	t       table
	held    int // buckets that count against the share: present, stale and inbound
	queue   conc.Queue[*request]
	pending []*request // that wait for buckets which are inbound
	flights flights

	// As the owner of what it holds here: bucket to slot in own.
	holds index
}

// flight is a request message that has not been answered.
type flight struct {
	id           uint32
	one          bool // sent as a move
	pins, unpins []uint64
	once         bool
	cookie       uint64 // once: of the request
	a            Addr   // once
	n            uint64 // once
}

// request is a pin that waits.
type request struct {
	cookie  uint64
	first   uint64 // bucket
	count   int
	missing int    // buckets that are inbound
	slot    uint32 // of the one bucket; 0 if it has to be looked up
	err     error
}

// message is a request to be sent to rank Dst: a short message with the words of
// move, or, unless Payload is nil, a medium one. Payload is the machine's again with
// Recycle, or garbage.
type message struct {
	Dst     int
	Move    move
	Payload []byte
}

// ended is the end of a pin that waited.
type ended struct {
	Cookie uint64
	Pinned region // zero if Err is set
	Err    error
}

// region is pinned memory of a rank: whole buckets, at least what was asked for;
// or, by PinOnce, exactly that. It is a plain value, valid until Release.
type region struct {
	// Four words: more, or a struct among them, would not be kept in registers,
	// which costs a pin and its release 30 ns.
	at    uint64 // NLA of the first bucket (40), rank (24)
	key   uint64
	first uint64 // bucket
	meta  uint64
}

// maxRanks is how many ranks a region can name.
const maxRanks = 1 << 24

// The fields of meta: slot of the first bucket (32), buckets (24), bits of an
// address in a bucket (6), once (1). If it is pinned once, first is an
// address, and the others are bytes (40) and slot (22).
const (
	metaCount = 32
	metaBits  = 56
	metaOnce  = 1 << 62

	onceSlot  = 40
	onceSlots = 1 << 22
)

func (m *machine) newRegion(rank int, t *table, first uint64, i uint32, count int) region {
	g := &t.slots[i].grant
	return region{packed(g.NLA, rank), g.Key, first, uint64(i) | uint64(count)<<metaCount | uint64(m.shift)<<metaBits}
}

func packed(a segment.NLA, rank int) uint64 { return uint64(a) | uint64(rank)<<(segment.NLABits+1) }

func (r *region) slot() uint32  { return uint32(r.meta) }
func (r *region) count() uint32 { return uint32(r.meta>>metaCount) & (1<<24 - 1) }
func (r *region) bits() uint    { return uint(r.meta>>metaBits) & 63 }
func (r *region) once() bool    { return r.meta&metaOnce != 0 }

func (r *region) grant() Grant {
	return Grant{segment.NLA(r.at & (1<<(segment.NLABits+1) - 1)), r.key}
}

// Rank is whose memory it is.
func (r region) Rank() int { return int(r.at >> (segment.NLABits + 1)) }

// Addr is the region's first byte.
func (r region) Addr() Addr {
	if r.once() {
		return Addr(r.first)
	}
	return Addr(r.first << r.bits())
}

// Len is the region's length in bytes.
func (r region) Len() uint64 {
	if r.once() {
		return r.meta & (1<<onceSlot - 1)
	}
	return uint64(r.count()) << r.bits()
}

// Valid reports whether it is a region; the zero value is none.
func (r region) Valid() bool { return r.meta != 0 }

// Stats count what a machine has done. Hits and misses are of pins as a whole.
type Stats struct {
	RemoteHits   uint64 // remote pins granted at once
	RemoteMisses uint64 // remote pins that needed buckets which were not there
	RemoteWaits  uint64 // of all, those that had to queue for buckets in use or under way

	Moves       uint64 // requests sent: round trips
	Victims     uint64 // firehoses given up for others
	OwnVictims  uint64 // own buckets unpinned to pin others
	Served      uint64 // requests answered
	Violations  uint64 // requests and replies that break the protocol, dropped or refused
	Faults      uint64 // buckets asked for, by this rank or of it, that are not exposed
	Pinned      uint64 // bytes of own memory pinned now
	PeakPinned  uint64 // the most so far
	BytesPinned uint64 // pinned so far, in all
	Pins        uint64 // buckets pinned so far
	Unpins      uint64 // buckets unpinned so far
	Held        int    // firehoses held now, to all peers
	Once        uint64 // PinOnce granted
	OnceRefused uint64 // PinOnce refused, for want of room or memory
}

// errNobody is of the peer that is known last before any is: no rank is -1.
var errNobody = errs.BadArg("firehose: no rank")

// New makes a machine.
func newMachine(c Config) (*machine, error) {
	l, err := c.ensure()
	if err != nil {
		return nil, err
	}
	m := &machine{c: c, l: l, agreed: c.agreement(), last: &peer{rank: -1, err: errNobody}}
	m.digest = m.agreed.digest()
	for b := c.Bucket; b > 1; b >>= 1 {
		m.shift++
	}
	return m, nil
}

// Stats fills in s.
func (m *machine) Stats(s *Stats) {
	*s = m.stats
	s.Pinned = uint64(m.pinned+m.onceUse) << m.shift
	for _, p := range m.peers {
		s.Held += p.held
	}
}

// NextMessage gives a request that is to be sent, if there is one.
func (m *machine) NextMessage() (message, bool) { return m.out.Take() }

// NextDone gives a pin that has come to its end, if there is one.
func (m *machine) NextDone() (ended, bool) { return m.done.Take() }

// Recycle gives a message's payload back once it has been sent.
func (m *machine) Recycle(b []byte) {
	if b != nil && len(m.payload) < 64 {
		m.payload = append(m.payload, b[:0])
	}
}

func (m *machine) buffer() []byte {
	if k := len(m.payload) - 1; k >= 0 {
		b := m.payload[k]
		m.payload = m.payload[:k]
		return b
	}
	return nil
}

// peer finds what is known of rank, or begins it.
func (m *machine) peer(rank int) *peer {
	p := m.known(rank)
	if p == nil {
		p = &peer{rank: rank, err: m.closed}
		m.peers = append(m.peers, p)
		m.ranks.set(uint64(rank), uint32(len(m.peers)))
	}
	return p
}

// known is the peer for rank, a rank of the job that is not this one; nil if there is
// none.
func (m *machine) known(rank int) *peer {
	if p := m.last; p.rank == rank {
		return p
	}
	return m.lookup(rank)
}

func (m *machine) lookup(rank int) *peer {
	i := m.ranks.find(uint64(rank))
	if i == 0 {
		return nil
	}
	m.last = m.peers[i-1]
	return m.last
}

// buckets are those of rank's memory that [a, a+n) touches.
func (m *machine) buckets(rank int, a Addr, n uint64) (first uint64, count int, err error) {
	if err := m.checkRange("remote pin", rank, a, n); err != nil {
		return 0, 0, err
	}
	first = uint64(a) >> m.shift
	last := (uint64(a) + n - 1) >> m.shift
	if last-first >= uint64(m.l.maxBuckets) {
		return 0, 0, errs.Resource("firehose: remote pin of %d bytes at %#x touches %d buckets of %d bytes: at most %d, that is %d bytes wherever they lie, fit (Config.Budget, Config.Payload)",
			n, uint64(a), last-first+1, m.c.Bucket, m.l.maxBuckets, m.l.MaxRemote)
	}
	return first, int(last-first) + 1, nil
}

// checkRange returns the error of a pin of [a, a+n) of rank's memory, whatever its length.
func (m *machine) checkRange(op string, rank int, a Addr, n uint64) error {
	switch {
	case rank < 0 || rank >= m.c.Size:
		return errs.BadArg("firehose: %s: rank %d out of range: the job has ranks 0..%d", op, rank, m.c.Size-1)
	case rank == m.c.Rank:
		return errs.BadArg("firehose: %s of the own rank's memory, which needs none", op)
	case n == 0 || uint64(a)+n-1 < uint64(a):
		return errs.BadArg("firehose: %s of %d bytes at %#x", op, n, uint64(a))
	}
	return nil
}

// RemotePin asks for the buckets of rank's memory that [a, a+n) touches. If all
// are at hand the region is returned, and ok is true. Otherwise NextDone gives it
// with cookie: after one round trip to rank, if there are firehoses to be had, or
// when others have released enough. Requests to one rank wait in order.
//
// See the package comment on how pins are to be combined.
func (m *machine) RemotePin(rank int, a Addr, n uint64, cookie uint64) (r region, ok bool, err error) {
	// The usual case: one bucket, which is there, or for which there is a firehose.
	if b := uint64(a) >> m.shift; n-1 <= uint64(a)|(m.c.Bucket-1)-uint64(a) {
		if p := m.known(rank); p != nil && p.queue.Empty() {
			i := p.t.find(b)
			if i != 0 && p.t.slots[i].state == present {
				p.t.use(i)
				m.stats.RemoteHits++
				return m.newRegion(rank, &p.t, b, i, 1), true, nil
			}
			if i == 0 && p.err == nil && b < moveBuckets && m.miss(p, b, cookie) {
				return r, false, nil
			}
		}
	}
	return m.remotePin(rank, a, n, cookie)
}

// miss asks p for bucket b, which is not there, by a move. False if no firehose is to be
// had for it now.
func (m *machine) miss(p *peer, b, cookie uint64) bool {
	w := move{moveDigest: m.digest, moveID: m.nextID + 1, movePin: uint32(b)}
	victim := uint32(0)
	if p.held >= m.l.Share {
		if p.t.idle == 0 {
			return false
		}
		victim = p.t.victim()
		s := &p.t.slots[victim]
		if s.bucket >= moveBuckets {
			p.t.idle++ // it stays
			return false
		}
		m.callLeave(p.rank, s.bucket)
		w[moveUnpin] = uint32(s.bucket) + 1
	}
	sent := m.first != nil && m.out.Empty() && m.first(p.rank, w)
	f := m.flight()
	f.one = true
	if victim != 0 {
		s := &p.t.slots[victim]
		s.state = outbound
		f.unpins = append(f.unpins, s.bucket)
		p.held--
		m.stats.Victims++
	}
	r := m.request(cookie, b, 1)
	r.missing, r.slot = 1, p.t.insert(b, inbound)
	f.pins = append(f.pins, b)
	p.held++
	p.pending = append(p.pending, r)
	m.stats.RemoteMisses++
	m.stats.Moves++
	m.launch(p, f)
	if !sent {
		m.out.Add(message{Dst: p.rank, Move: w})
	}
	return true
}

func (m *machine) remotePin(rank int, a Addr, n uint64, cookie uint64) (r region, ok bool, err error) {
	first, count, err := m.buckets(rank, a, n)
	if err != nil {
		return r, false, err
	}
	p := m.peer(rank)
	if p.err != nil {
		return r, false, p.err
	}
	if p.queue.Empty() {
		switch m.attempt(p, first, count, cookie) {
		case granted:
			m.stats.RemoteHits++
			return m.region(p, first, count), true, nil
		case issued:
			m.stats.RemoteMisses++
			return r, false, nil
		}
	}
	m.stats.RemoteWaits++
	p.queue.Add(m.request(cookie, first, count))
	return r, false, nil
}

// Look is a remote pin for as long as the machine is not used otherwise: where to
// reach [a, a+n), if one bucket's firehose does.
func (m *machine) Look(rank int, a Addr, n uint64) (g Grant, ok bool) {
	off := uint64(a) & (m.c.Bucket - 1)
	if n > m.c.Bucket-off {
		return g, false
	}
	p := m.known(rank)
	if p == nil || !p.queue.Empty() {
		return g, false
	}
	// The next access is often to the same bucket: no search, then.
	b, t := uint64(a)>>m.shift, &p.t
	var s *slot
	if i := uint(t.recent); i < uint(len(t.slots)) && t.slots[i].bucket == b && t.slots[i].state == present {
		s = &t.slots[i]
	} else if s = t.look(b); s == nil {
		return g, false
	}
	s.marked = true
	m.stats.RemoteHits++
	return Grant{s.grant.NLA + segment.NLA(off), s.grant.Key}, true
}

// share says that readers may use what Look has just found without the machine: s tells of
// it, by the key that it returns.
func (m *machine) share(rank int, a Addr, s *shared) (key uint64) {
	p, b := m.known(rank), uint64(a)>>m.shift
	if p.t.used == nil {
		p.t.used = func(bucket uint64) bool { return s.takeMark(sharedKey(rank, bucket)) }
	}
	p.t.slots[p.t.find(b)].shared = true
	return sharedKey(rank, b)
}

// TryRemotePin is RemotePin that neither sends nor waits: it answers false if
// that would be needed, and also while others wait for rank's buckets, or if the
// arguments are wrong.
func (m *machine) TryRemotePin(rank int, a Addr, n uint64) (r region, ok bool) {
	first, count, err := m.buckets(rank, a, n)
	if err != nil {
		return r, false
	}
	p := m.peer(rank)
	if ok = p.queue.Empty(); !ok {
		return r, false
	}
	for b := first; b < first+uint64(count); b++ {
		if i := p.t.find(b); i == 0 || p.t.slots[i].state != present {
			return r, false
		}
	}
	p.t.useAll(first, count)
	m.stats.RemoteHits++
	return m.region(p, first, count), true
}

func (m *machine) region(p *peer, first uint64, count int) region {
	return m.newRegion(p.rank, &p.t, first, p.t.find(first), count)
}

type outcome uint8

const (
	blocked outcome = iota // nothing has changed
	granted
	issued // on its way: done gives it
)

// attempt pins all buckets or does nothing: no request holds some while it waits
// for others.
func (m *machine) attempt(p *peer, first uint64, count int, cookie uint64) outcome {
	// Buckets that are missing, and those of the request itself, which must not be victims.
	absent, again, mine, waiting := 0, 0, 0, 0
	for b := first; b < first+uint64(count); b++ {
		i := p.t.find(b)
		if i == 0 {
			absent++
			continue
		}
		switch s := &p.t.slots[i]; s.state {
		case present:
			if s.users == 0 {
				mine++
			}
		case inbound:
			waiting++
		case stale:
			if s.users > 0 {
				return blocked // until its users have noticed
			}
			again++
			mine++
		case failed:
			return blocked // until the requests that wait for it have ended
		case outbound:
			return blocked // the request to pin it could overtake that to unpin it
		}
	}
	free := m.l.Share - p.held
	victims := max(0, absent-free)
	if victims > p.t.idle-mine {
		return blocked
	}
	if absent+again+waiting == 0 {
		p.t.useAll(first, count)
		return granted
	}

	var f *flight
	if absent+again > 0 {
		f = m.flight()
	}
	for b := first; b < first+uint64(count); b++ {
		i := p.t.find(b)
		if i == 0 {
			continue
		}
		if s := &p.t.slots[i]; s.state == stale {
			m.callLeave(p.rank, b)
			s.state = inbound
			f.unpins = append(f.unpins, b)
			f.pins = append(f.pins, b)
		}
		p.t.use(i)
	}
	for range victims {
		i := p.t.victim()
		s := &p.t.slots[i]
		m.callLeave(p.rank, s.bucket)
		s.state = outbound
		f.unpins = append(f.unpins, s.bucket)
		p.held--
		m.stats.Victims++
	}
	for b := first; absent > 0; b++ {
		if p.t.find(b) == 0 {
			p.t.insert(b, inbound)
			f.pins = append(f.pins, b)
			p.held++
			absent--
		}
	}
	r := m.request(cookie, first, count)
	r.missing = waiting
	if f != nil {
		r.missing += len(f.pins)
		m.send(p, f)
	}
	p.pending = append(p.pending, r)
	return issued
}

func (m *machine) callLeave(rank int, bucket uint64) {
	if m.c.leave != nil {
		m.c.leave(rank, Addr(bucket<<m.shift))
	}
}

func (m *machine) flight() *flight {
	if k := len(m.landed) - 1; k >= 0 {
		f := m.landed[k]
		m.landed = m.landed[:k]
		return f
	}
	return new(flight)
}

// land keeps what is left of a request for another one.
func (m *machine) land(f *flight) {
	if len(m.landed) < 64 {
		*f = flight{pins: f.pins[:0], unpins: f.unpins[:0]}
		m.landed = append(m.landed, f)
	}
}

// launch gives a request a number.
func (m *machine) launch(p *peer, f *flight) uint32 {
	m.nextID++
	f.id = m.nextID
	p.flights.Add(f)
	return f.id
}

func (m *machine) send(p *peer, f *flight) {
	m.stats.Moves++
	if w, ok := m.asMove(f); ok {
		w[moveID] = m.launch(p, f)
		m.out.Add(message{Dst: p.rank, Move: w})
		return
	}
	b := appendHead(m.buffer(), head{digest: m.digest, id: m.launch(p, f), kind: kindMove, unpins: len(f.unpins), pins: len(f.pins)})
	for _, u := range f.unpins {
		b = appendWord(b, u)
	}
	for _, u := range f.pins {
		b = appendWord(b, u)
	}
	m.out.Add(message{Dst: p.rank, Payload: b})
}

// asMove is the request of f as a move, if it fits one.
func (m *machine) asMove(f *flight) (w move, ok bool) {
	if len(f.pins) != 1 || len(f.unpins) > 1 || f.pins[0] >= moveBuckets {
		return w, false
	}
	w[moveDigest], w[movePin] = m.digest, uint32(f.pins[0])
	if len(f.unpins) > 0 {
		if f.unpins[0] >= moveBuckets {
			return w, false
		}
		w[moveUnpin] = uint32(f.unpins[0]) + 1
	}
	f.one = true
	return w, true
}

// ReceiveMoved is ReceiveReply for the answer to a move. If some is true it returns
// what NextDone would give first.
func (m *machine) ReceiveMoved(src int, w moved) (d ended, some bool) {
	if src < 0 || src >= m.c.Size || src == m.c.Rank {
		m.stats.Violations++
		return d, false
	}
	p := m.peer(src)
	f := p.flights.find(w[movedID])
	if f == nil || !f.one {
		m.stats.Violations++
		return d, false
	}
	p.flights.remove(f)
	// The usual case: one request has been waiting for it, and no other for anything.
	g, b := w.grant(), f.pins[0]
	if valid(g.NLA) && len(p.pending) == 1 && p.queue.Empty() && m.done.Empty() {
		if r := p.pending[0]; r.count == 1 && r.first == b && r.missing == 1 {
			m.gone(p, f.unpins, false)
			i := r.slot
			if i == 0 {
				i = p.t.find(b)
			}
			s := &p.t.slots[i]
			s.grant, s.state, s.marked = g, present, false
			p.pending[0], p.pending = nil, p.pending[:0]
			d = ended{Cookie: r.cookie, Pinned: m.newRegion(p.rank, &p.t, b, i, 1)}
			m.spare = append(m.spare, r)
			m.land(f)
			return d, true
		}
	}
	m.grants = append(m.grants[:0], g)
	m.moved(p, f, m.grants)
	return m.done.Take()
}

// ReceiveReply takes rank src's answer to a request. What is not one is dropped
// and counted.
func (m *machine) ReceiveReply(src int, payload []byte) {
	h, rest, ok := parseHead(payload)
	if !ok || src < 0 || src >= m.c.Size || src == m.c.Rank {
		m.stats.Violations++
		return
	}
	p := m.peer(src)
	f := p.flights.find(h.id)
	if f != nil && f.once {
		m.receiveOnce(p, f, h, rest)
		return
	}
	if f == nil || f.one || h.kind != kindMove || h.pins != len(f.pins) {
		m.stats.Violations++
		return
	}
	grants, ok := parseReply(rest, h, m.grants[:0])
	m.grants = grants[:0]
	if !ok {
		m.stats.Violations++
		return
	}
	p.flights.remove(f)
	m.moved(p, f, grants)
}

// moved takes what p grants as the answer to f: an address, or a refusal's code,
// for each bucket.
func (m *machine) moved(p *peer, f *flight, grants []Grant) {
	// A request that is refused as a whole has changed nothing at the owner. That
	// happens only to ranks that do not agree, or if one of them is broken.
	m.gone(p, f.unpins, len(grants) > 0 && refused(grants[0].NLA))
	for k, b := range f.pins {
		i := p.t.find(b)
		var err error
		if g := grants[k]; !valid(g.NLA) {
			err = m.refusal(p.rank, Addr(b<<m.shift), g.NLA)
		} else {
			p.t.slots[i].grant = g
			p.t.slots[i].state = present
			p.t.slots[i].marked = false
		}
		for _, r := range p.pending {
			if b-r.first < uint64(r.count) {
				r.missing--
				if err != nil && r.err == nil {
					r.err = err
				}
			}
		}
		if err != nil {
			// All its users are requests, some of which may wait for more. It must
			// not be asked for anew before they have let go of it.
			p.t.slots[i].state = failed
			p.held--
		}
	}
	m.land(f)
	m.completePending(p)
	m.serve(p)
}

// gone ends what a request has given up, unless it was refused.
func (m *machine) gone(p *peer, unpins []uint64, refused bool) {
	for _, b := range unpins {
		i := p.t.find(b)
		if p.t.slots[i].state != outbound {
			continue // it was asked for again in the same message
		}
		if refused {
			// Still ours, as far as the owner is concerned, but of no use.
			p.held++
			p.t.slots[i].state = stale
			p.t.idle++
			continue
		}
		p.t.remove(i)
	}
}

// refused reports whether code refuses a request as a whole.
func refused(code segment.NLA) bool { return code == refusedRule || code == refusedDisagree }

func (m *machine) refusal(rank int, a Addr, code segment.NLA) error {
	switch code {
	case refusedNotExposed:
		m.stats.Faults++
		return fmt.Errorf("firehose: remote pin of %#x at rank %d: %w", uint64(a), rank, ErrNotExposed)
	case refusedResource:
		return errs.Resource("firehose: remote pin of %#x: rank %d cannot register the memory now", uint64(a), rank)
	case refusedRule, refusedDisagree:
		return errs.BadArg("firehose: rank %d refuses requests of rank %d: its configuration is not the same (%v), or one of them is broken", rank, m.c.Rank, m.agreed)
	}
	m.stats.Violations++
	return errs.BadArg("firehose: remote pin of %#x: rank %d answers with address %#x, which is none", uint64(a), rank, uint64(code))
}

// completePending ends the pending requests that have all they wait for.
func (m *machine) completePending(p *peer) {
	keep := p.pending[:0]
	for _, r := range p.pending {
		if r.missing > 0 {
			keep = append(keep, r)
			continue
		}
		d := ended{Cookie: r.cookie, Err: r.err}
		if r.err == nil {
			d.Pinned = m.region(p, r.first, r.count)
		} else {
			for b := r.first; b < r.first+uint64(r.count); b++ {
				if i := p.t.find(b); p.t.unuse(i) && p.t.slots[i].state == failed {
					p.t.idle--
					p.t.remove(i)
				}
			}
		}
		m.done.Add(d)
		m.spare = append(m.spare, r)
	}
	clear(p.pending[len(keep):])
	p.pending = keep
}

// serve goes on with requests that wait for p's buckets.
func (m *machine) serve(p *peer) {
	for !p.queue.Empty() {
		r := p.queue.First()
		switch m.attempt(p, r.first, r.count, r.cookie) {
		case blocked:
			return
		case granted:
			m.stats.RemoteHits++
			m.done.Add(ended{Cookie: r.cookie, Pinned: m.region(p, r.first, r.count)})
		case issued:
			m.stats.RemoteMisses++
		}
		p.queue.Take()
		m.spare = append(m.spare, r)
	}
}

func (m *machine) request(cookie, first uint64, count int) *request {
	var r *request
	if k := len(m.spare) - 1; k >= 0 {
		r, m.spare = m.spare[k], m.spare[:k]
	} else {
		r = new(request)
	}
	*r = request{cookie: cookie, first: first, count: count}
	return r
}

// Release ends the use of a region. It sends nothing itself, so that it may be
// called in a handler; what may go on because of it is given by NextMessage and
// NextDone.
func (m *machine) Release(r region) error {
	// The usual case: one firehose, without a queue.
	if r.count() == 1 && !r.once() {
		if p := m.known(r.Rank()); p != nil && uint(r.slot()) < uint(len(p.t.slots)) && p.queue.Empty() {
			if s := &p.t.slots[r.slot()]; s.bucket == r.first && s.users > 0 && s.state == present {
				if s.users--; s.users == 0 {
					p.t.idle++
				}
				return nil
			}
		}
	}
	return m.release(r)
}

func (m *machine) release(r region) error {
	if r.Rank() >= m.c.Size || !r.Valid() {
		return errs.BadArg("firehose: release of no region on rank %d: the zero region, or of rank %d of %d", m.c.Rank, r.Rank(), m.c.Size)
	}
	if r.once() {
		return m.releaseOnce(r)
	}
	p := m.peer(r.Rank())
	if p.err != nil {
		return nil // all of it has gone
	}
	for k := range r.count() {
		if i := p.slot(r, k); i == 0 || p.t.slots[i].users == 0 || p.t.slots[i].state != present && p.t.slots[i].state != stale {
			return errs.BadArg("firehose: release of a region of rank %d that is not pinned", r.Rank())
		}
	}
	for k := range r.count() {
		p.t.unuse(p.slot(r, k))
	}
	if !p.queue.Empty() {
		m.serve(p)
	}
	return nil
}

// slot is that of r's bucket k, or 0.
func (p *peer) slot(r region, k uint32) uint32 {
	if i := r.slot(); k == 0 && uint64(i) < uint64(len(p.t.slots)) && p.t.slots[i].bucket == r.first {
		return i
	}
	return p.t.find(r.first + uint64(k))
}

// At gives where to reach address a of the region, and how many bytes from there
// on it is good for: to the end of the bucket.
func (m *machine) At(r region, a Addr) (g Grant, n uint64) {
	if g, n, ok := r.reach(a); ok {
		return g, n
	}
	b := uint64(a) >> m.shift
	if r.once() || b-r.first >= uint64(r.count()) {
		return g, 0
	}
	t := &m.peer(r.Rank()).t
	i := t.find(b)
	if i == 0 {
		return g, 0 // the peer has failed
	}
	off := uint64(a) & (m.c.Bucket - 1)
	g = t.slots[i].grant
	g.NLA += segment.NLA(off)
	return g, m.c.Bucket - off
}

// reach is At for the region's first bucket, or all of what is pinned once.
func (r *region) reach(a Addr) (g Grant, n uint64, ok bool) {
	first, n := r.first<<r.bits(), uint64(1)<<r.bits()
	if r.once() {
		first, n = r.first, r.Len()
	}
	off := uint64(a) - first
	if off >= n || !r.Valid() {
		return g, 0, false
	}
	g = r.grant()
	g.NLA += segment.NLA(off)
	return g, n - off, true
}

// Stale says that an access by way of r faulted: its owner has taken memory
// back. The buckets are not granted again before the owner has been asked anew.
// The caller still releases r.
func (m *machine) Stale(r region) {
	if r.once() || r.Rank() >= m.c.Size {
		return // it will not be granted again
	}
	p := m.peer(r.Rank())
	for k := range r.count() {
		if i := p.slot(r, k); i != 0 && p.t.slots[i].state == present {
			p.t.slots[i].state = stale
		}
	}
}

// Fail says that rank has failed: what waits for it ends with a *PeerError, the
// firehoses to it are gone, and what it held here is free.
func (m *machine) Fail(rank int, cause error) {
	if rank < 0 || rank >= m.c.Size || rank == m.c.Rank {
		return
	}
	p := m.peer(rank)
	if p.err != nil {
		return
	}
	p.err = &errs.PeerError{Rank: rank, Op: "remote pin", Err: cause}
	for i := p.t.first(); i != 0; i = p.t.slots[i].next {
		if st := p.t.slots[i].state; st == present || st == stale {
			m.callLeave(rank, p.t.slots[i].bucket)
		}
	}
	for _, r := range p.pending {
		m.done.Add(ended{Cookie: r.cookie, Err: p.err})
	}
	for _, f := range p.flights.All() {
		if f != nil && f.once {
			m.done.Add(ended{Cookie: f.cookie, Err: p.err})
		}
	}
	for r, ok := p.queue.Take(); ok; r, ok = p.queue.Take() {
		m.done.Add(ended{Cookie: r.cookie, Err: p.err})
	}
	holds := p.holds
	p.t, p.held, p.pending, p.flights, p.holds = table{}, 0, nil, flights{}, index{}
	for _, c := range holds.cells {
		if c.slot != 0 {
			m.unhold(c.slot)
		}
	}
	m.forsake(rank)
}

func (t *table) first() uint32 {
	if len(t.slots) == 0 {
		return 0
	}
	return t.slots[0].next
}
