package extended

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/segment"
)

// TestSlotReusedWhileAwaited: two goroutines synchronize one region; the one
// gives the slot back, and another operation takes it before the other has looked.
// That one waits for the operation it saw, and leaves the later one alone.
func TestSlotReusedWhileAwaited(t *testing.T) {
	x := newFake(1, fakeOptions{hold: true}).eps[0].x
	r := x.NewRegion()
	begin := func() (*op, uint64) {
		t.Helper()
		if err := r.PutBulkNBI(0, segment.AttachBase, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		o, name := r.slot(slotPuts)
		if o == nil {
			t.Fatal("the put has completed")
		}
		return o, name
	}
	o, name := begin()
	w := x.table.getWaiter()
	defer x.table.putWaiter(w)
	w.x, w.what, w.o, w.name, w.mask = x, waitOp, o, name, ^int64(0)
	if w.done() {
		t.Fatal("done while the put is under way")
	}
	// The put completes, and the first goroutine synchronizes.
	left := o.left.Load()
	o.left.Store(0)
	if err := r.reap(slotPuts, name); err != nil {
		t.Fatal(err)
	}
	again, later := begin()
	if again != o || later == name {
		t.Fatalf("the slot is %p under name %#x, want %p under another than %#x: the test needs it again", again, later, o, name)
	}
	if !w.done() {
		t.Error("the second goroutine waits for the operation that took the slot later")
	}
	// The second goroutine must not synchronize what it has not waited for, and
	// what fails there is not lost.
	if o.left.Load() != left {
		t.Fatalf("%d pieces under way, want %d", o.left.Load(), left)
	}
	o.left.Store(0)
	failure := errors.New("refused")
	x.table.fail(o, failure)
	if err := r.reap(slotPuts, name); err != nil {
		t.Errorf("the second goroutine is told %q of another's operation", err)
	}
	if err := r.Sync(Puts); !errors.Is(err, failure) {
		t.Errorf("the later operation's failure is told as %v", err)
	}
}
