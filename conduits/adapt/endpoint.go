package adapt

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Endpoint is a Transport with what package adapt adds; see conduits.Endpoint.
type Endpoint struct {
	conduits.OwnMemory
	name       string
	atomic     string // name and ": atomic", for errors
	t          conduits.Transport
	rank, size int
	limits     conduits.Limits
	waiters    *waiters

	receiver conduits.Receiver
	own      segment.View // all of the segment
	rights   segment.Rights
	first    int // rank of the first of views and systems
	views    []segment.View
	systems  [][]byte
	segments []conduits.Attached // by rank
	over     *over               // memory of another conduit; nil if it is this endpoint's
	gifts                        // of t, set in Attach

	attaching        atomic.Bool
	attached, closed atomic.Bool
	poller           atomic.Uintptr // the goroutine that polls, or 0
	rx               sync.Mutex     // held to call Transport.Poll
	again            atomic.Bool    // a call is asked for
	wakes            atomic.Uint64
	owned            conduits.AccessCounts // to this rank's own memory

	mu     sync.Mutex                               // guards what follows; Transport.Send is called with it
	failed bool                                     // the job's failure has ended what was under way
	forged *conduits.PeerError                      // of the rank that has sent a wrong message; the next poll fails it
	peers  []peer                                   // by rank
	late   []int                                    // ranks with a backlog
	queues [conduits.NumClasses]conc.Queue[*letter] // arrived, to be run
	done   conc.Queue[completion]                   // not yet reported
	free   *letter
	slots  []*letter // that are reserved, by Slot.Ref
	idle   []uint32  // slots that are not
	ops    []operation
	spare  []uint32 // of ops
	moving int      // puts and gets that the Transport has to complete
	ahead  int      // of them, those that a message waits for

	notes map[noteKey]note // halves of notification puts that have arrived; nil before the first

	carrying bool // the carrier runs
	gone     bool // the Transport is closed, or about to be
	out      [conduits.TransportWords]uint32
	tally    conduits.Tally // but for what owned has
	faults   uint64
}

// peer is the state of a rank for another one, or for itself.
type peer struct {
	credits [conduits.NumClasses]int   // messages of a class that may be sent to it
	owed    [conduits.NumClasses]int   // of its messages, run since credit was last returned
	queued  [conduits.NumClasses]int   // of its messages, arrived and not yet run; at most Limits.Credits
	backlog [lanes]conc.Queue[*letter] // sent, but for room
	left    bool                       // all that it had sent has been delivered
	used    bool
	number  uint32 // of the last note to it
	early   int    // its notes whose messages have not arrived
}

var (
	_ conduits.Endpoint    = (*Endpoint)(nil)
	_ conduits.Deliverer   = (*Endpoint)(nil)
	_ conduits.Neighbourly = (*Endpoint)(nil)
	_ conduits.Diagnoser   = (*Endpoint)(nil)
)

// Open opens the ranks of a job in this process; the Local of a conduits.Conduit
// returns Endpoints instead, see Local.
type Open func(n int, c conduits.Config) ([]conduits.Transport, error)

// Local makes a conduits.Conduit's Local of open, for the conduit of that name.
func Local(name string, open Open) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		ts, err := open(n, c)
		if err != nil {
			return nil, err
		}
		eps := make([]conduits.Endpoint, len(ts))
		for i, t := range ts {
			eps[i] = New(name, t)
		}
		return eps, nil
	}
}

// New makes the Endpoint of t, which is its own from now on. name is the conduit's.
func New(name string, t conduits.Transport) *Endpoint {
	e := &Endpoint{
		name: name, atomic: name + ": atomic", t: t, rank: t.Rank(), size: t.Size(), limits: t.Limits(),
		waiters: newWaiters(t), peers: make([]peer, t.Size()),
	}
	for i := range e.peers {
		for c := range e.peers[i].credits {
			e.peers[i].credits[c] = e.limits.Credits
		}
	}
	e.first, e.views = e.rank, []segment.View{segment.NewView(nil, 0, segment.RightsAll)}
	return e
}

// NewProcess is New of a rank that is a process, one of mates on this host: it polls for longer
// before it parks if each of them has a processor.
func NewProcess(name string, t conduits.Transport, mates int) *Endpoint {
	e := New(name, t)
	e.waiters.patience = conc.Patience{}
	if conc.HaveProcessors(mates) {
		e.waiters.patience.Set(mostPolls, true)
	}
	return e
}

// Rank is the Transport's.
func (e *Endpoint) Rank() int { return e.rank }

