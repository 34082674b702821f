package front

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Config is how a program is compiled.
type Config struct {
	Threads int      // THREADS, or 0 if the job decides
	Include []string // directories for #include
	Define  []string // NAME or NAME=VALUE, or !NAME, which undefines it
	// Read reads a header; nil for os.ReadFile.
	Read func(name string) ([]byte, error)
	// Elsewhere reports whether another file of the program defines a function, and whether that is known; nil if none does.
	Elsewhere func(name string) (defines, known bool)
}

// MayAlias is a macro that has Unit.MayAlias set: places may be the same that have no type in common, as with gcc's
// -fno-strict-aliasing, and its attribute may_alias.
const MayAlias = "__ARGON_MAY_ALIAS__"

// Parse parses and checks a source file. The error is an [Errors].
func Parse(cfg *Config, name, src string) (u *Unit, err error) {
	r := &reporter{}
	p := &parser{checker: checker{reporter: r, mem: Relaxed}, cfg: cfg, unit: &Unit{Name: name}}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(stop); !ok {
				panic(e)
			}
		}
		if len(r.errs) > 0 {
			u, err = nil, r.sorted()
		}
	}()
	p.unit.MayAlias = slices.Contains(cfg.Define, MayAlias)
	p.toks, p.unit.Relined = preprocess(r, cfg, name, src)
	widen(p.toks)
	p.defines = definitions(p.toks, false)
	p.push()
	for p.tok().kind != tEOF {
		p.external()
	}
	p.unit.Syms = slices.DeleteFunc(p.unit.Syms, func(s *Sym) bool { // what a header has besides
		return s.Header && s.Defined && s.Static && !s.Used
	})
	for _, s := range p.unit.Syms { // tentative definitions (C99 6.9.2)
		switch {
		case s.Storage != Global || !s.Defined || s.Type.Complete():
		case s.Type.Kind == Array && s.Type.Len == -1:
			p.warnf(s.Pos, "array '%s' assumed to have one element", s.Name)
			c := *s.Type
			c.Len = 1
			s.Type = &c
		default:
			p.errorf(s.Pos, "storage size of '%s' isn't known", s.Name)
		}
	}
	p.unit.Warnings, p.unit.reporter = r.sorted(), r
	return p.unit, nil
}

// scope is the identifiers of a block.
type scope struct {
	syms map[string]*Sym
	tags map[string]*Type
	// modified is the variables with types whose lengths are computed.
	modified []*Sym
}

// parser parses and checks; it makes typed nodes.
type parser struct {
	checker
	cfg    *Config
	unit   *Unit
	toks   []token
	i      int
	scopes []scope
	depth  int

	fn         *Sym
	labels     map[string]*LabelInfo
	gotos      []jump
	path       []*Node
	flat       map[*Node]bool // statements of the function that something jumps into
	loops      int
	switches   []jump
	braced     int // statements in expressions around the one that is read
	heads      int // loops whose head, and &&, ||, ? and commas whose further operands are being read
	foralls    []*Node
	longDouble bool            // the file has been warned of it
	pack       []int64         // what #pragma pack allows of alignments, innermost last; 0 for any
	literals   int             // compound literals so far
	inMember   bool            // the declarator that is read is that of a member
	before     []*Node         // statements that have to stand before the one that is read
	initial    initial         // what __auto_type has read ahead
	defines    map[string]bool // functions that the file defines, further down too
	leaves     int             // how many loops and switches stand in the innermost upc_forall
}

// maxNesting is how deep a program's syntax may be nested.
const maxNesting = 1000

func (p *parser) nest() func() {
	if p.depth++; p.depth > maxNesting {
		p.fatalf(p.tok().pos, "not supported: nesting deeper than %d", maxNesting)
	}
	return func() { p.depth-- }
}

func (p *parser) tok() token {
	for p.toks[p.i].kind == tPragma {
		p.pragma(p.toks[p.i])
		p.i++
	}
	return p.toks[p.i]
}

func (p *parser) after() token {
	for i := p.i + 1; i < len(p.toks); i++ {
		if p.toks[i].kind != tPragma {
			return p.toks[i]
		}
	}
	return p.toks[len(p.toks)-1]
}

// pragma is #pragma upc strict or relaxed: to the end of the block (UPC 1.3, 6.7.1).
func (p *parser) pragma(t token) {
	switch t.text {
	case "strict":
		p.mem = Strict
	case "relaxed":
		p.mem = Relaxed
	case "c_code", "upc_code":
	default:
		if rest, ok := strings.CutPrefix(t.text, "pack"); ok {
			packing(p, t.pos, rest)
			return
		}
		p.errorf(t.pos, "unknown #pragma upc %s", t.text)
	}
}

func (p *parser) next() token {
	t := p.tok()
	if t.kind != tEOF {
		p.i++
	}
	return t
}

func (p *parser) at(s string) bool { return p.tok().is(s) }

func (p *parser) accept(s string) bool {
	if p.at(s) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(s string) token {
	if !p.at(s) {
		p.unexpected("expected '" + s + "'")
	}
	return p.next()
}

func (p *parser) unexpected(what string) {
	t := p.tok()
	switch t.kind {
	case tEOF:
		p.fatalf(t.pos, "%s at end of input", what)
	case tIdent:
		p.fatalf(t.pos, "%s before '%s'", what, t.text)
	case tString:
		p.fatalf(t.pos, "%s before string constant", what)
	case tNumber:
		p.fatalf(t.pos, "%s before numeric constant", what)
	case tOther:
		if c := strings.TrimPrefix(t.text, "L")[0]; c == '"' || c == '\'' {
			p.fatalf(t.pos, "missing terminating %c character", c)
		}
		p.fatalf(t.pos, "stray '%s' in program", t.text)
	}
	p.fatalf(t.pos, "%s before '%s' token", what, t.text)
}

// keywords are the names that are no identifiers.
var keywords = map[string]bool{}

func init() {
	for _, k := range []string{
		"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
		"extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
		"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
		"volatile", "while", "_Bool", "_Complex", "_Imaginary", "_Alignas", "_Alignof", "_Generic", "_Noreturn", "_Static_assert", "_Thread_local",
		"__alignof__", "__attribute__", "__imag__", "__real__", "__auto_type", "__extension__", "__thread", "__typeof__", "__typeof", "typeof",
		"MYTHREAD", "THREADS", "UPC_MAX_BLOCK_SIZE", "relaxed", "shared", "strict", "upc_barrier", "upc_blocksizeof",
		"upc_elemsizeof", "upc_fence", "upc_forall", "upc_localsizeof", "upc_notify", "upc_wait",
	} {
		keywords[k] = true
	}
}

func (p *parser) push() {
	p.scopes = append(p.scopes, scope{syms: map[string]*Sym{}, tags: map[string]*Type{}})
}

func (p *parser) pop() { p.scopes = p.scopes[:len(p.scopes)-1] }

func (p *parser) find(name string) *Sym {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if s := p.scopes[i].syms[name]; s != nil {
			return s
		}
	}
	return nil
}

