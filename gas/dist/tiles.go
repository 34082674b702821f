package dist

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// Matrix is a dense matrix in tiles of equal size, those at the lower and right edges cut off, which
// are dealt out to a grid of the ranks of a group, block-cyclic in both directions: tile (i, j) belongs to rank (i mod
// height)*width + j mod width. Each tile lies in one piece in its owner's segment, row by row. T
// must hold no Go pointers.
//
// Any goroutine of any rank gets and puts; order is as for what a segment holds.
type Matrix[T any] struct {
	ranks
	name               string
	rows, cols         int
	tileRows, tileCols int               // of a whole tile
	height, width      int               // of the grid of ranks
	across             int               // tiles of a rank side by side
	count              int               // tiles that a rank has room for
	mem                *gas.TeamSlice[T] // nil after Delete
}

// mostElements bounds the elements of a matrix, so that numbers of them do not overflow.
const mostElements = 1 << 40

// NewMatrix is collective: it makes a matrix of zeros, in tiles of tileRows times tileCols elements,
// on the most quadratic grid of the ranks of g; the arguments are the same on all ranks. Memory is the
// segments' (Config.SegmentSize).
func NewMatrix[T any](g gas.Group, name string, rows, cols, tileRows, tileCols int) (*Matrix[T], error) {
	what := fmt.Sprintf("NewMatrix %q", name)
	r, err := ranksOf(g, what)
	if err != nil {
		return nil, err
	}
	m := &Matrix[T]{ranks: r, name: name, rows: rows, cols: cols, tileRows: tileRows, tileCols: tileCols, height: 1, width: r.size}
	for h := 2; h*h <= r.size; h++ {
		if r.size%h == 0 {
			m.height, m.width = h, r.size/h
		}
	}
	failed := m.check()
	if err := gas.CheckType[T](); failed == nil {
		failed = err
	}
	if err := m.agree(what, sayOf("matrix", name, typeName[T](), fmt.Sprint(rows, cols, tileRows, tileCols)), failed); err != nil {
		return nil, err
	}
	down, across := m.Tiles()
	m.across = ceil(across, m.width)
	m.count = ceil(down, m.height) * m.across
	if m.mem, err = gas.NewTeamSlice[T](g, max(1, m.count*tileRows*tileCols)); err != nil {
		return nil, fmt.Errorf("dist: matrix %q of %d times %d: %w", name, rows, cols, err)
	}
	return m, nil
}

// check returns the faults of the sizes.
func (m *Matrix[T]) check() error {
	if m.rows < 0 || m.cols < 0 {
		return errs.BadArg("dist: NewMatrix: %q of %d times %d elements: there are 0 or more of each", m.name, m.rows, m.cols)
	}
	if m.tileRows < 1 || m.tileCols < 1 {
		return errs.BadArg("dist: NewMatrix: %q in tiles of %d times %d: there is 1 or more of each", m.name, m.tileRows, m.tileCols)
	}
	// With what rounding up to whole tiles adds.
	if high, all := bits.Mul64(uint64(m.rows)+uint64(m.tileRows), uint64(m.cols)+uint64(m.tileCols)); high != 0 || all > mostElements {
		return errs.BadArg("dist: NewMatrix: %q of %d times %d elements in tiles of %d times %d: with one row and column of tiles more there are at most %d elements",
			m.name, m.rows, m.cols, m.tileRows, m.tileCols, mostElements)
	}
	return nil
}

func ceil(a, b int) int { return (a + b - 1) / b }

// Delete is collective: it gives the memory back. No rank may use the matrix any more when any rank
// calls it.
func (m *Matrix[T]) Delete() error {
	if m.mem == nil {
		return m.over()
	}
	mem := m.mem
	m.mem = nil
	return mem.Delete()
}

func (m *Matrix[T]) over() error {
	return errs.NotReady("dist: matrix %q on rank %d is deleted (Matrix.Delete)", m.name, m.n.Rank())
}

// Size is how many rows and columns there are.
func (m *Matrix[T]) Size() (rows, cols int) { return m.rows, m.cols }

// Tiles is how many tiles there are below each other and side by side.
func (m *Matrix[T]) Tiles() (down, across int) {
	return ceil(m.rows, m.tileRows), ceil(m.cols, m.tileCols)
}

// Grid is how many ranks there are below each other and side by side.
func (m *Matrix[T]) Grid() (height, width int) { return m.height, m.width }

// Owner is the rank that has tile (i, j), or -1 if there is none.
func (m *Matrix[T]) Owner(i, j int) int {
	down, across := m.Tiles()
	if i < 0 || i >= down || j < 0 || j >= across {
		return -1
	}
	return i%m.height*m.width + j%m.width
}

