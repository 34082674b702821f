//go:build !amd64 || race

package conc

import (
	"sync/atomic"
)

// Nonzero looks at *p up to n times, n >= 1, and returns the first value that is
// not zero, or 0. It acquires: what was stored before the value is visible when
// it returns. ahead and beside are not used here.
func Nonzero(p *uint64, n int, ahead, beside *uint64) uint64 {
	for ; n > 0; n-- {
		if v := atomic.LoadUint64(p); v != 0 {
			return v
		}
	}
	return 0
}

// Changed looks at *p up to n times, n >= 1, and returns the first value that is
// not old, or old. It acquires.
func Changed(p *uint64, old uint64, n int) uint64 {
	for ; n > 0; n-- {
		if v := atomic.LoadUint64(p); v != old {
			return v
		}
	}
	return old
}

// Ahead reports whether Nonzero asks for the lines of ahead and beside.
const Ahead = false
