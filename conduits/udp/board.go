package udp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// board is what the ranks of a job know of each other without datagrams: who has
// attached what, who has left, and whether the job has failed. The ranks of a job
// in one process share it.
type board struct {
	eps    []*Endpoint
	sizes  []uint64
	rights []segment.Rights

	mu       sync.Mutex
	attached []bool
	present  int
	open     atomic.Bool // all are attached
	closed   []atomic.Bool
	left     atomic.Int32 // how many are closed
	drained  atomic.Int32 // how many of those need nothing more, after all are
	failed   atomic.Pointer[conduits.PeerError]
}

func newBoard(n int) *board {
	return &board{
		sizes: make([]uint64, n), rights: make([]segment.Rights, n),
		attached: make([]bool, n), closed: make([]atomic.Bool, n),
	}
}

// tell makes all ranks look again.
func (b *board) tell() {
	for _, e := range b.eps {
		e.notify()
	}
}

// attach enters what rank has attached, and tells everybody when all have.
func (b *board) attach(rank int, size uint64, rights segment.Rights) {
	b.mu.Lock()
	b.sizes[rank], b.rights[rank] = size, rights
	b.attached[rank] = true
	b.present++
	all := b.present == len(b.sizes)
	b.mu.Unlock()
	if all {
		b.open.Store(true)
		b.tell()
	}
}

func (b *board) fail(rank int, err error) {
	p := &conduits.PeerError{Rank: rank, Err: err}
	if b.failed.CompareAndSwap(nil, p) {
		b.tell()
	}
}

// Blocked says which ranks Attach waits for.
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
