package sim

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// tlb is the translation cache of a card with Profile.TLB entries. Entries outlive the end of
// a registration, which flushes them on the real card: a new one misses there once more.
type tlb struct {
	free  Time     // when the unit takes the next address
	pages []uint64 // by their number modulo TLB: the page, plus 1
}

// translate returns how long from now on the card takes for the translation of n bytes at a:
// that of the first page. Those of further pages go on beside the transfer.
func translate(e *Endpoint, now Time, a uint64, n int) Time {
	p := &e.j.p
	if p.TLB == 0 {
		return p.ATU
	}
	if e.tlb == nil {
		e.tlb = &tlb{pages: make([]uint64, p.TLB)}
	}
	size := uint64(max(p.Page, line))
	u := e.tlb
	if !conduits.InSegment(e, e.rank, segment.NLA(a), uint64(n)) {
		a &^= size - 1 // see Job.commands
	}
	u.free = max(u.free, now)
	first := Time(-1)
	for page := a / size; page <= (a+uint64(max(n, 1)-1))/size; page++ {
		u.free += p.ATU
		if entry := &u.pages[page%uint64(p.TLB)]; *entry != page+1 {
			*entry = page + 1
			u.free += p.ATUMiss
		}
		if first < 0 {
			first = u.free - now
		}
	}
	return first
}

// translateOwn is translate of the rank's own memory. What lies outside its segment is taken
// to be in the cache: where the Go heap has it differs from run to run.
func translateOwn(e *Endpoint, now Time, mem []byte) Time {
	if e.j.p.TLB != 0 {
		if a, ok := address(e, mem); ok {
			return translate(e, now, a, len(mem))
		}
	}
	return e.j.p.ATU
}
