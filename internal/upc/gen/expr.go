package gen

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// exp is an expression of Go. A constant has no type.
type exp = ir.Expr

// Types, values and functions of generated code.
var (
	goInt     = ir.Named("int")
	goInt64   = ir.Named("int64")
	goUint8   = ir.Named("uint8")
	goUint32  = ir.Named("uint32")
	goUint64  = ir.Named("uint64")
	goPtr     = ir.Named("unsafe.Pointer")
	goUintptr = ir.Named("uintptr")
	phaseless = ir.Named("rt.Phaseless")

	upc      = ir.Name("upc")
	thread   = ir.Name("upc.Thread")
	threads  = ir.CallTo("upc.Threads")
	myThread = ir.CallTo("upc.MyThread")
	underway = ir.Name("upc.forall")
)

func num(v int64) exp { return ir.Int(v) }

// boolean is a condition as an int of C.
func boolean(c exp) exp { return ir.CallTo("libc.Bool", c) }

// recast is e as a t, of which one is a function.
func recast(t ir.Type, e exp) exp { return ir.CallOf(ir.Generic("libc.Recast", t), e) }

// unsafely is pointer e as an unsafe.Pointer.
func unsafely(e exp) exp { return ir.Convert(goPtr, e) }

var ops = map[front.Op]string{
	front.Mul: "*", front.Div: "/", front.Mod: "%", front.And: "&", front.Shl: "<<", front.Shr: ">>",
	front.Add: "+", front.Sub: "-", front.Or: "|", front.Xor: "^",
	front.Eq: "==", front.Ne: "!=", front.Lt: "<", front.Le: "<=", front.Gt: ">", front.Ge: ">=",
	front.LAnd: "&&", front.LOr: "||",
}

func constant(n *front.Node) bool { return n.Op == front.Num || n.Op == front.FNum }

// typed is an expression whose type does not depend on where it stands.
func (g *gen) typed(n *front.Node) exp {
	e := g.expr(n)
	if !constant(n) {
		return e
	}
	return ir.Convert(g.goType(n.Type), e)
}

// cond is n as a condition.
func (g *gen) cond(n *front.Node) exp {
	switch n.Op {
	case front.Num:
		if n.I != 0 {
			return ir.True
		}
		return ir.False
	case front.Eq, front.Ne, front.Lt, front.Le, front.Gt, front.Ge:
		return g.compare(n)
	case front.Not:
		return ir.Not(g.cond(n.L))
	case front.LAnd, front.LOr:
		l := g.cond(n.L)
		var r exp
		pre := g.capture(func() { r = g.cond(n.R) })
		if len(pre) == 0 {
			if n.Op == front.LAnd && r.Is(ir.True) || n.Op == front.LOr && r.Is(ir.False) {
				return l
			}
			return ir.Op(l, ops[n.Op], r)
		}
		t := g.temp(ir.Named("bool"), l)
		c := t
		if n.Op == front.LOr {
			c = ir.Not(t)
		}
		g.emit(ir.When(c, append(pre, ir.Set(t, r)), nil))
		return t
	case front.Cast:
		if n.Type.Kind == front.Bool {
			return g.cond(n.L)
		}
	}
	return ir.Op(g.typed(n), "!=", zero(n.Type))
}

// compare is a comparison, as a condition.
func (g *gen) compare(n *front.Node) exp {
	o := ops[n.Op]
	t := n.L.Type
	l, r := g.expr(n.L), g.expr(n.R)
	if t.Kind != front.Pointer {
		if constant(n.L) && constant(n.R) {
			l = g.typed(n.L)
		}
		return ir.Op(l, o, r)
	}
	equal := n.Op == front.Eq || n.Op == front.Ne
	switch {
	case t.ToShared() && equal && (constant(n.L) || constant(n.R)):
		// The null pointer has no phase.
		return ir.Op(l, o, r)
	case t.ToShared() && equal && pointerKind(t) == phased:
		e := ir.Method(l, "Equal", r)
		if n.Op == front.Ne {
			e = ir.Not(e)
		}
		return e
	case t.ToShared() && !equal:
		return ir.Op(g.sharedDiff(n.L.Type, l, r), o, num(0))
	case equal && t.Elem.Kind == front.Func && !constant(n.L) && !constant(n.R):
		return ir.Op(recast(goPtr, l), o, recast(goPtr, r))
	case equal:
		return ir.Op(l, o, r)
	}
	return ir.Op(ir.Convert(goUintptr, unsafely(l)), o, ir.Convert(goUintptr, unsafely(r)))
}

