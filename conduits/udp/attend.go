package udp

import (
	"time"
)

// attention is how long no goroutine must have polled before the attendant does.
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
	d     *driver
	quit  chan struct{}
	ended chan struct{}
	again chan struct{} // look as often as at first
	mine  uint64        // calls of progress; only the attendant's goroutine
	last  uint64        // calls of progress by others
}

// attend starts the attendant of d.
func attend(d *driver) *attendant {
	a := &attendant{d: d, quit: make(chan struct{}), ended: make(chan struct{}), again: make(chan struct{}, 1)}
	d.w.again = a.again
	go a.stand()
	return a
}

// retire ends the attendant, if there is one. Wait of the link may not be called
// afterwards.
func (a *attendant) retire() {
	if a == nil {
		return
	}
	close(a.quit)
	a.d.l.Wake()
	<-a.ended
}

// polled reports whether another goroutine has polled since it was asked last.
func (a *attendant) polled() bool {
	n := a.d.progressed() - a.mine
	news := n != a.last
	a.last = n
	return news
}

func (a *attendant) stand() {
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
		pause := attention
		switch {
		case a.polled():
			rests = 0
		case !a.relieve():
			if rests++; rests > restful && a.d.w.rest() {
				pause = 100 * attention
			}
		default:
			rests = 0
		}
		tick.Reset(pause)
	}
}

// relieve waits for the socket and lets the engine work until another goroutine polls
// or is parked. It says false if that is so from the beginning.
func (a *attendant) relieve() bool {
	for first := true; ; first = false {
		if !a.d.w.standBy() {
			return !first
		}
		select {
		case <-a.quit:
		default:
			a.d.watch()
		}
		a.d.w.standDown()
		select {
		case <-a.quit:
			return true
		default:
		}
		a.d.progress()
		a.mine++
		if a.polled() {
			return true
		}
	}
}
