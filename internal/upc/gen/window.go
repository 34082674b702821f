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
// where they are and that no loop around it has one for; and constants that loops in it have in variables, if there is none around it.
func (g *gen) windowed(n, body *front.Node, only bool, emit func()) {
	if g.o.Checked || g.fn.Gotos {
		emit()
		return
	}
	if g.windows == nil {
		g.windows = map[string]*window{}
	}
	outer := g.held == nil && g.hoist == nil
	if outer {
		g.held = map[string]exp{}
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
	if outer {
		g.emit(g.holding...)
		g.held, g.holding = nil, nil
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

// stripped is a loop over i whose strips are found before it (opt.Strips): pointers to elements of which each iteration has the next.
type stripped struct {
	i     *front.Sym
	c     *opt.Changes
	k     exp // how many iterations there have been, of type int
	first map[string]exp
	least map[string]int64
}

// look is what is known where code is generated.
func (g *gen) look() opt.Options { return opt.Options{Threads: g.o.Threads, Blocks: g.blocks} }

// made reports whether there is a window with that key.
func (g *gen) made(key string) bool { return g.windows[key] != nil }

// leastStrip is how many iterations go by strips, at least.
const leastStrip = 4

// stripsOf are those of loop n over i.
func stripsOf(g *gen, n *front.Node, i *front.Sym) []*opt.Strip {
	if g.stripped != nil || len(g.windows) == 0 {
		return nil
	}
	return g.look().Strips(n.R, i, opt.ChangesOf(n), g.made)
}

// counted emits what is left of the loop n over i, which has a value, up to before hi, a value of
// Go's type int. With strips the body is emitted twice: for as many iterations as all strips have elements that lie one behind the
// other, which takes them from there, and for those in between.
func (g *gen) counted(n *front.Node, i *front.Sym, hi exp) {
	name, t := g.variable(i), g.goType(i.Type)
	loop := func(to exp) *ir.Stmt {
		return ir.Loop(nil, ir.Op(ir.Convert(goInt, name), "<", to), ir.Update(name, "++"), g.capture(func() { g.inside(n.R) }))
	}
	strips := stripsOf(g, n, i)
	if len(strips) == 0 {
		g.emit(loop(hi))
		return
	}
	at, end, count := ir.Convert(goInt, name), g.name(), g.name()
	g.emit(ir.Define(end, hi))
	s := &stripped{i: i, c: opt.ChangesOf(n), k: g.name(), first: map[string]exp{}, least: map[string]int64{}}
	line, small := g.line, false
	g.emit(ir.Loop(nil, ir.Op(at, "<", end), nil, g.capture(func() {
		// So that no sum with it wraps.
		g.emit(ir.Define(count, ir.CallTo("min", ir.Op(end, "-", at), ir.Op(num(1), "<<", num(wholeBits)))))
		for _, of := range strips {
			v := g.name()
			s.first[of.Key], s.least[of.Key] = v, of.Least
			g.emit(ir.Declare(v, ir.PointerTo(g.goType(of.At.At.Type)), exp{}), ir.Drop(v)) // sizeof and its kin name places without reading them
			small = small || of.At.Kind == opt.Spread && of.At.At.Type.Base().Block < opt.SmallBlock
		}
		enough := ir.Op(count, ">=", num(leastStrip))
		g.emit(ir.When(enough, g.capture(func() {
			for _, of := range strips {
				v, more := s.first[of.Key], of.Most-of.Least
				w, index := inWindow(g, of.At)
				if w.kind == opt.Spread {
					index = g.once(index)
					g.emit(ir.Pair(v, count, "=", ir.Method(w.name, "Alone", index, plus(count, more))))
					g.emit(ir.When(ir.Op(v, "==", ir.Nil), ir.Block{ir.Pair(v, count, "=", ir.Method(w.name, "Run", thread, index, count))}, nil))
				} else {
					g.emit(ir.Pair(v, count, "=", ir.Method(w.name, "Run", index, plus(count, more))))
				}
				if more > 0 {
					g.emit(ir.Update(count, "-=", num(more)))
				}
			}
		}), nil))
		g.emit(ir.When(enough, g.capture(func() {
			g.emit(ir.Do(ir.CallTo("rt.Spill")))
			// A variable of this loop alone stays in a register.
			begin := g.name()
			g.emit(ir.Define(begin, name))
			g.stripped = s
			g.emit(ir.Loop(ir.Define(s.k, num(0)), ir.Op(s.k, "<", count), ir.Update(s.k, "++"), g.capture(func() {
				g.emit(ir.Define(name, ir.Op(begin, "+", ir.Convert(t, s.k))), ir.Drop(name))
				g.stmt(n.R) // a block of its own, which may have another variable of that name
			})))
			g.stripped = nil
			g.emit(ir.Update(name, "+=", ir.Convert(t, count)), ir.Keyword("continue"))
		}), nil))
		g.line = line
		stop := end
		if !small {
			stop = g.name()
			g.emit(ir.Define(stop, ir.Op(at, "+", ir.CallTo("max", count, num(1)))))
		}
		g.emit(loop(stop))
	})))
}

// inWindow is the window of a place and the place's index there.
func inWindow(g *gen, p opt.Place) (w *window, index exp) {
	w = g.windows[p.Key]
	if p.Kind == opt.Spread {
		return w, numberOf(g, p.At)
	}
	if index = g.index(p.Index); !w.first.Zero() {
		index = ir.Op(index, "-", w.first)
	}
	return w, index
}

// countedFor is counted for a loop of C, or says that it is not such a loop.
func (g *gen) countedFor(n *front.Node) bool {
	i, ok := g.look().Counted(n)
	if !ok || len(stripsOf(g, n, i)) == 0 {
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

// strip is a place in a strip of the loop that is generated.
func (g *gen) strip(n *front.Node) (exp, bool) {
	s := g.stripped
	if s == nil || g.watched > 0 || g.group != nil {
		return exp{}, false
	}
	_, key, c, ok := g.look().Strip(n, s.i, s.c, g.made)
	if first := s.first[key]; ok && !first.Zero() {
		return ir.Deref(ir.CallTo("libc.At", first, plus(s.k, c-s.least[key]))).By(ir.Strips), true
	}
	return exp{}, false
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
	if _, ok := g.strip(n); ok {
		return nil, exp{}, false
	}
	p, ok := g.look().Window(n)
	if !ok || !g.made(p.Key) {
		if g.own(n) {
			return nil, exp{}, false
		}
		if p, ok = g.look().Spread(n); !ok || !g.made(p.Key) {
			return nil, exp{}, false
		}
	}
	w, index = inWindow(g, p)
	return w, index, true
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
