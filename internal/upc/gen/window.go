package gen

import (
	"fmt"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
)

// windowKind tells windows apart by their elements.
type windowKind int

const (
	whole    windowKind = iota // all from a pointer on, or an array, of indefinite block size
	inBlock                    // a row that lies in one block
	ownBlock                   // the thread's block of a row that has one block for each thread
	atBlock                    // the block that a upc_forall loop is at
)

// window is a variable of type rt.Window that is made before a loop, for shared places in it that
// lie in one row of an array, or behind one pointer, whichever thread they are on.
type window struct {
	kind  windowKind
	at    *front.Node // one of the places
	name  exp
	first exp // the variable with the index of the window's element 0; none for 0
}

// blockLoop is the loop over the elements of one block, in a upc_forall loop over i.
type blockLoop struct {
	i     *front.Sym
	block int64
}

// inWindow says what window a place could be in: which kind, what tells it from other windows, the
// index, and what must not change in a loop that has it.
func (g *gen) inWindow(n *front.Node) (kind windowKind, key string, index *front.Node, fixed []*front.Node, ok bool) {
	if n.Op != front.Deref && n.Op != front.Index || !n.Type.IsShared() || n.Mem == front.Strict || !scalarAccess(n.Type) || n.Type.Kind == front.Array {
		return 0, "", nil, nil, false
	}
	base := n.Type.Base()
	switch n.Op {
	case front.Deref:
		p := n.L
		index = &front.Node{Op: front.Num, Pos: n.Pos, Type: &front.Type{Kind: front.Long}}
		if p.Op == front.PtrAdd {
			p, index = p.L, p.R
		}
		if p.Op != front.Var || p.Type.IsShared() || p.Type.Elem.Kind == front.Array || base.Block != 0 {
			return 0, "", nil, nil, false
		}
		return whole, fmt.Sprintf("*%p", p.Sym), index, []*front.Node{p}, true
	case front.Index:
		row, a := n.L.Type, n.L
		key, ok := "", true
		for a.Op == front.Index {
			fixed = append(fixed, a.R)
			text, good := spell(a.R)
			key, ok = key+"["+text+"]", ok && good
			a = a.L
		}
		if a.Op != front.Var || !ok {
			return 0, "", nil, nil, false
		}
		key = fmt.Sprintf("%p%s", a.Sym, key)
		switch t := g.o.Threads; {
		case base.Block == 0:
			kind = whole
		case base.Block == 1:
			return 0, "", nil, nil, false
		case !row.Threads && row.Len > 0 && base.Block%row.Len == 0:
			kind = inBlock
		case row.Threads && row.Len == base.Block, !row.Threads && t > 0 && row.Len == base.Block*int64(t):
			kind = ownBlock
		case g.blocks != nil && base.Block == g.blocks.block && near(n.R, g.blocks.i):
			kind = atBlock
		default:
			return 0, "", nil, nil, false
		}
		return kind, fmt.Sprint(kind, key), n.R, fixed, true
	}
	return 0, "", nil, nil, false
}

// offset is c of an index i + c.
func offset(n *front.Node, i *front.Sym) (c int64, ok bool) {
	n = stripLong(n)
	if is(n, i) {
		return 0, true
	}
	if n.Op != front.Add && n.Op != front.Sub {
		return 0, false
	}
	l, r := stripLong(n.L), stripLong(n.R)
	switch {
	case is(l, i) && r.Op == front.Num && n.Op == front.Add:
		return r.I, true
	case is(l, i) && r.Op == front.Num:
		return -r.I, true
	case is(r, i) && l.Op == front.Num && n.Op == front.Add:
		return l.I, true
	}
	return 0, false
}

// near reports whether an index is i and a constant.
func near(n *front.Node, i *front.Sym) bool {
	_, ok := offset(n, i)
	return ok
}

// spell is an expression without effects as a text that is the same for the same ones.
func spell(n *front.Node) (string, bool) {
	switch n.Op {
	case front.Num:
		return fmt.Sprint(n.I), true
	case front.Threads, front.Mythread:
		return fmt.Sprint("#", n.Op), true
	case front.Var:
		return fmt.Sprintf("%p", n.Sym), true
	case front.Add, front.Sub, front.Mul:
		l, a := spell(n.L)
		r, b := spell(n.R)
		return fmt.Sprintf("(%s %d %s)", l, n.Op, r), a && b
	case front.Cast, front.Neg:
		l, ok := spell(n.L)
		return fmt.Sprintf("(%d %v %s)", n.Op, n.Type, l), ok && n.Type.Integer() && n.Type.Kind != front.Bool
	}
	return "", false
}

