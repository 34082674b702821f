package dist_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/gas/gastest"
)

// ragged draws rows of numbers below limit.
func ragged(t *rapid.T, label string, limit int) [][]int64 {
	if limit == 0 {
		return make([][]int64, rapid.IntRange(0, 12).Draw(t, label))
	}
	return rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(0, int64(limit)-1), 0, 6), 0, 12).Draw(t, label)
}

// part is which of count things rank brings, where ranks bring unequal parts.
func part(g gas.Group, count int, cuts []int) (first, end int) {
	bound := func(r int) int {
		if r == 0 {
			return 0
		}
		if r == g.Size() {
			return count
		}
		return min(cuts[r-1], count)
	}
	return bound(g.Rank()), bound(g.Rank() + 1)
}

// sameRows compares r, by each of its ways to get rows, with want.
func sameRows[T comparable](g gas.Group, r *dist.Rows[T], want [][]T) error {
	if r.Count() != len(want) {
		return fmt.Errorf("%d rows, want %d", r.Count(), len(want))
	}
	var dst []T
	idx := make([]int, 0, 2*len(want))
	for i, row := range want {
		idx = append(idx, i, len(want)-1-i)
		got, err := r.Row(i, dst)
		if err != nil || !slices.Equal(got, row) {
			return fmt.Errorf("row %d is %v, want %v: %v", i, got, row, err)
		}
		if k, err := r.Len(i); k != len(row) || err != nil {
			return fmt.Errorf("row %d has %d, want %d: %v", i, k, len(row), err)
		}
		local, ok := r.Local(i)
		if ok != (r.Owner(i) == g.Rank()) || ok && !slices.Equal(local, row) {
			return fmt.Errorf("row %d of rank %d is %v %v, want %v", i, r.Owner(i), local, ok, row)
		}
		dst = got
	}
	first, end := r.Range(g.Rank())
	for i, row := range r.LocalRows() {
		if i != first || !slices.Equal(row, want[i]) {
			return fmt.Errorf("local row %d is %v, want %d: %v", i, row, first, want[i])
		}
		first++
	}
	if first != end {
		return fmt.Errorf("local rows end at %d, want %d", first, end)
	}
	rows, err := r.RowsAt(idx)
	if err != nil || len(rows) != len(idx) {
		return fmt.Errorf("%d rows of %d: %w", len(rows), len(idx), err)
	}
	for k, i := range idx {
		if !slices.Equal(rows[k], want[i]) {
			return fmt.Errorf("row %d among others is %v, want %v", i, rows[k], want[i])
		}
	}
	return nil
}

