package ir

import (
	"fmt"
	"strings"
)

// StmtKind is what a statement is.
type StmtKind uint8

// The kinds of statements.
const (
	Assign  StmtKind = iota // L Text R, with as many on both sides; or L Text, which is ++ or --
	Eval                    // R
	Var                     // variable L of type T with value R, or without one
	If                      // R: Body, Else; its Text is else if where that is an If alone
	For                     // Init; R; Post: Body
	Range                   // L Text R: Body
	Switch                  // R: Body of Case
	Case                    // R, or default: Body
	Braces                  // Body
	Word                    // Text, then R: return, break, a label
	Comment                 // Text
	Mark                    // Text, a place in the source: what follows is of it
)

// Stmt is a statement.
type Stmt struct {
	Kind       StmtKind
	Text       string
	T          Type
	L, R       []Expr
	Init, Post *Stmt
	Body, Else Block
	Note       string // a comment behind it
}

// Block is statements.
type Block []*Stmt

// Set is l = r.
func Set(l, r Expr) *Stmt { return &Stmt{Kind: Assign, Text: "=", L: []Expr{l}, R: []Expr{r}} }

// Update is l op r, such as l += r; without r l++.
func Update(l Expr, op string, r ...Expr) *Stmt {
	return &Stmt{Kind: Assign, Text: op, L: []Expr{l}, R: r}
}

// Define is l := r.
func Define(l, r Expr) *Stmt { return &Stmt{Kind: Assign, Text: ":=", L: []Expr{l}, R: []Expr{r}} }

// Pair is l, m op r.
func Pair(l, m Expr, op string, r ...Expr) *Stmt {
	return &Stmt{Kind: Assign, Text: op, L: []Expr{l, m}, R: r}
}

// Drop is _ = e.
func Drop(e Expr) *Stmt { return Set(Name("_"), e) }

// Do is e as a statement.
func Do(e Expr) *Stmt { return &Stmt{Kind: Eval, R: []Expr{e}} }

// Declare is var l t = r, or var l t if r is none.
func Declare(l Expr, t Type, r Expr) *Stmt {
	s := &Stmt{Kind: Var, L: []Expr{l}, T: t}
	if !r.Zero() {
		s.R = []Expr{r}
	}
	return s
}

// When is if c { then } else { other }; other may be nil.
func When(c Expr, then, other Block) *Stmt {
	return &Stmt{Kind: If, R: []Expr{c}, Body: then, Else: other}
}

// Loop is for init; c; post { body }. All but the body may be none.
func Loop(init *Stmt, c Expr, post *Stmt, body Block) *Stmt {
	s := &Stmt{Kind: For, Body: body}
	s.Head(init, c, post)
	return s
}

// Head gives a loop another head.
func (s *Stmt) Head(init *Stmt, c Expr, post *Stmt) {
	s.Init, s.Post, s.R = init, post, nil
	if !c.Zero() {
		s.R = []Expr{c}
	}
}

// Over is for k, v := range e { body }; without v for k := range e.
func Over(k Expr, v Expr, e Expr, body Block) *Stmt {
	s := &Stmt{Kind: Range, L: []Expr{k}, Text: ":=", R: []Expr{e}, Body: body}
	if !v.Zero() {
		s.L = append(s.L, v)
	}
	return s
}

// Inside is { body }.
func Inside(body Block) *Stmt { return &Stmt{Kind: Braces, Body: body} }

// Keyword is a statement of one word, such as break, or of one and expressions.
func Keyword(text string, e ...Expr) *Stmt { return &Stmt{Kind: Word, Text: text, R: e} }

// Head is b as one statement that may stand in the head of a loop, nil if b is empty.
func (b Block) Head() (s *Stmt, ok bool) {
	if len(b) == 0 {
		return nil, true
	}
	if s := b[0]; len(b) == 1 {
		switch {
		case s.Kind == Eval, s.Kind == Assign && !s.L[0].Is(Name("_")):
			for _, e := range append(s.L, s.R...) {
				if e.Braces {
					return nil, false
				}
			}
			return s, true
		}
		return nil, false
	}
	// Several of i++ and i--, of different variables: Go's i, i = i+1, i+1 adds one.
	all := &Stmt{Kind: Assign, Text: "="}
	for i, s := range b {
		if s.Kind != Assign || len(s.R) > 0 || s.L[0].Kind != Ident {
			return nil, false
		}
		for _, other := range b[:i] {
			if Same(other.L[0], s.L[0]) {
				return nil, false
			}
		}
		all.L, all.R = append(all.L, s.L[0]), append(all.R, Op(s.L[0], s.Text[:1], Int(1)))
	}
	return all, true
}

// Chain has the statement else if, if there is nothing else in it.
func (s *Stmt) Chain() {
	var only *Stmt
	for _, t := range s.Else {
		if t.Kind == Comment || t.Kind == Mark {
			continue
		}
		if only != nil || t.Kind != If {
			return
		}
		only = t
	}
	s.Else, s.Text = Block{only}, "else if"
}

