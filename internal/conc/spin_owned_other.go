//go:build !amd64 || race

package conc

// ChangedOwned is Changed for a line that the caller writes afterwards: the
// first value of *p that is not old, or old after n looks, n >= 1.
func ChangedOwned(p *uint64, old uint64, n int) uint64 { return Changed(p, old, n) }
