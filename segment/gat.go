package segment

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
)

// Entry is a global address table entry (GATe): the translation of one page
// (Nüssle 2008, section 5.3, figure 5-8). It is one 64-bit word, so that it is
// read and written atomically and an access sees a page's frame, owner and
// rights change together or not at all. The zero Entry translates nothing.
//
//	63       48 47                      8 7    5  4   3   2      0
//	+----------+-------------------------+------+---+---+--------+
//	| VPID (16)|       frame (40)        |  0   | P | V | rights |
//	+----------+-------------------------+------+---+---+--------+
//
// V says that the entry is valid, P that only a part of the page is mapped: its
// bounds stand beside the entry, in the [GAT].
type Entry uint64

// The fields of an Entry.
const (
	vpidBits  = 16 // owner: the virtual process id that the page is granted to
	frameBits = 40 // page frame; with the page offset a 52-bit address

	// AnyVPID as the owner of an entry admits every rank. No rank has it.
	AnyVPID = 1<<vpidBits - 1

	frameShift = 64 - vpidBits - frameBits
	vpidShift  = 64 - vpidBits
	entryValid = Entry(1) << 3
	entryPart  = Entry(1) << 4
	// In a FaultError only: the page's bounds stand where the frame was.
	entryBounds = Entry(1) << 5
	entryFrame  = Entry(1<<frameBits-1) << frameShift
)

// MakeEntry returns a valid entry of a whole page. frame is masked to frameBits
// and rights to RightsAll.
func MakeEntry(owner uint16, frame uint64, rights Rights) Entry {
	return Entry(owner)<<vpidShift |
		Entry(frame&(1<<frameBits-1))<<frameShift |
		entryValid | Entry(rights&RightsAll)
}

// Valid reports whether the entry translates a page.
func (e Entry) Valid() bool { return e&entryValid != 0 }

// Owner is the VPID whose accesses the entry admits, or AnyVPID.
func (e Entry) Owner() uint16 { return uint16(e >> vpidShift) }

// Frame is the page frame, 0..2^40-1.
func (e Entry) Frame() uint64 { return uint64(e>>frameShift) & (1<<frameBits - 1) }

// Rights returns the accesses that the entry permits.
func (e Entry) Rights() Rights { return Rights(e) & RightsAll }

// Part reports whether only a part of the page is mapped.
func (e Entry) Part() bool { return e&entryPart != 0 }

// Bounds is the bytes [from, to) of its page that e maps, if e is of a FaultError and
// maps a part; its frame means nothing then.
func (e Entry) Bounds() (from, to uint16, ok bool) {
	return uint16(e >> frameShift), uint16(e >> (frameShift + 16)), e&entryBounds != 0
}

// bounded is e, which maps a part, with the bounds of that part: bounds has those of
// a GAT.
func (e Entry) bounded(bounds uint32) Entry {
	return e&^entryFrame | entryBounds | Entry(bounds)<<frameShift
}

// Disclosed returns e without the place of its page in the owner's memory, for other
// ranks; bounds stay.
func (e Entry) Disclosed() Entry {
	if _, _, ok := e.Bounds(); !ok {
		e &^= entryFrame
	}
	return e
}

// Admits reports whether vpid may access the page in the way that need says.
func (e Entry) Admits(vpid uint16, need Rights) bool {
	return e.Valid() && (e.Owner() == vpid || e.Owner() == AnyVPID) && e.Rights()&need == need
}

// whole is Admits for a page all of which is registered.
func (e Entry) whole(vpid uint16, need Rights) bool {
	return e&(entryPart|entryValid|Entry(need)) == entryValid|Entry(need) && (e.Owner() == vpid || e.Owner() == AnyVPID)
}

// String prints the fields, as "vpid 3 frame 0x10 rw-".
func (e Entry) String() string {
	if !e.Valid() {
		return "invalid"
	}
	owner, part := fmt.Sprintf("vpid %d", e.Owner()), ""
	if e.Owner() == AnyVPID {
		owner = "any vpid"
	}
	if e.Part() {
		part = " in part"
	}
	return fmt.Sprintf("%s frame %#x %v%s", owner, e.Frame(), e.Rights(), part)
}

// ErrFault is matched by every *FaultError.
var ErrFault = errs.BadArg("segment: remote access fault")

// FaultError says why an address did not translate: the remote equivalent of a
// segmentation fault (Nüssle 2008, section 5.3). It matches ErrFault and the
// ErrBadArg of every layer.
type FaultError struct {
	Addr NLA    // first byte of the access
	Len  uint64 // bytes of the access
	Need Rights // what the access would do
	VPID uint16 // the rank that made it
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
	case f.Have.Owner() != f.VPID && f.Have.Owner() != AnyVPID:
		return s + fmt.Sprintf("page %v belongs to vpid %d", f.Page, f.Have.Owner())
	case f.Have.Admits(f.VPID, f.Need) && f.Have.Part():
		if from, to, ok := f.Have.Bounds(); ok && to > 0 {
			return s + fmt.Sprintf("of page %v only %v to %v is mapped", f.Page, f.Page+NLA(from), f.Page+NLA(to)-1)
		}
		return s + fmt.Sprintf("only a part of page %v is mapped", f.Page)
	case f.Have.Admits(f.VPID, f.Need):
		return s + fmt.Sprintf("another piece of memory begins at page %v", f.Page)
	}
	return s + fmt.Sprintf("page %v allows %v only", f.Page, f.Have.Rights())
}

