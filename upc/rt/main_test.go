package rt

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	var seed atomic.Uint64
	// Jitter brings messages out of order.
	conduits.Register(conduits.Conduit{Name: "rt-sim", Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: seed.Add(1), Faults: sim.Faults{Jitter: 100000}})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
	conduits.Register(conduits.Conduit{Name: "rt-chaos", Local: chaos.Local(shm.Local, chaos.Config{Seed: 2, HideNeighbours: true})})
	testjob.Main(m, map[string]func(){"test": asProcess(m)})
}

// networks are the conduits that the tests run on.
var networks = []string{"shm", "loop", "udp", "hybrid", "rt-sim", "rt-chaos"}

// run runs main as so many threads on a conduit. failf fails the thread that calls it.
func run(conduit string, threads int, main func(t *Thread)) error {
	return Run(Config{Threads: threads, Conduit: conduit, Segment: 1 << 19}, main)
}

// onEach runs main on every conduit.
func onEach(t *testing.T, threads int, main func(t *Thread)) {
	t.Helper()
	for _, c := range networks {
		t.Run(c, func(t *testing.T) {
			if err := run(c, threads, main); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// failf ends the thread with an error.
func (t *Thread) failf(format string, args ...any) {
	t.must(fmt.Errorf("thread %d: "+format, append([]any{t.me}, args...)...))
}

// refused checks that main ends the job with an error that matches kind and says this.
func refused(t *testing.T, threads int, kind error, says string, main func(t *Thread)) {
	t.Helper()
	err := run("shm", threads, main)
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("the job ends with %v, not one that says %q", err, says)
	}
}
