package distancetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestMain runs what a process that a test has started is to run.
func TestMain(m *testing.M) {
	if os.Getenv(envBulk) != "" {
		if err := bulkRank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testmain.Run(m))
}
