package front

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// checker is what C and UPC say of expressions: it checks, converts and folds what the parser reads, and warns of it.
type checker struct {
	*reporter
	mem  Mem   // of references whose type does not say
	past *Node // the last Index of the element behind an array's end, an error so far
}

// linear is a constant, or a constant times THREADS.
func linear(e *Node) (n int64, threads, ok bool) {
	switch e.Op {
	case Num:
		return e.I, false, e.Type.Integer()
	case Threads:
		return 1, true, true
	case Cast:
		if e.Type.Integer() {
			return linear(e.L)
		}
	case Mul:
		a, at, aok := linear(e.L)
		b, bt, bok := linear(e.R)
		return a * b, at || bt, aok && bok && !(at && bt)
	}
	return 0, false, false
}

// wrap is v as a value of integer type t.
func wrap(v int64, t *Type) int64 {
	switch t.Kind {
	case Bool:
		return truth(v != 0)
	case Char:
		if t.Unsigned {
			return int64(uint8(v))
		}
		return int64(int8(v))
	case Short:
		if t.Unsigned {
			return int64(uint16(v))
		}
		return int64(int16(v))
	case Int:
		if t.Unsigned {
			return int64(uint32(v))
		}
		return int64(int32(v))
	}
	return v
}

func number(v int64, t *Type, at Pos) *Node {
	return &Node{Op: Num, Pos: at, Type: t, I: wrap(v, t)}
}

func (c *checker) broken(at Pos) *Node { return &Node{Op: Num, Pos: at, Type: tyBroken} }

func bad(ns ...*Node) bool {
	for _, n := range ns {
		if n.Type.Kind == broken {
			return true
		}
	}
	return false
}

// null reports whether n is a null pointer constant.
func null(n *Node) bool {
	return n.Op == Num && n.I == 0 && (n.Type.Integer() || n.Null)
}

// order gives a place in shared memory its memory order.
func (c *checker) order(n *Node) *Node {
	if n.Type.IsShared() {
		if n.Mem = n.Type.Base().Mem; n.Mem == Plain {
			n.Mem = c.mem
		}
	}
	return n
}

// variable is a use of s.
func (c *checker) variable(s *Sym, at Pos) *Node {
	s.Reads++
	s.Used = true
	if s.Array {
		return &Node{Op: Deref, Pos: at, Type: s.Type.Elem, L: &Node{Op: Var, Pos: at, Type: s.Type, Sym: s}}
	}
	return c.order(&Node{Op: Var, Pos: at, Type: s.Type, Sym: s})
}

func (c *checker) index(a, i *Node, at Pos) *Node {
	n := c.order(&Node{Op: Index, Pos: at, Type: a.Type.Elem, L: a, R: i})
	if i.Op == Num && a.Type.Len >= 0 && !a.Type.Threads && (i.I < 0 || i.I >= a.Type.Len) {
		errs := len(c.errs)
		c.errorf(at, "array subscript %d is outside array bounds of '%v'", i.I, a.Type)
		if i.I == a.Type.Len && len(c.errs) > errs {
			c.past = n
		}
	}
	return n
}

func (c *checker) member(s *Node, f *Field, at Pos) *Node {
	t := f.Type
	if q := s.Type; q.Shared || q.Const || q.Volatile {
		t = t.with(func(b *Type) {
			b.Const, b.Volatile = b.Const || q.Const, b.Volatile || q.Volatile
			if q.Shared {
				// A member lies on the structure's thread: block size 0.
				b.Shared, b.Block, b.Mem = true, 0, q.Mem
			}
		})
	}
	return c.order(&Node{Op: Member, Pos: at, Type: t, L: s, Field: f})
}

// root marks the variable that holds place n as one whose address is taken.
func root(n *Node) {
	for {
		switch n.Op {
		case Index, Member:
			n = n.L
			continue
		case Var:
			n.Sym.Addressed = true
		}
		return
	}
}

// bits reports whether n is a bit-field.
func bits(n *Node) bool { return n.Op == Member && n.Field.Bits > 0 }

// value is n as a value: arrays and functions become pointers, places are read.
func (c *checker) value(n *Node) *Node {
	switch n.Type.Kind {
	case Array:
		if n.Type.Variable() {
			return &Node{Op: Cast, Pos: n.Pos, Type: pointerTo(n.Type.Elem), L: n.L} // what Deref derefers
		}
		c.behind(n)
		root(n)
		return &Node{Op: Decay, Pos: n.Pos, Type: pointerTo(n.Type.Elem), L: n}
	case Func:
		return &Node{Op: Decay, Pos: n.Pos, Type: pointerTo(n.Type), L: n}
	}
	if bits(n) && n.Type.Kind == Int && n.Type.Unsigned && n.Field.Bits < 32 {
		return &Node{Op: Cast, Pos: n.Pos, Type: tyInt, L: n} // C99 6.3.1.1p2
	}
	if n.Type != n.Type.plain() {
		c := *n
		if n.Op == Num || n.Op == FNum {
			c.Type = n.Type.plain()
			return &c
		}
		// The node keeps its qualified type, by which package gen finds shared places.
	}
	return n
}

