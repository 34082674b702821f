package gen

import (
	_ "embed"
	"regexp"
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
)

// effects are what a call does beside having a value, which depends on its arguments alone if it has none.
type effects uint8

const (
	doesRead  effects = 1 << iota // memory, a clock, a state: two calls may differ
	doesWrite                     // private memory, a file, a state
	doesSync                      // it reaches shared memory or other threads
	doesCall                      // functions of the program, which may do anything
)

var effectNames = map[string]effects{"pure": 0, "reads": doesRead, "writes": doesWrite, "syncs": doesSync, "calls": doesCall}

// routine is a function of the library: a row of library.txt.
type routine struct {
	effects effects
	form    []piece
	kind    ir.Kind // a call, or what is no statement of Go
	imports ir.Packages
}

// piece is text of a form, and what follows it.
type piece struct {
	text     string
	verb     byte // 0, or: $ an argument, * all, and f, s and p of an argument, as library.txt has them
	arg      int
	operator bool // a selector follows the argument
}

var verbs = regexp.MustCompile(`\$(\*|([fsp]?)([1-9]))`)

var noCall = regexp.MustCompile(`^(float32|uint64|rt\.Phaseless)\(|^\w+$`)

//go:embed library.txt
var libraryText string

// library has the functions of the headers in front's include.
var library = map[string]routine{}

func init() {
	for line := range strings.Lines(libraryText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 3 {
			continue // empty, or a comment
		}
		r := routine{kind: ir.Call, imports: ir.PackagesOf(f[2])}
		if noCall.MatchString(f[2]) {
			r.kind = ir.Conversion
		}
		for _, e := range strings.Fields(f[1]) {
			r.effects |= effectNames[e]
		}
		rest := f[2]
		for m := verbs.FindStringSubmatchIndex(rest); m != nil; m = verbs.FindStringSubmatchIndex(rest) {
			p := piece{text: rest[:m[0]], verb: rest[m[0]+1], operator: strings.HasPrefix(rest[m[1]:], ".")}
			if m[6] >= 0 {
				p.arg = int(rest[m[6]] - '1')
				if m[4] == m[5] {
					p.verb = '$'
				}
			}
			r.form = append(r.form, p)
			rest = rest[m[1]:]
		}
		r.form = append(r.form, piece{text: rest})
		library[f[0]] = r
	}
}

// routineOf is the function of the library that a call is of.
func routineOf(n *front.Node) (name string, r routine, ok bool) {
	if f := n.L; f.Op == front.Decay && f.L.Op == front.Var && f.L.Sym.Header && f.L.Sym.Go == "" {
		r, ok = library[f.L.Sym.Name]
		return f.L.Sym.Name, r, ok
	}
	return "", routine{}, false
}

// effectsOf are the effects of a call, which of a function of the program are all.
func effectsOf(n *front.Node) effects {
	if _, r, ok := routineOf(n); ok {
		return r.effects
	}
	return doesRead | doesWrite | doesSync | doesCall
}

// library is a call of a function that a header of the compiler declares.
func (g *gen) library(n *front.Node, values []exp) exp {
	name, r, ok := routineOf(n)
	if !ok {
		g.refuse(n.Pos, "library function '%s'", n.L.L.Sym.Name)
	}
	var list []any
	for _, p := range r.form {
		list = append(list, p.text)
		switch p.verb {
		case '*':
			for i, v := range values {
				if i > 0 {
					list = append(list, ", ")
				}
				list = append(list, v)
			}
		case '$':
			v := values[p.arg]
			if p.operator && constant(n.List[p.arg]) {
				v = g.typed(n.List[p.arg])
			}
			if p.operator {
				v = ir.Whole(v)
			}
			list = append(list, v)
		case 'f', 's':
			list = append(list, g.callback(n.List[p.arg], values[p.arg], p.verb == 's'))
		case 'p':
			list = append(list, packed(n.List[p.arg]))
		}
	}
	e := ir.Form(r.kind, r.imports, list...)
	switch name {
	case "upc_global_exit":
		g.helpers["exit"] = true
	case "upc_thread_info":
		info := g.temp(ir.Named("rt.ThreadInfo"), e)
		int32Of := func(field string) exp { return ir.Convert(ir.Named("int32"), ir.Field(info, field)) }
		return ir.Literals(g.goType(n.Type), int32Of("Guaranteed"), int32Of("Probable"))
	}
	return e
}

// helper is the call of a method that the program has if it is called.
func (g *module) helper(name string, args ...exp) exp {
	g.helpers[name] = true
	return ir.CallTo("upc."+name, args...)
}

// packed is how pointers-to-shared lie in the memory that an atomic operation is of, as the type of its
// target says.
func packed(target *front.Node) string {
	for target.Op == front.Cast && target.Type.Elem.Kind == front.Void {
		target = target.L
	}
	if t := target.Type.Elem; t != nil && t.ToShared() {
		return pointerKind(t)
	}
	return phased
}

