package front

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

func (p *parser) broken(at Pos) *Node { return &Node{Op: Num, Pos: at, Type: tyBroken} }

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
func (p *parser) order(n *Node) *Node {
	if n.Type.IsShared() {
		if n.Mem = n.Type.Base().Mem; n.Mem == Plain {
			n.Mem = p.mem
		}
	}
	return n
}

// variable is a use of s.
func (p *parser) variable(s *Sym, at Pos) *Node {
	s.Reads++
	s.Used = true
	return p.order(&Node{Op: Var, Pos: at, Type: s.Type, Sym: s})
}

func (p *parser) index(a, i *Node, at Pos) *Node {
	n := p.order(&Node{Op: Index, Pos: at, Type: a.Type.Elem, L: a, R: i})
	if i.Op == Num && a.Type.Len >= 0 && !a.Type.Threads && (i.I < 0 || i.I >= a.Type.Len) {
		errs := len(p.errs)
		p.errorf(at, "array subscript %d is outside array bounds of '%v'", i.I, a.Type)
		if i.I == a.Type.Len && len(p.errs) > errs {
			p.past = n
		}
	}
	return n
}

func (p *parser) member(s *Node, f *Field, at Pos) *Node {
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
	return p.order(&Node{Op: Member, Pos: at, Type: t, L: s, Field: f})
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
func (p *parser) value(n *Node) *Node {
	switch n.Type.Kind {
	case Array:
		p.behind(n)
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
	if n.Type.Kind == t.Kind && same(n.Type.plain(), t) {
		if n.Op == Num || n.Op == FNum {
			c := *n
			c.Type = t
			return &c
		}
		return n
	}
	switch {
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
func (p *parser) convert(n *Node, t *Type, at Pos, what string) *Node {
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
	case t.Arithmetic() && from.Arithmetic():
		return cast(n, t)
	case t.Kind == Bool && from.Kind == Pointer:
		return cast(n, t)
	case t.Kind == Pointer && null(n):
		return cast(n, t)
	case t.Kind == Pointer && from.Kind == Pointer:
		return p.convertPointer(n, from, t, at, what, head, source)
	case (t.Kind == Struct || t.Kind == Union) && same(t, from):
		return n
	case t.Kind == Pointer && from.Integer():
		p.errorf(at, "%s makes pointer from integer without a cast", source(""))
	case t.Integer() && from.Kind == Pointer:
		p.errorf(at, "%s makes integer from pointer without a cast", source(""))
	case from.Kind == Void:
		p.errorf(at, "void value not ignored as it ought to be")
	default:
		switch what {
		case "assignment":
			p.errorf(at, "incompatible types when assigning to type '%v' from type '%v'", t, from)
		case "initialization":
			p.errorf(at, "incompatible types when initializing type '%v' using type '%v'", t, from)
		case "return":
			p.errorf(at, "incompatible types when returning type '%v' but '%v' was expected", from, t)
		default:
			p.errorf(at, "%s: type '%v' is incompatible with '%v'", what, from, t)
		}
	}
	return p.broken(at)
}

func (p *parser) convertPointer(n *Node, from, t *Type, at Pos, what, head string, source func(is string) string) *Node {
	a, b := from.Elem, t.Elem
	switch {
	case from.ToShared() && !t.ToShared():
		p.errorf(at, "%s to private pointer '%v' without a cast", source("pointer-to-shared "), t)
		return p.broken(at)
	case !from.ToShared() && t.ToShared():
		p.errorf(at, "%s: a private pointer '%v' does not convert to pointer-to-shared '%v'", head, from, t)
		return p.broken(at)
	case a.Kind == Void || b.Kind == Void, same(a, b):
		return cast(n, t)
	case t.ToShared() && a.Base().Block != b.Base().Block && same(unblocked(a), unblocked(b)):
		p.errorf(at, "%s: UPC block sizes %d and %d differ, without a cast", source(""), a.Base().Block, b.Base().Block)
		return p.broken(at)
	case a.Kind == Char && b.Kind == Char && a.Shared == b.Shared:
		return cast(n, t)
	case signs(a, b):
		p.warnf(at, "pointer targets in %s from '%v' to '%v' differ in signedness", what, from, t)
		return cast(n, t)
	}
	p.errorf(at, "%s", source("incompatible pointer type "))
	return p.broken(at)
}

// signs reports whether a and b are the same integer type but for the sign, which gcc allows of
// what pointers point to.
func signs(a, b *Type) bool {
	return a.Integer() && a.Kind == b.Kind && a.Shared == b.Shared && (!a.Shared || a.Block == b.Block)
}

func unblocked(t *Type) *Type { return t.with(func(q *Type) { q.Block = 0 }) }

// place checks that n can be assigned to.
func (p *parser) place(n *Node, what string) bool {
	switch n.Op {
	case Var, Deref, Index, Member, Compound:
		if n.Type.Kind != Func {
			return true
		}
	}
	if !bad(n) {
		p.errorf(n.Pos, "lvalue required as %s", what)
	}
	return false
}

func (p *parser) assigned(l *Node) {
	if l.Op == Var {
		l.Sym.Reads--
		l.Sym.Assigned++
	}
}

// assign is l = r.
func (p *parser) assign(l, r *Node, at Pos, what string) *Node {
	r = p.value(r)
	if bad(l, r) {
		return p.broken(at)
	}
	if what == "assignment" {
		if !p.place(l, "left operand of assignment") {
			return p.broken(at)
		}
		if l.Type.Kind == Array {
			p.errorf(at, "assignment to expression with array type")
			return p.broken(at)
		}
		if l.Type.Const {
			p.errorf(at, "assignment of read-only location")
		}
		p.assigned(l)
	}
	return &Node{Op: Assign, Pos: at, Type: l.Type.plain(), L: l, R: p.convert(r, l.Type, at, what)}
}

// expression is a comma expression.
func (p *parser) expression() *Node {
	e := p.assignment()
	for p.at(",") {
		at := p.next().pos
		r := p.value(p.assignment())
		e = &Node{Op: Comma, Pos: at, Type: r.Type.plain(), L: e, R: r}
	}
	return e
}

var assignOps = map[string]Op{
	"+=": Add, "-=": Sub, "*=": Mul, "/=": Div, "%=": Mod,
	"&=": And, "|=": Or, "^=": Xor, "<<=": Shl, ">>=": Shr,
}

func (p *parser) assignment() *Node {
	defer p.nest()()
	l := p.conditional()
	t := p.tok()
	if t.kind != tPunct {
		return l
	}
	if t.text == "=" {
		p.i++
		return p.assign(l, p.assignment(), t.pos, "assignment")
	}
	op, ok := assignOps[t.text]
	if !ok {
		return l
	}
	p.i++
	r := p.value(p.assignment())
	if bad(l, r) || !p.place(l, "left operand of assignment") {
		return p.broken(t.pos)
	}
	if l.Type.Const {
		p.errorf(t.pos, "assignment of read-only location")
	}
	p.assigned(l)
	n := &Node{Op: AssignOp, Pos: t.pos, Type: l.Type.plain(), L: l, R: r, Sub: op}
	lt := l.Type.plain()
	switch {
	case lt.Kind == Pointer && (op == Add || op == Sub) && r.Type.Integer():
		if !p.arith(lt, t.pos) {
			return p.broken(t.pos)
		}
		n.R = cast(r, tyLong)
		if op == Sub {
			n.R = p.negate(n.R, t.pos)
		}
		n.Sub, n.Work = PtrAdd, lt
	case !lt.Arithmetic() || !r.Type.Arithmetic(), (op >= Mod && op <= Shr) && (lt.Floating() || r.Type.Floating()):
		p.errorf(t.pos, "invalid operands to binary %s (have '%v' and '%v')", strings.TrimSuffix(t.text, "="), lt, r.Type.plain())
		return p.broken(t.pos)
	case op == Shl || op == Shr:
		n.R = promote(r)
		n.Work = promote(&Node{Op: Var, Type: lt}).Type
	default:
		n.Work = usualType(p.value(l).Type, r.Type)
		n.R = cast(r, n.Work)
		if op == Div || op == Mod {
			p.zeroDivisor(n.R, t.pos)
		}
	}
	return n
}

func (p *parser) zeroDivisor(r *Node, at Pos) {
	if r.Op == Num && r.I == 0 && r.Type.Integer() {
		p.errorf(at, "division by zero")
	}
}

func (p *parser) negate(n *Node, at Pos) *Node {
	if n.Op == Num {
		return number(-n.I, n.Type, at)
	}
	return &Node{Op: Neg, Pos: at, Type: n.Type.plain(), L: n}
}

// arith checks that a pointer of type t can be moved.
func (p *parser) arith(t *Type, at Pos) bool {
	switch {
	case t.Elem.Kind == Func:
		p.errorf(at, "pointer to a function used in arithmetic")
	case t.Elem.Kind == Void && t.ToShared():
		p.errorf(at, "UPC does not allow a pointer of type 'shared void *' to be used in arithmetic")
	case t.Elem.Kind != Void && !t.Elem.Complete():
		p.errorf(at, "invalid use of undefined type '%v'", t.Elem)
	default:
		return true
	}
	return false
}

func (p *parser) conditional() *Node {
	c := p.binary(0)
	if !p.at("?") {
		return c
	}
	at := p.next().pos
	c = p.scalar(c, at)
	a := p.value(p.expression())
	p.expect(":")
	b := p.value(p.conditional())
	if bad(a, b, c) {
		return p.broken(at)
	}
	var t *Type
	at1, bt := a.Type.plain(), b.Type.plain()
	switch {
	case at1.Arithmetic() && bt.Arithmetic():
		t = usualType(at1, bt)
		if at1.Kind < Int && at1.Kind == bt.Kind && at1.Unsigned == bt.Unsigned {
			t = tyInt
		}
		a, b = cast(a, t), cast(b, t)
	case at1.Kind == Void && bt.Kind == Void:
		t = tyVoid
	case at1.Kind == Void || bt.Kind == Void:
		t = tyVoid
	case at1.Kind == Pointer && null(b):
		t = at1
		b = cast(b, t)
	case bt.Kind == Pointer && null(a):
		t = bt
		a = cast(a, t)
	case at1.Kind == Pointer && bt.Kind == Pointer && bt.Elem.Kind == Void:
		t = bt
		a = p.convert(a, t, at, "conditional expression")
	case at1.Kind == Pointer && bt.Kind == Pointer:
		t = at1
		b = p.convert(b, t, at, "conditional expression")
	case same(at1, bt):
		t = at1
	default:
		p.errorf(at, "type mismatch in conditional expression")
		return p.broken(at)
	}
	if v, ok := holds(c); ok {
		if v {
			return a
		}
		return b
	}
	return &Node{Op: Cond, Pos: at, Type: t, L: c, R: a, C: b}
}

var levels = [][]string{
	{"||"},
	{"&&"},
	{"|"},
	{"^"},
	{"&"},
	{"==", "!="},
	{"<", "<=", ">", ">="},
	{"<<", ">>"},
	{"+", "-"},
	{"*", "/", "%"},
}

var binaryOps = map[string]Op{
	"||": LOr, "&&": LAnd, "|": Or, "^": Xor, "&": And, "==": Eq, "!=": Ne, "<": Lt, "<=": Le,
	">": Gt, ">=": Ge, "<<": Shl, ">>": Shr, "+": Add, "-": Sub, "*": Mul, "/": Div, "%": Mod,
}

func (p *parser) binary(level int) *Node {
	if level == len(levels) {
		return p.castExpr()
	}
	l := p.binary(level + 1)
again:
	t := p.tok()
	if t.kind != tPunct {
		return l
	}
	for _, op := range levels[level] {
		if t.text == op {
			p.i++
			l = p.operate(op, l, p.binary(level+1), t.pos)
			goto again
		}
	}
	return l
}

// behind allows n to be the place behind an array's last element, which has an address (C99
// 6.5.3.2p3): its subscript is the last error then.
func (p *parser) behind(n *Node) {
	if n == p.past {
		p.errs, p.past = p.errs[:len(p.errs)-1], nil
		delete(p.reporter.at, n.Pos)
	}
}

// scalar checks that n can be compared with 0.
func (p *parser) scalar(n *Node, at Pos) *Node {
	n = p.value(n)
	if !bad(n) && !n.Type.Scalar() {
		p.errorf(at, "used '%v' type value where scalar is required", n.Type.plain())
		return p.broken(at)
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

// operate is l op r.
func (p *parser) operate(text string, l, r *Node, at Pos) *Node {
	op := binaryOps[text]
	l, r = p.value(l), p.value(r)
	if bad(l, r) {
		return p.broken(at)
	}
	lt, rt := l.Type.plain(), r.Type.plain()
	invalid := func() *Node {
		p.errorf(at, "invalid operands to binary %s (have '%v' and '%v')", text, lt, rt)
		return p.broken(at)
	}
	switch op {
	case LAnd, LOr:
		l, r = p.scalar(l, at), p.scalar(r, at)
		if bad(l, r) {
			return p.broken(at)
		}
		if v, ok := holds(l); ok {
			if v == (op == LOr) {
				return number(truth(v), tyInt, at)
			}
			if v, ok = holds(r); ok {
				return number(truth(v), tyInt, at)
			}
		}
		return &Node{Op: op, Pos: at, Type: tyInt, L: l, R: r}
	case Shl, Shr:
		if !lt.Integer() || !rt.Integer() {
			return invalid()
		}
		l, r = promote(l), promote(r)
		if r.Op == Num && (r.I < 0 || r.I >= 8*l.Type.Size()) {
			// Which has undefined effects if it is executed: sizeof x > 4 ? x >> 32 : 0 is right.
			p.warnf(at, "shift count %d is negative or >= width of type '%v'", r.I, l.Type.plain())
		}
	case Eq, Ne, Lt, Le, Gt, Ge:
		switch {
		case lt.Arithmetic() && rt.Arithmetic():
			l, r = usual(l, r)
		case lt.Kind == Pointer && null(r):
			r = cast(r, lt)
		case rt.Kind == Pointer && null(l):
			l = cast(l, rt)
		case lt.Kind == Pointer && rt.Kind == Pointer:
			if lt.ToShared() != rt.ToShared() {
				p.errorf(at, "comparison between pointer-to-shared and private pointer (have '%v' and '%v')", lt, rt)
				return p.broken(at)
			}
			if lt.ToShared() && op != Eq && op != Ne && (!lt.Elem.Complete() || !rt.Elem.Complete()) {
				p.errorf(at, "UPC does not allow a pointer-to-shared with incomplete type to be an operand of '%s' (have '%v' and '%v')", text, lt, rt)
				return p.broken(at)
			}
			switch {
			case lt.Elem.Kind == Void || rt.Elem.Kind == Void || same(lt.Elem, rt.Elem):
			case signs(lt.Elem, rt.Elem):
				p.warnf(at, "pointer targets in comparison of '%v' and '%v' differ in signedness", lt, rt)
			default:
				p.errorf(at, "comparison of distinct pointer types ('%v' and '%v') lacks a cast", lt, rt)
				return p.broken(at)
			}
			if lt.Elem.Kind == Func && op != Eq && op != Ne {
				return invalid()
			}
			if lt.Elem.Kind == Void {
				r = cast(r, lt)
			} else {
				l = cast(l, rt)
			}
		default:
			return invalid()
		}
		if l.Op == Num && r.Op == Num { // integers, or null pointers
			return number(fold(text, l.I, r.I, l.Type.Unsigned), tyInt, at)
		}
		if l.Op == FNum && r.Op == FNum {
			return number(truth(ordered(op, l.F, r.F)), tyInt, at)
		}
		return &Node{Op: op, Pos: at, Type: tyInt, L: l, R: r}
	case Add, Sub:
		switch {
		case lt.Kind == Pointer && rt.Integer():
			return p.move(l, r, op == Sub, at)
		case op == Add && lt.Integer() && rt.Kind == Pointer:
			return p.move(r, l, false, at)
		case op == Sub && lt.Kind == Pointer && rt.Kind == Pointer:
			if !p.arith(lt, at) || !p.arith(rt, at) {
				return p.broken(at)
			}
			if !same(lt.Elem, rt.Elem) {
				return invalid()
			}
			return &Node{Op: PtrDiff, Pos: at, Type: tyLong, L: l, R: r}
		}
		fallthrough
	case Mul, Div:
		if !lt.Arithmetic() || !rt.Arithmetic() {
			return invalid()
		}
		l, r = usual(l, r)
	default:
		if !lt.Integer() || !rt.Integer() {
			return invalid()
		}
		l, r = usual(l, r)
	}
	t := l.Type.plain()
	if t.Integer() && (op == Div || op == Mod) {
		p.zeroDivisor(r, at)
		if r.Op == Num && r.I == 0 {
			return p.broken(at)
		}
	}
	if l.Op == Num && r.Op == Num {
		return number(fold(text, l.I, r.I, t.Unsigned), t, at)
	}
	if l.Op == FNum && r.Op == FNum {
		f := 0.0
		switch op {
		case Add:
			f = l.F + r.F
		case Sub:
			f = l.F - r.F
		case Mul:
			f = l.F * r.F
		case Div:
			f = l.F / r.F
		}
		return fnumber(f, t, at)
	}
	return &Node{Op: op, Pos: at, Type: t, L: l, R: r}
}

// move is pointer q plus or minus integer r.
func (p *parser) move(q, r *Node, minus bool, at Pos) *Node {
	if !p.arith(q.Type, at) {
		return p.broken(at)
	}
	r = cast(r, tyLong)
	if minus {
		r = p.negate(r, at)
	}
	return &Node{Op: PtrAdd, Pos: at, Type: q.Type.plain(), L: q, R: r}
}

func (p *parser) castExpr() *Node {
	defer p.nest()()
	if !p.at("(") || !p.startsType(p.after()) {
		return p.unary()
	}
	at := p.next().pos
	t := p.typeName()
	p.expect(")")
	if p.at("{") {
		return p.postfixOf(p.compound(t, at))
	}
	n := p.value(p.castExpr())
	if bad(n) {
		return n
	}
	if t.IsShared() {
		p.errorf(at, "cast to UPC shared type '%v'", t)
		return p.broken(at)
	}
	from := n.Type.plain()
	t = t.plain()
	switch {
	case t.Kind == Void:
	case t.Arithmetic() && from.Arithmetic():
	case t.Kind == Pointer && from.Kind == Pointer:
		if t.ToShared() && !from.ToShared() && !null(n) {
			p.errorf(at, "a private pointer '%v' does not convert to pointer-to-shared '%v'", from, t)
			return p.broken(at)
		}
		if t.Elem.Kind == Func && from.ToShared() {
			p.errorf(at, "cannot convert '%v' to '%v'", from, t)
			return p.broken(at)
		}
	case t.Kind == Pointer && from.Integer() && !t.ToShared(), null(n) && t.Kind == Pointer:
	case t.Integer() && from.Kind == Pointer:
	case t.Kind == Struct && same(t, from), t.Kind == Union && same(t, from):
	default:
		if !t.Scalar() {
			p.errorf(at, "conversion to non-scalar type requested")
		} else {
			p.errorf(at, "cannot convert '%v' to '%v'", from, t)
		}
		return p.broken(at)
	}
	if n.Op == Addr && t.Integer() {
		if v, ok := offset(n.L); ok {
			return number(v, t, at) // offsetof
		}
	}
	c := cast(n, t)
	if c == n && n.Op != Num && n.Op != FNum {
		c = &Node{Op: Cast, Pos: at, Type: t, L: n} // no place any more
	}
	return c
}

// compound reads the initialiser of a compound literal of type t (C99 6.5.2.5): an object
// without a name, which has static storage outside of functions.
func (p *parser) compound(t *Type, at Pos) *Node {
	p.literals++
	s := &Sym{Name: "literal" + strconv.Itoa(p.literals), Pos: at, Type: t, Storage: Local, Func: p.fn, Addressed: true}
	switch {
	case t.IsShared():
		p.fatalf(at, "compound literal has a UPC shared type")
	case !t.Complete() && !(t.Kind == Array && t.Elem.Complete()):
		p.fatalf(at, "invalid use of incomplete type '%v'", t)
	case p.fn == nil:
		s.Storage, s.Static, s.Defined = Global, true, true
		p.unit.Syms = append(p.unit.Syms, s)
	default:
		p.fn.Locals = append(p.fn.Locals, s)
	}
	list := p.initialise(s)
	v := p.variable(s, at)
	if p.fn == nil {
		s.Init = list
		for _, n := range list {
			if !constantInit(n) {
				p.errorf(n.Pos, "initializer element is not constant")
			}
		}
		return v
	}
	return &Node{Op: Compound, Pos: at, Type: s.Type, L: v, List: list}
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

func (p *parser) unary() *Node {
	t := p.tok()
	if t.kind != tPunct && t.kind != tIdent {
		return p.postfix()
	}
	switch t.text {
	case "++", "--":
		p.i++
		d := int64(1)
		if t.text == "--" {
			d = -1
		}
		return p.incdec(p.unary(), d, false, t.pos)
	case "&":
		p.i++
		n := p.castExpr()
		if bad(n) {
			return n
		}
		if n.Type.Kind == Func {
			return p.value(n)
		}
		if n.Op == Deref {
			return n.L
		}
		p.behind(n)
		if !p.place(n, "unary '&' operand") {
			return p.broken(t.pos)
		}
		if bits(n) {
			p.errorf(t.pos, "cannot take address of bit-field '%s'", n.Field.Name)
			return p.broken(t.pos)
		}
		root(n)
		return &Node{Op: Addr, Pos: t.pos, Type: pointerTo(n.Type), L: n}
	case "*":
		p.i++
		return p.deref(p.value(p.castExpr()), t.pos)
	case "+", "-", "~", "!":
		p.i++
		n := p.value(p.castExpr())
		if bad(n) {
			return n
		}
		if t.text == "!" {
			n = p.scalar(n, t.pos)
			if v, ok := holds(n); ok {
				return number(truth(!v), tyInt, t.pos)
			}
			return &Node{Op: Not, Pos: t.pos, Type: tyInt, L: n}
		}
		if !n.Type.Arithmetic() || t.text == "~" && !n.Type.Integer() {
			p.errorf(t.pos, "wrong type argument to unary %s", map[string]string{"+": "plus", "-": "minus", "~": "bit-complement"}[t.text])
			return p.broken(t.pos)
		}
		n = promote(n)
		switch {
		case t.text == "+":
			return cast(n, n.Type)
		case t.text == "-" && n.Op == FNum:
			return fnumber(-n.F, n.Type, t.pos)
		case t.text == "-":
			return p.negate(n, t.pos)
		case n.Op == Num:
			return number(^n.I, n.Type, t.pos)
		}
		return &Node{Op: BitNot, Pos: t.pos, Type: n.Type.plain(), L: n}
	case "sizeof", "upc_localsizeof", "upc_blocksizeof", "upc_elemsizeof":
		p.i++
		var of *Type
		if p.at("(") && p.startsType(p.after()) {
			at := p.next().pos
			of = p.typeName()
			p.expect(")")
			if p.at("{") {
				of = p.postfixOf(p.compound(of, at)).Type
			}
		} else {
			n := p.unary()
			if n.Op == Var {
				n.Sym.Reads--
			}
			of = n.Type
			if bits(n) {
				p.errorf(t.pos, "'%s' applied to a bit-field", t.text)
			}
		}
		return p.sizeof(t, p.star(of, t.pos))
	}
	return p.postfix()
}

// sizeof is sizeof and its relatives (UPC 1.3, 6.4.1).
func (p *parser) sizeof(t token, of *Type) *Node {
	if of.Kind == broken {
		return p.broken(t.pos)
	}
	if !of.Complete() {
		p.errorf(t.pos, "invalid application of '%s' to incomplete type '%v'", t.text, of)
		return p.broken(t.pos)
	}
	if t.text != "sizeof" && !of.IsShared() {
		p.errorf(t.pos, "UPC operator %s applied to a non-shared type", t.text)
		return p.broken(t.pos)
	}
	n := of.Elems()
	threads := of.PerThread()
	if b := of.Base().Block; t.text == "upc_localsizeof" && b > 0 {
		// The elements of the thread with the most; if THREADS is not known, at most.
		T := int64(p.cfg.Threads)
		up := func(a, b int64) int64 { return (a + b - 1) / b }
		switch {
		case threads:
			n, threads = up(n, b)*b, false
		case T > 0:
			n = up(up(n, b), T) * b
		case of.Kind == Array:
			n = up(n, b) * b
		}
	}
	size := of.Base().Size()
	switch t.text {
	case "upc_elemsizeof":
		return number(size, tyULong, t.pos)
	case "upc_blocksizeof":
		return number(of.Base().Block, tyULong, t.pos)
	}
	e := number(n*size, tyULong, t.pos)
	if threads {
		return &Node{Op: Mul, Pos: t.pos, Type: tyULong, L: e, R: cast(&Node{Op: Threads, Pos: t.pos, Type: tyInt}, tyULong)}
	}
	return e
}

func (p *parser) deref(n *Node, at Pos) *Node {
	if bad(n) {
		return n
	}
	t := n.Type
	switch {
	case t.Kind != Pointer:
		p.errorf(at, "invalid type argument of unary '*' (have '%v')", t.plain())
		return p.broken(at)
	case t.Elem.Kind == Func:
		if n.Op == Decay {
			return n.L
		}
		return &Node{Op: Deref, Pos: at, Type: t.Elem, L: n}
	case t.Elem.Kind == Void:
		p.errorf(at, "dereferencing '%v' pointer", t.plain())
		return p.broken(at)
	case !t.Elem.Complete():
		p.errorf(at, "invalid use of undefined type '%v'", t.Elem)
		return p.broken(at)
	}
	if n.Op == Addr {
		return n.L
	}
	return p.order(&Node{Op: Deref, Pos: at, Type: t.Elem, L: n})
}

func (p *parser) incdec(n *Node, d int64, post bool, at Pos) *Node {
	if bad(n) {
		return n
	}
	if !p.place(n, map[int64]string{1: "increment operand", -1: "decrement operand"}[d]) {
		return p.broken(at)
	}
	t := n.Type.plain()
	if !t.Scalar() {
		p.errorf(at, "wrong type argument to increment")
		return p.broken(at)
	}
	if t.Kind == Pointer && !p.arith(t, at) {
		return p.broken(at)
	}
	if n.Type.Const {
		p.errorf(at, "increment of read-only location")
	}
	p.assigned(n)
	return &Node{Op: IncDec, Pos: at, Type: t, L: n, I: d, Post: post}
}

func (p *parser) postfix() *Node { return p.postfixOf(p.primary()) }

// postfixOf reads what may stand behind a primary expression n.
func (p *parser) postfixOf(n *Node) *Node {
	for {
		t := p.tok()
		if t.kind != tPunct {
			return n
		}
		switch t.text {
		case "[":
			p.i++
			i := p.value(p.expression())
			p.expect("]")
			n = p.subscript(n, i, t.pos)
		case "(":
			p.i++
			n = p.call(n, t.pos)
		case ".", "->":
			p.i++
			name := p.name()
			if t.text == "->" {
				n = p.value(n)
				if !bad(n) && n.Type.Kind != Pointer {
					p.errorf(t.pos, "invalid type argument of '->' (have '%v')", n.Type.plain())
					n = p.broken(t.pos)
				}
				n = p.deref(n, t.pos)
			}
			if bad(n) {
				continue
			}
			if n.Type.Kind != Struct && n.Type.Kind != Union {
				p.errorf(t.pos, "request for member '%s' in something not a structure or union", name.text)
				n = p.broken(t.pos)
				continue
			}
			f := n.Type.Info.field(name.text)
			if f == nil {
				p.errorf(name.pos, "'%v' has no member named '%s'", n.Type.plain(), name.text)
				n = p.broken(t.pos)
				continue
			}
			n = p.member(n, f, t.pos)
		case "++":
			p.i++
			n = p.incdec(n, 1, true, t.pos)
		case "--":
			p.i++
			n = p.incdec(n, -1, true, t.pos)
		default:
			return n
		}
	}
}

// subscript is n[i].
func (p *parser) subscript(n, i *Node, at Pos) *Node {
	if bad(n, i) {
		return p.broken(at)
	}
	if i.Type.Kind == Pointer && n.Type.Integer() {
		n, i = i, n
	}
	if !i.Type.Integer() {
		p.errorf(at, "array subscript is not an integer")
		return p.broken(at)
	}
	if n.Type.Kind == Array && n.Op != Str {
		return p.index(n, i, at)
	}
	n = p.value(n)
	if n.Type.Kind != Pointer {
		p.errorf(at, "subscripted value is neither array nor pointer")
		return p.broken(at)
	}
	return p.deref(p.move(n, i, false, at), at)
}

// call is f(args), whose parenthesis is read.
func (p *parser) call(f *Node, at Pos) *Node {
	f = p.value(f)
	var args []*Node
	for !p.at(")") {
		args = append(args, p.value(p.assignment()))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	if bad(f) {
		return f
	}
	if f.Type.Kind != Pointer || f.Type.Elem.Kind != Func {
		p.errorf(at, "called object is not a function or function pointer")
		return p.broken(at)
	}
	t := f.Type.Elem
	name := "function"
	if f.Op == Decay && f.L.Op == Var {
		name = "function '" + f.L.Sym.Name + "'"
	}
	if p.fn != nil {
		p.fn.Calls = true
		if name == "function '__upc_va_start'" && !p.fn.Type.Variadic {
			p.errorf(f.Pos, "'va_start' used in function with fixed arguments")
		}
	}
	for _, l := range p.foralls {
		l.Calls = true
	}
	if len(args) < len(t.Params) {
		p.errorf(f.Pos, "too few arguments to %s", name)
		return p.broken(at)
	}
	if len(args) > len(t.Params) && !t.Variadic {
		p.errorf(f.Pos, "too many arguments to %s", name)
		return p.broken(at)
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
			a = p.convert(a, t.Params[i], a.Pos, "passing argument "+strconv.Itoa(i+1)+" of "+name)
		} else if !bad(a) {
			a = promote(a)
			if a.Type.Kind == Float {
				a = cast(a, tyDouble)
			}
			switch {
			case !a.Type.Scalar():
				p.errorf(a.Pos, "not supported: a '%v' as a variable argument", a.Type.plain())
			case a.Type.ToShared() && !sharedToo(i-len(t.Params)):
				p.errorf(a.Pos, "passing argument %d of %s from pointer-to-shared '%v' to private pointer without a cast", i+1, name, a.Type.plain())
			}
		}
		n.List = append(n.List, a)
	}
	if bad(n.List...) {
		return p.broken(at)
	}
	p.suspect(n)
	return n
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

// stringConstant reads adjacent string constants.
func (p *parser) stringConstant() *Node {
	at := p.tok().pos
	var b []byte
	for p.tok().kind == tString {
		t := p.next()
		s, ok := unquote(t.text)
		if !ok {
			p.errorf(t.pos, "unknown escape sequence")
		}
		b = append(b, s...)
	}
	b = append(b, 0)
	return &Node{Op: Str, Pos: at, Type: &Type{Kind: Array, Elem: tyChar, Len: int64(len(b))}, Str: string(b)}
}

func (p *parser) primary() *Node {
	t := p.tok()
	switch t.kind {
	case tNumber:
		p.i++
		return p.numeral(t)
	case tChar:
		p.i++
		b, ok := unquote(t.text)
		if !ok || len(b) == 0 {
			p.errorf(t.pos, "empty character constant")
			return p.broken(t.pos)
		}
		if len(b) > 1 {
			p.errorf(t.pos, "not supported: multi-character character constant")
		}
		return number(int64(int8(b[0])), tyInt, t.pos)
	case tString:
		return p.stringConstant()
	case tPunct:
		if t.text == "(" {
			p.i++
			if p.at("{") {
				p.fatalf(t.pos, "not supported: statements in expressions")
			}
			n := p.expression()
			p.expect(")")
			return n
		}
	case tIdent:
		switch t.text {
		case "MYTHREAD":
			p.i++
			return &Node{Op: Mythread, Pos: t.pos, Type: tyInt}
		case "THREADS":
			p.i++
			if p.cfg.Threads > 0 {
				return number(int64(p.cfg.Threads), tyInt, t.pos)
			}
			return &Node{Op: Threads, Pos: t.pos, Type: tyInt}
		case "__func__":
			if p.fn != nil {
				p.i++
				s := p.fn.Name + "\x00"
				return &Node{Op: Str, Pos: t.pos, Type: &Type{Kind: Array, Elem: tyChar, Len: int64(len(s))}, Str: s}
			}
		}
		if keywords[t.text] {
			break
		}
		p.i++
		s := p.find(t.text)
		switch {
		case s == nil && p.at("("):
			p.errorf(t.pos, "implicit declaration of function '%s'", t.text)
			return p.broken(t.pos)
		case s == nil:
			p.errorf(t.pos, "'%s' undeclared", t.text)
			return p.broken(t.pos)
		case s.Storage == Typedef:
			p.fatalf(t.pos, "unexpected type name '%s': expected expression", t.text)
		case s.Storage == EnumConst:
			return number(s.I, s.Type, t.pos)
		}
		return p.variable(s, t.pos)
	}
	p.unexpected("expected expression")
	return nil
}

// numeral is a numeric constant.
func (p *parser) numeral(t token) *Node {
	if v, suffix, ok := integer(t.text); ok {
		unsigned := strings.Contains(suffix, "u")
		long := strings.Count(suffix, "l")
		decimal := t.text[0] != '0'
		switch strings.ReplaceAll(suffix, "u", "") {
		case "", "l", "ll":
		default:
			p.errorf(t.pos, "invalid suffix \"%s\" on integer constant", suffix)
		}
		ty := &Type{Kind: Int, Unsigned: unsigned}
		switch {
		case long > 0:
			ty.Kind = []Kind{Long, LongLong}[min(long, 2)-1]
			ty.Unsigned = unsigned || v > math.MaxInt64
		case unsigned && v > math.MaxUint32:
			ty.Kind = Long
		case !unsigned && v > math.MaxInt32:
			switch {
			case !decimal && v <= math.MaxUint32:
				ty.Unsigned = true
			default:
				ty.Kind = Long
				ty.Unsigned = v > math.MaxInt64
			}
		}
		return number(int64(v), ty, t.pos)
	}
	s := strings.ToLower(t.text)
	ty := tyDouble
	if hex := strings.HasPrefix(s, "0x"); strings.HasSuffix(s, "f") && (!hex || strings.Contains(s, "p")) {
		ty, s = &Type{Kind: Float}, strings.TrimSuffix(s, "f")
	} else {
		s = strings.TrimSuffix(s, "l")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) || strings.Contains(s, "_") {
		p.errorf(t.pos, "invalid numeric constant \"%s\"", t.text)
		return p.broken(t.pos)
	}
	return fnumber(f, ty, t.pos)
}
