//go:build ofi && cgo

package ofi

import (
	"errors"
	"time"

	"github.com/argon-go/argon/internal/awake"
	"github.com/argon-go/argon/internal/errs"
)

// verdict is how long a rank that cannot be reached any more may take to be known as one
// that has left, or the job as failed, in time that this process runs. The launcher and the
// rendezvous hear of the end of a process within a round trip or so.
const verdict = 5 * time.Second

// doubt fails rank because of err when the verdict is not known in time.
func (t *transport) doubt(rank int, err error) {
	awake.AfterFunc(verdict, func() {
		t.mu.Lock()
		p := t.peer(rank)
		known := p.left || t.over
		t.mu.Unlock()
		if !known && t.Err() == nil {
			t.Fail(rank, err)
		}
	})
}

// hearVerdict waits until the job is known to have failed, or no word of that can come, if
// another rank was blamed or the job is to end with a status, of which the first counts.
func (m *member) hearVerdict(rank int, err error) {
	if rank == m.rank && !errors.Is(err, errs.ErrExit) {
		return
	}
	late, stop := awake.NewTimer(verdict)
	defer stop()
	select {
	case <-m.over:
	case <-m.client.Ended():
	case <-late:
	}
}
