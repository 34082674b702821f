// Package ir is the Go that the UPC compiler makes, as a tree: what package gen builds, asks and prints at
// the end. Facts about a node (what it calls, which packages it needs, how it reaches shared memory) are
// computed when it is made. So nothing has to look for them in text, where a comment of the program or
// a part of a name may be taken for them.
package ir

import (
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Packages are those that a node names.
type Packages uint8

// The packages that generated code imports. No name of a program is one of theirs.
const (
	Math Packages = 1 << iota
	Cmplx
	OS
	Unsafe
	LibC
	RT
)

var packages = []struct{ name, path string }{
	{"math", "math"}, {"cmplx", "math/cmplx"}, {"os", "os"}, {"unsafe", "unsafe"}, {"libc", "github.com/argon-go/argon/upc/libc"}, {"rt", "github.com/argon-go/argon/upc/rt"},
}

// Paths are the import paths of p.
func (p Packages) Paths() (all []string) {
	for ; p != 0; p &= p - 1 { // those of Go first
		all = append(all, packages[bits.TrailingZeros8(uint8(p))].path)
	}
	return all
}

// packageOf is the package of a name that may be qualified.
func packageOf(name string) Packages {
	p, _, _ := strings.Cut(name, ".")
	for i := range packages {
		if packages[i].name == p {
			return 1 << i
		}
	}
	return 0
}

var qualified = regexp.MustCompile(`\b(math|cmplx|os|unsafe|libc|rt)\.`)

// PackagesOf are the packages of what is no node, but text of the compiler's own.
func PackagesOf(text string) (p Packages) {
	for _, m := range qualified.FindAllString(text, -1) {
		p |= packageOf(m)
	}
	return p
}

// Type is a type of Go.
type Type struct {
	text     string
	packages Packages
	compound bool // a pointer or a function, which stands in parentheses where it converts
}

// Named is the type with that name.
func Named(name string) Type { return Type{text: name, packages: packageOf(name)} }

// PointerTo is *t.
func PointerTo(t Type) Type { return Type{"*" + t.text, t.packages, true} }

// ArrayOf is [n]t.
func ArrayOf(n int64, t Type) Type {
	return Type{"[" + strconv.FormatInt(n, 10) + "]" + t.text, t.packages, false}
}

// SliceOf is []t.
func SliceOf(t Type) Type { return Type{"[]" + t.text, t.packages, false} }

// Param is a parameter of a function.
type Param struct {
	Name string
	Type Type
}

// FuncOf is the type of a function, whose result has no text if there is none.
func FuncOf(params []Param, result Type) Type {
	t := Type{text: "func" + Signature(params, result), packages: result.packages, compound: true}
	for _, p := range params {
		t.packages |= p.Type.packages
	}
	return t
}

// Signature is FuncOf without the word func.
func Signature(params []Param, result Type) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, p := range params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name + " " + p.Type.text)
	}
	b.WriteByte(')')
	if result.text != "" {
		b.WriteString(" " + result.text)
	}
	return b.String()
}

// String is the type as Go writes it.
func (t Type) String() string { return t.text }

// Kind is what an expression is.
type Kind uint8

// The kinds of expressions.
const (
	None Kind = iota
	Ident
	Literal
	Unary
	Binary
	Paren
	Selector
	Index
	Call
	Conversion
	Composite
	Func
)

// Access is how an expression reaches an object in shared memory.
type Access uint8

// The accesses: by package rt, by a window, by a strip or a slice of the thread's part of an array, and in a
// loop whose accesses are under way together, where Ahead is the value of a get that was done before.
const (
	Local Access = iota
	Get
	Put
	WindowGet
	WindowPut
	Strips
	Part
	GroupGet
	GroupPut
	GroupUpdate
	Ahead
)

// accessNames are the accesses in dumps.
var accessNames = [...]string{"", "get", "put", "window get", "window put", "strip", "part", "group get", "group put", "group update", "ahead"}

