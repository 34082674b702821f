package sys

import (
	"os"
	"testing"
	"unsafe"
)

// present counts the pages of size bytes at p that memory stands behind.
func present(t *testing.T, p unsafe.Pointer, size int) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	page := os.Getpagesize()
	entry := make([]byte, 8)
	for i := range size / page {
		if _, err := f.ReadAt(entry, (int64(uintptr(p))/int64(page)+int64(i))*8); err != nil {
			t.Skip(err)
		}
		n += int(entry[7] >> 7)
	}
	return n
}

// TestPopulate: pages stand behind reserved memory when it has been populated, of the first
// byte to the last one, and its content stays.
func TestPopulate(t *testing.T) {
	page := os.Getpagesize()
	size := 64 * page
	p, err := Reserve(int64(size))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Unmap(p, int64(size)) }()
	b := unsafe.Slice((*byte)(p), size)
	b[9] = 7
	if n := present(t, p, size); n != 1 {
		t.Fatalf("%d pages are there before", n)
	}
	if err := Populate(unsafe.Add(p, 8), 8*page); err != nil {
		t.Skipf("no MADV_POPULATE_WRITE here (Linux 5.14): %v", err)
	}
	if n := present(t, p, size); n != 9 || b[9] != 7 {
		t.Errorf("%d pages are there, not 9; byte 9 is %d", n, b[9])
	}
}
