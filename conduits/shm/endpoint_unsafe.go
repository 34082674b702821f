package shm

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Endpoint is one rank's mailbox and segment; see conduits.Endpoint.
type Endpoint struct {
	// The parts. Each names those that it uses: the mailbox memory and
	// lifecycle, the waiter the mailbox's bell, memory the lifecycle, desk and answers the
	// bell and the lifecycle. What needs more of them is the Endpoint's: polling
	// (poll_unsafe.go), operations on memory (rma_unsafe.go, registered_unsafe.go), long
	// messages (long_unsafe.go), parking, and the ways into the job and out of it.
	//
	// A lane has its own mailbox and waiter, by value, so that sends and polls reach their
	// fields without a step more. It shares the others with the rank's other lanes.
	mailbox
	seat
	waiter
	*common
}

// common has the parts that the lanes of a rank share.
type common struct {
	lifecycle
	memory
	desk    desk
	answers answers
	checks  checks
}

func newEndpoint(j *job, rank int) *Endpoint {
	// A rank whose processes cannot do their half of the asymmetric fence makes
	// all ranks do theirs; told before Attach, so before the first message.
	if conc.PlainRelease && !sys.HasMembarrier() {
		atomic.StoreUint32(j.h32(hdrFence), 1)
	}
	at := seat{j: j, rank: rank, first: j.first, here: j.place(rank)}
	e := newLane(at, new(common))
	life, mem, bell := &e.lifecycle, &e.memory, &e.mailbox.bell
	life.seat, life.start = at, time.Now()
	if j.lanes > 1 {
		newLanes(e)
	}

	mem.seat, mem.life, mem.vpid = at, life, uint16(min(rank, segment.AnyVPID))
	e.desk.seat, e.desk.life, e.desk.bell, e.desk.vpid = at, life, bell, mem.vpid
	e.answers.seat, e.answers.life, e.answers.bell, e.answers.mem = at, life, bell, mem
	e.checks.seat, e.checks.life, e.checks.bell = at, life, bell
	e.checks.sent = make([]uint32, len(e.opened))
	mem.accessed = make([]atomic.Pointer[conduits.AccessCounts], j.span)
	if j.local == nil {
		mem.units = unsafe.Pointer(j.unit(rank, 0))
		mem.peers = make([]atomic.Pointer[peer], j.span)
		mem.present()
		e.answers.desks = make([]unsafe.Pointer, j.n)
	}
	return e
}

// newLane makes the parts that a lane has for itself.
func newLane(at seat, c *common) *Endpoint {
	e := &Endpoint{seat: at, common: c}
	j, bell := at.j, &e.mailbox.bell
	bell.seat, bell.parked = at, at.word(at.rank, ctlParked)
	bell.asleep = bell.parked
	bell.fence = conc.PlainRelease && atomic.LoadUint32(j.h32(hdrFence)) != 0 // Attach looks again

	box := &e.mailbox
	box.life, box.mem, box.spins = &c.lifecycle, &c.memory, spins
	box.out = make([]atomic.Pointer[outRing], conduits.NumClasses*j.span)
	box.openSeq = at.word(at.rank, ctlOpenSeq)
	box.opened = make([]uint32, (j.n+31)/32)
	for c := range box.msg {
		box.msg[c].Class = conduits.Class(c)
	}

	w := &e.waiter
	w.seat, w.bell = at, bell
	if !j.crowded {
		w.patience.Set(conc.LooksOf(mostSpins, j.n), false)
	}
	return e
}

