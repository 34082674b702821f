package gen

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// localLoop is an upc_forall loop over i whose bounds visit this thread's elements only, of
// arrays with one block size: element i of such an array is element k of the thread's part.
// Elements are visited in order, so k goes up by one.
type localLoop struct {
	i      *front.Sym
	block  int64
	k      string
	shift  string                // of runs: the argument of rt.OwnRun
	arrays map[*front.Sym]string // the thread's parts, as slices
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
	l := &localLoop{i: i, block: 1, arrays: map[*front.Sym]string{}}
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
	l := &localLoop{i: i, arrays: map[*front.Sym]string{}}
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
		l.shift = fmt.Sprint(more)
		if l.block == 0 {
			l.shift = "0" // on thread 0
		}
		return l, true
	}
	var w where
	if row != nil {
		w = g.where(at)
	} else {
		w = g.pointee(p)
	}
	q := g.pointer(w)
	if !w.phased {
		q += ".Phased()"
	}
	l.shift = fmt.Sprintf("rt.Shift(%s, %d)", q, l.block)
	if more != 0 && l.block != 0 {
		l.shift += fmt.Sprintf(" + %d", more)
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
func (l *localLoop) place(g *gen, n *front.Node) (place, bool) {
	a, column, ok := l.part(n)
	if !ok || l.arrays[a.Sym] == "" {
		return place{}, false
	}
	index := l.k
	if column != nil {
		index = fmt.Sprintf("%s*%d + int(%s)", l.k, a.Type.Elem.Elems(), g.expr(column).s)
	}
	return place{exp: exp{l.arrays[a.Sym] + "[" + index + "]", 7}}, true
}

// roundBlock is from how many elements of a block on a loop over a run goes by slices even if it
// reaches elements around its own, which are other threads' at the ends of the run. In smaller blocks
// the messages for these take longer than the rest.
const roundBlock = 1 << 10

// share is how iterations of a loop over this thread's elements are found.
func (l *localLoop) share(g *gen, n *front.Node) *share {
	i := l.i
	if l.shift == "" {
		return &share{
			own: func(n *front.Node) bool {
				_, _, ok := l.part(n)
				return ok
			},
			find: func(next, end, list string) {
				g.helpers["own"] = true
				own := func(from string) string { return fmt.Sprintf("%s = int(upc.own(int64(%s), %d))", next, from, l.block) }
				g.emit("for %s; %s < %s && len(%s) < %d; %s {\n%s = append(%s, %s)\n}", own(next), next, end, list, aheadMost, own(next+"+1"), list, list, next)
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
		find: func(next, end, list string) {
			g.temps += 3
			from, to, k := fmt.Sprintf("tmp%d", g.temps-2), fmt.Sprintf("tmp%d", g.temps-1), fmt.Sprintf("tmp%d", g.temps)
			g.emit("for %s < %s && len(%s) < %d {\n%s, %s := upc.OwnRun(%s, %s, %s, %d)", next, end, list, aheadMost, from, to, next, end, l.shift, l.block)
			g.emit("if %s >= %s {\n%s = %s\nbreak\n}", from, to, next, end)
			g.emit("%s = min(%s, %s+%d-len(%s))", next, to, from, aheadMost, list)
			g.emit("for %s := %s; %s < %s; %s++ {\n%s = append(%s, %s)\n}\n}", k, from, k, next, k, list, list, k)
		},
	}
}

// localForall is an upc_forall loop as one over this thread's elements.
func (g *gen) localForall(n *front.Node, l *localLoop) {
	t := g.goType(l.i.Type)
	name := l.i.Go
	declared := n.Init.Op == front.Block
	g.emit("{")
	if declared {
		g.block(n.Init)
	} else {
		g.discard(n.Init.L)
	}
	low := ""
	if !declared {
		low = g.temp(t, name)
	}
	count := 0
	g.breaks = append(g.breaks, &count)
	save := g.local
	g.local = l
	if l.shift != "" {
		g.runByRun(n, l, t)
	} else {
		g.elementByElement(n, l, t)
	}
	g.local = save
	g.breaks = g.breaks[:len(g.breaks)-1]
	if !declared {
		more := ""
		if n.L.Op == front.Le {
			more = "+1"
		}
		bound := g.operand(g.expr(n.L.R), 5)
		if strings.HasPrefix(bound, "-") {
			bound = "(" + bound + ")"
		}
		g.emit("%s = max(%s, %s(%s)%s)", name, low, t, bound, more)
	}
	g.emit("}")
}

// runByRun is a loop over the thread's runs of elements, around one over a run, which tests
// nothing but its end.
func (g *gen) runByRun(n *front.Node, l *localLoop, t string) {
	name := l.i.Go
	g.temps += 3
	from, to, end := fmt.Sprintf("tmp%d", g.temps-2), fmt.Sprintf("tmp%d", g.temps-1), fmt.Sprintf("tmp%d", g.temps)
	bound := fmt.Sprintf("int(%s)", g.expr(n.L.R).s)
	if n.L.Op == front.Le {
		bound += " + 1"
	}
	shift := l.shift
	if strings.HasPrefix(shift, "rt.") {
		g.temps++
		shift = fmt.Sprintf("tmp%d", g.temps)
		g.emit("%s := %s", shift, l.shift)
	}
	g.emit("%s := %s", end, bound)
	g.emit("for %s, %s := upc.OwnRun(int(%s), %s, %s, %d); %s < %s; %s, %s = upc.OwnRun(%s, %s, %s, %d) {",
		from, to, name, end, shift, l.block, from, to, from, to, to, end, shift, l.block)
	g.emit("%s = %s(%s)", name, t, from)
	g.blocks = &blockLoop{l.i, l.block}
	g.windowed(n, n.R, true, func() {
		g.counted(n, l.i, to)
	})
	g.blocks = nil
	g.emit("}")
}

// elementByElement is a loop that finds the thread's next element each time.
func (g *gen) elementByElement(n *front.Node, l *localLoop, t string) {
	name := l.i.Go
	// The first element at or after i that is this thread's.
	g.helpers["own"] = true
	g.temps++
	at := fmt.Sprintf("tmp%d", g.temps) // i, or beyond the last value of its type
	g.emit("%s := int(upc.own(int64(%s), %d))", at, name, l.block)
	walk(n.R, func(m *front.Node) {
		if a, _, ok := l.part(m); ok && l.arrays[a.Sym] == "" {
			g.temps++
			l.arrays[a.Sym] = fmt.Sprintf("tmp%d", g.temps)
			l.order = append(l.order, a.Sym)
		}
	})
	g.temps++
	l.k = fmt.Sprintf("tmp%d", g.temps)
	cond := fmt.Sprintf("%s %s int(%s)", at, map[front.Op]string{front.Lt: "<", front.Le: "<="}[n.L.Op], g.expr(n.L.R).s)
	body := g.capture(func() { g.stmt(n.R) })
	parts := false
	for _, a := range l.order {
		if !strings.Contains(body, l.arrays[a]+"[") {
			continue
		}
		if !parts {
			parts = true
			g.emit("%s := upc.place(int64(%s), %d)", l.k, at, l.block)
			g.helpers["place"] = true
		}
		g.helpers["part"] = true
		base := "upc.s." + a.Go
		if pointerKind(&front.Type{Kind: front.Pointer, Elem: a.Type}) == "Phased" {
			base += ".Phaseless()"
		}
		g.emit("%s := part[%s](upc, %s, static_%s.LocalSize(upc.Threads())/%d) // %s", l.arrays[a], g.goType(a.Type.Base()), base, a.Go, a.Type.Base().Size(), a.Name)
	}
	if !parts {
		l.k = ""
	}
	step := fmt.Sprintf("%s += upc.Threads()", at)
	switch {
	case l.block == 1 && l.k == "":
		g.emit("for ; %s; %s {", cond, step)
	case l.block == 1:
		g.emit("for ; %s; %s, %s = %s+upc.Threads(), %s+1 {", cond, at, l.k, at, l.k)
	default:
		// After the last element of a block the others' blocks are passed over.
		g.helpers["after"] = true
		next := fmt.Sprintf("int(upc.after(int64(%s), %d))", at, l.block)
		if l.k == "" {
			g.emit("for ; %s; %s = %s {", cond, at, next)
		} else {
			g.emit("for ; %s; %s, %s = %s, %s+1 {", cond, at, l.k, next, l.k)
		}
	}
	g.emit("%s = %s(%s)", name, t, at)
	g.out.WriteString(body)
	g.emit("}")
}
