package gen

import (
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// localLoop is an upc_forall loop whose bounds visit this thread's elements only.
type localLoop struct {
	*opt.Local
	k      exp
	shift  exp                // of runs: the argument of rt.OwnRun
	arrays map[*front.Sym]exp // the thread's parts, as slices
	order  []*front.Sym
}

// localOf is the loop that n is, if there is one.
func (g *gen) localOf(n *front.Node) (*localLoop, bool) {
	o, ok := g.look().Forall(n)
	if !ok {
		return nil, false
	}
	l := &localLoop{Local: o, arrays: map[*front.Sym]exp{}}
	switch {
	case !o.Runs:
	case o.Row != nil && o.Block == 0:
		l.shift = num(0) // on thread 0
	case o.Known:
		l.shift = num(o.More)
	default:
		if o.Row != nil { // of an array, which begins with phase 0 on thread 0
			l.shift = numberOf(g, &front.Node{Op: front.Index, Type: n.Aff.Type.Elem, L: o.Row, R: &front.Node{Op: front.Num, Type: &front.Type{Kind: front.Long}}})
		} else {
			w := g.pointee(o.Pointer)
			q := w.pointer()
			if !w.phased {
				q = ir.Method(q, "Phased")
			}
			l.shift = ir.CallTo("rt.Shift", q, num(o.Block))
		}
		if o.More != 0 && o.Block != 0 {
			l.shift = ir.Op(l.shift, "+", num(o.More))
		}
	}
	return l, true
}

// place is a shared place in the loop as a private one, if it is this thread's.
func (l *localLoop) place(g *gen, n *front.Node) (exp, bool) {
	a, column, ok := l.Part(n)
	if !ok || l.arrays[a.Sym].Zero() {
		return exp{}, false
	}
	index := l.k
	if column != nil {
		index = ir.Op(ir.Op(l.k, "*", num(a.Type.Elem.Elems())), "+", ir.Convert(goInt, g.expr(column)))
	}
	return ir.At(l.arrays[a.Sym], index).By(ir.Part), true
}

// share is how iterations of a loop over this thread's elements are found.
func (l *localLoop) share(g *gen, n *front.Node) *share {
	own := func(n *front.Node) bool { return l.Own(g.look(), n) }
	if !l.Runs {
		return &share{
			own: own,
			find: func(next, end, list exp) {
				step := func(from exp) *ir.Stmt {
					return ir.Set(next, ir.Convert(goInt, g.helper("own", ir.Convert(goInt64, from), num(l.Block))))
				}
				g.emit(ir.Loop(step(next), room(next, end, list), step(ir.Op(next, "+", num(1))), ir.Block{push(list, next)}))
			},
		}
	}
	return &share{
		own: own,
		find: func(next, end, list exp) {
			from, to, k := g.name(), g.name(), g.name()
			g.emit(ir.Loop(nil, room(next, end, list), nil, ir.Block{
				ir.Pair(from, to, ":=", ir.CallTo("upc.OwnRun", next, end, l.shift, num(l.Block))),
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
		t, name := g.goType(l.I.Type), g.variable(l.I)
		g.first(n)
		var low exp
		if n.Init.Op != front.Block {
			low = g.temp(t, name)
		}
		count := 0
		g.breaks = append(g.breaks, &count)
		save := g.local
		g.local = l
		if !l.Runs {
			g.elementByElement(n, l, t)
		} else {
			g.runByRun(n, l, t)
		}
		g.local = save
		g.breaks = g.breaks[:len(g.breaks)-1]
		if !low.Zero() {
			g.emit(ir.Set(name, ir.Convert(t, ir.CallTo("max", ir.Convert(goInt, low), g.behind(n)))))
		}
	})))
}

// runByRun is a loop over the thread's runs of elements, around one over a run, which tests
// nothing but its end.
func (g *gen) runByRun(n *front.Node, l *localLoop, t ir.Type) {
	name := g.variable(l.I)
	from, to, end := g.name(), g.name(), g.name()
	bound, shift := g.behind(n), l.shift
	if shift.Kind != ir.Literal {
		shift = g.name()
		g.emit(ir.Define(shift, l.shift))
	}
	run := func(op string, begin exp) *ir.Stmt {
		return ir.Pair(from, to, op, ir.CallTo("upc.OwnRun", begin, end, shift, num(l.Block)))
	}
	g.emit(ir.Define(end, bound))
	g.emit(ir.Loop(run(":=", ir.Convert(goInt, name)), ir.Op(from, "<", to), run("=", to), g.capture(func() {
		g.emit(ir.Set(name, ir.Convert(t, from)))
		g.blocks = &opt.Blocks{I: l.I, Block: l.Block}
		g.windowed(n, n.R, true, func() { g.counted(n, l.I, to) })
		g.blocks = nil
	})))
}

// elementByElement is a loop that finds the thread's next element each time.
func (g *gen) elementByElement(n *front.Node, l *localLoop, t ir.Type) {
	name, block := g.variable(l.I), num(l.Block)
	// The first element at or after i that is this thread's.
	at := g.name() // i, or beyond the last value of its type
	at64 := ir.Convert(goInt64, at)
	g.emit(ir.Define(at, ir.Convert(goInt, g.helper("own", ir.Convert(goInt64, name), block))))
	opt.Walk(n.R, func(m *front.Node) {
		if a, _, ok := l.Part(m); ok && l.arrays[a.Sym].Zero() {
			l.arrays[a.Sym] = g.name()
			l.order = append(l.order, a.Sym)
		}
	})
	l.k = g.name()
	cond := ir.Op(at, "<", g.behind(n))
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
	if l.Block != 1 {
		next = ir.Convert(goInt, g.helper("after", at64, block))
	}
	step := ir.Set(at, next)
	switch {
	case parts:
		step = ir.Pair(at, l.k, "=", next, ir.Op(l.k, "+", num(1)))
	case l.Block == 1:
		step = ir.Update(at, "+=", threads)
	}
	g.emit(ir.Loop(nil, cond, step, append(ir.Block{ir.Set(name, ir.Convert(t, at))}, body...)))
}
