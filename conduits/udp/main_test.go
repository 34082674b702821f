package udp_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has the suite sleep and wake less often than it does by itself, unless
// told otherwise: a network takes its time.
func TestMain(m *testing.M) {
	if err := flag.Set("conduittest.rounds", "1000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