// libraryFunc is the function of Go that calls the library function whose address f is.
func (g *gen) libraryFunc(f *front.Node) exp {
	s := f.L.Sym
	name := "library_" + s.Name + "_"
	if g.done[name] {
		return ir.Name(name)
	}
	if s.Type.Variadic {
		g.refuse(f.Pos, "the address of library function '%s'", s.Name)
	}
	g.done[name] = true
	call := &front.Node{Op: front.Call, Pos: f.Pos, Type: s.Type.Elem, L: f}
	var values []exp
	for i, t := range s.Type.Params {
		p := &front.Sym{Name: string(rune('a' + i)), Type: t, Storage: front.Local}
		p.Go = p.Name
		values = append(values, ir.Name(p.Go))
		call.List = append(call.List, &front.Node{Op: front.Var, Pos: f.Pos, Type: t, Sym: p})
	}
	hoist := g.hoist
	g.hoist = nil
	body := g.capture(func() {
		if s.Type.Elem.Kind == front.Void {
			g.emit(ir.Do(g.library(call, values)))
		} else {
			g.emit(ir.Keyword("return", g.library(call, values)))
		}
	})
	g.hoist = hoist
	var c ir.Code
	c.WriteString("func " + name)
	c.Params(g.params(s.Type, values), g.result(s.Type))
	c.WriteString(" {\n")
	c.Print(body)
	c.WriteString("}\n")
	g.types = append(g.types, &c)
	return ir.Name(name)
}

// callback is a function that the library calls, of C's value f, which is arg: without the
// thread that functions of the program take first, and with pointers-to-shared as sorting has them if sorts.
func (g *gen) callback(f *front.Node, arg exp, sorts bool) exp {
	if constant(f) {
		return ir.Nil
	}
	t := f.Type.Elem
	if f.Op != front.Decay {
		arg = g.temp(g.goType(f.Type), arg)
	}
	var params []ir.Param
	args := []exp{upc}
	for i, p := range t.Params {
		a := ir.Name(string(rune('a' + i)))
		params = append(params, ir.Param{Name: a.String(), Type: g.goType(p)})
		args = append(args, a)
	}
	fn := ir.Function(params, g.goType(t.Elem), ir.CallOf(arg, args...))
	if !sorts {
		return fn
	}
	var both []ir.Param
	args = nil
	for _, n := range []string{"a", "b"} {
		both = append(both, ir.Param{Name: n, Type: phaseless})
		args = append(args, ir.Method(ir.Name(n), "Phased"))
	}
	return ir.Function(both, goInt, ir.Convert(goInt, ir.CallOf(ir.Group(fn), args...)))
}

// helperSource is what program.go has of the services that package rt leaves to programs.
var helperSource = map[string]string{
	"mineOf": `
// mineOf is mine of an affinity beyond what an int64 has.
func (upc *thread) mineOf(i uint64) bool { return int(i%uint64(upc.Threads())) == upc.MyThread() }
`,
	"mine": `
// mine reports whether iterations with affinity i are this thread's.
func (upc *thread) mine(i int64) bool {
	n := int64(upc.Threads())
	return (i%n+n)%n == int64(upc.MyThread())
}
`,
	"exit": `
func (upc *thread) exit(status int32) {
	upc.c.Finish()
	upc.GlobalExit(int(status))
}
`,
	"getAny": `
func getAny[T any](upc *thread, p rt.Phaseless) (v T) {
	upc.MemGet(libc.Bytes(unsafe.Pointer(&v), uint64(unsafe.Sizeof(v))), p)
	return v
}
`,
	"getAnyStrict": `
func getAnyStrict[T any](upc *thread, p rt.Phaseless) T {
	upc.Fence()
	v := getAny[T](upc, p)
	upc.Fence()
	return v
}
`,
	"putAny": `
func putAny[T any](upc *thread, p rt.Phaseless, v T) {
	upc.MemPut(p, libc.Bytes(unsafe.Pointer(&v), uint64(unsafe.Sizeof(v))))
}
`,
	"putAnyStrict": `
func putAnyStrict[T any](upc *thread, p rt.Phaseless, v T) {
	upc.Fence()
	putAny(upc, p, v)
	upc.Fence()
}
`,
	"own": `
// own is the first index from i on that is this thread's, in blocks of so many elements.
func (upc *thread) own(i, block int64) int64 {
	round := block * int64(upc.Threads())
	at := i - (i%round+round)%round + int64(upc.MyThread())*block // this thread's block in i's round
	switch {
	case i < at:
		return at
	case i < at+block:
		return i
	}
	return at + round
}
`,
	"after": `
// after is the next index that is this thread's after i, which is.
func (upc *thread) after(i, block int64) int64 {
	if i++; i%block != 0 {
		return i
	}
	return i + block*int64(upc.Threads()-1)
}
`,
	"place": `
// place is where element i, of this thread, lies in its part of an array.
func (upc *thread) place(i, block int64) int {
	return int(i/(block*int64(upc.Threads()))*block + i%block)
}
`,
	"part": `
// part is this thread's part of the array at p.
func part[T rt.Scalar](upc *thread, p rt.Phaseless, count int) []T {
	return rt.LocalSlice[T](upc.Thread, rt.MakePhaseless(upc.MyThread(), p.Addr()), count)
}
`,
}

// addHelpers adds the helpers that the program uses.
func (g *module) addHelpers(b *ir.Code) {
	for _, h := range []string{"getAnyStrict", "putAnyStrict"} {
		if g.helpers[h] {
			g.helpers[strings.TrimSuffix(h, "Strict")] = true
		}
	}
	var names []string
	for h := range g.helpers {
		names = append(names, h)
	}
	sort.Strings(names)
	for _, h := range names {
		b.Printf("%v", helperSource[h])
		b.Packages |= ir.PackagesOf(helperSource[h])
	}
}
