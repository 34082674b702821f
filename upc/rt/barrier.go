package rt

import (
	"errors"

	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/internal/errs"
)

// Notify is upc_notify with an expression (UPC 1.3, 6.6.1): the expressions of all threads
// that have one are equal, or every thread's wait ends the job and names those that differ.
func (t *Thread) Notify(expr int32) { t.notify(uint32(expr), 0) }

// NotifyAny is upc_notify without an expression, which matches any.
func (t *Thread) NotifyAny() { t.notify(0, barrier.Anonymous) }

// Wait is upc_wait with an expression, that of the thread's Notify.
func (t *Thread) Wait(expr int32) { t.wait(uint32(expr), 0) }

// WaitAny is upc_wait without an expression.
func (t *Thread) WaitAny() { t.wait(0, barrier.Anonymous) }

// Barrier is upc_barrier with an expression.
func (t *Thread) Barrier(expr int32) {
	t.Notify(expr)
	t.Wait(expr)
}

// BarrierAny is upc_barrier without an expression.
func (t *Thread) BarrierAny() {
	t.NotifyAny()
	t.WaitAny()
}

func (t *Thread) notify(id uint32, f barrier.Flags) {
	if t.notified {
		t.must(errs.NotReady("upc: upc_notify, or upc_barrier, after an upc_notify without its upc_wait"))
	}
	t.Fence()
	t.must(t.n.Layers().Barriers.Notify(id, f))
	t.notified = true
}

func (t *Thread) wait(id uint32, f barrier.Flags) {
	if !t.notified {
		t.must(errs.NotReady("upc: upc_wait without upc_notify"))
	}
	if err := t.n.Layers().Barriers.Wait(id, f); err != nil {
		t.must(t.mismatch(err, id, f))
	}
	t.notified = false
	t.x.Fence()
}

// mismatch is a failure of a barrier to which this thread gave id. Package gas takes one of its own
// identifiers for a rank that has returned and waits to hear which rank it is, so an expression of
// that value (6.6.1p9: none is the end's) is not shown to it.
func (t *Thread) mismatch(err error, id uint32, f barrier.Flags) error {
	var m *barrier.MismatchError
	if !errors.As(err, &m) || !m.Differ {
		return err
	}
	a, b := m.IDs[0], m.IDs[1]
	end := func(id uint32) bool { return id == exitID || id == gasEnd }
	switch {
	case f&barrier.Anonymous == 0 && end(id):
	case a == gasEnd || b == gasEnd:
		return err
	case a == exitID || b == exitID:
		return errs.Mismatch("upc: a thread has returned from main while others are in a barrier (or has given it the expression %d): %v", exitID, m)
	}
	return errs.Mismatch("upc: threads gave barriers different expressions, %d and %d: %v", int32(a), int32(b), m)
}
