package sys

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMlock: locks do not nest, and a range with a page that there can be none of fails.
func TestMlock(t *testing.T) {
	if LockLimit() < 8*page {
		t.Skipf("only %d bytes may be locked", LockLimit())
	}
	p, err := Reserve(4 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { Unmap(p, 4*page) }()
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
	// Not unmapped: something else might come to lie there.
	if err := unix.Mprotect(unsafe.Slice((*byte)(unsafe.Add(p, 3*page)), page), unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if err := Mlock(addr, 4*page); err == nil {
		t.Error("a page was locked that there can be none of")
	}
	if err := Munlock(addr, 4*page); err != nil {
		t.Error(err)
	}
}

// TestLocksBeyondLimit: a thread without the capability is held to the limit.
func TestLocksBeyondLimit(t *testing.T) {
	limit := LockLimit()
	if limit > 1<<40 {
		t.Skipf("%d bytes may be locked", limit)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var c [2]unix.CapUserData
		if err := unix.Capget(&h, &c[0]); err != nil {
			t.Error(err)
			return
		}
		if had := c[0].Effective>>unix.CAP_IPC_LOCK&1 == 1; LocksBeyondLimit() != had {
			t.Errorf("the thread has the capability: %v", had)
		}
		c[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err := unix.Capset(&h, &c[0]); err != nil {
			t.Error(err)
			return
		}
		if LocksBeyondLimit() {
			t.Error("the thread has the capability that it has dropped")
		}
		size := int64(limit)&^(page-1) + page
		p, err := Reserve(size)
		if err != nil {
			t.Error(err)
			return
		}
		if Mlock(uintptr(p), uintptr(size)) == nil {
			t.Errorf("%d bytes are locked, %d may be", size, limit)
		}
		if err := Unmap(p, size); err != nil {
			t.Error(err)
		}
	}()
	<-done
}
