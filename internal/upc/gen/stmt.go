package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

func (g *gen) emit(s ...*ir.Stmt) { *g.out = append(*g.out, s...) }

// capture returns the statements that f emits.
func (g *gen) capture(f func()) ir.Block {
	save := g.out
	var b ir.Block
	g.out = &b
	f()
	g.out = save
	return b
}

// name is that of a variable that is none of the program's.
func (g *gen) name() exp {
	g.temps++
	return ir.Name(fmt.Sprintf("tmp%d", g.temps))
}

// temp declares a variable of type t with a value, if there is one.
func (g *gen) temp(t ir.Type, value exp) exp {
	n := g.name()
	if g.hoist == nil {
		g.emit(ir.Declare(n, t, value))
		return n
	}
	*g.hoist = append(*g.hoist, ir.Declare(n, t, exp{}), ir.Drop(n))
	if !value.Zero() {
		g.emit(ir.Set(n, value))
	}
	return n
}

// variable is a local variable that is one of Go.
func (g *gen) variable(s *front.Sym) exp {
	if e, ok := g.renamed[s]; ok {
		return e
	}
	return ir.Name(s.Go)
}

var (
	result  = ir.Name("result_") // what a function that calls setjmp returns
	statics = ir.Name("static")  // the variables with static storage
)

// function is a function's definition.
func (g *gen) function(s *front.Sym, c *ir.Code) {
	g.fn, g.temps, g.hoist, g.line = s, 0, nil, front.Pos{}
	g.breaks = nil
	g.locals, g.labels = map[string]int{}, map[*front.LabelInfo]bool{}
	var top, body ir.Block
	g.out = &body
	// local is a variable on the stack of package libc.
	stack := s.Stack
	local := func(v *front.Sym, note string) *ir.Stmt {
		stack = true
		f, args := "libc.Local", []exp{ir.Address(ir.Name("upc.c"))}
		if v.Align > 16 {
			f, args = "libc.LocalAligned", append(args, num(v.Align))
		}
		d := ir.Define(ir.Name(v.Go), ir.CallOf(ir.Generic(f, g.goType(v.Type)), args...))
		d.Note = note
		return d
	}
	var names []exp
	for i, p := range s.Params {
		p.Go = g.localName(p)
		n := ir.Name(p.Go)
		t, passed := g.goType(p.Type), g.goType(s.Type.Params[i])
		if opt.OnStack(p) || t != passed { // a function without a prototype takes a float as a double
			n = g.name()
			v := n
			if t != passed {
				v = ir.Convert(t, n)
			}
			if opt.OnStack(p) {
				top = append(top, local(p, ""), ir.Set(ir.Deref(ir.Name(p.Go)), v))
			} else {
				top = append(top, ir.Declare(ir.Name(p.Go), t, v), ir.Drop(ir.Name(p.Go)))
			}
		}
		names = append(names, n)
	}
	for _, l := range s.Locals {
		l.Go = g.localName(l)
		if l.Mark {
			stack = true
			if !s.Gotos {
				top = append(top, ir.Declare(ir.Name(l.Go), goPtr, exp{}), ir.Drop(ir.Name(l.Go)))
			}
		}
		if opt.OnStack(l) {
			top = append(top, local(l, l.Name), ir.Drop(ir.Name(l.Go)))
		}
	}
	if s.Gotos {
		g.hoist = &top
		for _, l := range s.Locals {
			if !opt.OnStack(l) {
				top = append(top, ir.Declare(ir.Name(l.Go), g.goType(l.Type), exp{}), ir.Drop(ir.Name(l.Go)))
			}
		}
	}
	for i, l := range s.Landings {
		g.labels[l.At.Target] = true
		g.emit(ir.When(ir.Op(ir.Name("place_"), "==", num(int64(i+1))), ir.Block{
			ir.Set(underway, ir.Name("forall_")), ir.Set(g.place(l.Value), ir.Name("value_")), ir.Keyword("goto " + ident(l.At.Str)),
		}, nil))
	}
	_, terms := g.block(s.Body)
	anew := false
	for l, jumped := range g.labels {
		if !jumped { // but from what is never reached: nor is what follows, perhaps
			l.Used, anew = false, true
		}
	}
	if anew {
		g.function(s, c)
		return
	}
	if t := s.Type.Elem; !terms && t.Kind != front.Void && s.Landings == nil {
		v := zero(t)
		if t.Kind == front.Struct || t.Kind == front.Union {
			v = ir.Literals(g.goType(t))
		}
		g.emit(ir.Keyword("return", v))
	}
	head := g.capture(func() { g.mark(s.Pos) })
	later := func(of string, e exp) { head = append(head, ir.Keyword("defer", ir.CallTo(of, e))) }
	if s.Type.Variadic {
		// The caller has pushed them.
		later("upc.c.Release", unsafely(ir.Name(variadic)))
	}
	if stack {
		later("upc.c.Release", ir.CallTo("upc.c.Mark"))
	}
	if top.Uses(statics) || body.Uses(statics) {
		head = append(head, ir.Define(statics, ir.Name("upc.g")))
	}
	c.Printf("// %s is %s at %v.\nfunc %s", s.Go, s.Name, at(s.Pos), s.Go)
	c.Params(g.params(s.Type, names), g.result(s.Type))
	c.WriteString(" {\n")
	for _, b := range []ir.Block{head, top} {
		c.Print(b)
	}
	if s.Landings == nil {
		c.Print(body)
		c.WriteString("}\n")
		return
	}
	c.Packages |= ir.LibC
	var returns ir.Block
	if t := s.Type.Elem; t.Kind != front.Void {
		c.Print(ir.Block{ir.Declare(result, g.goType(t), exp{})})
		returns = ir.Block{ir.Keyword("return", result)}
	}
	c.WriteString("forall_ := upc.forall\nlibc.Catch(&upc.c, func(frame_ uint64, place_, value_ int32) {\n")
	c.Print(body)
	c.WriteString("})\n")
	c.Print(returns)
	c.WriteString("}\n")
}

