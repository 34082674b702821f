package wan

import "slices"

// ranges is a set of numbers as ranges [from, to), in order, none beside another.
type ranges [][2]uint64

// find is the index of the first range that ends at or after seq.
func (r ranges) find(seq uint64) int {
	i, _ := slices.BinarySearchFunc(r, seq, func(b [2]uint64, seq uint64) int {
		if b[1] < seq {
			return -1
		}
		return 1
	})
	return i
}

// within is the range that has seq; ok is false if none does.
func (r ranges) within(seq uint64) (b [2]uint64, ok bool) {
	if i := r.find(seq + 1); i < len(r) && r[i][0] <= seq {
		return r[i], true
	}
	return b, false
}

// add adds [from, to) and calls news for each number that is new.
func (r *ranges) add(from, to uint64, news func(seq uint64)) {
	if from >= to {
		return
	}
	i := r.find(from)
	j := i
	lo, hi, at := from, to, from
	for ; j < len(*r) && (*r)[j][0] <= to; j++ {
		b := (*r)[j]
		for ; at < b[0]; at++ {
			news(at)
		}
		at = max(at, b[1])
		lo, hi = min(lo, b[0]), max(hi, b[1])
	}
	for ; at < to; at++ {
		news(at)
	}
	if j == i+1 {
		(*r)[i] = [2]uint64{lo, hi}
		return
	}
	*r = slices.Replace(*r, i, j, [2]uint64{lo, hi})
}

// trim removes all numbers before cum.
func (r *ranges) trim(cum uint64) {
	i := 0
	for i < len(*r) && (*r)[i][1] <= cum {
		i++
	}
	if i > 0 {
		*r = slices.Delete(*r, 0, i)
	}
	if len(*r) > 0 {
		(*r)[0][0] = max((*r)[0][0], cum)
	}
}
