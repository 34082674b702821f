package sim

import (
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
)

// query is a question from outside: answer runs between two events.
type query struct {
	answer func(running *Endpoint)
	done   chan struct{}
}

// patience is how long a question from outside waits, in real time, for a job
// that does not come to its loop because a rank computes. It only serves
// reports of why a job hangs.
const patience = time.Second / 2

// Waiting lists the reasons of the rank's parked threads. It may be called from anywhere, see ask.
func (e *Endpoint) Waiting() (l []conduits.Blocked) {
	ask(e, func() {
		for th := e.threads; th != nil; th = th.sibling {
			if th.blocked != nil {
				l = append(l, asleep{th, th.blocked, th.waits})
			}
		}
	})
	return l
}

// asleep is a wait of a thread as others see it, which may ask from anywhere, too.
type asleep struct {
	th *thread
	b  conduits.Blocked
	n  uint32
}

func (a asleep) Awaited() conduits.Blocked { return a.b }

// Blocked is "" when the wait is over.
func (a asleep) Blocked() (text string) {
	ask(a.th.e, func() {
		if a.th.blocked != nil && a.th.waits == a.n {
			text = a.b.Blocked()
		}
	})
	return text
}

// ask has answer look at the threads of e: at once on a goroutine of the job, and from outside of it
// between two events. A job that does not come to one within half a second stands still in the code of a rank,
// most likely for ever: for that rank there is no answer, and the others are looked at as they are.
func ask(e *Endpoint, answer func()) {
	e.j.ask(func(running *Endpoint) {
		if running != e {
			answer()
		}
	})
}

// Look calls f with the reasons of the parked threads of ranks[i], of each at the same moment, between two events. It is one question
// to the job, where Waiting and the texts of what that lists are one for each rank and wait. waits is f's until it returns.
func (e *Endpoint) Look(ranks []int, f func(i int, waits []conduits.Blocked)) {
	e.j.ask(func(running *Endpoint) {
		var waits []conduits.Blocked
		for i, r := range ranks {
			e := &e.j.eps[r]
			if e == running {
				continue
			}
			waits = waits[:0]
			for th := e.threads; th != nil; th = th.sibling {
				if th.blocked != nil {
					waits = append(waits, th.blocked)
				}
			}
			f(i, waits)
		}
	})
}

// ask calls answer once, between two events; running is nil, or the rank in whose code the job stands still.
func (j *Job) ask(answer func(running *Endpoint)) {
	switch {
	case !j.driven.Load():
		return // no thread is there
	case j.runs():
		answer(nil)
		return
	}
	q := &query{answer, make(chan struct{})}
	j.askedMu.Lock()
	j.queries = append(j.queries, q)
	j.askedMu.Unlock()
	j.asked.Store(true)
	if !j.driven.Load() {
		j.answerAll() // it ended meanwhile
	}
	wait := patience
	if j.deaf.Load() {
		wait = 0 // as for the rank before
	}
	select {
	case <-q.done:
		return
	case <-time.After(wait):
	}
	j.askedMu.Lock() // which the job takes before it changes more than the rank that computes
	defer j.askedMu.Unlock()
	at := slices.Index(j.queries, q)
	if at < 0 {
		return // it has been answered
	}
	j.queries = slices.Delete(j.queries, at, at+1)
	j.deaf.Store(true)
	if th := j.running.Load(); th != nil {
		answer(th.e)
	} else { // written before that thread was set to run
		answer(nil)
	}
}

// Interrupt declares the rank failed from outside the job, between two events: a job
// that stands still in the code of a rank does not hear of it, and one that has been
// found in a deadlock before has failed. What was going on then the machine decides,
// not the seed.
func (e *Endpoint) Interrupt(err error) {
	j := e.j
	j.askedMu.Lock()
	j.interrupts = append(j.interrupts, interrupt{e, err})
	j.askedMu.Unlock()
	j.asked.Store(true)
}

// interrupt is a failure that comes from outside.
type interrupt struct {
	e   *Endpoint
	err error
}

// look answers a query from outside, on the goroutine that the job runs.
func (j *Job) look() {
	j.answerAll()
	j.askedMu.Lock()
	interrupts := j.interrupts
	j.interrupts = nil
	j.askedMu.Unlock()
	for _, i := range interrupts {
		i.e.Fail(i.err)
	}
	if j.overseen.Swap(false) {
		j.alone()
	}
}

// answerAll answers the questions there are.
func (j *Job) answerAll() {
	j.asked.Store(false)
	j.askedMu.Lock()
	defer j.askedMu.Unlock()
	j.deaf.Store(false)
	for _, q := range j.queries {
		q.answer(nil)
		close(q.done)
	}
	j.queries = nil
}
