//go:build ofi && cgo

package ofi_test

import (
	"os"
	"testing"

	"github.com/argon-go/argon/conduits/conduittest"
	"github.com/argon-go/argon/conduits/ofi"
	"github.com/argon-go/argon/internal/testjob"
)

func TestMain(m *testing.M) {
	// 69 MB a rank otherwise on tcp;ofi_rxm, and the long way of long frames is taken.
	if os.Getenv("FI_OFI_RXM_BUFFER_SIZE") == "" {
		os.Setenv("FI_OFI_RXM_BUFFER_SIZE", "1024")
	}
	testjob.Main(m, map[string]func(){"everything": everything, "die": die, "differ": differ})
}

func TestConformance(t *testing.T) { conduittest.Run(t, ofi.Local) }
