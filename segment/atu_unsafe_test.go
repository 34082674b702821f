package segment

import (
	"errors"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

func mapped(t *testing.T, pages int64) []byte {
	p, err := sys.Reserve(pages * PageSize)
	if err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*byte)(p), pages*PageSize)
}

func locked(t *testing.T) int64 {
	n, err := sys.LockedMemory()
	if err != nil {
		t.Skip(err)
	}
	return n
}

// TestLocksNest: mlock itself does not nest (Seifert and Rehm 2000, section 3.2).
func TestLocksNest(t *testing.T) {
	if sys.LockLimit() < 64*PageSize {
		t.Skipf("only %d bytes may be locked", sys.LockLimit())
	}
	before := locked(t)
	atu := newATU(t, ATUConfig{Lock: &Locks{}})
	mem := mapped(t, 8)
	defer sys.Unmap(unsafe.Pointer(&mem[0]), int64(len(mem)))
	check := func(pages int64) {
		t.Helper()
		var s ATUStats
		atu.Stats(&s)
		if n := locked(t) - before; n != pages*PageSize || s.Locked != uint64(n) {
			t.Fatalf("%d bytes are locked, %d counted, want %d pages", n, s.Locked, pages)
		}
	}
	var rs []Registration
	for _, x := range [][2]int{{0, 6}, {2, 4}, {0, 6}, {5, 8}} {
		r, err := atu.Register(mem[x[0]*PageSize:x[1]*PageSize], RightRead, AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	check(8)
	for i, want := range []int64{8, 8, 3, 0} {
		if err := atu.Deregister(rs[i]); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
}

// TestLockFails: a range with pages that there can be none of cannot be locked; nothing is
// left of it. They are mapped, so that nothing else comes to lie there.
func TestLockFails(t *testing.T) {
	before := locked(t)
	atu := newATU(t, ATUConfig{Lock: &Locks{}})
	mem := mapped(t, 4)
	defer sys.Unmap(unsafe.Pointer(&mem[0]), int64(len(mem)))
	if err := syscall.Mprotect(mem[2*PageSize:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	_, err := atu.Register(mem, RightRead, AnyPeer)
	if !errors.Is(err, errs.ErrResource) {
		t.Fatal(err)
	}
	var s ATUStats
	if atu.Stats(&s); s.Regions != 0 || s.Bytes != 0 || s.Locked != 0 || s.Registered != 0 {
		t.Errorf("%+v", s)
	}
	// The kernel locks up to those pages before it finds them.
	if n := locked(t) - before; n != 0 {
		t.Errorf("%d bytes are locked", n)
	}
}

// TestLockedAfterRefusal: what a registrar refuses, in whichever of its runs, is not locked any more, nor counted
// so; what another registration has is.
func TestLockedAfterRefusal(t *testing.T) {
	if sys.LockLimit() < 64*PageSize {
		t.Skipf("only %d bytes may be locked", sys.LockLimit())
	}
	start := locked(t)
	reg := &refuser{refuse: 1 << 30}
	atu := newATU(t, ATUConfig{Lock: &Locks{}, Registrar: reg})
	mem := mapped(t, 8)
	defer sys.Unmap(unsafe.Pointer(&mem[0]), int64(len(mem)))
	atu.room.limit = atu.room.base + 5*PageSize // so that there are several runs
	r, err := atu.Register(mem[2*PageSize:3*PageSize], RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	for reg.told, reg.refuse = 0, 0; reg.refuse < 3; reg.refuse++ {
		var before, after ATUStats
		atu.Stats(&before)
		if _, err := atu.Register(mem[:6*PageSize], RightRead, AnyPeer); !errors.Is(err, errRefused) {
			t.Errorf("refused in run %d: %v", reg.refuse, err)
		}
		if atu.Stats(&after); after != before || locked(t)-start != PageSize {
			t.Errorf("refused in run %d: %+v, want %+v; %d bytes are locked, want %d", reg.refuse, after, before, locked(t)-start, PageSize)
		}
	}
	if err := atu.Deregister(r); err != nil || locked(t) != start {
		t.Errorf("%d bytes are locked after the end of all registrations (%v)", locked(t)-start, err)
	}
}

// TestUnmap: what was registered is not reachable once it is unmapped, even if
// something else comes to lie there.
func TestUnmap(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	mem := mapped(t, 4)
	mem[2*PageSize] = 42
	whole, err := atu.Register(mem, RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	part, err := atu.Register(mem[2*PageSize:2*PageSize+1], RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := whole.At(2 * PageSize)
	b, _ := part.At(0)
	for _, x := range []NLA{a, b} {
		if m, err := atu.translate(0, x, 1, RightRead); err != nil || m[0] != 42 {
			t.Fatal(m, err)
		}
	}
	if err := atu.Unmap(mem); err != nil {
		t.Fatal(err)
	}
	again := mapped(t, 4) // most often at the same place
	defer sys.Unmap(unsafe.Pointer(&again[0]), int64(len(again)))
	for _, x := range []NLA{a, b} {
		if _, err := atu.translate(0, x, 1, RightRead); !errors.Is(err, ErrFault) {
			t.Error("unmapped memory is reachable:", err)
		}
	}
	if err := errors.Join(atu.Deregister(whole), atu.Deregister(part)); err != nil {
		t.Error(err)
	}
	if err := atu.Unmap(nil); !errors.Is(err, errs.ErrBadArg) {
		t.Error(err)
	}
}

// TestTablesInSharedMemory reads an entry as another process would that has
// mapped the memory of the tables.
func TestTablesInSharedMemory(t *testing.T) {
	size := int64(GATBytes)
	if GATBytes != 3<<20 || DirectoryBytes != numGATs*8 {
		t.Errorf("a GAT and its bounds take %d bytes, a directory %d", GATBytes, DirectoryBytes)
	}
	f, err := sys.CreateMemory("", "gat", size)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mine, err := sys.Map(f.Fd(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sys.Unmap(mine, size) }) // after the ATU is closed
	theirs, err := sys.Map(f.Fd(), size)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Unmap(theirs, size)
	placed := 0
	atu := newATU(t, ATUConfig{Place: func(g int) *GAT {
		if placed++; g != 0 {
			return nil
		}
		return GATAt(unsafe.Slice((*byte)(mine), size))
	}})
	mem := make([]byte, 10)
	r, err := atu.Register(mem[:1], RightRead, 5)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	g := GATAt(unsafe.Slice((*byte)(theirs), size))
	e := Entry(g.entries[a.Entry()].Load())
	if !e.Admits(5, RightRead) || e.Frame()<<PageBits|uint64(a.Offset()) != frameOf(mem) || !e.Part() {
		t.Errorf("entry %v", e)
	}
	var before ATUStats
	atu.Stats(&before)
	if _, err := atu.Register(pageMem(2), RightRead, AnyPeer); !errors.Is(err, errs.ErrResource) || placed != 2 {
		t.Errorf("without memory for the table: %v", err)
	}
	var after ATUStats
	if atu.Stats(&after); after != before {
		t.Errorf("%+v, want %+v", after, before)
	}
}

func TestViewsOfRawMemory(t *testing.T) {
	mem := make([]uint64, GATBytes/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&mem[0])), GATBytes)
	if GATAt(b) == nil || GATAt(b[8:]) != nil || GATAt(nil) != nil || DirectoryAt(b[1:]) != nil || DirectoryAt(b[8:8+DirectoryBytes]) == nil {
		t.Error("a view of memory that is too short or not aligned, or none of memory that fits")
	}
	DirectoryAt(b[8:])[3].Store(77)
	if mem[4] != 77 {
		t.Error("another word")
	}
}
