package aggregate

// mostDirect is the largest job in which every rank sends to every other one itself. In
// larger ones ranks form a grid, row by row, and items go to the rank of the sender's row
// that is in the column of their target, and from there to the target: a rank sends to
// those of its row and column alone, and has buffers for so many.
const mostDirect = 128

// columns is how many a grid of size ranks has: the root, rounded up.
func columns(size int) int {
	k := 1
	for k*k < size {
		k++
	}
	return k
}

// next is the rank to which items for dst are sent.
func (c *Aggregator) next(dst int) int { return next(c.rank, dst, c.size, c.columns) }

// next is the rank to which rank sends items for dst, in a job of size ranks in a grid of k
// columns; 0 is no grid.
func next(rank, dst, size, k int) int {
	if k == 0 || dst/k == rank/k || dst%k == rank%k {
		return dst
	}
	if via := rank/k*k + dst%k; via < size {
		return via
	}
	// The last row is short, and this rank is in it, so dst's row is whole.
	return dst/k*k + rank%k
}

// Direct reports whether all items for other ranks are sent to them without another rank in
// between, which Send always does.
func (c *Aggregator) Direct() bool { return c.columns == 0 }
