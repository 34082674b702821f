package segment

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

func TestEntryFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.Uint16().Draw(t, "owner")
		frame := rapid.Uint64Range(0, 1<<frameBits-1).Draw(t, "frame")
		rights := Rights(rapid.IntRange(0, int(RightsAll)).Draw(t, "rights"))
		e := MakeEntry(owner, frame, rights)
		if !e.Valid() || e.Owner() != owner || e.Frame() != frame || e.Rights() != rights {
			t.Fatalf("%v from owner %d, frame %#x, rights %v", e, owner, frame, rights)
		}
		// The word itself: VPID highest, management bits lowest.
		if want := uint64(owner)<<48 | frame<<8 | 8 | uint64(rights); uint64(e) != want {
			t.Fatalf("word %#x, want %#x", uint64(e), want)
		}
		if e2 := MakeEntry(owner, frame|1<<frameBits, rights|0xf8); e2 != e {
			t.Fatalf("fields run into each other: %#x, want %#x", uint64(e2), uint64(e))
		}
	})
	if Entry(0).Valid() || Entry(0).String() != "invalid" {
		t.Error("the zero entry is valid")
	}
	if s := MakeEntry(3, 16, RightRead|RightWrite).String(); s != "vpid 3 frame 0x10 rw-" {
		t.Errorf("String: %q", s)
	}
}

// tablesModel is a map from page to entry, filled in one by one.
type tablesModel map[uint64]Entry

func (m tablesModel) translate(vpid uint16, a NLA, n uint64, need Rights) (addr, contiguous uint64, fault bool) {
	broken := false
	for i := uint64(0); i < n; {
		b := uint64(a) + i
		if b >= uint64(NLALimit) {
			return 0, 0, true
		}
		e := m[b>>PageBits]
		if !e.Valid() || e.Owner() != vpid || e.Rights()&need != need {
			return 0, 0, true
		}
		here := e.Frame()<<PageBits | b%PageSize
		k := min(PageSize-b%PageSize, n-i)
		if i == 0 {
			addr = here
		}
		if broken = broken || here != addr+i; !broken {
			contiguous += k
		}
		i += k
	}
	return addr, contiguous, false
}

// TestTranslateModel draws segments that end near the border of two GATs, so
// that runs described and runs filled in meet inside one access.
func TestTranslateModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab Tables
		model := tablesModel{}
		const owner = 7
		rights := Rights(rapid.IntRange(1, int(RightsAll)).Draw(t, "rights"))
		pages := rapid.OneOf(rapid.Uint64Range(0, 8), rapid.Uint64Range(GATEntries-4, GATEntries+8)).Draw(t, "pages")
		if err := tab.AttachRun(pages*PageSize, 0, owner, rights); err != nil {
			t.Fatal(err)
		}
		// The model knows the first and last pages only; nothing else is drawn.
		for _, lo := range []uint64{0, GATEntries - 16} {
			for p := lo; p < min(pages, lo+32); p++ {
				model[attachPage+p] = MakeEntry(owner, p, rights)
			}
		}
		page := rapid.Custom(func(t *rapid.T) uint64 {
			from := rapid.SampledFrom([]uint64{attachPage - 4, attachPage, attachPage + GATEntries - 8, uint64(NLALimit)/PageSize - 4}).Draw(t, "from")
			return from + rapid.Uint64Range(0, 8).Draw(t, "page")
		})
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) {
				p := page.Draw(t, "p")
				e := Entry(0)
				if rapid.Bool().Draw(t, "valid") {
					frame := rapid.SampledFrom([]uint64{p - attachPage, p - attachPage + 1, 5}).Draw(t, "frame")
					e = MakeEntry(rapid.SampledFrom([]uint16{owner, owner, 8}).Draw(t, "owner"), frame,
						Rights(rapid.IntRange(0, int(RightsAll)).Draw(t, "rights")))
				}
				err := tab.Store(NLA(p<<PageBits), e)
				if (err != nil) != (p >= uint64(NLALimit)>>PageBits) {
					t.Fatalf("store at page %#x: %v", p, err)
				}
				if err == nil {
					model[p] = e
				}
			},
			"load": func(t *rapid.T) {
				p := page.Draw(t, "p")
				if e := tab.Load(NLA(p<<PageBits | 9)); e != model[p] {
					t.Fatalf("page %#x: %v, want %v", p, e, model[p])
				}
			},
			"translate": func(t *rapid.T) {
				a := NLA(page.Draw(t, "p")<<PageBits) + NLA(rapid.Uint64Range(0, PageSize-1).Draw(t, "off"))
				n := rapid.OneOf(rapid.Uint64Range(1, 64), rapid.Uint64Range(1, 6*PageSize)).Draw(t, "n")
				vpid := rapid.SampledFrom([]uint16{owner, owner, owner, 8}).Draw(t, "vpid")
				need := Rights(rapid.IntRange(0, int(RightsAll)).Draw(t, "need"))
				addr, contiguous, err := tab.Translate(vpid, a, n, need)
				wantAddr, want, fault := model.translate(vpid, a, n, need)
				if (err != nil) != fault || addr != wantAddr || contiguous != want {
					t.Fatalf("%d bytes at %v: %#x, %d, %v; want %#x, %d, fault %v", n, a, addr, contiguous, err, wantAddr, want, fault)
				}
				var f *FaultError
				if fault && (!errors.As(err, &f) || f.Addr != a || f.Len != n || f.VPID != vpid || f.Need != need) {
					t.Fatalf("fault %v", err)
				}
			},
		})
	})
}

