package front

import (
	"embed"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// headers are the standard headers, as far as package libc has what they declare.
//
//go:embed include
var headers embed.FS

// macro is a macro definition.
type macro struct {
	name   string
	fn     bool
	params []string
	rest   string // the last parameter if that takes all other arguments: __VA_ARGS__, or its name before ...
	body   []token
}

// cond is an open #if.
type cond struct {
	pos    Pos
	live   bool // this branch is compiled
	done   bool // some branch was
	parent bool // what is around it is compiled
	last   bool // #else was seen
}

// cpp is the preprocessor. Tokens carry the position at which they stand in the source; those
// of a macro's body the position of its name where it was used.
type cpp struct {
	*reporter
	macros   map[string]*macro
	out      []token
	included []string // directories for #include, in the order of -I
	physical string   // the file that is read, whatever #line calls it
	once     map[string]bool
	read     func(name string) ([]byte, error)
	relined  bool // there is a #line
	depth    int
	work     int // tokens that macros have made, as often as they were looked at
	inner    int // how many arguments are being expanded
}

// maxDepth is how deep files include each other; maxWork how many tokens macros may expand to,
// which can be exponential in the length of a program.
const (
	maxDepth = 100
	maxWork  = 1 << 18
)

// preprocess is the tokens of a source file after preprocessing, with an end token.
// relined reports whether the source says by #line where it is from.
func preprocess(r *reporter, cfg *Config, name, src string) (toks []token, relined bool) {
	c := &cpp{reporter: r, macros: map[string]*macro{}, included: cfg.Include, once: map[string]bool{}, read: cfg.Read}
	if c.read == nil {
		c.read = os.ReadFile
	}
	predefined := []string{
		"__STDC__=1", "__STDC_VERSION__=199901L", "__STDC_HOSTED__=1", "__UPC__=1", "__UPC_VERSION__=201311L", "__LP64__=1",
		"__x86_64__=1", "__linux__=1", "__UPC_COLLECTIVE__=1", "__UPC_TICK__=1",
		"__builtin_expect(value, likely)=(value)", "__builtin_prefetch(...)=((void)0)", "__builtin_unreachable()=((void)0)", "__builtin_trap=__builtin_abort",
		"__builtin_assume_aligned(p, ...)=((void *)(p))", "__builtin_offsetof(type, member)=((unsigned long)&((type *)0)->member)",
		"__builtin_inf()=(1e308 * 10)", "__builtin_huge_val()=(1e308 * 10)", "__builtin_inff()=(1e30f * 1e30f)", "__builtin_huge_valf()=(1e30f * 1e30f)",
		"__UPC_ATOMIC__=1", "__UPC_CASTABLE__=1", "__UPC_NB__=1", "__UPC_IO__=1", "UPC_MAX_BLOCK_SIZE=1048576",
		"__inline=inline", "__inline__=inline", "__restrict=restrict", "__const=const", "__volatile__=volatile",
		"__FUNCTION__=__func__", "__complex__=_Complex", "__real=__real__", "__imag=__imag__",
		`__DATE__="Jan  1 1970"`, `__TIME__="00:00:00"`, // not the day of the translation: C99 6.10.8p1 lets them be any
	}
	if cfg.Threads > 0 {
		predefined = append(predefined, "__UPC_STATIC_THREADS__=1", "THREADS="+strconv.Itoa(cfg.Threads))
	} else {
		predefined = append(predefined, "__UPC_DYNAMIC_THREADS__=1")
	}
	for _, d := range append(predefined, cfg.Define...) {
		n, v, ok := strings.Cut(d, "=")
		if !ok {
			v = "1"
		}
		if undefined, ok := strings.CutPrefix(n, "!"); ok {
			delete(c.macros, undefined)
			continue
		}
		at := Pos{"<command-line>", 1, 1}
		c.define(at, lex(r, at.File, n+" "+v))
	}
	c.file(name, src)
	end := Pos{name, strings.Count(src, "\n") + 1, 1}
	if n := len(c.out); n > 0 && (c.out[n-1].pos.File == name || c.relined) {
		end = c.out[n-1].pos
	}
	return append(pragmas(r, c.out), token{kind: tEOF, pos: end}), c.relined
}

// file preprocesses one file.
func (c *cpp) file(name, src string) {
	defer func(outer string) { c.physical = outer }(c.physical)
	c.physical = name
	toks := lex(c.reporter, name, src)
	var conds []cond
	live := true
	called, shift := name, 0 // what #line says of the lines that follow
	lines := strings.SplitAfter(src, "\n")
	c.stretches = append(c.stretches, stretch{name, 1, len(lines), 0, lines})
	mine := len(c.stretches) - 1
	place := func(toks []token) {
		for i := range toks {
			toks[i].pos.File, toks[i].pos.Line = called, toks[i].pos.Line+shift
		}
	}
	for i := 0; i < len(toks); {
		if t := toks[i]; t.bol && t.is("#") {
			j := i + 1
			for j < len(toks) && !toks[j].bol {
				j++
			}
			line := t.pos.Line
			place(toks[i:j])
			if d := toks[i+1 : j]; live && len(d) > 0 && (d[0].is("line") || d[0].kind == tNumber) {
				called, shift = c.line(d, called, line)
			} else {
				conds, live = c.directive(toks[i], d, conds, live)
			}
			if was := &c.stretches[mine]; called != was.called || shift != was.shift || mine < len(c.stretches)-1 {
				was.last = line
				mine = len(c.stretches)
				c.stretches = append(c.stretches, stretch{called, line + 1, len(lines), shift, lines})
			}
			i = j
			continue
		}
		// The text up to the next directive: calls of macros may span lines.
		j := i
		for j < len(toks) && !(toks[j].bol && toks[j].is("#")) {
			j++
		}
		if place(toks[i:j]); live {
			c.out = append(c.out, c.expand(toks[i:j])...)
		}
		i = j
	}
	if n := len(conds); n > 0 {
		c.errorf(conds[n-1].pos, "unterminated #if")
	}
}

// line is #line (C99 6.10.4), or the marker of a preprocessor that has no such word: what the file is called from the next
// line on, and how far its lines are from those that are counted, of which the directive is at the one called at.
func (c *cpp) line(d []token, called string, at int) (string, int) {
	pos := d[0].pos
	if d[0].is("line") {
		if d = d[1:]; len(d) > 0 && d[0].kind == tIdent {
			d = c.expand(d)
		}
	}
	var n int
	var err error
	if len(d) > 0 {
		n, err = strconv.Atoi(d[0].text)
	}
	if len(d) == 0 || err != nil || n < 0 || n > math.MaxInt32 || len(d) > 1 && d[1].kind != tString {
		c.fatalf(pos, "#line expects a line number, and a file name in quotation marks or none")
	}
	if len(d) > 1 {
		// Names of the compiler's own headers begin with <, as some that preprocessors make up do.
		if s, ok := unquote(d[1].text); ok && len(s) > 0 {
			_, err := headers.ReadFile("include/" + strings.Trim(string(s), "<>"))
			if s[0] != '<' || err == nil {
				called = string(s)
			}
		}
	}
	c.relined = true
	return called, n - at - 1
}

// directive handles the line after a #.
func (c *cpp) directive(hash token, line []token, conds []cond, live bool) ([]cond, bool) {
	if len(line) == 0 {
		return conds, live
	}
	name, rest := line[0], line[1:]
	last := len(conds) - 1
	open := func() {
		if last < 0 {
			c.fatalf(name.pos, "#%s without #if", name.text)
		}
	}
	switch name.text {
	case "if", "ifdef", "ifndef":
		d := cond{pos: name.pos, parent: live}
		if live {
			if name.text == "if" {
				d.live = c.condition(name.pos, rest)
			} else {
				if len(rest) == 0 || rest[0].kind != tIdent {
					c.fatalf(name.pos, "no macro name given in #%s directive", name.text)
				}
				d.live = c.defined(rest[0].text) == (name.text == "ifdef")
			}
		}
		d.done = d.live
		return append(conds, d), d.live
	case "elif":
		open()
		d := &conds[last]
		if d.last {
			c.errorf(name.pos, "#elif after #else")
		}
		d.live = d.parent && !d.done && c.condition(name.pos, rest)
		d.done = d.done || d.live
		return conds, d.live
	case "else":
		open()
		d := &conds[last]
		if d.last {
			c.errorf(name.pos, "#else after #else")
		}
		d.live, d.last = d.parent && !d.done, true
		d.done = true
		return conds, d.live
	case "endif":
		open()
		return conds[:last], conds[last].parent
	}
	if !live {
		return conds, live
	}
	switch name.text {
	case "define":
		c.define(name.pos, rest)
	case "undef":
		if len(rest) == 0 || rest[0].kind != tIdent {
			c.fatalf(name.pos, "no macro name given in #undef directive")
		}
		delete(c.macros, rest[0].text)
	case "include":
		c.include(name.pos, rest)
	case "error":
		c.fatalf(name.pos, "#error %s", spell(rest))
	case "warning":
		c.warnf(name.pos, "#warning %s", spell(rest))
	case "ident":
	case "pragma":
		switch {
		case len(rest) > 0 && rest[0].text == "once":
			c.once[c.physical] = true
		default:
			c.out = append(c.out, pragma(rest, hash.pos)...)
		}
	default:
		c.errorf(name.pos, "invalid preprocessing directive #%s", name.text)
	}
	return conds, live
}

// pragma is a pragma as the token for the parser, or none.
func pragma(toks []token, at Pos) []token {
	switch {
	case len(toks) > 0 && toks[0].text == "upc":
		return []token{{kind: tPragma, text: spell(toks[1:]), pos: at}}
	case len(toks) > 0 && toks[0].text == "pack":
		return []token{{kind: tPragma, text: spell(toks), pos: at}}
	}
	return nil
}

// Preprocess is the text of a source file after preprocessing, with markers of where its lines are from.
func Preprocess(cfg *Config, name, src string) (text string, warnings Errors, err error) {
	r := &reporter{}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(stop); !ok {
				panic(e)
			}
		}
		if warnings = r.sorted(); len(r.errs) > 0 {
			warnings, err = nil, warnings
		}
	}()
	toks, _ := preprocess(r, cfg, name, src)
	var b strings.Builder
	at, last := Pos{}, token{}
	for _, t := range toks[:len(toks)-1] { // without the end
		switch lines := t.pos.Line - at.Line; {
		case t.pos.File != at.File || lines < 0 || lines > 8:
			fmt.Fprintf(&b, "\n# %d %s\n", t.pos.Line, strconv.Quote(t.pos.File))
			at, last = t.pos, token{}
		case lines > 0:
			b.WriteString(strings.Repeat("\n", lines))
			at, last = t.pos, token{}
		}
		switch pack := strings.HasPrefix(t.text, "pack"); {
		case t.kind == tPragma && pack:
			fmt.Fprintf(&b, "\n#pragma %s\n", t.text)
		case t.kind == tPragma:
			fmt.Fprintf(&b, "\n#pragma upc %s\n", t.text)
		case last.text != "" && (t.space || len(lex(&reporter{}, name, last.text+t.text)) != 2):
			b.WriteString(" " + t.text)
		default:
			b.WriteString(t.text)
		}
		if last = t; t.kind == tPragma {
			at = Pos{}
		}
	}
	return strings.TrimLeft(b.String(), "\n") + "\n", nil, nil
}

