//go:build !race

package gas

const raceEnabled = false