func zero(t *front.Type) exp {
	if t.Kind == front.Pointer && !t.ToShared() {
		return ir.Nil
	}
	return num(0)
}

// localName is the name of a local variable. Those that are declared at the top of the
// function have names of their own.
func (g *gen) localName(s *front.Sym) string {
	n := ident(s.Name)
	if (opt.OnStack(s) || s.Mark || g.fn.Gotos || g.locals[n] < 0) && (g.locals[n] != 0 || g.funcs[s.Name] != nil) || g.locals[n] < 0 {
		k := 2
		for g.locals[fmt.Sprintf("%s_%d", n, k)] != 0 {
			k++
		}
		n = fmt.Sprintf("%s_%d", n, k)
	}
	g.locals[n] = 1
	if opt.OnStack(s) || s.Mark {
		g.locals[n] = -1 // nothing else in the function has it
	}
	return n
}

// comment is the source of a statement.
func (g *gen) comment(p front.Pos) {
	if p.File == g.line.File && p.Line == g.line.Line {
		return
	}
	g.line = p
	g.mark(p)
	if l := g.lines[p.File]; p.Line <= len(l) {
		if text := strings.TrimSpace(l[p.Line-1]); text != "" && text != "{" && text != "}" {
			g.emit(&ir.Stmt{Kind: ir.Comment, Text: fmt.Sprintf("%d: %s", p.Line, clean(text))})
		}
	}
}

// at is a place as a comment has it.
func at(p front.Pos) string { return clean(p.String()) }

// clean is text as a comment of Go may have it: UTF-8, without what Go refuses.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == '\ufeff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// block is the statements of a block, without braces. ends says that its end is not reached,
// terms that Go sees so.
func (g *gen) block(n *front.Node) (ends, terms bool) {
	for _, s := range n.List {
		if ends && !target(s) {
			continue // vet refuses what is never reached
		}
		ends, terms = g.stmt(s)
	}
	return ends, terms
}

