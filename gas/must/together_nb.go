package must

import "github.com/argon-go/argon/gas"

// BarrierNB is gas.BarrierNB, which all ranks call; Result waits for it.
func BarrierNB(n *gas.Node) gas.Future[struct{}] {
	got, err := gas.BarrierNB(n)
	n.Must(err)
	return got
}

// BroadcastNB is gas.BroadcastNB, which all ranks call; Result waits for it.
func BroadcastNB[T any](n *gas.Node, root int, x T) gas.Future[T] {
	got, err := gas.BroadcastNB(n, root, x)
	n.Must(err)
	return got
}

// BroadcastSliceNB is gas.BroadcastSliceNB, which all ranks call; Result waits for it.
func BroadcastSliceNB[T any](n *gas.Node, root int, s []T) gas.Future[[]T] {
	got, err := gas.BroadcastSliceNB(n, root, s)
	n.Must(err)
	return got
}

// ReduceNB is gas.ReduceNB, which all ranks call; Result waits for it.
func ReduceNB[T any](n *gas.Node, root int, x T, op func(a, b T) T) gas.Future[T] {
	got, err := gas.ReduceNB(n, root, x, op)
	n.Must(err)
	return got
}

// ReduceSliceNB is gas.ReduceSliceNB, which all ranks call; Result waits for it.
func ReduceSliceNB[T any](n *gas.Node, root int, s []T, op func(a, b T) T) gas.Future[[]T] {
	got, err := gas.ReduceSliceNB(n, root, s, op)
	n.Must(err)
	return got
}

// AllReduceNB is gas.AllReduceNB, which all ranks call; Result waits for it.
func AllReduceNB[T any](n *gas.Node, x T, op func(a, b T) T) gas.Future[T] {
	got, err := gas.AllReduceNB(n, x, op)
	n.Must(err)
	return got
}

// AllReduceSliceNB is gas.AllReduceSliceNB, which all ranks call; Result waits for it.
func AllReduceSliceNB[T any](n *gas.Node, s []T, op func(a, b T) T) gas.Future[[]T] {
	got, err := gas.AllReduceSliceNB(n, s, op)
	n.Must(err)
	return got
}

// GatherNB is gas.GatherNB, which all ranks call; Result waits for it.
func GatherNB[T any](n *gas.Node, root int, x T) gas.Future[[]T] {
	got, err := gas.GatherNB(n, root, x)
	n.Must(err)
	return got
}

// AllGatherNB is gas.AllGatherNB, which all ranks call; Result waits for it.
func AllGatherNB[T any](n *gas.Node, x T) gas.Future[[]T] {
	got, err := gas.AllGatherNB(n, x)
	n.Must(err)
	return got
}

// ExclusiveScanNB is gas.ExclusiveScanNB, which all ranks call; Result waits for it.
func ExclusiveScanNB[T any](n *gas.Node, x T, op func(a, b T) T) gas.Future[T] {
	got, err := gas.ExclusiveScanNB(n, x, op)
	n.Must(err)
	return got
}