// Unwrap makes errors.Is(err, ErrFault) hold.
func (f *FaultError) Unwrap() error { return ErrFault }

// GAT is one global address table. The bounds of pages that are mapped in part
// lie behind the entries, in memory that is not touched as long as there are
// none. A GAT may lie in memory that processes share, see Tables.Place, at any
// address: it has words without pointers, which are read and written atomically.
type GAT struct {
	entries [GATEntries]atomic.Uint64
	bounds  [GATEntries]atomic.Uint32 // first byte | byte after the last << 16
}

// Tables are the global address tables of one rank: up to numGATs tables (GATs)
// of GATEntries entries. The zero value is empty and ready for use.
//
// The attach segment is one run of consecutive entries, described by its length
// alone until an entry of it is changed singly: it costs a few words, not the
// 8 bytes a page of filled-in tables. A GAT takes its 2 MiB, and 1 MiB for
// bounds, when something is first stored in it.
//
// Load and Translate may run at any time on any goroutine and do not lock.
type Tables struct {
	// Place, unless nil, returns zeroed memory for a table that is needed, or
	// nil if there is none. It is called once for each table, before which
	// nothing of the table's span is mapped (but a part of the attach segment
	// may be). To be set before first use.
	Place func(gat int) *GAT

	// gats is the on-chip level of figure 5-8: GAT number to GAT.
	gats [numGATs]atomic.Pointer[GAT]
	run  atomic.Pointer[attachRun]
	mu   sync.Mutex // whatever writes
}

// attachRun stands for entries that are not filled in: page i of the attach
// segment has frame + i.
type attachRun struct {
	pages  uint64
	frame  uint64
	owner  uint16
	rights Rights
}

const attachPage = uint64(AttachBase) >> PageBits

// entry is the run's entry for page index p of the whole NLA space.
func (r *attachRun) entry(p uint64) Entry {
	if r == nil || p-attachPage >= r.pages {
		return 0
	}
	return MakeEntry(r.owner, r.frame+p-attachPage, r.rights)
}

// AttachRun enters size bytes, a multiple of PageSize, as one contiguous run of
// entries from AttachBase on, with frames counted from frame. It may be called
// once, before entries in that range are stored singly. It takes the same small
// time for every size.
func (t *Tables) AttachRun(size, frame uint64, owner uint16, rights Rights) error {
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
		return errs.BadArg("segment: attach of %d bytes: a segment of %d bytes is attached already", size, t.run.Load().pages<<PageBits)
	}
	for g := AttachBase.GAT(); uint64(g)*GATSpan < uint64(AttachBase)+size; g++ {
		if t.gats[g].Load() != nil {
			return errs.BadArg("segment: attach of %d bytes: GAT %d has entries already", size, g)
		}
	}
	t.run.Store(&attachRun{pages: size / PageSize, frame: frame, owner: owner, rights: rights})
	return nil
}

// Load reads the entry of the page that a lies in; the zero Entry if a is no
// NLA or nothing is mapped there.
func (t *Tables) Load(a NLA) Entry {
	if a >= NLALimit {
		return 0
	}
	if g := t.gats[a.GAT()].Load(); g != nil {
		return Entry(g.entries[a.Entry()].Load())
	}
	return t.run.Load().entry(uint64(a) >> PageBits)
}

// Store writes the entry of the page that a lies in, and makes the GAT around
// it if there is none. Storing 0 revokes the page: accesses that begin later
// fault. Entry 0 of GAT 0 is never given out.
func (t *Tables) Store(a NLA, e Entry) error { return t.Fill(a, 1, e) }

