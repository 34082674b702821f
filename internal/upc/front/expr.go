package front

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// expression is a comma expression.
func (p *parser) expression() *Node {
	e := p.assignment()
	for p.at(",") {
		at := p.next().pos
		p.heads++
		r := p.value(p.assignment())
		p.heads--
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
	return p.assignOp(l, p.assignment(), op, t)
}

func (p *parser) conditional() *Node {
	c := p.binary(0)
	if !p.at("?") {
		return c
	}
	at := p.next().pos
	c = p.scalar(c, at)
	p.heads++
	var a *Node
	if p.at(":") && p.fn != nil && !bad(c) { // gcc's: the value of the condition
		s := unnamed(p, "chosen", c.Type.plain(), at)
		c = p.assign(p.variable(s, at), c, at, "initialization")
		a = p.variable(s, at)
	} else {
		a = p.value(p.expression())
	}
	p.expect(":")
	b := p.conditional()
	p.heads--
	return p.choose(c, a, b, at)
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
			heads := p.heads
			if level < 2 { // || and &&
				p.heads++
			}
			r := p.binary(level + 1)
			p.heads = heads
			l = p.operate(op, l, r, t.pos)
			goto again
		}
	}
	return l
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
	return p.castTo(p.value(p.castExpr()), t, at)
}

