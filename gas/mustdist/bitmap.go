package mustdist

import (
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// NewBitmap is dist.NewBitmap, which all ranks call.
func NewBitmap(n *gas.Node, length int, name string) *dist.Bitmap {
	got, err := dist.NewBitmap(n, length, name)
	n.Must(err)
	return got
}

// Set is dist.Bitmap.Set.
func Set(n *gas.Node, b *dist.Bitmap, i int) (was bool) {
	got, err := b.Set(i)
	n.Must(err)
	return got
}

// SetNBI is dist.Bitmap.SetNBI.
func SetNBI(n *gas.Node, b *dist.Bitmap, i int) {
	n.Must(b.SetNBI(i))
}

// Clear is dist.Bitmap.Clear.
func Clear(n *gas.Node, b *dist.Bitmap, i int) (was bool) {
	got, err := b.Clear(i)
	n.Must(err)
	return got
}

// Test is dist.Bitmap.Test.
func Test(n *gas.Node, b *dist.Bitmap, i int) bool {
	got, err := b.Test(i)
	n.Must(err)
	return got
}

// SetAll is dist.Bitmap.SetAll.
func SetAll(n *gas.Node, b *dist.Bitmap, idx []int) {
	n.Must(b.SetAll(idx))
}

// ClearAll is dist.Bitmap.ClearAll.
func ClearAll(n *gas.Node, b *dist.Bitmap, idx []int) {
	n.Must(b.ClearAll(idx))
}

// TestAll is dist.Bitmap.TestAll.
func TestAll(n *gas.Node, b *dist.Bitmap, idx []int) []bool {
	got, err := b.TestAll(idx)
	n.Must(err)
	return got
}

// Fill is dist.Bitmap.Fill, which all ranks call.
func Fill(n *gas.Node, b *dist.Bitmap) {
	n.Must(b.Fill())
}

// Reset is dist.Bitmap.Reset, which all ranks call.
func Reset(n *gas.Node, b *dist.Bitmap) {
	n.Must(b.Reset())
}

// Count is dist.Bitmap.Count, which all ranks call.
func Count(n *gas.Node, b *dist.Bitmap) int {
	got, err := b.Count()
	n.Must(err)
	return got
}
