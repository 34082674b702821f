package hybrid

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Config has the parts of an endpoint.
type Config struct {
	// Near reaches the ranks of this host, by their numbers in the job. It is the
	// endpoint's from New on, and so is Far. Its Conduit is the name of the whole.
	Near conduits.NearEndpoint
	// Far reaches all ranks of the job.
	Far conduits.FarEndpoint
	// Neighbourhoods are the ranks of each host.
	Neighbourhoods *conduits.Neighbourhoods
	// Limits are equal on all ranks of the job, and no larger than what any rank's
	// Near and Far have. What they say of datagrams is Far's.
	Limits conduits.Limits
}

// Endpoint is one rank's two endpoints; see conduits.Endpoint.
type Endpoint struct {
	// Fields that every operation reads, together.
	first, n uint   // ranks first to first+n-1 may be near
	here     []bool // which of them are; nil if all
	near     conduits.NearEndpoint
	far      conduits.FarEndpoint

	// When to look at far; see due. Written by the poller.
	turn   uint64        // messages that near has run
	looked uint64        // time of the last look, or 0 to look again at once
	afar   uint64        // 1 if far brought the last message
	arming atomic.Int32  // goroutines between Arm and Park or Disarm
	looks  atomic.Uint64 // looks begun
	idled  atomic.Uint64 // looks when the last wait began
	nested atomic.Int32  // handlers that are parked

	// Guarded by near's being polled: what uses these is a handler of near.
	inFar      bool // and in one of far
	sleep      conduits.Ticket
	parkNested func()
	pollFar    func() int // lookFar, made once: a closure at each look would be allocated

	mu       sync.Mutex
	waits    []wait          // by Ticket.Slot
	next     conduits.Ticket // of far, for the watcher
	hasNext  bool
	watching bool          // the watcher is in far's Park, or on its way
	handed   chan struct{} // tells the watcher of next; nil until it runs
	stopped  bool

	rank, size     int
	limits         conduits.Limits
	neighbourhoods *conduits.Neighbourhoods
	failed         atomic.Pointer[conduits.PeerError] // the first failure seen here
	made           atomic.Pointer[conduits.JobMemory] // by this process, until all have joined it
	attached       atomic.Bool
	closed         atomic.Bool
}

var _ conduits.Wrapping = (*Endpoint)(nil)

var errClosed = errs.Closed("hybrid: the endpoint is closed")

// New makes one endpoint of two that are not attached yet.
func New(c Config) (*Endpoint, error) {
	if r := c.Near.Rank(); r != c.Far.Rank() || c.Near.Size() != c.Far.Size() {
		return nil, errs.BadArg("hybrid: rank %d of %d here is rank %d of %d there", r, c.Near.Size(), c.Far.Rank(), c.Far.Size())
	}
	rank, size, near := c.Near.Rank(), c.Near.Size(), c.Near.Ranks()
	if h := c.Neighbourhoods; h.Size() != size || !slices.Equal(h.Ranks(h.Of(rank)), near) {
		return nil, errs.BadArg("hybrid: ranks %s of %d are none of the neighbourhoods that begin with %v", conduits.RankList(near), size, c.Neighbourhoods.Firsts())
	}
	first := near[0]
	span := near[len(near)-1] - first + 1
	var here []bool
	if span > len(near) {
		here = make([]bool, span)
		for _, r := range near {
			here[r-first] = true
		}
	}
	e := &Endpoint{
		first: uint(first), n: uint(span), here: here, near: c.Near, far: c.Far,
		rank: rank, size: size, limits: c.Limits, neighbourhoods: c.Neighbourhoods,
	}
	far := c.Far.Limits()
	e.limits.Datagram, e.limits.Authentication = far.Datagram, far.Authentication
	// A rank that accesses its neighbours' memory directly, and does not poll, does not
	// hear of other hosts by itself.
	c.Near.Hook(conduits.Hooks{Look: func() { _ = e.hear() }, Registrar: c.Far.Registrar()})
	e.pollFar = e.lookFar
	e.parkNested = func() {
		e.inFar = true
		e.near.Park(e.sleep)
		e.inFar = false
	}
	return e, nil
}

// isNear reports whether rank is on this host.
func (e *Endpoint) isNear(rank int) bool {
	i := uint(rank) - e.first
	return i < e.n && (e.here == nil || e.here[i])
}

// Rank is this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size is the number of ranks of the job.
func (e *Endpoint) Size() int { return e.size }

// Conduit is the name of the conduit that is made of the two.
func (e *Endpoint) Conduit() string { return e.near.Conduit() }

// Limits are the limits that both conduits keep on all hosts.
func (e *Endpoint) Limits() conduits.Limits { return e.limits }

