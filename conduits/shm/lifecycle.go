package shm

import (
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// seat is where a rank sits: constants, of which each part has a copy, so that none has
// to reach into another one for them.
type seat struct {
	j     *job
	rank  int
	first int // the lowest rank of j, what tables by rank begin with
	here  int // its place, see job
	lane  int // which of its lanes a part is of; 0 for what they share
}

// word is a word of the block of this lane, at rank.
func (s *seat) word(rank, off int) *uint32 { return s.j.p32(rank, s.lane, off) }

// lifecycle is the state of this rank and its job: attached, closed, failed. Any
// goroutine reads and changes it; the first failure that failed is set to stays.
type lifecycle struct {
	seat
	attached atomic.Bool
	closed   atomic.Bool
	failed   atomic.Pointer[conduits.PeerError]
	start    time.Time
	hooks    conduits.Hooks // set before Attach
}

var errClosed = errs.Closed("shm: the endpoint is closed")

// Rank is this endpoint's rank.
func (l *lifecycle) Rank() int { return l.rank }

// Size is the number of ranks of the job, of which not all need share this memory.
func (l *lifecycle) Size() int { return l.j.size }

// Conduit is "shm", or what the job's Part says.
func (l *lifecycle) Conduit() string { return l.j.conduit }

// Ranks are those that share this memory, ascending.
func (l *lifecycle) Ranks() []int {
	ranks := make([]int, l.j.n)
	for i := range ranks {
		ranks[i] = l.j.rank(i)
	}
	return ranks
}

// Limits of this job; the medium payload depends on the number of ranks.
func (l *lifecycle) Limits() conduits.Limits {
	return conduits.Limits{
		MaxMedium:  l.j.maxMedium(),
		MaxLong:    uint64(l.j.segment),
		MaxSegment: uint64(l.j.segment),
		Credits:    l.j.cells,
	}
}

// Hook has h called from now on. Only before Attach, and once.
func (l *lifecycle) Hook(h conduits.Hooks) { l.hooks = h }

// Now is the time since the endpoint was opened.
func (l *lifecycle) Now() time.Duration { return time.Since(l.start) }

// Err is the job's failure.
func (l *lifecycle) Err() error {
	if p := l.failed.Load(); p != nil {
		return p
	}
	if rank, status, cause, ok := l.j.failure(); ok {
		l.failed.CompareAndSwap(nil, &conduits.PeerError{Rank: rank, Err: errs.Carried(status, cause)})
		return l.failed.Load()
	}
	if l.closed.Load() {
		return errClosed
	}
	return nil
}

// over is why there are no accesses any more, nil while there are: the layers above
// come here when the window has been shut.
func (l *lifecycle) over() error {
	if p := l.failed.Load(); p != nil {
		return p
	}
	if l.closed.Load() {
		return errClosed
	}
	return nil
}

// Fail declares this rank failed. The hook comes first: by an Exit the ranks that share this memory end, and a launcher
// that hears of failures by the hook alone would take the first to end for a rank that has failed.
func (l *lifecycle) Fail(err error) {
	if l.hooks.Failed != nil {
		l.hooks.Failed(err)
	}
	l.j.fail(l.here, l.rank, errs.CarriedStatus(err), err.Error())
	atomic.StoreUint32(l.j.c32(l.rank, ctlState), uint32(conduits.RankFailed))
}

// Blame declares rank failed, which need not share this memory: what another
// layer has found out. As with Fail only the first failure of a job counts.
func (l *lifecycle) Blame(rank int, err error) {
	l.j.fail(l.here, rank, errs.CarriedStatus(err), err.Error())
	if l.hooks.Blamed == nil {
		return
	}
	if f, ok := l.Err().(*conduits.PeerError); ok {
		l.hooks.Blamed(f)
	}
}

// gone reports whether rank has left the job.
func (l *lifecycle) gone(rank int) bool {
	return conduits.RankState(atomic.LoadUint32(l.j.c32(rank, ctlState))) >= conduits.RankFinished
}