// cast is n converted to t, without checks.
func cast(n *Node, t *Type) *Node {
	t = t.plain()
	if n.Type.Kind == t.Kind && same(n.Type.plain(), t) && sized(n.Type, t) {
		if n.Op == Num || n.Op == FNum {
			c := *n
			c.Type = t
			return &c
		}
		return n
	}
	switch {
	case n.Op == Complex && t.Complex():
		return complexOf(cast(n.L, t.part()), cast(n.R, t.part()), t)
	case t.Complex() && n.Type.Arithmetic():
		return complexOf(cast(n, t.part()), fnumber(0, t.part(), n.Pos), t)
	case n.Type.Complex() && t.Kind != Bool && t.Kind != n.Type.part().Kind && t.Arithmetic():
		return cast(cast(n, n.Type.part()), t)
	case n.Op == Num && t.Integer():
		if n.Type.Integer() {
			return number(n.I, t, n.Pos)
		}
	case n.Op == Num && n.Type.Integer() && t.Floating():
		f := float64(n.I)
		if n.Type.Unsigned {
			f = float64(uint64(n.I))
		}
		return fnumber(f, t, n.Pos)
	case n.Op == FNum && t.Floating():
		return fnumber(n.F, t, n.Pos)
	case n.Op == FNum && t.Integer():
		if t.Kind == Bool {
			return number(truth(n.F != 0), t, n.Pos)
		}
		switch f := math.Trunc(n.F); {
		case f >= -1<<63 && f < 1<<63:
			return number(int64(f), t, n.Pos)
		case f >= 1<<63 && f < 1<<64 && t.Unsigned:
			return number(int64(uint64(f)), t, n.Pos)
		}
	case n.Op == Num && n.I == 0 && t.Kind == Pointer:
		return &Node{Op: Num, Pos: n.Pos, Type: t, Null: null(n) && t.Elem.Kind == Void}
	}
	return &Node{Op: Cast, Pos: n.Pos, Type: t, L: n}
}

// complexOf is l + r i, of type t.
func complexOf(l, r *Node, t *Type) *Node { return &Node{Op: Complex, Pos: l.Pos, Type: t, L: l, R: r} }

// Real reports whether n, of a complex type, is a real number, and which.
func (n *Node) Real() (*Node, bool) {
	return n.L, n.Op == Complex && n.R.Op == FNum && n.R.F == 0
}

func fnumber(f float64, t *Type, at Pos) *Node {
	if t.Kind == Float {
		f = float64(float32(f))
	}
	return &Node{Op: FNum, Pos: at, Type: t, F: f}
}

// promote is the integer promotions.
func promote(n *Node) *Node {
	if t := n.Type; t.Kind >= Bool && t.Kind < Int {
		return cast(n, tyInt)
	}
	return n
}

// usual is the usual arithmetic conversions.
func usual(a, b *Node) (*Node, *Node) {
	t := usualType(a.Type, b.Type)
	return cast(a, t), cast(b, t)
}

func usualType(a, b *Type) *Type {
	if a.Complex() || b.Complex() {
		if a.Kind == DoubleComplex || b.Kind == DoubleComplex || a.Kind == Double || b.Kind == Double {
			return &Type{Kind: DoubleComplex}
		}
		return &Type{Kind: FloatComplex}
	}
	if a.Kind == Double || b.Kind == Double {
		return tyDouble
	}
	if a.Kind == Float || b.Kind == Float {
		return &Type{Kind: Float}
	}
	if a.Kind < Int {
		a = tyInt
	}
	if b.Kind < Int {
		b = tyInt
	}
	a, b = a.plain(), b.plain()
	if a.Kind < b.Kind {
		a, b = b, a
	}
	if a.Kind == b.Kind {
		return &Type{Kind: a.Kind, Unsigned: a.Unsigned || b.Unsigned}
	}
	// a has the higher rank; long long is as wide as long.
	if b.Unsigned && !a.Unsigned && a.Size() == b.Size() {
		return &Type{Kind: a.Kind, Unsigned: true}
	}
	return a
}

