package gen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// exp is an expression of Go and how tightly its outermost operator binds: 1 to 5 as in Go, 6
// a unary operator, 7 anything else. A constant has no type.
type exp struct {
	s string
	p int
}

// operand is e where an operator binds as tightly as p.
func (g *gen) operand(e exp, p int) string {
	if e.p < p {
		return "(" + e.s + ")"
	}
	return e.s
}

func not(e exp) exp {
	switch {
	case strings.HasPrefix(e.s, "!") && e.p == 6:
		return exp{e.s[1:], 7}
	case e.p < 6:
		return exp{"!(" + e.s + ")", 6}
	}
	return exp{"!" + e.s, 6}
}

var ops = map[front.Op]struct {
	s string
	p int
}{
	front.Mul: {"*", 5}, front.Div: {"/", 5}, front.Mod: {"%", 5}, front.And: {"&", 5}, front.Shl: {"<<", 5}, front.Shr: {">>", 5},
	front.Add: {"+", 4}, front.Sub: {"-", 4}, front.Or: {"|", 4}, front.Xor: {"^", 4},
	front.Eq: {"==", 3}, front.Ne: {"!=", 3}, front.Lt: {"<", 3}, front.Le: {"<=", 3}, front.Gt: {">", 3}, front.Ge: {">=", 3},
	front.LAnd: {"&&", 2}, front.LOr: {"||", 1},
}

func constant(n *front.Node) bool { return n.Op == front.Num || n.Op == front.FNum }

// typed is an expression whose type does not depend on where it stands.
func (g *gen) typed(n *front.Node) exp {
	e := g.expr(n)
	if !constant(n) {
		return e
	}
	t := g.goType(n.Type)
	if strings.HasPrefix(t, "*") || strings.HasPrefix(t, "func") {
		t = "(" + t + ")"
	}
	return exp{t + "(" + e.s + ")", 7}
}

// cond is n as a condition.
func (g *gen) cond(n *front.Node) exp {
	switch n.Op {
	case front.Num:
		return exp{strconv.FormatBool(n.I != 0), 7}
	case front.Eq, front.Ne, front.Lt, front.Le, front.Gt, front.Ge:
		return g.compare(n)
	case front.Not:
		return not(g.cond(n.L))
	case front.LAnd, front.LOr:
		l := g.cond(n.L)
		var r exp
		pre := g.capture(func() { r = g.cond(n.R) })
		o := ops[n.Op]
		if pre == "" {
			if n.Op == front.LAnd && r.s == "true" || n.Op == front.LOr && r.s == "false" {
				return l
			}
			return exp{g.operand(l, o.p) + " " + o.s + " " + g.operand(r, o.p+1), o.p}
		}
		t := g.temp("bool", l.s)
		if n.Op == front.LAnd {
			g.emit("if %s {\n%s%s = %s\n}", t, pre, t, r.s)
		} else {
			g.emit("if !%s {\n%s%s = %s\n}", t, pre, t, r.s)
		}
		return exp{t, 7}
	case front.Cast:
		if n.Type.Kind == front.Bool {
			return g.cond(n.L)
		}
	}
	e := g.typed(n)
	return exp{g.operand(e, 4) + " != " + zero(n.Type), 3}
}

// compare is a comparison, as a condition.
func (g *gen) compare(n *front.Node) exp {
	o := ops[n.Op]
	t := n.L.Type
	if t.Kind != front.Pointer {
		l, r := g.expr(n.L), g.expr(n.R)
		if constant(n.L) && constant(n.R) {
			l = g.typed(n.L)
		}
		return exp{g.operand(l, 4) + " " + o.s + " " + g.operand(r, 4), 3}
	}
	l, r := g.expr(n.L), g.expr(n.R)
	equal := n.Op == front.Eq || n.Op == front.Ne
	switch {
	case t.ToShared() && equal && (constant(n.L) || constant(n.R)):
		// The null pointer has no phase.
		return exp{g.operand(l, 4) + " " + o.s + " " + g.operand(r, 4), 3}
	case t.ToShared() && equal && pointerKind(t) == "Phased":
		e := exp{g.operand(l, 7) + ".Equal(" + r.s + ")", 7}
		if n.Op == front.Ne {
			e = not(e)
		}
		return e
	case t.ToShared() && !equal:
		return exp{g.sharedDiff(n.L.Type, l, r) + " " + o.s + " 0", 3}
	case equal && t.Elem.Kind == front.Func && !constant(n.L) && !constant(n.R):
		return exp{fmt.Sprintf("libc.Recast[unsafe.Pointer](%s) %s libc.Recast[unsafe.Pointer](%s)", l.s, o.s, r.s), 3}
	case equal:
		return exp{g.operand(l, 4) + " " + o.s + " " + g.operand(r, 4), 3}
	}
	return exp{fmt.Sprintf("uintptr(unsafe.Pointer(%s)) %s uintptr(unsafe.Pointer(%s))", l.s, o.s, r.s), 3}
}

