package gen

import (
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
)

// localLoop is an upc_forall loop over i whose bounds visit this thread's elements only, of
// arrays with one block size: element i of such an array is element k of the thread's part.
// Elements are visited in order, so k goes up by one.
type localLoop struct {
	i      *front.Sym
	block  int64
	k      exp
	shift  exp                // of runs: the argument of rt.OwnRun
	arrays map[*front.Sym]exp // the thread's parts, as slices
	order  []*front.Sym
}

// affine is the loop that n is, if its affinity says what elements its variable visits: it
// goes up by one to a bound, and its affinity is i, &a[i], or &a[i][j] where rows are blocks, a being an
// array or a row of one that has as many blocks on each thread.
func (g *gen) affine(n *front.Node) (*localLoop, bool) {
	i, ok := counter(n)
	if !ok {
		return nil, false
	}
	l := &localLoop{i: i, block: 1, arrays: map[*front.Sym]exp{}}
	a := n.Aff
	if a.Type.Integer() {
		a = stripLong(a)
		return l, a.Op == front.Var && a.Sym == i
	}
	if a.Op == front.Decay {
		a = a.L // the row a[i] as &a[i][0]
		return l, g.blockOf(a, i, changesOf(n))
	}
	if a.Op != front.Addr {
		return nil, false
	}
	a = a.L
	if a.Op == front.Index && a.L.Op == front.Var && is(a.R, i) && a.L.Type.Elem.Kind != front.Array {
		l.block = a.L.Type.Base().Block
		return l, l.block >= 1
	}
	ok = a.Op == front.Index && a.R.Op == front.Num && a.Type.Kind != front.Array && g.blockOf(a.L, i, changesOf(n))
	return l, ok
}

// blockOf reports whether n is row i, a block, of an array, or of a row of one that begins on thread 0
// and is the same throughout a loop that changes what c says.
func (g *gen) blockOf(n *front.Node, i *front.Sym, c *changeSet) bool {
	if n.Op != front.Index || !is(n.R, i) || !blocks(n.L.Type) {
		return false
	}
	rows, t := n.L.Type, int64(g.o.Threads)
	a := n.L
	for ; a.Op == front.Index; a = a.L {
		if !c.keep(a.R) {
			return false
		}
	}
	return a.Op == front.Var && (a == n.L || rows.Threads || t > 0 && rows.Len%t == 0)
}

// runs is the loop that n is, if what its variable visits are runs of elements: its affinity is an
// element of a row of an array that stays the same, or behind a pointer that does, with index i or
// i and a constant, of a block size that is not 1.
func (g *gen) runs(n *front.Node) (*localLoop, bool) {
	i, ok := counter(n)
	c := changesOf(n)
	if !ok || !n.Aff.Type.ToShared() || !c.keep(n.L.R) {
		return nil, false
	}
	var row, p, index *front.Node
	switch a := n.Aff; {
	case a.Op == front.Addr && a.L.Op == front.Index:
		row, index = a.L.L, a.L.R
	case a.Op == front.Addr && a.L.Op == front.Deref && a.L.L.Op == front.PtrAdd:
		p, index = a.L.L.L, a.L.L.R
	case a.Op == front.PtrAdd:
		p, index = a.L, a.R
	default:
		return nil, false
	}
	if p != nil && p.Op == front.Decay {
		p, row = nil, p.L
	}
	more, ok := offset(index, i)
	if !ok {
		return nil, false
	}
	l := &localLoop{i: i, arrays: map[*front.Sym]exp{}}
	at := &front.Node{Op: front.Index, Type: n.Aff.Type.Elem, L: row, R: &front.Node{Op: front.Num, Type: &front.Type{Kind: front.Long}}}
	known := false
	if row != nil {
		a := row
		for ; a.Op == front.Index; a = a.L {
			if !c.keep(a.R) {
				return nil, false
			}
		}
		if a.Op != front.Var || at.Type.Kind == front.Array {
			return nil, false
		}
		l.block = a.Type.Base().Block
		known = a == row || row.Type.Threads && l.block > 0 && row.Type.Len%l.block == 0
	} else {
		t := p.Type.Elem
		if p.Op != front.Var || p.Type.IsShared() || !c.keep(p) || t.Kind == front.Array || t.Kind == front.Void {
			return nil, false
		}
		l.block = t.Base().Block
	}
	switch {
	case l.block == 1:
		return nil, false
	case known:
		l.shift = num(more)
		if l.block == 0 {
			l.shift = num(0) // on thread 0
		}
		return l, true
	}
	var w where
	if row != nil {
		w = g.where(at)
	} else {
		w = g.pointee(p)
	}
	q := w.pointer()
	if !w.phased {
		q = ir.Method(q, "Phased")
	}
	l.shift = ir.CallTo("rt.Shift", q, num(l.block))
	if more != 0 && l.block != 0 {
		l.shift = ir.Op(l.shift, "+", num(more))
	}
	return l, true
}