// Neighbourhoods are the ranks of each host.
func (e *Endpoint) Neighbourhoods() *conduits.Neighbourhoods { return e.neighbourhoods }

// Abilities are those that both conduits have together. Lanes, and what a card does for all
// ranks, end at the host.
func (e *Endpoint) Abilities() conduits.Abilities {
	var g conduits.Diagnoser
	if _, ok := conduits.As[conduits.Diagnoser](e.far); ok {
		g = e
	}
	return conduits.Offer(nil, e, g, e, nil, nil)
}

// Stats adds up both conduits' figures. Goroutines park in near only.
func (e *Endpoint) Stats(s *conduits.Stats) {
	var f conduits.Stats
	if s.Peers != nil {
		f.Peers = []conduits.PeerStats{}
	}
	e.near.Stats(s)
	e.far.Stats(&f)
	for c := range s.Sent {
		s.Sent[c] += f.Sent[c]
		s.Received[c] += f.Received[c]
	}
	s.NoCredit += f.NoCredit
	s.Resent += f.Resent
	s.Puts += f.Puts
	s.Gets += f.Gets
	s.Atomics += f.Atomics
	s.Wakes += f.Wakes
	s.PeersUsed += f.PeersUsed
	s.Refused += f.Refused
	s.Faults += f.Faults
	if s.Peers != nil {
		s.Peers = conduits.MergePeers(append(s.Peers, f.Peers...))
	}
}

// Views is the table from the lowest to the highest rank of this host.
func (e *Endpoint) Views() (first int, views []segment.View) { return e.near.Views() }

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if e.isNear(rank) {
		return e.near.SegmentSize(rank)
	}
	return e.far.SegmentSize(rank)
}

// SegmentRights returns this rank's rights to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	if e.isNear(rank) {
		return e.near.SegmentRights(rank)
	}
	return e.far.SegmentRights(rank)
}

// System is there for the ranks of this host.
func (e *Endpoint) System(rank int, area conduits.SystemArea) []byte {
	return e.near.System(rank, area)
}

// Send sends a short message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	if e.isNear(dst) {
		return e.near.Send(dst, c, tag, words)
	}
	return e.far.Send(dst, c, tag, words)
}

// SendPayload sends a medium message, or a long one.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if e.isNear(dst) {
		return e.near.SendPayload(dst, c, tag, words, payload, to)
	}
	return e.far.SendPayload(dst, c, tag, words, payload, to)
}

// Reserve claims room for a message.
func (e *Endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	if e.isNear(dst) {
		return e.near.Reserve(dst, c, words, payload)
	}
	return e.far.Reserve(dst, c, words, payload)
}

// ReservePut claims room for a message that data goes ahead of.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	if e.isNear(dst) {
		return e.near.ReservePut(dst, c, words, to, data, cookie)
	}
	return e.far.ReservePut(dst, c, words, to, data, cookie)
}

// Commit sends a reserved message.
func (e *Endpoint) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	if e.isNear(dst) {
		e.near.Commit(dst, c, s, tag, payload)
		return
	}
	e.far.Commit(dst, c, s, tag, payload)
}

// Cancel gives the room back.
func (e *Endpoint) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	if e.isNear(dst) {
		e.near.Cancel(dst, c, s)
		return
	}
	e.far.Cancel(dst, c, s)
}

// Post makes an access by the conduit that reaches its rank. What both do to one word
// composes: the rank that it belongs to performs the atomics of other hosts, with the
// instructions that its neighbours use.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if e.isNear(a.Rank) {
		return e.near.Post(a)
	}
	return e.far.Post(a)
}

// ATU is near's.
func (e *Endpoint) ATU() (*segment.ATU, error) { return e.near.ATU() }

// MapMemory maps what neighbours reach best.
func (e *Endpoint) MapMemory(n uint64) ([]byte, error) { return e.near.MapMemory(n) }

// UnmapMemory is the end of MapMemory.
func (e *Endpoint) UnmapMemory(mem []byte) error { return e.near.UnmapMemory(mem) }

// Wake makes rank's parked goroutines look again.
func (e *Endpoint) Wake(rank int) {
	if e.isNear(rank) {
		e.near.Wake(rank)
		return
	}
	e.far.Wake(rank)
}

// Waiting lists what goroutines of this rank are parked for: in near, except that
// Attach waits in far, too.
func (e *Endpoint) Waiting() []conduits.Blocked {
	l := e.near.Waiting()
	if e.attached.Load() {
		return l
	}
	for _, b := range e.far.Waiting() {
		if conduits.Awaited(b) != (watching{}) {
			l = append(l, b)
		}
	}
	return l
}

// Now is the shared memory's time.
func (e *Endpoint) Now() time.Duration { return e.near.Now() }