// sharedDiff is the difference of two pointers-to-shared of type t, elements.
func (g *gen) sharedDiff(t *front.Type, l, r exp) string {
	b := t.Elem.Base()
	switch {
	case b.Kind == front.Void:
		g.refuse(g.line, "comparison of 'shared void *' but for equality")
	case b.Block == 0:
		return fmt.Sprintf("%s.SubLocal(%s, %d)", g.operand(l, 7), r.s, b.Size())
	case b.Block == 1:
		return fmt.Sprintf("%s.Sub(%s, %d, upc.Threads())", g.operand(l, 7), r.s, b.Size())
	}
	return fmt.Sprintf("%s.Sub(%s, %d, %d, upc.Threads())", g.operand(l, 7), r.s, b.Block, b.Size())
}

// discard is n for its effects.
func (g *gen) discard(n *front.Node) {
	switch n.Op {
	case front.Assign:
		g.assign(n, false)
	case front.AssignOp:
		g.assignOp(n, false)
	case front.IncDec:
		g.incdec(n, false)
	case front.Comma:
		g.discard(n.L)
		g.discard(n.R)
	case front.Call:
		g.perform(n)
	case front.Zero:
		p := g.place(n.L)
		g.emit("%s = %s{}", p.s, g.goType(n.L.Type))
	case front.SetStr:
		if n.L.Type.IsShared() {
			for i := range len(n.Str) {
				at := &front.Node{Op: front.Index, Pos: n.Pos, Type: n.L.Type.Elem, L: n.L, R: &front.Node{Op: front.Num, Type: &front.Type{Kind: front.Long}, I: int64(i)}, Mem: front.Relaxed}
				g.put(at, strconv.Itoa(int(int8(n.Str[i]))))
			}
			return
		}
		p := g.place(n.L)
		g.emit("libc.SetStr(%s[:], %q)", g.base(p), n.Str)
	case front.Cond:
		l := g.capture(func() { g.discard(n.R) })
		r := g.capture(func() { g.discard(n.C) })
		c := g.cond(n.L)
		switch {
		case l == "" && r == "":
			g.emit("_ = %s", c.s)
		case l == "":
			g.emit("if %s {\n%s}", not(c).s, r)
		case r == "":
			g.emit("if %s {\n%s}", c.s, l)
		default:
			g.emit("if %s {\n%s} else {\n%s}", c.s, l, r)
		}
	case front.LAnd, front.LOr:
		c := g.cond(n.L)
		if n.Op == front.LOr {
			c = not(c)
		}
		g.emit("if %s {\n%s}", c.s, g.capture(func() { g.discard(n.R) }))
	case front.Cast:
		if n.Type.Kind == front.Void {
			g.discard(n.L)
			return
		}
		g.discard(n.L)
	case front.Num, front.FNum, front.Str:
	default:
		if n.Type.Kind == front.Void {
			g.expr(n)
			return
		}
		g.emit("_ = %s", g.expr(n).s)
	}
}

// place is a private place: an expression that can be assigned to.
type place struct {
	exp
	ptr string // not "" if exp is "*" and this pointer
}

// base is p where a selector or an index follows, which follow pointers by themselves.
func (g *gen) base(p place) string {
	if p.ptr != "" {
		return p.ptr
	}
	return g.operand(p.exp, 7)
}

func star(e exp, g *gen) place {
	ptr := g.operand(e, 7)
	return place{exp{"*" + ptr, 6}, ptr}
}

func (g *gen) place(n *front.Node) place {
	switch n.Op {
	case front.Var:
		s := n.Sym
		switch {
		case s.Storage == front.Global:
			if g.fn != nil {
				g.statics = true
				return place{exp: exp{"static." + s.Go, 7}}
			}
			return place{exp: exp{"upc.g." + s.Go, 7}}
		case onStack(s):
			return star(exp{s.Go, 7}, g)
		}
		return place{exp: exp{s.Go, 7}}
	case front.Deref:
		return star(g.typed(n.L), g)
	case front.Index:
		b := g.base(g.place(n.L))
		return place{exp: exp{b + "[" + g.expr(n.R).s + "]", 7}}
	case front.Member:
		b := g.place(n.L)
		if n.L.Type.Kind == front.Union || n.L.Type.Info.Packed {
			of := b.ptr
			if of == "" {
				of = "&" + g.operand(b.exp, 7)
			}
			if n.Field.Offset != 0 {
				return star(exp{fmt.Sprintf("(*%s)(unsafe.Add(unsafe.Pointer(%s), %d))", g.goType(n.Type), of, n.Field.Offset), 7}, g)
			}
			return star(exp{fmt.Sprintf("(*%s)(unsafe.Pointer(%s))", g.goType(n.Type), of), 7}, g)
		}
		return place{exp: exp{g.base(b) + "." + ident(n.Field.Name), 7}}
	case front.Compound:
		for _, i := range n.List {
			g.discard(i)
		}
		return g.place(n.L)
	case front.Str:
		return star(exp{fmt.Sprintf("(*[%d]int8)(unsafe.Pointer(%s))", n.Type.Len, g.literal(n.Str)), 7}, g)
	}
	// A structure that is a value.
	return place{exp: exp{g.temp(g.goType(n.Type), g.expr(n).s), 7}}
}