// target reports whether something may jump to n.
func target(n *front.Node) bool {
	for ; n != nil && n.Op == front.Label; n = n.R {
		if n.Target.Used {
			return true
		}
	}
	return false
}

// inside is a statement as the body of another, in braces that the caller has written.
func (g *gen) inside(n *front.Node) (ends, terms bool) {
	if n.Op == front.Block {
		return g.block(n)
	}
	return g.stmt(n)
}

func (g *gen) stmt(n *front.Node) (ends, terms bool) {
	if n.Op != front.Block && n.Op != front.Empty {
		g.comment(n.Pos)
	}
	switch n.Op {
	case front.Block:
		g.emit(ir.Inside(g.capture(func() { ends, terms = g.block(n) })))
		return ends, terms
	case front.Empty:
	case front.Decl:
		g.decl(n)
	case front.Expr:
		g.discard(n.L)
	case front.If:
		return g.ifStmt(n)
	case front.While:
		g.windowed(n, n.R, false, func() {
			plain := func() {
				var ok bool
				if ends, terms, ok = withRows(g, n); !ok {
					ends, terms = g.loop(nil, n.L, nil, n.R, nil)
				}
			}
			if loop, ok := opt.WhileLoop(n); !ok || !g.together(loop, nil, plain) {
				plain()
			}
		})
		return ends, terms
	case front.Do:
		g.windowed(n, n.R, false, func() {
			var ok bool
			if ends, terms, ok = withRows(g, n); !ok {
				ends, terms = g.doLoop(n)
			}
		})
		return ends, terms
	case front.For:
		g.windowed(n, n.R, false, func() {
			plain := func() {
				if g.countedFor(n) {
					return
				}
				var ok bool
				if ends, terms, ok = withRows(g, n); !ok {
					ends, terms = g.forLoop(n, nil)
				}
			}
			if !g.together(n, nil, plain) {
				plain()
			}
		})
		return ends, terms
	case front.Forall:
		g.windowed(n, n.R, false, func() { g.forall(n) })
	case front.Switch:
		return g.switchStmt(n)
	case front.Label:
		if n.Target.Used {
			if !g.labels[n.Target] {
				g.labels[n.Target] = false
			}
			g.emit(ir.Keyword(ident(n.Str) + ":"))
		}
		if l := n.Target.Loop; l != nil {
			g.poll(l.L, l.C, l.R)
		}
		if n.R == nil {
			g.emit(ir.Keyword(";"))
			return false, false
		}
		if n.R.Op == front.Empty || n.R.Op == front.Decl {
			g.emit(ir.Inside(nil))
		}
		return g.stmt(n.R)
	case front.Goto:
		g.labels[n.Target] = true
		g.emit(ir.Keyword("goto " + ident(n.Str)))
		return true, true
	case front.Break:
		*g.breaks[len(g.breaks)-1]++
		g.emit(ir.Keyword("break"))
		return true, false
	case front.Continue:
		g.emit(ir.Keyword("continue"))
		return true, false
	case front.Return:
		switch {
		case n.L == nil:
			g.emit(ir.Keyword("return"))
		case n.L.Type.Kind == front.Void:
			g.discard(n.L)
			g.emit(ir.Keyword("return"))
		case len(g.fn.Landings) > 0:
			g.emit(ir.Set(result, g.direct(n.L)), ir.Keyword("return"))
		default:
			g.emit(ir.Keyword("return", g.direct(n.L)))
		}
		return true, true
	case front.Barrier:
		g.barrier(n)
	case front.Fence:
		g.emit(ir.Do(ir.CallTo("upc.Fence")))
	default:
		panic(fmt.Sprintf("gen: statement %d", n.Op))
	}
	return false, false
}

