package udp_test

import (
	"flag"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestMain has the suite sleep and wake less often than it does by itself, unless
// told otherwise: a network takes its time.
func TestMain(m *testing.M) {
	if err := flag.Set("conformance.rounds", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	testjob.Main(m, programs)
}
