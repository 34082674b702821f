package sys

import (
	"testing"
	"unsafe"
)

// TestMlock: locks do not nest, and a range with a hole fails.
func TestMlock(t *testing.T) {
	if LockLimit() < 8*page {
		t.Skipf("only %d bytes may be locked", LockLimit())
	}
	p, err := Reserve(4 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { Unmap(p, 3*page) }()
	before, err := LockedMemory()
	if err != nil {
		t.Fatal(err)
	}
	check := func(pages int64) {
		t.Helper()
		if n, err := LockedMemory(); n-before != pages*page || err != nil {
			t.Errorf("%d bytes are locked, want %d pages, %v", n-before, pages, err)
		}
	}
	addr := uintptr(p)
	for range 2 {
		if err := Mlock(addr, 3*page); err != nil {
			t.Fatal(err)
		}
	}
	check(3)
	if err := Munlock(addr+page, page); err != nil {
		t.Fatal(err)
	}
	check(2)
	if err := Munlock(addr, 3*page); err != nil {
		t.Fatal(err)
	}
	check(0)
	if err := Unmap(unsafe.Add(p, 3*page), page); err != nil {
		t.Fatal(err)
	}
	if err := Mlock(addr, 4*page); err == nil {
		t.Error("a hole was locked")
	}
	if err := Munlock(addr, 3*page); err != nil {
		t.Error(err)
	}
}