// decl is a declaration in a block.
func (g *gen) decl(n *front.Node) {
	s := n.Sym
	if g.hoist != nil || opt.OnStack(s) {
		for _, i := range n.List {
			g.discard(i)
		}
		return
	}
	list := n.List
	// The scope of a name begins before its initialiser in C (6.2.1p7), behind it in Go.
	if len(list) == 1 && list[0].Op == front.Assign && !opt.Uses(list[0].R, s) {
		v := g.direct(list[0].R)
		g.emit(ir.Declare(ir.Name(s.Go), g.goType(s.Type), v))
		list = nil
	} else {
		g.emit(ir.Declare(ir.Name(s.Go), g.goType(s.Type), exp{}))
		if len(list) > 0 && list[0].Op == front.Zero {
			list = list[1:]
		}
	}
	g.emit(ir.Drop(ir.Name(s.Go))) // what reads it may be left out
	for _, i := range list {
		g.discard(i)
	}
}

func (g *gen) ifStmt(n *front.Node) (ends, terms bool) {
	s := ir.When(g.cond(n.L), nil, nil)
	s.Body = g.capture(func() { ends, terms = g.inside(n.R) })
	g.emit(s)
	if n.C == nil {
		return false, false
	}
	save := g.line
	var e, t bool
	s.Else = g.capture(func() { e, t = g.inside(n.C) })
	// An else if whose condition needs statements before it stands in braces.
	if n.C.Op == front.If {
		g.line = save
		s.Chain()
	}
	return ends && e, terms && t
}

// loop is a loop; test, if given, is emitted at the beginning of the body.
func (g *gen) loop(init *ir.Stmt, cond, post, body *front.Node, test func()) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	var c exp
	var pre, after ir.Block
	always := cond == nil || cond.Op == front.Num && cond.I != 0
	if !always {
		g.watched++
		pre = g.capture(func() { c = g.cond(cond) })
		g.watched--
	}
	if post != nil {
		after = g.capture(func() { g.discard(post) })
	}
	next, ok := after.Head()
	loop := ir.Loop(nil, exp{}, nil, nil)
	outer := ir.Block{loop}
	if len(pre) == 0 && ok {
		loop.Head(init, c, next)
	} else {
		if init != nil {
			outer = ir.Block{ir.Inside(ir.Block{init, loop})}
		}
		if len(after) > 0 {
			first := g.name()
			loop.Head(ir.Define(first, ir.True), exp{}, ir.Set(first, ir.False))
			loop.Body = ir.Block{ir.When(ir.Not(first), after, nil)}
		}
		if !always {
			loop.Body = append(append(loop.Body, pre...), ir.When(ir.Not(c), ir.Block{ir.Keyword("break")}, nil))
		}
	}
	loop.Body = append(loop.Body, g.capture(func() {
		g.poll(cond, post, body)
		if test != nil {
			test()
		}
		g.inside(body)
	})...)
	g.emit(outer...)
	g.breaks = g.breaks[:len(g.breaks)-1]
	endless := always && count == 0
	return endless, endless
}

// poll answers messages in a loop that may wait for another thread's write.
func (g *gen) poll(cond, post, body *front.Node) {
	if opt.Waits(cond, post, body) {
		g.emit(ir.Do(ir.CallTo("upc.Poll")))
	}
}

func (g *gen) doLoop(n *front.Node) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	defer func() { g.breaks = g.breaks[:len(g.breaks)-1] }()
	if n.L.Op == front.Num && n.L.I != 0 {
		g.emit(ir.Loop(nil, exp{}, nil, g.capture(func() { g.inside(n.R) })))
		return count == 0, count == 0
	}
	var c exp
	g.watched++
	pre := g.capture(func() { c = g.cond(n.L) })
	g.watched--
	t := g.name()
	loop := ir.Loop(ir.Define(t, ir.True), t, ir.Set(t, c), nil)
	if len(pre) > 0 {
		loop.Head(ir.Define(t, ir.True), exp{}, ir.Set(t, ir.False))
		end := ir.When(ir.Not(c), ir.Block{ir.Keyword("break")}, nil)
		loop.Body = ir.Block{ir.When(ir.Not(t), append(pre, end), nil)}
	}
	loop.Body = append(loop.Body, g.capture(func() {
		g.poll(n.L, nil, n.R)
		g.inside(n.R)
	})...)
	g.emit(loop)
	return false, false
}

