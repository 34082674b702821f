package mustdist_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/gas/must"
	"github.com/argon-go/argon/gas/mustdist"
	"github.com/argon-go/argon/internal/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// containers are one of each type.
type containers struct {
	m      *dist.Map[int, int]
	u      *dist.Update[int, int, int, int]
	q      *dist.Queue[int]
	b      *dist.Bitmap
	r      *dist.Rows[int64]
	s      *dist.Sparse[int64]
	x      *dist.Matrix[int]
	vector gas.Array[int64]
}

// make makes one of each. Rank r has row r of the rows, with r+1 numbers, and of the sparse
// matrix, with an entry 2 in column r.
func (c *containers) make(n *gas.Node) {
	me, size := n.Rank(), n.Size()
	c.m = mustdist.NewMap[int, int](n, "map")
	c.u = mustdist.NewUpdate(n, c.m, "add", func(e *dist.Entry[int, int], by int) int {
		*e.Value += by
		return *e.Value
	})
	c.q = mustdist.NewQueue[int](n, "queue", 0)
	c.b = mustdist.NewBitmap(n, 100, "bitmap")
	c.r = mustdist.NewRows(n, "rows", [][]int64{slices.Repeat([]int64{int64(me)}, me+1)})
	c.s = mustdist.NewSparse(n, mustdist.NewRows(n, "matrix", [][]dist.Nonzero[int64]{{{Col: int64(me), Value: 2}}}), size)
	c.x = mustdist.NewMatrix[int](n, "tiles", 4, 4, 2, 2)
	c.vector = must.NewArray[int64](n, size, 1)
}

func (c *containers) done(n *gas.Node) {
	for _, x := range []interface{ Done() error }{c.m, c.q, c.b, c.r, c.s, c.x} {
		must.Done(n, x)
	}
}