// address is a pointer to a private place.
func (g *gen) address(n *front.Node) exp {
	if mayEnd(n) {
		return exp{fmt.Sprintf("libc.At(&%s[0], %s)", g.array(n.L), g.expr(stripLong(n.R)).s), 7}
	}
	if n.Op == front.Index {
		return exp{fmt.Sprintf("&%s[%s]", g.array(n.L), g.expr(n.R).s), 6}
	}
	p := g.place(n)
	if p.ptr != "" {
		return exp{p.ptr, 7}
	}
	return exp{"&" + g.operand(p.exp, 7), 6}
}

// mayEnd reports whether n may be the place behind an array's last element, which Go refuses to
// index.
func mayEnd(n *front.Node) bool {
	return n.Op == front.Index && !(n.R.Op == front.Num && n.R.I < n.L.Type.Len)
}

// array is a private array where an index follows that is not looked at: for its address.
func (g *gen) array(n *front.Node) string {
	for l := n; l.Op == front.Index; l = l.L {
		if mayEnd(l) {
			return g.operand(g.address(n), 7)
		}
	}
	return g.base(g.place(n))
}

// where is a place in shared memory: index elements after base, which is a pointer of the
// kind that its type has.
type where struct {
	base   exp
	index  exp // "" for none
	block  int64
	size   int64
	phased bool
}

func (g *gen) where(n *front.Node) where {
	b := n.Type.Base()
	switch n.Op {
	case front.Var:
		t := &front.Type{Kind: front.Pointer, Elem: n.Sym.Type}
		return where{base: exp{"upc.s." + n.Sym.Go, 7}, block: b.Block, size: b.Size(), phased: pointerKind(t) == "Phased"}
	case front.Deref:
		return g.pointee(n.L)
	case front.Index:
		w := g.where(n.L)
		return g.further(w, n.R, n.Type)
	case front.Member:
		w := g.where(n.L)
		at := exp{g.phaseless(w), 7}
		if n.Field.Offset != 0 {
			at = exp{fmt.Sprintf("%s.AddLocal(%d, 1)", at.s, n.Field.Offset), 7}
		}
		return where{base: at, size: b.Size()}
	}
	panic(fmt.Sprintf("gen: shared place %d", n.Op))
}

// pointee is where a pointer-to-shared points to.
func (g *gen) pointee(n *front.Node) where {
	if n.Op == front.PtrAdd {
		return g.further(g.pointee(n.L), n.R, n.Type.Elem)
	}
	if n.Op == front.Decay {
		return g.where(n.L)
	}
	if n.Op == front.Addr {
		return g.where(n.L)
	}
	b := n.Type.Elem.Base()
	return where{base: g.expr(n), block: b.Block, size: b.Size(), phased: pointerKind(n.Type) == "Phased"}
}

// further is i elements of type t behind w.
func (g *gen) further(w where, i *front.Node, t *front.Type) where {
	if i.Op == front.Num && i.I == 0 {
		return w
	}
	e := g.expr(stripLong(i))
	if !constant(i) {
		e = exp{"int(" + e.s + ")", 7}
	}
	if k := t.Elems(); t.PerThread() {
		e = exp{fmt.Sprintf("%s*%d*upc.Threads()", g.operand(e, 5), k), 5}
	} else if k != 1 {
		if i.Op == front.Num {
			e = exp{strconv.FormatInt(i.I*k, 10), 7}
		} else {
			e = exp{fmt.Sprintf("%s*%d", g.operand(e, 5), k), 5}
		}
	}
	if w.index.s != "" {
		e = exp{g.operand(w.index, 4) + " + " + g.operand(e, 5), 4}
	}
	w.index = e
	return w
}

// stripLong is i without conversions that widen it.
func stripLong(i *front.Node) *front.Node {
	if i.Op == front.Cast && i.Type.Kind == front.Long && i.L.Type.Integer() && i.L.Type.Size() < 8 {
		return i.L
	}
	return i
}

// pointer is w as a pointer-to-shared of its kind.
func (g *gen) pointer(w where) string {
	b := g.operand(w.base, 7)
	switch {
	case w.index.s == "":
		return b
	case w.block == 0 && w.phased:
		return fmt.Sprintf("(%s + rt.Phased((%s)*%d))", b, w.index.s, w.size)
	case w.block == 0:
		return fmt.Sprintf("%s.AddLocal(%s, %d)", b, w.index.s, w.size)
	case !w.phased:
		return fmt.Sprintf("%s.Add(%s, %d, upc.Threads())", b, w.index.s, w.size)
	}
	return fmt.Sprintf("%s.Add(%s, %d, %d, upc.Threads())", b, w.index.s, w.block, w.size)
}

// phaseless is w as rt's accesses take it.
func (g *gen) phaseless(w where) string {
	p := g.pointer(w)
	if w.phased {
		p += ".Phaseless()"
	}
	return p
}

// scalarAccess reports whether package rt has accesses to a type.
func scalarAccess(t *front.Type) bool {
	return t.Arithmetic() || t.ToShared()
}

