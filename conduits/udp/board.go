package udp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// board is the control of a job whose ranks are in one process: memory that they
// share.
type board struct {
	eps    []*Endpoint
	sizes  []uint64
	rights []segment.Rights

	mu       sync.Mutex
	attached []bool
	present  int
	all      atomic.Bool // are attached
	closed   []atomic.Bool
	arrived  []atomic.Bool // all that a closed rank has sent
	left     atomic.Int32  // how many are closed
	drained  atomic.Int32  // how many of those need nothing more, after all are
	over     atomic.Int32  // how many of those have no link any more
	failed   atomic.Pointer[conduits.PeerError]
}

func newBoard(n int) *board {
	return &board{
		sizes: make([]uint64, n), rights: make([]segment.Rights, n),
		attached: make([]bool, n), closed: make([]atomic.Bool, n), arrived: make([]atomic.Bool, n),
	}
}

// tell makes all ranks look again.
func (b *board) tell() {
	for _, e := range b.eps {
		e.notify()
	}
}

// seat is a rank's place at the board.
type seat struct {
	*board
	rank int
	run  func(f func()) // starts a goroutine
}

// attach enters what the rank has attached, and tells all ranks when all have.
func (s seat) attach(size uint64, rights segment.Rights) error {
	b := s.board
	b.mu.Lock()
	b.sizes[s.rank], b.rights[s.rank] = size, rights
	b.attached[s.rank] = true
	b.present++
	all := b.present == len(b.sizes)
	b.mu.Unlock()
	if all {
		b.all.Store(true)
		b.tell()
	}
	return nil
}

func (b *board) open() bool { return b.all.Load() }

func (b *board) segment(rank int) (uint64, segment.Rights) { return b.sizes[rank], b.rights[rank] }

func (b *board) failure() *conduits.PeerError { return b.failed.Load() }

func (b *board) fail(rank int, err error) {
	p := &conduits.PeerError{Rank: rank, Err: err}
	if b.failed.CompareAndSwap(nil, p) {
		b.tell()
	}
}

func (b *board) gone(rank int) bool { return b.closed[rank].Load() }

func (b *board) allArrived(rank int) bool { return b.arrived[rank].Load() }

func (b *board) wake(rank int) { b.eps[rank].notify() }

func (s seat) leave() {
	s.closed[s.rank].Store(true)
	s.left.Add(1)
	s.tell()
}

// stay leaves a goroutine behind: what has been sent and not arrived yet is still
// sent again, and whatever peers ask for is answered, until no rank needs another
// one any more.
func (s seat) stay(e *Endpoint) {
	s.run(func() {
		s.linger(e)
		e.l.Close()
		if s.over.Add(1) == int32(e.size) {
			s.unmapAll()
		}
	})
}

// unmapAll unmaps the segments of all ranks, which are closed and have no link any more. A
// job that has failed leaves that to the collector: what a rank waited for has ended
// with an error, and its other goroutines may look at its memory yet.
func (b *board) unmapAll() {
	if b.failed.Load() != nil {
		return
	}
	for _, e := range b.eps {
		e.freeMemory()
	}
	for _, e := range b.eps {
		if e.atEnd != nil {
			e.atEnd()
		}
	}
}

func (s seat) linger(e *Endpoint) {
	b, n := s.board, int32(e.size)
	reported := false
	for b.failed.Load() == nil && e.l.Err() == nil {
		t := e.Arm(lingering{})
		e.progress()
		drained := e.discard()
		if drained && !s.arrived[s.rank].Swap(true) {
			b.tell()
		}
		if drained && !reported && b.left.Load() == n {
			reported = true
			if b.drained.Add(1) == n {
				b.tell()
			}
		}
		if b.drained.Load() == n {
			e.Disarm(t)
			break
		}
		e.Park(t)
	}
}

type lingering struct{}

func (lingering) Blocked() string { return "closed, until the other ranks are" }

// Blocked names the ranks that Attach waits for.
func (b *board) Blocked() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var late []int
	for r, here := range b.attached {
		if !here {
			late = append(late, r)
		}
	}
	if len(late) > 8 {
		return fmt.Sprintf("attach: waiting for ranks %v and %d more", late[:8], len(late)-8)
	}
	return fmt.Sprintf("attach: waiting for ranks %v", late)
}