func TestTranslateWholeRun(t *testing.T) {
	for _, size := range []uint64{PageSize, GATSpan - PageSize, GATSpan, 3*GATSpan + PageSize, uint64(MaxAttach)} {
		var tab Tables
		if err := tab.AttachRun(size, 0, 1, RightsAll); err != nil {
			t.Fatal(err)
		}
		addr, contiguous, err := tab.Translate(1, AttachBase, size, RightWrite)
		if addr != 0 || contiguous != size || err != nil {
			t.Errorf("all of %d bytes: %#x, %d, %v", size, addr, contiguous, err)
		}
		addr, contiguous, err = tab.Translate(1, AttachBase+NLA(size)-1, 1, RightWrite)
		if addr != size-1 || contiguous != 1 || err != nil {
			t.Errorf("last byte of %d: %#x, %d, %v", size, addr, contiguous, err)
		}
		if _, _, err = tab.Translate(1, AttachBase, size+1, RightWrite); !errors.Is(err, ErrFault) {
			t.Errorf("one byte more than %d: %v", size, err)
		}
		if _, _, err = tab.Translate(1, AttachBase-1, 2, RightRead); !errors.Is(err, ErrFault) {
			t.Errorf("one byte before: %v", err)
		}
	}
}

func TestFaultSaysWhy(t *testing.T) {
	var tab Tables
	if err := tab.AttachRun(4*PageSize, 0, 1, RightRead); err != nil {
		t.Fatal(err)
	}
	end := AttachBase + 4*PageSize
	for _, c := range []struct {
		vpid uint16
		a    NLA
		n    uint64
		need Rights
		want string
	}{
		{1, end - 8, 16, RightRead, "nothing is mapped at page 1:0x4:0x0"},
		{1, AttachBase, 8, RightWrite, "page 1:0x0:0x0 allows r-- only"},
		{2, AttachBase, 8, RightRead, "belongs to vpid 1"},
		{1, 0, 8, RightRead, "nothing is mapped at page 0:0x0:0x0"},
		{1, NLALimit - 4, 8, RightRead, "beyond the last address, 511:0x3ffff:0xfff"},
		{1, ^NLA(0), 1, RightRead, "beyond the last address"},
		{1, AttachBase, ^uint64(0), RightRead, "beyond the last address"},
	} {
		_, _, err := tab.Translate(c.vpid, c.a, c.n, c.need)
		if !errors.Is(err, ErrFault) || !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes at %v: %v, want %q", c.n, c.a, err, c.want)
		}
	}
	if _, _, err := tab.Translate(1, AttachBase, 0, RightRead); !errors.Is(err, errs.ErrBadArg) || errors.Is(err, ErrFault) {
		t.Errorf("0 bytes: %v", err)
	}
}

