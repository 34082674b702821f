package udp

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/segment"
)

// member is the control of a rank that is a process, by the job's rendezvous. Of the other
// ranks it keeps nothing beside the rendezvous' table.
type member struct {
	rank, size int
	client     *rendezvous.Client
	ep         atomic.Pointer[Endpoint] // nil until there is one
	all        atomic.Bool              // have attached, and nothing is awaited
	awaited    atomic.Int32             // news that Attach does not return without: see news
	failed     atomic.Pointer[conduits.PeerError]
	over       chan struct{}                         // closed when failed is set
	heard      func(*conduits.PeerError)             // conduits.Job.Failed
	host       string                                // what this one is called in messages
	trips      atomic.Pointer[map[int]time.Duration] // round trips by number of a host, see prober; nil as long as none is known
	nets       atomic.Pointer[networks]              // nil if the job's hosts have one network

	dead      time.Duration                    // options.dead
	inquiries *conc.Map[int, bool]             // ranks that the rendezvous is asked for a look at
	sights    *conc.Map[int, rendezvous.Sight] // what the last look at a rank has shown
	names     *conc.Map[int, string]           // what others are called, by number; "" as long as it is being asked for

	mu    sync.Mutex                      // of the callers of departed
	parts atomic.Pointer[[]atomic.Uint64] // bit by rank: it has left; nil as long as none has
}

// events are the functions that the rendezvous calls, perhaps before Join returns.
func (m *member) events() rendezvous.Events {
	return rendezvous.Events{
		Attached: m.news,
		Failed:   m.set,
		Left:     m.departed,
	}
}

// news is called once for each thing that is awaited: that all ranks have attached,
// and, where another rank measures round trips for this one, those.
func (m *member) news() {
	if m.awaited.Add(-1) == 0 {
		m.all.Store(true)
		m.tell()
	}
}

// tell makes the rank look again.
func (m *member) tell() {
	if e := m.ep.Load(); e != nil {
		e.notify()
	}
}

// set makes p the job's failure, unless there is one.
func (m *member) set(p *conduits.PeerError) {
	if m.failed.CompareAndSwap(nil, p) {
		if m.heard != nil {
			m.heard(p)
		}
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

// allArrived is gone: ranks leave when what they have sent has arrived, see stay.
func (m *member) allArrived(rank int) bool { return m.gone(rank) }

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
	m := &member{rank: rank, size: size, over: make(chan struct{})}
	m.inquiries, m.sights, m.names = conc.NewMap[int, bool](), conc.NewMap[int, rendezvous.Sight](), conc.NewMap[int, string]()
	m.awaited.Store(1)
	return m
}

func (m *member) fail(rank int, err error) {
	if m.failed.Load() != nil {
		return
	}
	m.client.Blame(rank, err)
	m.set(&conduits.PeerError{Rank: rank, Err: err})
}

func (m *member) leave() {}

// stay waits until everything that this rank has sent has arrived, or its target
// needs it no more, which the targets' engines and the rendezvous see to; a peer
// that is silent fails the job after the dead time. Acknowledgements that this
// rank owes need not arrive: a rank that misses one hears from the rendezvous that this
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
	if w := e.nets; w != nil && w.relayed {
		m.handOn(e)
	}
	if m.failed.Load() == nil {
		_ = m.client.Leave() // if it cannot, it counts as failed: no rank is misled
	}
	_ = m.client.Close()
	e.att.retire()
	e.l.Close()
}

// drained is the key at the rendezvous of a rank that has closed, when all that it has sent has
// arrived.
func drained(rank int) string { return "udp/drained/" + strconv.Itoa(rank) }

// watchRelays hears of the leaving of ranks that hand on: they go on for the others.
func (m *member) watchRelays(w *networks) {
	for h, r := range w.firsts {
		if r != m.rank && w.m.Relays(h) {
			go func() {
				// Without an answer the job has failed, or this rank has left.
				if _, err := m.client.Get(context.Background(), drained(r)); err == nil {
					m.departed(r)
				}
			}()
		}
	}
}

// handOn tells the other ranks that this one needs none of them any more, and on a host that is
// between others goes on handing on until all have said so.
func (m *member) handOn(e *Endpoint) {
	var over atomic.Bool
	go func() {
		// Errors mean that the job has failed, or that the service is over: rank 0 was the last.
		err := m.client.Put(drained(m.rank), nil)
		if _, relays := e.l.(*relay); err == nil && relays {
			_ = each(m.size, func(r int) error {
				_, err := m.client.Get(context.Background(), drained(r))
				return err
			})
		}
		over.Store(true)
		m.tell()
	}()
	for m.failed.Load() == nil && e.l.Err() == nil {
		t := e.Arm(draining{})
		e.progress()
		e.discard()
		if over.Load() || m.failed.Load() != nil {
			e.Disarm(t)
			return
		}
		e.Park(t)
	}
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