func (p *parser) findTag(name string) *Type {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if t := p.scopes[i].tags[name]; t != nil {
			return t
		}
	}
	return nil
}

func (p *parser) typedef(t token) *Sym {
	if t.kind == tIdent && !keywords[t.text] {
		if s := p.find(t.text); s != nil && s.Storage == Typedef {
			return s
		}
	}
	return nil
}

// startsType reports whether t begins a type or declaration.
func (p *parser) startsType(t token) bool {
	if t.kind != tIdent {
		return false
	}
	switch t.text {
	case "char", "const", "double", "enum", "extern", "float", "inline", "int", "long", "register", "auto",
		"short", "signed", "static", "struct", "typedef", "union", "unsigned", "void", "volatile", "restrict",
		"_Bool", "_Complex", "_Imaginary", "relaxed", "shared", "strict", "__attribute__", "__extension__",
		"_Alignas", "_Noreturn", "__thread", "_Thread_local", "_Static_assert", "__typeof__", "__typeof", "typeof", "__auto_type":
		return true
	}
	return p.typedef(t) != nil
}

// specs collects declaration specifiers.
type specs struct {
	typ      *Type
	pos      Pos
	typedef  bool
	extern   bool
	static   bool
	hasClass bool
	attrs    attributes
}

// quals are qualifiers.
type quals struct {
	constant, volatile, shared bool
	layout                     bool // block is given, not that of shared alone
	block                      int64
	mem                        Mem
	pos                        Pos
}

// qualifier reads a qualifier, if there is one.
func (p *parser) qualifier(q *quals) bool {
	t := p.tok()
	switch t.text {
	case "const":
		q.constant = true
	case "volatile":
		q.volatile = true
	case "restrict":
	case "strict", "relaxed":
		m := Strict
		if t.text == "relaxed" {
			m = Relaxed
		}
		if q.mem != Plain && q.mem != m {
			p.errorf(t.pos, "both 'strict' and 'relaxed' in declaration")
		}
		q.mem = m
		if q.pos.Line == 0 {
			q.pos = t.pos
		}
	case "shared":
		// A qualifier may be repeated (C 6.7.3p4), but not with another block size (UPC 1.3, 6.5p3).
		was := *q
		q.shared, q.block, q.pos = true, 1, t.pos
		p.i++
		if !p.accept("[") {
			if was.shared {
				q.layout, q.block = was.layout, was.block
			}
			return true
		}
		q.layout = true
		defer func() {
			if was.layout && was.block != q.block {
				p.errorf(t.pos, "two or more layout qualifiers specified")
			}
		}()
		switch {
		case p.accept("]"):
			q.block = 0
			return true
		case p.at("*") && p.after().is("]"):
			p.i++
			q.block = BlockStar
		default:
			at := p.tok().pos
			e := p.conditional()
			switch {
			case e.Op != Num || !e.Type.Integer():
				p.errorf(at, "UPC layout qualifier is not an integral constant")
			case e.I < 0:
				p.errorf(at, "UPC layout qualifier must be a non-negative integral constant")
			case e.I > maxBlock:
				p.errorf(at, "the maximum UPC block size in this implementation is %d", maxBlock)
			default:
				q.block = e.I
			}
		}
		p.expect("]")
		return true
	default:
		return false
	}
	p.i++
	return true
}

// maxBlock is UPC_MAX_BLOCK_SIZE.
const maxBlock = 1 << 20

// apply is t with the qualifiers q.
func (p *parser) apply(t *Type, q *quals) *Type {
	if *q == (quals{}) {
		return t
	}
	switch b := t.Base(); {
	case q.shared && b.Kind == Func:
		p.errorf(q.pos, "function type '%v' is qualified as UPC shared", b)
		return t
	case q.shared && b.Layout && !q.layout:
		q.block, q.layout = b.Block, true
	case q.shared && b.Layout && b.Block != q.block:
		p.errorf(q.pos, "two or more layout qualifiers specified")
	}
	if q.mem != Plain && t.Base().Mem != Plain && t.Base().Mem != q.mem {
		p.errorf(q.pos, "both 'strict' and 'relaxed' in declaration")
	}
	return t.with(func(b *Type) {
		b.Const = b.Const || q.constant
		b.Volatile = b.Volatile || q.volatile
		if q.shared {
			b.Shared, b.Block, b.Layout = true, q.block, q.layout
		}
		if q.mem != Plain {
			b.Mem = q.mem
		}
	})
}

// declspecs reads declaration specifiers.
func (p *parser) declspecs(classes bool) specs {
	s := specs{pos: p.tok().pos}
	var q quals
	count := map[string]int{}
	var base *Type
	for {
		t := p.tok()
		if t.kind != tIdent {
			break
		}
		if p.qualifier(&q) {
			continue
		}
		words := len(count) > 0
		switch t.text {
		case "typedef", "extern", "static", "auto", "register":
			if !classes {
				p.errorf(t.pos, "storage class specified in a type name or member")
			}
			if s.hasClass {
				p.errorf(t.pos, "multiple storage classes in declaration specifiers")
			}
			s.hasClass = true
			s.typedef = t.text == "typedef"
			s.extern = t.text == "extern"
			s.static = t.text == "static"
		case "inline", "_Noreturn", "__extension__":
		case "__attribute__", "_Alignas":
			s.attrs.read(p)
			continue
		case "__thread", "_Thread_local": // all variables are a thread's own
		case "_Imaginary":
			p.errorf(t.pos, "not supported: imaginary types, which gcc has not either: use a complex one")
		case "_Complex", "void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool":
			if base != nil {
				p.errorf(t.pos, "two or more data types in declaration specifiers")
			}
			count[t.text]++
		case "struct", "union":
			if base != nil || words {
				p.errorf(t.pos, "two or more data types in declaration specifiers")
			}
			base = p.structure()
			continue
		case "enum":
			base = p.enum()
			continue
		case "__typeof__", "__typeof", "typeof", "__auto_type":
			if base != nil || words {
				p.errorf(t.pos, "two or more data types in declaration specifiers")
			}
			if base = tyInt; t.text != "__auto_type" {
				base = typeOf(p)
			} else if p.i++; p.fn != nil {
				base = initialType(p, &q)
			}
			continue
		default:
			d := p.typedef(t)
			if d == nil || base != nil || words {
				goto done
			}
			base = d.Type
		}
		p.i++
	}
done:
	if t := p.tok(); base == nil && len(count) == 0 && (s.hasClass || q != (quals{})) && (t.is("*") || t.kind == tIdent && !keywords[t.text]) {
		p.warnf(s.pos, "type defaults to 'int'")
		base = tyInt
	}
	if base == nil {
		base = p.basic(s.pos, count)
	}
	if q.mem != Plain && !q.shared && !base.IsShared() {
		p.errorf(q.pos, "UPC strict and relaxed qualifiers may be applied only to a shared type")
	}
	s.typ = p.apply(base, &q)
	return s
}