// Walk calls f for all expressions of b.
func (b Block) Walk(f func(Expr)) {
	for _, s := range b {
		s.walk(f)
	}
}

func (s *Stmt) walk(f func(Expr)) {
	if s == nil {
		return
	}
	for _, e := range s.L {
		e.walk(f)
	}
	for _, e := range s.R {
		e.walk(f)
	}
	s.Init.walk(f)
	s.Post.walk(f)
	s.Body.Walk(f)
	s.Else.Walk(f)
}

// Uses reports whether b has the variable x.
func (b Block) Uses(x Expr) (found bool) {
	b.Walk(func(e Expr) { found = found || e.Is(x) })
	return found
}

// accesses says how b reaches shared memory, and how often.
func (b Block) accesses() string {
	var counts [len(accessNames)]int
	b.Walk(func(e Expr) { counts[e.Access]++ })
	var all []string
	for a, n := range counts {
		if n > 0 && Access(a) != Local {
			all = append(all, fmt.Sprintf("%d %s", n, accessNames[a]))
		}
	}
	return strings.Join(all, ", ")
}

// Code is the text of a file, and the packages that it needs.
type Code struct {
	strings.Builder
	Packages Packages
	Notes    bool // loops have comments that say how they reach shared memory
}

// Printf adds text. Types, expressions and code among the arguments bring their packages.
func (c *Code) Printf(format string, args ...any) {
	for _, a := range args {
		switch a := a.(type) {
		case Type:
			c.Packages |= a.packages
		case Expr:
			c.Packages |= a.packages
		case *Code:
			c.Packages |= a.Packages
		}
	}
	fmt.Fprintf(c, format, args...)
}

// Params adds the parameters and the result of a function.
func (c *Code) Params(params []Param, result Type) {
	c.Packages |= FuncOf(params, result).packages
	c.WriteString(Signature(params, result))
}

// exprs adds a list.
func (c *Code) exprs(list []Expr) {
	for i, e := range list {
		if i > 0 {
			c.WriteString(", ")
		}
		c.Packages |= e.packages
		e.write(&c.Builder)
	}
}

// Print adds statements.
func (c *Code) Print(b Block) {
	for _, s := range b {
		c.stmt(s)
		if s.Kind != Case { // which ends with its body
			c.WriteByte('\n')
		}
	}
}

// simple adds a statement as it stands in a head.
func (c *Code) simple(s *Stmt) {
	if s == nil {
		return
	}
	switch s.Kind {
	case Eval:
		c.exprs(s.R)
	case Assign:
		c.exprs(s.L)
		if len(s.R) == 0 {
			c.WriteString(s.Text)
			return
		}
		c.WriteString(" " + s.Text + " ")
		c.exprs(s.R)
	}
}

// note is a comment before a loop.
func (c *Code) note(s *Stmt) {
	if a := s.Body.accesses(); c.Notes && a != "" {
		c.WriteString("\t// accesses: " + a + "\n")
	}
}

func (c *Code) body(b Block) {
	c.WriteString(" {\n")
	c.Print(b)
	c.WriteByte('}')
}

func (c *Code) stmt(s *Stmt) {
	switch s.Kind {
	case Assign, Eval:
		c.simple(s)
		if s.Note != "" {
			c.WriteString(" // " + s.Note)
		}
	case Var:
		c.Printf("var %v %v", s.L[0], s.T)
		if len(s.R) > 0 {
			c.WriteString(" = ")
			c.exprs(s.R)
		}
	case If:
		c.WriteString("if ")
		c.exprs(s.R)
		c.body(s.Body)
		if s.Else == nil { // no else at all
			return
		}
		c.WriteString(" else")
		if s.Text != "" {
			c.WriteByte(' ')
			c.stmt(s.Else[0])
			return
		}
		c.body(s.Else)
	case For:
		c.note(s)
		c.WriteString("for ")
		if s.Init == nil && s.Post == nil {
			c.exprs(s.R)
		} else {
			c.simple(s.Init)
			c.WriteString("; ")
			c.exprs(s.R)
			c.WriteString("; ")
			c.simple(s.Post)
		}
		c.body(s.Body)
	case Range:
		c.note(s)
		c.WriteString("for ")
		c.exprs(s.L)
		c.WriteString(" := range ")
		c.exprs(s.R)
		c.body(s.Body)
	case Switch:
		c.WriteString("switch ")
		c.exprs(s.R)
		c.body(s.Body)
	case Case:
		if len(s.R) == 0 {
			c.WriteString("default")
		} else {
			c.WriteString("case ")
			c.exprs(s.R)
		}
		c.WriteString(":\n")
		c.Print(s.Body)
	case Braces:
		c.body(s.Body)
	case Word:
		c.WriteString(s.Text + " ")
		c.exprs(s.R)
	case Comment:
		c.WriteString("\t// " + s.Text)
	case Mark:
		c.WriteString("\t//line " + s.Text)
	}
}
