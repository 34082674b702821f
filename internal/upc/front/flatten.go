package front

import (
	"slices"
	"strconv"
)

// jump is a goto, or a switch, and where it stands.
type jump struct {
	n        *Node
	path     []*Node
	forall   *Node
	modified []*Sym
}

// from is the place that is read, of n.
func from(p *parser, n *Node) jump {
	return jump{n: n, path: slices.Clone(p.path), forall: p.forall(), modified: modified(p)}
}

// into checks a jump into statements from outside, and has them flattened.
func into(p *parser, path []*Node, at Pos, what string) {
	for _, n := range path {
		if n.Op == Forall {
			p.errorf(at, "not supported: %s in the body of upc_forall from outside", what)
			return
		}
	}
	for _, n := range path {
		if n.Op == Empty { // an else
			n = n.C
		}
		p.flat[n] = true
	}
}

// landing is the value of n, a call of setjmp, which stands before the statement that is read: a longjmp leads to the label behind it.
func landing(p *parser, n *Node) *Node {
	if p.fn == nil || len(p.path) == 0 || p.path[len(p.path)-1].Op != Block || p.heads > 0 {
		p.errorf(n.Pos, "not supported: setjmp in the head of a loop, in a statement without braces around it, or behind &&, ||, ? or a comma")
		return p.broken(n.Pos)
	}
	into(p, p.path, n.Pos, "a longjmp to setjmp")
	k := len(p.fn.Landings) + 1
	s := &Sym{Name: "jumped" + strconv.Itoa(k), Pos: n.Pos, Type: tyInt, Storage: Local, Func: p.fn, Used: true, Reads: 1}
	p.fn.Locals = append(p.fn.Locals, s)
	v := p.variable(s, n.Pos)
	l := &Node{Op: Label, Pos: n.Pos} // which flatten names
	p.fn.Landings = append(p.fn.Landings, Landing{l, v})
	n.List[1] = number(int64(k), tyInt, n.Pos)
	set := p.assign(v, n, n.Pos, "initialization")
	p.before = append(p.before, &Node{Op: Expr, Pos: n.Pos, L: set}, l)
	return v
}

// modified is the variables in scope with types whose lengths are computed.
func modified(p *parser) (all []*Sym) {
	for _, s := range p.scopes {
		all = append(all, s.modified...)
	}
	return all
}

// enters refuses a jump into the scope of a variable with a computed length (C99 6.8.6.1).
func enters(p *parser, start jump, to []*Sym, at Pos, what string) {
	for _, s := range to {
		if !slices.Contains(start.modified, s) {
			p.errorf(at, "%s into scope of identifier with variably modified type", what).note(s.Pos, "'%s' declared here", s.Name)
			return
		}
	}
}

// land gives the gotos of a function their labels.
func land(p *parser) {
	for _, g := range p.gotos {
		l := p.labels[g.n.Str]
		if l == nil || !l.Found {
			p.errorf(g.n.Pos, "label '%s' used but not defined", g.n.Str)
			continue
		}
		l.Used, g.n.Target, p.fn.Gotos = true, l, true
		if g.forall != l.at.forall {
			p.warnf(g.n.Pos, "goto into or out of upc_forall has undefined effects ('%s')", g.n.Str)
		}
		enters(p, g, l.at.modified, g.n.Pos, "jump")
		path, k := l.at.path, 0
		for k < len(path) && k < len(g.path) && path[k] == g.path[k] {
			k++
		}
		// A part of a switch is a block in Go.
		if k > 1 && path[k-2].Op == Switch && path[k-1].Op == Block {
			k -= 2
		}
		into(p, path[k:], g.n.Pos, "goto '"+g.n.Str+"'")
	}
}

// flattener has the statements that something jumps into as labels and gotos in the block around them: in Go nothing
// jumps into a block.
type flattener struct {
	p     *parser
	cases map[*Node]*LabelInfo // of a switch that is flattened
	// leave and again are where break and continue of a loop or switch that is flattened lead to.
	leave, again *LabelInfo
}

// flatten is the body of the function that has been read.
func flatten(p *parser) {
	if len(p.flat) == 0 {
		return
	}
	p.fn.Gotos = true
	f := flattener{p: p, cases: map[*Node]*LabelInfo{}}
	for _, l := range p.fn.Landings {
		*l.At = *labelled(f.label(l.At.Pos), l.At.Pos)
	}
	p.fn.Body.List = f.list(p.fn.Body.List)
}

// label is a new label of the function.
func (f *flattener) label(at Pos) *LabelInfo {
	for i := len(f.p.labels); ; i++ {
		name := "at" + strconv.Itoa(i)
		if f.p.labels[name] == nil {
			l := &LabelInfo{Name: name, Pos: at, Used: true, Found: true}
			f.p.labels[name] = l
			return l
		}
	}
}

func labelled(l *LabelInfo, at Pos) *Node { return &Node{Op: Label, Pos: at, Str: l.Name, Target: l} }

func jumpTo(l *LabelInfo, at Pos) *Node { return &Node{Op: Goto, Pos: at, Str: l.Name, Target: l} }