// typeOf reads gcc's typeof: the type of an expression that is not evaluated, or the type.
func typeOf(p *parser) *Type {
	p.next()
	p.expect("(")
	defer p.expect(")")
	if p.startsType(p.tok()) {
		return p.typeName()
	}
	n := p.expression()
	if n.Op == Var {
		n.Sym.Reads--
	}
	if n.Type.IsShared() && n.Type.Kind != Array {
		return n.Type.plain() // a variable for the value of a shared object is private
	}
	return n.Type
}

// initialType is the type of gcc's __auto_type: that of the variable's initialiser, which the declaration takes as it was read. Qualifiers go to q.
func initialType(p *parser, q *quals) *Type {
	for p.qualifier(q) {
	}
	at := p.i
	defer func() { p.i = at }()
	p.name()
	p.expect("=")
	from := p.i
	n := p.assignment()
	p.initial = initial{n, from, p.i}
	return p.value(n).Type.plain()
}

// initial is an initialiser that has been read: the tokens from one to before another.
type initial struct {
	n        *Node
	from, to int
}

// take is the expression at the next token, if that is i, or a new one.
func (i *initial) take(p *parser) *Node {
	n := i.n
	if n == nil || p.i != i.from {
		return p.assignment()
	}
	p.i, i.n = i.to, nil
	return n
}

// basic is the type that the words of count are.
func (p *parser) basic(at Pos, count map[string]int) *Type {
	n := 0
	for _, c := range count {
		n += c
	}
	if n == 0 {
		p.unexpected("expected declaration specifiers")
	}
	if count["_Complex"] > 0 {
		delete(count, "_Complex")
		kind := DoubleComplex
		if len(count) > 0 {
			switch t := p.basic(at, count); t.Kind {
			case Float:
				kind = FloatComplex
			case Double:
			default:
				p.errorf(at, "not supported: complex integers")
			}
		}
		return &Type{Kind: kind}
	}
	unsigned, signed := count["unsigned"] > 0, count["signed"] > 0
	t := &Type{Kind: Int, Unsigned: unsigned}
	rest := n - count["unsigned"] - count["signed"]
	switch {
	case unsigned && signed || count["unsigned"] > 1:
	case count["void"] == 1 && n == 1:
		return tyVoid
	case count["_Bool"] == 1 && n == 1:
		return &Type{Kind: Bool, Unsigned: true}
	case count["float"] == 1 && n == 1:
		return &Type{Kind: Float}
	case count["double"] == 1 && n == 1:
		return tyDouble
	case count["double"] == 1 && count["long"] == 1 && n == 2:
		if !p.longDouble {
			p.warnf(at, "'long double' is 'double' here, of 8 bytes")
		}
		p.longDouble = true
		return tyDouble
	case count["char"] == 1 && rest == 1:
		t.Kind, t.Explicit = Char, signed
		return t
	case count["short"] == 1 && rest == 1+count["int"] && count["int"] <= 1:
		t.Kind = Short
		return t
	case count["long"] == 1 && rest == 1+count["int"] && count["int"] <= 1:
		t.Kind = Long
		return t
	case count["long"] == 2 && rest == 2+count["int"] && count["int"] <= 1:
		t.Kind = LongLong
		return t
	case rest == count["int"] && count["int"] <= 1:
		return t
	}
	p.errorf(at, "two or more data types in declaration specifiers")
	return tyInt
}