// get reads shared memory.
func (g *gen) get(n *front.Node) exp {
	if g.group != nil {
		return exp{g.groupGet(n, func() string { return g.phaseless(g.where(n)) }), 7}
	}
	p := g.phaseless(g.where(n))
	t := g.goType(n.Type)
	f, pkg := "Get", "rt."
	th := "upc.Thread"
	if !scalarAccess(n.Type) {
		f, pkg, th = "getAny", "", "upc"
		g.helpers[f] = true
	}
	if n.Mem == front.Strict {
		f += "Strict"
		if pkg == "" {
			g.helpers[f] = true
		}
	}
	return exp{fmt.Sprintf("%s%s[%s](%s, %s)", pkg, f, t, th, p), 7}
}

// put writes shared memory.
func (g *gen) put(n *front.Node, v string) { g.putAt(n, g.phaseless(g.where(n)), v) }

func (g *gen) putAt(n *front.Node, p, v string) {
	t := g.goType(n.Type)
	if g.group != nil {
		g.emit("rt.GroupPut[%s](%s, %s, %s)", t, g.group.name, p, v)
		return
	}
	f, pkg := "Put", "rt."
	th := "upc.Thread"
	if !scalarAccess(n.Type) {
		f, pkg, th = "putAny", "", "upc"
		g.helpers[f] = true
	}
	if n.Mem == front.Strict {
		f += "Strict"
		if pkg == "" {
			g.helpers[f] = true
		}
	}
	g.emit("%s%s[%s](%s, %s, %s)", pkg, f, t, th, p, v)
}

// isBits reports whether n is a bit-field.
func isBits(n *front.Node) bool { return n.Op == front.Member && n.Field.Bits > 0 }

// setBits is a bit-field after next of its value before, or that before if post.
func (g *gen) setBits(n *front.Node, next func(old string) string, want, post bool) exp {
	f := n.Field
	shared := n.Type.IsShared()
	var at, word string
	t := g.goType(n.Type)
	if shared {
		at = g.temp("rt.Phaseless", g.phaseless(g.where(n)))
		word = "&" + g.temp(t, g.getAt(n, at))
	} else {
		word = g.temp("*"+t, g.address(n).s)
	}
	old := fmt.Sprintf("libc.Bits(*%s, %d, %d)", word, f.Shift, f.Bits)
	if shared {
		old = fmt.Sprintf("libc.Bits(%s, %d, %d)", word[1:], f.Shift, f.Bits)
	}
	if post && want {
		old = g.temp(t, old)
	}
	set := fmt.Sprintf("libc.SetBits(%s, %d, %d, %s)", word, f.Shift, f.Bits, next(old))
	if want && !post {
		old = g.temp(t, set)
	} else {
		g.emit("%s", set)
	}
	if shared {
		g.putAt(n, at, word[1:])
	}
	return exp{old, 7}
}

// assign is L = R, and what it is worth.
func (g *gen) assign(n *front.Node, want bool) exp {
	if isBits(n.L) {
		v := g.temp(g.goType(n.L.Type), g.expr(n.R).s)
		return g.setBits(n.L, func(string) string { return v }, want, false)
	}
	if n.L.Type.IsShared() {
		v := g.expr(n.R)
		if want {
			v = exp{g.temp(g.goType(n.Type), v.s), 7}
		}
		if w, i, ok := g.windowOf(n.L); ok {
			g.emit("%s.Put(upc.Thread, %s, %s)", w.name, i, v.s)
		} else if p, ok := g.private(n.L); ok {
			g.emit("%s = %s", p.s, v.s)
		} else {
			g.put(n.L, v.s)
		}
		return v
	}
	p := g.place(n.L)
	v := g.direct(n.R)
	if want && n.L.Op != front.Var {
		v = exp{g.temp(g.goType(n.Type), v.s), 7}
	}
	if p.s == v.s {
		return v // vet refuses assignments of a variable to itself
	}
	g.emit("%s = %s", p.s, v.s)
	if want && n.L.Op == front.Var {
		return p.exp
	}
	return v
}

// combine is v op R in type Work, as a value of L's type.
func (g *gen) combine(n *front.Node, of exp) string {
	t := n.L.Type
	if n.Sub == front.PtrAdd {
		return g.move(t, of, n.R).s
	}
	v := g.operand(of, 6)
	lt := g.goType(t)
	wt := lt
	if n.Work != nil {
		wt = g.goType(n.Work)
	}
	if wt != lt {
		v = wt + "(" + v + ")"
	}
	e := g.arith(n.Sub, n.Work, exp{v, 7}, n.R)
	if wt == lt {
		return e.s
	}
	if t.Kind == front.Bool {
		return "uint8(" + "libc.Bool(" + g.operand(e, 4) + " != 0))"
	}
	return lt + "(" + e.s + ")"
}

