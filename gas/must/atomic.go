package must

import "github.com/argon-go/argon/gas"

// Load is gas.Load.
func Load[T any](n *gas.Node, p gas.Ptr[T]) T {
	got, err := gas.Load(n, p)
	n.Must(err)
	return got
}

// Store is gas.Store.
func Store[T any](n *gas.Node, p gas.Ptr[T], v T) {
	n.Must(gas.Store(n, p, v))
}

// StoreNBI is gas.StoreNBI.
func StoreNBI[T any](n *gas.Node, p gas.Ptr[T], v T) {
	n.Must(gas.StoreNBI(n, p, v))
}

// Swap is gas.Swap.
func Swap[T any](n *gas.Node, p gas.Ptr[T], v T) (old T) {
	got, err := gas.Swap(n, p, v)
	n.Must(err)
	return got
}

// CompareAndSwap is gas.CompareAndSwap.
func CompareAndSwap[T any](n *gas.Node, p gas.Ptr[T], old, new T) (prev T, swapped bool) {
	got, also, err := gas.CompareAndSwap(n, p, old, new)
	n.Must(err)
	return got, also
}

// Add is gas.Add.
func Add[T gas.Number](n *gas.Node, p gas.Ptr[T], d T) {
	n.Must(gas.Add(n, p, d))
}

// FetchAdd is gas.FetchAdd.
func FetchAdd[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchAdd(n, p, x)
	n.Must(err)
	return got
}

// AddNBI is gas.AddNBI.
func AddNBI[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.AddNBI(n, p, x))
}

// FetchAnd is gas.FetchAnd.
func FetchAnd[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchAnd(n, p, x)
	n.Must(err)
	return got
}

// AndNBI is gas.AndNBI.
func AndNBI[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.AndNBI(n, p, x))
}

// FetchOr is gas.FetchOr.
func FetchOr[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchOr(n, p, x)
	n.Must(err)
	return got
}

// OrNBI is gas.OrNBI.
func OrNBI[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.OrNBI(n, p, x))
}

// FetchXor is gas.FetchXor.
func FetchXor[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchXor(n, p, x)
	n.Must(err)
	return got
}

// XorNBI is gas.XorNBI.
func XorNBI[T gas.Integer](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.XorNBI(n, p, x))
}

// FetchMin is gas.FetchMin.
func FetchMin[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchMin(n, p, x)
	n.Must(err)
	return got
}

// MinNBI is gas.MinNBI.
func MinNBI[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.MinNBI(n, p, x))
}

// FetchMax is gas.FetchMax.
func FetchMax[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) (old T) {
	got, err := gas.FetchMax(n, p, x)
	n.Must(err)
	return got
}

// MaxNBI is gas.MaxNBI.
func MaxNBI[T gas.Number](n *gas.Node, p gas.Ptr[T], x T) {
	n.Must(gas.MaxNBI(n, p, x))
}

// FetchCompareAdd is gas.FetchCompareAdd.
func FetchCompareAdd[T gas.Integer](n *gas.Node, p gas.Ptr[T], limit, d T) (after T, added bool) {
	got, also, err := gas.FetchCompareAdd(n, p, limit, d)
	n.Must(err)
	return got, also
}

// PutSignal is gas.Ptr.PutSignal.
func PutSignal[T any](n *gas.Node, p gas.Ptr[T], src []T, flag gas.Ptr[uint64], d uint64) {
	n.Must(p.PutSignal(n, src, flag, d))
}

// PutSignalSet is gas.Ptr.PutSignalSet.
func PutSignalSet[T any](n *gas.Node, p gas.Ptr[T], src []T, flag gas.Ptr[uint64], v uint64) {
	n.Must(p.PutSignalSet(n, src, flag, v))
}

// PutSignalNB is gas.Ptr.PutSignalNB.
func PutSignalNB[T any](n *gas.Node, p gas.Ptr[T], src []T, flag gas.Ptr[uint64], d uint64) gas.Handle {
	got, err := p.PutSignalNB(n, src, flag, d)
	n.Must(err)
	return got
}

// PutSignalSetNB is gas.Ptr.PutSignalSetNB.
func PutSignalSetNB[T any](n *gas.Node, p gas.Ptr[T], src []T, flag gas.Ptr[uint64], d uint64) gas.Handle {
	got, err := p.PutSignalSetNB(n, src, flag, d)
	n.Must(err)
	return got
}

// WaitAtLeast is gas.WaitAtLeast.
func WaitAtLeast(n *gas.Node, flag gas.Ptr[uint64], x uint64) uint64 {
	got, err := gas.WaitAtLeast(n, flag, x)
	n.Must(err)
	return got
}

// WaitUntil is gas.WaitUntil.
func WaitUntil(n *gas.Node, flag gas.Ptr[uint64], c gas.Cmp, x uint64) uint64 {
	got, err := gas.WaitUntil(n, flag, c, x)
	n.Must(err)
	return got
}

// WaitUntilAll is gas.WaitUntilAll.
func WaitUntilAll(n *gas.Node, flags []gas.Ptr[uint64], c gas.Cmp, x uint64) {
	n.Must(gas.WaitUntilAll(n, flags, c, x))
}

// WaitUntilAny is gas.WaitUntilAny.
func WaitUntilAny(n *gas.Node, flags []gas.Ptr[uint64], after int, c gas.Cmp, x uint64) int {
	got, err := gas.WaitUntilAny(n, flags, after, c, x)
	n.Must(err)
	return got
}

// WaitUntilSome is gas.WaitUntilSome.
func WaitUntilSome(n *gas.Node, found []int, flags []gas.Ptr[uint64], c gas.Cmp, x uint64) []int {
	got, err := gas.WaitUntilSome(n, found, flags, c, x)
	n.Must(err)
	return got
}

// TestUntilSome is gas.TestUntilSome.
func TestUntilSome(n *gas.Node, found []int, flags []gas.Ptr[uint64], c gas.Cmp, x uint64) []int {
	got, err := gas.TestUntilSome(n, found, flags, c, x)
	n.Must(err)
	return got
}
