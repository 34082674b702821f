package window

import (
	"fmt"
	"math/bits"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// Window is memory of each rank of a group that the others access in epochs. Ranks are numbers in the group.
type Window[T any] struct {
	g       gas.Group
	n       *gas.Node
	size    int
	parts   []part[T]
	words   *gas.TeamSlice[uint64] // of each rank, see lockAt
	told    *extended.Region       // what tell has begun
	handles []gas.Handle           // of shapes under way

	fences          uint64
	fenced          bool    // an epoch of Fence is open
	epochs          []epoch // by rank
	started, posted []int   // of Start and of Post
}

// part is what a rank has opened.
type part[T any] struct {
	At  gas.Ptr[T]
	Len int // elements; -1 for an argument that is refused
}

// epoch is how this rank stands to another one.
type epoch struct {
	starts, posts uint64 // how often it was begun
	open          bool   // started
	hold          hold
}

type hold uint8

const (
	none hold = iota
	exclusive
	shared
)

// What words has, by index: a lock; how many fences ranks 1, 2, 4, 8, ... before this one are in; how often each rank has
// called Post for this one; how often each has completed what this one posted.
const (
	lockAt  = 0
	fenceAt = 3
)

func (w *Window[T]) postAt(rank int) int { return fenceAt + bits.Len(uint(w.size-1)) + rank }
func (w *Window[T]) doneAt(rank int) int { return w.postAt(w.size + rank) }

// most elements of a part, so that displacements do not overflow.
const most = 1 << 40

// mostHandles is how many transfers of shapes are under way at once.
const mostHandles = 1024

// New is collective: it makes a window of count elements at p on each rank of g, which may differ by rank and be none. p is memory
// of the rank's own, in its segment or registered.
func New[T any](g gas.Group, p gas.Ptr[T], count int) (*Window[T], error) {
	w := &Window[T]{g: g, n: g.Node(), size: g.Size()}
	own := part[T]{p, count}
	if count < 0 || count > most {
		own.Len = -1
	} else if _, ok := p.LocalSlice(w.n, count); count > 0 && (p.Rank() != w.n.Rank() || !ok) {
		own.Len = -1
	}
	var err error
	if w.parts, err = gas.AllGather(g, own); err != nil {
		return nil, fmt.Errorf("window: New: %w", err)
	}
	for r, q := range w.parts {
		switch {
		case q.Len >= 0:
		case r == g.Rank():
			return nil, errs.BadArg("window: New: %d elements at %v are not this rank's memory, of 0 to %d", count, p, most)
		default:
			return nil, errs.BadArg("window: New: rank %d has no memory at %v for what it asked, as its own error says", r, q.At)
		}
	}
	w.epochs, w.told = make([]epoch, w.size), w.n.Layers().Extended.NewRegion()
	if w.words, err = gas.NewTeamSlice[uint64](g, w.doneAt(w.size)); err != nil {
		return nil, fmt.Errorf("window: New: %w", err)
	}
	return w, nil
}

// Put puts elements of src at displacement at of rank, as s says: all of them one behind the other if s is the zero Shape.
func (w *Window[T]) Put(rank, at int, src []T, s gas.Shape) error {
	p, flat, err := w.place("Put", rank, at, len(src), s)
	switch {
	case err != nil:
		return err
	case flat:
		return p.PutSliceNBI(w.n, src)
	}
	return w.under(p.PutShapeNB(w.n, src, s))
}

// Get gets elements at displacement at of rank into dst, as Put puts them.
func (w *Window[T]) Get(rank, at int, dst []T, s gas.Shape) error {
	p, flat, err := w.place("Get", rank, at, len(dst), s)
	switch {
	case err != nil:
		return err
	case flat:
		return p.GetSliceNBI(w.n, dst)
	}
	return w.under(p.GetShapeNB(w.n, dst, s))
}

// Accumulate combines elements of src with those at displacement at of rank by op, as Put puts them: gas.AddNBI[T], or another of
// the functions that change a word and return nothing.
func (w *Window[T]) Accumulate(rank, at int, src []T, s gas.Shape, op func(n *gas.Node, p gas.Ptr[T], v T) error) error {
	p, flat, err := w.place("Accumulate", rank, at, len(src), s)
	if err != nil {
		return err
	}
	if s.Index != nil {
		for k, i := range s.Index {
			if err := op(w.n, p.Add(i), src[k]); err != nil {
				return err
			}
		}
		return nil
	}
	if flat {
		s = gas.Shape{Count: 1, Len: len(src)}
	}
	far, near := stride(s.Remote, s.Len), stride(s.Local, s.Len)
	for i := range s.Count {
		if err := gas.AccumulateNBI(w.n, p.Add(i*far), src[i*near:][:s.Len], op); err != nil {
			return err
		}
	}
	return nil
}

// stride is a row's, of Shape.
func stride(given, row int) int {
	if given == 0 {
		return row
	}
	return given
}

// place checks an access to elements of rank, which is flat if s is the zero Shape.
func (w *Window[T]) place(op string, rank, at, have int, s gas.Shape) (p gas.Ptr[T], flat bool, err error) {
	if err := w.check(op, rank); err != nil {
		return p, false, err
	}
	if e := &w.epochs[rank]; !w.fenced && !e.open && e.hold == none {
		return p, false, errs.NotReady("window: %s at rank %d outside of an epoch: Fence, Start or Lock comes first", op, rank)
	}
	length := w.parts[rank].Len
	if at < 0 || at > length {
		return p, false, errs.BadArg("window: %s at displacement %d of rank %d, which has %d elements", op, at, rank, length)
	}
	room := length - at
	if s.Index != nil {
		if len(s.Index) != have {
			return p, false, errs.BadArg("window: %s: %d indices for %d elements", op, len(s.Index), have)
		}
		for k, i := range s.Index {
			if i < 0 || i >= room {
				return p, false, errs.BadArg("window: %s at displacement %d of rank %d: index %d is %d; there are %d elements", op, at, rank, k, i, room)
			}
		}
		return w.parts[rank].At.Add(at), false, nil
	}
	if flat = s.Count == 0 && s.Len == 0; flat {
		s = gas.Shape{Count: 1, Len: have}
	}
	if !fits(s.Count, s.Len, stride(s.Remote, s.Len), room) || !fits(s.Count, s.Len, stride(s.Local, s.Len), have) {
		return p, false, errs.BadArg("window: %s at displacement %d of rank %d: %d rows of %d elements, %d apart there and %d apart here, leave what there is, %d and %d elements",
			op, at, rank, s.Count, s.Len, s.Remote, s.Local, room, have)
	}
	return w.parts[rank].At.Add(at), flat, nil
}

// fits reports whether rows fit into room elements.
func fits(count, row, apart, room int) bool {
	if count < 0 || row < 0 || apart < 0 || row > room {
		return false
	}
	return count < 2 || apart <= (room-row)/(count-1)
}

// check is the error of a rank that there is not.
func (w *Window[T]) check(op string, rank int) error {
	if w.words == nil {
		return errs.NotReady("window: %s: the window was deleted", op)
	}
	if uint(rank) >= uint(w.size) {
		return errs.BadArg("window: %s at rank %d; there are 0 to %d", op, rank, w.size-1)
	}
	return nil
}

// under keeps the handle of a transfer that was begun.
func (w *Window[T]) under(h gas.Handle, err error) error {
	if err != nil {
		return err
	}
	w.handles = append(w.handles, h)
	if len(w.handles) < mostHandles {
		return nil
	}
	return w.syncShapes()
}

func (w *Window[T]) syncShapes() error {
	err := w.n.SyncAll(w.handles)
	w.handles = w.handles[:0]
	return err
}

// sync waits until all accesses of this rank are done.
func (w *Window[T]) sync() error {
	err := w.syncShapes()
	if failed := w.n.SyncImplicit(); err == nil {
		err = failed
	}
	return err
}

// word is one of words, of rank.
func (w *Window[T]) word(rank, i int) gas.Ptr[uint64] { return w.words.On(rank).Add(i) }

// tell sets one of rank's words, for which that may wait, and waits only for what it has told rank before: a put of a word, which ends the wait when it has
// arrived, where load and store do not reach it.
func (w *Window[T]) tell(rank, i int, v uint64) error {
	p := w.word(rank, i)
	if w.n.Neighbour(p.Rank()) || p.NLA().Exposed() {
		return gas.StoreNBI(w.n, p, v)
	}
	// Of two puts to one word the second may arrive first.
	if err := w.told.SyncRank(p.Rank(), extended.Puts); err != nil {
		return err
	}
	return w.told.PutValueNBI(p.Rank(), p.NLA(), v, 8)
}

// await waits for one of this rank's own words.
func (w *Window[T]) await(op string, i int, v uint64) error {
	_, err := gas.WaitUntil(w.n, w.word(w.g.Rank(), i), gas.Ge, v)
	if err != nil {
		return fmt.Errorf("window: %s: %w", op, err)
	}
	return nil
}

// Fence is collective: it ends the epoch that the last Fence has begun, and begins one in which all ranks may access all.
func (w *Window[T]) Fence() error {
	if err := w.check("Fence", 0); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	w.fences++
	for k, d := 0, 1; d < w.size; k, d = k+1, 2*d {
		if err := w.tell((w.g.Rank()+d)%w.size, fenceAt+k, w.fences); err != nil {
			return err
		}
		if err := w.await("Fence", fenceAt+k, w.fences); err != nil {
			return err
		}
	}
	w.fenced = true
	return nil
}

// each checks ranks of a group, and that no epoch of its kind is open.
func (w *Window[T]) each(op string, open, ranks []int) error {
	if len(open) > 0 {
		return errs.NotReady("window: %s for ranks %v, before that for ranks %v has ended", op, ranks, open)
	}
	for i, r := range ranks {
		if err := w.check(op, r); err != nil {
			return err
		}
		for _, q := range ranks[:i] {
			if q == r {
				return errs.BadArg("window: %s: rank %d is named twice", op, r)
			}
		}
	}
	w.fenced = false
	return nil
}

// Post opens this rank's part to ranks, each of which calls Start with this one among its ranks. It does not wait for them.
func (w *Window[T]) Post(ranks ...int) error {
	if err := w.each("Post", w.posted, ranks); err != nil {
		return err
	}
	for _, r := range ranks {
		w.epochs[r].posts++
		if err := w.tell(r, w.postAt(w.g.Rank()), w.epochs[r].posts); err != nil {
			return err
		}
	}
	w.posted = append(w.posted, ranks...)
	return nil
}

// Start begins an epoch with ranks. It waits until each has called Post for this one.
func (w *Window[T]) Start(ranks ...int) error {
	if err := w.each("Start", w.started, ranks); err != nil {
		return err
	}
	for _, r := range ranks {
		e := &w.epochs[r]
		if err := w.await("Start", w.postAt(r), e.starts+1); err != nil {
			return err
		}
		e.starts++
		e.open = true
		w.started = append(w.started, r)
	}
	return nil
}

// Complete ends the epoch that Start has begun.
func (w *Window[T]) Complete() error {
	err := w.sync()
	for _, r := range w.started {
		e := &w.epochs[r]
		e.open = false
		if err == nil {
			err = w.tell(r, w.doneAt(w.g.Rank()), e.starts)
		}
	}
	w.started = w.started[:0]
	return err
}

// Wait waits until all ranks that Post has named have called Complete.
func (w *Window[T]) Wait() error {
	for _, r := range w.posted {
		if err := w.await("Wait", w.doneAt(r), w.epochs[r].posts); err != nil {
			return err
		}
	}
	w.posted = w.posted[:0]
	return nil
}

// lock is rank's.
func (w *Window[T]) lock(rank int) gas.Lock {
	p, _ := gas.Cast[gas.LockWord](w.word(rank, lockAt))
	return gas.LockAt(p)
}

// Lock begins an epoch with rank, when no other rank has one with it by Lock or LockShared. The lock is granted in order; see gas.Lock.
func (w *Window[T]) Lock(rank int) error { return w.take("Lock", rank, exclusive, gas.Lock.Lock) }

// LockShared begins an epoch with rank, when no other rank has one with it by Lock.
func (w *Window[T]) LockShared(rank int) error {
	return w.take("LockShared", rank, shared, gas.Lock.RLock)
}

func (w *Window[T]) take(op string, rank int, h hold, lock func(gas.Lock, *gas.Node) error) error {
	if err := w.check(op, rank); err != nil {
		return err
	}
	e := &w.epochs[rank]
	if e.hold != none {
		return errs.NotReady("window: %s of rank %d, whose lock this rank has; Unlock comes first", op, rank)
	}
	if err := lock(w.lock(rank), w.n); err != nil {
		return err
	}
	e.hold, w.fenced = h, false
	return nil
}

// Unlock ends the epoch with rank that Lock or LockShared has begun.
func (w *Window[T]) Unlock(rank int) error {
	if err := w.check("Unlock", rank); err != nil {
		return err
	}
	e := &w.epochs[rank]
	if e.hold == none {
		return errs.NotReady("window: Unlock of rank %d, whose lock this rank does not have", rank)
	}
	if err := w.sync(); err != nil {
		return err
	}
	unlock := gas.Lock.Unlock
	if e.hold == shared {
		unlock = gas.Lock.RUnlock
	}
	e.hold = none
	return unlock(w.lock(rank), w.n)
}

// Delete is collective: it ends the window, when all ranks have called it. The memory stays its owners'.
func (w *Window[T]) Delete() error {
	if err := w.check("Delete", 0); err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	if err := w.told.Sync(extended.All); err != nil {
		return err
	}
	words := w.words
	w.words = nil
	return words.Delete()
}
