package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

func (g *gen) emit(format string, args ...any) {
	fmt.Fprintf(g.out, format+"\n", args...)
}

// capture returns the text that f emits.
func (g *gen) capture(f func()) string {
	save := g.out
	g.out = new(strings.Builder)
	f()
	s := g.out.String()
	g.out = save
	return s
}

// temp declares a variable of Go type t with a value, if that is not "".
func (g *gen) temp(t, value string) string {
	g.temps++
	n := fmt.Sprintf("tmp%d", g.temps)
	switch {
	case g.hoist != nil:
		fmt.Fprintf(g.hoist, "var %s %s\n_ = %s\n", n, t, n)
		if value != "" {
			g.emit("%s = %s", n, value)
		}
	case value == "":
		g.emit("var %s %s", n, t)
	default:
		g.emit("var %s %s = %s", n, t, value)
	}
	return n
}

// onStack reports whether a local variable lies on the stack of package libc.
func onStack(s *front.Sym) bool { return s.Storage == front.Local && s.Addressed }

// function is a function's definition.
func (g *gen) function(s *front.Sym) string {
	g.fn, g.temps, g.hoist, g.line = s, 0, nil, front.Pos{}
	g.breaks, g.statics = nil, false
	g.locals = map[string]int{}
	var top, body strings.Builder
	g.out = &body
	var names []string
	stack := false
	for _, p := range s.Params {
		p.Go = g.localName(p)
		n := p.Go
		if onStack(p) {
			stack = true
			g.temps++
			n = fmt.Sprintf("tmp%d", g.temps) // no name of the program
			fmt.Fprintf(&top, "%s := libc.Local[%s](&upc.c)\n*%s = %s\n", p.Go, g.goType(p.Type), p.Go, n)
		}
		names = append(names, n)
	}
	for _, l := range s.Locals {
		l.Go = g.localName(l)
		if onStack(l) {
			stack = true
			fmt.Fprintf(&top, "%s := libc.Local[%s](&upc.c) // %s\n_ = %s\n", l.Go, g.goType(l.Type), l.Name, l.Go)
		}
	}
	if s.Gotos {
		g.hoist = &top
		for _, l := range s.Locals {
			if !onStack(l) {
				fmt.Fprintf(&top, "var %s %s\n_ = %s\n", l.Go, g.goType(l.Type), l.Go)
			}
		}
	}
	_, terms := g.block(s.Body)
	if !terms && s.Type.Elem.Kind != front.Void {
		if s.Type.Elem.Kind == front.Struct || s.Type.Elem.Kind == front.Union {
			g.emit("return %s{}", g.goType(s.Type.Elem))
		} else {
			g.emit("return %s", zero(s.Type.Elem))
		}
	}
	sig := strings.TrimPrefix(g.signature(s.Type, names), "func")
	mark := g.capture(func() { g.mark(s.Pos) })
	head := fmt.Sprintf("// %s is %s at %v.\nfunc %s%s {\n%s", s.Go, s.Name, s.Pos, s.Go, sig, mark)
	if s.Type.Variadic {
		// The caller has pushed them.
		head += "defer upc.c.Release(unsafe.Pointer(" + variadic + "))\n"
	}
	if stack {
		head += "defer upc.c.Release(upc.c.Mark())\n"
	}
	if g.statics {
		head += "static := upc.g\n"
	}
	return head + top.String() + body.String() + "}\n"
}

func zero(t *front.Type) string {
	if t.Kind == front.Pointer && !t.ToShared() {
		return "nil"
	}
	return "0"
}

