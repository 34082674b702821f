package conduits

import (
	"sync/atomic"
	"time"
)

// Watcher is an Endpoint on top of another one that is told of what the layers do, and an endpoint's methods do not
// show: waits, from their begin to their end, and calls of all ranks. Watch has to be called
// in a process that has one.
type Watcher interface {
	Wrapping
	// Waits is called by a goroutine that is about to wait for b. It waits by below, and then calls over.
	Waits(b Blocked) (below Endpoint, over func())
	// Met is called when a call of several ranks has ended, which began, or began to wait, at that Now and moved so many
	// bytes of this rank. all: each rank waits for all others in it, and it is of all ranks of the job, so that the next
	// one is the same for all ranks. split: this rank has come to it by an earlier call.
	Met(began time.Duration, bytes uint64, all, split bool)
}

// watched is set when there are Watchers in this process.
var watched atomic.Bool

// Watch has waits of this process look whether their endpoint is a Watcher.
func Watch() { watched.Store(true) }

// watchedWait is WaitFor if ep is a Watcher.
//
//go:noinline
func watchedWait(ep Endpoint, b Blocked, c Cond) (done bool, err error) {
	w, ok := ep.(Watcher)
	if !ok {
		return false, nil
	}
	if c.Ready() {
		return true, nil
	}
	below, over := w.Waits(b)
	err = WaitFor(below, b, c)
	over()
	return true, err
}