// unless goes to l if condition c does not hold; c nil holds.
func unless(c *Node, l *LabelInfo, at Pos) []*Node {
	if c == nil {
		return nil
	}
	if v, ok := holds(c); ok {
		if v {
			return nil
		}
		return []*Node{jumpTo(l, at)}
	}
	not := &Node{Op: Not, Pos: c.Pos, Type: tyInt, L: c}
	return []*Node{{Op: If, Pos: at, L: not, R: jumpTo(l, at)}}
}

func (f *flattener) list(in []*Node) (out []*Node) {
	for _, n := range in {
		out = append(out, f.statement(n)...)
	}
	return out
}

// within is the body of a loop or switch, where break and continue lead to leave and again, or stay what they are if these are nil.
func (f *flattener) within(n *Node, leave, again *LabelInfo) []*Node {
	save := *f
	f.leave, f.again = leave, again
	list := f.statement(n)
	f.leave, f.again = save.leave, save.again
	return list
}

// body is statements in place of n, which belongs to another.
func body(n *Node, list []*Node) *Node {
	if len(list) == 1 {
		return list[0]
	}
	return &Node{Op: Block, Pos: n.Pos, List: list}
}

// statement is n with what stands in it, as statements of the block around it.
func (f *flattener) statement(n *Node) []*Node {
	flat := f.p.flat[n]
	one := []*Node{n}
	switch n.Op {
	case Block:
		list := f.list(n.List)
		if flat {
			return list
		}
		n.List = list
	case If:
		if flat {
			return f.choice(n)
		}
		if n.R = body(n.R, f.statement(n.R)); n.C != nil {
			n.C = body(n.C, f.statement(n.C))
		}
	case While, Do, For, Forall:
		if flat {
			return f.loop(n)
		}
		n.R = body(n.R, f.within(n.R, nil, nil))
	case Switch:
		if flat {
			return f.choose(n)
		}
		n.R = body(n.R, f.within(n.R, nil, f.again))
	case Case, Default:
		if l := f.cases[n]; l != nil {
			one[0] = labelled(l, n.Pos)
			if n.R != nil {
				one = append(one, f.statement(n.R)...)
			}
		}
	case Label:
		if n.R != nil {
			rest := f.statement(n.R)
			if n.R = nil; len(rest) == 1 {
				n.R, rest = rest[0], nil
			}
			return append(one, rest...)
		}
	case Break:
		if f.leave != nil {
			one[0] = jumpTo(f.leave, n.Pos)
		}
	case Continue:
		if f.again != nil {
			one[0] = jumpTo(f.again, n.Pos)
		}
	}
	return one
}

// choice is an if.
func (f *flattener) choice(n *Node) []*Node {
	other := f.label(n.Pos)
	out := append(unless(n.L, other, n.Pos), f.statement(n.R)...)
	if n.C == nil {
		return append(out, labelled(other, n.Pos))
	}
	end := f.label(n.Pos)
	out = append(out, jumpTo(end, n.Pos), labelled(other, n.C.Pos))
	out = append(out, f.statement(n.C)...)
	return append(out, labelled(end, n.C.Pos))
}

// loop is a loop.
func (f *flattener) loop(n *Node) (out []*Node) {
	top, next, end := f.label(n.Pos), f.label(n.Pos), f.label(n.Pos)
	top.Loop = n
	if n.Init != nil {
		out = f.statement(n.Init)
		if n.Init.Op == Block {
			out = n.Init.List
		}
	}
	out = append(out, labelled(top, n.Pos))
	if n.Op != Do {
		out = append(out, unless(n.L, end, n.Pos)...)
	}
	out = append(out, f.within(n.R, end, next)...)
	out = append(out, labelled(next, n.Pos))
	if n.Op == Do {
		out = append(out, unless(n.L, end, n.L.Pos)...)
	}
	if n.Op == For && n.C != nil {
		out = append(out, &Node{Op: Expr, Pos: n.C.Pos, L: n.C})
	}
	return append(out, jumpTo(top, n.Pos), labelled(end, n.Pos))
}

// choose is a switch: what remains of it jumps to its cases.
func (f *flattener) choose(n *Node) []*Node {
	f.p.flat[n.R] = true
	end := f.label(n.Pos)
	to := &Node{Op: Block, Pos: n.Pos}
	d := &Node{Op: Default, Pos: n.Pos}
	target := end
	for _, c := range n.List {
		l := f.label(c.Pos)
		f.cases[c] = l
		if c.Op == Default {
			target = l
			continue
		}
		to.List = append(to.List, &Node{Op: Case, Pos: n.Pos, I: c.I, L: c.L}, jumpTo(l, n.Pos))
	}
	to.List = append(to.List, d, jumpTo(target, n.Pos))
	out := []*Node{{Op: Switch, Pos: n.Pos, L: n.L, R: to, List: n.List}}
	out = append(out, f.within(n.R, end, f.again)...)
	return append(out, labelled(end, n.Pos))
}
