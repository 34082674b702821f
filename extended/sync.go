package extended

import (
	"fmt"

	"github.com/argon-go/argon/segment"
)

// Wait polls until the operation that h names is complete, and forgets h. The
// error is the operation's failure, the job's, or ErrBadArg if h is not
// outstanding. When the job has failed before the operation completed, h stays
// outstanding.
func (x *Initiator) Wait(h Handle) error {
	if h == 0 {
		return nil
	}
	return x.wait("extended: wait", h)
}

func (x *Initiator) wait(what string, h Handle) error {
	o := x.tableOf(h).handle(h)
	if o == nil {
		return errBadHandle(what, h)
	}
	if o.left.Load() != 0 {
		if err := x.await(o, uint64(h), ^int64(0)); err != nil {
			return err
		}
	}
	failure, ok := x.tableOf(h).release(o, uint64(h))
	if !ok {
		return errBadHandle(what, h)
	}
	return failure
}

// Try is Wait without waiting: it polls once if it must, and reports whether
// the operation is complete. Only then is h forgotten, and only then can the
// operation's failure be the error.
func (x *Initiator) Try(h Handle) (done bool, err error) {
	if h == 0 {
		return true, nil
	}
	const what = "extended: try"
	o := x.tableOf(h).handle(h)
	if o == nil {
		return false, errBadHandle(what, h)
	}
	if o.left.Load() != 0 {
		x.poll.Poll()
		if o.left.Load() != 0 {
			return false, nil
		}
	}
	return true, x.wait(what, h)
}

// Notify has done called, once, when Wait for h would not wait any more: where the rank polls, or
// at once. done must not wait. h stays to be synchronized. If the job fails first done is not called.
func (x *Initiator) Notify(h Handle, done func()) error {
	if h == 0 {
		done()
		return nil
	}
	t := x.tableOf(h)
	o := t.handle(h)
	if o == nil {
		return errBadHandle("extended: notify", h)
	}
	t.mu.Lock()
	if t.watchers == nil {
		t.watchers = make(map[uint64]func())
	}
	t.watchers[uint64(h)] = done
	t.mu.Unlock()
	o.state.Or(watched)
	if o.left.Load() == 0 { // a completion that came before the flag did not see it
		t.tell(uint64(h))
	}
	return nil
}

// WaitAll waits for every handle of hs and overwrites it with zero. An empty
// list, or one of zeros only, succeeds at once. A handle that is not
// outstanding is found before any is synchronized, except where one handle
// stands in hs twice. The error is the first failure; the others are waited for
// nevertheless.
func (x *Initiator) WaitAll(hs []Handle) error {
	const what = "extended: wait for all"
	if err := x.checkHandles(what, hs); err != nil {
		return err
	}
	var failure error
	for i, h := range hs {
		if h == 0 {
			continue
		}
		err := x.wait(what, h)
		if err != nil && x.ep.Err() != nil && x.tableOf(h).handle(h) != nil {
			return err
		}
		failure = first(failure, err)
		hs[i] = 0
	}
	return failure
}

// WaitSome waits until at least one handle of hs is complete, synchronizes all
// that are, overwrites them with zero, and says how many they were: 0 only if
// the list is empty or has zeros only. The error is as for WaitAll.
func (x *Initiator) WaitSome(hs []Handle) (n int, err error) {
	return x.some("extended: wait for some", hs, func() error {
		w := x.table.getWaiter()
		w.what, w.hs = waitHandles, hs
		return w.park(x)
	})
}

// TrySome is WaitSome without waiting: it polls once if nothing is complete. n
// is 0 also if nothing of hs is complete yet.
func (x *Initiator) TrySome(hs []Handle) (n int, err error) {
	return x.some("extended: try some", hs, func() error {
		x.poll.Poll()
		return nil
	})
}

// some synchronizes those of hs that are complete, after wait if there are none.
func (x *Initiator) some(what string, hs []Handle, wait func() error) (n int, err error) {
	if err := x.checkHandles(what, hs); err != nil {
		return 0, err
	}
	n, left, err := x.sweep(what, hs)
	if n > 0 || left == 0 || err != nil {
		return n, err
	}
	if err := wait(); err != nil {
		return 0, err
	}
	n, _, err = x.sweep(what, hs)
	return n, err
}

// TryAll is WaitAll without waiting: it polls once if something is incomplete,
// overwrites what is complete with zero, and reports whether that was all.
func (x *Initiator) TryAll(hs []Handle) (done bool, err error) {
	const what = "extended: try all"
	if err := x.checkHandles(what, hs); err != nil {
		return false, err
	}
	_, left, err := x.sweep(what, hs)
	if err == nil && left > 0 {
		x.poll.Poll()
		_, left, err = x.sweep(what, hs)
	}
	return left == 0, err
}

// checkHandles finds handles that are not outstanding before any is touched.
func (x *Initiator) checkHandles(what string, hs []Handle) error {
	for i, h := range hs {
		if h != 0 && x.tableOf(h).handle(h) == nil {
			return errBadHandle(fmt.Sprintf("%s: entry %d of %d", what, i, len(hs)), h)
		}
	}
	return nil
}

// sweep synchronizes what is complete, n handles; left are not.
func (x *Initiator) sweep(what string, hs []Handle) (n, left int, failure error) {
	for i, h := range hs {
		if h == 0 {
			continue
		}
		if o := x.tableOf(h).handle(h); o != nil && o.left.Load() != 0 {
			left++
			continue
		}
		failure = first(failure, x.wait(what, h))
		hs[i] = 0
		n++
	}
	return n, left, failure
}

