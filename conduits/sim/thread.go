package sim

import (
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// thread is a goroutine of a rank: a coroutine that the job resumes when its
// time has come.
type thread struct {
	e        *Endpoint
	id       uint32
	state    threadState
	unsynced uint8   // polls since the rest of the job came up
	put      bool    // woken by an access to the segment, not by a message
	next     uint32  // in e.parked
	sibling  *thread // in e.threads
	deadline Time    // when it stops waiting; 0: never; see until
	timer    Time    // when the event for it comes; 0: none will
	timerNo  uint64  // and its number, since threads' numbers are used again
	hopeless uint32  // times it went to sleep although the job had failed
	waits    uint32  // that have begun, see asleep
	g        uintptr
	resume   func() (struct{}, bool)
	end      func() // see Job.abandon
	yield    func(struct{}) bool
	blocked  conduits.Blocked
}

type threadState uint8

const (
	ready   threadState = iota // an event will resume it
	running                    // the one that runs
	parked                     // waits for something to arrive
	over
)

// start makes a thread of e that runs f from time at on.
func (j *Job) start(e *Endpoint, at Time, f func()) {
	var th *thread
	if n := len(j.idle); n > 0 {
		id := j.idle[n-1]
		j.idle = j.idle[:n-1]
		th = &thread{e: e, id: id}
		j.threads[id] = th
	} else {
		th = &thread{e: e, id: uint32(len(j.threads))}
		j.threads = append(j.threads, th)
	}
	th.sibling, e.threads = e.threads, th
	j.live++
	th.resume, th.end = iter.Pull(func(yield func(struct{}) bool) {
		// th and f alone are kept for every rank.
		th.yield, th.g = yield, sys.Goroutine()
		th.e.j.running.Store(th)
		// Also when f ends its goroutine or panics, which resume passes on.
		defer func() {
			if p := recover(); p != nil {
				// Passed on it would lose its stack.
				defer panic(&PanicError{Rank: th.e.rank, Value: p, Stack: debug.Stack()})
			}
			e := th.e
			j := e.j
			th.state, th.blocked = over, nil
			j.live--
			e.forget(th)
			j.threads[th.id] = nil
			j.idle = append(j.idle, th.id)
			if e.poller == th {
				e.poller = nil
			}
		}()
		if th.e.crashed {
			return
		}
		f()
	})
	j.schedule(at, evRun, uint64(th.id))
}

// forget takes th out of its rank's list.
func (e *Endpoint) forget(th *thread) {
	at := &e.threads
	for *at != th {
		at = &(*at).sibling
	}
	*at = th.sibling
}

// run resumes th until it parks, waits for time to pass, or ends.
func (j *Job) run(th *thread) {
	if e := th.e; e.clock < j.now {
		e.clock = j.now
	}
	j.trace.note(j.now, 'r', uint64(th.e.rank), uint64(th.id))
	th.state = running
	j.current = th
	if th.yield != nil { // else it has no goroutine yet
		j.running.Store(th)
	}
	if j.last != th {
		j.last = th
		j.turns++
	}
	// Made here, for the allocator needs more stack than the threads have to have.
	if len(j.pool) == 0 {
		j.pool = append(j.pool, new(conduits.Message))
	}
	th.resume()
	j.current = nil
}

// stop gives the processor back to the job; the thread goes on when it is
// resumed. A thread of a rank that has crashed does not.
func (th *thread) stop() {
	th.unsynced = 0
	th.yield(struct{}{})
	if th.e.dead() {
		runtime.Goexit()
	}
}

// dead reports whether threads of the rank do not go on.
func (e *Endpoint) dead() bool { return e.crashed || e.j.abandoned }

// PanicError is the value that RunRanks panics with if a rank panics.
type PanicError struct {
	Rank  int
	Value any    // of the rank's panic
	Stack []byte // of it
}

// Error is the panic's value, with the stack that it came from.
func (p *PanicError) Error() string {
	return fmt.Sprintf("sim: rank %d: panic: %v\n\n%s", p.Rank, p.Value, p.Stack)
}

// Unwrap is the panic's value, if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// abandon ends all threads, those that wait by runtime.Goexit so that what they
// have deferred runs, after a panic has ended the job.
func (j *Job) abandon() {
	j.abandoned = true
	for _, th := range j.threads {
		if th == nil {
			continue
		}
		begun := th.yield != nil
		ended := make(chan struct{})
		go func() {
			// The end of a coroutine, by Goexit or a further panic, is that of the
			// goroutine that asked for it.
			defer close(ended)
			defer func() { _ = recover() }()
			if begun {
				j.current = th
				j.running.Store(th)
			}
			th.end()
		}()
		<-ended
	}
	j.current, j.upNext, j.q.h, j.live = nil, nil, nil, 0
	j.threads, j.idle = nil, nil
}

// thread is the one that calls, which must be of e and run by the job.
func (e *Endpoint) thread(op string) *thread {
	th := e.j.current
	if th == nil || th.e != e || sys.HasGoroutine && th.g != sys.Goroutine() {
		e.foreign(op)
	}
	return th
}

// runs reports whether the caller is the goroutine of the thread that runs; no where
// goroutines cannot be told apart.
func (j *Job) runs() bool {
	th := j.running.Load()
	return sys.HasGoroutine && th != nil && th.g == sys.Goroutine()
}

// foreign ends a program that would stand still or race.
func (e *Endpoint) foreign(op string) {
	what := "sim: " + op + " of rank " + itoa(e.rank) + " is called by a goroutine that the simulator does not run: " +
		"under it, ranks run inside conduits.Run (gas.Run), use their own endpoint, and start goroutines with conduits.Go"
	if w := e.j.watch; w != nil && !e.j.runs() {
		w.abort(what)
	}
	panic(what)
}

// sync lets everything happen that happens before the rank's clock. What happens
// at the same time may come after: a rank that has just been woken by a message
// needs no second switch to read it.
func (e *Endpoint) sync(th *thread) {
	j := e.j
	th.unsynced = 0
	if q := j.q.h; len(q) == 0 || q[0].at >= e.clock {
		if e.dead() {
			runtime.Goexit()
		}
		// Else the limit would never be looked at if nothing else happens.
		if e.clock <= j.limit || j.err != nil {
			if len(q) == 0 {
				e.idle()
			}
			return
		}
	}
	th.state = ready
	j.schedule(e.clock, evRun, uint64(th.id))
	th.stop()
}

// idle counts a poll when nothing is under way and every other thread is
// parked. After idleLimit of such polls the job fails as in a deadlock.
func (e *Endpoint) idle() {
	j := e.j
	if j.asked.Load() {
		j.look()
	}
	if j.idleAt != j.Events {
		j.idleAt, j.idleFrom = j.Events, e.clock
		return
	}
	if e.clock-j.idleFrom < idleLimit || j.err != nil {
		return
	}
	d := j.waiting()
	d.At = duration(e.clock).String()
	d.Waiting = slices.Insert(d.Waiting, 0, fmt.Sprintf("rank %d: polls and finds nothing, for %v by now", e.rank, duration(e.clock-j.idleFrom)))
	j.fail(-1, d)
}

// until makes th, which is about to sleep, wait no longer than until at. An
// event that comes before then serves too, so that a rank that waits again and
// again with the same patience leaves no trail of events.
func (th *thread) until(at Time) {
	th.deadline = at
	if th.timer == 0 || at < th.timer {
		j := th.e.j
		j.timers++
		th.timer, th.timerNo = at, j.timers
		j.event(at, evTimer, th.timerNo, uint64(th.id))
	}
}

// expire handles timer no of thread id: if the thread waits and its time has come, it
// goes on.
func (j *Job) expire(id uint32, no uint64) {
	th := j.threads[id]
	if th == nil || th.timerNo != no {
		return
	}
	th.timer = 0
	if th.state != parked || th.deadline == 0 {
		return
	}
	if th.deadline > j.now {
		th.until(th.deadline)
		return
	}
	e := th.e
	at := &e.parked
	for *at != id+1 {
		at = &j.threads[*at-1].next
	}
	*at, th.next = th.next, 0
	e.sleepers--
	th.state, th.put = ready, false
	j.schedule(max(j.now, e.clock), evRun, uint64(id))
}

// notify tells e's parked threads that something has happened now.
func (e *Endpoint) notify(put bool) {
	e.seq++
	if e.sleepers == 0 {
		return
	}
	j := e.j
	at := max(j.now+j.p.Wake, e.clock)
	for id := e.parked; id != 0; {
		th := j.threads[id-1]
		id, th.next = th.next, 0
		th.state, th.put = ready, put
		if j.current == nil && j.upNext == nil && at == j.now && e.stalled <= at {
			j.upNext = th // without a detour through the queue
			continue
		}
		j.schedule(at, evRun, uint64(th.id))
	}
	e.parked, e.sleepers = 0, 0
}