// convert is value n as one of type t, as by assignment; what says what does that.
func (c *checker) convert(n *Node, t *Type, at Pos, what string) *Node {
	from := n.Type.plain()
	t = t.plain()
	// How a message about it begins, with words for what from is, or without from.
	head := what
	if what == "assignment" || what == "initialization" {
		head += " to '" + t.String() + "'"
	}
	source := func(is string) string {
		if what == "return" {
			return fmt.Sprintf("returning %s'%v' from a function with return type '%v'", is, from, t)
		}
		return fmt.Sprintf("%s from %s'%v'", head, is, from)
	}
	switch {
	case bad(n) || t.Kind == broken:
		return n
	case t.Number() && from.Number():
		return cast(n, t)
	case t.Kind == Bool && from.Kind == Pointer:
		return cast(n, t)
	case t.Kind == Pointer && null(n):
		return cast(n, t)
	case t.Kind == Pointer && from.Kind == Pointer:
		return c.convertPointer(n, from, t, at, what, head, source)
	case (t.Kind == Struct || t.Kind == Union) && same(t, from):
		return n
	case t.Kind == Pointer && from.Integer():
		c.errorf(at, "%s makes pointer from integer without a cast", source(""))
	case t.Integer() && from.Kind == Pointer:
		c.errorf(at, "%s makes integer from pointer without a cast", source(""))
	case from.Kind == Void:
		c.errorf(at, "void value not ignored as it ought to be")
	default:
		switch what {
		case "assignment":
			c.errorf(at, "incompatible types when assigning to type '%v' from type '%v'", t, from)
		case "initialization":
			c.errorf(at, "incompatible types when initializing type '%v' using type '%v'", t, from)
		case "return":
			c.errorf(at, "incompatible types when returning type '%v' but '%v' was expected", from, t)
		default:
			c.errorf(at, "%s: type '%v' is incompatible with '%v'", what, from, t)
		}
	}
	return c.broken(at)
}

func (c *checker) convertPointer(n *Node, from, t *Type, at Pos, what, head string, source func(is string) string) *Node {
	a, b := from.Elem, t.Elem
	switch {
	case from.ToShared() && !t.ToShared():
		c.errorf(at, "%s to private pointer '%v' without a cast", source("pointer-to-shared "), t)
		return c.broken(at)
	case !from.ToShared() && t.ToShared():
		c.errorf(at, "%s: a private pointer '%v' does not convert to pointer-to-shared '%v'", head, from, t)
		return c.broken(at)
	case a.Kind == Void || b.Kind == Void, same(a, b):
		return cast(n, t)
	case t.ToShared() && a.Base().Block != b.Base().Block && same(unblocked(a), unblocked(b)):
		c.errorf(at, "%s: UPC block sizes %d and %d differ, without a cast", source(""), a.Base().Block, b.Base().Block)
		return c.broken(at)
	case a.Kind == Char && b.Kind == Char && a.Shared == b.Shared:
		return cast(n, t)
	case signs(a, b):
		c.warnf(at, "pointer targets in %s from '%v' to '%v' differ in signedness", what, from, t)
		return cast(n, t)
	}
	c.errorf(at, "%s", source("incompatible pointer type "))
	return c.broken(at)
}

// signs reports whether a and b are the same integer type but for the sign, which gcc allows of
// what pointers point to.
func signs(a, b *Type) bool {
	return a.Integer() && a.Kind == b.Kind && a.Shared == b.Shared && (!a.Shared || a.Block == b.Block)
}

func unblocked(t *Type) *Type { return t.with(func(q *Type) { q.Block = 0 }) }

// place checks that n can be assigned to.
func (c *checker) place(n *Node, what string) bool {
	switch n.Op {
	case Var, Deref, Index, Member, Compound:
		if n.Type.Kind != Func {
			return true
		}
	}
	if !bad(n) {
		c.errorf(n.Pos, "lvalue required as %s", what)
	}
	return false
}

func (c *checker) assigned(l *Node) {
	if l.Op == Var {
		l.Sym.Reads--
		l.Sym.Assigned++
	}
}

// assign is l = r.
func (c *checker) assign(l, r *Node, at Pos, what string) *Node {
	r = c.value(r)
	if bad(l, r) {
		return c.broken(at)
	}
	if what == "assignment" {
		if !c.place(l, "left operand of assignment") {
			return c.broken(at)
		}
		if l.Type.Kind == Array {
			c.errorf(at, "assignment to expression with array type")
			return c.broken(at)
		}
		if l.Type.Const {
			c.errorf(at, "assignment of read-only location")
		}
		c.assigned(l)
	}
	return &Node{Op: Assign, Pos: at, Type: l.Type.plain(), L: l, R: c.convert(r, l.Type, at, what)}
}