// await parks until o, used under name, has nothing left under mask.
func (x *Initiator) await(o *op, name uint64, mask int64) error {
	w := x.table.getWaiter()
	w.what, w.o, w.name, w.mask = waitOp, o, name, mask
	return w.park(x)
}

// awaitSlot parks until claim would find a slot.
func (x *Initiator) awaitSlot() error {
	w := x.table.getWaiter()
	w.what = waitSlot
	return w.park(x)
}

// park waits for what w says, and gives it back to x.
func (w *waiter) park(x *Initiator) error {
	w.x = x
	err := x.poll.Wait(w, w.cond)
	x.table.putWaiter(w)
	return err
}

type waitKind uint8

const (
	waitOp waitKind = iota
	waitHandles
	waitWordsAny
	waitWordsAll
	waitSlot
	waitLock
)

// waiter describes the wait of a goroutine. Waiters are kept and reused, together with
// the function that conduits.Wait calls, so that waiting allocates nothing.
type waiter struct {
	cond  func() bool
	away  func(bool) bool // of conduits.Cond, for waitLock
	next  *waiter
	x     *Initiator
	what  waitKind
	o     *op
	name  uint64
	mask  int64
	hs    []Handle
	words []segment.NLA
	one   [1]segment.NLA // room for words
	cmp   Cmp
	value uint64
	index int    // of words: where to look first; then, which compared, or -1 if leave has lost the lock's turn
	seen  uint64 // what that word was
	lost  bool   // there is no such word any more
	lock  remote // of waitLock, and what it was when last tried
	state int64
	stop  func() bool // unless nil, ends a waitLock
}

func (t *table) getWaiter() *waiter {
	p := t.own()
	p.mu.Lock()
	w := p.waiters
	if w != nil {
		p.waiters = w.next
	}
	p.mu.Unlock()
	if w == nil {
		w = new(waiter)
		w.cond, w.away = w.done, w.leave
	}
	return w
}

func (t *table) putWaiter(w *waiter) {
	*w = waiter{cond: w.cond, away: w.away}
	p := t.own()
	p.mu.Lock()
	w.next = p.waiters
	p.waiters = w
	p.mu.Unlock()
}

func (w *waiter) done() bool {
	switch w.what {
	case waitOp:
		if w.o.left.Load()&w.mask == 0 {
			return true
		}
		return w.o.state.Load()>>stateShift != w.name>>slotBits
	case waitHandles:
		named := false
		for _, h := range w.hs {
			if h == 0 {
				continue
			}
			o := w.x.tableOf(h).handle(h)
			if o == nil || o.left.Load() == 0 {
				return true
			}
			named = true
		}
		return !named
	case waitLock:
		v, ok := w.x.own(w.words[0])
		w.seen, w.lost = v, !ok
		return w.index < 0 || !ok || v != waiting || w.stop != nil && w.stop()
	case waitWordsAny:
		for k := range w.words {
			i := (w.index + k) % len(w.words)
			v, ok := w.x.own(w.words[i])
			if !ok || w.cmp.holds(v, w.value) {
				w.index, w.seen, w.lost = i, v, !ok
				return true
			}
		}
		return false
	case waitWordsAll:
		for ; w.index < len(w.words); w.index++ {
			v, ok := w.x.own(w.words[w.index])
			if !ok {
				w.lost = true
				return true
			}
			if !w.cmp.holds(v, w.value) {
				return false
			}
		}
		return true
	}
	return w.x.table.room()
}

// leave has a waiter for a lock passed over while its goroutine runs other work, which may want the
// lock itself, or wait for what does.
func (w *waiter) leave(gone bool) bool {
	from, to := uint64(away), uint64(waiting)
	if gone {
		from, to = to, from
	}
	_, ok, err := CompareAndSwap(w.x, w.x.ep.Rank(), w.words[0], from, to)
	if !gone && !ok || err != nil {
		w.index = -1
	}
	return ok
}

// Blocked describes the wait, for reports of jobs that hang.
func (w *waiter) Blocked() string {
	switch w.what {
	case waitOp:
		left := w.o.left.Load()
		if w.mask == sourceMask {
			return fmt.Sprintf("until the sources of %d pieces of a put may be reused", left&sourceMask>>32)
		}
		return fmt.Sprintf("operation %#x, of which %d pieces are under way", w.name, uint32(left))
	case waitHandles:
		return fmt.Sprintf("one of %d handles", len(w.hs))
	case waitLock:
		return w.x.lockState(w.lock, w.state)
	case waitWordsAny, waitWordsAll:
		n := 0
		for _, a := range w.words {
			if w.x.holds(a, w.cmp, w.value) {
				n++
			}
		}
		if len(w.words) == 1 {
			v, _ := w.x.own(w.words[0])
			text := fmt.Sprintf("until the word at %v is %v %d; it is %d", remoteAt(w.x.ep.Rank(), w.words[0]), w.cmp, w.value, v)
			if n == 1 {
				text += ", which holds already: a Put changed it, which wakes no waiter (PutSignal and atomics do)"
			}
			return text
		}
		return fmt.Sprintf("until words are %v %d, which %d of %d are", w.cmp, w.value, n, len(w.words))
	}
	return "an operation to complete, as there may be no more under way"
}