// Expr is an expression. The zero value is none.
type Expr struct {
	Kind Kind
	prec int   // how tightly its outermost operator binds: 1 to 5 as in Go, 6 a unary operator, 7 anything else
	list []any // its text: strings, types and expressions

	// Facts of it and all in it.
	packages Packages
	Computes bool // it calls, converts or groups
	Operates bool // it has a binary operator
	Braces   bool // it has braces, and may not stand in the head of a statement
	minus    bool // it begins with a sign

	Access Access // of it alone
}

func expr(k Kind, prec int, list ...any) Expr {
	e := Expr{Kind: k, prec: prec, list: list}
	e.Computes = k == Paren || k == Call || k == Conversion || k == Func
	e.Operates = k == Binary
	e.Braces = k == Composite || k == Func
	for _, p := range list {
		switch p := p.(type) {
		case Expr:
			e.packages |= p.packages
			e.Computes = e.Computes || p.Computes
			e.Operates = e.Operates || p.Operates
			e.Braces = e.Braces || p.Braces
		case Type:
			e.packages |= p.packages
		}
	}
	return e
}

// Name is a variable, a function or a constant.
func Name(name string) Expr {
	e := expr(Ident, 7, name)
	e.packages = packageOf(name)
	return e
}

// Generic is a function with type arguments.
func Generic(name string, types ...Type) Expr {
	list := []any{name, "["}
	for i, t := range types {
		if i > 0 {
			list = append(list, ", ")
		}
		list = append(list, t)
	}
	e := expr(Ident, 7, append(list, "]")...)
	e.packages |= packageOf(name)
	return e
}

// Value is a type as an argument.
func Value(t Type) Expr { return expr(Ident, 7, t) }

// Lit is a literal as Go writes it.
func Lit(s string) Expr { return expr(Literal, 7, s) }

// Int is a number.
func Int[T int | int64 | uint64](v T) Expr {
	if v < 0 {
		e := expr(Literal, 6, strconv.FormatInt(int64(v), 10))
		e.minus = true
		return e
	}
	return expr(Literal, 7, strconv.FormatUint(uint64(v), 10))
}

// Float is a finite number, of so many bits.
func Float(f float64, bits int) Expr {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	e := expr(Literal, 7, s)
	if f < 0 {
		e.prec, e.minus = 6, true
	}
	return e
}

// True and False are conditions.
var (
	True  = Name("true")
	False = Name("false")
	Nil   = Name("nil")
)

// Zero reports whether there is no expression.
func (e Expr) Zero() bool { return e.Kind == None }

// operand is e where an operator binds as tightly as prec.
func (e Expr) operand(prec int) Expr {
	if e.prec < prec {
		return Group(e)
	}
	return e
}

// Group is (e).
func Group(e Expr) Expr { return expr(Paren, 7, "(", e, ")") }

// Whole is e, in parentheses unless it is one operand.
func Whole(e Expr) Expr { return e.operand(7) }

// levels are how tightly binary operators bind.
var levels = map[string]int{
	"*": 5, "/": 5, "%": 5, "&": 5, "<<": 5, ">>": 5, "+": 4, "-": 4, "|": 4, "^": 4,
	"==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "&&": 2, "||": 1,
}

// Op is l op r.
func Op(l Expr, op string, r Expr) Expr {
	p := levels[op]
	least := p
	if p == 3 {
		least = 4 // comparisons are no operands of comparisons
	}
	return expr(Binary, p, l.operand(least), " "+op+" ", r.operand(p+1))
}

// Sign is op e, of the operators - and ^.
func Sign(op string, e Expr) Expr {
	e = e.operand(6)
	if e.minus {
		e = Group(e)
	}
	s := expr(Unary, 6, op, e)
	s.minus = op == "-"
	return s
}

// Not is the condition that e does not hold.
func Not(e Expr) Expr {
	if e.Kind == Unary && e.list[0] == "!" {
		x := e.list[1].(Expr)
		x.prec = 7 // as a whole: it stands where a condition does
		return x
	}
	return expr(Unary, 6, "!", e.operand(6))
}

// Deref is *e.
func Deref(e Expr) Expr { return expr(Unary, 6, "*", e.operand(7)) }

// Address is &e.
func Address(e Expr) Expr {
	if p, ok := e.Pointer(); ok {
		return p
	}
	return expr(Unary, 6, "&", e.operand(7))
}

