package collective

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp"
	_ "github.com/argon-go/argon/conduits/loop"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }

// The conduits that tests run on, beside hybrid, which has two neighbourhoods.
var networks = testjob.Concurrent("shm", "loop", "sim", "card")

// The conduit card is sim with cards that have barriers and multicasts, and with a seed and
// messages that are late by chance.
func init() {
	var jobs atomic.Uint64
	conduits.Register(conduits.Conduit{Name: "card", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{
			Seed: jobs.Add(1), MaxSegment: c.MaxSegment, Offload: true, Faults: sim.Faults{Jitter: 5 * sim.Microsecond},
		})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
}

// member is a rank of a job.
type member struct {
	*Member
	b *barrier.Barrier
}

// meet is a barrier.
func (m *member) meet() error { return m.b.Barrier(0, 0) }

// byLinks has small calls made as large ones are; all ranks do it before their first call.
func (m *member) byLinks() {
	if m.shared != nil && m.shared.mailed {
		m.shared = nil
	}
}

// run runs body as so many ranks of this process and returns their errors.
func run(t testjob.TB, network string, ranks int, body func(m *member) error) []error {
	t.Helper()
	return testjob.Local(t, network, ranks, func(ep conduits.Endpoint) error { return join(ep, body) })
}

// must is run of what has no error.
func must(t testjob.TB, network string, ranks int, body func(m *member) error) {
	t.Helper()
	testjob.MustLocal(t, network, ranks, func(ep conduits.Endpoint) error { return join(ep, body) })
}

// errLeft is of a body that has closed its endpoint.
var errLeft = errors.New("the rank has left")

func join(ep conduits.Endpoint, body func(m *member) error) error {
	m := &member{New(Config{}), barrier.New()}
	e, err := am.Attach(ep, am.Config{Runtime: append(m.b.Handlers(), m.Handlers()...)})
	if err != nil {
		return err
	}
	if err := m.b.Bind(e); err != nil {
		return err
	}
	m.Bind(e)
	if err := m.meet(); err != nil {
		return err
	}
	if err := body(m); err != nil {
		if errors.Is(err, errLeft) {
			return nil
		}
		return err
	}
	return m.meet()
}

// awaitNote waits until another rank waits for this one in its next call, or a later one.
func (m *member) awaitNote() error {
	return m.e.Wait(nil, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		next := m.seq + 1
		return slices.ContainsFunc(m.links, func(l *link) bool {
			return l.wanted.set && l.wanted.seq >= next || l.offered.set && l.offered.seq >= next
		})
	})
}