// Fill stores e for n pages from the one that a lies in, with frames counted up
// from e's if e is valid. Fill(a, n, 0) revokes n pages.
func (t *Tables) Fill(a NLA, n uint64, e Entry) error {
	if a < PageSize || a >= NLALimit || n > uint64(NLALimit-a+PageSize-1)>>PageBits {
		return errs.BadArg("segment: no entries for %d pages at address %#x: entries exist for %#x..%#x", n, uint64(a), PageSize, uint64(NLALimit)-1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, end := uint64(a)>>PageBits, uint64(a)>>PageBits+n; p < end; {
		g, err := t.table(int(p >> entryBits))
		if err != nil {
			return err
		}
		for last := min(end, p|(GATEntries-1)+1); p < last; p++ {
			g.entries[p&(GATEntries-1)].Store(uint64(e))
			if e.Valid() {
				e += 1 << frameShift
			}
		}
	}
	return nil
}

// FillPart is Store for a page of which only bytes [from, to) are mapped.
func (t *Tables) FillPart(a NLA, e Entry, from, to uint64) error {
	if from >= to || to > PageSize {
		return errs.BadArg("segment: no bytes %d..%d in a page of %d", from, to, PageSize)
	}
	if from == 0 && to == PageSize {
		return t.Store(a, e&^entryPart)
	}
	if err := t.Fill(a, 1, 0); err != nil { // makes the table
		return err
	}
	t.gats[a.GAT()].Load().bounds[a.Entry()].Store(uint32(from | to<<16))
	return t.Fill(a, 1, e|entryPart)
}

// prepare makes the tables that runs lie in.
func (t *Tables) prepare(runs []run) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range runs {
		for g := r.at.GAT(); g <= (r.at + NLA(r.pages<<PageBits) - 1).GAT(); g++ {
			if _, err := t.table(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// table finds GAT i, or makes it. t.mu is held.
func (t *Tables) table(i int) (*GAT, error) {
	g := t.gats[i].Load()
	if g != nil {
		return g, nil
	}
	if t.Place == nil {
		g = new(GAT)
	} else if g = t.Place(i); g == nil {
		return nil, errs.Resource("segment: no memory for global address table %d", i)
	}
	if r := t.run.Load(); r != nil {
		first := uint64(i) << entryBits
		if end := attachPage + r.pages; first >= attachPage && first < end {
			for k := range min(end-first, GATEntries) {
				g.entries[k].Store(uint64(r.entry(first + k)))
			}
		}
	}
	t.gats[i].Store(g)
	return g, nil
}

// Translate checks that vpid may access all of the n bytes at a in the way that
// need says, and returns the address of the first, its frame << PageBits | its
// page offset, and how many of the n bytes lie at consecutive addresses from
// there (the whole of the attach segment does). n must not be 0. A refusal is a
// *FaultError. Every page is checked; within a run that was never changed
// singly that takes constant time per GAT.
func (t *Tables) Translate(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, err error) {
	// The usual case, in two dependent loads: within one page, in a filled table.
	if off := uint64(a) & (PageSize - 1); a < NLALimit && n-1 < PageSize-off {
		if g := t.gats[a.GAT()].Load(); g != nil {
			if e := Entry(g.entries[a.Entry()].Load()); e.whole(vpid, need) {
				return e.Frame()<<PageBits | off, n, nil
			}
		}
	}
	return t.translate(vpid, a, n, need)
}

// translate is Translate for every case.
func (t *Tables) translate(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, err error) {
	if err := checkSpan(vpid, a, n, need); err != nil {
		return 0, 0, err
	}
	first, last := uint64(a)>>PageBits, (uint64(a)+n-1)>>PageBits
	run := t.run.Load()
	start, pages := uint64(0), uint64(0) // frame of first, frames consecutive from it
	for p := first; p <= last; {
		// e is page p's entry, and k pages from p on have entries alike but for
		// their frames, which count up.
		var e Entry
		k := uint64(1)
		if g := t.gats[p>>entryBits].Load(); g != nil {
			e = Entry(g.entries[p&(GATEntries-1)].Load())
			if e&entryPart != 0 && !g.within(p, uint64(a), n) {
				return 0, 0, &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLA(p << PageBits), Have: e.bounded(g.bounds[p&(GATEntries-1)].Load())}
			}
		} else if e = run.entry(p); e.Valid() {
			k = min(last+1, attachPage+run.pages, (p|(GATEntries-1))+1) - p
		}
		if !e.Admits(vpid, need) {
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
	off := uint64(a) & (PageSize - 1)
	return start<<PageBits | off, min(n, pages<<PageBits-off), nil
}

// checkSpan refuses bytes that no table has.
func checkSpan(vpid uint16, a NLA, n uint64, need Rights) error {
	if n == 0 {
		return errs.BadArg("segment: translation of 0 bytes at %v", a)
	}
	if a >= NLALimit || n > uint64(NLALimit-a) {
		return &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: NLALimit}
	}
	return nil
}

// within reports whether what [a, a+n) has of page p lies within the bounds that
// the page is mapped in.
func (g *GAT) within(p, a, n uint64) bool {
	b := uint64(g.bounds[p&(GATEntries-1)].Load())
	page := p << PageBits
	return max(a, page)-page >= b&0xffff && min(a+n, page+PageSize)-page <= b>>16
}

// detach takes the attach run back.
func (t *Tables) detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.run.Load()
	if r == nil {
		return
	}
	t.run.Store(nil)
	for p := attachPage; p < attachPage+r.pages; p = (p | (GATEntries - 1)) + 1 {
		if g := t.gats[p>>entryBits].Load(); g != nil {
			for k := range min(attachPage+r.pages-p, GATEntries) {
				g.entries[k].Store(0)
			}
		}
	}
}