// Size is the number of ranks.
func (e *Endpoint) Size() int { return e.size }

// Conduit is the name that New was given.
func (e *Endpoint) Conduit() string { return e.name }

// Limits are the Transport's.
func (e *Endpoint) Limits() conduits.Limits { return e.limits }

// Stats fills in s.
func (e *Endpoint) Stats(s *conduits.Stats) {
	e.mu.Lock()
	*s = conduits.Stats{Faults: e.faults, Peers: s.Peers[:0]}
	e.owned.Fill(s, e.rank)
	e.tally.Fill(s)
	for i := range e.peers {
		if e.peers[i].used {
			s.PeersUsed++
		}
	}
	e.mu.Unlock()
	s.Parks, s.Wakes = e.waiters.parks.Load(), e.wakes.Load()
}

// Diagnosis counts the messages that the Transport has no room for and the accesses under
// way, and adds the Transport's own Diagnosis if it is a conduits.Diagnoser.
func (e *Endpoint) Diagnosis() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting := 0
	for _, r := range e.late {
		for lane := range e.peers[r].backlog {
			waiting += len(e.peers[r].backlog[lane].All())
		}
	}
	s := fmt.Sprintf("%s: %d messages to %d ranks wait for room, %d puts, gets and atomics are under way",
		e.name, waiting, len(e.late), len(e.ops)-len(e.spare))
	if d, ok := conduits.CapabilityOf[conduits.Diagnoser](e.t); ok {
		s += "; " + d.Diagnosis()
	}
	return s
}

// Attach makes the segment and has the Transport attach it.
func (e *Endpoint) Attach(c conduits.AttachConfig) error { return e.attach(c, nil) }

// attach is Attach, with memory that there is already unless o is nil.
func (e *Endpoint) attach(c conduits.AttachConfig, o *over) (err error) {
	if e.closed.Load() {
		return e.errClosed()
	}
	if err := conduits.CheckAttach(e.name, &c, e.limits.MaxSegment); err != nil {
		return err
	}
	if err := e.Err(); err != nil {
		return err
	}
	if !e.attaching.CompareAndSwap(false, true) {
		return errs.NotReady("%s: rank %d is attached already", e.name, e.rank)
	}
	e.direct, _ = conduits.CapabilityOf[conduits.Direct](e.t)
	var v segment.View
	if e.over = o; o != nil {
		v, err = o.view, e.adopt(o.view)
	} else {
		v, err = e.segment(c.Size)
	}
	if err != nil {
		return err
	}
	e.own, e.rights = v, c.Rights
	e.receiver = c.Receiver
	if o == nil {
		e.Ready(func() segment.ATUConfig {
			mem, _ := v.Bytes(segment.AttachBase, c.Size, c.Size)
			return segment.ATUConfig{Attach: mem, Rights: c.Rights, Lock: c.Lock, Registrar: e.Registrar()}
		})
	}
	if e.segments, err = e.t.Attach(owner{e}, c.Size, c.Rights); err != nil {
		return err
	}
	e.gifts.ask(e.t, o != nil)
	if e.direct != nil {
		e.first, e.views, e.systems = e.direct.Reach()
	} else {
		e.views[0], e.systems = v, [][]byte{conduits.NewSystem()}
	}
	if e.alone != [2]bool{} {
		e.views[0].Atomic = 0
	}
	e.attached.Store(true)
	return nil
}

// Views is the rank's own segment, and those that the Transport has in reach.
func (e *Endpoint) Views() (first int, views []segment.View) { return e.first, e.views }

// Neighbourhoods are the Transport's, or unknown.
func (e *Endpoint) Neighbourhoods() *conduits.Neighbourhoods {
	if n, ok := conduits.CapabilityOf[conduits.Neighbourly](e.t); ok {
		return n.Neighbourhoods()
	}
	return nil
}

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if !e.attached.Load() || uint(rank) >= uint(e.size) {
		return 0
	}
	return e.segments[rank].Size
}

// SegmentRights are the rights of this rank to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	switch {
	case !e.attached.Load() || uint(rank) >= uint(e.size):
		return 0
	case rank == e.rank:
		return segment.RightsAll
	}
	return e.segments[rank].Rights
}

// System is there for the own rank and those in reach.
func (e *Endpoint) System(rank int, area conduits.SystemArea) []byte {
	if i := rank - e.first; uint(i) < uint(len(e.systems)) && area == conduits.SystemWords {
		return e.systems[i]
	}
	return nil
}

// Idle lets others run, until it is time to park.
func (e *Endpoint) Idle(idle int) bool { return e.waiters.idle(idle) }

