package segment

import (
	"math/bits"

	"github.com/argon-go/argon/internal/errs"
)

// addresses hands out pages of network logical addresses for registered memory.
// Single pages come from GAT 0, so that they do not break up the room of the
// larger runs, which come from above the attach segment (Nüssle 2008, section
// 5.3, "memory management").
//
// A page of addresses stays free behind every run, so that an access that goes
// beyond the end of its region faults, rather than hits the next one, whatever else
// is or was registered. Where addresses run out the registration is refused.
//
// Addresses that were given back are handed out again as late as possible, so that an
// address that a peer still remembers faults rather than hits other memory.
type addresses struct {
	base, limit NLA // room for runs

	singles []uint64 // a bit for each even page of GAT 0: taken; nil before first use
	taken   int
	next    int // where to look for a free single page, in pairs of pages

	heap  *Heap // of [base, limit), nil before first use; its blocks have the page behind, too
	late  []run // runs given back, oldest first from head on, still allocated in heap
	head  int
	pages uint64 // of late
}

// maxLate is how many runs wait before the oldest is handed out again.
const maxLate = 1024

// Large runs wait for less, so that the tables behind the addresses in use, 3 MiB for each GATSpan of them, stay few: at
// most lateMost pages, but for leastLate runs.
const (
	lateMost  = 4 * GATEntries
	leastLate = 16
)

// numSingles is how many single pages there are: the even pages of GAT 0. The odd
// ones stay free behind them. Page 0 is never given out.
const numSingles = GATEntries / 2

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
		r, ok := run{}, false
		if n == 1 {
			r, ok = d.single()
		}
		if !ok {
			r, ok = d.block(n)
		}
		if !ok && d.heap != nil {
			if most := d.heap.Usage().Largest / PageSize; most > 1 {
				r, ok = d.block(min(n, most-1))
			}
		}
		if !ok {
			r, ok = d.single()
		}
		if !ok {
			d.free(runs[first:])
			return runs[:first], errs.Resource("segment: no addresses for %d pages: a rank has %d beside its attach segment, and %d single ones, and a page stays free behind each piece of registered memory",
				asked, uint64(d.limit-d.base)/PageSize, numSingles-1)
		}
		runs = append(runs, r)
		n -= r.pages
	}
	return runs, nil
}

// free gives runs back.
func (d *addresses) free(runs []run) {
	for _, r := range runs {
		if r.at < GATSpan {
			d.flip(r.at.Entry()/2, -1)
			continue
		}
		if len(d.late) == cap(d.late) && d.head > len(d.late)/2 {
			d.late, d.head = append(d.late[:0], d.late[d.head:]...), 0
		}
		d.late = append(d.late, r)
		d.pages += r.pages
		for n := len(d.late) - d.head; n > maxLate+1 || n > leastLate && d.pages > lateMost; n-- {
			d.recycle(1)
		}
	}
}

// single takes a page of GAT 0. The search goes round, so that a page given back
// comes last.
func (d *addresses) single() (run, bool) {
	if d.singles == nil {
		d.singles = make([]uint64, numSingles/64)
		d.flip(0, 1)
	}
	if d.taken == numSingles {
		return run{}, false
	}
	w := d.next / 64
	f := ^d.singles[w] &^ (1<<(d.next%64) - 1)
	for f == 0 {
		w = (w + 1) % len(d.singles)
		f = ^d.singles[w]
	}
	i := w*64 + bits.TrailingZeros64(f)
	d.flip(i, 1)
	d.next = (i + 1) % numSingles
	return run{at: MakeNLA(0, 2*i, 0), pages: 1}, true
}

// flip takes page 2*i of GAT 0 if by is 1, and gives it back if by is -1.
func (d *addresses) flip(i, by int) {
	d.singles[i/64] ^= 1 << (i % 64)
	d.taken += by
}

// block takes a run of n pages, and the page behind.
func (d *addresses) block(n uint64) (run, bool) {
	if d.heap == nil {
		if d.base >= d.limit {
			return run{}, false
		}
		d.heap, _ = NewHeap(d.base, uint64(d.limit-d.base))
		d.heap.unmarked = true // of 2^39 addresses, which runs of all lengths come from in time
	}
	r := run{0, n}
	// A program that registers and deregisters runs of one length all the time need
	// not ask the heap, which takes longer than all else that is done about addresses.
	if len(d.late)-d.head > maxLate && d.late[d.head].pages == n {
		d.head++
		d.pages -= n
		r.at = d.late[d.head-1].at
		return r, true
	}
	var err error
	r.at, err = d.heap.Alloc((n+1)*PageSize, PageSize)
	if err != nil && len(d.late) > d.head {
		d.recycle(len(d.late) - d.head)
		r.at, err = d.heap.Alloc((n+1)*PageSize, PageSize)
	}
	return r, err == nil
}

// recycle makes the n oldest runs that were given back available.
func (d *addresses) recycle(n int) {
	for _, r := range d.late[d.head : d.head+n] {
		d.pages -= r.pages
		if err := d.heap.Free(r.at); err != nil {
			panic("segment: " + err.Error()) // it was allocated by block
		}
	}
	if d.head += n; d.head == len(d.late) {
		d.late, d.head = d.late[:0], 0
	}
}
