package must

import "github.com/argon-go/argon/gas"

// NewMailbox is gas.NewMailbox, which all ranks call.
func NewMailbox[T any](n *gas.Node, name string, fn func(n *gas.Node, source int, items []T)) *gas.Mailbox[T] {
	got, err := gas.NewMailbox(n, name, fn)
	n.Must(err)
	return got
}

// Push is gas.Mailbox.Push.
func Push[T any](n *gas.Node, box *gas.Mailbox[T], rank int, item T) {
	n.Must(box.Push(rank, item))
}

// PushAll is gas.Mailbox.PushAll.
func PushAll[T any](n *gas.Node, box *gas.Mailbox[T], rank int, items []T) {
	n.Must(box.PushAll(rank, items))
}

// PollMailbox is gas.Mailbox.Poll.
func PollMailbox[T any](n *gas.Node, box *gas.Mailbox[T]) {
	n.Must(box.Poll())
}

// SyncMailbox is gas.Mailbox.Sync, which all ranks call.
func SyncMailbox[T any](n *gas.Node, box *gas.Mailbox[T]) {
	n.Must(box.Sync())
}

// NewBatch is gas.NewBatch, which all ranks call.
func NewBatch[Q, A any](n *gas.Node, name string, fn func(n *gas.Node, source int, q Q) A) *gas.Batch[Q, A] {
	got, err := gas.NewBatch(n, name, fn)
	n.Must(err)
	return got
}

// Ask is gas.Batch.Ask.
func Ask[Q, A any](n *gas.Node, b *gas.Batch[Q, A], rank int, q Q) {
	n.Must(b.Ask(rank, q))
}

// Answers is gas.Batch.Answers, which all ranks call.
func Answers[Q, A any](n *gas.Node, b *gas.Batch[Q, A]) []A {
	got, err := b.Answers()
	n.Must(err)
	return got
}

// Flush is the method of that name of a mailbox, or of a container of package gas/dist.
func Flush(n *gas.Node, x interface{ Flush() error }) {
	n.Must(x.Flush())
}

// Done is the method of that name, which all ranks call, of a mailbox or a batch, or of a
// container of package gas/dist.
func Done(n *gas.Node, x interface{ Done() error }) {
	n.Must(x.Done())
}

// AddAll is gas.AddAll, which all ranks call.
func AddAll[T gas.Scalar](n *gas.Node, a gas.Array[T], idx []int, values []T) {
	n.Must(gas.AddAll(n, a, idx, values))
}

// UpdateAll is gas.Array.UpdateAll, which all ranks call.
func UpdateAll[T any](n *gas.Node, a gas.Array[T], idx []int, values []T, fn func(old, v T) T) {
	n.Must(a.UpdateAll(n, idx, values, fn))
}

// GatherAt is gas.Array.Gather, which all ranks call.
func GatherAt[T any](n *gas.Node, a gas.Array[T], idx []int, dst []T) {
	n.Must(a.Gather(n, idx, dst))
}

// ScatterAt is gas.Array.Scatter, which all ranks call.
func ScatterAt[T any](n *gas.Node, a gas.Array[T], idx []int, src []T) {
	n.Must(a.Scatter(n, idx, src))
}
