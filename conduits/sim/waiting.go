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
const patience = 2 * time.Second

// Waiting lists the reasons of the rank's parked threads. It may be called from
// anywhere: from outside the job it is answered between two events, and with
// nothing if the job does not come to one within two seconds.
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
	select {
	case l := <-q.done:
		return l
	case <-time.After(patience):
		return nil
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
	j.askedMu.Lock()
	defer j.askedMu.Unlock()
	for _, q := range j.queries {
		q.done <- q.e.waiting()
	}
	j.queries = nil
}
