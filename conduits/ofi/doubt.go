//go:build ofi && cgo

package ofi

import (
	"time"

	"github.com/argon-go/argon/internal/sys/awake"
)

// Both are times that this process runs.
const (
	// farewell is how long a rank that cannot be reached any more may take to be known as one
	// that has left, or the job as failed, and at most half the dead time: it hears nothing of this
	// rank any more, and must not be the first to fail the other. The launcher and the rendezvous
	// hear of the end of a process within a round trip or so; leastFarewell they have in any case.
	farewell      = 5 * time.Second
	leastFarewell = time.Second
)

// doubt fails rank because of err when it is not known in time what has become of it, with mu held.
func (t *transport) doubt(rank int, err error) {
	awake.AfterFunc(min(farewell, max(t.dead/2, leastFarewell)), func() {
		t.mu.Lock()
		p := t.peer(rank)
		known := p.left || t.over
		t.mu.Unlock()
		if !known && t.Err() == nil {
			t.Fail(rank, err)
		}
	})
}
