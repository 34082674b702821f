package must

import "github.com/argon-go/argon/gas"

// New is gas.New, which all ranks call.
func New[T any](n *gas.Node) gas.Ptr[T] {
	got, err := gas.New[T](n)
	n.Must(err)
	return got
}

// NewSlice is gas.NewSlice, which all ranks call.
func NewSlice[T any](n *gas.Node, count int) gas.Ptr[T] {
	got, err := gas.NewSlice[T](n, count)
	n.Must(err)
	return got
}

// NewArray is gas.NewArray, which all ranks call.
func NewArray[T any](n *gas.Node, length, block int) gas.Array[T] {
	got, err := gas.NewArray[T](n, length, block)
	n.Must(err)
	return got
}

// NewLock is gas.NewLock, which all ranks call.
func NewLock(n *gas.Node) gas.Lock {
	got, err := gas.NewLock(n)
	n.Must(err)
	return got
}

// Delete is gas.Delete, which all ranks call.
func Delete[T any](n *gas.Node, p gas.Ptr[T]) {
	n.Must(gas.Delete(n, p))
}

// DeleteArray is gas.Array.Delete, which all ranks call.
func DeleteArray[T any](n *gas.Node, a gas.Array[T]) {
	n.Must(a.Delete(n))
}

// Alloc is gas.Alloc.
func Alloc[T any](n *gas.Node, count int) gas.Ptr[T] {
	got, err := gas.Alloc[T](n, count)
	n.Must(err)
	return got
}

// Free is gas.Free.
func Free[T any](n *gas.Node, p gas.Ptr[T]) {
	n.Must(gas.Free(n, p))
}

// MakeSlice is gas.MakeSlice.
func MakeSlice[T any](n *gas.Node, count int) ([]T, gas.Ptr[T]) {
	got, also, err := gas.MakeSlice[T](n, count)
	n.Must(err)
	return got, also
}

// FreeSlice is gas.FreeSlice.
func FreeSlice[T any](n *gas.Node, p gas.Ptr[T]) {
	n.Must(gas.FreeSlice(n, p))
}

// Register is gas.Register.
func Register[T any](n *gas.Node, s []T) gas.Ptr[T] {
	got, err := gas.Register(n, s)
	n.Must(err)
	return got
}

// RegisterFor is gas.RegisterFor.
func RegisterFor[T any](n *gas.Node, s []T, rights gas.Rights, peer int) gas.Ptr[T] {
	got, err := gas.RegisterFor(n, s, rights, peer)
	n.Must(err)
	return got
}

// Deregister is gas.Deregister.
func Deregister[T any](n *gas.Node, p gas.Ptr[T]) {
	n.Must(gas.Deregister(n, p))
}

// Lock is gas.Lock.Lock.
func Lock(n *gas.Node, l gas.Lock) {
	n.Must(l.Lock(n))
}

// Unlock is gas.Lock.Unlock.
func Unlock(n *gas.Node, l gas.Lock) {
	n.Must(l.Unlock(n))
}

// RLock is gas.Lock.RLock.
func RLock(n *gas.Node, l gas.Lock) {
	n.Must(l.RLock(n))
}

// RUnlock is gas.Lock.RUnlock.
func RUnlock(n *gas.Node, l gas.Lock) {
	n.Must(l.RUnlock(n))
}

// TryLock is gas.Lock.TryLock.
func TryLock(n *gas.Node, l gas.Lock) bool {
	got, err := l.TryLock(n)
	n.Must(err)
	return got
}

// TryRLock is gas.Lock.TryRLock.
func TryRLock(n *gas.Node, l gas.Lock) bool {
	got, err := l.TryRLock(n)
	n.Must(err)
	return got
}