// assignOp is l op= r of token t.
func (c *checker) assignOp(l, r *Node, op Op, t token) *Node {
	r = c.value(r)
	if bad(l, r) || !c.place(l, "left operand of assignment") {
		return c.broken(t.pos)
	}
	if l.Type.Const {
		c.errorf(t.pos, "assignment of read-only location")
	}
	c.assigned(l)
	n := &Node{Op: AssignOp, Pos: t.pos, Type: l.Type.plain(), L: l, R: r, Sub: op}
	lt := l.Type.plain()
	switch {
	case lt.Kind == Pointer && (op == Add || op == Sub) && r.Type.Integer():
		if !c.arith(lt, t.pos) {
			return c.broken(t.pos)
		}
		if lt.Elem.Variable() {
			c.errorf(t.pos, "not supported: %s of a pointer to a variable length array: write p = p + i", t.text)
			return c.broken(t.pos)
		}
		n.R = cast(r, tyLong)
		if op == Sub {
			n.R = c.negate(n.R, t.pos)
		}
		n.Sub, n.Work = PtrAdd, lt
	case !lt.Number() || !r.Type.Number(), (op >= Mod && op <= Shr) && (!lt.Integer() || !r.Type.Integer()):
		c.errorf(t.pos, "invalid operands to binary %s (have '%v' and '%v')", strings.TrimSuffix(t.text, "="), lt, r.Type.plain())
		return c.broken(t.pos)
	case op == Shl || op == Shr:
		n.R = promote(r)
		n.Work = promote(&Node{Op: Var, Type: lt}).Type
	default:
		n.Work = usualType(c.value(l).Type, r.Type)
		n.R = cast(r, n.Work)
		if op == Div || op == Mod {
			n.R = c.divisor(n.R, t.pos)
		}
	}
	return n
}

// divisor is the divisor r, no constant if it is an integer 0: what divides by it may never be reached.
func (c *checker) divisor(r *Node, at Pos) *Node {
	if r.Op != Num || r.I != 0 || !r.Type.Integer() {
		return r
	}
	c.warnf(at, "division by zero")
	return &Node{Op: Comma, Pos: at, Type: r.Type.plain(), L: r, R: r}
}

func (c *checker) negate(n *Node, at Pos) *Node {
	if n.Op == Num {
		return number(-n.I, n.Type, at)
	}
	return &Node{Op: Neg, Pos: at, Type: n.Type.plain(), L: n}
}

// arith checks that a pointer of type t can be moved.
func (c *checker) arith(t *Type, at Pos) bool {
	switch {
	case t.Elem.Kind == Func:
		c.errorf(at, "pointer to a function used in arithmetic")
	case t.Elem.Kind == Void && t.ToShared():
		c.errorf(at, "UPC does not allow a pointer of type 'shared void *' to be used in arithmetic")
	case t.Elem.Kind != Void && !t.Elem.Complete():
		c.errorf(at, "invalid use of undefined type '%v'", t.Elem)
	default:
		return true
	}
	return false
}

// behind allows n to be the place behind an array's last element, which has an address (C99
// 6.5.3.2p3): its subscript is the last error then.
func (c *checker) behind(n *Node) {
	if n == c.past {
		c.errs, c.past = c.errs[:len(c.errs)-1], nil
		delete(c.reporter.at, n.Pos)
	}
}

// scalar checks that n can be compared with 0.
func (c *checker) scalar(n *Node, at Pos) *Node {
	n = c.value(n)
	if !bad(n) && !n.Type.Scalar() {
		c.errorf(at, "used '%v' type value where scalar is required", n.Type.plain())
		return c.broken(at)
	}
	return n
}

// holds is whether n, a condition, is true, if it is constant.
func holds(n *Node) (v, ok bool) {
	return n.Op == Num && n.I != 0 || n.Op == FNum && n.F != 0, n.Op == Num || n.Op == FNum
}

// ordered is the comparison of x and y by op.
func ordered(op Op, x, y float64) bool {
	switch op {
	case Eq:
		return x == y
	case Ne:
		return x != y
	case Lt:
		return x < y
	case Le:
		return x <= y
	case Gt:
		return x > y
	}
	return x >= y
}

