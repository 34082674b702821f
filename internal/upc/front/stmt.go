package front

// block reads a compound statement.
func (p *parser) block(scope bool) *Node {
	defer p.nest()()
	n := &Node{Op: Block, Pos: p.expect("{").pos}
	mem := p.mem
	if scope {
		p.push()
	}
	p.path = append(p.path, n)
	for !p.at("}") {
		if p.tok().kind == tEOF {
			p.unexpected("expected declaration or statement")
		}
		item := p.item()
		n.List = append(append(n.List, flush(p)...), item...)
	}
	p.path = p.path[:len(p.path)-1]
	p.locks(n)
	if scope {
		p.pop()
	}
	// A pragma before the brace is read with the token after it.
	p.i++
	p.mem = mem
	return n
}

// item reads a declaration or a statement.
func (p *parser) item() []*Node {
	t := p.tok()
	if !p.startsType(t) || p.after().is(":") {
		return []*Node{p.statement()}
	}
	if p.at("_Static_assert") {
		staticAssert(p)
		return nil
	}
	d := p.declspecs(true)
	var out []*Node
	if p.accept(";") {
		return nil
	}
	for {
		ty, name := p.declarator(d.typ, false)
		d.attrs.read(p)
		if ty.Kind == Func && p.at("{") {
			p.fatalf(name.pos, "not supported: nested functions")
		}
		n := p.declaration(d, ty, name)
		if out = append(out, flush(p)...); n != nil {
			out = append(out, n)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
	return out
}

// body reads a statement that belongs to n.
func (p *parser) body(n *Node) *Node {
	p.path = append(p.path, n)
	s := p.statement()
	p.path = p.path[:len(p.path)-1]
	return s
}

func (p *parser) statement() *Node {
	defer p.nest()()
	t := p.tok()
	n := &Node{Pos: t.pos, Op: Empty}
	if t.kind == tPunct {
		switch t.text {
		case "{":
			return p.block(true)
		case ";":
			p.i++
			return n
		}
	}
	if t.kind != tIdent {
		return p.expressionStatement()
	}
	switch t.text {
	case "if":
		p.i++
		n.Op = If
		n.L = p.condition()
		before := flush(p)
		n.R = p.body(n)
		if p.accept("else") {
			n.C = p.body(&Node{Op: Empty, C: n})
		}
		return preceded(p, before, n)
	case "while":
		p.i++
		n.Op = While
		p.heads++
		n.L = p.condition()
		p.heads--
		p.loops++
		p.leaves++
		n.R = p.body(n)
		p.leaves--
		p.loops--
		return n
	case "do":
		p.i++
		n.Op = Do
		p.loops++
		p.leaves++
		n.R = p.body(n)
		p.leaves--
		p.loops--
		p.expect("while")
		p.heads++
		n.L = p.condition()
		p.heads--
		p.expect(";")
		return n
	case "for", "upc_forall":
		return p.loop()
	case "switch":
		p.i++
		n.Op = Switch
		p.expect("(")
		e := p.value(p.expression())
		p.expect(")")
		if !bad(e) && !e.Type.Integer() {
			p.errorf(e.Pos, "switch quantity not an integer")
		}
		n.L = promote(e)
		p.switches = append(p.switches, from(p, n))
		if !p.at("{") {
			p.flat[n] = true
		}
		before := flush(p)
		p.leaves++
		n.R = p.body(n)
		p.leaves--
		p.switches = p.switches[:len(p.switches)-1]
		return preceded(p, before, n)
	case "case", "default":
		return p.caseLabel()
	case "break":
		p.i++
		n.Op = Break
		if p.loops == 0 && len(p.switches) == 0 && p.braced > 0 {
			p.errorf(t.pos, "not supported: break out of statements in an expression")
		} else if p.loops == 0 && len(p.switches) == 0 {
			p.errorf(t.pos, "break statement not within loop or switch")
		}
		if len(p.foralls) > 0 && p.leaves == 0 {
			p.warnf(t.pos, "break out of upc_forall has undefined effects")
		}
		p.expect(";")
		return n
	case "continue":
		p.i++
		n.Op = Continue
		if p.loops == 0 && p.braced > 0 {
			p.errorf(t.pos, "not supported: continue out of statements in an expression")
		} else if p.loops == 0 {
			p.errorf(t.pos, "continue statement not within a loop")
		}
		p.expect(";")
		return n
	case "return":
		return p.returns()
	case "goto":
		p.i++
		n.Op = Goto
		l := p.name()
		n.Str = l.text
		p.gotos = append(p.gotos, from(p, n))
		p.expect(";")
		return n
	case "asm", "__asm__":
		p.fatalf(t.pos, "not supported: asm")
	case "upc_barrier", "upc_notify", "upc_wait":
		p.i++
		n.Op, n.Str = Barrier, t.text
		if !p.at(";") {
			e := p.value(p.expression())
			n.L = p.convert(e, tyInt, e.Pos, t.text+" expression")
		}
		p.collective(t.pos, t.text)
		p.expect(";")
		return n
	case "upc_fence":
		p.i++
		n.Op = Fence
		p.expect(";")
		return n
	}
	if !keywords[t.text] && p.after().is(":") {
		if p.i += 2; p.braced > 0 {
			p.fatalf(t.pos, "not supported: label '%s' in statements in an expression", t.text)
		}
		l := p.labels[t.text]
		if l == nil {
			l = &LabelInfo{Name: t.text}
			p.labels[t.text] = l
		}
		if l.Found {
			p.errorf(t.pos, "duplicate label '%s'", t.text).note(l.Pos, "previous definition of '%s'", t.text)
		}
		l.Found, l.Pos = true, t.pos
		l.at = from(p, n)
		n.Op, n.Str, n.Target = Label, t.text, l
		if p.at("}") {
			p.errorf(p.tok().pos, "label at end of compound statement")
			return n
		}
		if k := len(p.switches); k > 0 && (p.at("case") || p.at("default")) {
			p.flat[p.switches[k-1].n] = true
		}
		n.R = behind(p)
		return n
	}
	return p.expressionStatement()
}

func (p *parser) expressionStatement() *Node {
	n := &Node{Op: Expr, Pos: p.tok().pos}
	n.L = p.expression()
	p.expect(";")
	return n
}

func (p *parser) condition() *Node {
	at := p.expect("(").pos
	e := p.scalar(p.expression(), at)
	p.expect(")")
	return e
}

func (p *parser) caseLabel() *Node {
	t := p.next()
	n := &Node{Op: Default, Pos: t.pos}
	if len(p.switches) == 0 {
		p.fatalf(t.pos, "%s label not within a switch statement", t.text)
	}
	s := p.switches[len(p.switches)-1]
	if t.text == "case" {
		n.Op = Case
		n.I = wrap(p.constant("case label does not reduce to an integer constant"), s.n.L.Type)
		if p.accept("...") { // gcc's
			n.L = number(p.constant("case label does not reduce to an integer constant"), s.n.L.Type, t.pos)
			if _, to := n.bounds(); fold("<", to, n.I, n.L.Type.Unsigned) != 0 {
				p.warnf(t.pos, "empty range specified")
			}
		}
	}
	p.expect(":")
	enters(p, s, modified(p), t.pos, "switch jumps")
	for _, o := range s.n.List {
		least, last := o.bounds()
		from, to := n.bounds()
		// The later beginning of both is in both; an empty range has none.
		meets := int64(1)
		for _, b := range [][2]int64{{least, last}, {least, to}, {from, last}, {from, to}} {
			meets &= fold("<=", b[0], b[1], s.n.L.Type.Unsigned)
		}
		if o.Op == n.Op && (n.Op == Default || meets != 0) {
			if n.Op == Default {
				p.errorf(t.pos, "multiple default labels in one switch").note(o.Pos, "this is the first default label")
			} else {
				p.errorf(t.pos, "duplicate case value").note(o.Pos, "previously used here")
			}
		}
	}
	s.n.List = append(s.n.List, n)
	if inside := p.path[len(s.path):]; len(inside) != 2 || inside[1].Op != Block {
		if into(p, inside, t.pos, "a case label"); !p.at("}") {
			n.R = behind(p)
		}
	}
	return n
}

// bounds are the least and the greatest value of a case.
func (n *Node) bounds() (from, to int64) {
	if n.L != nil {
		return n.I, n.L.I
	}
	return n.I, n.I
}

// behind reads the statement behind a label.
func behind(p *parser) *Node {
	n := p.statement()
	return preceded(p, flush(p), n)
}

// preceded is n behind the statements that have to stand before it.
func preceded(p *parser, before []*Node, n *Node) *Node {
	if len(before) > 0 {
		n = &Node{Op: Block, Pos: n.Pos, List: append(before, n)}
		p.flat[n] = true
	}
	return n
}

func (p *parser) returns() *Node {
	n := &Node{Op: Return, Pos: p.next().pos}
	if len(p.foralls) > 0 {
		p.warnf(n.Pos, "return out of upc_forall has undefined effects")
	}
	want := p.fn.Type.Elem
	if !p.at(";") {
		e := p.value(p.expression())
		switch {
		case bad(e):
		case want.Kind == Void && e.Type.Kind == Void:
			n.L = e
		case want.Kind == Void:
			p.errorf(e.Pos, "'return' with a value, in function returning void")
		default:
			n.L = p.convert(e, want, e.Pos, "return")
		}
	} else if want.Kind != Void {
		p.errorf(n.Pos, "'return' with no value, in function returning non-void")
	}
	p.expect(";")
	return n
}

// loop reads for and upc_forall.
func (p *parser) loop() *Node {
	t := p.next()
	n := &Node{Op: For, Pos: t.pos}
	mem := p.mem
	p.push()
	p.path = append(p.path, n)
	p.expect("(")
	p.heads++
	switch {
	case p.accept(";"):
	case p.startsType(p.tok()):
		n.Init = &Node{Op: Block, Pos: t.pos, List: p.item()}
	default:
		n.Init = p.expressionStatement()
	}
	if !p.at(";") {
		n.L = p.scalar(p.expression(), p.tok().pos)
	}
	p.expect(";")
	closing := ")"
	if t.text == "upc_forall" {
		n.Op = Forall
		closing = ";"
	}
	if !p.at(closing) {
		n.C = p.expression()
	}
	if n.Op == Forall {
		p.expect(";")
		switch {
		case p.at("continue"):
			p.i++
		case p.at(")"):
		default:
			at := p.tok().pos
			e := p.value(p.expression())
			switch {
			case bad(e):
			case e.Type.Integer(), e.Type.ToShared():
				n.Aff = e
				if e.Op == Num && e.Type.Integer() && !e.Type.Unsigned && e.I < 0 {
					p.warnf(at, "the affinity of upc_forall is negative, which has undefined effects")
				}
			default:
				p.errorf(at, "UPC affinity expression is neither an integer nor a pointer-to-shared (have '%v')", e.Type.plain())
			}
		}
		for _, o := range p.foralls {
			if o.Aff != nil {
				n.Inner = true
			}
		}
		if n.Inner && n.Aff != nil {
			p.warnf(t.pos, "a upc_forall inside another with an affinity: every thread that is in its body executes all iterations")
		}
		p.foralls = append(p.foralls, n)
	}
	p.expect(")")
	p.heads--
	p.loops++
	leaves := p.leaves
	if p.leaves++; n.Op == Forall {
		p.leaves = 0
	}
	n.R = p.body(n)
	p.leaves = leaves
	p.loops--
	if n.Op == Forall {
		p.foralls = p.foralls[:len(p.foralls)-1]
	}
	p.path = p.path[:len(p.path)-1]
	p.pop()
	p.mem = mem
	return n
}