// use uses each operation once where it succeeds, and returns what is wrong with what comes of it.
func (c *containers) use(n *gas.Node) error {
	me, size := n.Rank(), n.Size()
	var wrong []string
	same := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	key := 10 * me
	mustdist.Put(n, c.m, key, 1)
	mustdist.PutAll(n, c.m, []int{key + 1, key + 2}, []int{2, 3})
	v, found := mustdist.Get(n, c.m, key)
	same("Get", []any{v, found}, []any{1, true})
	vs, there := mustdist.GetAll(n, c.m, []int{key + 1, key + 2, key + 3})
	same("GetAll", []any{vs, there}, []any{[]int{2, 3, 0}, []bool{true, true, false}})
	same("Call", mustdist.Call(n, c.u, key, 4), 5)
	same("CallAll", mustdist.CallAll(n, c.u, []int{key, key + 1}, []int{1, 1}), []int{6, 3})
	mustdist.PushUpdate(n, c.u, key+4, 7)
	must.Flush(n, c.u)
	must.Barrier(n)
	same("Total", mustdist.Total(n, c.m), 4*size)
	must.Barrier(n)
	same("Delete", mustdist.Delete(n, c.m, key), true)
	mustdist.DeleteAll(n, c.m, []int{key + 1, key + 2})
	must.Barrier(n)
	same("Total after Delete", mustdist.Total(n, c.m), size)

	if me == 0 {
		mustdist.Push(n, c.q, 1)
		mustdist.PushAll(n, c.q, []int{2, 3})
	}
	sum := 0
	for {
		item, ok := mustdist.Pop(n, c.q)
		if !ok {
			break
		}
		sum += item
	}
	same("Pop", must.AllReduce(n, sum, gas.Sum), 6)
	if me == size-1 {
		mustdist.Push(n, c.q, 10)
	}
	mustdist.Run(n, c.q, func(_ *gas.Node, item int) error { sum += item; return nil })
	same("Run", must.AllReduce(n, sum, gas.Sum), 16)

	same("Set", mustdist.Set(n, c.b, me), false)
	mustdist.SetNBI(n, c.b, size+me)
	must.SyncImplicit(n)
	mustdist.SetAll(n, c.b, []int{2*size + me, 3*size + me})
	same("Clear", mustdist.Clear(n, c.b, me), true)
	mustdist.ClearAll(n, c.b, []int{size + me})
	same("Test", mustdist.Test(n, c.b, size+me), false)
	same("TestAll", mustdist.TestAll(n, c.b, []int{me, 2*size + me}), []bool{false, true})
	same("Count", mustdist.Count(n, c.b), 2*size)
	mustdist.Fill(n, c.b)
	same("Count after Fill", mustdist.Count(n, c.b), 100)
	mustdist.Reset(n, c.b)
	same("Count after Reset", mustdist.Count(n, c.b), 0)

	last := size - 1
	row := slices.Repeat([]int64{int64(last)}, size)
	same("RowLen", mustdist.RowLen(n, c.r, last), size)
	same("Row", mustdist.Row(n, c.r, last, nil), row)
	same("RowsAt", mustdist.RowsAt(n, c.r, []int{last}), [][]int64{row})
	moved := mustdist.Permute(n, c.r, []int{last - me})
	same("Permute", mustdist.Row(n, moved, 0, nil), row)
	turned := mustdist.Transpose(n, c.r, size)
	same("Transpose", mustdist.RowLen(n, turned, last), size)
	of := mustdist.NewRowsOf(n, "of", size, []int{me}, []int64{int64(me)})
	same("NewRowsOf", mustdist.Row(n, of, last, nil), []int64{int64(last)})
	must.PutAt(n, c.vector, me, int64(me+1))
	must.Barrier(n)
	same("Times", mustdist.Times(n, c.s, c.vector), []int64{int64(2 * (me + 1))})
	back := mustdist.TransposeSparse(n, c.s)
	same("TransposeSparse", mustdist.Times(n, back, c.vector), []int64{int64(2 * (me + 1))})

	must.Barrier(n)
	at := dist.Rect{Row: me, Col: 1, Rows: 1, Cols: 3}
	mustdist.PutRect(n, c.x, at, []int{me, 2, 3}, 3)
	got := make([]int, 3)
	mustdist.GetRect(n, c.x, at, got, 3)
	same("GetRect", got, []int{me, 2, 3})
	for _, x := range []interface{ Done() error }{moved, turned, of, back} {
		must.Done(n, x)
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func TestContainers(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hybrid", "sim"} {
		err := gas.Run(gas.Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 20}, func(n *gas.Node) error {
			var c containers
			c.make(n)
			if err := c.use(n); err != nil {
				return err
			}
			c.done(n)
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestErrors uses containers that are done.
func TestErrors(t *testing.T) {
	one, v := []int{1}, func(_ *gas.Node, _ int) error { return nil }
	for name, op := range map[string]func(n *gas.Node, c *containers){
		"Get":        func(n *gas.Node, c *containers) { mustdist.Get(n, c.m, 1) },
		"Put":        func(n *gas.Node, c *containers) { mustdist.Put(n, c.m, 1, 1) },
		"Delete":     func(n *gas.Node, c *containers) { mustdist.Delete(n, c.m, 1) },
		"GetAll":     func(n *gas.Node, c *containers) { mustdist.GetAll(n, c.m, one) },
		"PutAll":     func(n *gas.Node, c *containers) { mustdist.PutAll(n, c.m, one, one) },
		"DeleteAll":  func(n *gas.Node, c *containers) { mustdist.DeleteAll(n, c.m, one) },
		"Total":      func(n *gas.Node, c *containers) { mustdist.Total(n, c.m) },
		"Call":       func(n *gas.Node, c *containers) { mustdist.Call(n, c.u, 1, 1) },
		"CallAll":    func(n *gas.Node, c *containers) { mustdist.CallAll(n, c.u, one, one) },
		"PushUpdate": func(n *gas.Node, c *containers) { mustdist.PushUpdate(n, c.u, 1, 1) },
		"NewUpdate": func(n *gas.Node, c *containers) {
			mustdist.NewUpdate(n, c.m, "late", func(*dist.Entry[int, int], int) int { return 0 })
		},
		"Push":      func(n *gas.Node, c *containers) { mustdist.Push(n, c.q, 1) },
		"PushAll":   func(n *gas.Node, c *containers) { mustdist.PushAll(n, c.q, one) },
		"Pop":       func(n *gas.Node, c *containers) { mustdist.Pop(n, c.q) },
		"Run":       func(n *gas.Node, c *containers) { mustdist.Run(n, c.q, v) },
		"Set":       func(n *gas.Node, c *containers) { mustdist.Set(n, c.b, 1) },
		"SetNBI":    func(n *gas.Node, c *containers) { mustdist.SetNBI(n, c.b, 1) },
		"Clear":     func(n *gas.Node, c *containers) { mustdist.Clear(n, c.b, 1) },
		"Test":      func(n *gas.Node, c *containers) { mustdist.Test(n, c.b, 1) },
		"SetAll":    func(n *gas.Node, c *containers) { mustdist.SetAll(n, c.b, one) },
		"ClearAll":  func(n *gas.Node, c *containers) { mustdist.ClearAll(n, c.b, one) },
		"TestAll":   func(n *gas.Node, c *containers) { mustdist.TestAll(n, c.b, one) },
		"Count":     func(n *gas.Node, c *containers) { mustdist.Count(n, c.b) },
		"Fill":      func(n *gas.Node, c *containers) { mustdist.Fill(n, c.b) },
		"Reset":     func(n *gas.Node, c *containers) { mustdist.Reset(n, c.b) },
		"RowLen":    func(n *gas.Node, c *containers) { mustdist.RowLen(n, c.r, 0) },
		"Row":       func(n *gas.Node, c *containers) { mustdist.Row(n, c.r, 0, nil) },
		"RowsAt":    func(n *gas.Node, c *containers) { mustdist.RowsAt(n, c.r, []int{0}) },
		"Permute":   func(n *gas.Node, c *containers) { mustdist.Permute(n, c.r, []int{0}) },
		"Transpose": func(n *gas.Node, c *containers) { mustdist.Transpose(n, c.r, 2) },
		"Times":     func(n *gas.Node, c *containers) { mustdist.Times(n, c.s, c.vector) },
		"GetRect": func(n *gas.Node, c *containers) {
			mustdist.GetRect(n, c.x, dist.Rect{Rows: 1, Cols: 1}, one, 1)
		},
		"PutRect": func(n *gas.Node, c *containers) {
			mustdist.PutRect(n, c.x, dist.Rect{Rows: 1, Cols: 1}, one, 1)
		},
	} {
		err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 20}, func(n *gas.Node) error {
			var c containers
			c.make(n)
			c.done(n)
			op(n, &c)
			t.Errorf("%s: the function goes on", name)
			return nil
		})
		var r *gas.RankError
		if !errors.As(err, &r) || r.Stack != nil || !errors.Is(err, gas.ErrNotReady) || !strings.Contains(err.Error(), " mustdist_test.go:") {
			t.Errorf("%s: Run returned %v", name, err)
		}
	}
}
