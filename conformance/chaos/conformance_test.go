package chaos_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestConformance: chaos keeps the contract, and the layers above keep their
// promises on it. The race detector sees the rest of the suite in TestConformanceHidden.
func TestConformance(t *testing.T) {
	testmain.Long(t)
	open := chaos.Local(shm.Local, chaos.Config{})
	if conc.Race {
		conformance.RunGroups(t, open, "contract")
		return
	}
	conformance.Run(t, open)
}

// TestConformanceHidden is the same without direct access to other ranks.
func TestConformanceHidden(t *testing.T) {
	testmain.Long(t)
	open := chaos.Local(shm.Local, chaos.Config{HideNeighbours: true})
	if conc.Race {
		conformance.RunGroups(t, open, "layers", "machine")
		return
	}
	conformance.Run(t, open)
}

// TestConformanceSimulated is chaos over a simulated network: deterministic for a
// seed, misfortune of both kinds at once.
func TestConformanceSimulated(t *testing.T) {
	testmain.Long(t)
	testjob.Simulated(t)
	conformance.Run(t, chaos.Local(sim.Local, chaos.Config{}))
}

// TestConformanceCard is chaos over a simulated network whose cards and switches do barriers
// and multicasts.
func TestConformanceCard(t *testing.T) {
	testjob.Simulated(t)
	open := func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{Seed: c.Seed, MaxSegment: c.MaxSegment, Credits: c.Credits, MaxMedium: c.MaxMedium, Offload: true})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}
	conformance.RunGroups(t, chaos.Local(open, chaos.Config{}), "card")
}
