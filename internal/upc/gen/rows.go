package gen

import (
	"slices"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// rowed is a loop whose rows are found before it (opt.RowsOf).
type rowed struct {
	i        *front.Sym // the variable that it counts with, or nil
	k        exp        // its value, of type int
	size     int64      // of elements that are reached by bytes: those that no address of a processor is scaled by
	bytes    exp        // k times size
	pointers map[string]exp
	arrays   map[string]*base
}

// base is an array, by a pointer to its element 0.
type base struct {
	p           exp
	least, most int64 // how far from the loop's variable the elements are that are known to be in the array
}

// withRows emits a loop with rows, and reports whether it is one: what it begins with, and, if there is an iteration,
// its rows and the loop.
func withRows(g *gen, n *front.Node) (ends, terms, ok bool) {
	if g.o.Checked || g.o.MayAlias || g.fn == nil || g.fn.Gotos || g.fn.Landings != nil || g.hoist != nil || g.rowed != nil || g.stripped != nil || g.group != nil {
		return false, false, false
	}
	of, ok := opt.RowsOf(n)
	if !ok {
		return false, false, false
	}
	var cond exp
	tests := n.Op != front.Do && n.L != nil && of.I == nil && !(n.L.Op == front.Num && n.L.I != 0)
	if tests && !of.Once {
		g.watched++
		pre := g.capture(func() { cond = g.cond(n.L) })
		if g.watched--; len(pre) > 0 {
			return false, false, false
		}
	}
	r := &rowed{i: of.I, pointers: map[string]exp{}, arrays: map[string]*base{}}
	for _, row := range of.Rows {
		if row.Array {
			r.arrays[row.Key] = &base{g.name(), row.Least, row.Most}
		} else {
			r.pointers[row.Key] = g.name()
		}
	}
	g.emit(ir.Inside(g.capture(func() {
		g.first(n)
		var begin, end exp
		if r.i != nil {
			begin, end, r.k = g.name(), g.name(), g.name()
			g.emit(ir.Pair(begin, end, ":=", ir.Convert(goInt, g.variable(r.i)), g.behind(n)))
			cond = ir.Op(begin, "<", end)
		}
		if tests && of.Once {
			cond = g.cond(n.L)
		}
		line := g.line
		g.rowed = r
		loop := g.capture(func() {
			switch {
			case r.i != nil:
				countRows(g, n, begin, end)
			case n.Op == front.Do || tests && of.Once:
				ends, terms = g.doLoop(n)
			default:
				ends, terms = g.loop(nil, n.L, n.C, n.R, nil)
			}
		})
		g.rowed = nil
		after := g.line
		g.line = line
		before := g.capture(func() {
			for _, row := range of.Rows {
				findRow(g, r, row, begin, end, loop)
			}
		})
		g.line = after
		if cond.Zero() {
			g.emit(before...)
			g.emit(loop...)
			return
		}
		g.emit(ir.When(cond, append(before, loop...), nil))
	})))
	return ends, terms, true
}

// countRows emits a loop that counts in an int, from begin to before end, or in the bytes of elements if it has no other use for their number.
func countRows(g *gen, n *front.Node, begin, end exp) {
	r, count := g.rowed, 0
	i, t := g.variable(r.i), g.goType(r.i.Type)
	g.breaks = append(g.breaks, &count)
	body := g.capture(func() { g.stmt(n.R) }) // a block of its own, which may have another variable of i's name
	g.breaks = g.breaks[:len(g.breaks)-1]
	inner := n.Init != nil && n.Init.Op == front.Block && slices.ContainsFunc(n.Init.List, func(d *front.Node) bool { return d.Sym == r.i })
	shows := count > 0 && !inner // where the loop is left
	k, step := r.k, ir.Update(r.k, "++")
	from, to, at := begin, end, end
	size := num(r.size)
	switch uses := body.Uses(i); {
	case r.size > 0 && !uses && !shows && !body.Uses(r.k) && opt.Narrow(n.L.R):
		k, step = r.bytes, ir.Update(r.bytes, "+=", size)
		from, to = ir.Op(begin, "*", size), g.name()
		g.emit(ir.Define(to, ir.Op(end, "*", size)))
	case uses:
		body = append(ir.Block{ir.Define(i, ir.Convert(t, r.k)), ir.Drop(i)}, body...)
	}
	if r.size > 0 && !k.Is(r.bytes) {
		body = append(ir.Block{ir.Define(r.bytes, ir.Op(r.k, "*", size)), ir.Drop(r.bytes)}, body...)
	}
	init := ir.Define(k, from)
	if shows {
		g.emit(init)
		init, at = nil, k
	}
	g.emit(ir.Loop(init, ir.Op(k, "<", to), step, body))
	if !inner {
		g.emit(ir.Set(i, ir.Convert(t, at)))
	}
}

// findRow declares a row that loop uses. Of an array it looks whether it has the elements that the loop's first and last
// iteration use.
func findRow(g *gen, r *rowed, row opt.Row, begin, end exp, loop ir.Block) {
	if !row.Array {
		if v := r.pointers[row.Key]; loop.Uses(v) {
			g.emit(ir.Define(v, g.expr(row.At)))
		}
		return
	}
	b := r.arrays[row.Key]
	if !loop.Uses(b.p) {
		return
	}
	a := g.place(row.At)
	g.emit(ir.Drop(ir.Slice(a, plus(begin, row.Least), plus(end, row.Most))), ir.Define(b.p, ir.Address(ir.At(a, num(0)))))
}

// row is the value of n, a private place, if it is a row of the loop that is generated.
func (r *rowed) row(n *front.Node) (exp, bool) {
	if r == nil || n.Type.Kind != front.Pointer || len(r.pointers) == 0 {
		return exp{}, false
	}
	key, ok := opt.Spelled(n)
	v := r.pointers[key]
	return v, ok && !v.Zero()
}

// element is n, an element of an array, behind the pointer that the loop has to the array.
func (r *rowed) element(g *gen, n *front.Node) (exp, bool) {
	if r == nil || len(r.arrays) == 0 {
		return exp{}, false
	}
	key, c, ok := opt.ArrayKey(n, r.i)
	b := r.arrays[key]
	if !ok || b == nil || c < b.least || c > b.most {
		return exp{}, false
	}
	return ir.Deref(r.at(g, b.p, n.Type, c)), true
}

// at is pointer p and k + c elements of type t.
func (r *rowed) at(g *gen, p exp, t *front.Type, c int64) exp {
	size := t.Size()
	if size&(size-1) == 0 && size <= 8 || size == 0 || r.size > 0 && r.size != size {
		return ir.CallTo("libc.At", p, plus(r.k, c))
	}
	if r.size == 0 {
		r.size, r.bytes = size, g.name()
	}
	return ir.Convert(ir.PointerTo(g.goType(t)), ir.CallTo("unsafe.Add", unsafely(p), plus(r.bytes, c*size)))
}

// move is pointer p plus i elements of type t, with the loop's variable in i.
func (r *rowed) move(g *gen, p exp, t *front.Type, i *front.Node) (exp, bool) {
	if r == nil || r.i == nil {
		return exp{}, false
	}
	if c, ok := opt.Offset(i, r.i); ok && !t.Variable() {
		return r.at(g, p, t, c), true
	}
	e, ok := r.wide(g, i)
	return ir.CallTo("libc.At", p, e), ok
}

// wide is n, an index of a private pointer that the loop's variable is in, in type int: sums and products of type
// int that do not fit in it have no value in C (6.5p5), and those of 64 bits wrap round as Go's do.
func (r *rowed) wide(g *gen, n *front.Node) (exp, bool) {
	if !opt.Uses(n, r.i) {
		return exp{}, false
	}
	n = opt.StripLong(n)
	switch n.Op {
	case front.Var:
		return r.k, true
	case front.Add, front.Sub, front.Mul:
		if n.Type.Unsigned && n.Type.Size() < 8 || n.Type.Kind != front.Int && n.Type.Kind != front.Long {
			return exp{}, false
		}
	default:
		return exp{}, false
	}
	part := func(n *front.Node) (exp, bool) {
		switch {
		case opt.Uses(n, r.i):
			return r.wide(g, n)
		case n.Op == front.Num:
			return num(n.I), true
		}
		// Only what emits nothing: if it is no index after all, it is generated once more.
		l := opt.StripLong(n)
		if l.Op != front.Var || !l.Type.Integer() || l.Type.IsShared() {
			return exp{}, false
		}
		return ir.Convert(goInt, g.expr(l)), true
	}
	x, ok := part(n.L)
	if !ok {
		return exp{}, false
	}
	y, ok := part(n.R)
	return ir.Op(x, ops[n.Op], y), ok
}

// plus is e + c.
func plus(e exp, c int64) exp {
	switch {
	case c > 0:
		return ir.Op(e, "+", num(c))
	case c < 0:
		return ir.Op(e, "-", num(-c))
	}
	return e
}
