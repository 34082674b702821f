package sim

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// MaxDatagram is the largest datagram, bytes: that of UDP over IPv4.
const MaxDatagram = 65507

// Socket is a rank's unreliable datagram socket on the simulated network: what a
// protocol engine has to cope with. Datagrams may be lost, repeated, reordered,
// corrupted, truncated and delayed as Config.Faults says, from the seed. It is
// used by threads of its rank only (see conduits.Run and conduits.Go), and
// instead of, not beside, the endpoint's own messages.
type Socket struct {
	e      *Endpoint
	queued int // bytes
	lost   uint64
	woken  bool
}

// Socket makes the endpoint's rank a user of datagrams.
func (e *Endpoint) Socket() *Socket {
	if e.socket == nil {
		e.socket = &Socket{e: e}
	}
	return e.socket
}

// Endpoint is the endpoint that the socket is of, for conduits.Run and
// conduits.Go.
func (s *Socket) Endpoint() *Endpoint { return s.e }

// Rank is the socket's address, of Size.
func (s *Socket) Rank() int { return s.e.rank }

// Size is the number of ranks.
func (s *Socket) Size() int { return s.e.j.n }

// Send sends a copy of p to rank dst, which may be the own rank. nil does not
// mean that it arrives.
func (s *Socket) Send(dst int, p []byte) error {
	e := s.e
	switch {
	case e.closed:
		return errClosed
	case len(p) > MaxDatagram:
		return errs.BadArg("sim: datagram of %d bytes; the most is %d", len(p), MaxDatagram)
	}
	if err := conduits.CheckRank(e, "sim: send of a datagram", dst); err != nil {
		return err
	}
	j := e.j
	id, m := e.message(dst, conduits.Request, 0)
	m.kind = kindDatagram
	m.data, m.own = j.m.buffer(len(p)), true
	copy(m.data, p)
	at := e.issue(1, 0, j.p.MessageGap, &e.cardFree)
	j.trace.message(e.clock, 's', m)
	j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
	return nil
}

// Recv copies the next datagram that has arrived into p, cut to its length if p
// is shorter. ok is false if there is none; then a little time has passed.
func (s *Socket) Recv(p []byte) (n, src int, ok bool) {
	e := s.e
	j := e.j
	e.sync(e.thread("receive"))
	id := e.in[conduits.Request].take(&j.m)
	if id == 0 {
		e.spend(j.p.Poll)
		return 0, 0, false
	}
	m := j.m.at(id)
	n, src = copy(p, m.data), int(m.src)
	s.queued -= len(m.data)
	e.spend(j.p.Software / 2)
	j.trace.message(e.clock, 'h', m)
	j.m.put(id)
	return n, src, true
}

// Wait returns when a datagram is there, at the time until (of Now), after Wake,
// or when the endpoint is closed or the job has failed; seldom without a reason.
// until 0 means that no time ends it. A caller that waits on for
// long although Endpoint.Err is not nil panics.
func (s *Socket) Wait(until time.Duration) {
	e := s.e
	th := e.thread("wait")
	if e.in[conduits.Request].first != 0 || s.woken || e.closed {
		s.woken = false
		return
	}
	if until > 0 {
		th.until(max(e.clock, Time(min(until, time.Duration(far/Nanosecond)))*Nanosecond))
	}
	e.sleep(th, receiving{})
	th.deadline = 0
	s.woken = false
}

type receiving struct{}

// Blocked describes a socket's wait.
func (receiving) Blocked() string { return "waiting for a datagram" }

// Wake ends the Wait that is under way, or the next one.
func (s *Socket) Wake() {
	s.woken = true
	s.e.notify(false)
}

// Now is the rank's clock.
func (s *Socket) Now() time.Duration { return s.e.Now() }

// Lost is how many datagrams found the socket's buffer full.
func (s *Socket) Lost() uint64 { return s.lost }

// accept takes a datagram that has arrived, if there is room for it.
func (s *Socket) accept(j *Job, m *message) bool {
	if b := j.faults.f.Buffer; b > 0 && s.queued+len(m.data) > b {
		s.lost++
		return false
	}
	s.queued += len(m.data)
	return true
}
