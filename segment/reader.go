package segment

import (
	"sync/atomic"
)

// Directory says where a rank's GATs lie in memory that processes share: a word
// for each, 0 if there is none yet. What else a word means is agreed upon by the
// owner that places the tables (see Tables.Place) and its readers; a page number of a
// shared file, for example. It is made by DirectoryAt.
type Directory [numGATs]atomic.Uint64

// Reader translates the addresses of a rank of another process by that rank's
// tables, which lie in memory shared with it. It believes nothing of what it
// reads there: whatever the owner writes into its directory and its tables, a
// translation ends, and gives a fault or an address, which the caller checks
// against the memory that there is.
//
// The caller announces itself to the owner, see ATU.Watch, before a translation
// and until it has done with the memory. All methods may be called by any
// goroutine, take no lock and, but for a fault, do not allocate.
type Reader struct {
	// Directory is the owner's.
	Directory *Directory
	// Open finds the table that a word of the directory stands for, or nil if it
	// can be none. It is called when table gat is first needed; whatever the
	// owner makes of the word later has no effect. Two goroutines may call it at
	// once, and the result of one is used.
	Open func(gat int, word uint64) *GAT

	gats [numGATs]atomic.Pointer[GAT]
}

// table finds GAT i, or nil.
func (r *Reader) table(i int) *GAT {
	if g := r.gats[i].Load(); g != nil {
		return g
	}
	w := r.Directory[i].Load()
	if w == 0 {
		return nil
	}
	g := r.Open(i, w)
	if g != nil && !r.gats[i].CompareAndSwap(nil, g) {
		g = r.gats[i].Load()
	}
	return g
}

// Translate checks that vpid may access all of the n bytes at a in the way that
// need says, and returns the address of the first, its frame << PageBits | its
// page offset, and how many of the n bytes lie at consecutive addresses from
// there. Next has the others. An address with AddrPrivate is one of the owner's
// address space, another one an offset in the shared file; no result goes across
// from one to the other. n must not be 0. A refusal is a *FaultError.
//
// The attach segment has no tables; ranks reach it by its View.
func (r *Reader) Translate(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, err error) {
	// The usual case: within one page, in a table that has been opened.
	if off := uint64(a) & (PageSize - 1); a < NLALimit && n-1 < PageSize-off {
		if g := r.gats[a.GAT()].Load(); g != nil {
			if e := Entry(g.entries[a.Entry()].Load()); e.whole(vpid, need) {
				return e.Frame()<<PageBits | off, n, nil
			}
		}
	}
	return r.translate(vpid, a, n, need, true)
}

// Next is Translate that looks no further than to the end of its result: for
// what Translate has found permitted and not at consecutive addresses.
func (r *Reader) Next(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, err error) {
	return r.translate(vpid, a, n, need, false)
}

// translate checks all of the pages, or as many as lie at consecutive addresses.
func (r *Reader) translate(vpid uint16, a NLA, n uint64, need Rights, all bool) (addr, contiguous uint64, err error) {
	if err := checkSpan(vpid, a, n, need); err != nil {
		return 0, 0, err
	}
	first, last := uint64(a)>>PageBits, (uint64(a)+n-1)>>PageBits
	start, pages := uint64(0), uint64(0) // frame of first, frames consecutive from it
	for p := first; p <= last; {
		g := r.table(int(p >> entryBits))
		if g == nil {
			return 0, 0, &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLA(p << PageBits)}
		}
		for end := min(last, p|(GATEntries-1)); p <= end; p++ {
			e := Entry(g.entries[p&(GATEntries-1)].Load())
			if !e.Admits(vpid, need) || e.Part() && !g.within(p, uint64(a), n) {
				if e.Part() {
					e = e.bounded(g.bounds[p&(GATEntries-1)].Load())
				}
				return 0, 0, &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLA(p << PageBits), Have: e}
			}
			f := e.Frame()
			switch {
			case p == first:
				start, pages = f, 1
			case pages == p-first && f == start+pages && (f^start)&FramePrivate == 0:
				pages++
			case !all:
				last, end = p, p
			}
		}
	}
	off := uint64(a) & (PageSize - 1)
	return start<<PageBits | off, min(n, pages<<PageBits-off), nil
}
