package front

import (
	"strings"
)

// kind is the kind of a token.
type kind uint8

const (
	tEOF kind = iota
	tIdent
	tNumber
	tChar
	tString
	tPunct
	tPragma // #pragma upc: the text is what follows
	tOther  // a character that begins no token, or a line's rest from a quotation mark that has no other
)

// token is a preprocessing token.
type token struct {
	kind  kind
	text  string
	pos   Pos
	space bool            // white space before it
	bol   bool            // the first of its line
	hide  map[string]bool // macros that made it, which it does not name again
}

func (t token) is(s string) bool {
	return t.text == s && (t.kind == tPunct || t.kind == tIdent)
}

// puncts are the punctuators, longest first.
var puncts = []string{
	"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
	"*=", "/=", "%=", "+=", "-=", "&=", "^=", "|=", "##",
	"<:", ":>", "<%", "%>", "%:%:", "%:",
}

// digraphs are other spellings of punctuators (C99 6.4.6p3).
var digraphs = map[string]string{"<:": "[", ":>": "]", "<%": "{", "%>": "}", "%:": "#", "%:%:": "##"}

// lexer splits a file into tokens. Lines that a backslash continues are joined, with
// positions kept.
type lexer struct {
	*reporter
	src       string
	i         int
	file      string
	line, col int
}

// lex is the tokens of a file, without an end token.
func lex(r *reporter, file, src string) []token {
	l := &lexer{reporter: r, src: src, file: file, line: 1, col: 1}
	var toks []token
	bol, space := true, false
	for {
		l.splice()
		if l.i >= len(l.src) {
			return toks
		}
		c := l.src[l.i]
		switch {
		case c == '\n':
			l.step()
			bol, space = true, false
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.step()
			space = true
			continue
		case c == '/' && l.peek(1) == '/':
			for l.i < len(l.src) && l.src[l.i] != '\n' {
				l.step()
				l.splice()
			}
			space = true
			continue
		case c == '/' && l.peek(1) == '*':
			at := l.pos()
			l.step()
			l.step()
			for l.i < len(l.src) && (l.src[l.i] != '*' || l.peek(1) != '/') {
				l.step()
			}
			if l.i >= len(l.src) {
				l.fatalf(at, "unterminated comment")
			}
			l.step()
			l.step()
			space = true
			continue
		}
		t := l.token(c)
		t.bol, t.space = bol, space
		bol, space = false, false
		toks = append(toks, t)
	}
}

func (l *lexer) pos() Pos { return Pos{l.file, l.line, l.col} }

func (l *lexer) peek(n int) byte {
	if l.i+n < len(l.src) {
		return l.src[l.i+n]
	}
	return 0
}

func (l *lexer) step() {
	if l.src[l.i] == '\n' {
		l.line++
		l.col = 1
	} else {
		l.col++
	}
	l.i++
}

// splice skips backslashes that continue a line.
func (l *lexer) splice() {
	for l.peek(0) == '\\' && (l.peek(1) == '\n' || l.peek(1) == '\r' && l.peek(2) == '\n') {
		l.i += strings.IndexByte(l.src[l.i:], '\n') + 1
		l.line++
		l.col = 1
	}
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// token is the token that begins with c, which is not white space.
func (l *lexer) token(c byte) token {
	t := token{pos: l.pos()}
	var b strings.Builder
	take := func() {
		b.WriteByte(l.src[l.i])
		l.step()
		l.splice()
	}
	if c == 'L' && (l.peek(1) == '"' || l.peek(1) == '\'') {
		take()
		c = l.peek(0)
	}
	switch {
	case letter(c):
		t.kind = tIdent
		for l.i < len(l.src) && (letter(l.src[l.i]) || digit(l.src[l.i])) {
			take()
		}
		if p := b.String(); (p == "u" || p == "U" || p == "u8") && (l.peek(0) == '"' || l.peek(0) == '\'') {
			l.errorf(t.pos, "not supported: character and string constants with u, U or u8")
		}
	case digit(c), c == '.' && digit(l.peek(1)):
		t.kind = tNumber
		for l.i < len(l.src) {
			d := l.src[l.i]
			if (d == '+' || d == '-') && b.Len() > 0 && strings.IndexByte("eEpP", b.String()[b.Len()-1]) >= 0 {
				// In a hexadecimal number without p, e is a digit.
				if s := b.String(); len(s) > 1 && s[1]|0x20 == 'x' && s[len(s)-1]|0x20 == 'e' {
					break
				}
			} else if !letter(d) && !digit(d) && d != '.' {
				break
			}
			take()
		}
	case c == '"' || c == '\'':
		t.kind = tString
		if c == '\'' {
			t.kind = tChar
		}
		take()
		for {
			if l.i >= len(l.src) || l.src[l.i] == '\n' {
				// An error where it is compiled; text between #if 0 and #endif may have an apostrophe.
				t.kind = tOther
				break
			}
			d := l.src[l.i]
			take()
			if d == c {
				break
			}
			if d == '\\' && l.i < len(l.src) && l.src[l.i] != '\n' {
				take()
			}
		}
	default:
		t.kind = tPunct
		for _, p := range puncts {
			if strings.HasPrefix(l.src[l.i:], p) {
				for range len(p) {
					take()
				}
				if t.text = p; digraphs[p] != "" {
					t.text = digraphs[p]
				}
				return t
			}
		}
		if strings.IndexByte("[](){}.&*+-~!/%<>^|?:;=,#", c) < 0 {
			t.kind = tOther
		}
		take()
	}
	t.text = b.String()
	return t
}
