//go:build ofi && cgo

package guest_test

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/job/guest"
	"github.com/argon-go/argon/internal/sys"
)

// TestOneAfterTheOther: no Call begins while another one's function may have installed
// handlers, which it would put back.
func TestOneAfterTheOther(t *testing.T) {
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				guest.Call("the test", func() {
					inside.Add(1)
					for range 100 {
						runtime.Gosched()
					}
					if n := inside.Load(); n != 1 {
						t.Errorf("%d functions are called at the same time", n)
					}
					inside.Add(-1)
				})
			}
		})
	}
	all.Wait()
}

// TestInherited: programs inherit what they would have inherited before the call, and
// nothing that the function has opened, be its number a new one or that of a
// descriptor that was closed.
func TestInherited(t *testing.T) {
	var fds [4]int
	for i := range fds {
		fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	given, kept, again, fresh := fds[0], fds[1], fds[2], fds[3]
	defer func() {
		for _, fd := range fds {
			if err := syscall.Close(fd); err != nil {
				t.Error(err)
			}
		}
	}()
	dup := func(to int) {
		if err := syscall.Dup3(kept, to, 0); err != nil {
			t.Error(err)
		}
	}
	dup(given)
	if err := syscall.Close(fresh); err != nil {
		t.Fatal(err)
	}
	guest.Call("the test", func() {
		dup(again)
		dup(fresh)
	})
	for fd, want := range map[int]bool{given: true, kept: false, again: false, fresh: false} {
		if got := sys.Inherited(fd); got != want {
			t.Errorf("programs inherit descriptor %d of %v: %v, want %v", fd, fds, got, want)
		}
	}
}
