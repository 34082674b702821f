package mustdist

import (
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// NewMap is dist.NewMap, which all ranks call.
func NewMap[K comparable, V any](n *gas.Node, name string) *dist.Map[K, V] {
	got, err := dist.NewMap[K, V](n, name)
	n.Must(err)
	return got
}

// Get is dist.Map.Get.
func Get[K comparable, V any](n *gas.Node, m *dist.Map[K, V], key K) (v V, found bool) {
	got, also, err := m.Get(key)
	n.Must(err)
	return got, also
}

// Put is dist.Map.Put.
func Put[K comparable, V any](n *gas.Node, m *dist.Map[K, V], key K, v V) {
	n.Must(m.Put(key, v))
}

// Delete is dist.Map.Delete.
func Delete[K comparable, V any](n *gas.Node, m *dist.Map[K, V], key K) (found bool) {
	got, err := m.Delete(key)
	n.Must(err)
	return got
}

// GetAll is dist.Map.GetAll.
func GetAll[K comparable, V any](n *gas.Node, m *dist.Map[K, V], keys []K) (values []V, found []bool) {
	got, also, err := m.GetAll(keys)
	n.Must(err)
	return got, also
}

// PutAll is dist.Map.PutAll.
func PutAll[K comparable, V any](n *gas.Node, m *dist.Map[K, V], keys []K, values []V) {
	n.Must(m.PutAll(keys, values))
}

// DeleteAll is dist.Map.DeleteAll.
func DeleteAll[K comparable, V any](n *gas.Node, m *dist.Map[K, V], keys []K) {
	n.Must(m.DeleteAll(keys))
}

// Total is dist.Map.Total, which all ranks call.
func Total[K comparable, V any](n *gas.Node, m *dist.Map[K, V]) int {
	got, err := m.Total()
	n.Must(err)
	return got
}

// NewUpdate is dist.NewUpdate, which all ranks call.
func NewUpdate[K comparable, V, A, R any](n *gas.Node, m *dist.Map[K, V], name string, fn func(e *dist.Entry[K, V], a A) R) *dist.Update[K, V, A, R] {
	got, err := dist.NewUpdate(m, name, fn)
	n.Must(err)
	return got
}

// Call is dist.Update.Call.
func Call[K comparable, V, A, R any](n *gas.Node, u *dist.Update[K, V, A, R], key K, a A) R {
	got, err := u.Call(key, a)
	n.Must(err)
	return got
}

// CallAll is dist.Update.All.
func CallAll[K comparable, V, A, R any](n *gas.Node, u *dist.Update[K, V, A, R], keys []K, args []A) []R {
	got, err := u.All(keys, args)
	n.Must(err)
	return got
}

// PushUpdate is dist.Update.Push.
func PushUpdate[K comparable, V, A, R any](n *gas.Node, u *dist.Update[K, V, A, R], key K, a A) {
	n.Must(u.Push(key, a))
}
