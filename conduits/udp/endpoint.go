package udp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sleepers"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Endpoint is one rank's socket, engine and segment; see conduits.Endpoint.
type Endpoint struct {
	conduits.OwnMemory
	rank, size int
	c          control
	l          link
	limits     conduits.Limits
	patience   int // Idle

	receiver conduits.Receiver
	mem      mapping
	views    [1]segment.View
	system   []byte

	poller atomic.Uintptr // the goroutine that polls, or 0

	// mu guards the engine and what follows. Nothing that may switch to another
	// rank of a simulation is called with it held.
	mu      sync.Mutex
	eng     *engine.Engine
	turns   uint64        // calls of progress
	out     *outbox       // of the goroutine that sends
	sending bool          // there is one
	most    int           // bytes of a datagram
	ticking bool          // tick runs, for messages that wait for company
	until   time.Duration // when the goroutine in watch returns; 0: none is in it, or it has been woken
	stages  []*stage
	free    []uint32
	sent    [conduits.NumClasses]uint64
	got     [conduits.NumClasses]uint64

	loop loopback

	inMu sync.Mutex // held to receive
	in   inbox
	// While the socket is never found empty: bytes received since floodAt.
	flood   int
	floodAt time.Duration

	spare []*inbox // of a simulation, where one goroutine runs at a time
	atEnd func()   // see AtEnd

	attached, closed    atomic.Bool
	failed              atomic.Pointer[conduits.PeerError] // the job's failure, once this rank has heard of it
	puts, gets, atomics atomic.Uint64
	parks, wakes        atomic.Uint64
	sealing             *sealing // nil: nothing protects datagrams

	// Waiting. seq changes with whatever may end a wait.
	seq      atomic.Uint32
	armed    atomic.Int32
	waitMu   sync.Mutex
	cond     sync.Cond
	watching bool // one of the parked is in link.Wait
	waiting  sleepers.List[conduits.Blocked]
	single   bool // one goroutine runs at a time: a simulation

	// A rank that is a process.
	client   *rendezvous.Client
	att      *attendant
	standing bool // watching, and it is the attendant
	rested   bool // the attendant looks seldom
}

// stage is a message that is reserved.
type stage struct {
	words   [conduits.MaxWords]uint32
	nwords  int
	long    bool
	payload []byte
	data    []byte
	to      segment.NLA
	cookie  uint64
	early   bool // SourceDone has been reported
}

var (
	_ conduits.Endpoint  = (*Endpoint)(nil)
	_ conduits.Deliverer = (*Endpoint)(nil)
	_ conduits.Diagnoser = (*Endpoint)(nil)
)

var errClosed = errs.Closed("udp: the endpoint is closed")

// immediate is how many bytes ReservePut copies.
const immediate = 256

// newEndpoint makes the endpoint of c.Rank of c.Size. a may be nil.
func newEndpoint(ctl control, l link, limits conduits.Limits, a *sealing, c engine.Config) (*Endpoint, error) {
	e := &Endpoint{rank: c.Rank, size: c.Size, c: ctl, l: l, limits: limits, sealing: a}
	if a != nil {
		c.Sealer = a
	}
	e.cond.L = &e.waitMu
	c.MaxMedium = limits.MaxMedium
	// Twice what is promised: a datagram that returns some may be lost.
	c.Credits = 2 * limits.Credits
	c.Memory = memory{e}
	var err error
	if e.eng, err = engine.New(c); err != nil {
		return nil, err
	}
	e.out, e.most = newOutbox(), e.eng.Config().Datagram
	e.views[0] = segment.NewView(nil, 0, segment.RightsAll)
	return e, nil
}

// memory is the endpoint as its engine sees it.
type memory struct{ e *Endpoint }

func (m memory) Target(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, bool) {
	e := m.e
	if src != e.rank && (!e.attached.Load() || e.mem.rights&need != need) {
		return nil, false
	}
	return e.mem.bytes(a, n)
}

func (m memory) Atomic(src int, a segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) (uint64, error) {
	if b, ok := m.Target(src, a, uint64(t.Size()), segment.RightAtomic); ok {
		return apply(b, op, t, x, y), nil
	}
	b, u, err := m.Access(src, a, uint64(t.Size()), segment.RightAtomic)
	if err != nil {
		return 0, err
	}
	var old uint64
	if !segment.Touch(b, func() { old = apply(b, op, t, x, y) }) {
		err = segment.Gone(src, a, uint64(t.Size()), segment.RightAtomic)
	}
	u.Exit()
	return old, err
}

