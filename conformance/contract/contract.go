// Package contract checks each promise of package conduits on bare endpoints: the
// group "contract" of package conformance. It is also what checks are made of:
// jobs that are watched while they run, ranks that fail a test, and the report. It
// knows no layer above conduits; the checks of those are conformance's, which runs
// both.
package contract

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Checks are the promises of package conduits, on bare endpoints. They
// assume nothing beyond them: any message may overtake any other, nothing
// completes at once, and "no credit" may be the answer although there is room.
var Checks = slices.Concat(
	attachChecks,
	messageChecks,
	selfChecks,
	peerChecks,
	creditChecks,
	rmaChecks,
	registeredChecks,
	wakeChecks,
	endChecks,
	moreChecks,
	rulesOfContract,
)

// sizesOfJobs are the numbers of ranks that checks run with.
var sizesOfJobs = []int{1, 2, 3, 5}

// sink is the Receiver of a rank. It checks what holds for whatever arrives.
type sink struct {
	p        *Peer
	receive  func(m *conduits.Message) // nil: nothing may come
	complete func(cookie uint64, ev conduits.Event, value uint64, err error)
	// beyond is the rank's own memory beyond its segment at an address, or nil.
	beyond func(a segment.NLA, n int) []byte

	// How many of each kind run now, and whether the handler of a request polls
	// for replies.
	running [conduits.NumClasses + 1]atomic.Int32
	nested  atomic.Bool
	// Messages given to this rank, by class.
	got [conduits.NumClasses]atomic.Int64
}

const completing = conduits.NumClasses // index of completions in sink.running

// enter checks that nothing runs that must not run now.
func (s *sink) enter(kind int) {
	if n := s.running[kind].Add(1); n != 1 {
		s.p.Errorf("%d runs of the Receiver of kind %d at once", n, kind)
	}
	if kind == int(conduits.Request) {
		if s.running[conduits.Reply].Load() != 0 || s.running[completing].Load() != 0 {
			s.p.Errorf("a request runs inside a reply or a completion, or beside it")
		}
	} else {
		if s.running[conduits.Reply].Load()+s.running[completing].Load() != 1 {
			s.p.Errorf("a reply and a completion run at once")
		}
		if s.running[conduits.Request].Load() != 0 && !s.nested.Load() {
			s.p.Errorf("a reply or completion runs beside a request that does not poll for replies")
		}
	}
	if sys.HasGoroutine && !s.p.EP.Polling() {
		s.p.Errorf("Polling says no to a handler")
	}
}

// memory is the rank's memory at a.
func (s *sink) memory(a segment.NLA, n int) []byte {
	if s.beyond != nil && !conduits.InSegment(s.p.EP, s.p.Rank, a, uint64(n)) {
		return s.beyond(a, n)
	}
	return memory(s.p.EP, s.p.Rank, a, n)
}

func (s *sink) exit(kind int) { s.running[kind].Add(-1) }

// Receive checks the shape of a message.
func (s *sink) Receive(m *conduits.Message) {
	if m.Class >= conduits.NumClasses {
		s.p.Errorf("a message of class %d", m.Class)
		return
	}
	s.enter(int(m.Class))
	defer s.exit(int(m.Class))
	switch {
	case s.receive == nil:
		s.p.Errorf("a message that was not sent: %+v", m)
		return
	case m.Src < 0 || m.Src >= s.p.Size:
		s.p.Errorf("a message from rank %d", m.Src)
		return
	case m.Tag>>conduits.TagBits != 0:
		s.p.Errorf("a tag of more than %d bits: %#x", conduits.TagBits, m.Tag)
	case m.To == 0 && len(m.Payload) > 0 && !aligned(m.Payload, 8):
		s.p.Errorf("a medium payload that is not aligned to 8 bytes")
	case m.To != 0 && len(m.Payload) > 0 && !same(m.Payload, s.memory(m.To, len(m.Payload))):
		s.p.Errorf("a long payload that is not the memory at %v", m.To)
	}
	s.got[m.Class].Add(1)
	s.receive(m)
}

// Complete hands on.
func (s *sink) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	s.enter(completing)
	defer s.exit(completing)
	if s.complete == nil {
		s.p.Errorf("completion %d of an operation that was not begun: cookie %#x, error %v", ev, cookie, err)
		return
	}
	s.complete(cookie, ev, value, err)
}

// pollReplies is for handlers of requests.
func (s *sink) pollReplies() int {
	s.nested.Store(true)
	n := s.p.EP.PollReplies()
	s.nested.Store(false)
	return n
}

// await repeats cond in the handler of a request until it holds, running replies
// and completions; false means that the job has failed.
func (s *sink) await(what string, cond func() bool) bool {
	ep := s.p.EP
	defer s.p.step()
	for idle := 0; ; {
		if cond() {
			return true
		}
		if s.pollReplies() > 0 {
			idle = 0
			continue
		}
		if ep.Idle(idle) {
			idle++
			continue
		}
		t := ep.Arm(Waiting(what))
		if cond() {
			ep.Disarm(t)
			return true
		}
		if s.pollReplies() > 0 {
			ep.Disarm(t)
			idle = 0
			continue
		}
		if err := ep.Err(); err != nil {
			ep.Disarm(t)
			if !s.p.C.Failed() {
				s.p.Errorf("in a handler: %v", err)
			}
			return false
		}
		ep.Park(t)
		idle = 0
	}
}

// attach attaches a segment of so many bytes, rounded up, and waits until all
// ranks know that they are attached.
func (p *Peer) attach(size int, s *sink) {
	p.C.Helper()
	s.p = p
	p.Must(p.EP.Attach(conduits.AttachConfig{Size: Pages(size), Receiver: s}))
	p.Up()
	p.Meet()
}

// linger polls for a while, to see what ought not to come.
func (p *Peer) linger() {
	for range 50 {
		p.EP.Poll()
	}
}

// pause lets others run for a moment that differs from call to call, so that the
// steps of one rank meet those of another in every order. With poll, it may run
// handlers: a simulator switches ranks only then.
func (p *Peer) pause(poll bool) {
	if _, ok := conduits.As[conduits.Runner](p.EP); ok {
		if poll {
			for range p.RNG.IntN(3) {
				p.EP.Poll()
			}
		}
		return
	}
	switch p.RNG.IntN(5) {
	case 0:
	case 1:
		runtime.Gosched()
	case 2: // long enough for a whole step of another rank
		for range p.RNG.IntN(4) {
			runtime.Gosched()
		}
	default:
		for range p.RNG.IntN(200) {
			pauses.Add(1)
		}
	}
}

var pauses atomic.Uint64

// yield waits for cond where nothing of the endpoint may be used, as before
// Attach. A simulator, whose ranks do not run by themselves, is not waited for.
func (p *Peer) yield(cond func() bool) {
	if _, ok := conduits.As[conduits.Runner](p.EP); ok {
		return
	}
	for !cond() && !p.C.Failed() {
		runtime.Gosched()
	}
}

// yieldOnce lets other goroutines of the test run.
func (p *Peer) yieldOnce() {
	if !p.C.Offer.Runner {
		runtime.Gosched()
	}
}
