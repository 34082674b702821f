package sim

import (
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
)

// query is a question from outside: answer runs between two events.
type query struct {
	e      *Endpoint
	answer func()
	done   chan struct{}
}

// patience is how long a question from outside waits, in real time, for a job
// that does not come to its loop because a rank computes. It only serves
// reports of why a job hangs.
const patience = time.Second / 2

// Waiting lists the reasons of the rank's parked threads. It may be called from anywhere, see ask.
func (e *Endpoint) Waiting() (l []conduits.Blocked) {
	e.ask(func() {
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
	a.th.e.ask(func() {
		if a.th.blocked != nil && a.th.waits == a.n {
			text = a.b.Blocked()
		}
	})
	return text
}

// ask has answer look at the threads of e: at once on a goroutine of the job, and from outside of it
// between two events. A job that does not come to one within half a second stands still in the code of a rank,
// most likely for ever: for that rank there is no answer, and the others are looked at as they are.
func (e *Endpoint) ask(answer func()) {
	j := e.j
	switch {
	case !j.driven.Load():
		return // no thread is there
	case j.runs():
		answer()
		return
	}
	q := &query{e, answer, make(chan struct{})}
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
	if th := j.running.Load(); th == nil || th.e != e {
		answer() // written before that thread was set to run
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
		q.answer()
		close(q.done)
	}
	j.queries = nil
}