func (m memory) Access(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, *segment.Unit, error) {
	return conduits.Access(m.atu(), src, a, n, need)
}

// atu is nil as long as nothing can be registered.
func (m memory) atu() *segment.ATU {
	if !m.e.attached.Load() {
		return nil
	}
	return m.e.mem.atu()
}

func (m memory) Registrations() uint64 {
	if t := m.atu(); t != nil {
		return t.Registrations()
	}
	return 0
}

func (m memory) Since(a segment.NLA, n, count uint64) bool { return m.atu().Since(a, n, count) }

// Rank is this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size is the number of ranks.
func (e *Endpoint) Size() int { return e.size }

// Conduit is "udp".
func (e *Endpoint) Conduit() string { return Name }

// Limits are those of the job.
func (e *Endpoint) Limits() conduits.Limits { return e.limits }

// Authentication is what protects datagrams.
func (e *Endpoint) Authentication() string {
	if e.sealing == nil {
		return "none"
	}
	switch m := e.sealing.s.Mode(); m {
	case seal.None:
		return m.String()
	default:
		return "AES-128-GCM, " + m.String()
	}
}

// Datagram is the most bytes of a datagram, with what sealing adds and without the
// headers of UDP and IP.
func (e *Endpoint) Datagram() int { return e.most }

// Refused counts the datagrams that were refused because they are of nobody in
// the job, by reason. All zero if nothing protects datagrams.
func (e *Endpoint) Refused() seal.Counts {
	if e.sealing == nil {
		return seal.Counts{}
	}
	return e.sealing.refused()
}

// mostAwaited is how many peers a diagnosis names.
const mostAwaited = 8

// Diagnosis says what the protocol has to do with, which peers something is awaited
// from and when they were heard, and which datagrams were refused.
func (e *Endpoint) Diagnosis() string {
	e.mu.Lock()
	x := e.eng.Stats()
	drained := e.eng.Drained()
	awaited := e.eng.Awaited(e.l.Now())
	name := e.eng.Config().Name
	e.mu.Unlock()
	s := fmt.Sprintf("udp: %d peers met, %d datagrams sent (%d again, %d time-outs), %d received (%d twice, %d damaged, %d of another run, %d out of turn)",
		x.Peers, x.Sent, x.Again, x.Timeouts, x.Received, x.Twice, x.Malformed, x.Stale, x.Beyond)
	if x.Faults+x.Refused > 0 {
		s += fmt.Sprintf(", %d accesses refused by peers, %d of theirs", x.Faults, x.Refused)
	}
	if !drained {
		s += ", not all that was sent has been acknowledged"
	}
	for i, a := range awaited {
		who := fmt.Sprintf("rank %d", a.Rank)
		if name != nil {
			who = name(a.Rank)
		}
		switch {
		case i == mostAwaited:
			s += fmt.Sprintf(", and of %d more ranks", len(awaited)-i)
		case i > mostAwaited:
		case a.Heard < 0:
			s += fmt.Sprintf(", awaits something of %s, never heard", who)
		default:
			s += fmt.Sprintf(", awaits something of %s, heard %v ago", who, a.Heard.Round(time.Millisecond))
		}
	}
	if r := e.Refused(); r.Total() > 0 {
		s += ", refused: " + describe(r)
	}
	return s
}

// describe lists the counts that are not zero.
func describe(c seal.Counts) string {
	var s []string
	for _, n := range []struct {
		why   seal.Reason
		count uint64
	}{
		{seal.TooShort, c.TooShort},
		{seal.Malformed, c.Malformed},
		{seal.WrongDestination, c.WrongDestination},
		{seal.UnknownRank, c.UnknownRank},
		{seal.OldIncarnation, c.OldIncarnation},
		{seal.BadTag, c.BadTag},
		{seal.Replayed, c.Replayed},
		{seal.TooOld, c.TooOld},
	} {
		if n.count > 0 {
			s = append(s, fmt.Sprintf("%d %v", n.count, n.why))
		}
	}
	return strings.Join(s, ", ")
}