// localName is the name of a local variable. Those that are declared at the top of the
// function have names of their own.
func (g *gen) localName(s *front.Sym) string {
	n := ident(s.Name)
	if (onStack(s) || g.fn.Gotos || g.locals[n] < 0) && (g.locals[n] != 0 || g.funcs[s.Name] != nil) || g.locals[n] < 0 {
		k := 2
		for g.locals[fmt.Sprintf("%s_%d", n, k)] != 0 {
			k++
		}
		n = fmt.Sprintf("%s_%d", n, k)
	}
	g.locals[n] = 1
	if onStack(s) {
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
			g.emit("\t// %d: %s", p.Line, clean(text))
		}
	}
}

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
		if ends && s.Op != front.Label {
			continue // vet refuses what is never reached
		}
		ends, terms = g.stmt(s)
	}
	return ends, terms
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
		g.emit("{")
		ends, terms = g.block(n)
		g.emit("}")
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
			plain := func() { ends, terms = g.loop("", n.L, nil, n.R, nil) }
			if loop, ok := whileLoop(n); !ok || !g.together(loop, nil, plain) {
				plain()
			}
		})
		return ends, terms
	case front.Do:
		g.windowed(n, n.R, false, func() { ends, terms = g.doLoop(n) })
		return ends, terms
	case front.For:
		g.windowed(n, n.R, false, func() {
			plain := func() {
				if !g.countedFor(n) {
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
			g.emit("%s:", ident(n.Str))
		}
		if n.R == nil {
			g.emit(";")
			return false, false
		}
		if n.R.Op == front.Empty || n.R.Op == front.Decl {
			g.emit("{\n}")
		}
		return g.stmt(n.R)
	case front.Goto:
		g.emit("goto %s", ident(n.Str))
		return true, true
	case front.Break:
		*g.breaks[len(g.breaks)-1]++
		g.emit("break")
		return true, false
	case front.Continue:
		g.emit("continue")
		return true, false
	case front.Return:
		switch {
		case n.L == nil:
			g.emit("return")
		case n.L.Type.Kind == front.Void:
			g.discard(n.L)
			g.emit("return")
		default:
			g.emit("return %s", g.direct(n.L).s)
		}
		return true, true
	case front.Barrier:
		g.barrier(n)
	case front.Fence:
		g.emit("upc.Fence()")
	default:
		panic(fmt.Sprintf("gen: statement %d", n.Op))
	}
	return false, false
}

// decl is a declaration in a block.
func (g *gen) decl(n *front.Node) {
	s := n.Sym
	if g.hoist != nil || onStack(s) {
		for _, i := range n.List {
			g.discard(i)
		}
		return
	}
	list := n.List
	// The scope of a name begins before its initialiser in C (6.2.1p7), behind it in Go.
	if len(list) == 1 && list[0].Op == front.Assign && !reads(list[0].R, s) {
		v := g.direct(list[0].R)
		g.emit("var %s %s = %s", s.Go, g.goType(s.Type), v.s)
		list = nil
	} else {
		g.emit("var %s %s", s.Go, g.goType(s.Type))
		if len(list) > 0 && list[0].Op == front.Zero {
			list = list[1:]
		}
	}
	g.emit("_ = %s", s.Go) // what reads it may be left out
	for _, i := range list {
		g.discard(i)
	}
}

func (g *gen) ifStmt(n *front.Node) (ends, terms bool) {
	g.emit("if %s {", g.cond(n.L).s)
	ends, terms = g.inside(n.R)
	if n.C == nil {
		g.emit("}")
		return false, false
	}
	// An else if whose condition needs statements before it stands in braces.
	if n.C.Op == front.If {
		save := g.line
		text := g.capture(func() {
			e, t := g.stmt(n.C)
			ends, terms = ends && e, terms && t
		})
		g.line = save
		line := text
		for strings.HasPrefix(line, "\t//") {
			_, line, _ = strings.Cut(line, "\n")
		}
		if strings.HasPrefix(line, "if ") {
			g.emit("} else %s", strings.TrimSuffix(line, "\n"))
			return ends, terms
		}
		g.emit("} else {\n%s}", text)
		return ends, terms
	}
	g.emit("} else {")
	e, t := g.inside(n.C)
	g.emit("}")
	return ends && e, terms && t
}

// simple reports whether statements may stand in the head of a for loop, and as what.
func simple(post string) (string, bool) {
	lines := strings.Split(strings.TrimSpace(post), "\n")
	if len(lines) == 1 {
		s := lines[0]
		for _, p := range []string{"var ", "if ", "for ", "//", "_ = "} {
			if strings.HasPrefix(s, p) {
				return "", false
			}
		}
		return s, !strings.ContainsAny(s, "{}")
	}
	var l, r []string
	for _, s := range lines {
		name := strings.TrimRight(s, "+-")
		if len(s)-len(name) != 2 || strings.ContainsAny(name, " .*()[]") || slices.Contains(l, name) {
			return "", false // Go's i, i = i+1, i+1 adds one
		}
		l = append(l, name)
		r = append(r, name+s[len(s)-1:]+"1")
	}
	return strings.Join(l, ", ") + " = " + strings.Join(r, ", "), true
}

// loop is a loop; test, if given, is emitted at the beginning of the body.
func (g *gen) loop(init string, cond, post, body *front.Node, test func()) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	var c exp
	pre := ""
	always := cond == nil || cond.Op == front.Num && cond.I != 0
	if !always {
		g.watched++
		pre = g.capture(func() { c = g.cond(cond) })
		g.watched--
	}
	after := ""
	if post != nil {
		after = g.capture(func() { g.discard(post) })
	}
	p, ok := simple(after)
	endless := false
	switch {
	case pre == "" && ok && (always && p == "" && init == ""):
		g.emit("for {")
		endless = true
	case pre == "" && ok && init == "" && p == "":
		g.emit("for %s {", c.s)
	case pre == "" && ok:
		g.emit("for %s; %s; %s {", init, c.s, p)
		endless = always
	default:
		if init != "" {
			g.emit("{\n%s", init)
		}
		if after == "" {
			g.emit("for {")
		} else {
			g.temps++
			first := fmt.Sprintf("tmp%d", g.temps)
			g.emit("for %s := true; ; %s = false {\nif !%s {\n%s}", first, first, first, after)
		}
		if always {
			endless = true
		} else {
			g.emit("%sif %s {\nbreak\n}", pre, not(c).s)
		}
	}
	if waits(cond, post, body) {
		g.emit("upc.Poll()")
	}
	if test != nil {
		test()
	}
	g.inside(body)
	g.emit("}")
	if init != "" && !(pre == "" && ok) {
		g.emit("}")
	}
	g.breaks = g.breaks[:len(g.breaks)-1]
	endless = endless && count == 0
	return endless, endless
}