// Pointer is p if e is *p.
func (e Expr) Pointer() (p Expr, ok bool) {
	if e.Kind == Unary && e.list[0] == "*" {
		return e.list[1].(Expr), true
	}
	return Expr{}, false
}

// base is e before a selector or an index, which follow pointers by themselves.
func (e Expr) base() Expr {
	if p, ok := e.Pointer(); ok {
		return p
	}
	return e.operand(7)
}

// Field is e.name.
func Field(e Expr, name string) Expr { return expr(Selector, 7, e.base(), "."+name) }

// At is e[i].
func At(e, i Expr) Expr { return expr(Index, 7, e.base(), "[", i, "]") }

// Slice is e[from:to], or e[:to] and e[:] where these are none.
func Slice(e, from, to Expr) Expr {
	list := []any{e.base(), "["}
	if !from.Zero() {
		list = append(list, from)
	}
	list = append(list, ":")
	if !to.Zero() {
		list = append(list, to)
	}
	return expr(Index, 7, append(list, "]")...)
}

// arguments are the expressions of a call.
func arguments(head []any, args []Expr) []any {
	head = append(head, "(")
	for i, a := range args {
		if i > 0 {
			head = append(head, ", ")
		}
		head = append(head, a)
	}
	return append(head, ")")
}

// CallOf is f(args).
func CallOf(f Expr, args ...Expr) Expr {
	return expr(Call, 7, arguments([]any{f.operand(7)}, args)...)
}

// CallTo is the call of the function with that name.
func CallTo(name string, args ...Expr) Expr { return CallOf(Name(name), args...) }

// Method is e.name(args).
func Method(e Expr, name string, args ...Expr) Expr {
	return expr(Call, 7, arguments([]any{e.operand(7), "." + name}, args)...)
}

// Convert is e as a t.
func Convert(t Type, e Expr) Expr {
	if t.compound {
		return expr(Conversion, 7, "(", t, ")(", e, ")")
	}
	return expr(Conversion, 7, t, "(", e, ")")
}

// Literals is the composite t{list}.
func Literals(t Type, list ...Expr) Expr {
	parts := []any{t, "{"}
	for i, e := range list {
		if i > 0 {
			parts = append(parts, ", ")
		}
		parts = append(parts, e)
	}
	return expr(Composite, 7, append(parts, "}")...)
}

// Function is a function whose body returns result, or computes it if there is no type.
func Function(params []Param, t Type, result Expr) Expr {
	if t.text == "" {
		return expr(Func, 7, FuncOf(params, t), " { ", result, " }")
	}
	return expr(Func, 7, FuncOf(params, t), " { return ", result, " }")
}

// Form is an expression of a table's text, which names these packages, with expressions in it.
func Form(k Kind, p Packages, list ...any) Expr {
	e := expr(k, 7, list...)
	e.packages |= p
	return e
}

// By is e as an access to shared memory.
func (e Expr) By(a Access) Expr {
	e.Access = a
	return e
}

// Converts is what e converts, and whether it is a conversion to type t.
func (e Expr) Converts(t Type) (Expr, bool) {
	if e.Kind == Conversion && e.list[0] == any(t) {
		return e.list[2].(Expr), true
	}
	return e, false
}

// Is reports whether e is the variable or constant x.
func (e Expr) Is(x Expr) bool { return e.Kind == Ident && x.Kind == Ident && Same(e, x) }

// Same reports whether two expressions are the same.
func Same(a, b Expr) bool {
	return a.Kind == b.Kind && slices.EqualFunc(a.list, b.list, func(p, q any) bool {
		x, ok := p.(Expr)
		y, also := q.(Expr)
		if ok && also {
			return Same(x, y)
		}
		return ok == also && !ok && p == q
	})
}

// walk calls f for e and all expressions in it.
func (e Expr) walk(f func(Expr)) {
	f(e)
	for _, p := range e.list {
		if x, ok := p.(Expr); ok {
			x.walk(f)
		}
	}
}

func (e Expr) write(b *strings.Builder) {
	for _, p := range e.list {
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case Type:
			b.WriteString(p.text)
		case Expr:
			p.write(b)
		}
	}
}

// String is the expression as Go writes it, but for spaces.
func (e Expr) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}
