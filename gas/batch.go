package gas

import (
	"fmt"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Batch asks any rank questions of type Q, which travel many at a time, and gets answers of type
// A in the order of asking. It is a [Mailbox] there and one back, and used likewise: by one
// goroutine of a rank at a time.
type Batch[Q, A any] struct {
	ask     *Mailbox[question[Q]]
	tell    *Mailbox[answer[A]]
	answers []A
}

// question is one of a rank, which has asked so many before.
type question[Q any] struct {
	number uint32
	q      Q
}

// answer is that of the question of that number.
type answer[A any] struct {
	number uint32
	a      A
}

// NewBatch is collective: it makes a batch of that name, which is for messages to people, on all
// ranks. fn answers what rank source asks. It runs as functions of mailboxes do; what it
// pushes to other mailboxes is theirs to end. Q and A must not hold Go pointers.
func NewBatch[Q, A any](n *Node, name string, fn func(n *Node, source int, q Q) A) (*Batch[Q, A], error) {
	if fn == nil {
		return newBatch[Q, A](n, name, nil)
	}
	return newBatch(n, name, func(b *Batch[Q, A], n *Node, source int, items []question[Q]) {
		for i := range items {
			b.answer(source, answer[A]{items[i].number, fn(n, source, items[i].q)})
		}
	})
}

// newBatch is NewBatch with a function that answers many.
func newBatch[Q, A any](n *Node, name string, fn func(b *Batch[Q, A], n *Node, source int, items []question[Q])) (*Batch[Q, A], error) {
	b := new(Batch[Q, A])
	var asked func(n *Node, source int, items []question[Q])
	if fn != nil {
		asked = func(n *Node, source int, items []question[Q]) { fn(b, n, source, items) }
	}
	var err error
	// The answers' first: a question may come as soon as there is a mailbox for it.
	b.tell, err = NewMailbox(n, name+" (answers)", func(_ *Node, _ int, items []answer[A]) {
		all := b.answers
		for i := range items {
			all[items[i].number] = items[i].a
		}
	})
	if err != nil {
		return nil, err
	}
	if b.ask, err = NewMailbox(n, name, asked); err != nil {
		b.tell.close()
		return nil, err
	}
	return b, nil
}

// answer answers a question of rank. An error is one of the job, which Answers returns.
func (b *Batch[Q, A]) answer(rank int, a answer[A]) {
	if !b.tell.put(rank, a) {
		_ = b.tell.pushFull(rank, a)
	}
}

// mostAsked is how many questions may be asked between two calls of Answers.
const mostAsked = 1<<32 - 1

// Ask asks rank, which may be the own one, when there is enough for it; see [Mailbox.Push].
func (b *Batch[Q, A]) Ask(rank int, q Q) error {
	k := len(b.answers)
	if k >= mostAsked {
		return errs.Resource("gas: %d questions asked of batch %q; call Batch.Answers before", k, b.ask.name)
	}
	var none A
	b.answers = append(b.answers, none)
	if err := b.ask.Push(rank, question[Q]{uint32(k), q}); err != nil {
		if len(b.answers) == k+1 {
			b.answers = b.answers[:k]
		}
		return err
	}
	return nil
}

// Answers is collective: it returns the answers to all that this rank has asked since the last
// call, in that order, when all ranks have theirs. The slice is the caller's.
func (b *Batch[Q, A]) Answers() ([]A, error) {
	n := b.ask.n
	if b.ask.done {
		return nil, errs.NotReady("gas: Answers or Delete of batch %q on rank %d, which is deleted", b.ask.name, n.rank)
	}
	if err := n.syncMailboxes(fmt.Sprintf("Answers of batch %q", b.ask.name), mailboxID+b.ask.box.Number(), b.ask.box, b.tell.box); err != nil {
		return nil, err
	}
	all := b.answers
	b.answers = nil
	return all, nil
}

// Delete is collective: it ends the batch, after the last call of Answers.
func (b *Batch[Q, A]) Delete() error {
	if _, err := b.Answers(); err != nil {
		return err
	}
	b.ask.close()
	b.tell.close()
	return nil
}

// local is a type for the number of an element on its rank.
type local interface{ uint32 | int }

// change is a value for a rank's element.
type change[T any, L local] struct {
	at L
	v  T
}

// wide reports whether 32 bits are too few to count elements.
func (a Array[T]) wide() bool {
	_, near := newLocator(a.layout, a.length)
	return !near
}

// UpdateAll is collective: for each k it sets element i = idx[k] to fn(element i, values[k]), at
// the rank that has it. Ranks have lists of their own, of any length, in which an index may be
// there many times; updates of an element come in any order, one at a time. When it
// returns, those of all ranks are done, and visible to all. If an index is not one of the array
// the error names it, and nothing of this rank's list is done. fn is the same on all ranks.
func (a Array[T]) UpdateAll(n *Node, idx []int, values []T, fn func(old, v T) T) error {
	if a.wide() {
		return changeAll(n, a, "UpdateAll", idx, values, updating[int](fn))
	}
	return changeAll(n, a, "UpdateAll", idx, values, updating[uint32](fn))
}

// updating returns what applies fn, to four items in turn: what a loop counts does not stay in
// a register across a call, which for each item takes a tenth of the time. The functions for sums
// and for stores are loops of their own, as a call for each item takes a fifth of the time of
// AddAll.
func updating[L local, T any](fn func(old, v T) T) func(s []T, items []change[T, L]) {
	return func(s []T, items []change[T, L]) {
		for ; len(items) >= 4; items = items[4:] {
			p := &s[items[0].at]
			*p = fn(*p, items[0].v)
			p = &s[items[1].at]
			*p = fn(*p, items[1].v)
			p = &s[items[2].at]
			*p = fn(*p, items[2].v)
			p = &s[items[3].at]
			*p = fn(*p, items[3].v)
		}
		for i := range items {
			p := &s[items[i].at]
			*p = fn(*p, items[i].v)
		}
	}
}

// AddAll is collective: it adds values[k] to element idx[k] for each k; see [Array.UpdateAll].
func AddAll[T Scalar](n *Node, a Array[T], idx []int, values []T) error {
	if a.wide() {
		return changeAll(n, a, "AddAll", idx, values, addEach[T, int])
	}
	return changeAll(n, a, "AddAll", idx, values, addEach[T, uint32])
}

func addEach[T Scalar, L local](s []T, items []change[T, L]) {
	for i := range items {
		s[items[i].at] += items[i].v
	}
}

// PutAll is collective: it stores src[k] as element idx[k] for each k. Where several are for
// one element, one of them stays; see [Array.UpdateAll].
func (a Array[T]) PutAll(n *Node, idx []int, src []T) error {
	if a.wide() {
		return changeAll(n, a, "PutAll", idx, src, storeEach[T, int])
	}
	return changeAll(n, a, "PutAll", idx, src, storeEach[T, uint32])
}

func storeEach[T any, L local](s []T, items []change[T, L]) {
	for i := range items {
		s[items[i].at] = items[i].v
	}
}

// changeAll has the owners of elements idx[k] apply changes by values[k] to their part s.
func changeAll[T any, L local](n *Node, a Array[T], op string, idx []int, values []T, apply func(s []T, items []change[T, L])) error {
	bad := a.indices(op, idx, len(values))
	s := a.LocalSlice(n)
	m, err := NewMailbox(n, "Array."+op, func(_ *Node, _ int, items []change[T, L]) { apply(s, items) })
	if err != nil {
		return err
	}
	if bad == nil {
		var found [chunk]spot[L]
		where, near := newLocator(a.layout, a.length)
		for len(idx) > 0 {
			some := min(chunk, len(idx))
			spots(&found, idx[:some], a.layout, where, near)
			for k, v := range values[:some] {
				to := &found[k&(chunk-1)]
				if c := (change[T, L]{to.at, v}); !m.put(int(to.rank), c) {
					if err := m.pushFull(int(to.rank), c); err != nil {
						return err
					}
				}
			}
			idx, values = idx[some:], values[some:]
		}
	}
	if err := m.Delete(); err != nil {
		return err
	}
	return bad
}

// GetAll is collective: it loads element idx[k] into dst[k] for each k. Ranks have lists of
// their own, of any length. If an index is not one of the array the error names it, and
// nothing is loaded. Where GetIndexed, which is not collective, has a message for each
// element of a rank out of reach, many of these share one.
func (a Array[T]) GetAll(n *Node, idx []int, dst []T) error {
	if a.wide() {
		return gather[T, int](n, a, idx, dst)
	}
	return gather[T, uint32](n, a, idx, dst)
}

func gather[T any, L local](n *Node, a Array[T], idx []int, dst []T) error {
	bad := a.indices("GetAll", idx, len(dst))
	if bad == nil && len(idx) > mostAsked {
		bad = errs.Resource("gas: Array.GetAll of %d elements; a call loads %d at most", len(idx), mostAsked)
	}
	s := a.LocalSlice(n)
	b, err := newBatch(n, "Array.GetAll", func(b *Batch[L, T], _ *Node, source int, items []question[L]) {
		for i := range items {
			b.answer(source, answer[T]{items[i].number, s[items[i].q]})
		}
	})
	if err != nil {
		return err
	}
	if bad == nil {
		// dst may be elements of the array, which others load until Answers returns.
		b.answers = make([]T, len(idx))
		where, near := newLocator(a.layout, a.length)
		own, answers := n.rank, b.answers
		for k, i := range idx {
			rank, at := where.locate(i)
			if !near {
				rank, at = a.layout.Locate(i)
			}
			if rank == own {
				answers[k] = s[at]
			} else if q := (question[L]{uint32(k), L(at)}); !b.ask.put(rank, q) {
				if err := b.ask.pushFull(rank, q); err != nil {
					return err
				}
			}
		}
	}
	got, err := b.Answers()
	if err != nil {
		return err
	}
	if err := b.Delete(); err != nil {
		return err
	}
	bulk.CopySlice(dst, got)
	return bad
}

// indices is the error of a list of indices for so many values.
func (a Array[T]) indices(op string, idx []int, values int) error {
	if len(idx) != values {
		return errs.BadArg("gas: Array.%s: %d indices for %d values", op, len(idx), values)
	}
	for k, i := range idx {
		if uint(i) >= uint(a.length) {
			return errs.BadArg("gas: Array.%s: idx[%d] is %d: the array has elements 0..%d", op, k, i, a.length-1)
		}
	}
	return nil
}
