package segment

import (
	"math/bits"

	"github.com/argon-go/argon/internal/errs"
)

// addresses hands out pages of network logical addresses for registered memory.
// Single pages come from GAT 0, so that they do not break up the room of the
// larger runs, which come from above the attach segment (seed thesis, section
// 5.3, "memory management").
//
// What has been given back is handed out again as late as possible, so that an
// address that somebody still remembers faults rather than hits other memory.
type addresses struct {
	base, limit NLA // room for runs

	singles []uint64 // a bit for each page of GAT 0: taken; nil before first use
	taken   int
	next    int // where to look for a free single page

	heap *Heap // of [base, limit), nil before first use
	late []run // runs given back, oldest first from head on, still allocated in heap
	head int
}

// maxLate is how many runs wait before the oldest is handed out again.
const maxLate = 1024

// run is pages of consecutive addresses.
type run struct {
	at    NLA
	pages uint64
}

// alloc appends runs that have n pages together: one if it can be, and a page
// by itself where there is no larger room.
func (d *addresses) alloc(runs []run, n uint64) ([]run, error) {
	first, asked := len(runs), n
	for n > 0 {
		k := n
		if n == 1 {
			if a, ok := d.single(); ok {
				return append(runs, run{a, 1}), nil
			}
		}
		a, ok := d.block(k)
		if !ok && d.heap != nil {
			if k = min(n, d.heap.Usage().Largest/PageSize); k > 0 {
				a, ok = d.block(k)
			}
		}
		if !ok {
			k = 1
			if a, ok = d.single(); !ok {
				d.free(runs[first:])
				return runs[:first], errs.Resource("segment: no addresses for %d pages: a rank has %d for registered memory beside its attach segment",
					asked, uint64(d.limit-d.base)/PageSize+GATEntries-1)
			}
		}
		runs = append(runs, run{a, k})
		n -= k
	}
	return runs, nil
}

// free gives runs back.
func (d *addresses) free(runs []run) {
	for _, r := range runs {
		if r.at < GATSpan {
			i := r.at.Entry()
			d.singles[i/64] &^= 1 << (i % 64)
			d.taken--
			continue
		}
		if len(d.late) == cap(d.late) && d.head > len(d.late)/2 {
			d.late, d.head = append(d.late[:0], d.late[d.head:]...), 0
		}
		d.late = append(d.late, r)
		if len(d.late)-d.head > maxLate+1 {
			d.recycle(1)
		}
	}
}

// single takes a page of GAT 0. The search goes round, so that a page given back
// comes last.
func (d *addresses) single() (NLA, bool) {
	if d.singles == nil {
		d.singles = make([]uint64, GATEntries/64)
		d.singles[0] = 1 // entry 0 is never given out
		d.taken = 1
	}
	if d.taken == GATEntries {
		return 0, false
	}
	w := d.next / 64
	free := ^d.singles[w] &^ (1<<(d.next%64) - 1)
	for free == 0 {
		w = (w + 1) % len(d.singles)
		free = ^d.singles[w]
	}
	i := w*64 + bits.TrailingZeros64(free)
	d.singles[w] |= 1 << (i % 64)
	d.taken++
	d.next = (i + 1) % GATEntries
	return MakeNLA(0, i, 0), true
}

// block takes a run of n pages.
func (d *addresses) block(n uint64) (NLA, bool) {
	if d.heap == nil {
		if d.base >= d.limit {
			return 0, false
		}
		d.heap, _ = NewHeap(d.base, uint64(d.limit-d.base))
	}
	// Who registers and deregisters runs of one length all the time need not ask the
	// heap, which takes longer than all else that is done about addresses.
	if len(d.late)-d.head > maxLate && d.late[d.head].pages == n {
		d.head++
		return d.late[d.head-1].at, true
	}
	a, err := d.heap.Alloc(n*PageSize, PageSize)
	if err != nil && len(d.late) > d.head {
		d.recycle(len(d.late) - d.head)
		a, err = d.heap.Alloc(n*PageSize, PageSize)
	}
	return a, err == nil
}

// recycle makes the n oldest runs that were given back available.
func (d *addresses) recycle(n int) {
	for _, r := range d.late[d.head : d.head+n] {
		if err := d.heap.Free(r.at); err != nil {
			panic("segment: " + err.Error()) // it was allocated by block
		}
	}
	if d.head += n; d.head == len(d.late) {
		d.late, d.head = d.late[:0], 0
	}
}
