package dist_test

import (
	"os"
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) {
	conduits.Register(conduits.Conduit{Name: "dist-chaos", Local: chaos.Local(shm.Local, chaos.Config{Seed: 2, HideNeighbours: true})})
	conduits.Register(conduits.Conduit{Name: "dist-killed", Local: chaos.Local(shm.Local, chaos.Config{
		Seed: 3, HideNeighbours: true, Kill: []chaos.Kill{{Rank: 1, After: 2000}},
	})})
	os.Exit(testmain.Run(m))
}

// names are conduits that the tests run on, the quick ones more often.
var names = []string{"shm", "shm", "shm", "loop", "udp", "hybrid", "gastest", "dist-chaos"}

// small is the configuration of jobs of the tests.
func small(conduit string, ranks int) gas.Config {
	return gas.Config{Ranks: ranks, Conduit: conduit, SegmentSize: 1 << 18}
}
