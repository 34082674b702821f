package sys

import (
	"testing"
	"unsafe"
)

var global [8]byte

// TestStack: what is a local variable lies within the bounds, also when the stack has
// grown and moved, and what is not lies outside.
func TestStack(t *testing.T) {
	if !HasGoroutine {
		t.Skip("stacks are not told apart here")
	}
	inside := func(p *[8]byte) bool {
		lo, hi := Stack()
		at := uintptr(unsafe.Pointer(p))
		return lo <= at && at < hi
	}
	heap := new([8]byte)
	kept = heap
	done := make(chan int)
	go func() {
		wrong := 0
		var deep func(n int)
		deep = func(n int) {
			var local [8]byte
			if !inside(&local) || inside(heap) || inside(&global) {
				wrong++
			}
			if n > 0 {
				deep(n - 1)
			}
			if !inside(&local) {
				wrong++
			}
		}
		deep(10_000)
		done <- wrong
	}()
	if n := <-done; n != 0 {
		t.Errorf("%d times the bounds were wrong", n)
	}
}

var kept *[8]byte // makes it one of the heap
