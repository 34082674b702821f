package firehose

// index maps bucket numbers to slots: a hash table with open addressing and
// linear probing, at most half full. It is on the path of every hit, where a Go
// map takes three times as long.
type index struct {
	cells []cell
	shift uint // of the hash
	n     int
}

type cell struct {
	bucket uint64
	slot   uint32 // 0 if the cell is empty
}

// home is where the search for a bucket begins: Fibonacci hashing, so that
// neighbours spread.
func (x *index) home(bucket uint64) uint64 { return bucket * 0x9e3779b97f4a7c15 >> x.shift }

// find returns a bucket's slot, or 0.
func (x *index) find(bucket uint64) uint32 {
	mask := uint64(len(x.cells)) - 1
	if len(x.cells) == 0 {
		return 0
	}
	for i := x.home(bucket) & mask; ; i = (i + 1) & mask {
		if c := &x.cells[i]; c.bucket == bucket || c.slot == 0 {
			return c.slot
		}
	}
}

// change gives a bucket that is there another slot.
func (x *index) change(bucket uint64, slot uint32) {
	mask := uint64(len(x.cells)) - 1
	i := x.home(bucket)
	for x.cells[i].bucket != bucket || x.cells[i].slot == 0 {
		i = (i + 1) & mask
	}
	x.cells[i].slot = slot
}

// set enters a bucket that is not there.
func (x *index) set(bucket uint64, slot uint32) {
	if 2*(x.n+1) > len(x.cells) {
		old := x.cells
		size := max(16, 2*len(old))
		x.cells = make([]cell, size)
		for x.shift = 64; size > 1; size /= 2 {
			x.shift--
		}
		for _, c := range old {
			if c.slot != 0 {
				x.put(c)
			}
		}
	}
	x.put(cell{bucket, slot})
	x.n++
}

func (x *index) put(c cell) {
	mask := uint64(len(x.cells)) - 1
	i := x.home(c.bucket)
	for x.cells[i].slot != 0 {
		i = (i + 1) & mask
	}
	x.cells[i] = c
}

// remove takes out a bucket that is there, and moves up those that would not be
// found behind the gap.
func (x *index) remove(bucket uint64) {
	mask := uint64(len(x.cells)) - 1
	i := x.home(bucket)
	for x.cells[i].bucket != bucket || x.cells[i].slot == 0 {
		i = (i + 1) & mask
	}
	for k := (i + 1) & mask; x.cells[k].slot != 0; k = (k + 1) & mask {
		if (k-x.home(x.cells[k].bucket))&mask >= (k-i)&mask {
			x.cells[i] = x.cells[k]
			i = k
		}
	}
	x.cells[i] = cell{}
	x.n--
}
