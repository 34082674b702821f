package gen

import (
	"regexp"
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// piece is text of a form, and what follows it.
type piece struct {
	text     string
	verb     byte // 0, or: $ an argument, * all, t, and f, s, r and p of an argument, as library.txt has them
	arg      int
	operator bool // a selector follows the argument
}

var (
	verbs  = regexp.MustCompile(`\$(\*|t|([fsrp]?)([1-9]))`)
	noCall = regexp.MustCompile(`^(u?int(32|64)|float(32|64)|complex(64|128)|rt\.Phaseless)\(|^(real|imag)\(|^\w+$`) // a conversion or a variable, which is no statement of Go
)

// pieces are those of the Go that library.txt has for a function.
func pieces(form string) (all []piece) {
	for m := verbs.FindStringSubmatchIndex(form); m != nil; m = verbs.FindStringSubmatchIndex(form) {
		p := piece{text: form[:m[0]], verb: form[m[0]+1], operator: strings.HasPrefix(form[m[1]:], ".")}
		if m[6] >= 0 {
			p.arg = int(form[m[6]] - '1')
			if m[4] == m[5] {
				p.verb = '$'
			}
		}
		all = append(all, p)
		form = form[m[1]:]
	}
	return append(all, piece{text: form})
}

// library is a call of a function that a header of the compiler declares.
func (g *gen) library(n *front.Node, values []exp) exp {
	r, ok := opt.RoutineOf(n)
	if !ok {
		g.refuse(n.Pos, "library function '%s'", n.L.L.Sym.Name)
	}
	var list []any
	for _, p := range pieces(r.Go) {
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
		case 'r':
			v := values[p.arg]
			if !constant(n.List[p.arg]) {
				v = recast(goPtr, v)
			}
			list = append(list, v)
		case 't':
			list = append(list, g.goType(n.Type))
		case 'p':
			list = append(list, packed(n.List[p.arg]))
		}
	}
	kind := ir.Call
	if noCall.MatchString(r.Go) {
		kind = ir.Conversion
	}
	e := ir.Form(kind, ir.PackagesOf(r.Go), list...)
	switch r.Name {
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
	fn := ir.Function(params, g.result(t), ir.CallOf(arg, args...))
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
	"getAnyStrict checked": `
func getAnyStrict[T any](upc *thread, p rt.Phaseless) (v T) {
	b := libc.Bytes(unsafe.Pointer(&v), uint64(unsafe.Sizeof(v)))
	for i := range b {
		b[i] = rt.GetStrict[uint8](upc.Thread, p.AddLocal(i, 1))
	}
	return v
}
`,
	"putAnyStrict checked": `
func putAnyStrict[T any](upc *thread, p rt.Phaseless, v T) {
	for i, b := range libc.Bytes(unsafe.Pointer(&v), uint64(unsafe.Sizeof(v))) {
		rt.PutStrict(upc.Thread, p.AddLocal(i, 1), b)
	}
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
		source := helperSource[h]
		if bytewise := helperSource[h+" checked"]; g.o.Checked && bytewise != "" {
			source = bytewise
		}
		b.Printf("%v", source)
		b.Packages |= ir.PackagesOf(source)
	}
}
