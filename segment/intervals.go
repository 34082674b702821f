package segment

import (
	"slices"
	"sort"

	"github.com/argon-go/argon/internal/errs"
)

// intervals counts how often each address has been added: the locked memory
// areas (LMAs) of Seifert and Rehm 2000, section 4.3. An area is a range of addresses with
// equal counts; areas are kept sorted, do not overlap, and adjacent ones with
// equal counts are one. The zero value is empty.
//
// They lie in chunks, so that an insertion among n areas moves at most a chunk
// and the list of n/chunkAreas chunks.
type intervals struct {
	chunks  [][]area
	covered uint64 // addresses with a count above 0
}

type area struct {
	start, end uint64 // [start, end)
	count      uint32
}

type span struct{ start, end uint64 }

const chunkAreas = 128

// overlap is how an interval meets an area (Seifert and Rehm 2000, figure 3).
type overlap uint8

const (
	disjoint overlap = iota
	front            // it covers the area's low end, not its high end
	rear             // it covers the area's high end, not its low end
	middle           // it covers neither end
	total            // it covers both
)

// meet classifies [start, end) against a.
func meet(start, end uint64, a area) overlap {
	switch {
	case end <= a.start || a.end <= start:
		return disjoint
	case start <= a.start && a.end <= end:
		return total
	case start <= a.start:
		return front
	case a.end <= end:
		return rear
	}
	return middle
}

// place is an area's chunk and index in it.
type place struct{ c, i int }

// seek finds the first area that ends above x.
func (v *intervals) seek(x uint64) (place, bool) {
	c := sort.Search(len(v.chunks), func(c int) bool {
		k := v.chunks[c]
		return k[len(k)-1].end > x
	})
	if c == len(v.chunks) {
		return place{}, false
	}
	k := v.chunks[c]
	return place{c, sort.Search(len(k), func(i int) bool { return k[i].end > x })}, true
}

func (v *intervals) at(p place) *area { return &v.chunks[p.c][p.i] }

// insert puts a where it belongs.
func (v *intervals) insert(a area) {
	p, ok := v.seek(a.start)
	if !ok {
		if len(v.chunks) == 0 {
			v.chunks = append(v.chunks, nil)
		}
		p.c = len(v.chunks) - 1
		p.i = len(v.chunks[p.c])
	}
	k := slices.Insert(v.chunks[p.c], p.i, a)
	v.chunks[p.c] = k
	if len(k) > chunkAreas {
		half := slices.Clone(k[len(k)/2:])
		v.chunks[p.c] = k[:len(k)/2]
		v.chunks = slices.Insert(v.chunks, p.c+1, half)
	}
}

func (v *intervals) remove(p place) {
	v.chunks[p.c] = slices.Delete(v.chunks[p.c], p.i, p.i+1)
	if len(v.chunks[p.c]) == 0 {
		v.chunks = slices.Delete(v.chunks, p.c, p.c+1)
	}
}

// split makes x a border if it lies inside an area.
func (v *intervals) split(x uint64) {
	if p, ok := v.seek(x); ok {
		if a := v.at(p); a.start < x {
			high := area{x, a.end, a.count}
			a.end = x
			v.insert(high)
		}
	}
}

// merge joins equal neighbours from the area that ends at or contains from up
// to the one that begins at to.
func (v *intervals) merge(from, to uint64) {
	p, ok := v.seek(max(from, 1) - 1)
	for ok {
		a := v.at(p)
		if a.start > to {
			return
		}
		next, more := v.seek(a.end)
		if !more {
			return
		}
		if b := v.at(next); a.end == b.start && a.count == b.count {
			a.end = b.end
			v.remove(next)
			p, ok = v.seek(a.start)
		} else {
			p = next
		}
	}
}

// add counts [start, end) once more, and appends to fresh what of it had been
// counted 0 times.
func (v *intervals) add(start, end uint64, fresh []span) []span {
	for x := start; x < end; {
		p, ok := v.seek(x)
		if !ok || meet(x, end, *v.at(p)) == disjoint {
			v.insert(area{x, end, 1})
			v.covered += end - x
			fresh = append(fresh, span{x, end})
			break
		}
		a := v.at(p)
		switch meet(x, end, *a) {
		case rear, middle:
			v.split(x) // what remains of the area is met at its front or in total
		case front, total:
			if x < a.start {
				low := area{x, a.start, 1}
				v.covered += low.end - low.start
				fresh = append(fresh, span{low.start, low.end})
				x = low.end
				v.insert(low)
				continue
			}
			x = min(end, a.end)
			v.split(x)
			p, _ = v.seek(x - 1)
			v.at(p).count++
		}
	}
	v.merge(start, end)
	return fresh
}

// sub takes one add of [start, end) back, and appends to gone the parts of it that are
// counted 0 times from then on. If a part of it has not been added, nothing
// changes and the error names its address.
func (v *intervals) sub(start, end uint64, gone []span) ([]span, error) {
	for x := start; x < end; {
		p, ok := v.seek(x)
		if !ok || v.at(p).start > x {
			return gone, errs.BadArg("segment: address %#x is not registered", x)
		}
		x = v.at(p).end
	}
	v.split(start)
	v.split(end)
	for x := start; x < end; {
		p, _ := v.seek(x)
		a := v.at(p)
		x = a.end
		if a.count--; a.count > 0 {
			continue
		}
		v.covered -= a.end - a.start
		if k := len(gone) - 1; k >= 0 && gone[k].end == a.start {
			gone[k].end = a.end
		} else {
			gone = append(gone, span{a.start, a.end})
		}
		v.remove(p)
	}
	v.merge(start, end)
	return gone, nil
}
