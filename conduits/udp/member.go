package udp

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/segment"
)

// member is the control of a rank that is a process: what it hears from the
// job's rendezvous and tells it. Of the other ranks it keeps nothing beside the
// rendezvous' table.
type member struct {
	rank, size int
	client     *rendezvous.Client
	ep         atomic.Pointer[Endpoint] // nil until there is one
	all        atomic.Bool              // have attached
	failed     atomic.Pointer[conduits.PeerError]
	over       chan struct{} // closed when failed is set

	mu    sync.Mutex                      // of who changes departed
	parts atomic.Pointer[[]atomic.Uint64] // bit by rank: it has left; nil as long as none has
}

// events is what the rendezvous is to call. Events may come before Join returns.
func (m *member) events() rendezvous.Events {
	return rendezvous.Events{
		Attached: func() {
			m.all.Store(true)
			m.tell()
		},
		Failed: func(rank, _ int, cause string) { m.set(rank, errors.New(cause)) },
		Left:   m.departed,
	}
}

// tell makes the rank look again.
func (m *member) tell() {
	if e := m.ep.Load(); e != nil {
		e.notify()
	}
}

// set makes rank the one that the job has failed because of.
func (m *member) set(rank int, err error) {
	if m.failed.CompareAndSwap(nil, &conduits.PeerError{Rank: rank, Err: err}) {
		close(m.over)
		m.tell()
	}
}

// departed notes that rank has left.
func (m *member) departed(rank int) {
	m.mu.Lock()
	b := m.parts.Load()
	if b == nil {
		l := make([]atomic.Uint64, (m.size+63)/64)
		b = &l
		m.parts.Store(b)
	}
	(*b)[rank/64].Or(1 << (rank % 64))
	m.mu.Unlock()
	if e := m.ep.Load(); e != nil {
		e.part(rank)
		e.notify()
	}
}

func (m *member) gone(rank int) bool {
	b := m.parts.Load()
	return b != nil && (*b)[rank/64].Load()>>(rank%64)&1 != 0
}

func (m *member) attach(size uint64, rights segment.Rights) error {
	return m.client.Attach(size, uint32(rights))
}

func (m *member) open() bool { return m.all.Load() }

func (m *member) segment(rank int) (uint64, segment.Rights) {
	size, rights := m.client.Segment(rank)
	return size, segment.Rights(rights)
}

func (m *member) failure() *conduits.PeerError { return m.failed.Load() }

// newMember makes what still lacks its client.
func newMember(rank, size int) *member {
	return &member{rank: rank, size: size, over: make(chan struct{})}
}

// verdict is how long a rank waits for the rendezvous to say who has failed, when
// it believes another one has.
const verdict = time.Second

// fail waits until the rendezvous has said who has failed, unless it is this rank.
// So two ranks that no longer hear each other do not give different names to the
// same failure, and a process that ends because of the failure does not do so
// before others can know of it, or it would be taken for the reason.
func (m *member) fail(rank int, err error) {
	if m.failed.Load() != nil {
		return
	}
	m.client.Fail(rank, err.Error())
	if rank != m.rank {
		t := time.NewTimer(verdict)
		defer t.Stop()
		select {
		case <-m.over:
		case <-t.C:
		}
	}
	m.set(rank, err)
}

func (m *member) leave() {}

// stay waits until everything that this rank has sent has arrived, or its target
// needs it no more, which the targets' engines and the rendezvous see to; a peer
// that is silent fails the job after the dead time. Acknowledgements that this
// rank owes need not arrive: who misses one hears from the rendezvous that this
// rank has left.
func (m *member) stay(e *Endpoint) {
	for m.failed.Load() == nil && e.l.Err() == nil {
		t := e.Arm(draining{})
		e.progress()
		if e.discard() || m.failed.Load() != nil {
			e.Disarm(t)
			break
		}
		e.Park(t)
	}
	if m.failed.Load() == nil {
		_ = m.client.Leave() // if it cannot, it counts as failed: nobody is misled
	}
	_ = m.client.Close()
	e.retire()
	e.l.Close()
}

type draining struct{}

func (draining) Blocked() string { return "closing, until what it has sent has arrived" }

// wake can mean this rank only: there is no direct access to others.
func (m *member) wake(rank int) {
	if rank == m.rank {
		m.tell()
	}
}

func (m *member) Blocked() string { return "attach: waiting for the other ranks" }
