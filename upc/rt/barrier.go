package rt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/origin"
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
	t.notify(uint32(expr), barrier.Whole)
	t.Wait(expr)
}

// BarrierAny is upc_barrier without an expression.
func (t *Thread) BarrierAny() {
	t.notify(0, barrier.Anonymous|barrier.Whole)
	t.WaitAny()
}

func (t *Thread) notify(id uint32, f barrier.Flags) {
	if t.notified {
		t.must(errs.NotReady("upc: upc_notify, or upc_barrier, after an upc_notify without its upc_wait"))
	}
	t.Fence()
	if checked {
		t.races.Notify(t.me)
	}
	t.must(t.n.Layers().Barriers.Notify(id, f))
	t.gave, t.named = id, f&barrier.Anonymous == 0
	t.notified = true
}

func (t *Thread) wait(id uint32, f barrier.Flags) {
	if !t.notified {
		t.must(errs.NotReady("upc: upc_wait without upc_notify"))
	}
	if err := t.n.Layers().Barriers.Wait(id, f); err != nil {
		t.must(t.mismatch(err, given{id: t.gave, named: t.named}))
	}
	t.notified = false
	t.x.Fence()
	if checked {
		t.races.Wait(t.me)
	}
}

// given is what a thread has given a barrier, and where: the text of a place in the program.
type given struct {
	id           uint32
	named, ended bool // ended: it has returned from main
	place        [58]byte
}

func (g given) by(thread int) string {
	return fmt.Sprintf("%d by thread %d at %s", int32(g.id), thread, bytes.TrimRight(g.place[:], "\x00"))
}

// mismatch is a failure of a barrier to which this thread gave id. All threads have it, each in a barrier of this package, and
// tell each other where that is. Those that have joined a job do not, which others may have left.
func (t *Thread) mismatch(err error, own given) error {
	if t.joined || !errors.As(err, new(*barrier.MismatchError)) {
		return err
	}
	copy(own.place[:], origin.Caller())
	all, failed := gas.AllGather(t.n, own)
	if failed != nil {
		return err
	}
	a := slices.IndexFunc(all, func(g given) bool { return g.named && !g.ended })
	b := slices.IndexFunc(all, func(g given) bool { return g.ended })
	if a >= 0 && b < 0 {
		b = slices.IndexFunc(all, func(g given) bool { return g.named && g.id != all[a].id })
	}
	switch {
	case a < 0 || b < 0:
		return err
	case all[b].ended:
		return errs.Mismatch("upc: thread %d has returned from main while others are in a barrier: %s: %v", b, all[a].by(a), err)
	}
	return errs.Mismatch("upc: threads gave barriers different expressions: %s, and %s: %v", all[a].by(a), all[b].by(b), err)
}