// structure reads a struct or union specifier.
func (p *parser) structure() *Type {
	defer p.nest()()
	word := p.next()
	kind := Struct
	if word.text == "union" {
		kind = Union
	}
	var attrs attributes
	attrs.read(p)
	var t *Type
	var tag string
	at := word.pos
	if n := p.tok(); n.kind == tIdent && !keywords[n.text] {
		p.i++
		tag, at = n.text, n.pos
		if p.at("{") || p.at(";") {
			t = p.scopes[len(p.scopes)-1].tags[tag]
		} else {
			t = p.findTag(tag)
		}
		if t != nil && t.Kind != kind {
			p.fatalf(at, "'%s' defined as wrong kind of tag", tag)
		}
	} else if !p.at("{") {
		p.unexpected("expected identifier or '{'")
	}
	if t == nil {
		t = &Type{Kind: kind, Info: &StructInfo{Tag: tag, Pos: at, Union: kind == Union, ID: len(p.unit.Structs)}}
		p.unit.Structs = append(p.unit.Structs, t.Info)
		if tag != "" {
			p.scopes[len(p.scopes)-1].tags[tag] = t
		}
	}
	if !p.accept("{") {
		return t
	}
	s := t.Info
	if s.Complete {
		p.errorf(at, "redefinition of '%s %s'", word.text, tag).note(s.Pos, "previous definition of '%s %s'", word.text, tag)
		panic(stop{})
	}
	var list []member
	for !p.accept("}") {
		if p.at("_Static_assert") {
			staticAssert(p)
			continue
		}
		d := p.declspecs(false)
		if p.at(";") {
			if k := d.typ.Kind; (k == Struct || k == Union) && d.typ.Info.Tag == "" {
				if !d.typ.Complete() {
					p.fatalf(d.pos, "an unnamed member has incomplete type")
				}
				f := &Field{Name: "unnamed" + strconv.Itoa(len(s.Fields)), Type: d.typ, Pos: d.pos, Unnamed: true}
				s.Fields = append(s.Fields, f)
				list = append(list, member{f, d.attrs})
			}
		}
		for !p.at(";") {
			ft, name := d.typ, p.tok()
			if name.text = ""; !p.at(":") {
				p.inMember = true
				ft, name = p.declarator(d.typ, false)
				p.inMember = false
			}
			f := &Field{Name: name.text, Type: ft, Pos: name.pos}
			switch {
			case ft.Kind == Func:
				p.fatalf(name.pos, "field '%s' declared as a function", name.text)
			case ft.Kind == Array && ft.Len == -1 && len(s.Fields) > 0 && !s.Union && p.at(";") && p.after().is("}"):
				s.Flexible = true
			case !ft.Complete():
				p.fatalf(name.pos, "field '%s' has incomplete type", name.text)
			case ft.IsShared():
				p.errorf(name.pos, "field '%s' declared with UPC shared qualifier", name.text)
			}
			p.fixed(ft, name.pos, "in a structure")
			if k := ft.Base(); (k.Kind == Struct || k.Kind == Union) && k.Info.Flexible {
				p.errorf(name.pos, "not supported: a structure with a flexible array as a member or an element ('%s')", name.text)
			}
			if f.Name != "" && s.path(name.text) != nil {
				p.errorf(name.pos, "duplicate member '%s'", name.text)
			}
			if p.at(":") {
				p.bitField(f)
			}
			m := member{f, d.attrs}
			m.attributes.read(p)
			list = append(list, m)
			if f.Name != "" {
				s.Fields = append(s.Fields, f)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(";")
	}
	attrs.read(p)
	s.layOut(p, list, &attrs)
	if s.Size == 0 {
		p.errorf(p.toks[p.i-1].pos, "not supported: structures without members")
	}
	s.Complete = true
	return t
}

// bitField reads the width of a bit-field.
func (p *parser) bitField(f *Field) {
	at := p.expect(":").pos
	f.Bits = p.constant("bit-field width is not an integer constant")
	most := f.Type.Size() * 8
	if f.Type.Kind == Bool {
		most = 1
	}
	what := "'" + f.Name + "'"
	if f.Name == "" {
		what = "'<anonymous>'"
	}
	switch {
	case !f.Type.Integer():
		p.fatalf(f.Pos, "bit-field %s has invalid type", what)
	case f.Bits < 0:
		p.fatalf(at, "negative width in bit-field %s", what)
	case f.Bits > most:
		p.fatalf(at, "width of %s exceeds its type", what)
	case f.Bits == 0 && f.Name != "":
		p.fatalf(at, "zero width for bit-field %s", what)
	}
	f.bitField = true
	if f.Type.Natural {
		f.Type = f.Type.with(func(q *Type) { q.Unsigned, q.Natural = true, false })
	}
}

// enum reads an enum specifier. Its type, and that of values which are no int, is as gcc has it: int,
// or unsigned if there are values such as 0x80000000, or long if there are negative ones beside these.
func (p *parser) enum() *Type {
	p.next()
	at := p.tok()
	tag := "enum " + at.text // structures have their tags in the same table
	if at.kind == tIdent && !keywords[at.text] {
		p.i++
	}
	if !p.accept("{") {
		if at.kind != tIdent {
			p.unexpected("expected identifier or '{'")
		}
		if t := p.findTag(tag); t != nil {
			return t
		}
		return tyInt
	}
	t := &Type{Kind: Int, Natural: true}
	if at.kind == tIdent {
		p.scopes[len(p.scopes)-1].tags[tag] = t
	}
	var v int64
	var large []*Sym // those that are no int
	for !p.accept("}") {
		n := p.name()
		if p.accept("=") {
			v = p.constant("enumerator value is not an integer constant")
		}
		if v < math.MinInt32 || v > math.MaxUint32 {
			p.errorf(n.pos, "not supported: the value of enumerator '%s' is no int", n.text)
		}
		s := &Sym{Name: n.text, Pos: n.pos, Type: tyInt, Storage: EnumConst, I: v}
		if v > math.MaxInt32 {
			s.Type = &Type{Kind: Int, Unsigned: true}
			t.Unsigned = true
			large = append(large, s)
		}
		p.declare(s)
		t.Natural = t.Natural && v >= 0
		v++
		if !p.accept(",") && !p.at("}") {
			p.unexpected("expected ',' or '}'")
		}
	}
	if t.Unsigned && !t.Natural {
		t.Kind, t.Unsigned = Long, false
		for _, s := range large {
			s.Type = tyLong
		}
	}
	return t
}

func (p *parser) name() token {
	t := p.tok()
	if t.kind != tIdent || keywords[t.text] {
		p.unexpected("expected identifier")
	}
	p.i++
	return t
}

// constant reads a constant integer expression.
func (p *parser) constant(complaint string) int64 {
	at := p.tok().pos
	e := p.conditional()
	if e.Op != Num || !e.Type.Integer() {
		p.errorf(at, "%s", complaint)
		return 1
	}
	return e.I
}

// declarator reads a declarator on base; abstract ones may have no name.
func (p *parser) declarator(base *Type, abstract bool) (*Type, token) {
	defer p.nest()()
	for p.at("*") {
		at := p.next().pos
		switch b := base.Base(); {
		case !b.Shared:
		case b.Block == BlockStar:
			p.errorf(at, "UPC [*] qualifier may not be used in declaration of pointers")
			base = base.with(func(q *Type) { q.Block = 1 })
		case b.Kind == Void && b.Layout:
			p.errorf(at, "UPC layout qualifier cannot be applied to a void type")
			base = base.with(func(q *Type) { q.Block, q.Layout = 1, false })
		}
		base = pointerTo(base)
		var q quals
		for p.tok().kind == tIdent && p.qualifier(&q) {
		}
		if q.mem != Plain && !q.shared {
			p.errorf(q.pos, "UPC strict and relaxed qualifiers may be applied only to a shared type")
		}
		base = p.apply(base, &q)
	}
	var name token
	if p.at("(") && p.nested(abstract) {
		p.i++
		// The part outside of the parentheses is read after the part inside,
		// which is made on a place for it.
		hole := new(Type)
		t, name := p.declarator(hole, abstract)
		p.expect(")")
		*hole = *p.suffix(base)
		if t == hole {
			c := *hole
			return &c, name
		}
		return t, name
	}
	if t := p.tok(); t.kind == tIdent && !keywords[t.text] {
		name = t
		p.i++
	} else if !abstract {
		p.unexpected("expected identifier or '('")
	} else {
		name.pos = t.pos
	}
	return p.suffix(base), name
}

// nested reports whether a parenthesis begins a nested declarator, not parameters.
func (p *parser) nested(abstract bool) bool {
	n := p.after()
	return n.is("*") || n.is("(") || n.is("[") || n.kind == tIdent && !p.startsType(n) && !keywords[n.text] || !abstract
}

// suffix reads dimensions and parameters on base.
func (p *parser) suffix(base *Type) *Type {
	switch {
	case p.at("["):
		at := p.next().pos
		for p.at("static") || p.at("const") || p.at("restrict") || p.at("volatile") {
			p.i++
		}
		t := &Type{Kind: Array, Len: -1}
		if p.at("*") && p.after().is("]") {
			p.i++
			t.Len = vla
		} else if !p.at("]") {
			at = p.tok().pos
			e := p.value(p.assignment())
			n, threads, ok := linear(e)
			switch {
			case !e.Type.Integer():
				p.errorf(at, "size of array has non-integer type")
			case !ok && base.IsShared() && hasThreads(e):
				p.errorf(at, "in the UPC dynamic translation environment, THREADS must appear exactly once in declarations of shared arrays, alone or times an integer constant")
				t.Len, t.Threads = 1, true
			case !ok, threads && !base.IsShared() && len(p.scopes) > 1:
				t.Len, t.Count = vla, cast(e, tyLong)
			case n < 0:
				p.errorf(at, "size of array is negative")
				t.Len, t.Threads = 1, threads
			case n == 0 && p.inMember: // the flexible member of gcc before C99
			case n == 0:
				p.errorf(at, "not supported: arrays of size 0")
				t.Len, t.Threads = 1, threads || hasThreads(e)
			default:
				t.Len, t.Threads = n, threads
			}
		}
		p.expect("]")
		t.Elem = p.suffix(base)
		if t.Elem.Variable() && t.Len >= 0 {
			t.Len, t.Count = vla, number(t.Len, tyLong, at)
		}
		switch {
		case t.Elem.Kind == Func:
			p.fatalf(at, "declaration of an array of functions")
		case t.Elem.Kind == Void:
			p.fatalf(at, "declaration of an array of voids")
		case !t.Elem.Complete():
			p.fatalf(at, "array type has incomplete element type '%v'", t.Elem)
		case t.Elem.Aligned > 0 && t.Elem.Size()%t.Elem.Aligned != 0:
			p.errorf(at, "size of array element is not a multiple of its alignment, %d: put 'aligned' behind the } of a structure", t.Elem.Aligned)
		}
		return t
	case p.at("("):
		p.i++
		t := &Type{Kind: Func}
		p.push()
		p.params(t)
		p.pop()
		t.Elem = p.suffix(base)
		if t.Elem.Kind == Func || t.Elem.Kind == Array {
			p.fatalf(p.tok().pos, "function returning a function or an array")
		}
		if t.Elem.IsShared() {
			p.fatalf(p.tok().pos, "function return type is qualified as UPC shared")
		}
		t.Elem = t.Elem.plain()
		return t
	}
	return base
}

// hasThreads reports whether THREADS, as a variable, takes part in an expression.
func hasThreads(n *Node) bool {
	return n != nil && (n.Op == Threads || hasThreads(n.L) || hasThreads(n.R) || hasThreads(n.C))
}

// params reads parameters and the closing parenthesis.
func (p *parser) params(f *Type) {
	if f.Old = p.accept(")"); f.Old {
		return
	}
	if t := p.tok(); t.kind == tIdent && !keywords[t.text] && !p.startsType(t) {
		for f.Old = true; ; {
			f.Names = append(f.Names, p.name().text)
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		return
	}
	if p.at("void") && p.after().is(")") {
		p.i += 2
		return
	}
	for {
		if p.accept("...") {
			f.Variadic = true
			p.expect(")")
			return
		}
		if !p.startsType(p.tok()) {
			p.unexpected("expected declaration specifiers or '...'")
		}
		d := p.declspecs(true)
		t, name := p.declarator(d.typ, true)
		switch t.Kind {
		case Array:
			t = pointerTo(t.Elem)
		case Func:
			t = pointerTo(t)
		case Void:
			p.fatalf(name.pos, "parameter '%s' has void type", name.text)
		}
		if t.IsShared() {
			p.fatalf(name.pos, "parameter declared with UPC shared qualifier")
		}
		s := &Sym{Name: name.text, Pos: name.pos, Type: t, Storage: Local, Param: true}
		if name.text != "" {
			p.declare(s) // lengths of those behind it may depend on it
		}
		f.syms = append(f.syms, s)
		f.Params = append(f.Params, t)
		f.Names = append(f.Names, name.text)
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
}

// dimensions refuses array types behind pointers that have THREADS in several dimensions (UPC
// 1.3, 6.5.2.1p2), or that are private and have it in one, in a dynamic THREADS environment.
func (p *parser) dimensions(t *Type, at Pos) {
	for behind := false; t.Kind == Array || t.Kind == Pointer || t.Kind == Func; t = t.Elem {
		switch {
		case t.Kind != Array:
			behind = true
		case behind && t.Threads && t.Elem.PerThread():
			p.errorf(at, "THREADS occurs in more than one dimension of '%v'", t)
			return
		case behind && t.Threads && !t.IsShared():
			p.errorf(at, "not supported: a private array '%v' whose size depends on THREADS, in a dynamic THREADS environment", t)
			return
		}
	}
}

// typeName reads a type name.
func (p *parser) typeName() *Type {
	d := p.declspecs(false)
	t, name := p.declarator(d.typ, true)
	if name.text != "" {
		p.errorf(name.pos, "unexpected name '%s' in a type", name.text)
	}
	if p.fn == nil {
		p.fixed(t, d.pos, "outside of functions")
	} else {
		repeatable(p, t, d.pos)
	}
	p.dimensions(t, d.pos)
	return t
}

// declare enters s into the scope.
func (p *parser) declare(s *Sym) *Sym {
	sc := p.scopes[len(p.scopes)-1]
	if old := sc.syms[s.Name]; old != nil {
		switch {
		case old.Storage == Typedef && s.Storage == Typedef && same(old.Type, s.Type):
			return old
		case old.Storage != s.Storage:
			p.errorf(s.Pos, "'%s' redeclared as different kind of symbol", s.Name).note(old.Pos, "previous declaration of '%s'", s.Name)
		case s.Storage == Function || s.Storage == Global:
			if old.Type.Old && old.implicit && s.Type.Elem.Kind == Void && s.Defined {
				p.warnf(s.Pos, "conflicting types for '%s', which was used as a function that returns int", s.Name)
			} else if !same(old.Type, s.Type) || old.Type.Old && old.Defined && !s.Type.Old && !slices.EqualFunc(old.Type.Params, s.Type.Params, same) {
				p.errorf(s.Pos, "conflicting types for '%s'; have '%v'", s.Name, s.Type).note(old.Pos, "previous declaration of '%s' with type '%v'", s.Name, old.Type)
			}
			if s.Defined && old.Defined && s.Storage == Function {
				p.errorf(s.Pos, "redefinition of '%s'", s.Name).note(old.Pos, "previous definition of '%s'", s.Name)
			}
			if s.Type.Kind == Array && s.Type.Len >= 0 || s.Storage == Function && (s.Type.Names != nil || old.Type.Old) {
				old.Type = s.Type
			}
			old.Align = max(old.Align, s.Align)
			if s.Defined && !old.Defined {
				old.Defined, old.Pos = true, s.Pos
			}
			return old
		default:
			p.errorf(s.Pos, "redeclaration of '%s'", s.Name).note(old.Pos, "previous declaration of '%s'", s.Name)
		}
		return old
	}
	sc.syms[s.Name] = s
	if (s.Storage == Global || s.Storage == Function) && !s.Defined && !s.Static {
		adopt(p, s)
	}
	if s.Storage == Global || s.Storage == Function {
		p.unit.Syms = append(p.unit.Syms, s)
	}
	return s
}

// star replaces the block size [*] by its value for an object of type t: what spreads the
// elements evenly over the threads (UPC 1.3, 6.5.1.1p16).
func (p *parser) star(t *Type, at Pos) *Type {
	b := t.Base()
	if !b.Shared || b.Block != BlockStar {
		return t
	}
	n := t.Elems()
	block := n
	switch {
	case n < 0:
		return t
	case t.PerThread():
	case p.cfg.Threads > 0:
		block = (n + int64(p.cfg.Threads) - 1) / int64(p.cfg.Threads)
	case t.Kind == Array:
		p.errorf(at, "a UPC layout qualifier of '[*]' requires that the array size is either an integral constant or an integral multiple of THREADS")
	default:
		block = 1
	}
	if block > maxBlock {
		p.errorf(at, "the maximum UPC block size in this implementation is %d", maxBlock)
	}
	return t.with(func(q *Type) { q.Block = block })
}

// reblock gives block size [*] in the types of n, which were made before it was known, its value.
func (n *Node) reblock(block int64) {
	if n == nil {
		return
	}
	if n.Type != nil && n.Type.Base().Block == BlockStar {
		n.Type = n.Type.with(func(q *Type) { q.Block = block })
	}
	for _, k := range []*Node{n.L, n.R, n.C} {
		k.reblock(block)
	}
	for _, k := range n.List {
		k.reblock(block)
	}
}

// object checks the type of a variable.
func (p *parser) object(s *Sym, d specs) {
	t := s.Type
	p.dimensions(t, s.Pos)
	if (s.Storage == Global || t.IsShared()) && !p.fixed(t, s.Pos, "('"+s.Name+"') outside of functions, static or shared") {
		panic(stop{})
	}
	if t.Kind == Void {
		p.fatalf(s.Pos, "variable or field '%s' declared void", s.Name)
	}
	if t.IsShared() {
		if s.Storage == Local {
			p.fatalf(s.Pos, "UPC shared variable '%s' must have static storage: automatic variables cannot be shared", s.Name)
		}
		dims := 0
		for a := t; a.Kind == Array; a = a.Elem {
			if a.Threads {
				dims++
			}
		}
		switch {
		case dims > 1:
			p.errorf(s.Pos, "in the UPC dynamic translation environment, THREADS must appear exactly once in declarations of shared arrays; '%s' has it in %d dimensions", s.Name, dims)
		case dims == 1 && t.Base().Block == 0:
			p.errorf(s.Pos, "in the UPC dynamic translation environment, THREADS may not appear in declarations of shared arrays with indefinite block size; the storage size of '%s' cannot be calculated", s.Name)
		}
		if b := t.Base(); t.Kind == Array && dims == 0 && p.cfg.Threads == 0 && b.Block != 0 && (t.Len >= 0 || !d.extern) {
			p.errorf(s.Pos, "in the UPC dynamic translation environment, THREADS must appear exactly once in declarations of shared arrays; '%s' has no THREADS in a dimension", s.Name)
		}
		s.Type = p.star(t, s.Pos)
		if s.Type.Base().Block == BlockStar && d.extern {
			p.errorf(s.Pos, "a UPC layout qualifier of '[*]' requires the array size, which '%s' does not have", s.Name)
			s.Type = s.Type.with(func(q *Type) { q.Block = 1 })
		}
	} else if t.PerThread() {
		p.fatalf(s.Pos, "not supported: a private array '%s' whose size depends on THREADS, in a dynamic THREADS environment", s.Name)
	}
}

// external reads a declaration or definition of file scope.
func (p *parser) external() {
	if p.accept(";") {
		return
	}
	var d specs
	switch t := p.tok(); {
	case p.at("_Static_assert"):
		staticAssert(p)
		return
	case p.startsType(t):
		if d = p.declspecs(true); p.accept(";") {
			return
		}
	case t.kind == tIdent && !keywords[t.text] && p.after().is("("):
		p.warnf(t.pos, "return type of '%s' defaults to 'int'", t.text)
		d = specs{typ: tyInt, pos: t.pos}
	default:
		p.unexpected("expected declaration specifiers")
	}
	for first := true; ; first = false {
		t, name := p.declarator(d.typ, false)
		d.attrs.read(p)
		if first && t.Kind == Func && (p.at("{") || t.Old && t.Names != nil && !p.at(";") && !p.at(",")) && !d.typedef {
			p.function(d, t, name)
			return
		}
		p.declaration(d, t, name)
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

// flush is the statements that have to stand before what has been read.
func flush(p *parser) []*Node {
	list := p.before
	p.before = nil
	return list
}

// staticAssert reads _Static_assert.
func staticAssert(p *parser) {
	at := p.next().pos
	p.expect("(")
	n := p.constant("expression in static assertion is not an integer constant")
	text := ""
	if p.accept(",") {
		text = strings.TrimSuffix(p.stringConstant().Str, "\x00")
	}
	p.expect(")")
	p.expect(";")
	if n == 0 {
		p.errorf(at, "static assertion failed: %q", text)
	}
}

// maxSharedAlign is the most that package rt aligns shared objects by: segments begin at pages.
const maxSharedAlign = 4096

// attributed is the declaration's type t with what its attributes say.
func (d *specs) attributed(p *parser, t *Type, name token) *Type {
	a := d.attrs
	if a.packed {
		p.warnf(a.pos, "'packed' attribute ignored: it belongs behind the } of a structure")
	}
	switch {
	case a.aligned > 0 && d.typedef: // which may lower it, too
		return t.with(func(q *Type) { q.Aligned = a.aligned })
	case t.IsShared() && max(a.aligned, t.Align()) > maxSharedAlign:
		p.errorf(name.pos, "not supported: shared variable '%s' with an alignment of %d bytes: at most %d", name.text, max(a.aligned, t.Align()), maxSharedAlign)
	case a.aligned > 0 && t.Variable():
		p.errorf(a.pos, "not supported: an alignment of variable length array '%s'", name.text)
	}
	return t
}

// declaration enters one declarator, with its initialiser, and returns what a block does
// for it, or nil.
func (p *parser) declaration(d specs, t *Type, name token) *Node {
	t = d.attributed(p, t, name)
	s := &Sym{Name: name.text, Pos: name.pos, Type: t, Static: d.static, Func: p.fn, Header: name.pos.File[0] == '<'}
	if t.Kind != Func {
		s.Align = max(d.attrs.aligned, t.Align())
	}
	switch {
	case d.typedef:
		s.Storage = Typedef
		p.dimensions(t, name.pos)
		if p.fn != nil {
			freeze(p, t, name.pos)
		} else {
			p.fixed(t, name.pos, "outside of functions")
		}
		if b := t.Base(); b.Shared && b.Block == BlockStar {
			p.errorf(name.pos, "UPC [*] qualifier may not be used in a typedef")
		}
		if (t.Kind == Struct || t.Kind == Union) && t.Info.Tag == "" {
			t.Info.Tag = name.text
		}
		p.declare(s)
		return nil
	case t.Kind == Func:
		s.Storage = Function
		if p.fn != nil {
			// A declaration in a block is one of file scope.
			save := p.scopes
			p.scopes = p.scopes[:1]
			s = p.declare(s)
			p.scopes = save
			p.scopes[len(p.scopes)-1].syms[name.text] = s
			return nil
		}
		p.declare(s)
		return nil
	case p.fn == nil:
		s.Storage = Global
		s.Func = nil
		s.Defined = !d.extern || p.at("=")
	case d.extern:
		save := p.scopes
		p.scopes = p.scopes[:1]
		s.Storage, s.Func = Global, nil
		p.object(s, d)
		s = p.declare(s)
		p.scopes = save
		p.scopes[len(p.scopes)-1].syms[name.text] = s
		return nil
	case d.static:
		s.Storage, s.Defined = Global, true
	default:
		s.Storage = Local
	}
	p.object(s, d)
	if in := &p.scopes[len(p.scopes)-1]; s.Storage == Local && t.modified() {
		in.modified = append(in.modified, s)
	}
	if s.Storage == Local && t.Variable() {
		s = p.declare(s)
		p.before = append(p.before, automatic(p, s, name.pos)...)
		return nil
	}
	if s.Storage == Local && t.modified() {
		freeze(p, t, name.pos)
	}
	s = p.declare(s)
	if s.Storage == Local {
		p.fn.Locals = append(p.fn.Locals, s)
	}
	var init []*Node
	if p.at("=") {
		eq := p.next()
		if s.Type.IsShared() && s.Type.Kind == Array && s.Type.PerThread() && !p.at("{") {
			p.errorf(eq.pos, "invalid initializer")
		}
		init = p.initialise(s)
		star := s.Type.Base().Block == BlockStar
		s.Type = p.star(s.Type, s.Pos)
		for _, n := range init {
			if star { // their number gave the size
				n.reblock(s.Type.Base().Block)
			}
		}
	}
	if tentative := p.fn == nil && !s.Type.IsShared(); !s.Type.Complete() && !(s.Storage == Global && (d.extern || tentative)) {
		if s.Type.Kind == Array {
			p.fatalf(name.pos, "array size missing in '%s'", name.text)
		}
		p.fatalf(name.pos, "storage size of '%s' isn't known", name.text)
	}
	if s.Storage == Global {
		if init == nil {
			return nil // a declaration after the definition leaves that as it is
		}
		if s.Init != nil {
			p.errorf(name.pos, "redefinition of '%s'", name.text).note(s.Pos, "previous definition of '%s'", name.text)
		}
		s.Init = init
		for _, n := range init {
			if !constantInit(n) {
				p.errorf(n.Pos, "initializer element is not constant")
			}
		}
		return nil
	}
	return &Node{Op: Decl, Pos: name.pos, Sym: s, List: init}
}

// constantInit reports whether an assignment of an initialiser has a constant value.
func constantInit(n *Node) bool {
	if n.Op != Assign {
		return true
	}
	var c func(n *Node) bool
	c = func(n *Node) bool {
		switch n.Op {
		case Num, FNum, Str, Threads:
			return true
		case Var:
			return n.Sym.Storage == Function || n.Sym.Storage == Global
		case Decay, Addr, Cast, Member, Neg, BitNot:
			return c(n.L)
		case Index, PtrAdd, Add, Sub, Mul, Div, Complex:
			return c(n.L) && c(n.R)
		}
		return false
	}
	if n.R.Op == Var && n.R.Sym.Storage != Function {
		return false
	}
	return c(n.R)
}

// initialise reads an initialiser of s: assignments, after one of zeros where some members
// may have none.
func (p *parser) initialise(s *Sym) []*Node {
	v := p.variable(s, s.Pos)
	s.Reads-- // initialisation is no use
	var out []*Node
	t := s.Type
	if t.Kind == Array || p.at("{") && t.Kind != Array {
		if t.Kind == Array && !p.at("{") && p.tok().kind != tString {
			p.fatalf(p.tok().pos, "invalid initializer")
		}
	}
	if t.Kind == Array || (t.Kind == Struct || t.Kind == Union) && p.at("{") {
		out = append(out, &Node{Op: Zero, Pos: s.Pos, Type: tyVoid, L: v})
	}
	n := p.initializer(v, &out)
	if t.Kind == Array && t.Len < 0 {
		c := *t
		c.Len = n
		s.Type = &c
		v.Type = &c
	}
	return out
}

// spells reports whether a string constant initialises an array of type t.
func spells(t *Type, s token) bool {
	if s.kind != tString || t.Kind != Array {
		return false
	}
	return t.Elem.Kind == Char && !wide(s) || t.Elem.Kind == Int && wide(s)
}

// initializer reads an initialiser of place v, appends assignments to out, and is how many
// elements an array has by it.
func (p *parser) initializer(v *Node, out *[]*Node) int64 {
	defer p.nest()()
	t := v.Type
	at := p.tok()
	if t.Kind == Array && t.Base() == t.Elem {
		braces := p.at("{") && spells(t, p.after())
		if braces {
			p.i++
		}
		if spells(t, p.tok()) {
			s := p.stringConstant()
			n := s.Type.Len
			if t.Len >= 0 && n-1 > t.Len {
				p.errorf(at.pos, "initializer-string for array of '%v' is too long", t.Elem.plain())
			}
			fits := n
			if t.Len >= 0 {
				fits = min(n, t.Len)
			}
			if t.Elem.Kind == Char {
				*out = append(*out, &Node{Op: SetStr, Pos: at.pos, Type: tyVoid, L: v, Str: s.Str[:fits]})
			}
			for i := int64(0); i < fits && t.Elem.Kind != Char; i++ {
				c := number(int64(int32(binary.LittleEndian.Uint32([]byte(s.Str)[4*i:]))), tyInt, at.pos)
				*out = append(*out, p.assign(p.index(v, number(i, tyLong, at.pos), at.pos), c, at.pos, "initialization"))
			}
			if braces {
				p.expect("}")
			}
			return n
		}
	}
	if !p.accept("{") {
		if t.Kind == Array {
			p.fatalf(at.pos, "invalid initializer")
		}
		e := p.initial.take(p)
		*out = append(*out, p.assign(v, e, at.pos, "initialization"))
		return 0
	}
	if t.Kind != Array && t.Kind != Struct && t.Kind != Union {
		n := p.initializer(v, out)
		p.accept(",")
		p.expect("}")
		return n
	}
	return p.members(v, out, true, 0, false)
}

// memberCount is how many members of a type have initialisers.
func memberCount(t *Type) int64 {
	switch t.Kind {
	case Array:
		if t.Len >= 0 {
			return t.Len
		}
	case Struct:
		return int64(len(t.Info.Fields))
	case Union:
		return 1
	}
	return math.MaxInt64
}

// designator reports whether t begins one.
func designator(t token) bool { return t.is("[") || t.is(".") }

// within reports whether place n is place or a part of it.
func within(n, place *Node) bool {
	for ; ; n = n.L {
		if samePlace(n, place) {
			return true
		}
		if n.Op != Member && n.Op != Index {
			return false
		}
	}
}

// samePlace reports whether a and b are the same part of a variable.
func samePlace(a, b *Node) bool {
	if a.Op != b.Op {
		return false
	}
	switch a.Op {
	case Var:
		return a.Sym == b.Sym
	case Member:
		return a.Field == b.Field && samePlace(a.L, b.L)
	case Index:
		return a.R.I == b.R.I && samePlace(a.L, b.L)
	}
	return false
}

// members reads the initialisers of the members of v, from the one with index from on: up to the
// brace if braced, else as many as there are members, or up to a designator, which begins at the
// braces around (C99 6.7.8p17). again says that v's members may have initialisers in out.
func (p *parser) members(v *Node, out *[]*Node, braced bool, from int64, again bool) int64 {
	t := v.Type
	limit := memberCount(t)
	if t.Kind == Array && t.Threads {
		p.fatalf(p.tok().pos, "not supported: initialisers of arrays whose size depends on THREADS")
	}
	i, most := from, from
	for !braced || !p.at("}") {
		place := v
		at := p.tok()
		designated := false
		type part struct {
			of *Node
			i  int64
		}
		var inner []part // what further designators name
		for braced && designator(p.tok()) {
			d := p.next()
			if d.is("[") {
				k := p.constant("nonconstant array index in initializer")
				p.expect("]")
				if place.Type.Kind != Array || k < 0 || place.Type.Len >= 0 && k >= place.Type.Len {
					p.fatalf(d.pos, "array index in initializer out of range")
				}
				if !designated {
					i = k
				} else {
					inner = append(inner, part{place, k})
				}
				place = p.index(place, number(k, tyLong, d.pos), d.pos)
			} else {
				n := p.name()
				if place.Type.Kind != Struct && place.Type.Kind != Union || place.Type.Info.path(n.text) == nil {
					p.fatalf(n.pos, "field '%s' not found in initializer", n.text)
				}
				for _, f := range place.Type.Info.path(n.text) {
					if k := int64(slices.Index(place.Type.Info.Fields, f)); !designated {
						i = k
					} else {
						inner = append(inner, part{place, k})
					}
					place = p.member(place, f, n.pos)
					designated = true
				}
			}
			designated = true
		}
		if designated {
			p.expect("=")
		} else {
			if i >= limit {
				what := "array"
				if t.Kind != Array {
					what = "struct"
				}
				p.fatalf(at.pos, "excess elements in %s initializer", what)
			}
			if t.Kind == Array {
				place = p.index(v, number(i, tyLong, at.pos), at.pos)
			} else {
				place = p.member(v, t.Info.Fields[i], at.pos)
			}
		}
		p.element(place, out, again || i < most)
		for _, in := range slices.Backward(inner) {
			if in.i+1 < memberCount(in.of.Type) && p.at(",") && !p.after().is("}") && !designator(p.after()) {
				p.i++
				p.members(in.of, out, false, in.i+1, true)
			}
		}
		i++
		most = max(most, i)
		if !braced && i >= limit {
			return most
		}
		if !p.at(",") {
			break
		}
		if !braced && (p.after().is("}") || designator(p.after())) {
			return most
		}
		p.i++
	}
	if braced {
		p.expect("}")
	}
	return most
}

// element reads the initialiser of one member, which may lack its braces. again says that it, or a
// part of it, may have had one: what is initialised again is as if it had not been before (C99
// 6.7.8p19), but not the members beside it where there are no braces.
func (p *parser) element(place *Node, out *[]*Node, again bool) {
	t := place.Type
	anew := func() {
		if again {
			*out = slices.DeleteFunc(*out, func(n *Node) bool { return n.Op != Zero && within(n.L, place) })
		}
	}
	if p.at("{") || spells(t, p.tok()) || t.Kind != Array && t.Kind != Struct && t.Kind != Union {
		anew()
		p.initializer(place, out)
		return
	}
	if t.Kind == Array {
		p.members(place, out, false, 0, again)
		return
	}
	// A structure by its value, or its members without braces.
	at := p.tok().pos
	save := p.i
	if e := p.assignment(); same(e.Type.plain(), t.plain()) {
		anew()
		*out = append(*out, p.assign(place, e, at, "initialization"))
		return
	}
	p.i = save
	p.members(place, out, false, 0, again)
}

// function reads a function definition.
func (p *parser) function(d specs, t *Type, name token) {
	var before *Type // a prototype
	if old := p.scopes[0].syms[name.text]; t.Old && old != nil && old.Storage == Function && !old.Type.Old {
		before = old.Type
	}
	s := p.declare(&Sym{Name: name.text, Pos: name.pos, Type: t, Storage: Function, Static: d.static, Defined: true, Header: name.pos.File[0] == '<'})
	s.Type = t
	if t.Elem.Kind != Void && !t.Elem.Complete() {
		p.fatalf(name.pos, "return type is an incomplete type")
	}
	p.fn = s
	p.labels, p.gotos, p.path, p.flat = map[string]*LabelInfo{}, nil, nil, map[*Node]bool{}
	mem := p.mem
	p.push()
	declared := slices.Clone(t.Params)
	if t.Old {
		declared = oldParams(p, t)
	}
	for i, pt := range declared {
		if t.Names[i] == "" {
			p.errorf(name.pos, "parameter name omitted")
		}
		if !pt.Complete() {
			p.errorf(name.pos, "parameter %d ('%s') has incomplete type", i+1, t.Names[i])
		}
		v := &Sym{Name: t.Names[i], Pos: name.pos, Type: pt, Storage: Local, Param: true}
		if !t.Old {
			v = t.syms[i]
		}
		v.Func = s
		p.declare(v)
		s.Params = append(s.Params, v)
	}
	if before != nil {
		prototyped(p, t, before, declared, name)
	}
	for _, pt := range declared {
		freeze(p, pt, name.pos)
	}
	begin := flush(p)
	// The body's block is the parameters' scope.
	s.Body = p.block(false)
	s.Body.List = append(begin, s.Body.List...)
	p.pop()
	p.mem = mem
	land(p)
	flatten(p)
	p.fn = nil
}
