package rendezvous

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// A rank that answers no datagrams may be gone, or cut off, or its runtime may not let the
// goroutine that answers run: a collector that waits for a goroutine which cannot be
// preempted (a long copy or clear by the built-ins, a call of C) stops all others for as
// long. A rank that is about to declare another one dead therefore asks the service for a
// look at it. The service asks that rank to answer by its connection, which takes a
// goroutine of it too, and has its process looked at before and after: by itself on its own
// host, else by [ServerConfig.Process], else by another rank of that host.

// A Sight is the result of a look at a rank.
type Sight struct {
	// Answers: the rank has answered the service, so its goroutines run.
	Answers bool
	// PID is its process; 0 if none could look at it. What follows is of that process.
	PID int
	// State is the process's at the end of the look, see sys.Activity.
	State byte
	// Took is how long the look took, and Ran how long threads of the process have run
	// meanwhile, Delayed how long they have waited for a processor, Faults how many pages
	// they have waited for that came from a disk.
	Took, Ran, Delayed time.Duration
	Faults             uint64
}

// Stopped reports whether the process is stopped by a signal or a debugger.
func (s Sight) Stopped() bool { return sys.Activity{State: s.State}.Stopped() }

// leastShare is which part of a look the threads of a process must have run, or waited for
// a processor: the threads of an idle Go process, which look for work now and then, take
// less than a hundredth.
const leastShare = 20

// Busy reports whether the rank's process runs although the rank answers nothing: its
// runtime is busy with something that lets no goroutine run.
func (s Sight) Busy() bool {
	return !s.Answers && s.PID != 0 && !s.Stopped() && (s.Ran+s.Delayed >= s.Took/leastShare || s.Faults > 0)
}

// String gives the reason of a rank's silence.
func (s Sight) String() string {
	switch {
	case s.Answers:
		return "it answers the rendezvous meanwhile, so it runs, and what is sent between the two by UDP is lost: a firewall or network policy drops it (all ports must be open between the hosts of a job), or a route has changed"
	case s.PID == 0:
		return ""
	case s.Stopped():
		return fmt.Sprintf("its process %d is stopped (state %c), by a signal or a debugger", s.PID, s.state())
	case s.Busy():
		return fmt.Sprintf("its process %d runs (state %c, %v of processor time in %v, %v of waiting for one) and lets no goroutine answer, as while the collector waits for one that cannot be preempted",
			s.PID, s.state(), s.Ran.Round(time.Millisecond), s.Took.Round(time.Millisecond), s.Delayed.Round(time.Millisecond))
	}
	return fmt.Sprintf("its process %d lives and does not run (state %c, %v of processor time in %v)",
		s.PID, s.state(), s.Ran.Round(time.Millisecond), s.Took.Round(time.Millisecond))
}

// state is the process's state as people read it.
func (s Sight) state() byte {
	if s.State == 0 {
		return '?'
	}
	return s.State
}

// isState reports whether b can be a process's state, or is that of none.
func isState(b byte) bool { return b == 0 || b > ' ' && b < 0x7f }

func (s *Sight) append(b []byte) []byte {
	b = append(b, bit(s.Answers))
	b = binary.BigEndian.AppendUint32(b, uint32(s.PID))
	b = append(b, s.State)
	for _, v := range [...]uint64{uint64(s.Took), uint64(s.Ran), uint64(s.Delayed), s.Faults} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func parseSight(b []byte) (s Sight, ok bool) {
	p := parser{b: b}
	a := p.u8()
	s.Answers, s.PID, s.State = a == 1, int(p.u32()), p.u8()
	s.Took, s.Ran, s.Delayed, s.Faults = time.Duration(p.u64()), time.Duration(p.u64()), time.Duration(p.u64()), p.u64()
	return s, p.done() && a <= 1 && isState(s.State)
}

// question is kLook.
type question struct {
	id, rank uint32
	time     uint32 // how long the look may take, ms
	silent   uint32 // how long the rank has been silent, ms; 0: that is not worth a word yet
}

func (q *question) append(b []byte) []byte {
	for _, v := range [...]uint32{q.id, q.rank, q.time, q.silent} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func parseQuestion(b []byte) (q question, ok bool) {
	p := parser{b: b}
	q = question{p.u32(), p.u32(), p.u32(), p.u32()}
	return q, p.done()
}

// echo is kEcho: from the service a number to be sent back at once, and the process of the
// same host to be looked at, or 0; from a rank the number, and the state of that process.
type echo struct {
	number, pid uint32
	seen        sys.Activity
}

func (e *echo) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, e.number), e.pid)
	b = append(b, e.seen.State)
	for _, v := range [...]uint64{uint64(e.seen.Ran), uint64(e.seen.Delayed), e.seen.Faults} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func parseEcho(b []byte) (e echo, ok bool) {
	p := parser{b: b}
	e.number, e.pid, e.seen.State = p.u32(), p.u32(), p.u8()
	e.seen.Ran, e.seen.Delayed, e.seen.Faults = time.Duration(p.u64()), time.Duration(p.u64()), p.u64()
	return e, p.done() && isState(e.seen.State)
}

// processes names the processes that this one sees: those of ranks for which it is equal
// know each other by their numbers.
func processes() uint64 {
	h := fnv.New64a()
	h.Write([]byte(ThisHost()))
	return h.Sum64()
}