// rowOf is the array of which n is row i.
func rowOf(n *front.Node, i *front.Sym) (*front.Node, bool) {
	if n.Op == front.Index && n.L.Op == front.Var && is(n.R, i) {
		return n.L, true
	}
	return nil, false
}

// row is the array of which n is an element of row i, where rows are blocks of a cyclic one.
func (l *localLoop) row(n *front.Node) (*front.Node, bool) {
	if n.Op != front.Index || l.block != 1 || n.Type.Kind == front.Array {
		return nil, false
	}
	a, ok := rowOf(n.L, l.i)
	return a, ok && blocks(a.Type) && a.Type.Elem.Elem.Kind != front.Array
}

// blocks reports whether the rows of an array are its blocks, so that row i lies on thread i mod THREADS.
func blocks(t *front.Type) bool {
	row := t.Elem
	return row.Kind == front.Array && !row.PerThread() && row.Elems() == row.Base().Block
}

func is(n *front.Node, s *front.Sym) bool {
	n = stripLong(n)
	return n.Op == front.Var && n.Sym == s
}

// counter is the variable of a loop for (i = a; i < b; i++), which its body leaves alone, and whose
// bound has no effects.
func counter(n *front.Node) (*front.Sym, bool) {
	i, ok := loopVar(n)
	return i, ok && steady(n.L.R, i)
}

// loopVar is counter with any bound.
func loopVar(n *front.Node) (*front.Sym, bool) {
	if n.Init == nil || n.L == nil || n.C == nil || n.L.Op != front.Lt && n.L.Op != front.Le {
		return nil, false
	}
	var i *front.Sym
	switch {
	case n.Init.Op == front.Block && len(n.Init.List) == 1 && len(n.Init.List[0].List) == 1:
		i = n.Init.List[0].Sym
	case n.Init.Op == front.Expr && n.Init.L.Op == front.Assign && n.Init.L.L.Op == front.Var:
		i = n.Init.L.L.Sym
	default:
		return nil, false
	}
	return i, byOne(n, i)
}

// byOne reports whether a loop tests i alone and adds one to it, and its body leaves it alone.
func byOne(n *front.Node, i *front.Sym) bool {
	if i == nil || i.Storage != front.Local || i.Addressed || i.Type.Unsigned || i.Type.Kind != front.Int && i.Type.Kind != front.Long {
		return false
	}
	c := n.C
	if c.Op == front.AssignOp {
		if c.Sub != front.Add || c.R.Op != front.Num || c.R.I != 1 {
			return false
		}
	} else if c.Op != front.IncDec || c.I != 1 {
		return false
	}
	return is(c.L, i) && is(n.L.L, i) && !n.L.L.Type.Unsigned && !changes(n.R, i)
}

// steady reports whether a bound is without effects and without i.
func steady(n *front.Node, i *front.Sym) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		return n.Sym != i && !n.Type.IsShared()
	case front.Add, front.Sub, front.Mul:
		return steady(n.L, i) && steady(n.R, i)
	case front.Cast:
		return n.Type.Integer() && steady(n.L, i)
	}
	return false
}

// changes reports whether n assigns to i.
func changes(n *front.Node, i *front.Sym) bool {
	found := false
	walk(n, func(n *front.Node) {
		switch n.Op {
		case front.Assign, front.AssignOp, front.IncDec:
			found = found || is(n.L, i)
		}
	})
	return found
}

