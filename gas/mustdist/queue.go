package mustdist

import (
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// NewQueue is dist.NewQueue, which all ranks call.
func NewQueue[T any](n *gas.Node, name string, capacity int) *dist.Queue[T] {
	got, err := dist.NewQueue[T](n, name, capacity)
	n.Must(err)
	return got
}

// Push is dist.Queue.Push.
func Push[T any](n *gas.Node, q *dist.Queue[T], item T) {
	n.Must(q.Push(item))
}

// PushAll is dist.Queue.PushAll.
func PushAll[T any](n *gas.Node, q *dist.Queue[T], items []T) {
	n.Must(q.PushAll(items))
}

// Pop is dist.Queue.Pop, which all ranks call.
func Pop[T any](n *gas.Node, q *dist.Queue[T]) (item T, ok bool) {
	got, also, err := q.Pop()
	n.Must(err)
	return got, also
}

// Run is dist.Queue.Run, which all ranks call.
func Run[T any](n *gas.Node, q *dist.Queue[T], fn func(n *gas.Node, item T) error) {
	n.Must(q.Run(fn))
}
