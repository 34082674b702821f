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
	arrays map[*front.Sym]string // the thread's parts, as slices
	order  []*front.Sym
}

// affine is the loop that n is, if its affinity says what elements its variable visits: it
// goes up by one to a bound, and its affinity is i, &a[i], or &a[i][j] where rows are blocks.
func affine(n *front.Node) (*localLoop, bool) {
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
		if row, ok := rowOf(a, i); ok && row.Type.Elem.Elems() == row.Type.Base().Block && row.Type.Elem.Kind == front.Array {
			return l, true
		}
		return nil, false
	}
	if a.Op != front.Addr {
		return nil, false
	}
	a = a.L
	if a.Op == front.Index && a.L.Op == front.Var && is(a.R, i) && a.L.Type.Elem.Kind != front.Array {
		l.block = a.L.Type.Base().Block
		return l, l.block >= 1
	}
	_, ok = l.row(a)
	return l, ok && a.R.Op == front.Num
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
	return a, ok && a.Type.Elem.Elems() == a.Type.Base().Block && a.Type.Elem.Elem.Kind != front.Array
}

func is(n *front.Node, s *front.Sym) bool {
	n = stripLong(n)
	return n.Op == front.Var && n.Sym == s
}

// counter is the variable of a loop for (i = a; i < b; i++), which its body leaves alone.
func counter(n *front.Node) (*front.Sym, bool) {
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
	if i.Storage != front.Local || i.Addressed || i.Type.Unsigned || i.Type.Kind != front.Int && i.Type.Kind != front.Long {
		return nil, false
	}
	c := n.C
	if c.Op == front.AssignOp {
		if c.Sub != front.Add || c.R.Op != front.Num || c.R.I != 1 {
			return nil, false
		}
	} else if c.Op != front.IncDec || c.I != 1 {
		return nil, false
	}
	if !is(c.L, i) || !is(n.L.L, i) || !steady(n.L.R, i) || changes(n.R, i) {
		return nil, false
	}
	return i, true
}

// steady says whether a bound is without effects and without i.
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

// changes says whether n assigns to i.
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
	// The first element at or after i that is this thread's.
	g.helpers["own"] = true
	g.emit("%s = %s(upc.own(int64(%s), %d))", name, t, name, l.block)
	walk(n.R, func(m *front.Node) {
		if a, _, ok := l.part(m); ok && l.arrays[a.Sym] == "" {
			g.temps++
			l.arrays[a.Sym] = fmt.Sprintf("tmp%d", g.temps)
			l.order = append(l.order, a.Sym)
		}
	})
	g.temps++
	l.k = fmt.Sprintf("tmp%d", g.temps)
	count := 0
	g.breaks = append(g.breaks, &count)
	save := g.local
	g.local = l
	cond := g.cond(n.L).s
	body := g.capture(func() { g.inside(n.R) })
	g.local = save
	g.breaks = g.breaks[:len(g.breaks)-1]
	parts := false
	for _, a := range l.order {
		if !strings.Contains(body, l.arrays[a]+"[") {
			continue
		}
		if !parts {
			parts = true
			g.emit("%s := upc.place(int64(%s), %d)", l.k, name, l.block)
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
	step := fmt.Sprintf("%s += %s(upc.Threads())", name, t)
	switch {
	case l.block == 1 && l.k == "":
		g.emit("for ; %s; %s {", cond, step)
	case l.block == 1:
		g.emit("for ; %s; %s, %s = %s+%s(upc.Threads()), %s+1 {", cond, name, l.k, name, t, l.k)
	default:
		// After the last element of a block the others' blocks are passed over.
		g.helpers["after"] = true
		next := fmt.Sprintf("%s(upc.after(int64(%s), %d))", t, name, l.block)
		if l.k == "" {
			g.emit("for ; %s; %s = %s {", cond, name, next)
		} else {
			g.emit("for ; %s; %s, %s = %s, %s+1 {", cond, name, l.k, next, l.k)
		}
	}
	g.out.WriteString(body)
	g.emit("}")
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
