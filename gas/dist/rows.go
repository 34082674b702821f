package dist

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Rows is a ragged array: rows of any lengths, also of none, one behind the other on the ranks of a
// group, of which each has a run of whole rows in its segment. It is what others call compressed sparse
// rows. T must hold no Go pointers.
//
// The number of rows and their lengths are fixed. Any goroutine of any rank gets rows; the rank
// that has an element may change it (Local), which others see as any store to a segment.
type Rows[T any] struct {
	ranks
	name  string
	first []int // the row that each rank begins with, and behind these how many rows there are
	parts []rowsPart[T]

	at     []uint64 // where each row of this rank begins in values, and the end of the last
	values []T
}

// rowsPart is where a rank has its at and values.
type rowsPart[T any] struct {
	At     gas.Ptr[uint64]
	Values gas.Ptr[T]
	Rows   uint64 // plus 1; 0 where there was no memory
}

// NewRows is collective: it makes rows on the ranks of g of those that each rank brings, which it copies: rank 0's are the
// first, and stay there, then come those of rank 1. Memory is the segments'
// (Config.SegmentSize).
func NewRows[T any](g gas.Group, name string, rows [][]T) (*Rows[T], error) {
	r, err := ranksOf(g, fmt.Sprintf("NewRows %q", name))
	if err != nil {
		return nil, err
	}
	at := make([]uint64, 1, len(rows)+1)
	for _, row := range rows {
		at = append(at, at[len(at)-1]+uint64(len(row)))
	}
	return layRows(r, name, at, slices.Concat(rows...))
}

// NewRowsOf is collective: it makes count rows of values on the ranks of g, in equal runs of rows: values[k] belongs to row rows[k].
// Ranks have lists of their own, of any length, in any order. In a row values are in order of the
// ranks that bring them, and of their lists.
func NewRowsOf[T any](g gas.Group, name string, count int, rows []int, values []T) (*Rows[T], error) {
	r, err := ranksOf(g, fmt.Sprintf("NewRowsOf %q", name))
	if err != nil {
		return nil, err
	}
	var failed error
	if len(rows) != len(values) {
		failed = errs.BadArg("dist: NewRowsOf: rows %q of %d numbers of rows and %d values", name, len(rows), len(values))
	}
	return gatherRows(r, "NewRowsOf", name, count, rows, failed, false, func(k int) []T { return values[k : k+1] })
}

// layRows is collective: it makes rows of values, which begin at at.
func layRows[T any](on ranks, name string, at []uint64, values []T) (*Rows[T], error) {
	if err := on.agree(fmt.Sprintf("NewRows %q", name), sayOf("rows", name, typeName[T]()), gas.CheckType[T]()); err != nil {
		return nil, err
	}
	r := &Rows[T]{ranks: on, name: name}
	part, failed := r.allocate(len(at), len(values))
	bulk.CopySlice(r.at, at)
	bulk.CopySlice(r.values, values)
	var err error
	if r.parts, err = gas.AllGather(r.g, part); err != nil {
		return nil, err
	}
	for rank, p := range r.parts {
		if p.Rows == 0 && failed == nil {
			failed = errs.Resource("dist: rows %q: rank %d has no memory for its part, which its own error names", name, r.job(rank))
		}
	}
	if failed != nil {
		return nil, errors.Join(failed, part.free(r.n))
	}
	r.first = make([]int, r.size+1)
	for i, p := range r.parts {
		r.first[i+1] = r.first[i] + int(p.Rows) - 1
	}
	return r, nil
}

// allocate gets memory for this rank's part.
func (r *Rows[T]) allocate(bounds, values int) (p rowsPart[T], err error) {
	if p.At, err = gas.Alloc[uint64](r.n, bounds); err != nil {
		return p, fmt.Errorf("dist: rows %q: %w", r.name, err)
	}
	if p.Values, err = gas.Alloc[T](r.n, max(1, values)); err != nil {
		return p, fmt.Errorf("dist: rows %q: %w", r.name, err)
	}
	var ok, also bool
	r.at, ok = p.At.LocalSlice(r.n, bounds)
	if r.values, also = p.Values.LocalSlice(r.n, values); !ok || !also {
		return p, errs.NotSupported("dist: rank %d cannot reach its own memory", r.n.Rank())
	}
	p.Rows = uint64(bounds)
	return p, nil
}

// free gives back the memory of this rank's part.
func (p rowsPart[T]) free(n *gas.Node) error {
	return errors.Join(gas.Free(n, p.At), gas.Free(n, p.Values))
}

