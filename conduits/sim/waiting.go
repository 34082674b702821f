package sim

import (
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
)

// query is a question from outside which rank waits for what.
type query struct {
	e    *Endpoint
	done chan []conduits.Blocked
}

// patience is how long a question from outside waits, in real time, for a job
// that does not come to its loop because a rank computes. It only serves
// reports of why a job hangs.
const patience = time.Second / 2

// Waiting lists the reasons of the rank's parked threads. It may be called from
// anywhere: from outside the job it is answered between two events. A job that
// does not come to one within half a second stands still in the code of a rank,
// most likely for ever: that rank waits for nothing, and the others are looked at as they are.
func (e *Endpoint) Waiting() []conduits.Blocked {
	j := e.j
	switch {
	case !j.driven.Load():
		return nil // no thread is there
	case j.runs():
		return e.waiting()
	}
	q := &query{e, make(chan []conduits.Blocked, 1)}
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
	case l := <-q.done:
		return l
	case <-time.After(wait):
	}
	j.askedMu.Lock() // which the job takes before it changes more than the rank that computes
	defer j.askedMu.Unlock()
	at := slices.Index(j.queries, q)
	if at < 0 {
		return <-q.done
	}
	j.queries = slices.Delete(j.queries, at, at+1)
	j.deaf.Store(true)
	if th := j.running.Load(); th != nil && th.e == e {
		return nil
	}
	return e.waiting() // written before that thread was set to run
}

func (e *Endpoint) waiting() []conduits.Blocked {
	var l []conduits.Blocked
	for th := e.threads; th != nil; th = th.sibling {
		if th.blocked != nil {
			l = append(l, th.blocked)
		}
	}
	return l
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
		q.done <- q.e.waiting()
	}
	j.queries = nil
}
