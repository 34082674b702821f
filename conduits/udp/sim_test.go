package udp_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestConformanceSimulated runs the suite over a network that does everything at
// once that a network can do, with encrypted datagrams. Without faults it is
// TestConformance that tells more.
func TestConformanceSimulated(t *testing.T) {
	testmain.Long(t)
	testjob.Simulated(t)
	conformance.Run(t, udp.Simulate(sim.Faults{
		Drop: 0.2, Duplicate: 0.1, Delay: 0.5, Corrupt: 0.05, Truncate: 0.02, DelayBy: 30 * sim.Microsecond,
		Buffer: 1 << 18, Jitter: sim.Microsecond,
	}, seal.Encrypted))
}

// counter counts messages.
type counter struct{ n int }

func (c *counter) Receive(*conduits.Message)                      { c.n++ }
func (c *counter) Complete(uint64, conduits.Event, uint64, error) {}

// TestCloseDelivers has ranks send and leave at once over a bad network: what
// they sent arrives nevertheless.
func TestCloseDelivers(t *testing.T) {
	for seed := range uint64(20) {
		const n, each = 3, 10
		eps, err := udp.Simulate(sim.Faults{Drop: 0.3, Delay: 0.5}, udp.Plain)(n, conduits.Config{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]counter, n)
		conduits.Run(eps, func(i int) {
			ep := eps[i]
			if err := ep.Attach(conduits.AttachConfig{Receiver: &got[i]}); err != nil {
				t.Error(err)
				return
			}
			if i > 0 {
				payload := make([]byte, 3000)
				for range each {
					if st := ep.SendPayload(0, conduits.Request, 1, nil, payload, 0); st != conduits.Ready {
						t.Errorf("status %d", st)
					}
				}
			} else if err := conduits.Wait(ep, nil, func() bool { return got[0].n == (n-1)*each }); err != nil {
				t.Error(err)
			}
			if err := ep.Close(); err != nil {
				t.Error(err)
			}
		})
		if got[0].n != (n-1)*each {
			t.Fatalf("seed %d: %d messages of %d", seed, got[0].n, (n-1)*each)
		}
	}
}