// Attach publishes the segment and waits for all ranks to do so.
func (e *Endpoint) Attach(c conduits.AttachConfig) error {
	if err := conduits.CheckAttach("shm", &c, uint64(e.j.segment)); err != nil {
		return err
	}
	switch {
	case e.Err() != nil:
		return e.Err()
	case !e.attached.CompareAndSwap(false, true):
		return errs.NotReady("shm: rank %d is attached already", e.rank)
	}
	if e.j.local != nil {
		err := checkLocal(c.Size)
		if err == nil && e.j.local.outside {
			err = e.j.reserve(e.rank, c.Size)
		}
		if err != nil {
			e.attached.Store(false)
			return err
		}
	}
	e.receiver = c.Receiver
	if e.lanes != nil {
		e.lanes.open = c.Lane
	}
	*(*uint64)(unsafe.Add(e.j.ctl(e.rank), ctlSegment)) = c.Size
	*e.j.c32(e.rank, ctlRights) = uint32(c.Rights)
	atomic.StoreUint32(e.j.c32(e.rank, ctlState), uint32(conduits.RankAttached))
	e.checks.offer = conduits.AttachConfig{Size: c.Size, Rights: c.Rights}
	e.j.watched(e)
	all := e.j.h32(hdrAttached)
	if atomic.AddUint32(all, 1) == uint32(e.j.n) {
		e.j.rouseAll()
	}
	for i := 0; atomic.LoadUint32(all) != uint32(e.j.n); i++ {
		if e.Idle(i) {
			continue
		}
		t := e.Arm(attaching{e})
		if err := e.Err(); err != nil {
			e.Disarm(t)
			return err
		}
		if atomic.LoadUint32(all) == uint32(e.j.n) {
			e.Disarm(t)
			break
		}
		e.Park(t)
	}
	e.fence = conc.PlainRelease && atomic.LoadUint32(e.j.h32(hdrFence)) != 0
	views := make([]segment.View, e.j.span)
	e.sizes, e.rights = make([]uint64, e.j.span), make([]segment.Rights, e.j.span)
	for k := range e.j.n {
		r := e.j.rank(k)
		i := r - e.first
		size := *(*uint64)(unsafe.Add(e.j.ctl(r), ctlSegment))
		if e.j.local == nil && size > uint64(e.j.segment) { // no rank of ours writes that
			e.Blame(r, fmt.Errorf("its segment is said to have %d bytes, of at most %d", size, e.j.segment))
			return e.Err()
		}
		e.sizes[i], e.rights[i] = size, segment.Rights(*e.j.c32(r, ctlRights))
		views[i] = segment.NewView(e.j.segmentBase(r), size, e.rights[i])
		// A rank's own accesses are not restricted by what it grants to others.
		if r == e.rank {
			views[i] = segment.NewView(views[i].Base, size, segment.RightsAll)
		}
	}
	e.views, e.window = views, slices.Clone(views)
	e.checks.all.Store(true)
	own := views[e.rank-e.first]
	e.Ready(func() segment.ATUConfig {
		u := e.atuConfig(own, &c)
		if r := e.hooks.Registrar; r != nil && u.Registrar != nil {
			u.Registrar = registrars{u.Registrar, r}
		} else if r != nil {
			u.Registrar = r
		}
		return u
	})
	if e.hooks.Attached != nil {
		return e.hooks.Attached(own, c)
	}
	return nil
}

// checkLocal refuses a segment that the Go heap could not give.
func checkLocal(size uint64) error {
	addresses := sys.AddressRoom(true)
	addresses.Free = max(addresses.Free-conduits.RuntimeAddresses, 0)
	if r := sys.Narrowest(sys.MemoryRoom(false), addresses); size > uint64(r.Free) {
		return errs.Resource("shm: a segment of %d bytes: %v; -segment, ARGON_SEGMENT", size, r)
	}
	return nil
}

// attaching names the ranks that Attach waits for.
type attaching struct{ e *Endpoint }

func (a attaching) Blocked() string {
	var late []int
	for i := range a.e.j.n {
		r := a.e.j.rank(i)
		if conduits.RankState(atomic.LoadUint32(a.e.j.c32(r, ctlState))) == conduits.RankStarting {
			late = append(late, r)
		}
	}
	if len(late) > 8 {
		return fmt.Sprintf("attach: waiting for ranks %v and %d more", late[:8], len(late)-8)
	}
	return fmt.Sprintf("attach: waiting for ranks %v", late)
}

// Stats fills in s.
func (e *Endpoint) Stats(s *conduits.Stats) {
	*s = conduits.Stats{
		Faults: e.faults.Load(),

		SystemCalls: e.calls.Load(),
		Asked:       e.desk.asked.Load(),

		Peers: s.Peers[:0],
	}
	for i := range e.accessed {
		if c := e.accessed[i].Load(); c != nil {
			c.Fill(s, e.memory.first+i)
		}
	}
	for e := range e.each() {
		s.Parks += e.parks.Load()
		s.Wakes += e.wakes.Load()
		peers := s.PeersUsed
		s.PeersUsed = 0
		e.tally(s)
		s.PeersUsed = max(s.PeersUsed, peers)
	}
	s.Peers = conduits.MergePeers(s.Peers)
}