// tile is where tile (i, j) is, which there is.
func (m *Matrix[T]) tile(i, j int) gas.Ptr[T] {
	return m.mem.On(m.Owner(i, j)).Add((i/m.height*m.across + j/m.width) * m.tileRows * m.tileCols)
}

// At points to element (row, col); it is nil if there is none.
func (m *Matrix[T]) At(row, col int) gas.Ptr[T] {
	if m.mem == nil || row < 0 || row >= m.rows || col < 0 || col >= m.cols {
		return gas.Ptr[T]{}
	}
	return m.tile(row/m.tileRows, col/m.tileCols).Add(row%m.tileRows*m.tileCols + col%m.tileCols)
}

// Rect is a part of a matrix: Rows times Cols elements, of which the first is at (Row, Col).
type Rect struct{ Row, Col, Rows, Cols int }

// Tile is the part that tile (i, j) is, for Get and Put; the zero Rect if there is none.
func (m *Matrix[T]) Tile(i, j int) Rect {
	if m.Owner(i, j) < 0 {
		return Rect{}
	}
	row, col := i*m.tileRows, j*m.tileCols
	return Rect{row, col, min(m.tileRows, m.rows-row), min(m.tileCols, m.cols-col)}
}

// Get loads part r into dst, row by row, stride elements from one row to the next; 0 is r.Cols.
// Over a network many tiles are under way at once.
func (m *Matrix[T]) Get(r Rect, dst []T, stride int) error {
	return m.move("Get", r, dst, stride, gas.Ptr[T].GetShapeNB)
}

// Put stores src, which lies as dst of Get does, as part r, and returns when it is visible to
// all ranks.
func (m *Matrix[T]) Put(r Rect, src []T, stride int) error {
	return m.move("Put", r, src, stride, gas.Ptr[T].PutShapeNB)
}

// move begins a transfer for each tile of which r has a part, and waits for all.
func (m *Matrix[T]) move(what string, r Rect, mem []T, stride int, begin func(gas.Ptr[T], *gas.Node, []T, gas.Shape) (gas.Handle, error)) error {
	if m.mem == nil {
		return m.over()
	}
	if r.Rows < 0 || r.Cols < 0 || r.Row < 0 || r.Col < 0 || r.Rows > m.rows-r.Row || r.Cols > m.cols-r.Col {
		return errs.BadArg("dist: %s: part %+v of matrix %q, which has %d times %d elements", what, r, m.name, m.rows, m.cols)
	}
	if r.Rows == 0 || r.Cols == 0 {
		return nil
	}
	if stride == 0 {
		stride = r.Cols
	}
	// The last row need not be followed by a whole stride; a division does not overflow.
	if stride < r.Cols || len(mem) < r.Cols || (len(mem)-r.Cols)/stride < r.Rows-1 {
		return errs.BadArg("dist: %s: %d rows of %d elements, %d from one to the next, are more than a slice of %d has", what, r.Rows, r.Cols, stride, len(mem))
	}
	var begun []gas.Handle
	for row := r.Row; row < r.Row+r.Rows; {
		i := row / m.tileRows
		rows := min((i+1)*m.tileRows, r.Row+r.Rows) - row
		for col := r.Col; col < r.Col+r.Cols; {
			j := col / m.tileCols
			cols := min((j+1)*m.tileCols, r.Col+r.Cols) - col
			h, err := begin(m.At(row, col), m.n, mem[(row-r.Row)*stride+col-r.Col:],
				gas.Shape{Count: rows, Len: cols, Remote: m.tileCols, Local: stride})
			if err != nil {
				return errors.Join(err, m.n.SyncAll(begun))
			}
			if h != 0 {
				begun = append(begun, h)
			}
			if len(begun) == mostBegun {
				if err := m.n.SyncAll(begun); err != nil {
					return err
				}
				begun = begun[:0]
			}
			col += cols
		}
		row += rows
	}
	return m.n.SyncAll(begun)
}

// LocalTiles walks the tiles of this rank: which part each is, and its elements without a copy, row by
// row, as many from one to the next as a whole tile has columns (Stride). They stay valid until
// Delete.
func (m *Matrix[T]) LocalTiles() iter.Seq2[Rect, []T] {
	return func(yield func(Rect, []T) bool) {
		if m.mem == nil {
			return
		}
		down, across := m.Tiles()
		for i := m.rank / m.width; i < down; i += m.height {
			for j := m.rank % m.width; j < across; j += m.width {
				mem, ok := m.tile(i, j).LocalSlice(m.n, m.tileRows*m.tileCols)
				if r := m.Tile(i, j); !ok || !yield(r, mem[:(r.Rows-1)*m.tileCols+r.Cols]) {
					return
				}
			}
		}
	}
}

// Stride is how far rows of a tile are from each other in the memory of LocalTiles, elements.
func (m *Matrix[T]) Stride() int { return m.tileCols }