func (g *gen) doLoop(n *front.Node) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	defer func() { g.breaks = g.breaks[:len(g.breaks)-1] }()
	if n.L.Op == front.Num && n.L.I != 0 {
		g.emit("for {")
		g.inside(n.R)
		g.emit("}")
		return count == 0, count == 0
	}
	var c exp
	g.watched++
	pre := g.capture(func() { c = g.cond(n.L) })
	g.watched--
	g.temps++
	t := fmt.Sprintf("tmp%d", g.temps)
	if pre == "" {
		g.emit("for %s := true; %s; %s = %s {", t, t, t, c.s)
	} else {
		g.emit("for %s := true; ; %s = false {\nif !%s {\n%sif %s {\nbreak\n}\n}", t, t, t, pre, not(c).s)
	}
	if waits(n.L, nil, n.R) {
		g.emit("upc.Poll()")
	}
	g.inside(n.R)
	g.emit("}")
	return false, false
}

// waits reports whether a loop may wait for another thread's relaxed write: its condition reads
// shared memory, and nothing private that the loop assigns to. Such a loop has to answer
// messages, since the write may be one.
func waits(cond, post, body *front.Node) bool {
	assigned, through := map[*front.Sym]bool{}, false
	for _, n := range []*front.Node{cond, post, body} {
		walk(n, func(n *front.Node) {
			switch n.Op {
			case front.Assign, front.AssignOp, front.IncDec:
				if n.L.Op == front.Var {
					assigned[n.L.Sym] = true
				} else if !n.L.Type.IsShared() {
					through = true
				}
			case front.Decl:
				assigned[n.Sym] = true
			}
		})
	}
	shared, changes := false, false
	walk(cond, func(n *front.Node) {
		switch n.Op {
		case front.Var, front.Deref, front.Index, front.Member:
			switch {
			case n.Type.IsShared():
				shared = shared || n.Mem != front.Strict && n.Type.Kind != front.Array
			case n.Op == front.Var:
				changes = changes || assigned[n.Sym]
			default:
				changes = changes || through
			}
		}
	})
	return shared && !changes
}

// reads reports whether condition n, which Go sees in any case, has s.
func reads(n *front.Node, s *front.Sym) (found bool) {
	walk(n, func(n *front.Node) { found = found || n.Op == front.Var && n.Sym == s })
	return found
}

// forLoop is a for loop, with a test for upc_forall.
func (g *gen) forLoop(n *front.Node, test func()) (ends, terms bool) {
	init, braces := "", false
	if n.Init != nil {
		text := ""
		if n.Init.Op == front.Block {
			if d := n.Init.List; len(d) == 1 && g.hoist == nil && !onStack(d[0].Sym) && len(d[0].List) == 1 && d[0].List[0].Op == front.Assign && reads(n.L, d[0].Sym) {
				var v exp
				r := d[0].List[0].R
				pre := g.capture(func() { v = g.typed(r) })
				if pre == "" {
					init = fmt.Sprintf("%s := %s", d[0].Sym.Go, v.s)
				}
			}
			if init == "" {
				text = g.capture(func() { g.block(n.Init) })
				braces = true
			}
		} else {
			text = g.capture(func() { g.discard(n.Init.L) })
			if s, ok := simple(text); ok {
				init, text = s, ""
			}
		}
		if braces {
			g.emit("{")
		}
		g.out.WriteString(text)
	}
	ends, terms = g.loop(init, n.L, n.C, n.R, test)
	if braces {
		g.emit("}")
	}
	return ends, terms
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
	control := ""
	l, ok := g.runs(n)
	if !ok {
		l, ok = g.affine(n)
	}
	if ok && !g.fn.Gotos && g.local == nil {
		if n.Calls {
			g.emit("upc.forall++")
		}
		own := func() {
			plain := func() { g.localForall(n, l) }
			if !g.together(n, l.share(g, n), plain) {
				plain()
			}
		}
		switch {
		case alone:
			own()
		default:
			was := "== 0"
			if n.Calls {
				was = "== 1"
			}
			g.emit("if upc.forall %s {", was)
			own()
			g.emit("} else {")
			g.line = front.Pos{}
			g.forLoop(n, nil)
			g.emit("}")
		}
		if n.Calls {
			g.emit("upc.forall--")
		}
		return
	}
	if !alone {
		control = g.temp("bool", "upc.forall == 0")
	}
	if n.Calls {
		g.emit("upc.forall++")
	}
	others := func() string {
		var c exp
		if t := n.Aff.Type; t.Unsigned && t.Size() == 8 {
			g.helpers["mineOf"] = true
			c = exp{fmt.Sprintf("!upc.mineOf(%s)", g.typed(n.Aff).s), 6}
		} else if t.Integer() {
			g.helpers["mine"] = true
			c = exp{fmt.Sprintf("!upc.mine(int64(%s))", g.expr(n.Aff).s), 6}
		} else {
			c = exp{fmt.Sprintf("%s.Thread() != upc.MyThread()", g.operand(g.expr(n.Aff), 7)), 3}
		}
		if control != "" {
			c = exp{control + " && " + c.s, 2}
		}
		return c.s
	}
	plain := func() {
		g.forLoop(n, func() { g.emit("if %s {\ncontinue\n}", others()) })
	}
	if !g.together(n, g.tested(n, others), plain) {
		plain()
	}
	if n.Calls {
		g.emit("upc.forall--")
	}
}

