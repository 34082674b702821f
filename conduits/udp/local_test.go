package udp_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/udp"
)

// TestConformance runs the suite on sockets of the loopback interface.
func TestConformance(t *testing.T) { conduittest.Run(t, udp.Local) }