// forLoop is a for loop, with a test for upc_forall.
func (g *gen) forLoop(n *front.Node, test func()) (ends, terms bool) {
	var init *ir.Stmt
	loop := func() { ends, terms = g.loop(init, n.L, n.C, n.R, test) }
	switch {
	case n.Init == nil:
	case n.Init.Op == front.Block:
		if init = g.inHead(n); init == nil {
			g.emit(ir.Inside(g.capture(func() {
				g.block(n.Init)
				loop()
			})))
			return ends, terms
		}
	default:
		first := g.capture(func() { g.discard(n.Init.L) })
		if s, ok := first.Head(); ok {
			init = s
		} else {
			g.emit(first...)
		}
	}
	loop()
	return ends, terms
}

// inHead is the declaration of a loop's variable as it stands in the head of Go's loop, or nil.
func (g *gen) inHead(n *front.Node) *ir.Stmt {
	d := n.Init.List
	if len(d) != 1 || g.hoist != nil || opt.OnStack(d[0].Sym) || len(d[0].List) != 1 || d[0].List[0].Op != front.Assign || !opt.Uses(n.L, d[0].Sym) {
		return nil
	}
	var v exp
	if pre := g.capture(func() { v = g.typed(d[0].List[0].R) }); len(pre) > 0 {
		return nil
	}
	return ir.Define(ir.Name(d[0].Sym.Go), v)
}

// forall is upc_forall (UPC 1.3, 6.6.2). Of nested loops only the outermost with an affinity
// shares out its iterations, whichever function it stands in.
func (g *gen) forall(n *front.Node) {
	if n.Aff == nil || n.Inner {
		plain := func() { g.forLoop(n, nil) }
		if !g.together(n, nil, plain) {
			plain()
		}
		return
	}
	alone := g.fn.Name == "main" // which no loop calls
	counts := func(loop func()) {
		if n.Calls {
			g.emit(ir.Update(underway, "++"))
			defer g.emit(ir.Update(underway, "--"))
		}
		loop()
	}
	l, ok := g.localOf(n)
	if ok && !g.fn.Gotos && g.local == nil {
		counts(func() {
			own := g.capture(func() {
				plain := func() { g.localForall(n, l) }
				if !g.together(n, l.share(g, n), plain) {
					plain()
				}
			})
			if alone {
				g.emit(own...)
				return
			}
			was := num(0)
			if n.Calls {
				was = num(1)
			}
			g.line = front.Pos{}
			g.emit(ir.When(ir.Op(underway, "==", was), own, g.capture(func() { g.forLoop(n, nil) })))
		})
		return
	}
	control := exp{}
	if !alone {
		control = g.temp(ir.Named("bool"), ir.Op(underway, "==", num(0)))
	}
	others := func() exp {
		var c exp
		if t := n.Aff.Type; t.Unsigned && t.Size() == 8 {
			c = ir.Not(g.helper("mineOf", g.typed(n.Aff)))
		} else if t.Integer() {
			c = ir.Not(g.helper("mine", ir.Convert(goInt64, g.expr(n.Aff))))
		} else {
			c = ir.Op(ir.Method(g.expr(n.Aff), "Thread"), "!=", myThread)
		}
		if !control.Zero() {
			c = ir.Op(control, "&&", c)
		}
		return c
	}
	plain := func() {
		g.forLoop(n, func() {
			c := others()
			g.emit(ir.When(c, ir.Block{ir.Keyword("continue")}, nil))
		})
	}
	counts(func() {
		if !g.together(n, g.tested(n, others), plain) {
			plain()
		}
	})
}

