package udp_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestConformance runs the suite on sockets of the loopback interface.
func TestConformance(t *testing.T) {
	if conc.Race { // which takes long enough as it is: the rest on ranks that have joined
		conformance.RunGroups(t, udp.Local, "layers", "machine")
		return
	}
	if testmain.Quick() {
		conformance.RunGroups(t, udp.Local, "contract")
		return
	}
	conformance.Run(t, udp.Local)
}

// TestConformanceJoined runs it on ranks that have joined as processes do: over a
// rendezvous, with sealed datagrams and an attendant for each.
func TestConformanceJoined(t *testing.T) {
	testmain.Long(t)
	if conc.Race {
		conformance.RunGroups(t, udp.Joined(seal.Authenticated, nil), "contract")
		return
	}
	conformance.Run(t, udp.Joined(seal.Authenticated, nil))
}