// changeSet has the variables and memory that a loop may change.
type changeSet struct {
	vars    map[*front.Sym]bool // assigned to, or declared in it
	unknown bool                // whatever static variables there are: by calls, and stores through pointers
}

func changesOf(n *front.Node) *changeSet {
	c := &changeSet{vars: map[*front.Sym]bool{}}
	walk(n, func(n *front.Node) {
		switch n.Op {
		case front.Assign, front.AssignOp, front.IncDec, front.Zero, front.SetStr:
			if n.L.Op == front.Var {
				c.vars[n.L.Sym] = true
			} else if !n.L.Type.IsShared() {
				c.unknown = true
			}
		case front.Decl:
			c.vars[n.Sym] = true
		case front.Call:
			c.unknown = c.unknown || effectsOf(n)&(doesWrite|doesCall) != 0
		}
	})
	return c
}

// keep reports whether an expression has the same value throughout, and no effects.
func (c *changeSet) keep(n *front.Node) bool {
	switch n.Op {
	case front.Num, front.Threads, front.Mythread:
		return true
	case front.Var:
		s := n.Sym
		if n.Type.IsShared() || n.Type.Volatile || c.vars[s] || onStack(s) {
			return false
		}
		return s.Storage == front.Local || s.Storage == front.Global && !c.unknown
	case front.Add, front.Sub, front.Mul:
		return c.keep(n.L) && c.keep(n.R)
	case front.Cast, front.Neg:
		return c.keep(n.L)
	}
	return false
}

// windowed emits a loop, and before it the windows of the places in its body that the loop leaves
// where they are and that no loop around it has one for.
func (g *gen) windowed(n, body *front.Node, only bool, emit func()) {
	if g.fn.Gotos {
		emit()
		return
	}
	c := changesOf(n)
	if g.windows == nil {
		g.windows = map[string]*window{}
	}
	var order []string
	walk(body, func(n *front.Node) {
		kind, key, _, fixed, ok := g.inWindow(n)
		if !ok || g.windows[key] != nil || only != (kind == atBlock) {
			return
		}
		for _, f := range fixed {
			if !c.keep(f) {
				return
			}
		}
		w := &window{kind: kind, at: n, name: g.name()}
		if kind == ownBlock || kind == atBlock {
			w.first = g.name()
		}
		g.windows[key] = w
		order = append(order, key)
	})
	loop := g.capture(emit)
	for _, key := range order {
		w := g.windows[key]
		delete(g.windows, key)
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
	case whole:
		at.R = index
		span(g.where(&at).phaseless())
		return
	case ownBlock:
		block := &front.Node{Op: front.Num, Type: long, I: base.Block}
		index = &front.Node{Op: front.Mul, Type: long, L: &front.Node{Op: front.Mythread, Type: &front.Type{Kind: front.Int}}, R: block}
		g.emit(ir.Define(w.first, ir.Op(myThread, "*", num(base.Block))))
		count = base.Block
	case atBlock:
		index = &front.Node{Op: front.Var, Type: g.blocks.i.Type, Sym: g.blocks.i}
		g.emit(ir.Define(w.first, ir.Convert(goInt, g.variable(g.blocks.i))))
		count = base.Block
	}
	at.R = index
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
	slices map[sliceOf]exp
}

// sliceOf is what a slice is of: the elements i + c of the window with that key.
type sliceOf struct {
	key string
	c   int64
}

