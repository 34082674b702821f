package udp_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/race"
)

// TestConformance runs the suite on sockets of the loopback interface.
func TestConformance(t *testing.T) {
	if race.Enabled { // which takes long enough as it is: the rest on ranks that have joined
		conduittest.RunGroups(t, udp.Local, "layers", "machine")
		return
	}
	conduittest.Run(t, udp.Local)
}

// TestConformanceJoined runs it on ranks that have joined as processes do: over a
// rendezvous, with sealed datagrams and an attendant for each.
func TestConformanceJoined(t *testing.T) {
	if race.Enabled {
		conduittest.RunGroups(t, udp.Joined(seal.Authenticated, nil), "contract")
		return
	}
	conduittest.Run(t, udp.Joined(seal.Authenticated, nil))
}
