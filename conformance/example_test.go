package conformance_test

import (
	"testing"

	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance"
	"github.com/argon-go/argon/conformance/chaos"
)

// What a conduit's own tests call: the suite on the conduit as it is, and with
// misfortune on top.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		conformance.Run(t, shm.Local)
	}
	testConformanceInChaos := func(t *testing.T) {
		conformance.Run(t, chaos.Local(shm.Local, chaos.Config{HideNeighbours: true}))
	}
	_, _ = testConformance, testConformanceInChaos // functions of their own, called Test...
}

// What a failing program is printed as: two ranks, one of which puts while the
// other one looks.
func TestReplayOfAProgram(t *testing.T) {
	conformance.Replay(t, shm.Local, conformance.Program{
		Ranks: 2,
		Steps: []conformance.Step{
			{Do: "put", Peer: 1, At: 9, Len: 100, Value: 7, Form: "nb"},
			{Do: "atomic", Rank: 1, Peer: 0, At: 8, Value: 3, Arg: 4},
			{Do: "check"},
		},
	})
}
