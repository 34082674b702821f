package udp

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// refusals remember which ranks the system refuses to send to, for reasons that do
// not go away (sys.Lasting). A datagram that is refused is as good as lost; when
// enough have been, in a row and for long enough, the rank cannot be reached, and
// nothing is gained by waiting for the dead time. Guarded by the socket's out lock
// but for verdict.
type refusals struct {
	by      map[int]*sys.Tries // by rank; nil as long as there was none
	dead    time.Duration      // the job's dead time; 0 if it has none
	verdict atomic.Pointer[unreachable]
}

// unreachable is a rank that cannot be sent to.
type unreachable struct {
	rank int
	err  error
}

// note takes errno, of a datagram to rank, into account.
func (r *refusals) note(rank int, errno syscall.Errno, now time.Duration, name func() string) {
	if _, lasting := sys.Lasting(errno); !lasting {
		return
	}
	if r.by == nil {
		r.by = map[int]*sys.Tries{}
	}
	f := r.by[rank]
	if f == nil {
		// A route that comes back is what a long dead time is for.
		f = &sys.Tries{Routes: r.dead / 10}
		r.by[rank] = f
	}
	if f.Lasting(errno, now) {
		r.verdict.CompareAndSwap(nil, &unreachable{rank, fmt.Errorf("this host cannot send to it at %s: %w (%s), %d times in %v; usual reasons: no route, a local firewall, the wrong interface (%s)",
			name(), errno, sys.ErrnoName(errno), f.Count, f.Took.Round(time.Millisecond), EnvIface)})
	}
}

// passed notes that datagrams to the ranks of l have been sent.
func (r *refusals) passed(l []outgoing) {
	if len(r.by) == 0 {
		return
	}
	for i := range l {
		delete(r.by, l[i].dst)
	}
}
