package gas

import (
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// collected is a collective call that a Future is of.
type collected struct {
	h      collective.Handle
	result any // func(blocks [][]byte) R for a Future of R; nil for the zero R
}

// claimCollective reserves a slot for a collective call of g.
func claimCollective(g Group) (n *Node, s *slot, i uint32) {
	n = g.Node()
	s, i = n.calls.claim(nil, -1)
	s.coll = new(collected)
	return n, s, i
}

// futureOf is the Future of a collective call that was begun, unless err says why not. It
// gives slot i back then.
func futureOf[R any](n *Node, s *slot, i uint32, h collective.Handle, err error) (Future[R], error) {
	if err != nil {
		n.calls.release(i)
		return Future[R]{}, err
	}
	s.coll.h = h
	use := s.use.Load()
	h.Notify(func(error) {
		n.calls.mu.Lock()
		if s.use.Load() == use {
			n.answered(s)
		}
		n.calls.mu.Unlock()
	})
	return Future[R]{n: n, s: s, i: i, use: use}, nil
}

// futureWith begins a call unless err says why not, with what makes the result when it is done.
func futureWith[R any](g Group, err error, result func(blocks [][]byte) R, begin func() (collective.Handle, error)) (Future[R], error) {
	if err != nil {
		return Future[R]{}, err
	}
	n, s, i := claimCollective(g)
	s.coll.result = result
	h, err := begin()
	return futureOf[R](n, s, i, h, err)
}

// futureOfSlice is futureWith for a call that leaves its result in r.
func futureOfSlice[T any](g Group, err error, r []T, begin func() (collective.Handle, error)) (Future[[]T], error) {
	return futureWith(g, err, func([][]byte) []T { return r }, begin)
}

// futureOfBlocks is futureWith for a call that returns blocks.
func futureOfBlocks[T any](g Group, err error, begin func() (collective.Handle, error)) (Future[[][]T], error) {
	return futureWith(g, err, views[T], begin)
}

// resultOfCollective waits for the collective call of s and takes its result.
//
//go:noinline
func resultOfCollective[R any](s *slot) (r R, err error) {
	blocks, err := s.coll.h.WaitBlocks()
	if err != nil {
		return r, err
	}
	if result, ok := s.coll.result.(func([][]byte) R); ok {
		r = result(blocks)
	}
	return r, nil
}

// BarrierNB is collective: it begins a barrier of g, which is done when all ranks have begun
// it. [Team.BarrierNotify] is the same with the Future kept in the Team. See [AllReduceNB]; it takes ceil(log2 Size)
// messages of a rank, also for all ranks of the job, where [Node.BarrierNotify] uses memory
// that is shared.
func BarrierNB(g Group) (Future[struct{}], error) {
	n, s, i := claimCollective(g)
	h, err := g.members().coll.BarrierNB()
	return futureOf[struct{}](n, s, i, h, err)
}

// BroadcastNB is collective: it begins a [BroadcastSlice], whose result is s; see
// [AllReduceNB].
func BroadcastNB[T any](g Group, root int, s []T) (Future[[]T], error) {
	m, err := collCheck[T](g, "BroadcastNB", root)
	return futureOfSlice(g, err, s, func() (collective.Handle, error) { return m.coll.BroadcastNB(root, bytesOf(s)) })
}

// ReduceNB is collective: it begins a [ReduceSlice], whose result is s on root and nil
// elsewhere; see [AllReduceNB].
func ReduceNB[T any](g Group, root int, s []T, op func(a, b T) T) (Future[[]T], error) {
	m, err := collCheck[T](g, "ReduceNB", root)
	return futureOfSlice(g, err, atRoot(g, root, s), func() (collective.Handle, error) { return m.coll.ReduceNB(root, bytesOf(s), combining(op)) })
}

// atRoot is s on root, and nil elsewhere.
func atRoot[T any](g Group, root int, s []T) []T {
	if g.Rank() != root {
		return nil
	}
	return s
}

// AllReduceNB is collective: it begins an [AllReduceSlice] and returns at once. The result, s, is in
// the Future, as that of a call: Wait, WaitContext, Then, Done, [WaitAll] and [WaitAny] are
// there for it. A value is a slice of one element.
//
// This and the other collectives whose names end in NB send the same messages as those that
// wait. They go on whenever a goroutine of the rank polls or waits for anything at all, an
// access of another rank's memory included; op runs there, and does nothing but compute. A rank that computes for long polls in between
// ([Node.Poll]), or has Config.Progress. Slices that were given belong to the call until its
// Future says that it is done: until then the program does not write what is read, nor look at what is
// written.
//
// Any number of calls, of one team and of many, may be under way at once, and they are done in any order.
// All ranks of a group begin its collective calls in the same order, those that wait
// included; calls that wait match only calls that wait, and those that do not only those
// that do not. Ranks that differ get an error that names two of the calls, from each Future of the
// group that is not done, and from all its later calls. If a rank fails or leaves without which a
// call cannot end, Wait returns a [*PeerError] that names it. A Future that
// is never waited for keeps its place in a table; a team is deleted when none of its calls is under way.
func AllReduceNB[T any](g Group, s []T, op func(a, b T) T) (Future[[]T], error) {
	m, err := collCheck[T](g, "AllReduceNB", 0)
	return futureOfSlice(g, err, s, func() (collective.Handle, error) {
		return m.coll.AllReduceElementsNB(sizeOf[T](), bytesOf(s), combining(op))
	})
}

// GatherNB is collective: it begins a [GatherSlice], whose result is all on root and nil
// elsewhere; see [AllReduceNB].
func GatherNB[T any](g Group, root int, own, all []T) (Future[[]T], error) {
	m, err := collCheck[T](g, "GatherNB", root)
	if err == nil && g.Rank() == root {
		err = m.checkBlocks(g, "GatherNB", len(all), len(own))
	}
	return futureOfSlice(g, err, atRoot(g, root, all), func() (collective.Handle, error) { return m.coll.GatherNB(root, bytesOf(own), bytesOf(all)) })
}

// GatherVNB is collective: it begins a [GatherV], see [AllReduceNB].
func GatherVNB[T any](g Group, root int, own []T) (Future[[][]T], error) {
	m, err := collCheck[T](g, "GatherVNB", root)
	return futureOfBlocks[T](g, err, func() (collective.Handle, error) { return m.coll.GatherVNB(root, sizeOf[T](), bytesOf(own)) })
}

// AllGatherNB is collective: it begins an [AllGatherSlice], whose result is all; see
// [AllReduceNB].
func AllGatherNB[T any](g Group, own, all []T) (Future[[]T], error) {
	m, err := collCheck[T](g, "AllGatherNB", 0)
	if err == nil {
		err = m.checkBlocks(g, "AllGatherNB", len(all), len(own))
	}
	return futureOfSlice(g, err, all, func() (collective.Handle, error) { return m.coll.AllGatherNB(bytesOf(own), bytesOf(all)) })
}

// AllGatherVNB is collective: it begins an [AllGatherV], see [AllReduceNB].
func AllGatherVNB[T any](g Group, own []T) (Future[[][]T], error) {
	m, err := collCheck[T](g, "AllGatherVNB", 0)
	return futureOfBlocks[T](g, err, func() (collective.Handle, error) { return m.coll.AllGatherVNB(sizeOf[T](), bytesOf(own)) })
}

// ScatterNB is collective: it begins a [ScatterSlice], whose result is own; see
// [AllReduceNB].
func ScatterNB[T any](g Group, root int, all, own []T) (Future[[]T], error) {
	m, err := collCheck[T](g, "ScatterNB", root)
	if err == nil && g.Rank() == root {
		err = m.checkBlocks(g, "ScatterNB", len(all), len(own))
	}
	return futureOfSlice(g, err, own, func() (collective.Handle, error) { return m.coll.ScatterNB(root, bytesOf(all), bytesOf(own)) })
}

// AllToAllNB is collective: it begins an [AllToAll], whose result is in; see [AllReduceNB].
func AllToAllNB[T any](g Group, out, in []T) (Future[[]T], error) {
	m, err := collCheck[T](g, "AllToAllNB", 0)
	if err == nil {
		err = m.checkAllToAll(g, "AllToAllNB", len(out), len(in))
	}
	return futureOfSlice(g, err, in, func() (collective.Handle, error) { return m.coll.ExchangeNB(bytesOf(out), bytesOf(in)) })
}

// AllToAllVNB is collective: it begins an [AllToAllV], see [AllReduceNB]. out itself may be
// changed at once, unlike what its slices hold.
func AllToAllVNB[T any](g Group, out [][]T) (Future[[][]T], error) {
	m, err := collCheck[T](g, "AllToAllVNB", 0)
	if err == nil {
		err = m.checkAllToAllV(g, "AllToAllVNB", len(out))
	}
	return futureOfBlocks[T](g, err, func() (collective.Handle, error) { return m.coll.ExchangeVNB(sizeOf[T](), blocksOf(out)) })
}

// ReduceScatterNB is collective: it begins a [ReduceScatter], whose result is own; see
// [AllReduceNB].
func ReduceScatterNB[T any](g Group, all, own []T, op func(a, b T) T) (Future[[]T], error) {
	m, err := collCheck[T](g, "ReduceScatterNB", 0)
	if err == nil {
		err = m.checkBlocks(g, "ReduceScatterNB", len(all), len(own))
	}
	return futureOfSlice(g, err, own, func() (collective.Handle, error) {
		return m.coll.ReduceScatterNB(bytesOf(all), bytesOf(own), combining(op))
	})
}

// InclusiveScanNB is collective: it begins an [InclusiveScanSlice], whose result is s;
// see [AllReduceNB].
func InclusiveScanNB[T any](g Group, s []T, op func(a, b T) T) (Future[[]T], error) {
	m, err := collCheck[T](g, "InclusiveScanNB", 0)
	return futureOfSlice(g, err, s, func() (collective.Handle, error) { return m.coll.ScanNB(bytesOf(s), prepending(op)) })
}

// ExclusiveScanNB is collective: it begins an [ExclusiveScanSlice], whose result is s;
// see [AllReduceNB].
func ExclusiveScanNB[T any](g Group, s []T, op func(a, b T) T) (Future[[]T], error) {
	m, err := collCheck[T](g, "ExclusiveScanNB", 0)
	before := make([]T, len(s))
	return futureWith(g, err, func([][]byte) []T {
		bulk.CopySlice(s, before)
		return s
	}, func() (collective.Handle, error) {
		return m.coll.ExclusiveScanNB(bytesOf(s), bytesOf(before), prepending(op))
	})
}

// checkAllToAll refuses slices that have not one block for each rank.
func (m *members) checkAllToAll(g Group, name string, out, in int) error {
	if out%g.Size() == 0 && in == out {
		return nil
	}
	return m.coll.Refuse(errs.BadArg("gas: %s: %d and %d elements: both have one block for each of the %d ranks", name, out, in, g.Size()))
}

// checkAllToAllV refuses a list of slices that has not one for each rank.
func (m *members) checkAllToAllV(g Group, name string, out int) error {
	if out == g.Size() {
		return nil
	}
	return m.coll.Refuse(errs.BadArg("gas: %s: %d slices: there is one for each of the %d ranks", name, out, g.Size()))
}

// blocksOf are slices as bytes.
func blocksOf[T any](out [][]T) [][]byte {
	blocks := make([][]byte, len(out))
	for r, s := range out {
		blocks[r] = bytesOf(s)
	}
	return blocks
}
