package hybrid_test

import (
	"flag"
	"os"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// programs are those of the ranks of the tests' jobs, each rank a process.
var programs = map[string]func(){
	"program":  program,
	"barriers": barriers,
	"die":      die,
	"fail":     fail,
	"early":    early,
	"visible":  visible,
	"reach":    reach,
	"remain":   remain,
}

// TestMain runs a rank of a job that a test has started, or the tests. It has the
// suite sleep and wake less often than it does by itself: a network takes its time.
func TestMain(m *testing.M) {
	if name := os.Getenv(envProgram); name != "" {
		programs[name]()
		os.Exit(0)
	}
	rounds := "1000"
	if conc.Race {
		rounds = "100"
	}
	if err := flag.Set("conformance.rounds", rounds); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(testmain.Run(m))
}