// choose is cond ? a : b.
func (c *checker) choose(cond, a, b *Node, at Pos) *Node {
	b = c.value(b) // a is one
	if bad(a, b, cond) {
		return c.broken(at)
	}
	var t *Type
	lt, rt := a.Type.plain(), b.Type.plain()
	switch {
	case lt.Number() && rt.Number():
		t = usualType(lt, rt)
		if lt.Kind < Int && lt.Kind == rt.Kind && lt.Unsigned == rt.Unsigned {
			t = tyInt
		}
		a, b = cast(a, t), cast(b, t)
	case lt.Kind == Void && rt.Kind == Void:
		t = tyVoid
	case lt.Kind == Void || rt.Kind == Void:
		t = tyVoid
	case lt.Kind == Pointer && null(b):
		t = lt
		b = cast(b, t)
	case rt.Kind == Pointer && null(a):
		t = rt
		a = cast(a, t)
	case lt.Kind == Pointer && rt.Kind == Pointer && rt.Elem.Kind == Void:
		t = rt
		a = c.convert(a, t, at, "conditional expression")
	case lt.Kind == Pointer && rt.Kind == Pointer:
		t = lt
		b = c.convert(b, t, at, "conditional expression")
	case same(lt, rt):
		t = lt
	default:
		c.errorf(at, "type mismatch in conditional expression")
		return c.broken(at)
	}
	if v, ok := holds(cond); ok {
		if v {
			return a
		}
		return b
	}
	return &Node{Op: Cond, Pos: at, Type: t, L: cond, R: a, C: b}
}

// operate is l op r.
func (c *checker) operate(text string, l, r *Node, at Pos) *Node {
	n := &Node{Op: binaryOps[text], Pos: at, L: c.value(l), R: c.value(r)}
	if bad(n.L, n.R) || !c.operands(n, text) {
		return c.broken(at)
	}
	return folded(n, text)
}

// operands checks and converts the operands of a binary operator, and gives it its type.
func (c *checker) operands(n *Node, text string) bool {
	lt, rt := n.L.Type.plain(), n.R.Type.plain()
	fits := lt.Integer() && rt.Integer()
	switch n.Op {
	case LAnd, LOr:
		n.Type, n.L, n.R = tyInt, c.scalar(n.L, n.Pos), c.scalar(n.R, n.Pos)
		return !bad(n.L, n.R)
	case Eq, Ne, Lt, Le, Gt, Ge:
		n.Type = tyInt
		if lt.Kind == Pointer || rt.Kind == Pointer {
			return c.comparePointers(n, text)
		}
		fits = lt.Arithmetic() && rt.Arithmetic() || n.Op <= Ne && lt.Number() && rt.Number()
	case Add, Sub:
		if lt.Kind == Pointer && (rt.Integer() || n.Op == Sub && rt.Kind == Pointer) || n.Op == Add && lt.Integer() && rt.Kind == Pointer {
			return c.pointerSum(n, text)
		}
		fits = lt.Number() && rt.Number()
	case Mul, Div:
		fits = lt.Number() && rt.Number()
	}
	if !fits {
		return c.invalid(n, text)
	}
	if n.Op == Shl || n.Op == Shr {
		n.L, n.R = promote(n.L), promote(n.R)
		if n.R.Op == Num && (n.R.I < 0 || n.R.I >= 8*n.L.Type.Size()) {
			// Which has undefined effects if it is executed: sizeof x > 4 ? x >> 32 : 0 is right.
			c.warnf(n.Pos, "shift count %d is negative or >= width of type '%v'", n.R.I, n.L.Type.plain())
		}
	} else {
		n.L, n.R = usual(n.L, n.R)
	}
	if n.Type == nil {
		n.Type = n.L.Type.plain()
	}
	if n.Op == Div || n.Op == Mod {
		n.R = c.divisor(n.R, n.Pos)
	}
	return true
}

// invalid is the error of a binary operator whose operands have no types for it.
func (c *checker) invalid(n *Node, text string) bool {
	c.errorf(n.Pos, "invalid operands to binary %s (have '%v' and '%v')", text, n.L.Type.plain(), n.R.Type.plain())
	return false
}

// comparePointers is operands of a comparison of which one is a pointer.
func (c *checker) comparePointers(n *Node, text string) bool {
	lt, rt := n.L.Type.plain(), n.R.Type.plain()
	equal := n.Op == Eq || n.Op == Ne
	switch {
	case lt.Kind == Pointer && null(n.R):
		n.R = cast(n.R, lt)
		return true
	case rt.Kind == Pointer && null(n.L):
		n.L = cast(n.L, rt)
		return true
	case lt.Kind != Pointer || rt.Kind != Pointer:
		return c.invalid(n, text)
	case lt.ToShared() != rt.ToShared():
		c.errorf(n.Pos, "comparison between pointer-to-shared and private pointer (have '%v' and '%v')", lt, rt)
		return false
	case lt.ToShared() && !equal && (!lt.Elem.Complete() || !rt.Elem.Complete()):
		c.errorf(n.Pos, "UPC does not allow a pointer-to-shared with incomplete type to be an operand of '%s' (have '%v' and '%v')", text, lt, rt)
		return false
	case lt.Elem.Kind == Void || rt.Elem.Kind == Void || same(lt.Elem, rt.Elem):
	case signs(lt.Elem, rt.Elem):
		c.warnf(n.Pos, "pointer targets in comparison of '%v' and '%v' differ in signedness", lt, rt)
	default:
		c.errorf(n.Pos, "comparison of distinct pointer types ('%v' and '%v') lacks a cast", lt, rt)
		return false
	}
	switch {
	case lt.Elem.Kind == Func && !equal:
		return c.invalid(n, text)
	case lt.Elem.Kind == Void:
		n.R = cast(n.R, lt)
	default:
		n.L = cast(n.L, rt)
	}
	return true
}

