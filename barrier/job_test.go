package barrier

import (
	"errors"
	"sync"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp"
	_ "github.com/argon-go/argon/conduits/shm"
)

// algorithms are those that every test runs on.
var algorithms = []Algorithm{Flat, Tree, Dissemination, Levels}

// fataler has the methods that *testing.T, *testing.B and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// job is a whole job in this process.
type job struct {
	t    fataler
	ends []*am.Messenger
	bars []*Barrier
}

// openJob opens n ranks whose next phase is start+1.
func openJob(t fataler, n int, how Algorithm, start uint32, extra ...am.Entry) *job {
	t.Helper()
	name := "shm"
	if how == Levels {
		name = "hybrid" // with two neighbourhoods, or one of one rank
	}
	c, err := conduits.Lookup(name)
	if err != nil {
		t.Fatalf("%v", err)
	}
	eps, err := c.Local(n, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		t.Fatalf("opening %d ranks: %v", n, err)
	}
	return joinJob(t, eps, how, start, extra...)
}

func joinJob(t fataler, eps []conduits.Endpoint, how Algorithm, start uint32, extra ...am.Entry) *job {
	t.Helper()
	n := len(eps)
	j := &job{t: t, ends: make([]*am.Messenger, n), bars: make([]*Barrier, n)}
	j.each(func(r int) {
		b := NewWith(Config{Force: how})
		b.state.Store(uint64(start) << wordPhase)
		e, err := am.Attach(eps[r], am.Config{Runtime: b.Handlers(), Handlers: extra})
		if err != nil {
			t.Errorf("rank %d: attach: %v", r, err)
			return
		}
		if err := b.Bind(e); err != nil {
			t.Errorf("rank %d: bind: %v", r, err)
		}
		j.ends[r], j.bars[r] = e, b
	})
	for r := range j.bars {
		if j.bars[r] == nil {
			t.Fatalf("rank %d did not come up", r)
		}
	}
	return j
}

// each runs f for every rank at once.
func (j *job) each(f func(r int)) {
	var wg sync.WaitGroup
	for r := range j.bars {
		wg.Go(func() { f(r) })
	}
	wg.Wait()
}

// close ends the job. It must not fail, for every rank is still there.
func (j *job) close() {
	for r, e := range j.ends {
		if err := e.Conduit().Close(); err != nil {
			j.t.Errorf("rank %d: close: %v", r, err)
		}
	}
}

// forAll runs f as a subtest for every algorithm and size.
func forAll(t *testing.T, sizes []int, f func(t *testing.T, n int, how Algorithm)) {
	for _, how := range algorithms {
		for _, n := range sizes {
			t.Run(how.String()+"/"+utoa(uint32(n)), func(t *testing.T) { f(t, n, how) })
		}
	}
}

// TestMessagesBeforeBind lets all others notify before one rank binds: what they
// send must be there afterwards.
func TestMessagesBeforeBind(t *testing.T) {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	const n = 5
	eps, err := shm.Local(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	bars := make([]*Barrier, n)
	ends := make([]*am.Messenger, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			b := NewWith(Config{Force: Dissemination})
			bars[r] = b
			e, err := am.Attach(eps[r], am.Config{Runtime: b.Handlers()})
			if ends[r] = e; err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
	for r := 1; r < n; r++ {
		if err := errors.Join(bars[r].Bind(ends[r]), bars[r].Notify(7, 0)); err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	for ends[0].Poll() > 0 {
	}
	if bars[0].d.slots == nil {
		t.Fatal("no message came before bind")
	}
	if err := errors.Join(bars[0].Bind(ends[0]), bars[0].Notify(7, 0)); err != nil {
		t.Fatal(err)
	}
	for r := range n {
		wg.Go(func() {
			if err := bars[r].Wait(7, 0); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
	for _, ep := range eps {
		ep.Close()
	}
}