// Look asks the service for a look at a rank that does not answer this one, which may take
// limit. silent is for how long it has not; if that is not 0, the service tells the user of
// a rank that is busy.
func (c *Client) Look(ctx context.Context, rank int, limit, silent time.Duration) (Sight, error) {
	ms := func(d time.Duration) uint32 { return uint32(min(max(d.Milliseconds(), 0), 1<<31)) }
	q := question{rank: uint32(rank), time: ms(limit), silent: ms(silent)}
	data, err := c.ask(ctx, fmt.Sprintf("a look at rank %d", rank), kLook, func(id uint32) func([]byte) []byte {
		q.id = id
		return q.append
	})
	if err != nil {
		return Sight{}, err
	}
	s, ok := parseSight(data)
	if !ok {
		return s, errs.Resource("rendezvous: a sight of rank %d that is not well-formed", rank)
	}
	return s, nil
}

// echoed answers the service's kEcho.
func (c *Client) echoed(body []byte) bool {
	e, ok := parseEcho(body)
	if !ok {
		return false
	}
	if e.pid != 0 {
		if e.seen, ok = sys.ReadActivity(int(e.pid)); !ok {
			e.pid = 0
		}
	}
	c.send(kEcho, e.append)
	return true
}

// mostLook bounds how long a look takes.
const mostLook = time.Minute

// A look is one that the service has begun; further ranks that ask for one at the same rank
// get its result.
type look struct {
	askers []waiter
	silent time.Duration // the longest that an asker has told
}

// look begins a look for p, or joins one. The lock is held.
func (s *Server) look(p *peer, q question) {
	if int(q.rank) >= s.c.Size {
		s.answer(p, answer{id: q.id, v: badArg, data: []byte("a look at a rank that there is not")})
		return
	}
	silent := time.Duration(q.silent) * time.Millisecond
	if l := s.looks[int(q.rank)]; l != nil {
		l.askers = append(l.askers, waiter{p, q.id})
		l.silent = max(l.silent, silent)
		return
	}
	l := &look{askers: []waiter{{p, q.id}}, silent: silent}
	s.looks[int(q.rank)] = l
	limit := min(time.Duration(q.time)*time.Millisecond, mostLook)
	go func() {
		sight := s.see(int(q.rank), limit)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.looks, int(q.rank))
		data := sight.append(nil)
		for _, w := range l.askers {
			s.answer(w.p, answer{id: w.id, data: data})
		}
		if told := s.busyTold[int(q.rank)]; sight.Busy() && l.silent > 0 && l.silent >= 2*told && s.c.Note != nil && s.failed == nil {
			s.busyTold[int(q.rank)] = l.silent
			go s.c.Note(int(q.rank), fmt.Sprintf("has not answered for %v and is waited for: %v", l.silent.Round(100*time.Millisecond), sight))
		}
	}()
}

// see looks at a rank for limit, or until it answers.
func (s *Server) see(rank int, limit time.Duration) (r Sight) {
	from := time.Now()
	observe := s.observer(rank, limit)
	before, pid, known := observe()
	answered := s.echo(rank, 0)
	end := time.NewTimer(limit)
	defer end.Stop()
	select {
	case _, r.Answers = <-answered:
	case <-end.C:
	case <-s.done:
	}
	s.forgetEcho(answered)
	if after, _, ok := observe(); known && ok {
		r.PID, r.State = pid, after.State
		r.Ran, r.Delayed = max(after.Ran-before.Ran, 0), max(after.Delayed-before.Delayed, 0)
		r.Faults = max(after.Faults, before.Faults) - before.Faults
	}
	r.Took = time.Since(from)
	return r
}

// observer returns what looks at the process of a rank.
func (s *Server) observer(rank int, limit time.Duration) func() (a sys.Activity, pid int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seat := &s.seats[rank]
	pid, neighbour := int(seat.pid), -1
	if seat.processes == s.processes {
		return func() (sys.Activity, int, bool) {
			a, ok := sys.ReadActivity(pid)
			return a, pid, ok && pid > 0
		}
	}
	for p := range s.peers {
		if q := &s.seats[p.rank]; p.rank != rank && q.processes == seat.processes && q.state != Left && q.state != Failed {
			neighbour = p.rank
			break
		}
	}
	return func() (a sys.Activity, pid int, ok bool) {
		if s.c.Process != nil {
			if a, pid, ok = s.c.Process(rank); ok {
				return a, pid, ok
			}
		}
		if pid = int(seat.pid); neighbour < 0 || pid <= 0 {
			return a, pid, false
		}
		came := s.echo(neighbour, uint32(pid))
		end := time.NewTimer(limit)
		defer end.Stop()
		defer s.forgetEcho(came)
		select {
		case e := <-came:
			return e.seen, pid, e.pid != 0
		case <-end.C:
		case <-s.done:
		}
		return a, pid, false
	}
}

// echo sends a rank a kEcho, whose answer the channel gets.
func (s *Server) echo(rank int, pid uint32) chan echo {
	came := make(chan echo, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers {
		if p.rank == rank && s.seats[rank].state != Left {
			s.lastEcho++
			s.echoes[s.lastEcho] = came
			p.echoes = append(p.echoes, echo{number: s.lastEcho, pid: pid})
			p.out.kick()
		}
	}
	return came
}

// forgetEcho gives up waiting for one.
func (s *Server) forgetEcho(came chan echo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.echoes {
		if c == came {
			delete(s.echoes, n)
		}
	}
}

// echoed takes a rank's answer. The lock is held.
func (s *Server) echoed(e echo) {
	if came := s.echoes[e.number]; came != nil {
		delete(s.echoes, e.number)
		came <- e
	}
}
