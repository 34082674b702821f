//go:build race

package conc

// Race reports whether the race detector is on.
const Race = true
