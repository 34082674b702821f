package gas

import (
	"github.com/argon-go/argon/internal/errs"

	"github.com/argon-go/argon/internal/bulk"
)

// Scatter is collective: it returns vs[r] of root on rank r, for all r. vs has Size
// elements on root, and is not looked at elsewhere; see [Broadcast].
func Scatter[T any](g Group, root int, vs []T) (T, error) {
	own := make([]T, 1)
	err := ScatterSlice(g, root, vs, own)
	return own[0], err
}

// ScatterSlice is collective: it copies block r of root's all into the own of rank r,
// for all r. own has the same length everywhere; all has Size times that on root, and is
// not looked at elsewhere. They overlap at most in that own is root's block.
func ScatterSlice[T any](g Group, root int, all, own []T) error {
	m, err := collCheck[T](g, "ScatterSlice", root)
	if err == nil && g.Rank() == root {
		err = m.checkBlocks(g, "ScatterSlice", len(all), len(own))
	}
	if err != nil {
		return err
	}
	return m.coll.Scatter(root, bytesOf(all), bytesOf(own))
}

// GatherSlice is collective: it copies the own of all ranks into root's all, one behind
// the other by rank. Lengths, and what may overlap, are as for [ScatterSlice].
func GatherSlice[T any](g Group, root int, own, all []T) error {
	m, err := collCheck[T](g, "GatherSlice", root)
	if err == nil && g.Rank() == root {
		err = m.checkBlocks(g, "GatherSlice", len(all), len(own))
	}
	if err != nil {
		return err
	}
	return m.coll.Gather(root, bytesOf(own), bytesOf(all))
}

// GatherV is collective: it returns the own of all ranks, by rank, on root, and nil
// elsewhere. They may have different lengths, 0 too.
func GatherV[T any](g Group, root int, own []T) ([][]T, error) {
	m, err := collCheck[T](g, "GatherV", root)
	if err != nil {
		return nil, err
	}
	all, err := m.coll.GatherV(root, sizeOf[T](), bytesOf(own))
	return views[T](all), err
}

// AllGatherSlice is collective: it copies the own of all ranks into every rank's all, one
// behind the other by rank. own has the same length everywhere, all Size times that. own
// may be this rank's block of all.
func AllGatherSlice[T any](g Group, own, all []T) error {
	m, err := collCheck[T](g, "AllGatherSlice", 0)
	if err == nil {
		err = m.checkBlocks(g, "AllGatherSlice", len(all), len(own))
	}
	if err != nil {
		return err
	}
	return m.coll.AllGather(bytesOf(own), bytesOf(all))
}

// AllGatherV is collective: it is [GatherV] with the result on all ranks.
func AllGatherV[T any](g Group, own []T) ([][]T, error) {
	m, err := collCheck[T](g, "AllGatherV", 0)
	if err != nil {
		return nil, err
	}
	all, err := m.coll.AllGatherV(sizeOf[T](), bytesOf(own))
	return views[T](all), err
}

// AllToAll is collective: it copies block r of out into this rank's block of rank r's in,
// for all r. Both have Size blocks of one length, the same everywhere, and do not overlap;
// out stays as it is.
func AllToAll[T any](g Group, out, in []T) error {
	m, err := collCheck[T](g, "AllToAll", 0)
	if err == nil {
		err = m.checkAllToAll(g, "AllToAll", len(out), len(in))
	}
	if err != nil {
		return err
	}
	return m.coll.Exchange(bytesOf(out), bytesOf(in))
}

// AllToAllV is collective: it sends out[r] to rank r, for all r, and returns what the
// ranks have sent to this one, by rank. out has Size slices, of any lengths, 0 too.
func AllToAllV[T any](g Group, out [][]T) ([][]T, error) {
	m, err := collCheck[T](g, "AllToAllV", 0)
	if err == nil {
		err = m.checkAllToAllV(g, "AllToAllV", len(out))
	}
	if err != nil {
		return nil, err
	}
	all, err := m.coll.ExchangeV(sizeOf[T](), blocksOf(out))
	return views[T](all), err
}

// ReduceScatter is collective: it combines the all of all ranks element by element, as
// [Reduce] to rank 0 does, and leaves block r of that in the own of rank r. all has Size
// blocks as long as own, the same length everywhere, and is garbage afterwards.
func ReduceScatter[T any](g Group, all, own []T, op func(a, b T) T) error {
	m, err := collCheck[T](g, "ReduceScatter", 0)
	if err == nil {
		err = m.checkBlocks(g, "ReduceScatter", len(all), len(own))
	}
	if err != nil {
		return err
	}
	return m.coll.ReduceScatter(bytesOf(all), bytesOf(own), combining(op))
}

// InclusiveScan is collective: it returns the combination with op of the v of all ranks up
// to this one, in order of their ranks; see [ExclusiveScan].
func InclusiveScan[T any](g Group, v T, op func(a, b T) T) (T, error) {
	s := []T{v}
	err := InclusiveScanSlice(g, s, op)
	return s[0], err
}

// InclusiveScanSlice is collective: it combines the s of all ranks up to this one element
// by element into s, in order of their ranks; see [ExclusiveScan]. The length is the same
// on all ranks.
func InclusiveScanSlice[T any](g Group, s []T, op func(a, b T) T) error {
	m, err := collCheck[T](g, "InclusiveScanSlice", 0)
	if err != nil {
		return err
	}
	return m.coll.Scan(bytesOf(s), prepending(op))
}

// ExclusiveScanSlice is collective: it combines the s of all ranks below this one element by
// element into s, in order of their ranks, and has s zero on rank 0; see [ExclusiveScan].
// The length is the same on all ranks.
func ExclusiveScanSlice[T any](g Group, s []T, op func(a, b T) T) error {
	m, err := collCheck[T](g, "ExclusiveScanSlice", 0)
	if err != nil {
		return err
	}
	before := make([]T, len(s))
	if err := m.coll.ExclusiveScan(bytesOf(s), bytesOf(before), prepending(op)); err != nil {
		return err
	}
	bulk.CopySlice(s, before)
	return nil
}

// prepending is op on bytes: acc[i] = op(in[i], acc[i]), for scans.
func prepending[T any](op func(a, b T) T) func(acc, in []byte) {
	return func(acc, in []byte) {
		a, b := view[T](acc), view[T](in)
		for i := range a {
			a[i] = op(b[i], a[i])
		}
	}
}

// checkBlocks refuses a call in which there is not one block of n elements for each rank.
func (m *members) checkBlocks(g Group, name string, all, n int) error {
	if all%g.Size() == 0 && all/g.Size() == n {
		return nil
	}
	return m.coll.Refuse(errs.BadArg("gas: %s: a slice of %d elements for %d blocks of %d elements, one for each rank", name, all, g.Size(), n))
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