// pragmas has the pragmas of operators _Pragma in toks (C99 6.10.9).
func pragmas(r *reporter, toks []token) []token {
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].is("_Pragma") && toks[i+1].is("(") && toks[i+2].kind == tString && toks[i+3].is(")") {
			text := strings.Trim(strings.TrimPrefix(toks[i+2].text, "L"), `"`)
			text = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(text)
			at := toks[i].pos
			toks = slices.Replace(toks, i, i+4, pragma(slices.DeleteFunc(lex(r, at.File, text), func(t token) bool { return t.kind == tEOF }), at)...)
			i--
		}
	}
	return toks
}

// spell is tokens as text.
func spell(toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && t.space {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

func (c *cpp) defined(name string) bool {
	return c.macros[name] != nil || name == "__FILE__" || name == "__LINE__"
}

func (c *cpp) define(at Pos, line []token) {
	if len(line) == 0 || line[0].kind != tIdent {
		c.fatalf(at, "macro names must be identifiers")
	}
	m := &macro{name: line[0].text}
	rest := line[1:]
	if len(rest) > 0 && rest[0].is("(") && !rest[0].space {
		m.fn = true
		i := 1
		for ; ; i++ {
			if i >= len(rest) {
				c.fatalf(line[0].pos, "expected ')' in macro parameter list")
			}
			switch t := rest[i]; {
			case t.is(")"):
			case t.is(","):
				continue
			case t.is("...") && i > 1 && rest[i-1].kind == tIdent:
				m.rest = rest[i-1].text // as gcc has it
				continue
			case t.is("..."):
				m.rest = "__VA_ARGS__"
				m.params = append(m.params, m.rest)
				continue
			case t.kind == tIdent:
				m.params = append(m.params, t.text)
				continue
			default:
				c.fatalf(t.pos, "expected parameter name, found \"%s\"", t.text)
			}
			break
		}
		rest = rest[i+1:]
	}
	m.body = rest
	c.macros[m.name] = m
}

func (c *cpp) include(at Pos, line []token) {
	if len(line) > 0 && line[0].kind == tIdent {
		line = c.expand(line)
	}
	if len(line) == 0 {
		c.fatalf(at, "#include expects \"FILENAME\" or <FILENAME>")
	}
	var name string
	quoted := line[0].kind == tString
	if quoted {
		name = strings.Trim(line[0].text, `"`)
	} else {
		var b strings.Builder
		for _, t := range line[1:] {
			if t.is(">") {
				break
			}
			b.WriteString(t.text)
		}
		name = b.String()
	}
	if c.depth >= maxDepth {
		c.fatalf(at, "#include nested depth %d exceeds maximum of %d", c.depth, maxDepth)
	}
	dirs := c.included
	if quoted {
		dirs = append([]string{filepath.Dir(c.physical)}, dirs...)
	}
	if filepath.IsAbs(name) {
		dirs = []string{"/"}
	}
	for _, d := range dirs {
		full := filepath.Join(d, name)
		if b, err := c.read(full); err == nil {
			c.enter(full, string(b))
			return
		}
	}
	if b, err := headers.ReadFile(path.Join("include", name)); err == nil {
		c.enter("<"+name+">", string(b))
		return
	}
	c.fatalf(line[0].pos, "%s: No such file or directory", name)
}

func (c *cpp) enter(name, src string) {
	if c.once[name] {
		return
	}
	c.depth++
	c.file(name, src)
	c.depth--
}

// expand replaces the macros in toks.
func (c *cpp) expand(toks []token) []token {
	var out []token
	// The work still to do is a stack of token lists, the innermost last.
	work := [][]token{toks}
	next := func() (token, bool) {
		for {
			top := len(work) - 1
			if len(work[top]) > 0 {
				t := work[top][0]
				work[top] = work[top][1:]
				if top > 0 || c.inner > 0 {
					if c.work++; c.work > maxWork {
						c.fatalf(t.pos, "macro expansion too long")
					}
				}
				return t, true
			}
			if top == 0 {
				return token{}, false
			}
			work = work[:top]
		}
	}
	for {
		t, ok := next()
		if !ok {
			return out
		}
		if t.kind != tIdent || t.hide[t.text] {
			out = append(out, t)
			continue
		}
		switch t.text {
		case "__FILE__":
			t.kind, t.text = tString, strconv.Quote(t.pos.File)
			out = append(out, t)
			continue
		case "__LINE__":
			t.kind, t.text = tNumber, strconv.Itoa(t.pos.Line)
			out = append(out, t)
			continue
		}
		m := c.macros[t.text]
		if m == nil {
			out = append(out, t)
			continue
		}
		var args [][]token
		if m.fn {
			p, ok := next()
			if !ok || !p.is("(") {
				if ok {
					work = append(work, []token{p})
				}
				out = append(out, t)
				continue
			}
			args = c.args(t, m, next)
		}
		work = append(work, c.substitute(t, m, args))
	}
}

// args are the arguments of a call of m, whose opening parenthesis is read.
func (c *cpp) args(t token, m *macro, next func() (token, bool)) [][]token {
	args := [][]token{nil}
	for depth := 0; ; {
		a, ok := next()
		if !ok {
			c.fatalf(t.pos, "unterminated argument list invoking macro \"%s\"", m.name)
		}
		switch {
		case a.is("("):
			depth++
		case a.is(")"):
			if depth--; depth < 0 {
				if len(m.params) == 0 && len(args) == 1 && len(args[0]) == 0 {
					return nil
				}
				if m.rest != "" && len(args) == len(m.params)-1 {
					args = append(args, nil)
				}
				if len(args) != len(m.params) {
					c.fatalf(t.pos, "macro \"%s\" passed %d arguments, but takes %d", m.name, len(args), len(m.params))
				}
				return args
			}
		case a.is(",") && depth == 0 && !(m.rest != "" && len(args) == len(m.params)):
			args = append(args, nil)
			continue
		}
		a.bol = false
		args[len(args)-1] = append(args[len(args)-1], a)
	}
}

// substitute is the body of m with args for its parameters.
func (c *cpp) substitute(t token, m *macro, args [][]token) []token {
	hide := map[string]bool{m.name: true}
	for n := range t.hide {
		hide[n] = true
	}
	param := func(k token) int {
		if k.kind == tIdent {
			for i, p := range m.params {
				if p == k.text {
					return i
				}
			}
		}
		return -1
	}
	var out []token
	// What stands on the left of a ## may be an empty argument: nothing is pasted to the
	// token before that (C99 6.10.3.3p2).
	paste, left := false, false
	add := func(toks []token) {
		empty := len(toks) == 0
		if paste && left && !empty {
			last := &out[len(out)-1]
			glued := lex(c.reporter, t.pos.File, last.text+toks[0].text)
			if len(glued) != 1 {
				c.fatalf(t.pos, "pasting \"%s\" and \"%s\" does not give a valid preprocessing token", last.text, toks[0].text)
			}
			last.kind, last.text, last.hide = glued[0].kind, glued[0].text, nil
			toks = toks[1:]
		}
		left = !empty || paste && left
		paste = false
		out = append(out, toks...)
	}
	for i := 0; i < len(m.body); i++ {
		k := m.body[i]
		if m.fn && k.is("#") && i+1 < len(m.body) && param(m.body[i+1]) >= 0 {
			i++
			text := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
			var b strings.Builder
			for n, a := range args[param(m.body[i])] {
				if n > 0 && a.space {
					b.WriteByte(' ')
				}
				if a.kind == tString || a.kind == tChar {
					b.WriteString(text.Replace(a.text))
				} else {
					b.WriteString(a.text)
				}
			}
			add([]token{{kind: tString, text: `"` + b.String() + `"`, space: k.space, pos: t.pos}})
			continue
		}
		if k.is("##") && i > 0 && i+1 < len(m.body) {
			// A comma before other arguments goes away if there are none, as gcc has it.
			if n := m.body[i+1]; m.rest != "" && n.text == m.rest && m.body[i-1].is(",") {
				if len(args[len(args)-1]) == 0 {
					out = out[:len(out)-1]
				}
				continue
			}
			paste = true
			continue
		}
		if p := param(k); p >= 0 {
			arg := args[p]
			beside := paste || i+1 < len(m.body) && m.body[i+1].is("##")
			if !beside {
				c.inner++
				arg = c.expand(append([]token(nil), arg...))
				c.inner--
			}
			if len(arg) > 0 {
				arg = append([]token(nil), arg...)
				arg[0].space = k.space
			}
			add(arg)
			continue
		}
		k.pos = t.pos
		add([]token{k})
	}
	for i := range out {
		h := hide
		if len(out[i].hide) > 0 {
			h = map[string]bool{}
			for n := range hide {
				h[n] = true
			}
			for n := range out[i].hide {
				h[n] = true
			}
		}
		out[i].hide, out[i].bol = h, false
	}
	if len(out) > 0 {
		out[0].space = t.space
	}
	return out
}

// condition is whether an #if holds.
func (c *cpp) condition(at Pos, line []token) bool {
	var toks []token
	for i := 0; i < len(line); i++ {
		t := line[i]
		if t.is("defined") {
			par := i+1 < len(line) && line[i+1].is("(")
			if par {
				i++
			}
			if i++; i >= len(line) || line[i].kind != tIdent {
				c.fatalf(t.pos, "operator \"defined\" requires an identifier")
			}
			v := "0"
			if c.defined(line[i].text) {
				v = "1"
			}
			toks = append(toks, token{kind: tNumber, text: v, pos: t.pos})
			if par {
				i++
			}
			continue
		}
		toks = append(toks, t)
	}
	e := &ifExpr{cpp: c, at: at, toks: c.expand(toks)}
	v := e.ternary()
	if len(e.toks) > 0 {
		c.fatalf(e.toks[0].pos, "missing binary operator before token \"%s\"", e.toks[0].text)
	}
	return v.v != 0
}

// ifExpr evaluates the expression of an #if.
type ifExpr struct {
	*cpp
	at    Pos
	toks  []token
	depth int
	dead  int // how many operands around this one are not evaluated
}

// ifValue is a value in an #if: of 64 bits, and of type uintmax_t or intmax_t (C99 6.10.1p4).
type ifValue struct {
	v        int64
	unsigned bool
}

func (e *ifExpr) accept(s string) bool {
	if len(e.toks) > 0 && e.toks[0].is(s) {
		e.toks = e.toks[1:]
		return true
	}
	return false
}

// unless is what operand reads. If dead is true that is not evaluated: it may divide by zero.
func (e *ifExpr) unless(dead bool, operand func() ifValue) ifValue {
	if dead {
		e.dead++
		defer func() { e.dead-- }()
	}
	return operand()
}

func (e *ifExpr) ternary() ifValue {
	v := e.binary(0)
	if !e.accept("?") {
		return v
	}
	a := e.unless(v.v == 0, e.ternary)
	if !e.accept(":") {
		e.fatalf(e.at, "'?' without following ':'")
	}
	b := e.unless(v.v != 0, e.ternary)
	r := ifValue{b.v, a.unsigned || b.unsigned}
	if v.v != 0 {
		r.v = a.v
	}
	return r
}

var ifLevels = [][]string{
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

func (e *ifExpr) binary(level int) ifValue {
	if level == len(ifLevels) {
		return e.unary()
	}
	v := e.binary(level + 1)
again:
	for _, op := range ifLevels[level] {
		if !e.accept(op) {
			continue
		}
		w := e.unless(op == "||" && v.v != 0 || op == "&&" && v.v == 0, func() ifValue { return e.binary(level + 1) })
		if (op == "/" || op == "%") && w.v == 0 {
			if e.dead == 0 {
				e.fatalf(e.at, "division by zero in #if")
			}
			w.v = 1
		}
		unsigned := v.unsigned || w.unsigned
		if op == "<<" || op == ">>" {
			unsigned = v.unsigned
		}
		v.v = fold(op, v.v, w.v, unsigned)
		switch op {
		case "||", "&&", "==", "!=", "<", "<=", ">", ">=":
			unsigned = false // a truth value
		}
		v.unsigned = unsigned
		goto again
	}
	return v
}

func (e *ifExpr) unary() ifValue {
	if e.depth++; e.depth > maxDepth {
		e.fatalf(e.at, "#if nested too deep")
	}
	defer func() { e.depth-- }()
	switch {
	case e.accept("!"):
		return ifValue{v: truth(e.unary().v == 0)}
	case e.accept("-"):
		v := e.unary()
		return ifValue{-v.v, v.unsigned}
	case e.accept("+"):
		return e.unary()
	case e.accept("~"):
		v := e.unary()
		return ifValue{^v.v, v.unsigned}
	case e.accept("("):
		v := e.ternary()
		if !e.accept(")") {
			e.fatalf(e.at, "missing ')' in expression")
		}
		return v
	}
	if len(e.toks) == 0 {
		e.fatalf(e.at, "#if with no expression")
	}
	t := e.toks[0]
	e.toks = e.toks[1:]
	switch t.kind {
	case tIdent:
		return ifValue{}
	case tNumber:
		if v, suffix, ok := integer(t.text); ok {
			return ifValue{int64(v), v > math.MaxInt64 || strings.Contains(suffix, "u")}
		}
	case tChar:
		if b, ok := characters(t.text); ok && len(b) > 0 {
			return ifValue{v: int64(b[0])}
		}
	}
	e.fatalf(t.pos, "token \"%s\" is not valid in preprocessor expressions", t.text)
	return ifValue{}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// fold is v op w on 64 bits; the divisor is not 0.
func fold(op string, v, w int64, unsigned bool) int64 {
	switch op {
	case "||":
		return truth(v != 0 || w != 0)
	case "&&":
		return truth(v != 0 && w != 0)
	case "|":
		return v | w
	case "^":
		return v ^ w
	case "&":
		return v & w
	case "==":
		return truth(v == w)
	case "!=":
		return truth(v != w)
	case "<<":
		return v << (uint(w) & 63)
	case "+":
		return v + w
	case "-":
		return v - w
	case "*":
		return v * w
	}
	if unsigned {
		a, b := uint64(v), uint64(w)
		switch op {
		case "<":
			return truth(a < b)
		case "<=":
			return truth(a <= b)
		case ">":
			return truth(a > b)
		case ">=":
			return truth(a >= b)
		case ">>":
			return int64(a >> (b & 63))
		case "/":
			return int64(a / b)
		case "%":
			return int64(a % b)
		}
	}
	switch op {
	case "<":
		return truth(v < w)
	case "<=":
		return truth(v <= w)
	case ">":
		return truth(v > w)
	case ">=":
		return truth(v >= w)
	case ">>":
		return v >> (uint(w) & 63)
	case "/":
		return v / w
	case "%":
		return v % w
	}
	panic("front: no operator " + op)
}

// integer is the value of an integer constant and its suffix, in lower case.
func integer(s string) (v uint64, suffix string, ok bool) {
	low := strings.ToLower(s)
	n := len(low)
	for n > 0 && (low[n-1] == 'u' || low[n-1] == 'l') {
		n--
	}
	digits, suffix := low[:n], low[n:]
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"):
		base, digits = 16, digits[2:]
	case strings.HasPrefix(digits, "0b"):
		base, digits = 2, digits[2:]
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	}
	v, err := strconv.ParseUint(digits, base, 64)
	return v, suffix, err == nil
}

// wide reports whether a character or string constant is of wide characters.
func wide(t token) bool { return t.text != "" && t.text[0] == 'L' }

// characters is the values of the characters of a constant, wide ones or chars.
func characters(s string) (all []int32, ok bool) {
	if s[0] != 'L' {
		b, ok := unquote(s)
		for _, c := range b {
			all = append(all, int32(int8(c)))
		}
		return all, ok
	}
	s = s[2 : len(s)-1]
	digits := func(most int, set string) string {
		n := 0
		for n < min(most, len(s)) && strings.IndexByte(set, s[n]) >= 0 {
			n++
		}
		d := s[:n]
		s = s[n:]
		return d
	}
	for s != "" {
		c, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if c != '\\' || s == "" {
			all = append(all, c)
			continue
		}
		var v uint64
		var err error
		most, hex := map[byte]int{'x': 8, 'u': 4, 'U': 8}[s[0]]
		switch d := digits(3, "01234567"); {
		case d != "":
			v, err = strconv.ParseUint(d, 8, 32)
		case hex:
			s = s[1:]
			v, err = strconv.ParseUint(digits(most, "0123456789abcdefABCDEF"), 16, 32)
		default:
			b, known := unquote(`'\` + s[:1] + `'`)
			if s = s[1:]; !known || len(b) != 1 {
				return nil, false
			}
			v = uint64(b[0])
		}
		if err != nil {
			return nil, false
		}
		all = append(all, int32(v))
	}
	return all, true
}

// unquote is the bytes of a character or string constant.
func unquote(s string) ([]byte, bool) {
	s = s[1 : len(s)-1]
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		if i++; i >= len(s) {
			return nil, false
		}
		switch c := s[i]; c {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'a':
			b = append(b, 7)
		case 'b':
			b = append(b, 8)
		case 'f':
			b = append(b, 12)
		case 'v':
			b = append(b, 11)
		case 'e':
			b = append(b, 27)
		case 'u', 'U': // which is UTF-8
			n := min(i+1+map[byte]int{'u': 4, 'U': 8}[c], len(s))
			v, err := strconv.ParseUint(s[i+1:n], 16, 21)
			if err != nil {
				return nil, false
			}
			b = utf8.AppendRune(b, rune(v))
			i = n - 1
		case '\\', '\'', '"', '?':
			b = append(b, c)
		case 'x':
			n := i + 1
			for n < len(s) && n < i+3 && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
				n++
			}
			v, err := strconv.ParseUint(s[i+1:n], 16, 8)
			if err != nil {
				return nil, false
			}
			b = append(b, byte(v))
			i = n - 1
		default:
			n := i
			for n < len(s) && n < i+3 && s[n] >= '0' && s[n] <= '7' {
				n++
			}
			v, err := strconv.ParseUint(s[i:n], 8, 16)
			if err != nil {
				return nil, false
			}
			b = append(b, byte(v))
			i = n - 1
		}
	}
	return b, true
}
