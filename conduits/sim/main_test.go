package sim_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) {
	status := testmain.Run(m)
	if sim.NoRemoteWritten() {
		fmt.Fprintln(os.Stderr, "sim: a message without remote was written to as if it had one")
		status = 1
	}
	os.Exit(status)
}
