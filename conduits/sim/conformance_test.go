package sim_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestConformance runs the suite with a network that delays everything at
// random.
func TestConformance(t *testing.T) { conforms(t, false) }

// TestConformanceOffload runs what barriers and collectives do differently where cards do
// a part of it.
func TestConformanceOffload(t *testing.T) {
	testmain.Long(t)
	conforms(t, true, "card", "layers")
}

func conforms(t *testing.T, offload bool, groups ...string) {
	testjob.Simulated(t)
	conformance.RunGroups(t, func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{
			Seed: c.Seed, MaxSegment: c.MaxSegment, Credits: c.Credits, MaxMedium: c.MaxMedium, Offload: offload,
			Faults: sim.Faults{Jitter: 5 * sim.Microsecond},
		})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}, groups...)
}