// TestRowsModel makes rows in each way, permutes and transposes them, and compares with slices.
func TestRowsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conduit := rapid.SampledFrom(names).Draw(t, "conduit")
		groups := rapid.SampledFrom(dist.Groupings).Draw(t, "groups")
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		cols := rapid.IntRange(0, 9).Draw(t, "columns")
		want := ragged(t, "rows", cols)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(want)), ranks-1, ranks-1).Draw(t, "cuts")
		slices.Sort(cuts)
		to := rapid.Permutation(seq(len(want))).Draw(t, "permutation")
		permuted := make([][]int64, len(want))
		var numbers []int
		var values []int64
		transposed := make([][]int64, cols)
		for i, row := range want {
			permuted[to[i]] = row
			for _, c := range row {
				numbers, values = append(numbers, i), append(values, c)
				transposed[c] = append(transposed[c], int64(i))
			}
		}
		run := func(g gas.Group) error {
			first, end := part(g, len(want), cuts)
			r := gas.Must(dist.NewRows(g, "rows", want[first:end]))
			g.Must(sameRows(g, r, want))
			p := gas.Must(r.Permute(to[first:end]))
			if err := sameRows(g, p, permuted); err != nil {
				return fmt.Errorf("permuted: %w", err)
			}
			tr := gas.Must(dist.Transpose(r, cols))
			if err := sameRows(g, tr, transposed); err != nil {
				return fmt.Errorf("transposed: %w", err)
			}
			// Each rank brings a run of the pairs, so that they come in order.
			k := len(numbers) * g.Rank() / g.Size()
			l := len(numbers) * (g.Rank() + 1) / g.Size()
			of := gas.Must(dist.NewRowsOf(g, "pairs", len(want), numbers[k:l], values[k:l]))
			if err := sameRows(g, of, want); err != nil {
				return fmt.Errorf("of pairs: %w", err)
			}
			return errors.Join(r.Delete(), p.Delete(), tr.Delete(), of.Delete())
		}
		err := gas.Run(small(conduit, ranks), func(n *gas.Node) error { return dist.InGroups(n, groups, run) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestSparseModel compares products and transposed matrices with those of a dense one.
func TestSparseModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conduit := rapid.SampledFrom(names).Draw(t, "conduit")
		groups := rapid.SampledFrom(dist.Groupings).Draw(t, "groups")
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		cols := rapid.IntRange(0, 9).Draw(t, "columns")
		rows := ragged(t, "rows", cols)
		dense := make([][]int64, len(rows))
		entries := make([][]dist.Nonzero[int64], len(rows))
		product := make([]int64, len(rows))
		for i, row := range rows {
			dense[i] = make([]int64, cols)
			for k, c := range row {
				v := int64(i*10 + k + 1)
				dense[i][c] += v
				entries[i] = append(entries[i], dist.Nonzero[int64]{Col: c, Value: v})
				product[i] += v * (c*c + 1)
			}
		}
		transposed := make([]int64, cols) // the product with 1, 2, ...
		for i := range dense {
			for c := range cols {
				transposed[c] += dense[i][c] * int64(i+1)
			}
		}
		run := func(g gas.Group, squares, numbers gas.Array[int64]) error {
			r, err := dist.NewRows(g, "entries", entries[len(rows)*g.Rank()/g.Size():len(rows)*(g.Rank()+1)/g.Size()])
			if err != nil {
				return err
			}
			s, err := dist.NewSparse(r, cols)
			if err != nil {
				return err
			}
			for range 2 { // the second time with what the first has found
				if err := sameProduct(g, s, squares, product); err != nil {
					return err
				}
			}
			tr, err := s.Transpose()
			if err != nil {
				return err
			}
			if tr.Cols() != len(rows) || s.Cols() != cols {
				return fmt.Errorf("%d columns, of %d", tr.Cols(), s.Cols())
			}
			if err := sameProduct(g, tr, numbers, transposed); err != nil {
				return fmt.Errorf("transposed: %w", err)
			}
			return errors.Join(s.Delete(), tr.Delete())
		}
		gastest.RunConfig(t, small(conduit, ranks), func(n *gas.Node) error {
			squares := gas.Must(vector(n, cols, func(i int) int64 { return int64(i*i + 1) }))
			numbers := gas.Must(vector(n, len(rows), func(i int) int64 { return int64(i + 1) }))
			return dist.InGroups(n, groups, func(g gas.Group) error { return run(g, squares, numbers) })
		})
	})
}

// vector is an array of elements f(i), the zero one if there are none.
func vector(n *gas.Node, length int, f func(i int) int64) (x gas.Array[int64], err error) {
	if length == 0 {
		return x, nil
	}
	if x, err = gas.NewArray[int64](n, length, gas.Cyclic); err != nil {
		return x, err
	}
	for i, e := range x.Local(n) {
		*e = f(i)
	}
	return x, n.Barrier()
}

// sameProduct compares the product of s and x with want.
func sameProduct(g gas.Group, s *dist.Sparse[int64], x gas.Array[int64], want []int64) error {
	y, err := s.Times(x)
	if err != nil {
		return err
	}
	if first, end := s.Range(g.Rank()); !slices.Equal(y, want[first:end]) {
		return fmt.Errorf("rows %d to %d of the product are %v, want %v", first, end, y, want[first:end])
	}
	return nil
}

// misuse is a mistake that ends with an error.
type misuse struct {
	want string
	is   error
	fn   func(n *gas.Node) error
}

