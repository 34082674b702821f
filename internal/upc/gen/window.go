package gen

import (
	"math"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// window is a variable of type rt.Window that is made before a loop, for shared places in it that
// lie in one row of an array, or behind one pointer, whichever thread they are on.
type window struct {
	kind  opt.Kind
	at    *front.Node // one of the places
	name  exp
	first exp // the variable with the index of the window's element 0; none for 0
}

// windowed emits a loop, and before it the windows of the places in its body that the loop leaves
// where they are and that no loop around it has one for.
func (g *gen) windowed(n, body *front.Node, only bool, emit func()) {
	if g.o.Checked || g.fn.Gotos {
		emit()
		return
	}
	if g.windows == nil {
		g.windows = map[string]*window{}
	}
	made := g.look().Windows(n, body, only, g.made)
	for _, p := range made {
		w := &window{kind: p.Kind, at: p.At, name: g.name()}
		if p.Kind == opt.OwnBlock || p.Kind == opt.AtBlock {
			w.first = g.name()
		}
		g.windows[p.Key] = w
	}
	loop := g.capture(emit)
	var ws []*window
	for _, p := range made {
		ws = append(ws, g.windows[p.Key])
		delete(g.windows, p.Key)
	}
	for _, w := range ws {
		if loop.Uses(w.name) {
			g.makeWindow(w)
		}
	}
	g.emit(loop...)
}

// makeWindow declares a window.
func (g *gen) makeWindow(w *window) {
	t, base := g.goType(w.at.Type), w.at.Type.Base()
	long := &front.Type{Kind: front.Long}
	index := &front.Node{Op: front.Num, Type: long}
	span := func(p exp) {
		g.emit(ir.Define(w.name, ir.CallOf(ir.Generic("rt.Span", t), thread, p, ir.Op(num(1), "<<", num(wholeBits)))))
	}
	at := *w.at
	if w.kind == opt.Spread {
		of := g.where(opt.Root(w.at)) // without an index
		f := ir.Generic("rt.Cyclic", t)
		if of.phased {
			f = ir.Generic("rt.Blocked", t, ir.ArrayOf(base.Block, ir.Named("byte")))
		}
		g.emit(ir.Define(w.name, ir.CallOf(f, thread, of.pointer())))
		return
	}
	if at.Op == front.Deref {
		p := at.L
		if p.Op == front.PtrAdd {
			p = p.L
		}
		span(g.pointee(p).phaseless())
		return
	}
	count := at.L.Type.Len
	switch w.kind {
	case opt.Whole:
		at.R = index
		span(g.where(&at).phaseless())
		return
	case opt.OwnBlock:
		block := &front.Node{Op: front.Num, Type: long, I: base.Block}
		index = &front.Node{Op: front.Mul, Type: long, L: &front.Node{Op: front.Mythread, Type: &front.Type{Kind: front.Int}}, R: block}
		g.emit(ir.Define(w.first, ir.Op(myThread, "*", num(base.Block))))
		count = base.Block
	case opt.AtBlock:
		index = &front.Node{Op: front.Var, Type: g.blocks.I.Type, Sym: g.blocks.I}
		g.emit(ir.Define(w.first, ir.Convert(goInt, g.variable(g.blocks.I))))
		count = 1 << wholeBits // up to its end
	}
	at.R = index
	if p, ok := g.look().Spread(w.at); ok && g.made(p.Key) {
		g.emit(ir.Define(w.name, ir.Method(g.windows[p.Key].name, "Row", thread, numberOf(g, &at), num(count))))
		return
	}
	row := ir.Generic("rt.Row", t, ir.ArrayOf(base.Block, ir.Named("byte")))
	g.emit(ir.Define(w.name, ir.CallOf(row, thread, g.where(&at).pointer(), num(count))))
}

// wholeBits is more bits than a segment's elements have numbers.
const wholeBits = 40

// sliced is the elements of windows as slices, in a loop over i all of whose accesses to them are
// known to be inside. Each index i + c of a window has a slice of its own, that begins where the loop
// does, and all are as long as the loop: so Go's compiler leaves out the checks of their bounds.
type sliced struct {
	i      *front.Sym
	k      exp // how many iterations there have been, of type int
	slices map[opt.Slice]exp
	runs   map[string]exp // or of runs that begin with the loop
}

// look is what is known where code is generated.
func (g *gen) look() opt.Options { return opt.Options{Threads: g.o.Threads, Blocks: g.blocks} }

// made reports whether there is a window with that key.
func (g *gen) made(key string) bool { return g.windows[key] != nil }

// counted emits what is left of the loop n over i, which has a value, up to before hi, a value of
// Go's type int. For indices that are i and a constant, of windows that are there, the body is
// emitted twice: for the iterations whose elements all are in the windows, which it takes from
// slices then, and for the others, which come before these or behind them.
func (g *gen) counted(n *front.Node, i *front.Sym, hi exp) {
	of := g.look().Slices(n.R, i, g.made)
	name, t := g.variable(i), g.goType(i.Type)
	loop := func(to exp) *ir.Stmt {
		return ir.Loop(nil, ir.Op(ir.Convert(goInt, name), "<", to), ir.Update(name, "++"), g.capture(func() { g.inside(n.R) }))
	}
	if len(of.Slices) == 0 || g.sliced != nil {
		if runs := runsOf(g, n, i); len(runs) > 0 {
			strips(g, n, i, hi, runs, loop)
		} else {
			g.emit(loop(hi))
		}
		return
	}
	end, from, to := g.name(), g.name(), g.name()
	at := ir.Convert(goInt, name)
	g.emit(ir.Define(end, hi), ir.Pair(from, to, ":=", at, end))
	for _, r := range of.Reach {
		w := g.windows[r.Key]
		first := w.first
		if first.Zero() {
			first = num(0)
		}
		g.emit(ir.Pair(from, to, "=", ir.Method(w.name, "Within", from, to, first, num(r.Least), num(r.Most))))
	}
	s := &sliced{i: i, slices: map[opt.Slice]exp{}}
	line := g.line
	inside := g.capture(func() {
		var length exp
		for _, of := range of.Slices {
			w := g.windows[of.Key]
			shift := func(e exp) exp {
				if !w.first.Zero() {
					e = ir.Op(e, "-", w.first)
				}
				switch {
				case of.C > 0:
					e = ir.Op(e, "+", num(of.C))
				case of.C < 0:
					e = ir.Op(e, "-", num(-of.C))
				}
				return e
			}
			v := g.name()
			s.slices[of] = v
			all := ir.Slice(ir.Method(w.name, "Own"), shift(at), shift(to))
			if length.Zero() {
				length = ir.CallTo("len", v)
			} else {
				all = ir.Slice(all, exp{}, length)
			}
			g.emit(ir.Define(v, all), ir.Drop(v)) // sizeof and its kin name places without reading them
		}
		// A variable of this loop alone stays in a register.
		s.k = g.name()
		begin := g.name()
		g.emit(ir.Define(begin, name))
		g.sliced = s
		g.emit(ir.Over(s.k, exp{}, s.slices[of.Slices[0]], g.capture(func() {
			g.emit(ir.Define(name, ir.Op(begin, "+", ir.Convert(t, s.k))), ir.Drop(name))
			g.stmt(n.R) // a block of its own, which may have another variable of that name
		})))
		g.sliced = nil
		g.emit(ir.Set(name, ir.Convert(t, to)), ir.Keyword("continue"))
	})
	g.line = line
	stop := g.name()
	both := ir.Block{
		ir.When(ir.Op(ir.Op(at, ">=", from), "&&", ir.Op(at, "<", to)), inside, nil), ir.Define(stop, end),
		ir.When(ir.Op(ir.Op(at, "<", from), "&&", ir.Op(from, "<", to)), ir.Block{ir.Set(stop, from)}, nil),
	}
	g.emit(ir.Loop(nil, ir.Op(at, "<", end), nil, append(both, loop(stop))))
}

// runsOf are the places of loop n over i that go by runs.
func runsOf(g *gen, n *front.Node, i *front.Sym) []opt.Run {
	if g.sliced != nil {
		return nil
	}
	return g.look().Runs(n.R, i, opt.ChangesOf(n), g.made)
}

// leastRun is how many iterations go by slices, at least, and how many elements a block has at least of which the next is
// tried after one that goes otherwise.
const leastRun, leastBlock = 4, 16

// strips is counted with runs: strip by strip, as many iterations as all runs have elements that lie one behind the other.
func strips(g *gen, n *front.Node, i *front.Sym, hi exp, runs []opt.Run, loop func(to exp) *ir.Stmt) {
	name, t := g.variable(i), g.goType(i.Type)
	at, end, count := ir.Convert(goInt, name), g.name(), g.name()
	g.emit(ir.Define(end, hi))
	s := &sliced{i: i, runs: map[string]exp{}}
	line, small := g.line, false
	g.emit(ir.Loop(nil, ir.Op(at, "<", end), nil, g.capture(func() {
		lengths := []exp{ir.Op(end, "-", at)}
		for _, r := range runs {
			v := g.name()
			s.runs[r.Key] = v
			g.emit(ir.Define(v, ir.Method(g.windows[r.Place.Key].name, "Run", numberOf(g, r.At))))
			lengths = append(lengths, ir.CallTo("len", v))
			small = small || r.At.Type.Base().Block < leastBlock
		}
		g.emit(ir.Define(count, ir.CallTo("min", lengths...)))
		g.emit(ir.When(ir.Op(count, ">=", num(leastRun)), g.capture(func() {
			length := count
			for _, r := range runs {
				v := s.runs[r.Key]
				g.emit(ir.Set(v, ir.Slice(v, exp{}, length)))
				length = ir.CallTo("len", s.runs[runs[0].Key])
			}
			s.k = g.name()
			begin := g.name()
			g.emit(ir.Define(begin, name))
			g.sliced = s
			g.emit(ir.Over(s.k, exp{}, s.runs[runs[0].Key], g.capture(func() {
				g.emit(ir.Define(name, ir.Op(begin, "+", ir.Convert(t, s.k))), ir.Drop(name))
				g.stmt(n.R)
			})))
			g.sliced = nil
			g.emit(ir.Update(name, "+=", ir.Convert(t, count)), ir.Keyword("continue"))
		}), nil))
		g.line = line
		stop := end
		if !small {
			stop = g.name()
			g.emit(ir.Define(stop, ir.Op(at, "+", ir.CallTo("min", ir.Op(end, "-", at), num(leastRun)))))
		}
		g.emit(loop(stop))
	})))
}

// countedFor is counted for a loop of C, or says that it is not such a loop.
func (g *gen) countedFor(n *front.Node) bool {
	if len(g.windows) == 0 || g.sliced != nil {
		return false
	}
	i, of := g.look().Counted(n, g.made)
	if i == nil || len(of.Slices) == 0 && len(runsOf(g, n, i)) == 0 {
		return false
	}
	g.emit(ir.Inside(g.capture(func() {
		g.first(n)
		count := 0
		g.breaks = append(g.breaks, &count)
		g.counted(n, i, g.behind(n))
		g.breaks = g.breaks[:len(g.breaks)-1]
	})))
	return true
}

// first is what a loop begins with.
func (g *gen) first(n *front.Node) {
	switch {
	case n.Init == nil:
	case n.Init.Op == front.Block:
		g.block(n.Init)
	default:
		g.discard(n.Init.L)
	}
}

// behind is where a loop i < b or i <= b ends, of type int.
func (g *gen) behind(n *front.Node) exp {
	b := g.expr(n.L.R)
	if t := n.L.R.Type; t.Unsigned && t.Size() == 8 && (n.L.R.Op != front.Num || n.L.R.I < 0) {
		b = ir.CallTo("min", b, num(math.MaxInt64-1)) // no loop gets that far
	}
	b = ir.Convert(goInt, b)
	if n.L.Op == front.Le {
		b = ir.Op(b, "+", num(1))
	}
	return b
}

// slice is a place as an element of a slice, in a loop that has it so.
func (g *gen) slice(n *front.Node) (exp, bool) {
	if g.sliced == nil || g.watched > 0 || g.group != nil {
		return exp{}, false
	}
	if g.sliced.runs != nil {
		p, made := g.look().Spread(n)
		if w, ok := g.look().Window(n); !made || !g.made(p.Key) || ok && g.made(w.Key) {
			return exp{}, false
		}
		key, _ := opt.RunKey(n)
		v := g.sliced.runs[key]
		return ir.At(v, g.sliced.k).By(ir.Slices), !v.Zero()
	}
	p, ok := g.look().Window(n)
	if !ok {
		return exp{}, false
	}
	c, ok := opt.Offset(p.Index, g.sliced.i)
	v := g.sliced.slices[opt.Slice{Key: p.Key, C: c}]
	if !ok || v.Zero() {
		return exp{}, false
	}
	return ir.At(v, g.sliced.k).By(ir.Slices), true
}

// numberOf is the number of a place among the elements of its array, or of those behind its pointer.
func numberOf(g *gen, n *front.Node) exp {
	if i := g.where(n).index; !i.Zero() {
		return i
	}
	return num(0)
}

// windowOf is the window that a place is in and its index there: a spread only if there is none that is better, and the
// place is not known to be this thread's.
func (g *gen) windowOf(n *front.Node) (w *window, index exp, ok bool) {
	if len(g.windows) == 0 || g.watched > 0 || g.group != nil {
		return nil, exp{}, false
	}
	if _, ok := g.slice(n); ok {
		return nil, exp{}, false
	}
	p, ok := g.look().Window(n)
	if w = g.windows[p.Key]; !ok || w == nil {
		if g.own(n) {
			return nil, exp{}, false
		}
		p, ok = g.look().Spread(n)
		if w = g.windows[p.Key]; !ok || w == nil {
			return nil, exp{}, false
		}
		return w, numberOf(g, n), true
	}
	e := g.index(p.Index)
	if !w.first.Zero() {
		e = ir.Op(e, "-", w.first)
	}
	return w, e, true
}

// spread does something with element i of a window if it is a spread that has it, and other things if it has not.
func (w *window) spread(g *gen, i exp, has func(element exp) ir.Block, other ir.Block) {
	g.emit(ir.When(ir.Method(w.name, "Has", i), has(ir.Deref(ir.Method(w.name, "At", i))), other))
}

// get is element i of a window.
func (w *window) get(g *gen, n *front.Node, i exp) exp {
	if w.kind != opt.Spread {
		return ir.Method(w.name, "Get", thread, i).By(ir.WindowGet)
	}
	i = g.once(i)
	v := g.name()
	g.emit(ir.Declare(v, g.goType(n.Type), exp{}))
	w.spread(g, i, func(element exp) ir.Block { return ir.Block{ir.Set(v, element.By(ir.WindowGet))} },
		ir.Block{ir.Set(v, ir.Method(w.name, "Get", thread, i))})
	return v
}

// put sets element i of a window.
func (w *window) put(g *gen, i, v exp) {
	if w.kind != opt.Spread {
		g.emit(ir.Do(ir.Method(w.name, "Put", thread, i, v).By(ir.WindowPut)))
		return
	}
	i = g.once(i)
	if v.Computes || v.Operates {
		v = g.temp(g.goType(w.at.Type), v)
	}
	w.spread(g, i, func(element exp) ir.Block { return ir.Block{ir.Set(element.By(ir.WindowPut), v)} },
		ir.Block{ir.Do(ir.Method(w.name, "Put", thread, i, v))})
}

// update sets element i of a window to next of what it had, old. Either is a variable if it is wanted.
func (w *window) update(g *gen, n *front.Node, i exp, wantOld, want bool, next func(old exp) exp) (old, v exp) {
	i = g.once(i)
	t := g.goType(n.Type)
	if w.kind != opt.Spread {
		if old = w.get(g, n, i); wantOld {
			old = g.temp(t, old)
		}
		if v = next(old); want {
			v = g.temp(t, v)
		}
		w.put(g, i, v)
		return old, v
	}
	old = g.name()
	e := next(old) // with what it needs, before the element is read
	g.emit(ir.Declare(old, t, exp{}))
	if v = e; want {
		v = g.temp(t, exp{})
	}
	step := func(get exp, put func(v exp) *ir.Stmt) ir.Block {
		if want {
			return ir.Block{ir.Set(old, get), ir.Set(v, e), put(v)}
		}
		return ir.Block{ir.Set(old, get), put(v)}
	}
	at := g.name()
	w.spread(g, i, func(element exp) ir.Block {
		p := ir.Deref(at)
		return append(ir.Block{ir.Define(at, ir.Address(element))}, step(p.By(ir.WindowGet), func(v exp) *ir.Stmt { return ir.Set(p.By(ir.WindowPut), v) })...)
	}, step(ir.Method(w.name, "Get", thread, i), func(v exp) *ir.Stmt { return ir.Do(ir.Method(w.name, "Put", thread, i, v)) }))
	return old, v
}

// once is an index that is used twice, computed once.
func (g *gen) once(index exp) exp {
	if i, _ := index.Converts(goInt); i.Computes || i.Operates {
		return g.temp(goInt, index)
	}
	return index
}
