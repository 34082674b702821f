//go:build !race

package extended_test

const raceEnabled = false