// assignOp is L op= R.
func (g *gen) assignOp(n *front.Node, want bool) exp {
	if isBits(n.L) {
		return g.setBits(n.L, func(old string) string { return g.combine(n, exp{old, 7}) }, want, false)
	}
	if n.L.Type.IsShared() {
		if w, i, ok := g.windowOf(n.L); ok {
			i = g.once(i)
			v := g.combine(n, exp{fmt.Sprintf("%s.Get(upc.Thread, %s)", w.name, i), 7})
			if want {
				v = g.temp(g.goType(n.Type), v)
			}
			g.emit("%s.Put(upc.Thread, %s, %s)", w.name, i, v)
			return exp{v, 7}
		}
		if p, ok := g.private(n.L); ok {
			return g.update(n, p, want)
		}
		at := g.temp("rt.Phaseless", g.phaseless(g.where(n.L)))
		old := g.getAt(n.L, at)
		v := g.combine(n, exp{old, 7})
		if want {
			v = g.temp(g.goType(n.Type), v)
		}
		g.putAt(n.L, at, v)
		return exp{v, 7}
	}
	return g.update(n, g.place(n.L), want)
}

// getAt is get of n at p.
func (g *gen) getAt(n *front.Node, p string) string {
	f := "Get"
	if n.Mem == front.Strict {
		f = "GetStrict"
	}
	if !scalarAccess(n.Type) {
		g.refuse(n.Pos, "this operator on a shared '%v'", n.Type)
	}
	if g.group != nil {
		return g.groupGet(n, func() string { return p })
	}
	return fmt.Sprintf("rt.%s[%s](upc.Thread, %s)", f, g.goType(n.Type), p)
}

func (g *gen) update(n *front.Node, p place, want bool) exp {
	o, direct := ops[n.Sub]
	if strings.ContainsRune(p.s, '(') {
		// The place is computed once.
		if !direct || g.goType(n.Work) != g.goType(n.L.Type) || want {
			ptr := p.ptr
			if ptr == "" {
				ptr = "&" + g.operand(p.exp, 7)
			}
			p = star(exp{g.temp("*"+g.goType(n.L.Type), ptr), 7}, g)
		}
	}
	if direct && n.Sub != front.Shl && n.Sub != front.Shr && g.goType(n.Work) == g.goType(n.L.Type) {
		g.emit("%s %s= %s", p.s, o.s, g.expr(n.R).s)
	} else {
		g.emit("%s = %s", p.s, g.combine(n, p.exp))
	}
	if want && n.L.Op != front.Var {
		return exp{g.temp(g.goType(n.Type), p.s), 7}
	}
	return p.exp
}

// incdec is ++ and --.
func (g *gen) incdec(n *front.Node, want bool) exp {
	one := &front.Node{Op: front.Num, Pos: n.Pos, Type: &front.Type{Kind: front.Int}, I: n.I}
	op := &front.Node{Op: front.AssignOp, Pos: n.Pos, Type: n.Type, L: n.L, R: one, Sub: front.Add, Work: n.L.Type}
	t := n.L.Type
	if t.Kind == front.Pointer {
		op.Sub = front.PtrAdd
	}
	if t.Kind == front.Bool {
		op.Work = one.Type // the sum is compared with 0
	}
	if (t.Unsigned || t.Kind == front.Bool) && n.I < 0 {
		op.Sub, one.I = front.Sub, 1
	}
	if isBits(n.L) {
		return g.setBits(n.L, func(old string) string { return g.combine(op, exp{old, 7}) }, want, n.Post)
	}
	if t.IsShared() {
		if w, i, ok := g.windowOf(n.L); ok {
			i = g.once(i)
			old := g.temp(g.goType(n.Type), fmt.Sprintf("%s.Get(upc.Thread, %s)", w.name, i))
			v := g.combine(op, exp{old, 7})
			if want && !n.Post {
				v = g.temp(g.goType(n.Type), v)
			}
			g.emit("%s.Put(upc.Thread, %s, %s)", w.name, i, v)
			if n.Post {
				return exp{old, 7}
			}
			return exp{v, 7}
		}
		if p, ok := g.private(n.L); ok {
			return g.step(n, op, p, want)
		}
		at := g.temp("rt.Phaseless", g.phaseless(g.where(n.L)))
		old := g.temp(g.goType(n.Type), g.getAt(n.L, at))
		v := g.combine(op, exp{old, 7})
		if want && !n.Post {
			v = g.temp(g.goType(n.Type), v)
		}
		g.putAt(n.L, at, v)
		if n.Post {
			return exp{old, 7}
		}
		return exp{v, 7}
	}
	return g.step(n, op, g.place(n.L), want)
}

func (g *gen) step(n, op *front.Node, p place, want bool) exp {
	sum := op.Sub == front.PtrAdd || t(n) == front.Bool // what Go's ++ is not
	if strings.ContainsRune(p.s, '(') && (want || sum) {
		ptr := p.ptr
		if ptr == "" {
			ptr = "&" + g.operand(p.exp, 7)
		}
		p = star(exp{g.temp("*"+g.goType(n.L.Type), ptr), 7}, g)
	}
	var old string
	if want && n.Post {
		old = g.temp(g.goType(n.Type), p.s)
	}
	switch {
	case sum:
		g.emit("%s = %s", p.s, g.combine(op, p.exp))
	case n.I > 0:
		g.emit("%s++", p.s)
	default:
		g.emit("%s--", p.s)
	}
	switch {
	case want && n.Post:
		return exp{old, 7}
	case want && n.L.Op != front.Var:
		return exp{g.temp(g.goType(n.Type), p.s), 7}
	}
	return p.exp
}