// Rendezvous is the connection to the job's rendezvous, or nil if the ranks are
// in one process. It is the endpoint's: to be used, not closed.
func (e *Endpoint) Rendezvous() *rendezvous.Client { return e.client }

// Board is Rendezvous for a conduit that this one is a part of.
func (e *Endpoint) Board() conduits.Board {
	if e.client == nil {
		return nil // not a nil *rendezvous.Client
	}
	return e.client
}

// Stats fills in s.
func (e *Endpoint) Stats(s *conduits.Stats) {
	*s = conduits.Stats{
		Puts: e.puts.Load(), Gets: e.gets.Load(), Atomics: e.atomics.Load(),
		Parks: e.parks.Load(), Wakes: e.wakes.Load(),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.eng.Stats()
	s.Sent, s.Received, s.NoCredit, s.PeersUsed = e.sent, e.got, x.NoCredit, x.Peers
	s.Refused, s.Faults = e.Refused().Total(), x.Unheard+e.loop.unheard
	s.NoCredit += e.loop.noCredit
	if e.loop.used {
		s.PeersUsed++
	}
}

// AttachOver is Attach with memory that the caller has, all of v, as the segment,
// and with the address translation unit that atu returns, or nil as long as there
// is none, for registered memory: ATU of this endpoint is not ready then. Both
// stay the caller's and must outlive the endpoint's use. c.Size is v's.
func (e *Endpoint) AttachOver(v segment.View, atu func() *segment.ATU, c conduits.AttachConfig) error {
	if c.Size != v.Size() {
		return errs.BadArg("udp: attach of %d bytes over memory of %d", c.Size, v.Size())
	}
	if e.attached.Load() {
		return errs.NotReady("udp: rank %d is attached already", e.rank)
	}
	e.mem = mapping{view: v, atu: atu, given: true}
	return e.Attach(c)
}

// Attach waits until all ranks have attached.
func (e *Endpoint) Attach(c conduits.AttachConfig) error {
	if e.closed.Load() {
		return errClosed
	}
	if err := conduits.CheckAttach("udp", &c, e.limits.MaxSegment); err != nil {
		return err
	}
	switch {
	case e.Err() != nil:
		return e.Err()
	case e.attached.Load():
		return errs.NotReady("udp: rank %d is attached already", e.rank)
	}
	if err := e.mem.attach(e, c.Size, c.Rights); err != nil {
		return err
	}
	if !e.mem.given {
		e.mem.atu = e.MadeATU
		e.Ready(func() segment.ATUConfig {
			own, _ := e.mem.bytes(segment.AttachBase, c.Size)
			return segment.ATUConfig{Attach: own, Rights: c.Rights, Lock: c.Lock}
		})
	}
	e.receiver = c.Receiver
	e.views[0] = e.mem.view
	e.system = conduits.NewSystem()
	e.attached.Store(true)
	if err := e.c.attach(c.Size, c.Rights); err != nil {
		return err
	}
	for !e.c.open() {
		t := e.Arm(e.c)
		e.progress() // others may be ahead; what is theirs is run after Attach
		if err := e.Err(); err != nil {
			e.Disarm(t)
			return err
		}
		if e.c.open() {
			e.Disarm(t)
			break
		}
		e.Park(t)
	}
	return nil
}

// Views is the rank's own segment.
func (e *Endpoint) Views() (first int, views []segment.View) { return e.rank, e.views[:] }

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if uint(rank) >= uint(e.size) || !e.c.open() {
		return 0
	}
	size, _ := e.c.segment(rank)
	return size
}

// SegmentRights is what this rank may do to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	switch {
	case uint(rank) >= uint(e.size) || !e.c.open():
		return 0
	case rank == e.rank:
		return segment.RightsAll
	}
	_, rights := e.c.segment(rank)
	return rights
}

// System is there for the own rank only.
func (e *Endpoint) System(rank int) []byte {
	if rank != e.rank {
		return nil
	}
	return e.system
}

func (e *Endpoint) checkLengths(words, payload int) {
	if uint(words) > conduits.MaxWords || uint(payload) > uint(e.limits.MaxMedium) {
		panic(fmt.Sprintf("udp: message of %d words and %d bytes; limits %d and %d", words, payload, conduits.MaxWords, e.limits.MaxMedium))
	}
}