// compound reads the initialiser of a compound literal of type t (C99 6.5.2.5): an object
// without a name, which has static storage outside of functions.
func (p *parser) compound(t *Type, at Pos) *Node {
	s := unnamed(p, "literal", t, at)
	switch {
	case t.IsShared():
		p.fatalf(at, "compound literal has a UPC shared type")
	case !t.Complete() && !(t.Kind == Array && t.Elem.Complete()):
		p.fatalf(at, "invalid use of incomplete type '%v'", t)
	case p.fn == nil:
		s.Storage, s.Static, s.Defined = Global, true, true
		p.unit.Syms = append(p.unit.Syms, s)
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
		return p.address(p.castExpr(), t.pos)
	case "*":
		p.i++
		return p.deref(p.value(p.castExpr()), t.pos)
	case "__real__", "__imag__":
		p.i++
		return partOf(p, p.castExpr(), t)
	case "+", "-", "~", "!":
		p.i++
		return p.signed(t.text, p.value(p.castExpr()), t.pos)
	case "sizeof", "upc_localsizeof", "upc_blocksizeof", "upc_elemsizeof", "_Alignof", "__alignof__":
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
	case "__upc_va_arg":
		return variableArgument(p)
	case "_Generic":
		return p.postfixOf(generic(p))
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
	if strings.HasPrefix(t.text, "upc") && !of.IsShared() {
		p.errorf(t.pos, "UPC operator %s applied to a non-shared type", t.text)
		return p.broken(t.pos)
	}
	if strings.Contains(t.text, "lign") {
		return number(of.Align(), tyULong, t.pos)
	}
	if of.Variable() {
		return folded(&Node{Op: Mul, Pos: t.pos, Type: tyULong, L: p.count(of, t.pos), R: number(of.Base().Size(), tyULong, t.pos)}, "*")
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
			path := n.Type.Info.path(name.text)
			if path == nil {
				p.errorf(name.pos, "'%v' has no member named '%s'", n.Type.plain(), name.text)
				n = p.broken(t.pos)
				continue
			}
			for _, f := range path {
				n = p.member(n, f, t.pos)
			}
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
	if f.Op == Decay && f.L.Op == Var && f.L.Sym.guessed {
		reconsider(p, f.L.Sym, args)
		f = p.value(p.variable(f.L.Sym, f.L.Pos))
	}
	if f.Type.Kind != Pointer || f.Type.Elem.Kind != Func {
		p.errorf(at, "called object is not a function or function pointer")
		return p.broken(at)
	}
	name := "function"
	if f.Op == Decay && f.L.Op == Var {
		name = "function '" + f.L.Sym.Name + "'"
	}
	if p.fn != nil {
		p.fn.Calls = true
		p.fn.Stack = p.fn.Stack || name == "function 'alloca'"
		if name == "function '__upc_va_start'" && !p.fn.Type.Variadic {
			p.errorf(f.Pos, "'va_start' used in function with fixed arguments")
		}
	}
	for _, l := range p.foralls {
		l.Calls = true
	}
	if t := f.Type.Elem; t.Variadic && p.fn != nil && (f.Op != Decay || f.L.Op != Var || !f.L.Sym.Header) {
		for i := len(t.Params); i < len(args); i++ {
			args[i] = copied(p, args[i])
		}
	}
	n := p.arguments(f, args, name, at)
	if bad(n) {
		return n
	}
	p.suspect(n)
	if callee(n) == "__upc_setjmp" {
		return landing(p, n)
	}
	return n
}

// unnamed is a new variable of the function that is read, if one is.
func unnamed(p *parser, name string, t *Type, at Pos) *Sym {
	p.literals++
	s := &Sym{Name: name + strconv.Itoa(p.literals), Pos: at, Type: t, Storage: Local, Func: p.fn, Addressed: true}
	if p.fn != nil {
		p.fn.Locals = append(p.fn.Locals, s)
	}
	return s
}

// structure reports whether t is a structure, union or complex number: as a variable argument it is a pointer to a copy.
func structure(t *Type) bool { return t.Kind == Struct || t.Kind == Union || t.Complex() }

// copied is the pointer to a copy of the variable argument n, if that is a structure.
func copied(p *parser, n *Node) *Node {
	if bad(n) || !structure(n.Type) {
		return n
	}
	s := unnamed(p, "copy", n.Type.plain(), n.Pos)
	v := p.variable(s, n.Pos)
	return p.address(&Node{Op: Compound, Pos: n.Pos, Type: s.Type, L: v, List: []*Node{p.assign(v, n, n.Pos, "initialization")}}, n.Pos)
}

// variableArgument reads __upc_va_arg(ap, type), the next argument in the list of words ap.
func variableArgument(p *parser) *Node {
	at := p.next().pos
	p.expect("(")
	list := p.incdec(p.assignment(), 1, true, at)
	p.expect(",")
	t := p.typeName()
	p.expect(")")
	if structure(t) {
		return p.deref(p.deref(p.castTo(list, pointerTo(pointerTo(t)), at), at), at)
	}
	return p.deref(p.castTo(list, pointerTo(t), at), at)
}

// statements reads gcc's ({ ... }), whose parenthesis is read: statements, of which the last is the value if it is an expression.
func statements(p *parser, at Pos) *Node {
	if p.fn == nil {
		p.fatalf(at, "braced-group within expression allowed only inside a function")
	}
	before, loops, switches, heads := p.before, p.loops, p.switches, p.heads
	p.before, p.loops, p.switches = nil, 0, nil
	p.heads++ // setjmp has no place to return to
	p.braced++
	n := p.block(true)
	p.braced--
	p.before, p.loops, p.switches, p.heads = before, loops, switches, heads
	p.expect(")")
	n.Op, n.Pos, n.Type = Statements, at, tyVoid
	if k := len(n.List) - 1; k >= 0 && n.List[k].Op == Expr {
		n.L = p.value(n.List[k].L)
		n.List, n.Type = n.List[:k], n.L.Type.plain()
	}
	if len(p.flat) > 0 {
		n.List = (&flattener{p: p, cases: map[*Node]*LabelInfo{}}).list(n.List)
	}
	return n
}

// builtin reads what begins with a name that gcc has by itself.
func builtin(p *parser) *Node {
	t := p.next()
	name := strings.TrimPrefix(t.text, "__builtin_")
	switch name {
	case "constant_p", "types_compatible_p", "choose_expr", "complex":
		p.expect("(")
		defer p.expect(")")
	}
	switch name {
	case "constant_p":
		n := p.assignment()
		return number(truth(n.Op == Num || n.Op == FNum || n.Op == Str), tyInt, t.pos)
	case "complex":
		re := p.convert(p.value(p.assignment()), tyDouble, t.pos, "'__builtin_complex'")
		p.expect(",")
		im := p.convert(p.value(p.assignment()), tyDouble, t.pos, "'__builtin_complex'")
		if bad(re, im) {
			return p.broken(t.pos)
		}
		return complexOf(re, im, &Type{Kind: DoubleComplex})
	case "types_compatible_p":
		a := p.typeName().plain()
		p.expect(",")
		b := p.typeName().plain()
		return number(truth(same(a, b)), tyInt, t.pos)
	case "choose_expr":
		chosen := p.constant("first argument to '__builtin_choose_expr' not a constant") != 0
		p.expect(",")
		a := p.assignment()
		p.expect(",")
		b := p.assignment()
		if chosen {
			return a
		}
		return b
	}
	l := prototypes()[t.text]
	if l == nil {
		l = prototypes()[name]
	}
	if l == nil || l.Storage != Function {
		p.fatalf(t.pos, "not supported: '%s'", t.text)
	}
	s := p.scopes[0].syms[l.Name]
	if s == nil {
		s = &Sym{Name: l.Name, Pos: l.Pos, Type: l.Type, Storage: Function, Header: true}
		save := p.scopes
		p.scopes = p.scopes[:1]
		s = p.declare(s)
		p.scopes = save
	}
	return p.variable(s, t.pos)
}

// generic reads _Generic (C11 6.5.1.1): the expression for the type of another.
func generic(p *parser) *Node {
	at := p.next().pos
	p.expect("(")
	of := p.value(p.assignment()).Type.plain()
	var chosen, other *Node
	for p.accept(",") {
		fits, rest := false, p.accept("default")
		if !rest {
			t := p.typeName()
			fits = same(t, of) && t.String() == of.String() // with qualifiers behind pointers
		}
		p.expect(":")
		n := p.assignment()
		if rest {
			other = n
		} else if fits && chosen == nil {
			chosen = n
		}
	}
	p.expect(")")
	if chosen == nil {
		chosen = other
	}
	if chosen == nil {
		p.errorf(at, "'_Generic' selector of type '%v' is not compatible with any association", of)
		return p.broken(at)
	}
	return chosen
}

// partOf is gcc's __real__ and __imag__ of n, places of a place.
func partOf(p *parser, n *Node, t token) *Node {
	if bad(n) || !n.Type.Complex() {
		if n = p.value(n); !bad(n) && !n.Type.Arithmetic() {
			p.errorf(t.pos, "wrong type argument to %s", t.text)
			return p.broken(t.pos)
		}
		if t.text == "__imag__" && !bad(n) {
			return &Node{Op: Comma, Pos: t.pos, Type: n.Type.plain(), L: n, R: cast(number(0, tyInt, t.pos), n.Type)}
		}
		return n
	}
	var before *Node
	switch n.Op {
	case Var, Deref, Index, Member, Compound:
	default:
		v := p.variable(unnamed(p, "value", n.Type.plain(), t.pos), t.pos)
		before, n = p.assign(v, n, t.pos, "initialization"), v
	}
	to := pointerTo(n.Type.part().with(func(q *Type) {
		q.Const, q.Volatile, q.Shared, q.Mem = n.Type.Const, n.Type.Volatile, n.Type.Shared, n.Type.Mem
	}))
	at := p.castTo(p.address(n, t.pos), to, t.pos)
	if t.text == "__imag__" {
		at = p.move(at, number(1, tyLong, t.pos), false, t.pos)
	}
	if n = p.deref(at, t.pos); before != nil {
		n = &Node{Op: Comma, Pos: t.pos, Type: n.Type.plain(), L: before, R: n}
	}
	return n
}

// stringConstant reads adjacent string constants.
func (p *parser) stringConstant() *Node {
	at, isWide := p.tok().pos, wide(p.tok())
	var all []int32
	for p.tok().kind == tString {
		t := p.next()
		c, ok := characters(t.text)
		if !ok {
			p.errorf(t.pos, "unknown escape sequence")
		}
		all = append(all, c...)
	}
	var b []byte
	elem := tyChar
	for _, c := range append(all, 0) {
		if isWide {
			b, elem = binary.LittleEndian.AppendUint32(b, uint32(c)), tyInt
		} else {
			b = append(b, byte(c))
		}
	}
	return &Node{Op: Str, Pos: at, Type: &Type{Kind: Array, Elem: elem, Len: int64(len(all) + 1)}, Str: string(b)}
}

// widen makes adjacent string constants wide if one of them is (C99 6.4.5p4).
func widen(toks []token) {
	run := func(i int) bool { return toks[i].kind == tString || toks[i].kind == tPragma }
	for i := 0; i < len(toks); i++ {
		from, isWide := i, false
		for ; run(i); i++ { // the last token is none
			isWide = isWide || toks[i].kind == tString && wide(toks[i])
		}
		for k := from; k < i && isWide; k++ {
			if t := &toks[k]; t.kind == tString && !wide(*t) {
				t.text = "L" + t.text
			}
		}
	}
}

func (p *parser) primary() *Node {
	t := p.tok()
	switch t.kind {
	case tNumber:
		p.i++
		return p.numeral(t)
	case tChar:
		p.i++
		b, ok := characters(t.text)
		if !ok || len(b) == 0 {
			p.errorf(t.pos, "empty character constant")
			return p.broken(t.pos)
		}
		v := int64(b[0])
		if len(b) > 1 {
			p.warnf(t.pos, "multi-character character constant")
			v &= 0xff // as gcc has it
		}
		for _, c := range b[1:] {
			v = v<<8 | int64(uint8(c))
		}
		return number(v, tyInt, t.pos)
	case tString:
		return p.stringConstant()
	case tPunct:
		if t.text == "(" {
			p.i++
			if p.at("{") {
				return statements(p, t.pos)
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
		if strings.HasPrefix(t.text, "__builtin_") {
			return builtin(p)
		}
		p.i++
		s := p.find(t.text)
		switch {
		case s == nil && p.at("("):
			s = implicit(p, t)
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
	if k := strings.IndexAny(t.text, "iIjJ"); k >= 0 { // gcc's, of an imaginary part
		t.text = t.text[:k] + t.text[k+1:]
		n := p.numeral(t)
		if !bad(n) {
			ty := &Type{Kind: DoubleComplex}
			if n.Type.Kind == Float {
				ty.Kind = FloatComplex
			}
			n = complexOf(fnumber(0, ty.part(), t.pos), cast(n, ty.part()), ty)
		}
		return n
	}
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
