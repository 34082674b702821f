package gas

import (
	"errors"
	"iter"
	"slices"

	"github.com/argon-go/argon/internal/errs"
)

// Pool bounds how many calls, transfers or collective calls of a rank are under way: it takes what Go and NB have begun, and waits
// for one of them when there are as many as it may have.
//
//	p := gas.NewPool(n, 64, func(n *gas.Node, v int) { sum += v })
//	for _, k := range keys {
//		n.Must(p.Add(lookup.Go(n, owner(k), k)))
//	}
//	n.Must(p.Wait())
//
// It is used by one goroutine at a time.
type Pool[R any] struct {
	n    *Node
	most int
	done func(n *Node, r R)
	out  []Future[R]
	err  error // the first of those since the last Wait
}

// NewPool makes a pool of n for at most so many, at least one. done, unless nil, is run with each result, in the order in which
// they come, by the goroutine that calls Add or Wait.
func NewPool[R any](n *Node, most int, done func(n *Node, r R)) *Pool[R] {
	return &Pool[R]{n: n, most: max(most, 1), done: done}
}

// Add takes what was begun, an f and err as functions that begin something return them, when fewer than the pool may have are
// under way. It returns the first error, err or that of something before it, from then on until Wait: what is under way goes on.
func (p *Pool[R]) Add(f Future[R], err error) error {
	if err == nil {
		err = f.taken()
	}
	if err == nil && f.n.whole != p.n.whole {
		err = errs.BadArg("gas: a Future of rank %d in a Pool of rank %d", f.n.rank, p.n.rank)
	}
	if err == nil {
		p.out = append(p.out, f)
	} else if p.err == nil {
		p.err = err
	}
	for len(p.out) >= p.most && p.take() {
	}
	return p.err
}

// Wait waits until nothing of the pool is under way, and returns the first error since the last Wait.
func (p *Pool[R]) Wait() error {
	for len(p.out) > 0 && p.take() {
	}
	err := p.err
	p.err = nil
	return err
}

// take waits for one, and reports whether there was one that could be waited for.
func (p *Pool[R]) take() bool {
	i, r, err := waitAny(p.n, p.out)
	if err != nil && p.err == nil {
		p.err = err
	}
	if i < 0 {
		if p.n.ep.Err() != nil { // none of them comes
			p.out = nil
		}
		before := len(p.out)
		p.out = slices.DeleteFunc(p.out, func(f Future[R]) bool { return f.taken() != nil }) // by another
		return len(p.out) < before
	}
	last := len(p.out) - 1
	p.out[i], p.out[last] = p.out[last], Future[R]{}
	p.out = p.out[:last]
	if err == nil && p.done != nil {
		p.done(p.n, r)
	}
	return true
}

// blockBytes is about how much Blocks gets at once.
const blockBytes = 64 << 10

// Blocks walks the elements from index from to before index to, which any ranks may have, in order: the index of the first of some, and those, which are valid until the
// next round. The loop's next elements are under way meanwhile: pieces of at most 64 KiB or, where that is less, the array's block, up to
// ahead of them, at least one. If that fails the loop ends, and *err says why; else *err is nil.
//
//	var err error
//	for i, part := range a.Blocks(n, 0, a.Len(), 4, &err) {
//		sum(i, part)
//	}
func (a Array[T]) Blocks(n *Node, from, to, ahead int, err *error) iter.Seq2[int, []T] {
	return func(yield func(int, []T) bool) {
		*err = nil
		if from < 0 || to < from || to > a.length {
			*err = errs.BadArg("gas: Array.Blocks from %d to %d: the array has %d elements", from, to, a.length)
			return
		}
		next := from // to be begun
		size := min(a.layout.Block, max(blockBytes/sizeOf[T](), 1))
		type piece struct {
			at   int
			got  []T
			h    Handle
			room []T
		}
		pieces := make([]piece, max(ahead, 1)+1) // one is the loop's
		begin := func(p *piece) {
			p.h, p.got = 0, nil
			if next == to || *err != nil {
				return
			}
			k := min(size, a.layout.Block-next%a.layout.Block, to-next)
			if p.room == nil {
				p.room = make([]T, size)
			}
			p.at, p.got = next, p.room[:k:k]
			p.h, *err = a.At(next).GetSliceNB(n, p.got)
			next += k
		}
		// What is under way writes to pieces.
		defer func() {
			for i := range pieces {
				*err = errors.Join(*err, n.Sync(pieces[i].h))
			}
		}()
		for i := range pieces[1:] {
			begin(&pieces[i])
		}
		for i := 0; *err == nil; i++ {
			begin(&pieces[(i+len(pieces)-1)%len(pieces)])
			p := &pieces[i%len(pieces)]
			if p.got == nil || *err != nil {
				return
			}
			h := p.h
			p.h = 0
			if *err = n.Sync(h); *err != nil || !yield(p.at, p.got) {
				return
			}
		}
	}
}

// AccumulateNBI begins to combine the elements of src with those from p on, implicitly: [Node.SyncImplicit] waits for it. op is [AddNBI],
// or another function that changes a word and returns nothing: each element is changed atomically, the slice is not. src may be changed when it returns.
func AccumulateNBI[T any](n *Node, p Ptr[T], src []T, op func(n *Node, p Ptr[T], v T) error) error {
	for i, v := range src {
		if err := op(n, p.Add(i), v); err != nil {
			return err
		}
	}
	return nil
}