// stage finds a place for a message, with mu held.
func (e *Endpoint) stage(words int) (uint32, *stage) {
	n := len(e.free)
	if n == 0 {
		e.stages = append(e.stages, new(stage))
		e.free = append(e.free, uint32(len(e.stages)-1))
		n = 1
	}
	id := e.free[n-1]
	e.free = e.free[:n-1]
	s := e.stages[id]
	s.nwords = words
	return id, s
}

func (e *Endpoint) unstage(id uint32) {
	s := e.stages[id]
	s.long, s.early, s.data = false, false, nil
	e.free = append(e.free, id)
}

// Reserve stages a message.
func (e *Endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	e.checkLengths(words, payload)
	e.mu.Lock()
	defer e.mu.Unlock()
	if st := e.room(dst, c); st != conduits.Ready {
		return conduits.Slot{}, st
	}
	id, s := e.stage(words)
	slot := conduits.Slot{Words: s.words[:words:words], Ref: uint64(id)}
	if payload > 0 {
		if s.payload == nil {
			s.payload = make([]byte, e.limits.MaxMedium)
		}
		slot.Payload = s.payload[:payload:payload]
	}
	return slot, conduits.Ready
}

// ReservePut stages a message that data goes ahead of, when it is committed.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.checkLengths(words, 0)
	if n := uint64(len(data)); n > 0 && (conduits.CheckRemote(e, "udp", dst, to, n) != nil ||
		e.SegmentRights(dst)&segment.RightWrite == 0 && conduits.InSegment(e, dst, to, n)) {
		panic("udp: put to an address that was not checked")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if st := e.room(dst, c); st != conduits.Ready {
		return conduits.Slot{}, 0, st
	}
	id, s := e.stage(words)
	s.long, s.to, s.data, s.cookie = true, to, data, cookie
	ev := conduits.Event(0)
	if len(data) <= immediate {
		if s.payload == nil {
			s.payload = make([]byte, e.limits.MaxMedium)
		}
		s.data = s.payload[:copy(s.payload, data)]
		s.early = true
		ev = conduits.SourceDone
	}
	return conduits.Slot{Words: s.words[:words:words], Ref: uint64(id)}, ev, conduits.Ready
}

// Commit sends a staged message.
func (e *Endpoint) Commit(dst int, c conduits.Class, slot conduits.Slot, tag conduits.Tag, payload int) {
	if dst == e.rank {
		e.commitSelf(c, uint32(slot.Ref), tag, payload)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	id := uint32(slot.Ref)
	s := e.stages[id]
	e.sent[c]++
	if s.long {
		if ev := e.eng.SendLong(dst, c, tag, s.words[:s.nwords], s.to, s.data, s.cookie); ev != 0 && !s.early {
			e.eng.Complete(engine.Completion{Cookie: s.cookie, Event: ev})
		}
	} else {
		e.eng.Send(dst, c, tag, s.words[:s.nwords], s.payload[:payload])
	}
	e.unstage(id)
	e.flush()
}

// commitSelf is Commit of a message to this rank.
func (e *Endpoint) commitSelf(c conduits.Class, id uint32, tag conduits.Tag, payload int) {
	e.mu.Lock()
	s := e.stages[id]
	e.sent[c]++
	if s.long {
		e.sendSelfLong(c, tag, s.words[:s.nwords], s.to, s.data)
		if !s.early {
			e.eng.Complete(engine.Completion{Cookie: s.cookie, Event: conduits.SourceDone})
		}
	} else {
		e.sendSelf(c, tag, s.words[:s.nwords], s.payload[:payload])
	}
	e.unstage(id)
	e.mu.Unlock()
	e.notify()
}

// Cancel forgets a staged message.
func (e *Endpoint) Cancel(dst int, c conduits.Class, slot conduits.Slot) {
	e.mu.Lock()
	id := uint32(slot.Ref)
	s := e.stages[id]
	if dst == e.rank {
		e.loop.open[c]--
	} else {
		e.eng.Cancel(dst, c)
	}
	if s.long && !s.early {
		e.eng.Complete(engine.Completion{Cookie: s.cookie, Event: conduits.SourceDone})
	}
	e.unstage(id)
	e.mu.Unlock()
	e.notify() // others may wait for the credit
}

// checkTarget is what the initiator of op, such as "udp: put", can know.
func (e *Endpoint) checkTarget(op string, dst int, a segment.NLA, n uint64, need segment.Rights) error {
	if err := e.Err(); err != nil {
		return err
	}
	if err := conduits.CheckRemote(e, op, dst, a, n); err != nil {
		return err
	}
	if dst == e.rank {
		return nil
	}
	if _, rights := e.c.segment(dst); rights&need != need && conduits.InSegment(e, dst, a, n) {
		return errs.BadArg("%s: rank %d attached its segment without the right to it (%v)", op, dst, need)
	}
	return nil
}

// Put copies src to dst's segment or registered memory.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if err := e.checkTarget("udp: put", dst, to, uint64(len(src)), segment.RightWrite); err != nil {
		return 0, err
	}
	return e.put(dst, to, src, want, cookie)
}

