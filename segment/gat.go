package segment

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
)

// Entry is a global address table entry (GATe): the translation of one page
// (seed thesis, section 5.3, figure 5-8). It is one 64-bit word, so that it is
// read and written atomically and an access sees a page's frame, owner and
// rights change together or not at all. The zero Entry translates nothing.
//
//	63       48 47                      8 7    4  3   2      0
//	+----------+-------------------------+------+---+--------+
//	| VPID (16)|       frame (40)        |  0   | V | rights |
//	+----------+-------------------------+------+---+--------+
type Entry uint64

// The fields of an Entry.
const (
	VPIDBits  = 16 // owner: the virtual process id that the page is granted to
	FrameBits = 40 // page frame; with the page offset a 52-bit address

	frameShift = 64 - VPIDBits - FrameBits
	vpidShift  = 64 - VPIDBits
	entryValid = Entry(1) << 3
)

// MakeEntry returns a valid entry. frame is masked to FrameBits and rights to
// RightsAll.
func MakeEntry(owner uint16, frame uint64, rights Rights) Entry {
	return Entry(owner)<<vpidShift |
		Entry(frame&(1<<FrameBits-1))<<frameShift |
		entryValid | Entry(rights&RightsAll)
}

// Valid says whether the entry translates a page.
func (e Entry) Valid() bool { return e&entryValid != 0 }

// Owner is the VPID whose accesses the entry admits.
func (e Entry) Owner() uint16 { return uint16(e >> vpidShift) }

// Frame is the page frame, 0..2^40-1.
func (e Entry) Frame() uint64 { return uint64(e>>frameShift) & (1<<FrameBits - 1) }

// Rights is what the entry permits.
func (e Entry) Rights() Rights { return Rights(e) & RightsAll }

// String prints the fields, as "vpid 3 frame 0x10 rw-".
func (e Entry) String() string {
	if !e.Valid() {
		return "invalid"
	}
	return fmt.Sprintf("vpid %d frame %#x %v", e.Owner(), e.Frame(), e.Rights())
}

// ErrFault is matched by every *FaultError.
var ErrFault = errs.BadArg("segment: remote access fault")

// FaultError says why an address did not translate: the remote equivalent of a
// segmentation fault (seed thesis, section 5.3). It matches ErrFault and the
// ErrBadArg of every layer.
type FaultError struct {
	Addr NLA    // first byte of the access
	Len  uint64 // bytes of the access
	Need Rights // what the access would do
	VPID uint16 // who made it
	Page NLA    // first page that refused it
	Have Entry  // that page's entry; invalid if nothing is mapped there
}

// Error names the access and the first page that refused it.
func (f *FaultError) Error() string {
	s := fmt.Sprintf("segment: remote access fault: %d bytes at %v (%v by vpid %d): ", f.Len, f.Addr, f.Need, f.VPID)
	switch {
	case f.Page >= NLALimit:
		return s + fmt.Sprintf("beyond the last address, %v", NLALimit-1)
	case !f.Have.Valid():
		return s + fmt.Sprintf("nothing is mapped at page %v", f.Page)
	case f.Have.Owner() != f.VPID:
		return s + fmt.Sprintf("page %v belongs to vpid %d", f.Page, f.Have.Owner())
	}
	return s + fmt.Sprintf("page %v allows %v only", f.Page, f.Have.Rights())
}

// Unwrap makes errors.Is(err, ErrFault) hold.
func (f *FaultError) Unwrap() error { return ErrFault }

// Tables are the global address tables of one rank: up to NumGATs tables (GATs)
// of GATEntries entries. The zero value is empty and ready for use.
//
// The attach segment is one run of consecutive entries, described by its length
// alone until an entry of it is changed singly: it costs a few words, not the
// 8 bytes a page of filled-in tables. A GAT takes its 2 MiB when Store first
// touches it. Memory that is registered beside the attach segment gets its
// entries by Store; a translation cache stands between Translate and Load.
//
// Load and Translate may run at any time on any goroutine and do not lock.
type Tables struct {
	// gats is the on-chip level of figure 5-8: GAT number to GAT.
	gats [NumGATs]atomic.Pointer[gat]
	run  atomic.Pointer[attachRun]
	mu   sync.Mutex // AttachRun and Store
}

type gat [GATEntries]atomic.Uint64

// attachRun stands for entries that nobody has filled in: page i of the attach
// segment has frame i.
type attachRun struct {
	pages  uint64
	owner  uint16
	rights Rights
}

const attachPage = uint64(AttachBase) >> PageBits

