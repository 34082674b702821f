package firehose

import (
	"flag"
	"os"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestMain has state machines run longer than rapid does by itself: what is rare
// in this protocol takes several messages under way at once.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.steps", "200")
	os.Exit(testmain.Run(m))
}