// tested is how the thread's iterations are found by a look at each.
func (g *gen) tested(n *front.Node, others func() string) *share {
	return &share{
		own: func(*front.Node) bool { return false },
		aff: n.Aff,
		find: func(next, end, list string) {
			i, _ := upwards(n)
			g.emit("for ; %s < %s && len(%s) < %d; %s++ {\n%s = %s(%s)", next, end, list, aheadMost, next, i.Go, g.goType(i.Type), next)
			g.emit("if %s {\ncontinue\n}\n%s = append(%s, %s)\n}", others(), list, list, next)
		},
	}
}

func (g *gen) switchStmt(n *front.Node) (ends, terms bool) {
	count := 0
	g.breaks = append(g.breaks, &count)
	defer func() { g.breaks = g.breaks[:len(g.breaks)-1] }()
	v := g.typed(n.L)
	g.emit("{")
	for _, s := range n.R.List {
		if s.Op == front.Decl && g.hoist == nil && !onStack(s.Sym) {
			g.emit("var %s %s\n_ = %s", s.Sym.Go, g.goType(s.Sym.Type), s.Sym.Go)
		}
	}
	g.emit("switch %s {", v.s)
	list := n.R.List
	i := 0
	for i < len(list) && list[i].Op != front.Case && list[i].Op != front.Default {
		i++
	}
	hasDefault, all := false, true
	for i < len(list) {
		var values []string
		def := false
		for ; i < len(list) && (list[i].Op == front.Case || list[i].Op == front.Default); i++ {
			g.comment(list[i].Pos)
			if list[i].Op == front.Default {
				def = true
			} else {
				values = append(values, g.number(list[i].I, n.L.Type))
			}
		}
		if def {
			hasDefault = true
			g.emit("default:")
		} else {
			g.emit("case %s:", strings.Join(values, ", "))
		}
		ends, terms = false, false
		broken := false
		for ; i < len(list) && list[i].Op != front.Case && list[i].Op != front.Default; i++ {
			s := list[i]
			switch {
			case ends && s.Op != front.Label:
			case s.Op == front.Break && (i+1 == len(list) || list[i+1].Op == front.Case || list[i+1].Op == front.Default):
				ends, terms, broken = true, false, true
			case s.Op == front.Decl && g.hoist == nil && !onStack(s.Sym):
				for _, a := range s.List {
					g.discard(a)
				}
				ends, terms = false, false
			default:
				ends, terms = g.stmt(s)
			}
		}
		if i < len(list) && !ends {
			g.emit("fallthrough")
			terms = true
		}
		all = all && terms && !broken
	}
	g.emit("}\n}")
	terms = hasDefault && all && count == 0
	return terms, terms
}

func (g *gen) barrier(n *front.Node) {
	var id exp
	if n.L != nil {
		id = g.expr(n.L)
	}
	what := map[string]string{"upc_barrier": "Barrier", "upc_notify": "Notify", "upc_wait": "Wait"}[n.Str]
	if n.L == nil {
		what += "Any"
	}
	if what[0] == 'B' {
		g.emit("upc.c.Flush()")
	}
	g.emit("upc.%s(%s)", what, id.s)
}

func (g *gen) number(v int64, t *front.Type) string {
	if t.Unsigned {
		return strconv.FormatUint(uint64(v), 10)
	}
	return strconv.FormatInt(v, 10)
}
