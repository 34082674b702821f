package mustdist

import (
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// NewMatrix is dist.NewMatrix, which all ranks call.
func NewMatrix[T any](n *gas.Node, name string, rows, cols, tileRows, tileCols int) *dist.Matrix[T] {
	got, err := dist.NewMatrix[T](n, name, rows, cols, tileRows, tileCols)
	n.Must(err)
	return got
}

// GetRect is dist.Matrix.Get.
func GetRect[T any](n *gas.Node, m *dist.Matrix[T], r dist.Rect, dst []T, stride int) {
	n.Must(m.Get(r, dst, stride))
}

// PutRect is dist.Matrix.Put.
func PutRect[T any](n *gas.Node, m *dist.Matrix[T], r dist.Rect, src []T, stride int) {
	n.Must(m.Put(r, src, stride))
}