func (e *Endpoint) put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if dst == e.rank {
		if b, ok := e.mem.bytes(to, uint64(len(src))); ok {
			copy(b, src)
		} else if err := e.own("put", to, uint64(len(src)), segment.RightWrite, func(b []byte) { copy(b, src) }); err != nil {
			return 0, err
		}
		e.notify()
		return want, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(dst) {
		return 0, e.departed("put", dst)
	}
	ev, err := e.eng.Put(dst, to, src, want, cookie)
	e.flush()
	return ev, err
}

// own has f access memory that this rank itself has registered.
func (e *Endpoint) own(op string, a segment.NLA, n uint64, need segment.Rights, f func(b []byte)) error {
	if n == 0 {
		return nil
	}
	b, u, err := memory{e}.Access(e.rank, a, n, need)
	if err != nil {
		return conduits.Fault("udp: "+op, e.rank, err)
	}
	if !segment.Touch(b, func() { f(b) }) {
		err = conduits.Fault("udp: "+op, e.rank, segment.Gone(e.rank, a, n, need))
	}
	u.Exit()
	return err
}

// Get copies from src's segment or registered memory.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.gets.Add(1)
	if err := e.checkTarget("udp: get", src, from, uint64(len(dst)), segment.RightRead); err != nil {
		return 0, err
	}
	if src == e.rank {
		if b, ok := e.mem.bytes(from, uint64(len(dst))); ok {
			copy(dst, b)
		} else if err := e.own("get", from, uint64(len(dst)), segment.RightRead, func(b []byte) { copy(dst, b) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(src) {
		return 0, e.departed("get", src)
	}
	ev, err := e.eng.Get(dst, src, from, want, cookie)
	e.flush()
	return ev, err
}

// PutWord puts a word.
func (e *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(to)%uint64(n) != 0 {
		return 0, errs.BadArg("udp: put of a word: %d bytes at %v: 1, 2, 4 or 8, aligned", n, to)
	}
	if err := e.checkTarget("udp: put of a word", dst, to, uint64(n), segment.RightWrite); err != nil {
		return 0, err
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return e.put(dst, to, b[:n], want, cookie)
}

// Atomic performs an operation on dst's segment or registered memory.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	e.atomics.Add(1)
	if err := conduits.CheckAtomic("udp: atomic", op, t, to); err != nil {
		return 0, 0, err
	}
	if err := e.checkTarget("udp: atomic", dst, to, uint64(t.Size()), segment.RightAtomic); err != nil {
		return 0, 0, err
	}
	if dst == e.rank {
		old, err := memory{e}.Atomic(e.rank, to, op, t, a, b)
		if err != nil {
			return 0, 0, conduits.Fault("udp: atomic", e.rank, err)
		}
		e.notify()
		return old, conduits.RemoteDone, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.gone(dst) {
		return 0, 0, e.departed("atomic", dst)
	}
	err := e.eng.Atomic(dst, to, op, t, a, b, cookie)
	e.flush()
	return 0, 0, err
}

// Fence does nothing: there is no direct access.
func (e *Endpoint) Fence() {}

// Wake makes rank's parked goroutines look again; ranks of a job in one process
// are reached without a datagram.
func (e *Endpoint) Wake(rank int) {
	if rank != e.rank {
		e.wakes.Add(1)
	}
	e.c.wake(rank)
}

// Waiting lists the reasons of the goroutines that sleep.
func (e *Endpoint) Waiting() []conduits.Blocked {
	e.waitMu.Lock()
	defer e.waitMu.Unlock()
	return e.waiting.All()
}

// Now is the link's time.
func (e *Endpoint) Now() time.Duration { return e.l.Now() }

// Err is the job's failure.
func (e *Endpoint) Err() error {
	if f := e.failed.Load(); f != nil {
		return f
	}
	if e.closed.Load() {
		return errClosed
	}
	return e.l.Err()
}

// Fail declares this rank failed.
func (e *Endpoint) Fail(err error) {
	e.c.fail(e.rank, err)
	e.hear()
	e.notify()
}

// Blame declares rank failed, because of what the caller knows of it otherwise.
func (e *Endpoint) Blame(rank int, err error) {
	e.c.fail(rank, err)
	e.hear()
	e.notify()
}

// Left says whether rank has left, and what it had sent has been run: a rank says
// that it leaves when all of that has been acknowledged, so the engine has it.
func (e *Endpoint) Left(rank int) bool {
	if uint(rank) >= uint(e.size) || !e.c.settled(rank) {
		return false
	}
	e.mu.Lock()
	pending := e.eng.Pending()
	e.mu.Unlock()
	// Another goroutine may run the last of it; it wakes us when it has.
	p := e.poller.Load()
	return !pending && (p == 0 || p == sys.Goroutine())
}

// RepliesBeside is PollReplies for a caller that is in a handler of another conduit,
// one that nobody runs a handler of this one beside. Goroutines that have armed are told
// only if something was run: of requests that wait they hear when that handler ends.
func (e *Endpoint) RepliesBeside() int {
	if e.closed.Load() || !e.poller.CompareAndSwap(0, sys.Goroutine()) {
		return 0
	}
	n := e.PollReplies()
	e.poller.Store(0)
	return n
}

// Failure is Err for a caller that does not poll, and would not hear of it.
func (e *Endpoint) Failure() error {
	if e.hear() {
		e.notify()
	}
	return e.Err()
}

// Close leaves the job.
func (e *Endpoint) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	if !e.attached.Load() {
		e.Fail(errors.New("it left the job before it attached"))
	}
	e.c.leave()
	e.c.stay(e)
	return e.CloseATU()
}

// end gives back the memory of a rank of a job that has ended. No operation refers to
// it afterwards.
func (e *Endpoint) end() {
	e.mu.Lock()
	for e.sending { // by a goroutine that began before Close
		e.mu.Unlock()
		runtime.Gosched()
		e.mu.Lock()
	}
	e.eng.Fail(errClosed)
	e.views[0].Shut() // before what it shows is gone
	e.views[0] = segment.View{}
	e.mem.end()
	e.mu.Unlock()
}

// AtEnd has f called when the job, whose ranks are all in this process, has ended
// without failing: all of its endpoints are closed, and none has to do with their memory
// any more. That is a moment after the last Close. To be called before Attach; f must not
// use endpoints.
func (e *Endpoint) AtEnd(f func()) { e.atEnd = f }

// part notes that rank has left.
func (e *Endpoint) part(rank int) {
	e.mu.Lock()
	e.eng.Part(rank)
	e.mu.Unlock()
}

// departed is what operations on a rank that has left end with; mu is held.
func (e *Endpoint) departed(op string, rank int) error {
	e.hearLocked() // if it left because it failed, then that comes first
	if f := e.failed.Load(); f != nil {
		return f
	}
	return &conduits.PeerError{Rank: rank, Op: "udp: " + op, Err: errLeft}
}

var errLeft = errors.New("it has left the job")

// discard drops what has arrived, for nobody runs it any more, and says whether
// all that this rank has sent has arrived.
func (e *Endpoint) discard() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ok := e.eng.NextCompletion(); ok; _, ok = e.eng.NextCompletion() {
	}
	for c := range conduits.Class(conduits.NumClasses) {
		for m := e.eng.NextMessage(c); m != nil; m = e.eng.NextMessage(c) {
			e.eng.Release(m)
		}
		for m := e.nextSelf(c); m != nil; m = e.nextSelf(c) {
			e.releaseSelf(m)
		}
	}
	e.flush()
	return e.eng.Drained()
}
