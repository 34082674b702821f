package udp

import (
	"time"

	"github.com/argon-go/argon/internal/crowd"
)

// attention is how long nobody must have polled before the attendant does.
const attention = 10 * time.Millisecond

// restful is after how many times that another goroutine was found to wait for the
// socket the attendant looks less often.
const restful = 4

// attendant stands in for the goroutines of a rank that is a process while they
// compute: it receives, acknowledges, answers one-sided accesses and sends again,
// so that the rank neither looks dead nor holds up its peers. It runs no Receiver:
// messages wait, as many as there are credits, until the rank polls.
//
// While the rank polls it looks every 10 ms whether that is still so; while a
// goroutine is parked, which waits for the socket itself, less often, until that one
// wakes it.
type attendant struct {
	quit  chan struct{}
	ended chan struct{}
	again chan struct{} // look as often as at first
	mine  uint64        // calls of progress; only the attendant's goroutine
	last  uint64        // calls of progress by others
}

// attend starts the attendant.
func (e *Endpoint) attend() {
	e.att = &attendant{quit: make(chan struct{}), ended: make(chan struct{}), again: make(chan struct{}, 1)}
	go e.stand(e.att)
}

// retire ends it, if there is one. Wait of the link may not be called afterwards.
func (e *Endpoint) retire() {
	if e.att == nil {
		return
	}
	close(e.att.quit)
	e.l.Wake()
	<-e.att.ended
}

// recall has the attendant look often again, with waitMu held.
func (e *Endpoint) recall() {
	if e.rested {
		e.rested = false
		select {
		case e.att.again <- struct{}{}:
		default:
		}
	}
}

// polled says whether another goroutine has polled since it was asked last.
func (e *Endpoint) polled(a *attendant) bool {
	e.mu.Lock()
	n := e.turns - a.mine
	e.mu.Unlock()
	news := n != a.last
	a.last = n
	return news
}

func (e *Endpoint) stand(a *attendant) {
	defer close(a.ended)
	tick := time.NewTimer(attention)
	defer tick.Stop()
	rests := 0
	for {
		select {
		case <-tick.C:
		case <-a.again:
		case <-a.quit:
			return
		}
		crowd.Sample()
		pause := attention
		switch {
		case e.polled(a):
			rests = 0
		case !e.relieve(a):
			if rests++; rests > restful {
				e.waitMu.Lock()
				if e.watching { // still: the watcher will recall the attendant
					e.rested = true
					pause = 100 * attention
				}
				e.waitMu.Unlock()
			}
		default:
			rests = 0
		}
		tick.Reset(pause)
	}
}

// relieve waits for the socket and lets the engine work until another goroutine polls
// or is parked. It says false if that is so from the beginning.
func (e *Endpoint) relieve(a *attendant) bool {
	for first := true; ; first = false {
		e.waitMu.Lock()
		if e.watching {
			e.waitMu.Unlock()
			return !first
		}
		e.watching, e.standing = true, true
		e.waitMu.Unlock()
		select {
		case <-a.quit:
		default:
			e.watch()
		}
		e.waitMu.Lock()
		e.watching, e.standing = false, false
		e.cond.Broadcast()
		e.waitMu.Unlock()
		select {
		case <-a.quit:
			return true
		default:
		}
		e.progress()
		a.mine++
		if e.polled(a) {
			return true
		}
	}
}