// Arm announces that the caller is about to park.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket { return e.waiters.arm(b) }

// Disarm takes that back.
func (e *Endpoint) Disarm(t conduits.Ticket) { e.waiters.disarm(t) }

// Park sleeps until something has happened since Arm.
func (e *Endpoint) Park(t conduits.Ticket) {
	if e.poller.Load() == 0 && e.pending() {
		e.waiters.disarm(t)
		return
	}
	e.waiters.parks.Add(1)
	e.waiters.park(t)
}

// Waiting lists what parked goroutines wait for.
func (e *Endpoint) Waiting() []conduits.Blocked { return e.waiters.blocked() }

// Wake makes the parked goroutines of rank look again, of another one by a message
// unless the Transport does it.
func (e *Endpoint) Wake(rank int) {
	if rank == e.rank {
		e.waiters.notify()
		return
	}
	e.wakes.Add(1)
	if !e.attached.Load() { // before that e.kicker is not known
		return
	}
	if e.kicker != nil {
		if !e.closed.Load() {
			e.kicker.KickRank(rank)
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed.Load() && e.attached.Load() && !e.peers[rank].left {
		e.out[0] = header(kindWake, 0, 0)
		e.transmit(rank, e.out[:1], nil)
	}
}

// Now is the Transport's time.
func (e *Endpoint) Now() time.Duration { return e.t.Now() }

// Err is the job's failure, or says that this endpoint is closed.
func (e *Endpoint) Err() error {
	if err := e.t.Err(); err != nil {
		return err
	}
	if e.closed.Load() {
		return e.errClosed()
	}
	return nil
}

func (e *Endpoint) errClosed() error { return errs.Closed("%s: the endpoint is closed", e.name) }

// Fail declares this rank failed.
func (e *Endpoint) Fail(err error) { e.Blame(e.rank, err) }

// Blame declares rank failed.
func (e *Endpoint) Blame(rank int, err error) {
	e.t.Fail(rank, err)
	e.waiters.notify()
}

// Left reports whether rank has left and what it had sent has been run.
func (e *Endpoint) Left(rank int) bool {
	if uint(rank) >= uint(e.size) || !e.attached.Load() {
		return false
	}
	e.mu.Lock()
	left := e.peers[rank].left && !e.runnable()
	e.mu.Unlock()
	// Another goroutine may be running the last of it; it notifies when it has.
	p := e.poller.Load()
	return left && (p == 0 || p == sys.Goroutine()) && e.t.Err() == nil
}

// Close leaves the job. What the Transport has had no room for yet is sent by a
// goroutine, and the Transport closed then: Close waits for no other rank.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	if e.closed.Load() {
		e.mu.Unlock()
		return e.errClosed()
	}
	e.closed.Store(true)
	e.flush()
	later := e.carrying || e.busy()
	if later {
		e.carry()
	}
	e.gone = !later
	e.mu.Unlock()
	if !e.attached.Load() {
		e.t.Fail(e.rank, errors.New("it left the job before it attached"))
	}
	e.waiters.notify()
	err := e.CloseATU()
	if later {
		return err // the carrier closes the Transport
	}
	return errors.Join(err, e.t.Close())
}

// busy reports whether something that was sent has not left yet, with mu held: messages
// that wait for room, or for their data. At the end all puts and gets count, so that
// the Transport is closed with none under way.
func (e *Endpoint) busy() bool {
	return e.t.Err() == nil && (len(e.late) > 0 || e.ahead > 0 || e.closed.Load() && e.moving > 0)
}

// carry has a goroutine send what is busy, since this rank may not poll for a long
// time, with mu held.
func (e *Endpoint) carry() {
	if !e.carrying && !e.gone {
		e.carrying = true
		go e.carrier()
	}
}

// carrier is that goroutine. It ends when there is nothing to send, and closes the
// Transport then if Close could not.
func (e *Endpoint) carrier() {
	for {
		t := e.waiters.arm(carrying{})
		e.receive()
		e.mu.Lock()
		e.carrying = e.busy()
		more, closed := e.carrying, e.closed.Load()
		e.gone = closed && !more
		e.mu.Unlock()
		if more {
			e.waiters.park(t)
			continue
		}
		e.waiters.disarm(t)
		if closed {
			_ = e.t.Close() // Close, which would return the error, has returned
		}
		return
	}
}

// carrying is the reason of the carrier, which is none of the rank's.
type carrying struct{}

func (carrying) Blocked() string { return "sending what there was no room for" }