// walk calls f for n and everything in it.
func walk(n *front.Node, f func(n *front.Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, c := range []*front.Node{n.L, n.R, n.C, n.Init, n.Aff} {
		walk(c, f)
	}
	for _, c := range n.List {
		walk(c, f)
	}
}

// part is the array and the index in the thread's part of a place in the loop that is this
// thread's.
func (l *localLoop) part(n *front.Node) (a, column *front.Node, ok bool) {
	if n.Op != front.Index || !n.Type.IsShared() || n.Mem == front.Strict || !scalarAccess(n.Type) {
		return nil, nil, false
	}
	if n.L.Op == front.Var && is(n.R, l.i) && n.L.Type.Base().Block == l.block && l.block >= 1 {
		return n.L, nil, true
	}
	if a, ok := l.row(n); ok {
		return a, n.R, true
	}
	return nil, nil, false
}

// place is a shared place in the loop as a private one, if it is this thread's.
func (l *localLoop) place(g *gen, n *front.Node) (exp, bool) {
	a, column, ok := l.part(n)
	if !ok || l.arrays[a.Sym].Zero() {
		return exp{}, false
	}
	index := l.k
	if column != nil {
		index = ir.Op(ir.Op(l.k, "*", num(a.Type.Elem.Elems())), "+", ir.Convert(goInt, g.expr(column)))
	}
	return ir.At(l.arrays[a.Sym], index).By(ir.Part), true
}

// roundBlock is from how many elements of a block on a loop over a run goes by slices even if it
// reaches elements around its own, which are other threads' at the ends of the run. In smaller blocks
// the messages for these take longer than the rest.
const roundBlock = 1 << 10

// share is how iterations of a loop over this thread's elements are found.
func (l *localLoop) share(g *gen, n *front.Node) *share {
	i := l.i
	if l.shift.Zero() {
		return &share{
			own: func(n *front.Node) bool {
				_, _, ok := l.part(n)
				return ok
			},
			find: func(next, end, list exp) {
				own := func(from exp) *ir.Stmt {
					return ir.Set(next, ir.Convert(goInt, g.helper("own", ir.Convert(goInt64, from), num(l.block))))
				}
				g.emit(ir.Loop(own(next), room(next, end, list), own(ir.Op(next, "+", num(1))), ir.Block{push(list, next)}))
			},
		}
	}
	element := n.Aff
	if element.Op == front.Addr {
		element = element.L
	} else {
		element = &front.Node{Op: front.Deref, Type: element.Type.Elem, L: element}
	}
	inWindow := func(n *front.Node) (kind windowKind, key string, c int64, ok bool) {
		save := g.blocks
		g.blocks = &blockLoop{i, l.block}
		defer func() { g.blocks = save }()
		kind, key, index, _, ok := g.inWindow(n)
		if ok {
			c, ok = offset(index, i)
		}
		return kind, key, c, ok
	}
	_, row, more, known := inWindow(element)
	return &share{
		own: func(n *front.Node) bool {
			kind, key, c, ok := inWindow(n)
			switch {
			case !ok || !known:
				return false
			case key == row && (c == more || kind == whole || kind == inBlock):
				return true
			}
			return (kind == atBlock || kind == ownBlock) && (l.block >= roundBlock || element.Op == front.Index && element.L.Op == front.Var && n.L.Op == front.Var && c == more)
		},
		find: func(next, end, list exp) {
			from, to, k := g.name(), g.name(), g.name()
			g.emit(ir.Loop(nil, room(next, end, list), nil, ir.Block{
				ir.Pair(from, to, ":=", ir.CallTo("upc.OwnRun", next, end, l.shift, num(l.block))),
				ir.When(ir.Op(from, ">=", to), ir.Block{ir.Set(next, end), ir.Keyword("break")}, nil),
				ir.Set(next, ir.CallTo("min", to, ir.Op(ir.Op(from, "+", num(aheadMost)), "-", ir.CallTo("len", list)))),
				ir.Loop(ir.Define(k, from), ir.Op(k, "<", next), ir.Update(k, "++"), ir.Block{push(list, k)}),
			}))
		},
	}
}

// localForall is an upc_forall loop as one over this thread's elements.
func (g *gen) localForall(n *front.Node, l *localLoop) {
	g.emit(ir.Inside(g.capture(func() {
		t, name := g.goType(l.i.Type), g.variable(l.i)
		g.first(n)
		var low exp
		if n.Init.Op != front.Block {
			low = g.temp(t, name)
		}
		count := 0
		g.breaks = append(g.breaks, &count)
		save := g.local
		g.local = l
		if l.shift.Zero() {
			g.elementByElement(n, l, t)
		} else {
			g.runByRun(n, l, t)
		}
		g.local = save
		g.breaks = g.breaks[:len(g.breaks)-1]
		if !low.Zero() {
			bound := ir.Convert(t, g.expr(n.L.R))
			if n.L.Op == front.Le {
				bound = ir.Op(bound, "+", num(1))
			}
			g.emit(ir.Set(name, ir.CallTo("max", low, bound)))
		}
	})))
}

// runByRun is a loop over the thread's runs of elements, around one over a run, which tests
// nothing but its end.
func (g *gen) runByRun(n *front.Node, l *localLoop, t ir.Type) {
	name := g.variable(l.i)
	from, to, end := g.name(), g.name(), g.name()
	bound, shift := g.behind(n), l.shift
	if shift.Kind != ir.Literal {
		shift = g.name()
		g.emit(ir.Define(shift, l.shift))
	}
	run := func(op string, begin exp) *ir.Stmt {
		return ir.Pair(from, to, op, ir.CallTo("upc.OwnRun", begin, end, shift, num(l.block)))
	}
	g.emit(ir.Define(end, bound))
	g.emit(ir.Loop(run(":=", ir.Convert(goInt, name)), ir.Op(from, "<", to), run("=", to), g.capture(func() {
		g.emit(ir.Set(name, ir.Convert(t, from)))
		g.blocks = &blockLoop{l.i, l.block}
		g.windowed(n, n.R, true, func() { g.counted(n, l.i, to) })
		g.blocks = nil
	})))
}

// elementByElement is a loop that finds the thread's next element each time.
func (g *gen) elementByElement(n *front.Node, l *localLoop, t ir.Type) {
	name, block := g.variable(l.i), num(l.block)
	// The first element at or after i that is this thread's.
	at := g.name() // i, or beyond the last value of its type
	at64 := ir.Convert(goInt64, at)
	g.emit(ir.Define(at, ir.Convert(goInt, g.helper("own", ir.Convert(goInt64, name), block))))
	walk(n.R, func(m *front.Node) {
		if a, _, ok := l.part(m); ok && l.arrays[a.Sym].Zero() {
			l.arrays[a.Sym] = g.name()
			l.order = append(l.order, a.Sym)
		}
	})
	l.k = g.name()
	cond := ir.Op(at, ops[n.L.Op], ir.Convert(goInt, g.expr(n.L.R)))
	body := g.capture(func() { g.stmt(n.R) })
	parts := false
	for _, a := range l.order {
		if !body.Uses(l.arrays[a]) {
			continue
		}
		if !parts {
			parts = true
			g.emit(ir.Define(l.k, g.helper("place", at64, block)))
		}
		g.helpers["part"] = true
		w := g.where(&front.Node{Op: front.Var, Type: a.Type, Sym: a})
		count := ir.Op(ir.Method(ir.Name("static_"+a.Go), "LocalSize", threads), "/", num(a.Type.Base().Size()))
		d := ir.Define(l.arrays[a], ir.CallOf(ir.Generic("part", g.goType(a.Type.Base())), upc, w.phaseless(), count))
		d.Note = a.Name
		g.emit(d)
	}
	// After the last element of a block the others' blocks are passed over.
	next := ir.Op(at, "+", threads)
	if l.block != 1 {
		next = ir.Convert(goInt, g.helper("after", at64, block))
	}
	step := ir.Set(at, next)
	switch {
	case parts:
		step = ir.Pair(at, l.k, "=", next, ir.Op(l.k, "+", num(1)))
	case l.block == 1:
		step = ir.Update(at, "+=", threads)
	}
	g.emit(ir.Loop(nil, cond, step, append(ir.Block{ir.Set(name, ir.Convert(t, at))}, body...)))
}
