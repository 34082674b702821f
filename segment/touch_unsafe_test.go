package segment

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
)

// TestTouch: pages that have been unmapped, and those of a file that has been cut
// off, are found missing by reads, writes and atomics; other faults are panics.
func TestTouch(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, how := range []string{"unmapped", "cut off"} {
		var p unsafe.Pointer
		const size = 4 * PageSize
		if how == "unmapped" {
			if p, err = sys.Reserve(size); err != nil {
				t.Fatal(err)
			}
		} else {
			if err := file.Truncate(size); err != nil {
				t.Fatal(err)
			}
			if p, err = sys.Map(file.Fd(), size); err != nil {
				t.Fatal(err)
			}
			defer sys.Unmap(p, size)
		}
		mem := unsafe.Slice((*byte)(p), size)
		buf := make([]byte, size)
		reads := func() { copy(buf, mem) }
		writes := func() { copy(mem, buf) }
		word := func() { *(*uint64)(unsafe.Pointer(&mem[2*PageSize]))++ }
		for _, f := range []func(){reads, writes, word} {
			if !Touch(mem, f) {
				t.Fatalf("%s: memory is missing before", how)
			}
		}
		if how == "unmapped" {
			// As if it were: something else might come to lie where nothing is mapped.
			err = syscall.Mprotect(mem[PageSize:], syscall.PROT_NONE)
			defer sys.Unmap(p, size)
		} else {
			err = file.Truncate(PageSize)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range []func(){reads, writes, word} {
			if Touch(mem, f) {
				t.Errorf("%s: access %d found memory that is not there", how, i)
			}
		}
		mem[0], buf[0] = 7, 0 // how much of a copy is done before the fault is not said
		if !Touch(mem[:PageSize], func() { copy(buf, mem[:PageSize]) }) || buf[0] != 7 {
			t.Errorf("%s: what is there is not found, or has %d", how, buf[0])
		}
		// Not the memory that was meant.
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a fault elsewhere is no panic", how)
				}
			}()
			Touch(buf, word)
		}()
	}
	func() {
		defer func() {
			if r := recover(); r != "another panic" {
				t.Errorf("the panic became %v", r)
			}
		}()
		Touch(nil, func() { panic("another panic") })
	}()
	if err := Gone(3, 0x5008, 8, RightRead); !errors.Is(err, ErrFault) {
		t.Errorf("%v is no fault", err)
	}
}

func TestTouchDoesNotAllocate(t *testing.T) {
	a, b := make([]byte, 64), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() {
		if !Touch(a, func() { copy(a, b) }) {
			t.Fatal("missing")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTouch(b *testing.B) {
	x, y := make([]byte, 8), make([]byte, 8)
	b.Run("bare", func(b *testing.B) {
		for range b.N {
			copy(x, y)
		}
	})
	b.Run("touch", func(b *testing.B) {
		for range b.N {
			Touch(x, func() { copy(x, y) })
		}
	})
}