// rowHead precedes Count values of row Row.
type rowHead struct{ Row, Count uint64 }

// gatherRows is collective: it makes count rows, in equal runs: the values that of gives for k go
// to row rows[k]. once: no row comes twice, so that count rows are all. failed is an earlier error of this rank.
func gatherRows[T any](on ranks, what, name string, count int, rows []int, failed error, once bool, of func(k int) []T) (*Rows[T], error) {
	// Each rank has the bounds of its rows in its segment.
	if most := on.n.Usage().LargestCollective / 8; count < 0 {
		failed = errs.BadArg("dist: %s: %d rows in %q: there are 0 or more", what, count, name)
	} else if uint64(count)/uint64(on.size) >= most && failed == nil {
		failed = errs.Resource("dist: %s: %d rows in %q: segments have room for %d on each rank (Config.SegmentSize)", what, count, name, most)
	}
	for k, row := range rows {
		if failed == nil && uint(row) >= uint(count) {
			failed = errs.BadArg("dist: %s: number %d of the list is row %d, and %q has %d", what, k, row, name, count)
		}
	}
	if err := on.agree(fmt.Sprintf("%s %q", what, name), sayOf(what, name, typeName[T]())+uint64(count), failed); err != nil {
		return nil, err
	}
	block := max(1, (count+on.size-1)/on.size)
	heads, values := make([][]rowHead, on.size), make([][]T, on.size)
	for k, row := range rows {
		piece := of(k)
		heads[row/block] = append(heads[row/block], rowHead{uint64(row), uint64(len(piece))})
		values[row/block] = append(values[row/block], piece...)
	}
	heads, err := gas.AllToAllV(on.g, heads)
	if err != nil {
		return nil, err
	}
	if values, err = gas.AllToAllV(on.g, values); err != nil {
		return nil, err
	}
	first := min(count, on.rank*block)
	own := min(count, first+block) - first
	at, came := make([]uint64, own+1), make([]bool, own)
	for _, h := range slices.Concat(heads...) {
		k := int(h.Row) - first
		at[k+1] += h.Count
		if once && came[k] && failed == nil {
			failed = errs.BadArg("dist: %s: two rows of %q become row %d", what, name, h.Row)
		}
		came[k] = true
	}
	if err := on.agree(fmt.Sprintf("%s %q", what, name), 0, failed); err != nil {
		return nil, err
	}
	for k := range own {
		at[k+1] += at[k]
	}
	next, all := slices.Clone(at), make([]T, at[own])
	for source, hs := range heads {
		rest := values[source]
		for _, h := range hs {
			k := int(h.Row) - first
			bulk.CopySlice(all[next[k]:], rest[:h.Count])
			next[k] += h.Count
			rest = rest[h.Count:]
		}
	}
	return layRows(on, name, at, all)
}

// Delete is collective: it gives the memory back. No rank may use the rows any more when any rank
// calls it.
func (r *Rows[T]) Delete() error {
	if r.parts == nil {
		return r.over()
	}
	if err := r.g.Barrier(); err != nil {
		return err
	}
	err := r.parts[r.rank].free(r.n)
	r.first, r.parts, r.at, r.values = nil, nil, nil, nil
	return err
}

func (r *Rows[T]) over() error {
	return errs.NotReady("dist: rows %q on rank %d are deleted (Rows.Delete)", r.name, r.n.Rank())
}

// Count is how many rows there are; 0 after Delete.
func (r *Rows[T]) Count() int {
	if r.parts == nil {
		return 0
	}
	return r.first[len(r.parts)]
}

// Owner is the rank that has row i, or -1 if i is not in 0..Count()-1.
func (r *Rows[T]) Owner(i int) int {
	if i < 0 || i >= r.Count() {
		return -1
	}
	return sort.SearchInts(r.first, i+1) - 1
}

// Range is the run of rows that rank has: from first to before end.
func (r *Rows[T]) Range(rank int) (first, end int) {
	if uint(rank) >= uint(len(r.parts)) {
		return 0, 0
	}
	return r.first[rank], r.first[rank+1]
}

// where is the rank that has row i, and the number that the row has there.
func (r *Rows[T]) where(i int) (rank, k int, err error) {
	if r.parts == nil {
		return 0, 0, r.over()
	}
	if rank = r.Owner(i); rank < 0 {
		return 0, 0, errs.BadArg("dist: row %d of %q, which has %d", i, r.name, r.Count())
	}
	return rank, i - r.first[rank], nil
}