// pointerSum is operands of a pointer and an integer, or of two pointers whose difference n is.
func (c *checker) pointerSum(n *Node, text string) bool {
	lt, rt := n.L.Type.plain(), n.R.Type.plain()
	switch {
	case rt.Integer():
		*n = *c.move(n.L, n.R, n.Op == Sub, n.Pos)
		return !bad(n)
	case lt.Integer():
		*n = *c.move(n.R, n.L, false, n.Pos)
		return !bad(n)
	case !c.arith(lt, n.Pos) || !c.arith(rt, n.Pos):
		return false
	case !same(lt.Elem, rt.Elem):
		return c.invalid(n, text)
	case lt.Elem.Variable() || rt.Elem.Variable():
		c.errorf(n.Pos, "not supported: the difference of pointers to variable length arrays")
		return false
	}
	n.Op, n.Type = PtrDiff, tyLong
	return true
}

// folded is a binary operator whose operands are checked, or its value if they are constant.
func folded(n *Node, text string) *Node {
	l, r := n.L, n.R
	switch {
	case n.Op == LAnd || n.Op == LOr:
		v, ok := holds(l)
		if ok && v == (n.Op == LAnd) {
			v, ok = holds(r)
		}
		if !ok {
			return n
		}
		return number(truth(v), tyInt, n.Pos)
	case n.Op == PtrAdd || n.Op == PtrDiff:
	case l.Op == Num && r.Op == Num: // integers, or null pointers
		return number(fold(text, l.I, r.I, l.Type.Unsigned), n.Type, n.Pos)
	case l.Op == FNum && r.Op == FNum && n.Op >= Eq && n.Op <= Ge:
		return number(truth(ordered(n.Op, l.F, r.F)), tyInt, n.Pos)
	case l.Op == FNum && r.Op == FNum:
		f := map[Op]float64{Add: l.F + r.F, Sub: l.F - r.F, Mul: l.F * r.F, Div: l.F / r.F}
		return fnumber(f[n.Op], n.Type, n.Pos)
	}
	return n
}

// move is pointer q plus or minus integer r.
func (c *checker) move(q, r *Node, minus bool, at Pos) *Node {
	if !c.arith(q.Type, at) {
		return c.broken(at)
	}
	r = cast(r, tyLong)
	if minus {
		r = c.negate(r, at)
	}
	if t := q.Type.Elem; t.Variable() {
		r = folded(&Node{Op: Mul, Pos: at, Type: tyLong, L: r, R: cast(c.count(t, at), tyLong)}, "*")
	}
	return &Node{Op: PtrAdd, Pos: at, Type: q.Type.plain(), L: q, R: r}
}

func (c *checker) deref(n *Node, at Pos) *Node {
	if bad(n) {
		return n
	}
	t := n.Type
	switch {
	case t.Kind != Pointer:
		c.errorf(at, "invalid type argument of unary '*' (have '%v')", t.plain())
		return c.broken(at)
	case t.Elem.Kind == Func:
		if n.Op == Decay {
			return n.L
		}
		return &Node{Op: Deref, Pos: at, Type: t.Elem, L: n}
	case t.Elem.Kind == Void:
		c.errorf(at, "dereferencing '%v' pointer", t.plain())
		return c.broken(at)
	case !t.Elem.Complete() && t.Elem.Kind != Array: // one of unknown size becomes a pointer
		c.errorf(at, "invalid use of undefined type '%v'", t.Elem)
		return c.broken(at)
	}
	if n.Op == Addr {
		return n.L
	}
	return c.order(&Node{Op: Deref, Pos: at, Type: t.Elem, L: n})
}

