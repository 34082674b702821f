package udp_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp"
)

// TestConformanceSimulated runs the suite over a network that does everything at
// once that a network can do.
func TestConformanceSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("a network of misfortunes takes half a minute")
	}
	conduittest.Run(t, udp.Simulate(sim.Faults{
		Drop: 0.2, Duplicate: 0.1, Delay: 0.5, Corrupt: 0.05, Truncate: 0.02, DelayBy: 30 * sim.Microsecond,
		Buffer: 1 << 18, Jitter: sim.Microsecond,
	}))
}

// TestConformanceClear runs it over a network without faults.
func TestConformanceClear(t *testing.T) { conduittest.Run(t, udp.Simulate(sim.Faults{})) }
