package dist_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
)

// TestMatrixModel puts and gets parts of a matrix and compares with a slice. Each rank puts in
// its turn; what it gets is looked at by all.
func TestMatrixModel(t *testing.T) {
	type step struct {
		Put    bool
		R      dist.Rect
		Beyond int // of a row's elements to the next row
	}
	rapid.Check(t, func(t *rapid.T) {
		conduit := rapid.SampledFrom(names).Draw(t, "conduit")
		groups := rapid.SampledFrom(dist.Groupings).Draw(t, "groups")
		ranks := rapid.IntRange(1, 6).Draw(t, "ranks")
		rows, cols := rapid.IntRange(0, 9).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "columns")
		tileRows, tileCols := rapid.IntRange(1, 5).Draw(t, "tile rows"), rapid.IntRange(1, 5).Draw(t, "tile columns")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			row, col := rapid.IntRange(0, rows).Draw(t, "row"), rapid.IntRange(0, cols).Draw(t, "column")
			return step{
				rapid.Bool().Draw(t, "put"),
				dist.Rect{Row: row, Col: col, Rows: rapid.IntRange(0, rows-row).Draw(t, "height"), Cols: rapid.IntRange(0, cols-col).Draw(t, "width")},
				rapid.IntRange(0, 2).Draw(t, "beyond"),
			}
		}), 0, 8).Draw(t, "steps")
		run := func(g gas.Group) error {
			m := gas.Must(dist.NewMatrix[int32](g, "matrix", rows, cols, tileRows, tileCols))
			want := make([]int32, rows*cols)
			for k, s := range steps {
				stride := s.R.Cols + s.Beyond
				mem := make([]int32, s.R.Rows*stride)
				for i := range mem {
					mem[i] = int32(100*k + i + 1)
				}
				if s.Put {
					if k%g.Size() == g.Rank() {
						g.Must(m.Put(s.R, mem, stride))
					}
				} else if err := m.Get(s.R, mem, stride); err != nil {
					return err
				}
				for i := range s.R.Rows {
					own := want[(s.R.Row+i)*cols+s.R.Col:][:s.R.Cols]
					if s.Put {
						copy(own, mem[i*stride:])
					} else if got := mem[i*stride:][:s.R.Cols]; !slices.Equal(got, own) {
						return fmt.Errorf("step %d: row %d is %v, want %v", k, i, got, own)
					}
					for j := s.R.Cols; j < stride; j++ {
						if mem[i*stride+j] != int32(100*k+i*stride+j+1) {
							return fmt.Errorf("step %d: memory between rows has changed", k)
						}
					}
				}
				g.Must(g.Barrier())
			}
			g.Must(sameTiles(g, m, want))
			return m.Delete()
		}
		err := gas.Run(small(conduit, ranks), func(n *gas.Node) error { return dist.InGroups(n, groups, run) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// sameTiles compares the elements one by one, and the tiles that this rank has, with want.
func sameTiles(g gas.Group, m *dist.Matrix[int32], want []int32) error {
	rows, cols := m.Size()
	seen := 0
	for r, mem := range m.LocalTiles() {
		for i := range r.Rows {
			if got, own := mem[i*m.Stride():][:r.Cols], want[(r.Row+i)*cols+r.Col:][:r.Cols]; !slices.Equal(got, own) {
				return fmt.Errorf("row %d of tile %+v is %v, want %v", i, r, got, own)
			}
			seen += r.Cols
		}
	}
	all, err := gas.AllReduce(g, seen, gas.Sum)
	if err != nil || all != rows*cols {
		return errors.Join(err, fmt.Errorf("tiles have %d elements, want %d", all, rows*cols))
	}
	for i := range rows {
		for j := range cols {
			if v, err := m.At(i, j).Get(g.Node()); err != nil || v != want[i*cols+j] {
				return fmt.Errorf("element %d, %d is %d, want %d: %v", i, j, v, want[i*cols+j], err)
			}
		}
	}
	height, width := m.Grid()
	down, across := m.Tiles()
	for i := range down {
		for j := range across {
			r := m.Tile(i, j)
			mem := make([]int32, r.Rows*r.Cols)
			if err := m.Get(r, mem, 0); err != nil {
				return err
			}
			if o := m.Owner(i, j); o != i%height*width+j%width || mem[0] != want[r.Row*cols+r.Col] || m.At(r.Row, r.Col).Rank() != global(g, o) {
				return fmt.Errorf("tile %d, %d is of rank %d and begins with %d", i, j, o, mem[0])
			}
		}
	}
	if height*width != g.Size() || m.Owner(down, 0) != -1 || m.Owner(0, across) != -1 || m.Tile(-1, 0) != (dist.Rect{}) || !m.At(rows, 0).IsNil() || !m.At(0, -1).IsNil() {
		return fmt.Errorf("there is something beyond %d times %d tiles on %d times %d ranks", down, across, height, width)
	}
	return g.Barrier()
}

// global is the rank of the job that is rank r of g.
func global(g gas.Group, r int) int {
	if t, ok := g.(*gas.Team); ok {
		return t.Global(r)
	}
	return r
}

func TestMatrixMisuse(t *testing.T) {
	with := func(n *gas.Node, fn func(m *dist.Matrix[int32]) error) error {
		m, err := dist.NewMatrix[int32](n, "matrix", 5, 4, 2, 2)
		if err != nil {
			return err
		}
		return fn(m)
	}
	made := func(rows, cols, tileRows, tileCols int) func(n *gas.Node) error {
		return func(n *gas.Node) error {
			_, err := dist.NewMatrix[int32](n, "matrix", rows, cols, tileRows, tileCols)
			return err
		}
	}
	got := func(r dist.Rect, mem, stride int) func(n *gas.Node) error {
		return func(n *gas.Node) error {
			return with(n, func(m *dist.Matrix[int32]) error { return m.Get(r, make([]int32, mem), stride) })
		}
	}
	misuses(t, map[string]misuse{
		"negative":     {`NewMatrix: "matrix" of -1 times 4 elements`, gas.ErrBadArg, made(-1, 4, 1, 1)},
		"empty tiles":  {`NewMatrix: "matrix" in tiles of 1 times 0`, gas.ErrBadArg, made(4, 4, 1, 0)},
		"overflow":     {`there are at most 1099511627776 elements`, gas.ErrBadArg, made(1<<40, 1, 1, 1<<40)},
		"no room":      {`matrix "matrix" of 65536 times 65536: `, gas.ErrResource, made(1<<16, 1<<16, 100, 100)},
		"beyond":       {`Get: part {Row:4 Col:0 Rows:2 Cols:1} of matrix "matrix", which has 5 times 4 elements`, gas.ErrBadArg, got(dist.Rect{Row: 4, Rows: 2, Cols: 1}, 2, 0)},
		"overlapping":  {`Get: 2 rows of 2 elements, 1 from one to the next`, gas.ErrBadArg, got(dist.Rect{Rows: 2, Cols: 2}, 4, 1)},
		"short memory": {`are more than a slice of 5 has`, gas.ErrBadArg, got(dist.Rect{Rows: 2, Cols: 2}, 5, 4)},
		"pointers": {"holds Go pointers", gas.ErrBadArg, func(n *gas.Node) error {
			_, err := dist.NewMatrix[*int](n, "matrix", 1, 1, 1, 1)
			return err
		}},
		"different": {"different arguments", gas.ErrBadArg, func(n *gas.Node) error { return made(n.Rank(), 1, 1, 1)(n) }},
		"after done": {`matrix "matrix" on rank `, gas.ErrNotReady, func(n *gas.Node) error {
			return with(n, func(m *dist.Matrix[int32]) error {
				return errors.Join(m.Delete(), m.Put(dist.Rect{Rows: 1, Cols: 1}, make([]int32, 1), 0))
			})
		}},
		"rank fails": {"rank 1: enough", nil, func(n *gas.Node) error {
			return with(n, func(m *dist.Matrix[int32]) error {
				if n.Rank() == 1 {
					return errors.New("enough")
				}
				return m.Delete()
			})
		}},
	})
}
