package gas

import (
	"reflect"

	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/bulk"
)

// A collective function makes a call of package collective, or begins it, on the bytes of its arguments.

// called is the group whose call is made, and the call as it is, for function name.
func called[T any](g Group, name string, call *collective.Call) (*members, error) {
	m := g.members()
	if err := CheckType[T](); err != nil {
		return nil, m.coll.Refuse(err)
	}
	call.Name, call.Element = name, sizeOf[T]()
	call.Type |= elementType[T]()
	return m, nil
}

// elementType is what elements of type T are for collective.Call: types of the same values are one.
func elementType[T any]() uint8 {
	switch k := reflect.TypeFor[T]().Kind(); k {
	case reflect.Int:
		return uint8(reflect.Int64)
	case reflect.Uint, reflect.Uintptr:
		return uint8(reflect.Uint64)
	default:
		return uint8(k)
	}
}

// with is call, with Config.Debug told apart from those with another one of the operations that this package has.
func with[T any](g Group, call *collective.Call, op func(a, b T) T) *collective.Call {
	if op != nil && g.Node().debug {
		call.Operation(operationOf(op))
	}
	return call
}

// makeCall makes the call of function name.
func makeCall[T any](g Group, name string, call *collective.Call, combine collective.Combine) error {
	m, err := called[T](g, name, call)
	if err != nil {
		return err
	}
	return m.coll.Do(call, combine)
}

// makeBlocks is makeCall for a call that returns blocks.
func makeBlocks[T any](g Group, name string, call *collective.Call) ([][]T, error) {
	m, err := called[T](g, name, call)
	if err != nil {
		return nil, err
	}
	all, err := m.coll.DoBlocks(call)
	return views[T](all), err
}

// collected is a collective call that a Future is of.
type collected struct {
	h      collective.Handle
	result any // func(blocks [][]byte) R for a Future of R; nil for the zero R
}

// beginCall begins the call of function name, whose result is that of the function when it is done.
func beginCall[T, R any](g Group, name string, call *collective.Call, combine collective.Combine, result func(blocks [][]byte) R) (Future[R], error) {
	m, err := called[T](g, name, call)
	if err != nil {
		return Future[R]{}, err
	}
	n, s, i := claimCollective(g)
	s.coll.result = result
	h, err := m.coll.Begin(call, combine)
	return futureOf[R](n, s, i, h, err)
}

