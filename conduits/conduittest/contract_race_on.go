//go:build race

package conduittest

// raceEnabled: checks of plain stores that race on purpose do not run where the
// race detector would report just that.
const raceEnabled = true