// Len is how many elements row i has.
func (r *Rows[T]) Len(i int) (int, error) {
	_, b, err := r.bounds(i)
	return int(b[1] - b[0]), err
}

// bounds are the places in the owner's values where row i begins and ends.
func (r *Rows[T]) bounds(i int) (rank int, b [2]uint64, err error) {
	rank, k, err := r.where(i)
	if err == nil {
		b, err = r.pair(rank, k).Get(r.n)
	}
	return rank, b, err
}

// pair is where row k of rank has its bounds.
func (r *Rows[T]) pair(rank, k int) gas.Ptr[[2]uint64] {
	p, _ := gas.Cast[[2]uint64](r.parts[rank].At.Add(k)) // two words can always be seen so
	return p
}

// Row gets row i. It returns it in dst's memory if it has room there, else in other.
func (r *Rows[T]) Row(i int, dst []T) ([]T, error) {
	rank, b, err := r.bounds(i)
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst[:0], int(b[1]-b[0]))[:b[1]-b[0]]
	return dst, r.parts[rank].Values.Add(int(b[0])).GetSlice(r.n, dst)
}

// mostBegun is how many transfers are under way at once: a rank has 65,536 handles.
const mostBegun = 1024

// RowsAt gets several rows, in the order of idx, which may be on any ranks. Over a network many
// are under way at once.
func (r *Rows[T]) RowsAt(idx []int) ([][]T, error) {
	bounds, ranks := make([][2]uint64, len(idx)), make([]int, len(idx))
	var begun []gas.Handle
	begin := func(h gas.Handle, err error) error {
		if h != 0 {
			begun = append(begun, h)
		}
		if len(begun) == mostBegun && err == nil {
			err = r.n.SyncAll(begun)
			begun = begun[:0]
		}
		return err
	}
	var err error
	for j, i := range idx {
		var k int
		if ranks[j], k, err = r.where(i); err != nil {
			break
		}
		if err = begin(r.pair(ranks[j], k).GetNB(r.n, &bounds[j])); err != nil {
			break
		}
	}
	if err = errors.Join(err, r.n.SyncAll(begun)); err != nil {
		return nil, err
	}
	total := uint64(0)
	for _, b := range bounds {
		total += b[1] - b[0]
	}
	rows, rest := make([][]T, len(idx)), make([]T, total)
	begun = begun[:0]
	for j, b := range bounds {
		count := b[1] - b[0]
		rows[j], rest = rest[:count:count], rest[count:]
		if err = begin(r.parts[ranks[j]].Values.Add(int(b[0])).GetSliceNB(r.n, rows[j])); err != nil {
			break
		}
	}
	return rows, errors.Join(err, r.n.SyncAll(begun))
}

// Local is row i without a copy, if this rank has it. It stays valid until Delete.
func (r *Rows[T]) Local(i int) ([]T, bool) {
	rank, k, err := r.where(i)
	if err != nil || rank != r.rank {
		return nil, false
	}
	return r.row(k), true
}

// row is row k of this rank.
func (r *Rows[T]) row(k int) []T { return r.values[r.at[k]:r.at[k+1]:r.at[k+1]] }

// LocalRows walks the rows of this rank, with their numbers, as Local returns them.
func (r *Rows[T]) LocalRows() iter.Seq2[int, []T] {
	return func(yield func(int, []T) bool) {
		first, end := r.Range(r.rank)
		for k := range end - first {
			if !yield(first+k, r.row(k)) {
				return
			}
		}
	}
}

// Permute is collective: it makes new rows, in equal runs, in which row to[k] equals the k-th
// row of this rank. to, of all ranks together, names each row once.
func (r *Rows[T]) Permute(to []int) (*Rows[T], error) {
	var failed error
	if r.parts == nil {
		failed = r.over()
	} else if len(to) != len(r.at)-1 {
		failed = errs.BadArg("dist: Permute: %d numbers for the %d rows of %q on rank %d", len(to), len(r.at)-1, r.name, r.n.Rank())
	}
	return gatherRows(r.ranks, "Permute", r.name, r.Count(), to, failed, true, r.row)
}

