package rt

import (
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/internal/errs"
)

// Notify is upc_notify with an expression (UPC 1.3, 6.6.1): the expressions of all threads
// that have one are equal, or every thread's wait ends the job and says which differ.
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
	t.must(t.n.Barriers().Notify(id, f))
	t.notified = true
}

func (t *Thread) wait(id uint32, f barrier.Flags) {
	if !t.notified {
		t.must(errs.NotReady("upc: upc_wait without upc_notify"))
	}
	t.must(t.n.Barriers().Wait(id, f))
	t.notified = false
	t.x.Fence()
}
