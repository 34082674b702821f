//go:build !race

package conduittest

const raceEnabled = false