func t(n *front.Node) front.Kind { return n.L.Type.Kind }

// arith is l op r in type t.
func (g *gen) arith(op front.Op, t *front.Type, l exp, rn *front.Node) exp {
	o := ops[op]
	if op == front.Shl || op == front.Shr {
		if rn.Op == front.Num {
			return exp{fmt.Sprintf("%s %s %d", g.operand(l, 5), o.s, rn.I&(t.Size()*8-1)), 5}
		}
		r := g.expr(rn)
		return exp{fmt.Sprintf("%s %s (uint32(%s) & %d)", g.operand(l, 5), o.s, r.s, t.Size()*8-1), 5}
	}
	r := g.expr(rn)
	return exp{g.operand(l, o.p) + " " + o.s + " " + g.operand(r, o.p+1), o.p}
}

// move is pointer p of type t plus i elements.
func (g *gen) move(t *front.Type, p exp, i *front.Node) exp {
	switch {
	case t.ToShared():
		b := t.Elem.Base()
		w := where{base: p, block: b.Block, size: b.Size(), phased: pointerKind(t) == "Phased"}
		if i.Op == front.Num && i.I == 1 && t.Elem.Single() && b.Block > 0 {
			if w.phased {
				return exp{fmt.Sprintf("%s.Next(%d, %d, upc.Threads())", g.operand(p, 7), b.Block, b.Size()), 7}
			}
			return exp{fmt.Sprintf("%s.Next(%d, upc.Threads())", g.operand(p, 7), b.Size()), 7}
		}
		return exp{g.pointer(g.further(w, i, t.Elem)), 7}
	case t.Elem.Kind == front.Void:
		return exp{fmt.Sprintf("unsafe.Add(%s, %s)", p.s, g.expr(stripLong(i)).s), 7}
	}
	return exp{fmt.Sprintf("libc.At(%s, %s)", p.s, g.expr(stripLong(i)).s), 7}
}

// expr is the value of n.
func (g *gen) expr(n *front.Node) exp {
	switch n.Op {
	case front.Num:
		if n.Type.Kind == front.Pointer && !n.Type.ToShared() {
			return exp{"nil", 7}
		}
		s := g.number(n.I, n.Type)
		if s[0] == '-' {
			return exp{s, 6}
		}
		return exp{s, 7}
	case front.FNum:
		return g.float(n)
	case front.Threads:
		return exp{"int32(upc.Threads())", 7}
	case front.Mythread:
		return exp{"int32(upc.MyThread())", 7}
	case front.Add, front.Sub, front.Mul, front.Div, front.Mod, front.And, front.Or, front.Xor, front.Shl, front.Shr:
		l := g.expr(n.L)
		if constant(n.L) && (n.Op == front.Shl || n.Op == front.Shr || constant(n.R)) {
			l = g.typed(n.L)
		}
		return g.arith(n.Op, n.Type, l, n.R)
	case front.Neg:
		return exp{"-" + g.unary(n.L), 6}
	case front.BitNot:
		return exp{"^" + g.unary(n.L), 6}
	case front.Eq, front.Ne, front.Lt, front.Le, front.Gt, front.Ge, front.LAnd, front.LOr, front.Not:
		return exp{"libc.Bool(" + g.cond(n).s + ")", 7}
	case front.PtrAdd:
		if n.Type.ToShared() {
			return exp{g.pointer(g.pointee(n)), 7}
		}
		return g.move(n.Type, g.typed(n.L), n.R)
	case front.PtrDiff:
		l, r := g.typed(n.L), g.typed(n.R)
		if n.L.Type.ToShared() {
			d := "int64(" + g.sharedDiff(n.L.Type, l, r) + ")"
			switch t := n.L.Type.Elem; {
			case t.PerThread():
				return exp{fmt.Sprintf("%s / int64(%d*upc.Threads())", d, t.Elems()), 5}
			case !t.Single():
				return exp{fmt.Sprintf("%s / %d", d, t.Elems()), 5}
			}
			return exp{d, 7}
		}
		if n.L.Type.Elem.Kind == front.Void {
			return exp{fmt.Sprintf("libc.Diff((*int8)(%s), (*int8)(%s))", l.s, r.s), 7}
		}
		return exp{fmt.Sprintf("libc.Diff(%s, %s)", l.s, r.s), 7}
	case front.Assign:
		return g.assign(n, true)
	case front.AssignOp:
		return g.assignOp(n, true)
	case front.IncDec:
		return g.incdec(n, true)
	case front.Comma:
		g.discard(n.L)
		if n.R.Type.Kind == front.Void {
			g.discard(n.R)
			return exp{}
		}
		if constant(n.R) {
			// Those around it take it for a value that is computed, and Go would not convert a
			// constant to a type that does not have it.
			return exp{g.temp(g.goType(n.Type), g.expr(n.R).s), 7}
		}
		return g.expr(n.R)
	case front.Cond:
		return g.conditional(n)
	case front.Call:
		if n.Type.Kind == front.Void {
			g.perform(n)
			return exp{}
		}
		if effectsOf(n) == 0 {
			return g.call(n)
		}
		// Calls happen in the order of the program, among themselves and with
		// assignments.
		return exp{g.temp(g.goType(n.Type), g.call(n).s), 7}
	case front.Cast:
		return g.cast(n)
	case front.Decay:
		return g.decay(n)
	case front.Addr:
		if n.L.Type.IsShared() {
			return exp{g.pointer(g.where(n.L)), 7}
		}
		return g.address(n.L)
	case front.Var, front.Deref, front.Index, front.Member, front.Compound:
		if n.Type.Kind == front.Func {
			return g.expr(&front.Node{Op: front.Decay, Pos: n.Pos, Type: n.Type, L: n})
		}
		if isBits(n) {
			word := ""
			if n.Type.IsShared() {
				word = g.get(n).s
			} else {
				word = g.place(n).s
			}
			return exp{fmt.Sprintf("libc.Bits(%s, %d, %d)", word, n.Field.Shift, n.Field.Bits), 7}
		}
		if !n.Type.IsShared() {
			return g.place(n).exp
		}
		if w, i, ok := g.windowOf(n); ok {
			return exp{fmt.Sprintf("%s.Get(upc.Thread, %s)", w.name, i), 7}
		}
		if p, ok := g.private(n); ok {
			return p.exp
		}
		return g.get(n)
	}
	panic(fmt.Sprintf("gen: expression %d", n.Op))
}

