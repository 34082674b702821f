package must

import "github.com/argon-go/argon/gas"

// Barrier is gas.Node.Barrier, which all ranks call.
func Barrier(n *gas.Node) {
	n.Must(n.Barrier())
}

// BarrierNotify is gas.Node.BarrierNotify, which all ranks call.
func BarrierNotify(n *gas.Node) {
	n.Must(n.BarrierNotify())
}

// BarrierWait is gas.Node.BarrierWait, which all ranks call.
func BarrierWait(n *gas.Node) {
	n.Must(n.BarrierWait())
}

// BarrierTry is gas.Node.BarrierTry, which all ranks call.
func BarrierTry(n *gas.Node) bool {
	got, err := n.BarrierTry()
	n.Must(err)
	return got
}

// Wait is gas.Node.Wait.
func Wait(n *gas.Node, cond func() bool) {
	n.Must(n.Wait(cond))
}

// Broadcast is gas.Broadcast, which all ranks call.
func Broadcast[T any](n *gas.Node, root int, x T) T {
	got, err := gas.Broadcast(n, root, x)
	n.Must(err)
	return got
}

// BroadcastSlice is gas.BroadcastSlice, which all ranks call.
func BroadcastSlice[T any](n *gas.Node, root int, s []T) {
	n.Must(gas.BroadcastSlice(n, root, s))
}

// Reduce is gas.Reduce, which all ranks call.
func Reduce[T any](n *gas.Node, root int, x T, op func(a, b T) T) T {
	got, err := gas.Reduce(n, root, x, op)
	n.Must(err)
	return got
}

// ReduceSlice is gas.ReduceSlice, which all ranks call.
func ReduceSlice[T any](n *gas.Node, root int, s []T, op func(a, b T) T) {
	n.Must(gas.ReduceSlice(n, root, s, op))
}

// AllReduce is gas.AllReduce, which all ranks call.
func AllReduce[T any](n *gas.Node, x T, op func(a, b T) T) T {
	got, err := gas.AllReduce(n, x, op)
	n.Must(err)
	return got
}

// AllReduceSlice is gas.AllReduceSlice, which all ranks call.
func AllReduceSlice[T any](n *gas.Node, s []T, op func(a, b T) T) {
	n.Must(gas.AllReduceSlice(n, s, op))
}

// Gather is gas.Gather, which all ranks call.
func Gather[T any](n *gas.Node, root int, x T) []T {
	got, err := gas.Gather(n, root, x)
	n.Must(err)
	return got
}

// AllGather is gas.AllGather, which all ranks call.
func AllGather[T any](n *gas.Node, x T) []T {
	got, err := gas.AllGather(n, x)
	n.Must(err)
	return got
}

// ExclusiveScan is gas.ExclusiveScan, which all ranks call.
func ExclusiveScan[T any](n *gas.Node, x T, op func(a, b T) T) T {
	got, err := gas.ExclusiveScan(n, x, op)
	n.Must(err)
	return got
}

// Call is gas.Func.Call: it runs f on rank.
func Call[A, R any](n *gas.Node, f *gas.Func[A, R], rank int, a A) R {
	got, err := f.Call(n, rank, a)
	n.Must(err)
	return got
}

// Go is gas.Func.Go: it begins a Call, whose result Result waits for.
func Go[A, R any](n *gas.Node, f *gas.Func[A, R], rank int, a A) gas.Future[R] {
	got, err := f.Go(n, rank, a)
	n.Must(err)
	return got
}

// Result is gas.Future.Wait, for a call that n has made.
func Result[R any](n *gas.Node, f gas.Future[R]) R {
	got, err := f.Wait()
	n.Must(err)
	return got
}

// Send is gas.Func.Send.
func Send[A, R any](n *gas.Node, f *gas.Func[A, R], rank int, a A) {
	n.Must(f.Send(n, rank, a))
}