// Transpose is collective: it makes count rows, in equal runs, of rows of numbers from 0 to
// count-1: row c has the numbers of the rows that have a c, in order, as often as that is in them.
func Transpose[C gas.Integer](r *Rows[C], count int) (*Rows[C], error) {
	var failed error
	if r.parts == nil {
		failed = r.over()
	}
	var to []int
	var values []C
	for i, row := range r.LocalRows() {
		for _, c := range row {
			to, values = append(to, int(c)), append(values, C(i))
		}
	}
	return gatherRows(r.ranks, "Transpose", r.name, count, to, failed, false, func(k int) []C { return values[k : k+1] })
}

// Nonzero is an element of a sparse matrix that is not zero.
type Nonzero[T any] struct {
	Col   int64
	Value T
}

// Sparse is a sparse matrix: Rows of entries, each with its column. The order of entries in a row
// is of no account, and several of one column add up.
type Sparse[T gas.Scalar] struct {
	*Rows[Nonzero[T]]
	cols int

	// The columns that this rank's entries have, in order, and the place in these of each
	// entry; nil before Times is called.
	used   []int
	places []uint32
}

// NewSparse is collective: it takes rows for the entries of a matrix of so many columns. The matrix
// has the rows then, and its Delete ends them. Values may change; columns are fixed.
func NewSparse[T gas.Scalar](rows *Rows[Nonzero[T]], cols int) (*Sparse[T], error) {
	var failed error
	if rows.parts == nil {
		failed = rows.over()
	}
	if cols < 0 && failed == nil {
		failed = errs.BadArg("dist: NewSparse: %d columns of %q: there are 0 or more", cols, rows.name)
	}
	for i, row := range rows.LocalRows() {
		for _, e := range row {
			if failed == nil && (e.Col < 0 || e.Col >= int64(cols)) {
				failed = errs.BadArg("dist: NewSparse: row %d of %q has an entry of column %d, of %d", i, rows.name, e.Col, cols)
			}
		}
	}
	if err := rows.agree(fmt.Sprintf("NewSparse %q", rows.name), sayOf("sparse", rows.name, typeName[T]())+uint64(cols), failed); err != nil {
		return nil, err
	}
	return &Sparse[T]{Rows: rows, cols: cols}, nil
}

// Cols is how many columns the matrix has.
func (s *Sparse[T]) Cols() int { return s.cols }

// Transpose is collective: it makes the transposed matrix, whose rows are in equal runs, and the entries
// of each in order of their columns.
func (s *Sparse[T]) Transpose() (*Sparse[T], error) {
	var failed error
	if s.parts == nil {
		failed = s.over()
	}
	var to []int
	var entries []Nonzero[T]
	for i, row := range s.LocalRows() {
		for _, e := range row {
			to, entries = append(to, int(e.Col)), append(entries, Nonzero[T]{int64(i), e.Value})
		}
	}
	rows := s.Count()
	t, err := gatherRows(s.ranks, "Transpose", s.name, s.cols, to, failed, false, func(k int) []Nonzero[T] { return entries[k : k+1] })
	if err != nil {
		return nil, err
	}
	return NewSparse(t, rows)
}

// Times is collective: it returns the products of this rank's rows with vector x, which has Cols()
// elements, which all ranks of the job have; where there are none it may be the zero Array. Each element
// of x that this rank needs comes once. Sums are made in the order of entries.
func (s *Sparse[T]) Times(x gas.Array[T]) ([]T, error) {
	var failed error
	switch {
	case s.parts == nil:
		failed = s.over()
	case x.Len() != s.cols:
		failed = errs.BadArg("dist: Times: %q has %d columns, the vector %d elements", s.name, s.cols, x.Len())
	}
	if err := s.agree(fmt.Sprintf("Times of %q", s.name), sayOf("times", s.name), failed); err != nil {
		return nil, err
	}
	if s.places == nil {
		for _, e := range s.values {
			s.used = append(s.used, int(e.Col))
		}
		slices.Sort(s.used)
		s.used = slices.Compact(s.used)
		s.places = make([]uint32, 0, len(s.values))
		for _, e := range s.values {
			s.places = append(s.places, uint32(sort.SearchInts(s.used, int(e.Col))))
		}
	}
	got := make([]T, len(s.used))
	if s.cols > 0 {
		get := x.GetAll
		if s.team != nil {
			get = x.GetIndexed // GetAll is of all ranks
		}
		if err := get(s.n, s.used, got); err != nil {
			return nil, err
		}
	}
	y := make([]T, len(s.at)-1)
	for k := range y {
		for j := s.at[k]; j < s.at[k+1]; j++ {
			y[k] += s.values[j].Value * got[s.places[j]]
		}
	}
	return y, nil
}
