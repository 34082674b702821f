package mustdist

import (
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// NewRows is dist.NewRows, which all ranks call.
func NewRows[T any](n *gas.Node, name string, rows [][]T) *dist.Rows[T] {
	got, err := dist.NewRows(n, name, rows)
	n.Must(err)
	return got
}

// NewRowsOf is dist.NewRowsOf, which all ranks call.
func NewRowsOf[T any](n *gas.Node, name string, count int, rows []int, values []T) *dist.Rows[T] {
	got, err := dist.NewRowsOf(n, name, count, rows, values)
	n.Must(err)
	return got
}

// RowLen is dist.Rows.Len.
func RowLen[T any](n *gas.Node, r *dist.Rows[T], i int) int {
	got, err := r.Len(i)
	n.Must(err)
	return got
}

// Row is dist.Rows.Row.
func Row[T any](n *gas.Node, r *dist.Rows[T], i int, dst []T) []T {
	got, err := r.Row(i, dst)
	n.Must(err)
	return got
}

// RowsAt is dist.Rows.RowsAt.
func RowsAt[T any](n *gas.Node, r *dist.Rows[T], idx []int) [][]T {
	got, err := r.RowsAt(idx)
	n.Must(err)
	return got
}

// Permute is dist.Rows.Permute, which all ranks call.
func Permute[T any](n *gas.Node, r *dist.Rows[T], to []int) *dist.Rows[T] {
	got, err := r.Permute(to)
	n.Must(err)
	return got
}

// Transpose is dist.Transpose, which all ranks call.
func Transpose[C gas.Integer](n *gas.Node, r *dist.Rows[C], count int) *dist.Rows[C] {
	got, err := dist.Transpose(r, count)
	n.Must(err)
	return got
}

// NewSparse is dist.NewSparse, which all ranks call.
func NewSparse[T gas.Scalar](n *gas.Node, rows *dist.Rows[dist.Nonzero[T]], cols int) *dist.Sparse[T] {
	got, err := dist.NewSparse(rows, cols)
	n.Must(err)
	return got
}

// Times is dist.Sparse.Times, which all ranks call.
func Times[T gas.Scalar](n *gas.Node, s *dist.Sparse[T], x gas.Array[T]) []T {
	got, err := s.Times(x)
	n.Must(err)
	return got
}

// TransposeSparse is dist.Sparse.Transpose, which all ranks call.
func TransposeSparse[T gas.Scalar](n *gas.Node, s *dist.Sparse[T]) *dist.Sparse[T] {
	got, err := s.Transpose()
	n.Must(err)
	return got
}