// beginSlice is beginCall for a call that leaves its result in r.
func beginSlice[T any](g Group, name string, call *collective.Call, combine collective.Combine, r []T) (Future[[]T], error) {
	return beginCall[T](g, name, call, combine, func([][]byte) []T { return r })
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
	use := s.use()
	h.Notify(func(error) {
		n.calls.mu.Lock()
		if s.use() == use {
			n.answered(s)
		}
		n.calls.mu.Unlock()
	})
	return Future[R]{n: n, s: s, i: i, use: use}, nil
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

// BroadcastSlice is collective: it copies root's s into every rank's s. Root and
// length are the same on all ranks; see [Broadcast].
func BroadcastSlice[T any](g Group, root int, s []T) error {
	return makeCall[T](g, "BroadcastSlice", collective.Broadcast(root, bytesOf(s)), nil)
}

// BroadcastNB is collective: it begins a [BroadcastSlice], whose result is s; see
// [AllReduceNB].
func BroadcastNB[T any](g Group, root int, s []T) (Future[[]T], error) {
	return beginSlice(g, "BroadcastNB", collective.Broadcast(root, bytesOf(s)), nil, s)
}

// ReduceSlice is collective: it combines the s of all ranks element by element into
// root's s, as [Reduce] does; the other ranks' s is garbage afterwards. Root and
// length are the same on all ranks.
func ReduceSlice[T any](g Group, root int, s []T, op func(a, b T) T) error {
	return makeCall[T](g, "ReduceSlice", with(g, collective.Reduce(root, bytesOf(s)).InElements(sizeOf[T]()), op), combining(op))
}

// ReduceNB is collective: it begins a [ReduceSlice], whose result is s on root and nil
// elsewhere; see [AllReduceNB].
func ReduceNB[T any](g Group, root int, s []T, op func(a, b T) T) (Future[[]T], error) {
	return beginSlice(g, "ReduceNB", with(g, collective.Reduce(root, bytesOf(s)).InElements(sizeOf[T]()), op), combining(op), atRoot(g, root, s))
}

// AllReduceSlice is collective: it combines the s of all ranks element by element,
// as [Reduce] does, into every rank's s. The length is the same on all ranks. The operations of this package, given as such ([Sum], not a
// function around it, nor one of a type parameter), are combined in a loop that calls nothing, in a quarter of the time.
func AllReduceSlice[T any](g Group, s []T, op func(a, b T) T) error {
	return makeCall[T](g, "AllReduceSlice", with(g, collective.AllReduce(bytesOf(s)).InElements(sizeOf[T]()), op), combining(op))
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
	return beginSlice(g, "AllReduceNB", with(g, collective.AllReduce(bytesOf(s)).InElements(sizeOf[T]()), op), combining(op), s)
}

// ReduceScatter is collective: it combines the all of all ranks element by element, as
// [Reduce] to rank 0 does, and leaves block r of that in the own of rank r. all has Size
// blocks as long as own, the same length everywhere, and is garbage afterwards.
func ReduceScatter[T any](g Group, all, own []T, op func(a, b T) T) error {
	return makeCall[T](g, "ReduceScatter", with(g, collective.ReduceScatter(bytesOf(all), bytesOf(own)).InElements(sizeOf[T]()), op), combining(op))
}

// ReduceScatterNB is collective: it begins a [ReduceScatter], whose result is own; see
// [AllReduceNB].
func ReduceScatterNB[T any](g Group, all, own []T, op func(a, b T) T) (Future[[]T], error) {
	return beginSlice(g, "ReduceScatterNB", with(g, collective.ReduceScatter(bytesOf(all), bytesOf(own)).InElements(sizeOf[T]()), op), combining(op), own)
}

// GatherSlice is collective: it copies the own of all ranks into root's all, one behind
// the other by rank. Lengths, and what may overlap, are as for [ScatterSlice].
func GatherSlice[T any](g Group, root int, own, all []T) error {
	return makeCall[T](g, "GatherSlice", collective.Gather(root, bytesOf(own), bytesOf(all)), nil)
}

// GatherNB is collective: it begins a [GatherSlice], whose result is all on root and nil
// elsewhere; see [AllReduceNB].
func GatherNB[T any](g Group, root int, own, all []T) (Future[[]T], error) {
	return beginSlice(g, "GatherNB", collective.Gather(root, bytesOf(own), bytesOf(all)), nil, atRoot(g, root, all))
}

// AllGatherSlice is collective: it copies the own of all ranks into every rank's all, one
// behind the other by rank. own has the same length everywhere, all Size times that. own
// may be this rank's block of all.
func AllGatherSlice[T any](g Group, own, all []T) error {
	return makeCall[T](g, "AllGatherSlice", collective.AllGather(bytesOf(own), bytesOf(all)), nil)
}

// AllGatherNB is collective: it begins an [AllGatherSlice], whose result is all; see
// [AllReduceNB].
func AllGatherNB[T any](g Group, own, all []T) (Future[[]T], error) {
	return beginSlice(g, "AllGatherNB", collective.AllGather(bytesOf(own), bytesOf(all)), nil, all)
}

// ScatterSlice is collective: it copies block r of root's all into the own of rank r,
// for all r. own has the same length everywhere; all has Size times that on root, and is
// not looked at elsewhere. They overlap at most in that own is root's block.
func ScatterSlice[T any](g Group, root int, all, own []T) error {
	return makeCall[T](g, "ScatterSlice", collective.Scatter(root, bytesOf(all), bytesOf(own)), nil)
}

// ScatterNB is collective: it begins a [ScatterSlice], whose result is own; see
// [AllReduceNB].
func ScatterNB[T any](g Group, root int, all, own []T) (Future[[]T], error) {
	return beginSlice(g, "ScatterNB", collective.Scatter(root, bytesOf(all), bytesOf(own)), nil, own)
}

// AllToAll is collective: it copies block r of out into this rank's block of rank r's in,
// for all r. Both have Size blocks of one length, the same everywhere, and do not overlap;
// out stays as it is.
func AllToAll[T any](g Group, out, in []T) error {
	return makeCall[T](g, "AllToAll", collective.Exchange(bytesOf(out), bytesOf(in)), nil)
}

// AllToAllNB is collective: it begins an [AllToAll], whose result is in; see [AllReduceNB].
func AllToAllNB[T any](g Group, out, in []T) (Future[[]T], error) {
	return beginSlice(g, "AllToAllNB", collective.Exchange(bytesOf(out), bytesOf(in)), nil, in)
}

// InclusiveScanSlice is collective: it combines the s of all ranks up to this one element
// by element into s, in order of their ranks; see [ExclusiveScan]. The length is the same
// on all ranks.
func InclusiveScanSlice[T any](g Group, s []T, op func(a, b T) T) error {
	return makeCall[T](g, "InclusiveScanSlice", collective.Scan(bytesOf(s)).InElements(sizeOf[T]()), prepending(op))
}

// InclusiveScanNB is collective: it begins an [InclusiveScanSlice], whose result is s;
// see [AllReduceNB].
func InclusiveScanNB[T any](g Group, s []T, op func(a, b T) T) (Future[[]T], error) {
	return beginSlice(g, "InclusiveScanNB", collective.Scan(bytesOf(s)).InElements(sizeOf[T]()), prepending(op), s)
}

// ExclusiveScanSlice is collective: it combines the s of all ranks below this one element by
// element into s, in order of their ranks, and has s zero on rank 0; see [ExclusiveScan].
// The length is the same on all ranks.
func ExclusiveScanSlice[T any](g Group, s []T, op func(a, b T) T) error {
	before := make([]T, len(s))
	err := makeCall[T](g, "ExclusiveScanSlice", collective.ExclusiveScan(bytesOf(s), bytesOf(before)).InElements(sizeOf[T]()), prepending(op))
	if err == nil {
		bulk.CopySlice(s, before)
	}
	return err
}

// ExclusiveScanNB is collective: it begins an [ExclusiveScanSlice], whose result is s;
// see [AllReduceNB].
func ExclusiveScanNB[T any](g Group, s []T, op func(a, b T) T) (Future[[]T], error) {
	before := make([]T, len(s))
	return beginCall[T](g, "ExclusiveScanNB", collective.ExclusiveScan(bytesOf(s), bytesOf(before)).InElements(sizeOf[T]()), prepending(op), func([][]byte) []T {
		bulk.CopySlice(s, before)
		return s
	})
}

// GatherV is collective: it returns the own of all ranks, by rank, on root, and nil
// elsewhere. They may have different lengths, 0 too.
func GatherV[T any](g Group, root int, own []T) ([][]T, error) {
	return makeBlocks[T](g, "GatherV", collective.GatherV(root, sizeOf[T](), bytesOf(own)))
}

// GatherVNB is collective: it begins a [GatherV], see [AllReduceNB].
func GatherVNB[T any](g Group, root int, own []T) (Future[[][]T], error) {
	return beginCall[T](g, "GatherVNB", collective.GatherV(root, sizeOf[T](), bytesOf(own)), nil, views[T])
}

// AllGatherV is collective: it is [GatherV] with the result on all ranks.
func AllGatherV[T any](g Group, own []T) ([][]T, error) {
	return makeBlocks[T](g, "AllGatherV", collective.AllGatherV(sizeOf[T](), bytesOf(own)))
}

// AllGatherVNB is collective: it begins an [AllGatherV], see [AllReduceNB].
func AllGatherVNB[T any](g Group, own []T) (Future[[][]T], error) {
	return beginCall[T](g, "AllGatherVNB", collective.AllGatherV(sizeOf[T](), bytesOf(own)), nil, views[T])
}

// AllToAllV is collective: it sends out[r] to rank r, for all r, and returns what the
// ranks have sent to this one, by rank. out has Size slices, of any lengths, 0 too.
func AllToAllV[T any](g Group, out [][]T) ([][]T, error) {
	return makeBlocks[T](g, "AllToAllV", collective.ExchangeV(sizeOf[T](), blocksOf(out)))
}

// AllToAllVNB is collective: it begins an [AllToAllV], see [AllReduceNB]. out itself may be
// changed at once, unlike what its slices hold.
func AllToAllVNB[T any](g Group, out [][]T) (Future[[][]T], error) {
	return beginCall[T](g, "AllToAllVNB", collective.ExchangeV(sizeOf[T](), blocksOf(out)), nil, views[T])
}

// atRoot is s on root, and nil elsewhere.
func atRoot[T any](g Group, root int, s []T) []T {
	if g.Rank() != root {
		return nil
	}
	return s
}

// blocksOf are slices as bytes.
func blocksOf[T any](out [][]T) [][]byte {
	blocks := make([][]byte, len(out))
	for r, s := range out {
		blocks[r] = bytesOf(s)
	}
	return blocks
}

// views are blocks, each of which is aligned for T, as values.
func views[T any](blocks [][]byte) [][]T {
	if blocks == nil {
		return nil
	}
	all := make([][]T, len(blocks))
	for r, b := range blocks {
		all[r] = view[T](b)
	}
	return all
}
