package extended

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/segment"
)

// storesAt calls f and returns the address at which it faults; ok is false if it
// does not.
func storesAt(f func()) (at uintptr, ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e, is := recover().(interface{ Addr() uintptr }); is {
			at, ok = e.Addr(), true
		}
	}()
	f()
	return 0, false
}

// TestPutsLeaveNeighbours: a put through direct access stores the bytes that it is
// of and no others, not even what they were before: their owner may store there at
// the same moment. Pages that cannot be written show where a put stores first, and
// that it stores nothing behind its end.
func TestPutsLeaveNeighbours(t *testing.T) {
	const page = segment.PageSize
	mem, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	protect := func(b []byte, prot int) {
		t.Helper()
		if err := syscall.Mprotect(b, prot); err != nil {
			t.Fatal(err)
		}
	}
	base := unsafe.Pointer(unsafe.SliceData(mem))
	x := newFake(1, fakeOptions{direct: true}).eps[0].x
	x.views.All = []segment.View{segment.NewView(base, page, segment.RightsAll)}
	src := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	type put struct {
		name string
		do   func(at segment.NLA) error
		n    int
	}
	var puts []put
	for n := 1; n <= 8; n++ {
		puts = append(puts,
			put{fmt.Sprintf("Put of %d bytes", n), func(at segment.NLA) error { return x.Put(0, at, src[:n]) }, n},
			put{fmt.Sprintf("PutNB of %d bytes", n), func(at segment.NLA) error {
				h, err := x.PutNB(0, at, src[:n])
				if err != nil {
					return err
				}
				return x.Wait(h)
			}, n})
		if n&(n-1) == 0 {
			puts = append(puts, put{fmt.Sprintf("PutValue of %d bytes", n), func(at segment.NLA) error { return x.PutValue(0, at, 1, n) }, n})
		}
	}
	for _, p := range puts {
		// Where it stores first, at each alignment.
		protect(mem[:page], syscall.PROT_READ)
		for off := 8; off < 16; off++ {
			at, faulted := storesAt(func() {
				if err := p.do(segment.AttachBase + segment.NLA(off)); err != nil {
					t.Errorf("%s at %d: %v", p.name, off, err)
				}
			})
			if first := uintptr(base) + uintptr(off); !faulted || at < first || at >= first+uintptr(p.n) {
				t.Errorf("%s at %d: stores first at %d (faulted: %v)", p.name, off, int(at-uintptr(base)), faulted)
			}
		}
		// What lies behind its end.
		protect(mem[:page], syscall.PROT_READ|syscall.PROT_WRITE)
		protect(mem[page:], syscall.PROT_NONE)
		if at, faulted := storesAt(func() {
			if err := p.do(segment.AttachBase + segment.NLA(page-p.n)); err != nil {
				t.Errorf("%s at the end: %v", p.name, err)
			}
		}); faulted {
			t.Errorf("%s before a page without access: reaches %d bytes beyond its end", p.name, int(at-uintptr(base))-page+1)
		}
		protect(mem[page:], syscall.PROT_READ|syscall.PROT_WRITE)
	}
}