func (c *checker) incdec(n *Node, d int64, post bool, at Pos) *Node {
	if bad(n) {
		return n
	}
	if !c.place(n, map[int64]string{1: "increment operand", -1: "decrement operand"}[d]) {
		return c.broken(at)
	}
	t := n.Type.plain()
	if !t.Scalar() || t.Complex() {
		c.errorf(at, "wrong type argument to increment")
		return c.broken(at)
	}
	if t.Kind == Pointer && !c.arith(t, at) {
		return c.broken(at)
	}
	if t.Kind == Pointer && t.Elem.Variable() {
		c.errorf(at, "not supported: ++ and -- of a pointer to a variable length array: write p = p + 1")
		return c.broken(at)
	}
	if n.Type.Const {
		c.errorf(at, "increment of read-only location")
	}
	c.assigned(n)
	return &Node{Op: IncDec, Pos: at, Type: t, L: n, I: d, Post: post}
}

// subscript is n[i].
func (c *checker) subscript(n, i *Node, at Pos) *Node {
	if bad(n, i) {
		return c.broken(at)
	}
	if i.Type.Kind == Pointer && n.Type.Integer() {
		n, i = i, n
	}
	if !i.Type.Integer() {
		c.errorf(at, "array subscript is not an integer")
		return c.broken(at)
	}
	if n.Type.Kind == Array && n.Op != Str && !n.Type.Variable() {
		return c.index(n, i, at)
	}
	n = c.value(n)
	if n.Type.Kind != Pointer {
		c.errorf(at, "subscripted value is neither array nor pointer")
		return c.broken(at)
	}
	return c.deref(c.move(n, i, false, at), at)
}

// arguments is the call of f, of that name in messages, with its arguments checked and converted.
func (c *checker) arguments(f *Node, args []*Node, name string, at Pos) *Node {
	t := f.Type.Elem
	if t.Old {
		n := &Node{Op: Call, Pos: f.Pos, Type: t.Elem, L: f}
		for _, a := range args {
			if a = promote(a); a.Type.Kind == Float {
				a = cast(a, tyDouble)
			}
			if a.Type.Kind == Void {
				c.errorf(a.Pos, "invalid use of void expression")
				return c.broken(at)
			}
			n.List = append(n.List, a)
		}
		if bad(n.List...) {
			return c.broken(at)
		}
		return n
	}
	if len(args) < len(t.Params) {
		c.errorf(f.Pos, "too few arguments to %s", name).note(declared(f), "declared here")
		return c.broken(at)
	}
	if len(args) > len(t.Params) && !t.Variadic {
		c.errorf(f.Pos, "too many arguments to %s", name).note(declared(f), "declared here")
		return c.broken(at)
	}
	n := &Node{Op: Call, Pos: f.Pos, Type: t.Elem, L: f}
	// The library's functions take private pointers, but for %p.
	sharedToo := func(int) bool { return true }
	if t.Variadic && f.Op == Decay && f.L.Op == Var && f.L.Sym.Header {
		sharedToo = func(int) bool { return false }
		if strings.HasSuffix(name, "printf'") {
			sharedToo = printedPointers(args[len(t.Params)-1])
		}
	}
	for i, a := range args {
		if i < len(t.Params) {
			a = c.convert(a, t.Params[i], a.Pos, "passing argument "+strconv.Itoa(i+1)+" of "+name)
		} else if !bad(a) {
			a = promote(a)
			if a.Type.Kind == Float {
				a = cast(a, tyDouble)
			}
			switch {
			case !a.Type.Scalar() || a.Type.Complex():
				c.errorf(a.Pos, "not supported: a '%v' as a variable argument", a.Type.plain())
			case a.Type.ToShared() && !sharedToo(i-len(t.Params)):
				c.errorf(a.Pos, "passing argument %d of %s from pointer-to-shared '%v' to private pointer without a cast", i+1, name, a.Type.plain())
			}
		}
		n.List = append(n.List, a)
	}
	if bad(n.List...) {
		return c.broken(at)
	}
	return n
}

// declared is where the function is declared whose address f is.
func declared(f *Node) (p Pos) {
	if f.Op == Decay && f.L.Op == Var {
		p = f.L.Sym.Pos
	}
	return p
}

// Converted is n converted to t, as an argument of a function without a prototype has to be of the parameter's type; false if
// that cannot be.
func Converted(n *Node, t *Type) (*Node, bool) {
	from := n.Type.plain()
	switch {
	case t.Number() && from.Number(), null(n) && t.Kind == Pointer, t.Kind == Pointer && from.Integer() && !t.ToShared():
	case t.Kind == Pointer && from.Kind == Pointer:
		if t.ToShared() != from.ToShared() {
			return nil, false
		}
	case t.Integer() && from.Kind == Pointer:
	case t.Kind == from.Kind && same(t, from):
	default:
		return nil, false
	}
	return cast(n, t), true
}

