//go:build race

package sim_test

// crowd divides the sizes of the tests with many ranks: the race detector makes
// them ten times as slow, and there is nothing for it to see.
const crowd = 16
