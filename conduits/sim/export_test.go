package sim

import "reflect"

// For tests of package sim_test.
var (
	RandomPlan = randomPlan
	Seeds      = seeds
)

// NoRemoteWritten says that something wrote to what all messages share that access no
// memory.
func NoRemoteWritten() bool { return !reflect.ValueOf(noRemote).IsZero() }