// counted emits what is left of the loop n over i, which has a value, up to before hi, a value of
// Go's type int. For indices that are i and a constant, of windows that are there, the body is
// emitted twice: for the iterations whose elements all are in the windows, which it takes from
// slices then, and for the others, which come before these or behind them.
func (g *gen) counted(n *front.Node, i *front.Sym, hi exp) {
	type reach struct{ least, most int64 }
	reached := map[string]*reach{}
	var order []string
	var slices []sliceOf
	seen := map[sliceOf]bool{}
	once := true
	walk(n.R, func(n *front.Node) {
		switch n.Op {
		case front.For, front.Forall, front.While, front.Do, front.Break:
			once = false
		}
		_, key, index, _, ok := g.inWindow(n)
		if !ok || g.windows[key] == nil {
			return
		}
		c, ok := offset(index, i)
		if !ok {
			return
		}
		if r := reached[key]; r == nil {
			reached[key] = &reach{c, c}
			order = append(order, key)
		} else {
			r.least, r.most = min(r.least, c), max(r.most, c)
		}
		if of := (sliceOf{key, c}); !seen[of] {
			seen[of] = true
			slices = append(slices, of)
		}
	})
	name, t := g.variable(i), g.goType(i.Type)
	loop := func(to exp) *ir.Stmt {
		return ir.Loop(nil, ir.Op(name, "<", ir.Convert(t, to)), ir.Update(name, "++"), g.capture(func() { g.inside(n.R) }))
	}
	if !once || len(order) == 0 || g.sliced != nil {
		g.emit(loop(hi))
		return
	}
	end, from, to := g.name(), g.name(), g.name()
	at := ir.Convert(goInt, name)
	g.emit(ir.Define(end, hi), ir.Pair(from, to, ":=", at, end))
	for _, key := range order {
		w, r := g.windows[key], reached[key]
		first := w.first
		if first.Zero() {
			first = num(0)
		}
		g.emit(ir.Pair(from, to, "=", ir.Method(w.name, "Within", from, to, first, num(r.least), num(r.most))))
	}
	s := &sliced{i: i, slices: map[sliceOf]exp{}}
	line := g.line
	inside := g.capture(func() {
		var length exp
		for _, of := range slices {
			w := g.windows[of.key]
			shift := func(e exp) exp {
				if !w.first.Zero() {
					e = ir.Op(e, "-", w.first)
				}
				switch {
				case of.c > 0:
					e = ir.Op(e, "+", num(of.c))
				case of.c < 0:
					e = ir.Op(e, "-", num(-of.c))
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
		g.emit(ir.Over(s.k, exp{}, s.slices[slices[0]], g.capture(func() {
			g.emit(ir.Define(name, ir.Op(begin, "+", ir.Convert(t, s.k))), ir.Drop(name))
			g.stmt(n.R) // a block of its own, which may have another variable of that name
		})))
		g.sliced = nil
		g.emit(ir.Set(name, ir.Convert(t, to)), ir.Keyword("continue"))
	})
	g.line = line
	stop := g.name()
	both := ir.Block{ir.When(ir.Op(ir.Op(at, ">=", from), "&&", ir.Op(at, "<", to)), inside, nil), ir.Define(stop, end),
		ir.When(ir.Op(ir.Op(at, "<", from), "&&", ir.Op(from, "<", to)), ir.Block{ir.Set(stop, from)}, nil)}
	g.emit(ir.Loop(nil, ir.Op(at, "<", end), nil, append(both, loop(stop))))
}

// countedFor is counted for a loop of C, or says that it is not such a loop.
func (g *gen) countedFor(n *front.Node) bool {
	i, ok := counter(n)
	if !ok || len(g.windows) == 0 || g.sliced != nil || !changesOf(n).keep(n.L.R) {
		return false
	}
	inner, some := false, false
	walk(n.R, func(n *front.Node) {
		switch n.Op {
		case front.For, front.Forall, front.While, front.Do, front.Break:
			inner = true
		}
		_, key, index, _, ok := g.inWindow(n)
		some = some || ok && g.windows[key] != nil && near(index, i)
	})
	if inner || !some {
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
	b := ir.Convert(goInt, g.expr(n.L.R))
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
	_, key, index, _, ok := g.inWindow(n)
	if !ok {
		return exp{}, false
	}
	c, ok := offset(index, g.sliced.i)
	v := g.sliced.slices[sliceOf{key, c}]
	if !ok || v.Zero() {
		return exp{}, false
	}
	return ir.At(v, g.sliced.k).By(ir.Slices), true
}

// windowOf is the window that a place is in and its index there.
func (g *gen) windowOf(n *front.Node) (w *window, index exp, ok bool) {
	if len(g.windows) == 0 || g.watched > 0 || g.group != nil {
		return nil, exp{}, false
	}
	if _, ok := g.slice(n); ok {
		return nil, exp{}, false
	}
	_, key, i, _, ok := g.inWindow(n)
	if w = g.windows[key]; !ok || w == nil {
		return nil, exp{}, false
	}
	e := g.index(i)
	if !w.first.Zero() {
		e = ir.Op(e, "-", w.first)
	}
	return w, e, true
}

// once is an index that is used twice, computed once.
func (g *gen) once(index exp) exp {
	if i, _ := index.Converts(goInt); i.Computes || i.Operates {
		return g.temp(goInt, index)
	}
	return index
}
