package sim

import (
	"iter"
	"runtime"

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
	deadline uint64  // number of the last one; see expire
	g        uintptr
	resume   func() (struct{}, bool)
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
	th.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		th.yield, th.g = yield, sys.Goroutine()
		j.currentG.Store(th.g)
		// Also when f ends its goroutine or panics, which resume passes on.
		defer func() {
			th.state = over
			j.live--
			e.forget(th)
			j.threads[th.id] = nil
			j.idle = append(j.idle, th.id)
			if e.poller == th {
				e.poller = nil
			}
		}()
		if e.crashed {
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
	j.currentG.Store(th.g)
	th.resume()
	j.current = nil
}

// stop gives the processor back to the job; the thread goes on when it is
// resumed. A thread of a rank that has crashed does not.
func (th *thread) stop() {
	th.unsynced = 0
	th.yield(struct{}{})
	if th.e.crashed {
		runtime.Goexit()
	}
}

// thread is the one that calls, which must be of e and run by the job.
func (e *Endpoint) thread(op string) *thread {
	th := e.j.current
	if th == nil || th.e != e || sys.HasGoroutine && th.g != sys.Goroutine() {
		e.foreign(op)
	}
	return th
}

// foreign ends a program that would stand still or race.
func (e *Endpoint) foreign(op string) {
	what := "sim: " + op + " of rank " + itoa(e.rank) + " is called by a goroutine that the simulator does not run: " +
		"under it, ranks run inside conduits.Run (gas.Run), use their own endpoint, and start goroutines with conduits.Go"
	if w := e.j.watch; w != nil && sys.HasGoroutine && e.j.currentG.Load() != sys.Goroutine() {
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
		if e.crashed {
			runtime.Goexit()
		}
		return
	}
	th.state = ready
	j.schedule(e.clock, evRun, uint64(th.id))
	th.stop()
}

// expire lets thread id go on at its deadline, if it still waits for that one.
func (j *Job) expire(id uint32, deadline uint64) {
	th := j.threads[id]
	if th == nil || th.state != parked || th.deadline != deadline {
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