// printedPointers says which of the arguments behind a format %p prints; of a format that is not a
// string constant any may be.
func printedPointers(format *Node) func(int) bool {
	for format.Op == Decay || format.Op == Cast {
		format = format.L
	}
	if format.Op != Str {
		return func(int) bool { return true }
	}
	list := map[int]bool{}
	k := 0
	for i := 0; i < len(format.Str); i++ {
		if format.Str[i] != '%' {
			continue
		}
		for i++; i < len(format.Str) && strings.IndexByte("#0- +'*.123456789hlLqjzt", format.Str[i]) >= 0; i++ {
			if format.Str[i] == '*' {
				k++
			}
		}
		if i < len(format.Str) && format.Str[i] != '%' {
			list[k] = format.Str[i] == 'p'
			k++
		}
	}
	return func(i int) bool { return list[i] }
}

// castTo is value n converted to t by a cast.
func (c *checker) castTo(n *Node, t *Type, at Pos) *Node {
	if bad(n) {
		return n
	}
	if t.IsShared() {
		c.errorf(at, "cast to UPC shared type '%v'", t)
		return c.broken(at)
	}
	from := n.Type.plain()
	t = t.plain()
	switch {
	case t.Kind == Void:
	case t.Number() && from.Number():
	case t.Kind == Pointer && from.Kind == Pointer:
		if t.ToShared() && !from.ToShared() && !null(n) {
			c.errorf(at, "a private pointer '%v' does not convert to pointer-to-shared '%v'", from, t)
			return c.broken(at)
		}
		if t.Elem.Kind == Func && from.ToShared() {
			c.errorf(at, "cannot convert '%v' to '%v'", from, t)
			return c.broken(at)
		}
	case t.Kind == Pointer && from.Integer() && !t.ToShared(), null(n) && t.Kind == Pointer:
	case t.Integer() && from.Kind == Pointer:
	case t.Kind == Struct && same(t, from), t.Kind == Union && same(t, from):
	default:
		if !t.Scalar() {
			c.errorf(at, "conversion to non-scalar type requested")
		} else {
			c.errorf(at, "cannot convert '%v' to '%v'", from, t)
		}
		return c.broken(at)
	}
	if n.Op == Addr && t.Integer() {
		if v, ok := offset(n.L); ok {
			return number(v, t, at) // offsetof
		}
	}
	e := cast(n, t)
	if e == n && n.Op != Num && n.Op != FNum {
		e = &Node{Op: Cast, Pos: at, Type: t, L: n} // no place any more
	}
	return e
}

// address is &n.
func (c *checker) address(n *Node, at Pos) *Node {
	if bad(n) {
		return n
	}
	if n.Type.Kind == Func {
		return c.value(n)
	}
	if n.Op == Deref {
		return n.L
	}
	c.behind(n)
	if !c.place(n, "unary '&' operand") {
		return c.broken(at)
	}
	if bits(n) {
		c.errorf(at, "cannot take address of bit-field '%s'", n.Field.Name)
		return c.broken(at)
	}
	root(n)
	return &Node{Op: Addr, Pos: at, Type: pointerTo(n.Type), L: n}
}

// signed is the value n after a unary +, -, ~ or !.
func (c *checker) signed(text string, n *Node, at Pos) *Node {
	if bad(n) {
		return n
	}
	if text == "!" {
		n = c.scalar(n, at)
		if v, ok := holds(n); ok {
			return number(truth(!v), tyInt, at)
		}
		return &Node{Op: Not, Pos: at, Type: tyInt, L: n}
	}
	if !n.Type.Number() || text == "~" && !n.Type.Integer() {
		c.errorf(at, "wrong type argument to unary %s", map[string]string{"+": "plus", "-": "minus", "~": "bit-complement"}[text])
		return c.broken(at)
	}
	n = promote(n)
	switch {
	case text == "+":
		return cast(n, n.Type)
	case text == "-" && n.Op == FNum:
		return fnumber(-n.F, n.Type, at)
	case text == "-":
		return c.negate(n, at)
	case n.Op == Num:
		return number(^n.I, n.Type, at)
	}
	return &Node{Op: BitNot, Pos: at, Type: n.Type.plain(), L: n}
}

// offset is the address of a place if that is constant: in a structure at a null pointer.
func offset(n *Node) (int64, bool) {
	switch n.Op {
	case Deref:
		return 0, n.L.Op == Num && n.L.I == 0 && !n.L.Type.ToShared()
	case Member:
		v, ok := offset(n.L)
		return v + n.Field.Offset, ok
	case Index:
		v, ok := offset(n.L)
		return v + n.R.I*n.Type.Size(), ok && n.R.Op == Num
	}
	return 0, false
}
