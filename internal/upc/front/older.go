package front

import (
	"slices"
	"strings"
	"sync"
)

// What C was before prototypes: functions that are called before they are declared, declared without parameters, or defined
// with the types of the parameters behind them; and functions of the library that a program declares itself.

// prototypes are what the headers declare, and in which header: functions, and variables such as errno.
var prototypes func() map[string]*Sym

func init() { prototypes = sync.OnceValue(readPrototypes) }

func readPrototypes() map[string]*Sym {
	var src strings.Builder
	for _, dir := range []string{"include", "include/sys"} {
		list, err := headers.ReadDir(dir)
		if err != nil {
			panic(err) // it is embedded
		}
		for _, f := range list {
			if name := strings.TrimPrefix(dir+"/"+f.Name(), "include/"); !f.IsDir() && name != "iso646.h" && name != "tgmath.h" {
				src.WriteString("#include <" + name + ">\n")
			}
		}
	}
	u, err := Parse(&Config{}, "headers", src.String())
	if err != nil {
		panic(err)
	}
	all := map[string]*Sym{}
	for _, s := range u.Syms {
		if !s.Defined {
			all[s.Name] = s
		}
	}
	return all
}

// definitions are the names of the functions that a file defines: those with parentheses behind them, outside of all
// others, after which neither the declaration ends nor another name follows. With external only those that other files
// may call.
func definitions(toks []token, external bool) map[string]bool {
	all := map[string]bool{}
	depth := 0
	static := false // of the declaration
	for i := 0; i+1 < len(toks); i++ {
		switch t := toks[i]; {
		case t.is("static"):
			static = true
		case depth == 0 && t.is(";"):
			static = false
		case t.is("{"), t.is("("), t.is("["):
			depth++
		case t.is("}"), t.is(")"), t.is("]"):
			if depth--; depth == 0 && t.is("}") {
				static = false
			}
		case depth == 0 && t.kind == tIdent && toks[i+1].is("("):
			j, in := i+1, 0
			for ; j < len(toks); j++ {
				if toks[j].is("(") {
					in++
				} else if toks[j].is(")") {
					if in--; in == 0 {
						break
					}
				}
			}
			if j+1 < len(toks) && (toks[j+1].is("{") || toks[j+1].kind == tIdent && !toks[j+1].is("__attribute__")) {
				if !external || !static && t.pos.File[0] != '<' {
					all[t.text] = true
				}
			}
		}
	}
	return all
}

// Definitions reports of each name whether a file defines it as a function that others may call.
func Definitions(cfg *Config, name, src string) (all map[string]bool) {
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(stop); !ok {
				panic(e)
			}
		}
	}()
	toks, _ := preprocess(&reporter{}, cfg, name, src)
	return definitions(toks, true)
}

// implicit declares a function that is called and has no declaration, as the library's if it has such a one.
func implicit(p *parser, t token) *Sym {
	s := &Sym{Name: t.text, Pos: t.pos, Type: &Type{Kind: Func, Elem: tyInt, Old: true}, Storage: Function, implicit: true}
	own, known := elsewhere(p, t.text)
	if l := prototypes()[t.text]; l != nil && l.Storage == Function && !own && (known || takes(l.Type, p.toks[p.i:])) {
		s.Type, s.Header, s.guessed = l.Type, true, !known
		p.warnf(t.pos, "implicit declaration of function '%s', which %s declares", t.text, l.Pos.File)
	} else {
		p.warnf(t.pos, "implicit declaration of function '%s'", t.text)
	}
	save := p.scopes
	p.scopes = p.scopes[:1]
	s = p.declare(s)
	p.scopes = save
	return s
}

// elsewhere reports whether a file of the program defines a function of that name, and whether that is known.
func elsewhere(p *parser, name string) (defines, known bool) {
	if p.defines[name] || p.cfg.Elsewhere == nil {
		return p.defines[name], true
	}
	return p.cfg.Elsewhere(name)
}

