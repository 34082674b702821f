package sim

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// query is a question from outside who waits for what.
type query struct {
	e    *Endpoint
	done chan []conduits.Blocked
}

// patience is how long a question from outside waits, in real time, for a job
// that does not come to its loop because a rank computes. It only serves people
// who want to know why a job hangs.
const patience = time.Second / 2

// Waiting lists the reasons of the rank's parked threads. It may be called from
// anywhere: from outside the job it is answered between two events. A job that
// does not come to one within half a second stands still in the code of a rank,
// most likely for ever, and is then looked at as it is.
func (e *Endpoint) Waiting() []conduits.Blocked {
	j := e.j
	if !j.driven.Load() || sys.HasGoroutine && j.currentG.Load() == sys.Goroutine() {
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
	if j.deaf.Load() {
		return e.waiting() // as for the rank before
	}
	select {
	case l := <-q.done:
		return l
	case <-time.After(patience):
		j.deaf.Store(true)
		return e.waiting()
	}
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

// answerAll answers the questions there are.
func (j *Job) answerAll() {
	j.asked.Store(false)
	j.deaf.Store(false)
	j.askedMu.Lock()
	defer j.askedMu.Unlock()
	for _, q := range j.queries {
		q.done <- q.e.waiting()
	}
	j.queries = nil
}
