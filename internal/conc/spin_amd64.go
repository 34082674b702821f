//go:build amd64 && !race

package conc

// Nonzero looks at *p up to n times, n >= 1, and returns the first value that is
// not zero, or 0. It is meant for a line that the caller writes afterwards. It
// acquires: what was stored before the value is visible when it returns. On
// arrival it asks for the line of ahead to be fetched for writing, which the
// caller is likely to do next; ahead may be nil. With each look it asks for the line of
// beside, which the caller is likely to read next; p if there is none.
//
//go:noescape
func Nonzero(p *uint64, n int, ahead, beside *uint64) uint64

// Ahead reports whether Nonzero asks for the lines of ahead and beside.
const Ahead = true

// Changed looks at *p up to n times, n >= 1, and returns the first value that is
// not old, or old. It is meant for a line that the caller only reads.
//
//go:noescape
func Changed(p *uint64, old uint64, n int) uint64
