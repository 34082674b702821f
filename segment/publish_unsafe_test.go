package segment

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/conc"
)

// TestBoundsBeforeEntry: the bounds of a page that is mapped in part are written
// before its entry is valid, for else an access in between is checked by the bounds
// of the registration that had the page before. The table lies where its bounds cannot be written,
// so that FillPart ends there.
func TestBoundsBeforeEntry(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector does atomic operations in its own code, where a fault ends the process")
	}
	const size = int(unsafe.Sizeof(GAT{}))
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	g := (*GAT)(unsafe.Pointer(unsafe.SliceData(mem)))
	tables := &Tables{Place: func(int) *GAT { return g }}
	const page = 3 * PageSize
	e := MakeEntry(AnyVPID, 5, RightsAll)
	if err := tables.FillPart(page, e, 0, PageSize/2); err != nil {
		t.Fatal(err)
	}
	if err := tables.Fill(page, 1, 0); err != nil {
		t.Fatal(err)
	}
	bounds := mem[unsafe.Offsetof(g.bounds):]
	if err := syscall.Mprotect(bounds, syscall.PROT_READ); err != nil {
		t.Skipf("cannot protect memory here: %v", err)
	}
	faulted := func() (did bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { did = recover() != nil }()
		_ = tables.FillPart(page, e, 8, 16)
		return
	}()
	if !faulted {
		t.Fatal("FillPart has not written the bounds")
	}
	if got := tables.Load(page); got.Valid() {
		t.Errorf("the entry is %v before its bounds are written", got)
	}
	if err := syscall.Mprotect(bounds, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	if err := tables.FillPart(page, e, 8, 16); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tables.Translate(3, page+8, 8, RightRead); err != nil {
		t.Error(err)
	}
	if _, _, err := tables.Translate(3, page+8, 9, RightRead); err == nil {
		t.Error("an access beyond the bounds is admitted")
	}
}
