package udp

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// lifecycle is where a rank stands in its job: whether it has closed, and what it has
// heard of the job's failure. Any goroutine reads it; closed is set by Close alone, and
// failed with driver.mu held (see driver.hearLocked), so that the engine ends its
// operations for the same reason.
type lifecycle struct {
	rank, size int
	c          control
	closed     atomic.Bool
	failed     atomic.Pointer[conduits.PeerError] // nil until this rank has heard of it
	atEnd      func()                             // see AtEnd
}

var errClosed = errs.Closed("udp: the endpoint is closed")

// Rank is this rank.
func (l *lifecycle) Rank() int { return l.rank }

// Size is the number of ranks.
func (l *lifecycle) Size() int { return l.size }

// AtEnd has f called when the job, whose ranks are all in this process, has ended
// without failing: all of its endpoints are closed, and none has to do with their memory
// any more. That is a moment after the last Close. To be called before Attach; f must not
// use endpoints.
func (l *lifecycle) AtEnd(f func()) { l.atEnd = f }

// over is why this rank does nothing any more, or nil.
func (l *lifecycle) over() error {
	if f := l.failed.Load(); f != nil {
		return f
	}
	if l.closed.Load() {
		return errClosed
	}
	return nil
}
