package udp

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Endpoint is one rank's socket, engine and segment; see conduits.Endpoint.
type Endpoint struct {
	// The parts. Each reaches those before it alone: the driver lifecycle and waiter, the
	// mailbox the driver and mem. What needs more of them is the Endpoint's: operations on
	// remote memory (rma.go), parking, and the ways into the job and out of it.
	lifecycle
	waiter
	driver
	mem memory
	mailbox

	conduits.OwnMemory
	owned   conduits.AccessCounts // to this rank's own memory
	sealing *sealing              // nil: nothing protects datagrams
	client  *rendezvous.Client    // of a rank that is a process, as is att
	att     *attendant
}

var (
	_ conduits.Endpoint  = (*Endpoint)(nil)
	_ conduits.Deliverer = (*Endpoint)(nil)
	_ conduits.Diagnoser = (*Endpoint)(nil)
)

// newEndpoint makes the endpoint of c.Rank of c.Size. a may be nil.
func newEndpoint(ctl control, l link, limits conduits.Limits, a *sealing, c engine.Config) (*Endpoint, error) {
	e := &Endpoint{sealing: a}
	if a != nil {
		c.Sealer = a
	}
	c.MaxMedium = limits.MaxMedium
	// Twice what is promised: a datagram that returns some may be lost.
	c.Credits = 2 * limits.Credits
	c.Memory = &e.mem
	eng, err := engine.New(c)
	if err != nil {
		return nil, err
	}
	e.lifecycle.rank, e.size, e.c = c.Rank, eng.Config().Ranks, ctl
	e.link, e.cond.L = l, &e.waitMu
	e.l, e.life, e.w = l, &e.lifecycle, &e.waiter
	e.eng, e.out, e.most = eng, newOutbox(), eng.Config().Datagram
	if a != nil && a.most == 0 {
		a.most = e.most
	}
	e.mem.rank, e.mem.views[0] = c.Rank, segment.NewView(nil, 0, segment.RightsAll)
	limits.Datagram, limits.Authentication = e.most, a.name()
	e.d, e.mailbox.mem, e.limits = &e.driver, &e.mem, limits
	return e, nil
}

// Conduit is "udp".
func (e *Endpoint) Conduit() string { return Name }

// Limits are those of the job.
func (e *Endpoint) Limits() conduits.Limits { return e.limits }

// Refused counts the datagrams that were refused because they are of no rank of
// the job, by reason. All zero if nothing protects datagrams.
func (e *Endpoint) Refused() seal.Counts {
	if e.sealing == nil {
		return seal.Counts{}
	}
	return e.sealing.refused()
}

// mostAwaited is how many peers a diagnosis names.
const mostAwaited = 8

// Diagnosis lists the protocol's counts, the peers that something is awaited from and when
// they were heard, and the datagrams that were refused.
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
		{seal.OtherIncarnation, c.OtherIncarnation},
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
	*s = conduits.Stats{Parks: e.parks.Load(), Wakes: e.wakes.Load(), Peers: s.Peers[:0]}
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.eng.Stats()
	e.owned.Fill(s, e.rank)
	e.eng.Again(func(rank int, n uint64) { s.Count(&conduits.PeerStats{Rank: rank, Resent: n}) })
	e.tally.Fill(s)
	s.PeersUsed, s.Refused, s.Faults = x.Peers, e.Refused().Total(), x.Unheard+e.loop.unheard
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
	if e.mem.attached.Load() {
		return errs.NotReady("udp: rank %d is attached already", e.rank)
	}
	e.mem.seg = mapping{view: v, atu: atu, given: true}
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
	case e.mem.attached.Load():
		return errs.NotReady("udp: rank %d is attached already", e.rank)
	}
	if err := e.mem.seg.attach(e, c.Size, c.Rights); err != nil {
		return err
	}
	if !e.mem.seg.given {
		e.mem.seg.atu = e.MadeATU
		e.Ready(func() segment.ATUConfig {
			own, _ := e.mem.seg.bytes(segment.AttachBase, c.Size)
			return segment.ATUConfig{Attach: own, Rights: c.Rights, Lock: c.Lock}
		})
	}
	e.receiver = c.Receiver
	e.mem.views[0] = e.mem.seg.view
	e.mem.system = conduits.NewSystem()
	e.mem.attached.Store(true)
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
func (e *Endpoint) Views() (first int, views []segment.View) { return e.rank, e.mem.views[:] }

// System is there for the own rank only.
func (e *Endpoint) System(rank int, area conduits.SystemArea) []byte {
	if rank != e.rank || area != conduits.SystemWords {
		return nil
	}
	return e.mem.system
}

// Park sleeps until something comes that t has not seen; see waiter.sleep.
func (e *Endpoint) Park(t conduits.Ticket) {
	defer e.Disarm(t)
	if e.poller.Load() == 0 && e.pending() {
		return
	}
	e.mu.Lock()
	e.push()
	until := e.deadline()
	e.mu.Unlock()
	e.parks.Add(1)
	if e.single {
		if e.seq.Load() == t.Seq {
			e.l.Wait(until)
		}
		return
	}
	e.sleep(t, &e.driver)
}

// Left reports whether rank has left and its messages have been run: a rank leaves when all
// of them have been acknowledged, so the engine has them.
func (e *Endpoint) Left(rank int) bool {
	if uint(rank) >= uint(e.size) || !e.c.allArrived(rank) {
		return false
	}
	e.mu.Lock()
	pending := e.eng.Pending()
	e.mu.Unlock()
	// Another goroutine may run the last of it; it wakes us when it has.
	p := e.poller.Load()
	return !pending && (p == 0 || p == sys.Goroutine())
}

// Close leaves the job.
func (e *Endpoint) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	if !e.mem.attached.Load() {
		e.Fail(errors.New("it left the job before it attached"))
	}
	e.c.leave()
	e.c.stay(e)
	return e.CloseATU()
}

// freeMemory gives back the memory of a rank of a job that has ended. No operation refers to
// it afterwards.
func (e *Endpoint) freeMemory() {
	e.mu.Lock()
	for e.sending { // by a goroutine that began before Close
		e.mu.Unlock()
		runtime.Gosched()
		e.mu.Lock()
	}
	e.eng.Fail(errClosed)
	e.mem.views[0].Shut() // before what it shows is gone
	e.mem.views[0] = segment.View{}
	e.mem.seg.unmap()
	e.mu.Unlock()
}