// sharedDiff is the difference of two pointers-to-shared of type t, elements.
func (g *gen) sharedDiff(t *front.Type, l, r exp) exp {
	b := t.Elem.Base()
	switch {
	case b.Kind == front.Void:
		g.refuse(g.line, "comparison of 'shared void *' but for equality")
	case b.Block == 0:
		return ir.Method(l, "SubLocal", r, num(b.Size()))
	case b.Block == 1:
		return ir.Method(l, "Sub", r, num(b.Size()), threads)
	}
	return ir.Method(l, "Sub", r, num(b.Block), num(b.Size()), threads)
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
	case front.Statements:
		g.emit(ir.Inside(g.capture(func() {
			if ends, _ := g.block(n); !ends && n.L != nil {
				g.discard(n.L)
			}
		})))
	case front.Call:
		g.perform(n)
	case front.Zero:
		g.emit(ir.Set(g.place(n.L), ir.Literals(g.goType(n.L.Type))))
	case front.Room:
		p, mark := g.temp(goPtr, exp{}), g.variable(n.C.Sym)
		was := mark
		if g.fn.Stack {
			was = ir.Nil // what alloca gave out may lie above
		}
		g.emit(ir.Pair(mark, p, "=", ir.CallTo("libc.Room", ir.Address(ir.Name("upc.c")), was, g.typed(n.R))))
		g.emit(ir.Set(g.place(n.L), ir.Convert(g.goType(n.L.Type), p)))
		// The arrays that are declared further down lay above, and their lifetimes are over (C99 6.2.4p6).
		for _, l := range g.fn.Locals[1+slices.Index(g.fn.Locals, n.C.Sym):] {
			if l.Mark {
				g.emit(ir.Set(g.variable(l), ir.Nil))
			}
		}
	case front.SetStr:
		if n.L.Type.IsShared() {
			for i := range len(n.Str) {
				at := &front.Node{Op: front.Index, Pos: n.Pos, Type: n.L.Type.Elem, L: n.L, R: &front.Node{Op: front.Num, Type: &front.Type{Kind: front.Long}, I: int64(i)}, Mem: front.Relaxed}
				v := int64(int8(n.Str[i]))
				if n.L.Type.Elem.Unsigned {
					v = int64(n.Str[i])
				}
				g.put(at, num(v))
			}
			return
		}
		g.emit(ir.Do(ir.CallTo("libc.SetStr", ir.Slice(g.place(n.L), exp{}, exp{}), ir.Lit(strconv.Quote(n.Str)))))
	case front.Cond:
		l := g.capture(func() { g.discard(n.R) })
		r := g.capture(func() { g.discard(n.C) })
		c := g.cond(n.L)
		switch {
		case len(l) == 0 && len(r) == 0:
			g.emit(ir.Drop(c))
		case len(l) == 0:
			g.emit(ir.When(ir.Not(c), r, nil))
		default:
			g.emit(ir.When(c, l, r))
		}
	case front.LAnd, front.LOr:
		c := g.cond(n.L)
		if n.Op == front.LOr {
			c = ir.Not(c)
		}
		g.emit(ir.When(c, g.capture(func() { g.discard(n.R) }), nil))
	case front.Cast:
		g.discard(n.L)
	case front.Num, front.FNum, front.Str:
	default:
		if n.Type.Kind == front.Void {
			g.expr(n)
			return
		}
		g.emit(ir.Drop(g.expr(n)))
	}
}

// place is a private place: an expression that can be assigned to.
func (g *gen) place(n *front.Node) exp {
	switch n.Op {
	case front.Var:
		s := n.Sym
		switch {
		case s.Storage == front.Global && s.Go == "":
			r, _ := opt.LibraryVariable(s)
			return ir.Deref(ir.Form(ir.Call, ir.PackagesOf(r.Go), r.Go))
		case s.Storage == front.Global:
			v := ir.Name("upc.g." + s.Go)
			if g.fn != nil {
				v = ir.Field(statics, s.Go)
			}
			if aligned(s.Def) {
				v = ir.Deref(v)
			}
			return v
		case opt.OnStack(s):
			return ir.Deref(ir.Name(s.Go))
		}
		return g.variable(s)
	case front.Deref:
		return ir.Deref(g.typed(n.L))
	case front.Index:
		if e, ok := g.rowed.element(g, n); ok {
			return e
		}
		p := g.place(n.L)
		return ir.At(p, g.expr(n.R))
	case front.Member:
		b := g.place(n.L)
		if n.L.Type.Info.Packed {
			of := unsafely(ir.Address(b))
			if n.Field.Offset != 0 {
				of = ir.CallTo("unsafe.Add", of, num(n.Field.Offset))
			}
			return ir.Deref(ir.Convert(ir.PointerTo(g.goType(n.Type)), of))
		}
		return ir.Field(b, ident(n.Field.Name))
	case front.Compound:
		for _, i := range n.List {
			g.discard(i)
		}
		return g.place(n.L)
	case front.Str:
		return ir.Deref(ir.Convert(ir.PointerTo(g.goType(n.Type)), unsafely(g.literal(n.Str))))
	}
	// A structure that is a value.
	return g.temp(g.goType(n.Type), g.expr(n))
}

// address is a pointer to a private place.
func (g *gen) address(n *front.Node) exp {
	if mayEnd(n) {
		a := g.array(n.L)
		return ir.CallTo("libc.At", ir.Address(ir.At(a, num(0))), g.expr(opt.StripLong(n.R)))
	}
	if n.Op == front.Index {
		a := g.array(n.L)
		return ir.Address(ir.At(a, g.expr(n.R)))
	}
	return ir.Address(g.place(n))
}

// mayEnd reports whether n may be the place behind an array's last element, which Go refuses to
// index.
func mayEnd(n *front.Node) bool {
	return n.Op == front.Index && !(n.R.Op == front.Num && n.R.I < n.L.Type.Len)
}

