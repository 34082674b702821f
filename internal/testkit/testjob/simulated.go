package testjob

import (
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/conc"
)

// Simulated skips a test of simulated ranks under the race detector, which has nothing to see there and takes
// minutes for it: they run one at a time.
func Simulated(t testing.TB) {
	if conc.Race {
		t.Skip("simulated ranks run one at a time")
	}
}

// Concurrent is the names of conduits that are worth a test: under the race detector not those
// of [Simulated] ranks.
func Concurrent(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return conc.Race && (strings.HasSuffix(name, "sim") || name == "card") })
}