func TestAttachRunArguments(t *testing.T) {
	for _, c := range []struct {
		size   uint64
		rights Rights
		want   string
	}{
		{PageSize + 1, RightsAll, "attach of 4097 bytes: not a multiple of the page size, 4096"},
		{uint64(MaxAttach) + PageSize, RightsAll, "at most 548682072064 can be addressed (-segment, ARGON_SEGMENT)"},
		{PageSize, 0x80, "rights 0x80"},
	} {
		var tab Tables
		err := tab.AttachRun(c.size, 0, 1, c.rights)
		if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes: %v, want %q", c.size, err, c.want)
		}
		if tab.Load(AttachBase).Valid() {
			t.Errorf("%d bytes: a refused attach left entries", c.size)
		}
	}

	var tab Tables
	if err := tab.AttachRun(PageSize, 0, 1, RightsAll); err != nil {
		t.Fatal(err)
	}
	if err := tab.AttachRun(PageSize, 0, 1, RightsAll); !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("second attach: %v", err)
	}

	var used Tables
	if err := used.Store(AttachBase+GATSpan, MakeEntry(1, 1, RightsAll)); err != nil {
		t.Fatal(err)
	}
	if err := used.AttachRun(GATSpan+PageSize, 0, 1, RightsAll); !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("attach over stored entries: %v", err)
	}
	if err := used.AttachRun(GATSpan, 0, 1, RightsAll); err != nil {
		t.Errorf("attach beside stored entries: %v", err)
	}
}

func TestStoreArguments(t *testing.T) {
	var tab Tables
	for _, a := range []NLA{0, PageSize - 1, NLALimit, ^NLA(0)} {
		if err := tab.Store(a, MakeEntry(1, 1, RightsAll)); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("store at %#x: %v", uint64(a), err)
		}
		if tab.Load(a).Valid() {
			t.Errorf("there is an entry for %#x", uint64(a))
		}
	}
}

// TestTablesAreSparse: an attached segment costs a few words however large it
// is; one entry changed costs the one GAT that holds it.
func TestTablesAreSparse(t *testing.T) {
	var tab Tables
	if err := tab.AttachRun(uint64(MaxAttach), 0, 1, RightsAll); err != nil {
		t.Fatal(err)
	}
	gats := func() (n int) {
		for i := range tab.gats {
			if tab.gats[i].Load() != nil {
				n++
			}
		}
		return n
	}
	if n := gats(); n != 0 {
		t.Fatalf("attach made %d GATs", n)
	}
	if err := tab.Store(AttachBase+5*GATSpan, 0); err != nil {
		t.Fatal(err)
	}
	if n := gats(); n != 1 {
		t.Fatalf("one store made %d GATs", n)
	}
	if _, _, err := tab.Translate(1, AttachBase, 5*GATSpan, RightRead); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tab.Translate(1, AttachBase, 5*GATSpan+1, RightRead); !errors.Is(err, ErrFault) {
		t.Fatalf("revoked page: %v", err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := tab.Translate(1, AttachBase+12, 8, RightsAll); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations per translation", n)
	}
}

// TestEntryChangesAtOnce changes frame, owner and rights of a page together
// while others translate: they see the one or the other, never a mixture.
func TestEntryChangesAtOnce(t *testing.T) {
	var tab Tables
	if err := tab.AttachRun(8*PageSize, 0, 1, RightsAll); err != nil {
		t.Fatal(err)
	}
	page := AttachBase + 3*PageSize
	one, two := MakeEntry(1, 3, RightsAll), MakeEntry(2, 99, RightRead)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 5000 {
				if addr, _, err := tab.Translate(1, page, 8, RightWrite); err == nil && addr != 3<<PageBits {
					t.Errorf("vpid 1 may write frame %#x", addr>>PageBits)
					return
				}
				if addr, _, err := tab.Translate(2, page, 8, RightRead); err == nil && addr != 99<<PageBits {
					t.Errorf("vpid 2 may read frame %#x", addr>>PageBits)
					return
				}
			}
		})
	}
	for range 2500 {
		for _, e := range []Entry{two, one} {
			if err := tab.Store(page, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	if e := tab.Load(page); e != one {
		t.Fatalf("left with %v", e)
	}
}
