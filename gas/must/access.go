package must

import "github.com/argon-go/argon/gas"

// Get is gas.Ptr.Get.
func Get[T any](n *gas.Node, p gas.Ptr[T]) T {
	got, err := p.Get(n)
	n.Must(err)
	return got
}

// Put is gas.Ptr.Put.
func Put[T any](n *gas.Node, p gas.Ptr[T], v T) {
	n.Must(p.Put(n, v))
}

// GetSlice is gas.Ptr.GetSlice.
func GetSlice[T any](n *gas.Node, p gas.Ptr[T], dst []T) {
	n.Must(p.GetSlice(n, dst))
}

// PutSlice is gas.Ptr.PutSlice.
func PutSlice[T any](n *gas.Node, p gas.Ptr[T], src []T) {
	n.Must(p.PutSlice(n, src))
}

// GetNB is gas.Ptr.GetNB.
func GetNB[T any](n *gas.Node, p gas.Ptr[T], dst *T) gas.Handle {
	got, err := p.GetNB(n, dst)
	n.Must(err)
	return got
}

// PutNB is gas.Ptr.PutNB.
func PutNB[T any](n *gas.Node, p gas.Ptr[T], v T) gas.Handle {
	got, err := p.PutNB(n, v)
	n.Must(err)
	return got
}

// GetSliceNB is gas.Ptr.GetSliceNB.
func GetSliceNB[T any](n *gas.Node, p gas.Ptr[T], dst []T) gas.Handle {
	got, err := p.GetSliceNB(n, dst)
	n.Must(err)
	return got
}

// PutSliceNB is gas.Ptr.PutSliceNB.
func PutSliceNB[T any](n *gas.Node, p gas.Ptr[T], src []T) gas.Handle {
	got, err := p.PutSliceNB(n, src)
	n.Must(err)
	return got
}

// GetNBI is gas.Ptr.GetNBI.
func GetNBI[T any](n *gas.Node, p gas.Ptr[T], dst *T) {
	n.Must(p.GetNBI(n, dst))
}

// PutNBI is gas.Ptr.PutNBI.
func PutNBI[T any](n *gas.Node, p gas.Ptr[T], v T) {
	n.Must(p.PutNBI(n, v))
}

// GetSliceNBI is gas.Ptr.GetSliceNBI.
func GetSliceNBI[T any](n *gas.Node, p gas.Ptr[T], dst []T) {
	n.Must(p.GetSliceNBI(n, dst))
}

// PutSliceNBI is gas.Ptr.PutSliceNBI.
func PutSliceNBI[T any](n *gas.Node, p gas.Ptr[T], src []T) {
	n.Must(p.PutSliceNBI(n, src))
}

// GetStrided is gas.Ptr.GetStrided.
func GetStrided[T any](n *gas.Node, p gas.Ptr[T], dst []T, r gas.Rows) {
	n.Must(p.GetStrided(n, dst, r))
}

// PutStrided is gas.Ptr.PutStrided.
func PutStrided[T any](n *gas.Node, p gas.Ptr[T], src []T, r gas.Rows) {
	n.Must(p.PutStrided(n, src, r))
}

// GetStridedNB is gas.Ptr.GetStridedNB.
func GetStridedNB[T any](n *gas.Node, p gas.Ptr[T], dst []T, r gas.Rows) gas.Handle {
	got, err := p.GetStridedNB(n, dst, r)
	n.Must(err)
	return got
}

// PutStridedNB is gas.Ptr.PutStridedNB.
func PutStridedNB[T any](n *gas.Node, p gas.Ptr[T], src []T, r gas.Rows) gas.Handle {
	got, err := p.PutStridedNB(n, src, r)
	n.Must(err)
	return got
}

// GetIndexed is gas.Ptr.GetIndexed.
func GetIndexed[T any](n *gas.Node, p gas.Ptr[T], idx []int, dst []T) {
	n.Must(p.GetIndexed(n, idx, dst))
}

// PutIndexed is gas.Ptr.PutIndexed.
func PutIndexed[T any](n *gas.Node, p gas.Ptr[T], idx []int, src []T) {
	n.Must(p.PutIndexed(n, idx, src))
}

// GetIndexedNB is gas.Ptr.GetIndexedNB.
func GetIndexedNB[T any](n *gas.Node, p gas.Ptr[T], idx []int, dst []T) gas.Handle {
	got, err := p.GetIndexedNB(n, idx, dst)
	n.Must(err)
	return got
}

// PutIndexedNB is gas.Ptr.PutIndexedNB.
func PutIndexedNB[T any](n *gas.Node, p gas.Ptr[T], idx []int, src []T) gas.Handle {
	got, err := p.PutIndexedNB(n, idx, src)
	n.Must(err)
	return got
}

// Sync is gas.Node.Sync.
func Sync(n *gas.Node, h gas.Handle) {
	n.Must(n.Sync(h))
}

// TrySync is gas.Node.TrySync.
func TrySync(n *gas.Node, h gas.Handle) bool {
	got, err := n.TrySync(h)
	n.Must(err)
	return got
}

// SyncAll is gas.Node.SyncAll.
func SyncAll(n *gas.Node, hs []gas.Handle) {
	n.Must(n.SyncAll(hs))
}

// SyncImplicit is gas.Node.SyncImplicit.
func SyncImplicit(n *gas.Node) {
	n.Must(n.SyncImplicit())
}

// SyncImplicitRank is gas.Node.SyncImplicitRank.
func SyncImplicitRank(n *gas.Node, rank int) {
	n.Must(n.SyncImplicitRank(rank))
}

// GetAt is gas.Array.Get: element i.
func GetAt[T any](n *gas.Node, a gas.Array[T], i int) T {
	got, err := a.Get(n, i)
	n.Must(err)
	return got
}

// PutAt is gas.Array.Put: element i becomes v.
func PutAt[T any](n *gas.Node, a gas.Array[T], i int, v T) {
	n.Must(a.Put(n, i, v))
}

// GetAtIndexed is gas.Array.GetIndexed.
func GetAtIndexed[T any](n *gas.Node, a gas.Array[T], idx []int, dst []T) {
	n.Must(a.GetIndexed(n, idx, dst))
}

// PutAtIndexed is gas.Array.PutIndexed.
func PutAtIndexed[T any](n *gas.Node, a gas.Array[T], idx []int, src []T) {
	n.Must(a.PutIndexed(n, idx, src))
}

// GetRange is gas.Array.GetRange.
func GetRange[T any](n *gas.Node, a gas.Array[T], i int, dst []T) {
	n.Must(a.GetRange(n, i, dst))
}

// PutRange is gas.Array.PutRange.
func PutRange[T any](n *gas.Node, a gas.Array[T], i int, src []T) {
	n.Must(a.PutRange(n, i, src))
}