// Waiting lists the reasons of the goroutines that sleep.
func (e *Endpoint) Waiting() []conduits.Blocked {
	var list []conduits.Blocked
	for e := range e.each() {
		list = append(list, e.waiting.All()...)
	}
	return list
}

// Arm announces a sleeper.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket { return e.arm(b, e.inHandler()) }

// Disarm takes the announcement back when no other goroutine has made one.
func (e *Endpoint) Disarm(t conduits.Ticket) { e.disarm(t, e.inHandler()) }

// inHandler reports whether the caller is in a handler of this lane, where there are others.
func (e *Endpoint) inHandler() bool { return e.lanes != nil && e.Polling() }

// Park sleeps until woken.
func (e *Endpoint) Park(t conduits.Ticket) {
	if e.Polling() {
		// A handler that waits to reply: its PollReplies looked at every ring.
		e.nested.Add(1)
		e.sleep(t)
		e.nested.Add(-1)
	} else if e.mayPark() {
		e.sleep(t)
	}
	e.Disarm(t)
}

// mayPark reports whether an armed caller may sleep. The poll that it did since Arm
// does not tell: it looked at some of the rings only, or at none, because another
// goroutine was polling, which may have passed a ring just before a message came
// into it from a sender that saw no goroutine parked.
func (e *Endpoint) mayPark() bool {
	if !e.lock.TryLock() {
		// A poller that sleeps in a handler wakes us after it (ran); any other
		// is soon done.
		if e.nested.Load() > 0 {
			return e.lanes == nil || e.lanes.quiet(e.lane)
		}
		e.j.yield()
		return false
	}
	quiet := e.quiet()
	e.lock.Unlock()
	return quiet && (e.lanes == nil || e.lanes.quiet(e.lane))
}

// Left reports whether rank has left and its rings are empty.
func (e *Endpoint) Left(rank int) bool {
	if !e.j.has(rank) || conduits.RankState(atomic.LoadUint32(e.j.c32(rank, ctlState))) != conduits.RankFinished {
		return false
	}
	// Its messages were in its rings before its state was written.
	if e.lanes != nil && e.lanes.unknown() {
		return false
	}
	for e := range e.each() {
		for !e.lock.TryLock() {
			if e.nested.Load() > 0 || e.Polling() {
				return false // the poller wakes us when its handler returns
			}
			e.j.yield()
		}
		empty := e.emptied(rank)
		e.lock.Unlock()
		if !empty {
			return false
		}
	}
	return true
}

// Close leaves the job. The memory stays mapped: goroutines may still hold
// pointers into it. It waits for no handler: if another goroutine polls meanwhile,
// what it finds before it looks around may still be replied to.
func (e *Endpoint) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	if e.lanes != nil {
		e.j.unwatched(e.lanes.all[0].Load())
	} else {
		e.j.unwatched(e)
	}
	err := e.CloseATU()
	if e.j.local == nil {
		e.leaveUnits()
		e.answers.stopServing()
	}
	e.leave()
	if e.hooks.Closed != nil {
		err = errors.Join(err, e.hooks.Closed())
	}
	return err
}

// leave tells the others.
func (e *Endpoint) leave() {
	for e := range e.each() {
		e.shutRequests()
		// Rings of replies belong to the poller. If that is another goroutine, which
		// may be in a handler for long, it shuts them when it next looks around.
		if e.lock.TryLock() {
			e.shutReplies()
			e.lock.Unlock()
		} else if e.Polling() {
			e.shutReplies()
		}
	}
	e.j.growth.close()
	state := e.j.c32(e.rank, ctlState)
	if atomic.LoadUint32(state) == uint32(conduits.RankStarting) {
		// The others would wait for it for ever.
		e.j.fail(e.here, e.rank, 1, "it left the job before it attached")
		return
	}
	atomic.CompareAndSwapUint32(state, uint32(conduits.RankAttached), uint32(conduits.RankFinished))
	e.j.rouseAll()
}
