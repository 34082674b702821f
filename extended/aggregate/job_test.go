package aggregate

import (
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp"
	_ "github.com/argon-go/argon/conduits/loop"
	_ "github.com/argon-go/argon/conduits/shm"
	_ "github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }

var networks = testjob.Concurrent("shm", "loop", "hybrid", "sim")

// member is a rank of a job.
type member struct {
	*Aggregator
	b *barrier.Barrier
}

// gate is a barrier as Sync enters it.
type gate struct{ *barrier.Barrier }

func (g gate) Notify(id uint32) error { return g.Barrier.Notify(id, 0) }
func (g gate) Wait(id uint32) error   { return g.Barrier.Wait(id, 0) }

// meet is a barrier.
func (m *member) meet() error { return m.b.Barrier(0, 0) }

// must runs body as so many ranks of this process, none of which may have an error.
func must(t testjob.TB, network string, ranks int, body func(m *member) error) {
	t.Helper()
	testjob.MustLocal(t, network, ranks, func(ep conduits.Endpoint) error { return join(ep, body) })
}

func join(ep conduits.Endpoint, body func(m *member) error) error {
	m := &member{New(Config{}), barrier.New()}
	e, err := am.Attach(ep, am.Config{Runtime: append(m.b.Handlers(), m.Handlers()...)})
	if err != nil {
		return err
	}
	if err := m.b.Bind(e); err != nil {
		return err
	}
	m.Bind(e, gate{m.b})
	if err := m.meet(); err != nil {
		return err
	}
	if err := body(m); err != nil {
		return err
	}
	return m.meet()
}
