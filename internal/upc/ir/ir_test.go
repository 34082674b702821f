package ir

import "testing"

// TestExpr: expressions have the parentheses that Go needs, and the facts of what is in them.
func TestExpr(t *testing.T) {
	a, b, c := Name("a"), Name("b"), Name("c")
	sum := Op(a, "+", b)
	pointer := PointerTo(Named("int8"))
	for _, e := range []struct {
		e                         Expr
		text                      string
		computes, operates, brace bool
	}{
		{Op(sum, "*", c), "(a + b) * c", true, true, false},
		{Op(a, "-", Op(b, "-", c)), "a - (b - c)", true, true, false},
		{Op(Op(a, "-", b), "-", c), "a - b - c", false, true, false},
		{Op(Op(a, "<", b), "&&", Op(b, "<", c)), "a < b && b < c", false, true, false},
		{Op(Op(a, "||", b), "&&", c), "(a || b) && c", true, true, false},
		{Op(a, "-", Int(-1)), "a - -1", false, true, false},
		{Sign("-", Sign("-", a)), "-(-a)", true, false, false},
		{Sign("-", Int(-3)), "-(-3)", true, false, false},
		{Sign("^", sum), "^(a + b)", true, true, false},
		{Not(Op(a, "==", b)), "!(a == b)", true, true, false},
		{Not(Not(a)), "a", false, false, false},
		{Address(Deref(a)), "a", false, false, false},
		{Address(Field(a, "f")), "&a.f", false, false, false},
		{Field(Deref(a), "f"), "a.f", false, false, false},
		{At(Deref(a), sum), "a[a + b]", false, true, false},
		{Deref(Deref(a)), "*(*a)", true, false, false},
		{Convert(Named("int"), sum), "int(a + b)", true, true, false},
		{Convert(pointer, a), "(*int8)(a)", true, false, false},
		{Convert(ArrayOf(2, Named("int")), a), "[2]int(a)", true, false, false},
		{Method(Deref(a), "Next", Int(1)), "(*a).Next(1)", true, false, false},
		{Slice(a, Expr{}, CallTo("len", b)), "a[:len(b)]", true, false, false},
		{Literals(Named("s"), a, b), "s{a, b}", false, false, true},
		{Function([]Param{{"x", pointer}}, Named("int"), CallOf(a, b)), "func(x *int8) int { return a(b) }", true, false, true},
		{Float(2, 64), "2.0", false, false, false},
		{Float(-1e300, 64), "-1e+300", false, false, false},
		{CallOf(Generic("rt.Get", Named("int32")), a), "rt.Get[int32](a)", true, false, false},
	} {
		if got := e.e.String(); got != e.text || e.e.Computes != e.computes || e.e.Operates != e.operates || e.e.Braces != e.brace {
			t.Errorf("%s, which computes, operates, has braces: %t %t %t; not %s: %t %t %t", got, e.e.Computes, e.e.Operates, e.e.Braces, e.text, e.computes, e.operates, e.brace)
		}
	}
}

// TestHead: what stands in the head of a loop of Go, and how.
func TestHead(t *testing.T) {
	i, j, zero := Name("i"), Name("j"), Int(0)
	inc := func(e Expr) *Stmt { return Update(e, "++") }
	for text, b := range map[string]Block{
		"":                    nil,
		"i++":                 {inc(i)},
		"i += 2":              {Update(i, "+=", Int(2))},
		"f(i)":                {Do(CallTo("f", i))},
		"i, j = i + 1, j - 1": {inc(i), Update(j, "--")},
	} {
		s, ok := b.Head()
		var c Code
		c.simple(s)
		if !ok || c.String() != text {
			t.Errorf("%q, %t, not %q", c.String(), ok, text)
		}
	}
	for what, b := range map[string]Block{
		"a variable twice": {inc(i), inc(i)},
		"two calls":        {Do(CallTo("f")), Do(CallTo("g"))},
		"a field":          {inc(i), inc(Field(j, "x"))},
		"a declaration":    {Declare(i, Named("int"), zero)},
		"what is dropped":  {Drop(i)},
		"braces":           {Set(i, Literals(Named("s")))},
		"an if":            {When(i, Block{inc(j)}, nil)},
		"a comment":        {{Kind: Comment, Text: "i++"}, inc(i)},
	} {
		if s, ok := b.Head(); ok {
			t.Errorf("%s stands in a head: %+v", what, s)
		}
	}
}

// TestUses: a variable is used where an expression has it, not where a comment or a string says its name.
func TestUses(t *testing.T) {
	w := Name("tmp1")
	no := Block{{Kind: Comment, Text: "see tmp1.Get"}, Do(CallTo("f", Lit(`"tmp1.Get"`), Name("tmp10"))), Keyword("goto tmp1")}
	if no.Uses(w) {
		t.Error("a comment, a string or a label uses tmp1")
	}
	for what, s := range map[string]*Stmt{
		"init": Loop(Define(Name("i"), w), Expr{}, nil, nil), "post": Loop(nil, True, Set(Name("i"), w), nil), "condition": Loop(nil, w, nil, nil),
		"body": Inside(Block{Do(Method(w, "Put"))}), "else": When(True, nil, Block{Drop(w)}), "range": Over(Name("i"), Expr{}, w, nil),
		"case": {Kind: Switch, R: []Expr{True}, Body: Block{{Kind: Case, R: []Expr{w}}}}, "index": Set(At(Name("a"), w), True),
	} {
		if b := append(no[:len(no):len(no)], s); !b.Uses(w) {
			t.Errorf("%s does not use tmp1", what)
		}
	}
}

// TestCode: text brings the packages of what is in it, and else if is for an if alone.
func TestCode(t *testing.T) {
	var c Code
	then := Block{Keyword("return")}
	s := When(True, then, Block{{Kind: Comment, Text: "x"}, When(False, then, nil)})
	s.Chain()
	two := When(True, then, Block{When(False, then, nil), When(True, then, nil)})
	two.Chain()
	c.Print(Block{s, two, Declare(Name("p"), Named("unsafe.Pointer"), CallTo("libc.At", CallTo("math.Inf")))})
	if want := "if true {\nreturn \n} else if false {\nreturn \n}\nif true {\nreturn \n} else {\nif false {\nreturn \n}\nif true {\nreturn \n}\n}\nvar p unsafe.Pointer = libc.At(math.Inf())\n"; c.String() != want {
		t.Errorf("%s\nnot\n%s", c.String(), want)
	}
	if c.Packages != Math|Unsafe|LibC {
		t.Errorf("packages %v", c.Packages.Paths())
	}
}