// array is a private array where an index follows that is not looked at: for its address.
func (g *gen) array(n *front.Node) exp {
	for l := n; l.Op == front.Index; l = l.L {
		if mayEnd(l) {
			return g.address(n)
		}
	}
	return g.place(n)
}

// where is a place in shared memory: index elements after base, which is a pointer of the
// kind that its type has.
type where struct {
	base   exp
	index  exp // or none
	block  int64
	size   int64
	phased bool
}

func (g *gen) where(n *front.Node) where {
	b := n.Type.Base()
	switch n.Op {
	case front.Var:
		t := &front.Type{Kind: front.Pointer, Elem: n.Sym.Type}
		return where{base: ir.Name("upc.s." + n.Sym.Go), block: b.Block, size: b.Size(), phased: pointerKind(t) == phased}
	case front.Deref:
		return g.pointee(n.L)
	case front.Index:
		w := g.where(n.L)
		return g.further(w, n.R, n.Type)
	case front.Member:
		at := g.where(n.L).phaseless()
		if n.Field.Offset != 0 {
			at = ir.Method(at, "AddLocal", num(n.Field.Offset), num(1))
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
	if n.Op == front.Decay || n.Op == front.Addr {
		return g.where(n.L)
	}
	b := n.Type.Elem.Base()
	return where{base: g.expr(n), block: b.Block, size: b.Size(), phased: pointerKind(n.Type) == phased}
}

// index is an index, of Go's type int unless it is a constant.
func (g *gen) index(i *front.Node) exp {
	e := g.expr(opt.StripLong(i))
	if constant(i) {
		return e
	}
	return ir.Convert(goInt, e)
}

// further is i elements of type t behind w.
func (g *gen) further(w where, i *front.Node, t *front.Type) where {
	if i.Op == front.Num && i.I == 0 {
		return w
	}
	e := g.index(i)
	switch k := t.Elems(); {
	case t.PerThread():
		e = ir.Op(ir.Op(e, "*", num(k)), "*", threads)
	case k != 1 && i.Op == front.Num:
		e = num(i.I * k)
	case k != 1:
		e = ir.Op(e, "*", num(k))
	}
	if !w.index.Zero() {
		e = ir.Op(w.index, "+", e)
	}
	w.index = e
	return w
}

// pointer is w as a pointer-to-shared of its kind.
func (w where) pointer() exp {
	switch {
	case w.index.Zero():
		return ir.Whole(w.base)
	case w.block == 0 && w.phased:
		return ir.Group(ir.Op(ir.Whole(w.base), "+", ir.Convert(ir.Named("rt.Phased"), ir.Op(ir.Group(w.index), "*", num(w.size)))))
	case w.block == 0:
		return ir.Method(w.base, "AddLocal", w.index, num(w.size))
	case !w.phased:
		return ir.Method(w.base, "Add", w.index, num(w.size), threads)
	}
	return ir.Method(w.base, "Add", w.index, num(w.block), num(w.size), threads)
}

// phaseless is w as rt's accesses take it.
func (w where) phaseless() exp {
	p := w.pointer()
	if w.phased {
		p = ir.Method(p, "Phaseless")
	}
	return p
}

// access is the function that gets or puts n, and what it takes first.
func (g *gen) access(n *front.Node, f string) (fn, of exp) {
	strict := ""
	if n.Mem == front.Strict {
		strict = "Strict"
	}
	if opt.ScalarAccess(n.Type) {
		return ir.Generic("rt."+f+strict, g.goType(n.Type)), thread
	}
	f = strings.ToLower(f) + "Any"
	g.helpers[f], g.helpers[f+strict] = true, true
	return ir.Generic(f+strict, g.goType(n.Type)), upc
}

// get reads shared memory.
func (g *gen) get(n *front.Node) exp {
	if g.group != nil {
		return g.groupGet(n, func() exp { return g.where(n).phaseless() })
	}
	p := g.where(n).phaseless()
	f, of := g.access(n, "Get")
	return ir.CallOf(f, of, p).By(ir.Get)
}

// put writes shared memory.
func (g *gen) put(n *front.Node, v exp) { g.putAt(n, g.where(n).phaseless(), v) }

func (g *gen) putAt(n *front.Node, p, v exp) {
	if g.group != nil {
		g.emit(ir.Do(ir.CallOf(ir.Generic("rt.GroupPut", g.goType(n.Type)), g.group.name, p, v).By(ir.GroupPut)))
		return
	}
	f, of := g.access(n, "Put")
	g.emit(ir.Do(ir.CallOf(f, of, p, v).By(ir.Put)))
}

// setBits is a bit-field after next of its value before, or that before if post.
func (g *gen) setBits(n *front.Node, next func(old exp) exp, want, post bool) exp {
	f := n.Field
	shift, bits := num(f.Shift), num(f.Bits)
	t := g.goType(n.Type)
	var at, word, pointer exp
	if f.Bytes {
		pointer = g.temp(goPtr, bytesOf(g, n))
		old := ir.CallOf(ir.Generic("libc.PackedBits", t), pointer, shift, bits)
		if post && want {
			old = g.temp(t, old)
		}
		set := ir.CallTo("libc.SetPackedBits", pointer, shift, bits, ir.Convert(t, next(old)))
		if want && !post {
			return g.temp(t, set)
		}
		g.emit(ir.Do(set))
		return old
	}
	if n.Type.IsShared() {
		at = g.temp(phaseless, g.where(n).phaseless())
		word = g.temp(t, g.getAt(n, at))
		pointer = ir.Address(word)
	} else {
		pointer = g.temp(ir.PointerTo(t), g.address(n))
		word = ir.Deref(pointer)
	}
	old := ir.CallTo("libc.Bits", word, shift, bits)
	if post && want {
		old = g.temp(t, old)
	}
	set := ir.CallTo("libc.SetBits", pointer, shift, bits, next(old))
	if want && !post {
		old = g.temp(t, set)
	} else {
		g.emit(ir.Do(set))
	}
	if n.Type.IsShared() {
		g.putAt(n, at, word)
	}
	return old
}

// bytesOf is the address of a bit-field's bytes.
func bytesOf(g *gen, n *front.Node) exp {
	if n.Type.IsShared() {
		g.refuse(n.Pos, "shared bit-fields that are packed, but for those in a word of their type ('%s'): copy the structure to a private one", n.Field.Name)
	}
	return ir.CallTo("unsafe.Add", unsafely(ir.Address(g.place(n.L))), num(n.Field.Offset))
}

// assign is L = R, and what it is worth.
func (g *gen) assign(n *front.Node, want bool) exp {
	if opt.IsBits(n.L) {
		v := g.temp(g.goType(n.L.Type), g.expr(n.R))
		return g.setBits(n.L, func(exp) exp { return v }, want, false)
	}
	if n.L.Type.IsShared() {
		v := g.expr(n.R)
		if want {
			v = g.temp(g.goType(n.Type), v)
		}
		if w, i, ok := g.windowOf(n.L); ok {
			w.put(g, i, v)
		} else if p, ok := g.private(n.L); ok {
			g.emit(ir.Set(p, v))
		} else {
			g.put(n.L, v)
		}
		return v
	}
	p := g.place(n.L)
	v := g.direct(n.R)
	if want && n.L.Op != front.Var {
		v = g.temp(g.goType(n.Type), v)
	}
	if ir.Same(p, v) { // vet refuses assignments of a variable to itself
		if p.Kind != ir.Ident {
			g.emit(ir.Drop(p)) // which may lead nowhere
		}
		return v
	}
	g.emit(ir.Set(p, v))
	if want && n.L.Op == front.Var {
		return p
	}
	return v
}

// combine is of op R in type Work, as a value of L's type.
func (g *gen) combine(n *front.Node, of exp) exp {
	t := n.L.Type
	if n.Sub == front.PtrAdd {
		return g.move(t, of, n.R)
	}
	lt := g.goType(t)
	wt := lt
	if n.Work != nil {
		wt = g.goType(n.Work)
	}
	complexes := wt != lt && n.Work.Complex()
	switch {
	case complexes && !t.Complex():
		of = ir.CallTo("libc.Complex", ir.Convert(ir.Named("float64"), of), ir.Lit("0.0"))
		fallthrough
	case wt != lt:
		of = ir.Convert(wt, of)
	}
	e := g.arith(n.Sub, n.Work, of, n.R)
	switch {
	case wt == lt:
		return e
	case t.Kind == front.Bool:
		return ir.Convert(goUint8, boolean(ir.Op(e, "!=", num(0))))
	case complexes && !t.Complex():
		return ir.Convert(lt, ir.CallTo("real", e))
	}
	return ir.Convert(lt, e)
}

// assignOp is L op= R.
func (g *gen) assignOp(n *front.Node, want bool) exp {
	if opt.IsBits(n.L) {
		return g.setBits(n.L, func(old exp) exp { return g.combine(n, old) }, want, false)
	}
	if n.L.Type.IsShared() {
		if w, i, ok := g.windowOf(n.L); ok {
			_, v := w.update(g, n.L, i, false, want, func(old exp) exp { return g.combine(n, old) })
			return v
		}
		if p, ok := g.private(n.L); ok {
			return g.update(n, p, want)
		}
		if !want && groupUpdate(g, n) {
			return exp{}
		}
		at := g.temp(phaseless, g.where(n.L).phaseless())
		v := g.combine(n, g.getAt(n.L, at))
		if want {
			v = g.temp(g.goType(n.Type), v)
		}
		g.putAt(n.L, at, v)
		return v
	}
	return g.update(n, g.place(n.L), want)
}

// getAt is get of n at p.
func (g *gen) getAt(n *front.Node, p exp) exp {
	if !opt.ScalarAccess(n.Type) && !n.Type.Complex() {
		g.refuse(n.Pos, "this operator on a shared '%v'", n.Type)
	}
	if g.group != nil {
		return g.groupGet(n, func() exp { return p })
	}
	f, of := g.access(n, "Get")
	return ir.CallOf(f, of, p).By(ir.Get)
}

// pointed is place p by a pointer, so that it is computed once.
func (g *gen) pointed(n *front.Node, p exp) exp {
	t := ir.PointerTo(g.goType(n.L.Type))
	return ir.Deref(g.temp(t, ir.Address(p))).By(p.Access)
}

func (g *gen) update(n *front.Node, p exp, want bool) exp {
	o, direct := ops[n.Sub]
	if _, real := n.R.Real(); real { // which other arithmetic than that of complex numbers is for
		direct = false
	}
	direct = direct && g.goType(n.Work) == g.goType(n.L.Type)
	if p.Computes && (!direct || want) {
		p = g.pointed(n, p)
	}
	if direct && n.Sub != front.Shl && n.Sub != front.Shr {
		g.emit(ir.Update(p, o+"=", g.expr(n.R)))
	} else {
		g.emit(ir.Set(p, g.combine(n, p)))
	}
	if want && n.L.Op != front.Var {
		return g.temp(g.goType(n.Type), p)
	}
	return p
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
	if opt.IsBits(n.L) {
		return g.setBits(n.L, func(old exp) exp { return g.combine(op, old) }, want, n.Post)
	}
	if !t.IsShared() {
		return g.step(n, op, g.place(n.L), want)
	}
	var old, v exp
	next := func(old exp) exp { return g.combine(op, old) }
	if w, i, ok := g.windowOf(n.L); ok {
		old, v = w.update(g, n.L, i, true, want && !n.Post, next)
	} else {
		if p, ok := g.private(n.L); ok {
			return g.step(n, op, p, want)
		}
		if !want && groupUpdate(g, op) {
			return exp{}
		}
		at := g.temp(phaseless, g.where(n.L).phaseless())
		old = g.temp(g.goType(n.Type), g.getAt(n.L, at))
		if v = next(old); want && !n.Post {
			v = g.temp(g.goType(n.Type), v)
		}
		g.putAt(n.L, at, v)
	}
	if n.Post {
		return old
	}
	return v
}

func (g *gen) step(n, op *front.Node, p exp, want bool) exp {
	sum := op.Sub == front.PtrAdd || n.L.Type.Kind == front.Bool // what Go's ++ is not
	if p.Computes && (want || sum) {
		p = g.pointed(n, p)
	}
	var old exp
	if want && n.Post {
		old = g.temp(g.goType(n.Type), p)
	}
	switch {
	case sum:
		g.emit(ir.Set(p, g.combine(op, p)))
	case n.I > 0:
		g.emit(ir.Update(p, "++"))
	default:
		g.emit(ir.Update(p, "--"))
	}
	switch {
	case want && n.Post:
		return old
	case want && n.L.Op != front.Var:
		return g.temp(g.goType(n.Type), p)
	}
	return p
}

// arith is l op r in type t.
func (g *gen) arith(op front.Op, t *front.Type, l exp, rn *front.Node) exp {
	if x, real := rn.Real(); real && t.Complex() {
		return withReal(g, op, t, l, g.expr(x))
	}
	if op != front.Shl && op != front.Shr {
		return ir.Op(l, ops[op], operand(g, op, rn))
	}
	most := t.Size()*8 - 1
	if rn.Op == front.Num {
		return ir.Op(l, ops[op], num(rn.I&most))
	}
	return ir.Op(l, ops[op], ir.Op(ir.Convert(goUint32, g.expr(rn)), "&", num(most)))
}

// withReal is l, a complex number, op the real number r: by its parts, as gcc has it.
func withReal(g *gen, op front.Op, t *front.Type, l, r exp) exp {
	f := "libc.Shift"
	switch op {
	case front.Mul:
		f = "libc.Scale"
	case front.Div:
		f = "libc.Unscale"
	case front.Sub:
		r = ir.Sign("-", r)
	}
	if t.Kind == front.DoubleComplex {
		return ir.CallTo(f, l, r)
	}
	return ir.Convert(g.goType(t), ir.CallTo(f, ir.Convert(ir.Named("complex128"), l), ir.Convert(ir.Named("float64"), r)))
}

// move is pointer p of type t plus i elements.
func (g *gen) move(t *front.Type, p exp, i *front.Node) exp {
	switch {
	case t.ToShared():
		b := t.Elem.Base()
		w := where{base: p, block: b.Block, size: b.Size(), phased: pointerKind(t) == phased}
		if i.Op == front.Num && i.I == 1 && t.Elem.Single() && b.Block > 0 {
			if w.phased {
				return ir.Method(p, "Next", num(b.Block), num(b.Size()), threads)
			}
			return ir.Method(p, "Next", num(b.Size()), threads)
		}
		return g.further(w, i, t.Elem).pointer()
	case t.Elem.Kind == front.Void:
		return ir.CallTo("unsafe.Add", p, g.expr(opt.StripLong(i)))
	}
	if e, ok := g.rowed.move(g, p, t.Elem, i); ok {
		return e
	}
	return ir.CallTo("libc.At", p, g.expr(opt.StripLong(i)))
}

// expr is the value of n.
func (g *gen) expr(n *front.Node) exp {
	switch n.Op {
	case front.Num:
		if n.Type.Kind == front.Pointer && !n.Type.ToShared() {
			return ir.Nil
		}
		return number(n.I, n.Type)
	case front.FNum:
		return float(n)
	case front.Threads:
		return ir.Convert(ir.Named("int32"), threads)
	case front.Mythread:
		return ir.Convert(ir.Named("int32"), myThread)
	case front.Add, front.Sub, front.Mul, front.Div, front.Mod, front.And, front.Or, front.Xor, front.Shl, front.Shr:
		if x, real := n.L.Real(); real && n.Op != front.Div {
			r, z := g.expr(x), g.expr(n.R)
			if n.Op == front.Sub {
				return withReal(g, front.Add, n.Type, ir.Sign("-", z), r)
			}
			return withReal(g, n.Op, n.Type, z, r)
		}
		l := operand(g, front.Add, n.L)
		if constant(n.L) && (n.Op == front.Shl || n.Op == front.Shr || constant(n.R)) {
			l = g.typed(n.L)
		}
		return g.arith(n.Op, n.Type, l, n.R)
	case front.Complex:
		l, r := g.expr(n.L), g.expr(n.R)
		if n.Type.Kind == front.DoubleComplex {
			return ir.CallTo("libc.Complex", l, r)
		}
		return ir.Convert(g.goType(n.Type), ir.CallTo("libc.Complex", ir.Convert(ir.Named("float64"), l), ir.Convert(ir.Named("float64"), r)))
	case front.Neg:
		return ir.Sign("-", g.expr(n.L))
	case front.BitNot:
		return ir.Sign("^", g.expr(n.L))
	case front.Eq, front.Ne, front.Lt, front.Le, front.Gt, front.Ge, front.LAnd, front.LOr, front.Not:
		return boolean(g.cond(n))
	case front.PtrAdd:
		if n.Type.ToShared() {
			return g.pointee(n).pointer()
		}
		return g.move(n.Type, g.typed(n.L), n.R)
	case front.PtrDiff:
		return g.pointerDiff(n)
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
			return g.temp(g.goType(n.Type), g.expr(n.R))
		}
		return g.expr(n.R)
	case front.Cond:
		return g.conditional(n)
	case front.Statements:
		if n.Type.Kind == front.Void {
			g.discard(n)
			return exp{}
		}
		v := g.temp(g.goType(n.Type), exp{})
		g.emit(ir.Inside(g.capture(func() {
			if ends, _ := g.block(n); !ends {
				g.emit(ir.Set(v, g.expr(n.L)))
			}
		})))
		return v
	case front.Call:
		if n.Type.Kind == front.Void {
			g.perform(n)
			return exp{}
		}
		if opt.EffectsOf(n) == 0 {
			return g.call(n)
		}
		// Calls happen in the order of the program, among themselves and with
		// assignments.
		return g.temp(g.goType(n.Type), g.call(n))
	case front.Cast:
		return g.cast(n)
	case front.Decay:
		return g.decay(n)
	case front.Addr:
		if n.L.Type.IsShared() {
			return g.where(n.L).pointer()
		}
		return g.address(n.L)
	case front.Var, front.Deref, front.Index, front.Member, front.Compound:
		return g.read(n)
	}
	panic(fmt.Sprintf("gen: expression %d", n.Op))
}

// read is the value of a place.
func (g *gen) read(n *front.Node) exp {
	shared := n.Type.IsShared()
	switch {
	case n.Type.Kind == front.Func:
		return g.expr(&front.Node{Op: front.Decay, Pos: n.Pos, Type: n.Type, L: n})
	case opt.IsBits(n) && n.Field.Bytes:
		return ir.CallOf(ir.Generic("libc.PackedBits", g.goType(n.Type)), bytesOf(g, n), num(n.Field.Shift), num(n.Field.Bits))
	case opt.IsBits(n):
		var word exp
		if shared {
			word = g.get(n)
		} else {
			word = g.place(n)
		}
		return ir.CallTo("libc.Bits", word, num(n.Field.Shift), num(n.Field.Bits))
	case !shared:
		if v, ok := g.rowed.row(n); ok {
			return v
		}
		return g.place(n)
	}
	if w, i, ok := g.windowOf(n); ok {
		return w.get(g, n, i)
	}
	if p, ok := g.private(n); ok {
		return p
	}
	return g.get(n)
}

func (g *gen) pointerDiff(n *front.Node) exp {
	l, r := g.typed(n.L), g.typed(n.R)
	if n.L.Type.ToShared() {
		d := ir.Convert(goInt64, g.sharedDiff(n.L.Type, l, r))
		switch t := n.L.Type.Elem; {
		case t.PerThread():
			return ir.Op(d, "/", ir.Convert(goInt64, ir.Op(num(t.Elems()), "*", threads)))
		case !t.Single():
			return ir.Op(d, "/", num(t.Elems()))
		}
		return d
	}
	if n.L.Type.Elem.Kind == front.Void {
		bytes := ir.PointerTo(ir.Named("int8"))
		l, r = ir.Convert(bytes, l), ir.Convert(bytes, r)
	}
	return ir.CallTo("libc.Diff", l, r)
}

// operand is n as an operand of op: a constant of an innermost loop that an instruction has to load as a variable from before the loops, since Go's
// compiler loads constants in each iteration.
func operand(g *gen, op front.Op, n *front.Node) exp {
	half, _ := math.Frexp(math.Abs(n.F))
	switch {
	case n.Op != front.FNum || g.held == nil || g.stripped == nil && g.rowed == nil:
		return g.expr(n)
	case n.F == 0 || math.IsInf(n.F, 0) || math.IsNaN(n.F) || op == front.Div && half == 0.5 || op == front.Mul && (n.F == 1 || n.F == 2):
		return float(n) // there are other instructions
	}
	e := float(n)
	t := g.goType(n.Type)
	key := t.String() + e.String()
	if g.held[key].Zero() {
		g.held[key] = g.name()
		g.holding = append(g.holding, ir.Define(g.held[key], ir.CallOf(ir.Generic("libc.Held", t), e)))
	}
	return g.held[key]
}

func float(n *front.Node) exp {
	f := n.F
	var e exp
	switch {
	case math.IsInf(f, 0):
		e = ir.CallTo("math.Inf", num(int64(math.Copysign(1, f))))
	case math.IsNaN(f):
		e = ir.CallTo("math.NaN")
	case f == 0 && math.Signbit(f):
		e = ir.CallTo("math.Copysign", num(0), num(-1))
	default:
		bits := 64
		if n.Type.Kind == front.Float {
			bits = 32
		}
		return ir.Float(f, bits)
	}
	if n.Type.Kind == front.Float {
		return ir.Convert(ir.Named("float32"), e)
	}
	return e
}

func (g *gen) conditional(n *front.Node) exp {
	if constant(n.R) && constant(n.C) && n.Type.Integer() {
		return choice(g, n)
	}
	c := g.cond(n.L)
	if n.Type.Kind == front.Void {
		g.discard(n)
		return exp{}
	}
	var l, r exp
	lp := g.capture(func() { l = g.expr(n.R) })
	rp := g.capture(func() { r = g.expr(n.C) })
	t := g.temp(g.goType(n.Type), exp{})
	g.emit(ir.When(c, append(lp, ir.Set(t, l)), append(rp, ir.Set(t, r))))
	return t
}

// choice is one of two constants without a branch, which would be guessed wrong half of the time where c is as good as
// random, and which Go's compiler leaves in where an address depends on the value. Whether a number is negative is
// its sign: SETL, which Go makes of other conditions, waits for what was in its register before.
func choice(g *gen, n *front.Node) exp {
	yes, no, c := n.R.I, n.C.I, n.L
	var mask exp
	if t := c.L; (c.Op == front.Lt || c.Op == front.Ge) && c.R.Op == front.Num && c.R.I == 0 && t.Type.Integer() && !t.Type.Unsigned && t.Type.Size() >= 4 {
		if mask = ir.Op(g.expr(t), ">>", num(t.Type.Size()*8-1)); c.Op == front.Ge {
			yes, no = no, yes
		}
	} else {
		mask = ir.Sign("-", boolean(g.cond(c)))
	}
	e := ir.Op(ir.Convert(g.goType(n.Type), mask), "&", number(yes^no, n.Type))
	if no != 0 {
		e = ir.Op(e, "^", number(no, n.Type))
	}
	return e
}

func (g *gen) decay(n *front.Node) exp {
	l := n.L
	switch {
	case l.Op == front.Str:
		if l.Type.Elem.Kind != front.Char {
			return ir.Convert(g.goType(n.Type), unsafely(g.literal(l.Str)))
		}
		return g.literal(l.Str)
	case l.Type.Kind == front.Func && l.Op == front.Var:
		if l.Sym.Go == "" {
			return g.libraryFunc(n)
		}
		if t := g.goType(n.Type); t != g.goType(&front.Type{Kind: front.Pointer, Elem: l.Sym.Def.Type}) {
			return recast(t, ir.Name(l.Sym.Go)) // one of the two has no prototype
		}
		return ir.Name(l.Sym.Go)
	case l.Type.Kind == front.Func:
		return g.expr(l.L)
	case l.Type.IsShared():
		return g.where(l).pointer()
	}
	return ir.Address(ir.At(g.array(l), num(0)))
}

// cast is a conversion.
func (g *gen) cast(n *front.Node) exp {
	from, to := n.L.Type, n.Type
	if to.Kind == front.Void {
		g.discard(n.L)
		return exp{}
	}
	if to.Kind == front.Bool {
		return ir.Convert(goUint8, boolean(g.cond(n.L)))
	}
	gt := g.goType(to)
	switch {
	case from.Complex() && to.Arithmetic():
		return ir.CallTo("real", g.expr(n.L))
	case from.Complex() && to.Complex():
		return ir.Convert(gt, g.expr(n.L))
	case from.Arithmetic() && to.Arithmetic():
		e := g.expr(n.L)
		if g.goType(from) == gt && !constant(n.L) {
			return e
		}
		if n.L.Op == front.FNum {
			e = ir.CallTo("libc.Float", e)
		}
		return ir.Convert(gt, e)
	case from.Kind == front.Pointer && to.Kind == front.Pointer:
		return g.castPointer(n)
	case from.Kind == front.Pointer && from.ToShared():
		return ir.Convert(gt, g.expr(n.L))
	case from.Kind == front.Pointer:
		if from.Elem.Kind == front.Func {
			return ir.Convert(gt, ir.Convert(goUintptr, recast(goPtr, g.typed(n.L))))
		}
		return ir.Convert(gt, ir.Convert(goUintptr, unsafely(g.expr(n.L))))
	case to.Kind == front.Pointer:
		p := ir.CallTo("libc.FromInt", ir.Convert(goInt64, g.expr(n.L)))
		switch to.Elem.Kind {
		case front.Void:
			return p
		case front.Func:
			return recast(gt, p)
		}
		return ir.Convert(gt, p)
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
		generic := from.Elem.Kind == front.Void || to.Elem.Kind == front.Void
		f, t := from.Elem.Base(), to.Elem.Base()
		switch {
		case a != b:
			return ir.Method(e, b)
		case a == "Phaseless" || generic || f.Block == t.Block && f.Size() == t.Size():
			return e
		}
		return ir.Method(e, "ResetPhase")
	case from.ToShared():
		if pointerKind(from) == phased {
			e = ir.Method(e, "Phaseless")
		}
		size := int64(1)
		if from.Elem.Kind != front.Void && from.Elem.Complete() && !from.Elem.PerThread() {
			size = from.Elem.Base().Size()
		}
		e = ir.CallTo("upc.Local", ir.Whole(e), num(size))
	case g.goType(from) == gt:
		return e
	case from.Elem.Kind == front.Func || to.Elem.Kind == front.Func:
		return recast(gt, g.typed(n.L))
	case from.Elem.Kind != front.Void:
		e = unsafely(e)
	}
	if to.Elem.Kind == front.Void {
		return e
	}
	return ir.Convert(gt, e)
}

// private is a shared place as a private one, where it is known to be this thread's.
func (g *gen) private(n *front.Node) (exp, bool) {
	if p, ok := g.strip(n); ok {
		return p, true
	}
	if g.o.Checked || g.local == nil || n.Mem == front.Strict || !opt.ScalarAccess(n.Type) {
		return exp{}, false
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
	g.unused = true
	e := g.call(n)
	if e.Kind == ir.Call {
		g.emit(ir.Do(e))
	} else {
		g.emit(ir.Drop(e))
	}
}

// call is a call of a function.
func (g *gen) call(n *front.Node) exp {
	var values []exp
	unused := g.unused
	if g.unused = false; n.L.Type.Elem.Old {
		return oldCall(g, n, unused)
	}
	library := n.L.Op == front.Decay && n.L.L.Op == front.Var && n.L.L.Sym.Go == "" && n.L.L.Sym.Header
	var f exp
	if !library {
		f = g.expr(n.L)
	}
	pre := g.capture(func() {
		for i, a := range n.List {
			if i < len(n.L.Type.Elem.Params) {
				values = append(values, g.expr(a))
			} else {
				values = append(values, g.typed(a))
			}
		}
	})
	if len(pre) > 0 && f.Kind > ir.Ident { // which function it is is computed before the arguments, as compilers do
		f = g.temp(g.goType(n.L.Type), f)
	}
	g.emit(pre...)
	if library {
		return g.library(n, values)
	}
	args := append([]exp{upc}, values...)
	if t := n.L.Type.Elem; t.Variadic {
		at := 1 + len(t.Params)
		for i := at; i < len(args); i++ {
			args[i] = word(n.List[i-1], args[i])
		}
		args = append(args[:at:at], ir.CallTo("upc.c.Push", args[at:]...))
	}
	return ir.CallOf(f, args...)
}

// oldCall is a call of a function without a prototype: with arguments as its definition takes them, if that is known, else as
// they are converted by default.
func oldCall(g *gen, n *front.Node, unused bool) exp {
	args := []exp{upc}
	if n.L.Op == front.Decay && n.L.L.Op == front.Var {
		s := n.L.L.Sym
		params := s.Def.Type.Params
		if len(n.List) < len(params) || s.Def.Type.Variadic {
			g.refuse(n.Pos, "this call of function '%s', which is '%v' at %v: declare it so before", s.Name, s.Def.Type, s.Def.Pos)
		}
		if s.Def.Type.Elem.Kind != n.Type.Kind && !unused {
			g.refuse(n.Pos, "the value of function '%s', which is '%v' at %v: declare it so before", s.Name, s.Def.Type, s.Def.Pos)
		}
		for i, a := range n.List {
			if i >= len(params) {
				g.emit(ir.Drop(g.typed(a)))
				continue
			}
			c, ok := front.Converted(a, params[i])
			if !ok && g.goType(a.Type) == g.goType(params[i]) { // a structure that another file has, too
				c, ok = a, true
			}
			if !ok {
				g.refuse(a.Pos, "a '%v' for parameter %d of function '%s', which is '%v' at %v", a.Type, i+1, s.Name, s.Def.Type, s.Def.Pos)
			}
			args = append(args, g.expr(c))
		}
		return ir.CallTo(s.Go, args...)
	}
	var params []ir.Param
	params = append(params, ir.Param{Name: "_", Type: ir.PointerTo(ir.Named("thread"))})
	f := g.expr(n.L)
	for _, a := range n.List {
		args = append(args, g.typed(a))
		params = append(params, ir.Param{Name: "_", Type: g.goType(a.Type)})
	}
	return ir.CallOf(recast(ir.FuncOf(params, g.result(n.L.Type.Elem)), f), args...)
}

// word is variable argument n, which is e, as 64 bits.
func word(n *front.Node, e exp) exp {
	switch t := n.Type; {
	case n.Op == front.Num:
		return ir.Int(uint64(n.I))
	case t.Floating():
		return ir.CallTo("math.Float64bits", e)
	case t.Integer() || t.ToShared():
		return ir.Convert(goUint64, e)
	case t.Elem.Kind == front.Func:
		return ir.Convert(goUint64, ir.Convert(goUintptr, recast(goPtr, e)))
	}
	return ir.Convert(goUint64, ir.Convert(goUintptr, unsafely(e)))
}
