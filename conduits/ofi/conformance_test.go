//go:build ofi && cgo

package ofi_test

import (
	"flag"
	"os"
	"testing"

	"github.com/argon-go/argon/conduits/ofi"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	// 69 MB a rank otherwise on tcp;ofi_rxm, and the long way of long frames is taken.
	if os.Getenv("FI_OFI_RXM_BUFFER_SIZE") == "" {
		os.Setenv("FI_OFI_RXM_BUFFER_SIZE", "1024")
	}
	testjob.Main(m, map[string]func(){"everything": everything, "die": die, "differ": differ, "mix": mix, "own": own, "end": end, "unattached": unattached})
}

func TestConformance(t *testing.T) { conformance.Run(t, ofi.Local) }

var demands = flag.Bool("ofi.demanding", false, "run the suite on a provider that asks for everything, too")

// TestDemanding runs the suite where the provider asks for everything
// that can be handled.
func TestDemanding(t *testing.T) {
	if !*demands {
		t.Skip("with -ofi.demanding only: it takes as long as the suite")
	}
	conformance.Run(t, ofi.LocalDemanding)
}