// entry is the run's entry for page index p of the whole NLA space.
func (r *attachRun) entry(p uint64) Entry {
	if r == nil || p-attachPage >= r.pages {
		return 0
	}
	return MakeEntry(r.owner, p-attachPage, r.rights)
}

// AttachRun enters size bytes, a multiple of PageSize, as one contiguous run of
// entries from AttachBase on, with frames counted from 0: frame 0 is the first
// page of the attach segment. It may be called once, before entries in that
// range are stored singly. It takes the same small time for every size.
func (t *Tables) AttachRun(size uint64, owner uint16, rights Rights) error {
	if size%PageSize != 0 {
		return errs.BadArg("segment: attach of %d bytes: not a multiple of the page size, %d", size, PageSize)
	}
	if size > uint64(MaxAttach) {
		return errs.BadArg("segment: attach of %d bytes: at most %d can be addressed (-segment, ARGON_SEGMENT)", size, uint64(MaxAttach))
	}
	if rights&^RightsAll != 0 {
		return errs.BadArg("segment: attach with rights %#x: only %#x are known", uint8(rights), uint8(RightsAll))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run.Load() != nil {
		return errs.BadArg("segment: attach: a segment is attached already")
	}
	for g := AttachBase.GAT(); uint64(g)*GATSpan < uint64(AttachBase)+size; g++ {
		if t.gats[g].Load() != nil {
			return errs.BadArg("segment: attach of %d bytes: GAT %d has entries already", size, g)
		}
	}
	t.run.Store(&attachRun{pages: size / PageSize, owner: owner, rights: rights})
	return nil
}

// Load reads the entry of the page that a lies in; the zero Entry if a is no
// NLA or nothing is mapped there.
func (t *Tables) Load(a NLA) Entry {
	if a >= NLALimit {
		return 0
	}
	if g := t.gats[a.GAT()].Load(); g != nil {
		return Entry(g[a.Entry()].Load())
	}
	return t.run.Load().entry(uint64(a) >> PageBits)
}

// Store writes the entry of the page that a lies in, and makes the GAT around
// it if there is none. Storing 0 revokes the page: accesses that begin later
// fault. Entry 0 of GAT 0 is never given out.
func (t *Tables) Store(a NLA, e Entry) error {
	if a < PageSize || a >= NLALimit {
		return errs.BadArg("segment: no entry for address %#x: entries exist for %#x..%#x", uint64(a), PageSize, uint64(NLALimit)-1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gats[a.GAT()].Load()
	if g == nil {
		g = new(gat)
		if r := t.run.Load(); r != nil {
			first := uint64(a.GAT()) << EntryBits
			if end := attachPage + r.pages; first >= attachPage && first < end {
				for i := range min(end-first, GATEntries) {
					g[i].Store(uint64(r.entry(first + i)))
				}
			}
		}
		g[a.Entry()].Store(uint64(e))
		t.gats[a.GAT()].Store(g)
		return nil
	}
	g[a.Entry()].Store(uint64(e))
	return nil
}

// Translate checks that vpid may access all of the n bytes at a in the way that
// need says, and returns the address of the first, its frame << PageBits | its
// page offset, and how many of the n bytes lie at consecutive addresses from
// there (the whole of the attach segment does). n must not be 0. A refusal is a
// *FaultError. Every page is checked; within a run that was never changed
// singly that takes constant time per GAT.
func (t *Tables) Translate(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, err error) {
	if n == 0 {
		return 0, 0, errs.BadArg("segment: translation of 0 bytes at %v", a)
	}
	if a >= NLALimit || n > uint64(NLALimit-a) {
		return 0, 0, &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLALimit}
	}
	first, last := uint64(a)>>PageBits, (uint64(a)+n-1)>>PageBits
	run := t.run.Load()
	start, pages := uint64(0), uint64(0) // frame of first, frames consecutive from it
	for p := first; p <= last; {
		// e is page p's entry, and k pages from p on have entries alike but for
		// their frames, which count up.
		var e Entry
		k := uint64(1)
		if g := t.gats[p>>EntryBits].Load(); g != nil {
			e = Entry(g[p&(GATEntries-1)].Load())
		} else if e = run.entry(p); e.Valid() {
			k = min(last+1, attachPage+run.pages, (p|(GATEntries-1))+1) - p
		}
		if !e.Valid() || e.Owner() != vpid || e.Rights()&need != need {
			return 0, 0, &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLA(p << PageBits), Have: e}
		}
		if p == first {
			start = e.Frame()
		}
		if pages == p-first && e.Frame() == start+pages {
			pages += k
		}
		p += k
	}
	off := uint64(a.Offset())
	return start<<PageBits | off, min(n, pages<<PageBits-off), nil
}