// misuses runs each on three ranks.
func misuses(t *testing.T, all map[string]misuse) {
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			err := gas.Run(small("shm", 3), c.fn)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestRowsMisuse(t *testing.T) {
	two := func(n *gas.Node, fn func(r *dist.Rows[int64]) error) error {
		r, err := dist.NewRows(n, "rows", [][]int64{{1, 2}, {int64(n.Rank())}})
		if err != nil {
			return err
		}
		return fn(r)
	}
	misuses(t, map[string]misuse{
		"pointers": {"holds Go pointers", gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewRows[*int](n, "rows", nil)
			return err
		}},
		"no room on a rank": {`rows "rows": `, gas.ErrResource, func(n *gas.Node) error {
			var rows [][]int64
			if n.Rank() == 1 {
				rows = [][]int64{make([]int64, 1<<20)}
			}
			_, err := dist.NewRows(n, "rows", rows)
			return err
		}},
		"pairs": {`rows "rows" of 1 numbers of rows and 0 values`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewRowsOf[int64](n, "rows", 3, []int{1}, nil)
			return err
		}},
		"negative": {`NewRowsOf: -1 rows in "rows"`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewRowsOf[int64](n, "rows", -1, nil, nil)
			return err
		}},
		"beyond": {`NewRowsOf: number 0 of the list is row 3, and "rows" has 3`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewRowsOf(n, "rows", 3, []int{3}, []int64{1})
			return err
		}},
		"different": {`different arguments`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewRowsOf[int64](n, "rows", n.Rank(), nil, nil)
			return err
		}},
		"no such row": {`row 6 of "rows", which has 6`, gas.ErrBadArg, func(n *gas.Node) error {
			return two(n, func(r *dist.Rows[int64]) error { _, err := r.Row(6, nil); return err })
		}},
		"no such rows": {`row -1 of "rows", which has 6`, gas.ErrBadArg, func(n *gas.Node) error {
			return two(n, func(r *dist.Rows[int64]) error { _, err := r.RowsAt([]int{5, -1}); return err })
		}},
		"short permutation": {`Permute: 1 numbers for the 2 rows of "rows" on rank `, gas.ErrBadArg, func(n *gas.Node) error {
			return two(n, func(r *dist.Rows[int64]) error { _, err := r.Permute([]int{0}); return err })
		}},
		"no permutation": {`dist: Permute`, gas.ErrBadArg, func(n *gas.Node) error {
			return two(n, func(r *dist.Rows[int64]) error { _, err := r.Permute([]int{0, 1 + n.Rank()}); return err })
		}},
		"types": {"different arguments", gas.ErrBadArg, func(n *gas.Node) (err error) {
			if n.Rank() == 1 {
				_, err = dist.NewRows[int8](n, "rows", nil)
			} else {
				_, err = dist.NewRows[int64](n, "rows", nil)
			}
			return err
		}},
		"too many": {`rows in "rows": segments have room for `, gas.ErrResource, func(n *gas.Node) error {
			_, err := dist.NewRowsOf[int64](n, "rows", math.MaxInt, nil, nil)
			return err
		}},
		"columns": {`NewSparse: -3 columns of "entries"`, gas.ErrBadArg, func(n *gas.Node) error {
			r, err := dist.NewRows[dist.Nonzero[float64]](n, "entries", nil)
			if err == nil {
				_, err = dist.NewSparse(r, -3)
			}
			return err
		}},
		"column": {` of "entries" has an entry of column 5, of 5`, gas.ErrBadArg, func(n *gas.Node) error {
			r, err := dist.NewRows(n, "entries", [][]dist.Nonzero[float64]{{{Col: 5}}})
			if err == nil {
				_, err = dist.NewSparse(r, 5)
			}
			return err
		}},
		"vector": {`Times: "entries" has 5 columns, the vector 4 elements`, gas.ErrBadArg, func(n *gas.Node) error {
			r := gas.Must(dist.NewRows[dist.Nonzero[float64]](n, "entries", nil))
			s := gas.Must(dist.NewSparse(r, 5))
			x, err := gas.NewArray[float64](n, 4, gas.Blocked)
			if err == nil {
				_, err = s.Times(x)
			}
			return err
		}},
		"after done": {`rows "rows" on rank `, gas.ErrNotReady, func(n *gas.Node) error {
			return two(n, func(r *dist.Rows[int64]) error {
				if err := r.Delete(); err != nil {
					return err
				}
				if _, err := r.Permute(nil); !errors.Is(err, gas.ErrNotReady) {
					return fmt.Errorf("permuted: %w", err)
				}
				_, err := r.Row(0, nil)
				return err
			})
		}},
		"fails": {"rank 1: enough", nil, func(n *gas.Node) error {
			if n.Rank() == 1 {
				return errors.New("enough")
			}
			return two(n, func(*dist.Rows[int64]) error { return nil })
		}},
	})
}

// TestManyTransfers gets more rows, and more tiles, at once than a rank has handles.
func TestManyTransfers(t *testing.T) {
	const count = 70000
	gastest.RunConfig(t, gas.Config{Ranks: 2, Conduit: "udp", SegmentSize: 8 << 20}, func(n *gas.Node) error {
		r := gas.Must(dist.NewRows(n, "rows", [][]int32{{int32(n.Rank())}}))
		m := gas.Must(dist.NewMatrix[int32](n, "matrix", 4, count/2, 1, 1))
		if n.Rank() == 0 {
			idx := make([]int, count)
			for i := range idx {
				idx[i] = 1
			}
			rows := gas.Must(r.RowsAt(idx))
			if i := slices.IndexFunc(rows, func(row []int32) bool { return len(row) != 1 || row[0] != 1 }); i >= 0 {
				return fmt.Errorf("row %d is %v", i, rows[i])
			}
			all := make([]int32, 4*(count/2))
			n.Must(m.Get(dist.Rect{Rows: 4, Cols: count / 2}, all, 0))
		}
		return errors.Join(r.Delete(), m.Delete())
	})
}