// reconsider has a function that was taken for the library's be one of another file, if its arguments are none of the library's.
func reconsider(p *parser, s *Sym, args []*Node) {
	if !s.guessed {
		return
	}
	for i, t := range s.Type.Params {
		a := args[i].Type.plain()
		if t.Number() && a.Number() || t.Kind == Pointer && (a.Kind == Pointer || null(args[i])) || bad(args[i]) || same(t, a) {
			continue
		}
		s.Type, s.Header = &Type{Kind: Func, Elem: tyInt, Old: true}, false
		break
	}
	s.guessed = false
}

// takes reports whether a function of type f takes as many arguments as stand in the parentheses that toks begins with.
func takes(f *Type, toks []token) bool {
	n, depth := 0, 0
	for i, t := range toks {
		switch {
		case t.is("("), t.is("["), t.is("{"):
			if depth++; depth == 1 && !toks[i+1].is(")") {
				n++
			}
		case t.is(")"), t.is("]"), t.is("}"):
			depth--
		case t.is(",") && depth == 1:
			n++
		}
		if depth == 0 {
			break
		}
	}
	return n == len(f.Params) || f.Variadic && n > len(f.Params)
}

// adopt makes what the program declares the library's, if the library has it, with a type that the program can mean, and no
// file defines it.
func adopt(p *parser, s *Sym) {
	if own, known := elsewhere(p, s.Name); s.Header || s.Pos.File[0] == '<' || own || !known || p.unit.Name == "headers" {
		return
	}
	l := prototypes()[s.Name]
	if l == nil || l.Storage != s.Storage {
		return
	}
	alike := func(a, b *Type) bool {
		return a.Number() && b.Number() || a.Kind == Pointer && b.Kind == Pointer && a.ToShared() == b.ToShared() || a.Kind == Void && b.Kind == Void
	}
	switch {
	case s.Storage == Global && !same(l.Type, s.Type):
		return
	case s.Storage == Function && !alike(l.Type.Elem, s.Type.Elem):
		return
	case s.Storage == Function && !s.Type.Old && (l.Type.Variadic != s.Type.Variadic || !slices.EqualFunc(l.Type.Params, s.Type.Params, alike)):
		return
	}
	s.Type, s.Header = l.Type, true
}

// prototyped gives a definition without a prototype, whose parameters are declared with such types, those of the prototype
// before it, which calls have followed: as gcc does, it takes a parameter as it is declared and as it is promoted.
func prototyped(p *parser, t, before *Type, declared []*Type, name token) {
	if len(before.Params) != len(declared) {
		p.errorf(name.pos, "function '%s' has %d parameters, and %d in its prototype", name.text, len(declared), len(before.Params))
		return
	}
	for i, pt := range before.Params {
		if !same(pt, declared[i]) && !same(pt, t.Params[i]) {
			p.errorf(name.pos, "parameter '%s' of function '%s' has type '%v', and '%v' in its prototype", t.Names[i], name.text, declared[i], pt)
		}
	}
	t.Old, t.Params = false, before.Params
}

// oldParams reads the declarations of the parameters of a function without a prototype, whose names t has, and returns
// their types. The function takes them as arguments are converted by default.
func oldParams(p *parser, t *Type) []*Type {
	types := make([]*Type, len(t.Names))
	for !p.at("{") {
		d := p.declspecs(true)
		for {
			pt, name := p.declarator(d.typ, false)
			switch i := slices.Index(t.Names, name.text); {
			case i < 0:
				p.errorf(name.pos, "declaration for parameter '%s' but no such parameter", name.text)
			case pt.Kind == Array:
				types[i] = pointerTo(pt.Elem)
			case pt.Kind == Func:
				types[i] = pointerTo(pt)
			case pt.IsShared() || pt.Kind == Void:
				p.fatalf(name.pos, "parameter '%s' has type '%v'", name.text, pt)
			default:
				types[i] = pt
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(";")
	}
	t.Params = nil
	for i := range types {
		if types[i] == nil {
			types[i] = tyInt
		}
		pt := types[i].plain()
		switch {
		case pt.Kind < Int && pt.Integer():
			pt = tyInt
		case pt.Kind == Float:
			pt = tyDouble
		}
		t.Params = append(t.Params, pt)
	}
	return types
}