func (g *gen) unary(n *front.Node) string {
	s := g.operand(g.expr(n), 6)
	if strings.HasPrefix(s, "-") {
		return "(" + s + ")"
	}
	return s
}

func (g *gen) float(n *front.Node) exp {
	f := n.F
	bits := 64
	if n.Type.Kind == front.Float {
		bits = 32
	}
	conv := func(s string) exp {
		if bits == 32 {
			s = "float32(" + s + ")"
		}
		return exp{s, 7}
	}
	switch {
	case math.IsInf(f, 1):
		return conv("math.Inf(1)")
	case math.IsInf(f, -1):
		return conv("math.Inf(-1)")
	case math.IsNaN(f):
		return conv("math.NaN()")
	case f == 0 && math.Signbit(f):
		return conv("math.Copysign(0, -1)")
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if f < 0 {
		return exp{s, 6}
	}
	return exp{s, 7}
}

func (g *gen) conditional(n *front.Node) exp {
	c := g.cond(n.L)
	if n.Type.Kind == front.Void {
		g.discard(n)
		return exp{}
	}
	var l, r exp
	lp := g.capture(func() { l = g.expr(n.R) })
	rp := g.capture(func() { r = g.expr(n.C) })
	t := g.temp(g.goType(n.Type), "")
	g.emit("if %s {\n%s%s = %s\n} else {\n%s%s = %s\n}", c.s, lp, t, l.s, rp, t, r.s)
	return exp{t, 7}
}

func (g *gen) decay(n *front.Node) exp {
	l := n.L
	switch {
	case l.Op == front.Str:
		return exp{g.literal(l.Str), 7}
	case l.Type.Kind == front.Func && l.Op == front.Var:
		if l.Sym.Go == "" {
			return exp{g.libraryFunc(n), 7}
		}
		return exp{l.Sym.Go, 7}
	case l.Type.Kind == front.Func:
		return g.expr(l.L)
	case l.Type.IsShared():
		return exp{g.pointer(g.where(l)), 7}
	}
	return exp{"&" + g.array(l) + "[0]", 6}
}

// cast is a conversion.
func (g *gen) cast(n *front.Node) exp {
	from, to := n.L.Type, n.Type
	if to.Kind == front.Void {
		g.discard(n.L)
		return exp{}
	}
	if to.Kind == front.Bool {
		return exp{"uint8(" + "libc.Bool(" + g.cond(n.L).s + "))", 7}
	}
	gt := g.goType(to)
	switch {
	case from.Arithmetic() && to.Arithmetic():
		e := g.expr(n.L)
		if g.goType(from) == gt && !constant(n.L) {
			return e
		}
		if n.L.Op == front.FNum {
			return exp{gt + "(" + "libc.Float(" + e.s + "))", 7}
		}
		return exp{gt + "(" + e.s + ")", 7}
	case from.Kind == front.Pointer && to.Kind == front.Pointer:
		return g.castPointer(n)
	case from.Kind == front.Pointer && from.ToShared():
		return exp{gt + "(" + g.expr(n.L).s + ")", 7}
	case from.Kind == front.Pointer:
		if from.Elem.Kind == front.Func {
			return exp{fmt.Sprintf("%s(uintptr(libc.Recast[unsafe.Pointer](%s)))", gt, g.typed(n.L).s), 7}
		}
		return exp{fmt.Sprintf("%s(uintptr(unsafe.Pointer(%s)))", gt, g.expr(n.L).s), 7}
	case to.Kind == front.Pointer:
		p := fmt.Sprintf("libc.FromInt(int64(%s))", g.expr(n.L).s)
		switch to.Elem.Kind {
		case front.Void:
			return exp{p, 7}
		case front.Func:
			return exp{fmt.Sprintf("libc.Recast[%s](%s)", gt, p), 7}
		}
		return exp{fmt.Sprintf("(%s)(%s)", gt, p), 7}
	}
	return g.expr(n.L)
}

func (g *gen) castPointer(n *front.Node) exp {
	from, to := n.L.Type, n.Type
	e := g.expr(n.L)
	gt := g.goType(to)
	switch {
	case from.ToShared() && to.ToShared():
		a, b := pointerKind(from), pointerKind(to)
		s := g.operand(e, 7)
		generic := from.Elem.Kind == front.Void || to.Elem.Kind == front.Void
		f, t := from.Elem.Base(), to.Elem.Base()
		switch {
		case a == "Phased" && b == "Phaseless":
			return exp{s + ".Phaseless()", 7}
		case a == "Phaseless" && b == "Phased":
			return exp{s + ".Phased()", 7}
		case a == "Phaseless" || generic || f.Block == t.Block && f.Size() == t.Size():
			return e
		}
		return exp{s + ".ResetPhase()", 7}
	case from.ToShared():
		s := g.operand(e, 7)
		if pointerKind(from) == "Phased" {
			s += ".Phaseless()"
		}
		size := int64(1)
		if from.Elem.Kind != front.Void && from.Elem.Complete() && !from.Elem.PerThread() {
			size = from.Elem.Base().Size()
		}
		p := fmt.Sprintf("upc.Local(%s, %d)", s, size)
		if to.Elem.Kind == front.Void {
			return exp{p, 7}
		}
		return exp{fmt.Sprintf("(%s)(%s)", gt, p), 7}
	}
	if g.goType(from) == gt {
		return e
	}
	if from.Elem.Kind == front.Func || to.Elem.Kind == front.Func {
		return exp{fmt.Sprintf("libc.Recast[%s](%s)", gt, g.typed(n.L).s), 7}
	}
	p := e.s
	if from.Elem.Kind != front.Void {
		p = "unsafe.Pointer(" + p + ")"
	}
	if to.Elem.Kind == front.Void {
		return exp{p, 7}
	}
	return exp{fmt.Sprintf("(%s)(%s)", gt, p), 7}
}

// private is a shared place as a private one, where it is known to be this thread's.
func (g *gen) private(n *front.Node) (place, bool) {
	if p, ok := g.slice(n); ok {
		return p, true
	}
	if g.local == nil || n.Mem == front.Strict || !scalarAccess(n.Type) {
		return place{}, false
	}
	return g.local.place(g, n)
}

// direct is the value of n where nothing else happens in the statement.
func (g *gen) direct(n *front.Node) exp {
	if n.Op == front.Call && n.Type.Kind != front.Void {
		return g.call(n)
	}
	return g.expr(n)
}

// perform is a call as a statement.
func (g *gen) perform(n *front.Node) {
	e := g.call(n)
	if _, r, _ := routineOf(n); r.value {
		e.s = "_ = " + e.s
	}
	g.emit("%s", e.s)
}

// call is a call of a function.
func (g *gen) call(n *front.Node) exp {
	var values []exp
	for i, a := range n.List {
		if i < len(n.L.Type.Elem.Params) {
			values = append(values, g.expr(a))
		} else {
			values = append(values, g.typed(a))
		}
	}
	if n.L.Op == front.Decay && n.L.L.Op == front.Var && n.L.L.Sym.Go == "" && n.L.L.Sym.Header {
		return g.library(n, values)
	}
	f := g.operand(g.expr(n.L), 7)
	args := append([]string{"upc"}, texts(values)...)
	if t := n.L.Type.Elem; t.Variadic {
		at := 1 + len(t.Params)
		for i := at; i < len(args); i++ {
			args[i] = word(n.List[i-1], args[i])
		}
		args = append(args[:at], "upc.c.Push("+strings.Join(args[at:], ", ")+")")
	}
	return exp{f + "(" + strings.Join(args, ", ") + ")", 7}
}

// word is variable argument n, which is s, as 64 bits.
func word(n *front.Node, s string) string {
	switch t := n.Type; {
	case n.Op == front.Num:
		return strconv.FormatUint(uint64(n.I), 10)
	case t.Floating():
		return "math.Float64bits(" + s + ")"
	case t.Integer() || t.ToShared():
		return "uint64(" + s + ")"
	case t.Elem.Kind == front.Func:
		return "uint64(uintptr(libc.Recast[unsafe.Pointer](" + s + ")))"
	}
	return "uint64(uintptr(unsafe.Pointer(" + s + ")))"
}

// texts are expressions as arguments of a call.
func texts(list []exp) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.s)
	}
	return out
}