// tested is how the thread's iterations are found by a look at each.
func (g *gen) tested(n *front.Node, others func() exp) *share {
	return &share{
		own: func(*front.Node) bool { return false },
		aff: n.Aff,
		find: func(next, end, list exp) {
			i, _ := opt.Upwards(n)
			g.emit(ir.Loop(nil, room(next, end, list), ir.Update(next, "++"), g.capture(func() {
				g.emit(ir.Set(g.variable(i), ir.Convert(g.goType(i.Type), next)))
				c := others()
				g.emit(ir.When(c, ir.Block{ir.Keyword("continue")}, nil), push(list, next))
			})))
		},
	}
}

func (g *gen) switchStmt(n *front.Node) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	defer func() { g.breaks = g.breaks[:len(g.breaks)-1] }()
	sw, tag := &ir.Stmt{Kind: ir.Switch, R: []exp{g.typed(n.L)}}, exp{}
	if slices.ContainsFunc(n.List, func(c *front.Node) bool { return c.L != nil }) { // a range
		tag, sw.R = g.temp(g.goType(n.L.Type), sw.R[0]), nil
	}
	var all ir.Block
	for _, s := range n.R.List {
		if s.Op == front.Decl && g.hoist == nil && !opt.OnStack(s.Sym) {
			v := ir.Name(s.Sym.Go)
			all = append(all, ir.Declare(v, g.goType(s.Sym.Type), exp{}), ir.Drop(v))
		}
	}
	g.emit(ir.Inside(append(all, sw)))
	list := n.R.List
	i := 0
	for i < len(list) && list[i].Op != front.Case && list[i].Op != front.Default {
		i++
	}
	hasDefault, closed := false, true
	for i < len(list) {
		c := &ir.Stmt{Kind: ir.Case}
		def := false
		for ; i < len(list) && (list[i].Op == front.Case || list[i].Op == front.Default); i++ {
			sw.Body = append(sw.Body, g.capture(func() { g.comment(list[i].Pos) })...)
			if list[i].Op == front.Default {
				def = true
			} else if v := number(list[i].I, n.L.Type); tag.Zero() {
				c.R = append(c.R, v)
			} else if last := list[i].L; last == nil {
				c.R = append(c.R, ir.Op(tag, "==", v))
			} else {
				c.R = append(c.R, ir.Op(ir.Op(tag, ">=", v), "&&", ir.Op(tag, "<=", number(last.I, n.L.Type))))
			}
		}
		if def {
			hasDefault, c.R = true, nil
		}
		sw.Body = append(sw.Body, c)
		save := g.out
		g.out = &c.Body
		ends, terms = false, false
		broken := false
		for ; i < len(list) && list[i].Op != front.Case && list[i].Op != front.Default; i++ {
			s := list[i]
			switch {
			case ends && !target(s):
			case s.Op == front.Break && (i+1 == len(list) || list[i+1].Op == front.Case || list[i+1].Op == front.Default):
				ends, terms, broken = true, false, true
			case s.Op == front.Decl && g.hoist == nil && !opt.OnStack(s.Sym):
				for _, a := range s.List {
					g.discard(a)
				}
				ends, terms = false, false
			default:
				ends, terms = g.stmt(s)
			}
		}
		if i < len(list) && !ends {
			g.emit(ir.Keyword("fallthrough"))
			terms = true
		}
		g.out = save
		closed = closed && terms && !broken
	}
	terms = hasDefault && closed && count == 0
	return terms, terms
}

func (g *gen) barrier(n *front.Node) {
	what := map[string]string{"upc_barrier": "upc.Barrier", "upc_notify": "upc.Notify", "upc_wait": "upc.Wait"}[n.Str]
	call := ir.CallTo(what + "Any")
	if n.L != nil {
		call = ir.CallTo(what, g.expr(n.L))
	}
	if n.Str == "upc_barrier" {
		g.emit(ir.Do(ir.CallTo("upc.c.Flush")))
	}
	g.emit(ir.Do(call))
}

func number(v int64, t *front.Type) exp {
	if t.Unsigned {
		return ir.Int(uint64(v))
	}
	return num(v)
}
