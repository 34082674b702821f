// Package gen makes Go of checked UPC programs: one package main, with a file for each source
// file and program.go, which starts the threads.
//
// Each function of C is one of Go that takes the thread first. Expressions whose parts have
// side effects become several statements: what they compute before lies in variables tmp1,
// tmp2 and so on. Variables whose address is taken lie on the thread's stack of package libc,
// those with static storage in its structure globals; all others are variables of Go.
package gen

import (
	"fmt"
	"go/format"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
	"github.com/argon-go/argon/internal/upc/opt"
)

// Options is how code is generated.
type Options struct {
	Threads int               // the static THREADS, or 0
	Source  map[string]string // text of the source files, for comments
	Segment uint64            // shared memory of each thread, bytes, if it is known
	Notes   bool              // loops have comments that say how they reach shared memory
	Checked bool              // each shared access is a call of package rt, which looks for races (tag upcraces)

	MayAlias bool // objects are written as what they are not, whatever C 6.5p7 says
}

// Program is the Go files of a program, by name.
func Program(units []*front.Unit, o Options) (files map[string]File, err error) {
	g := &gen{module: &module{
		o: o, funcs: map[string]*front.Sym{}, vars: map[string]*front.Sym{}, names: map[string]bool{},
		structs: map[*front.StructInfo]string{}, variants: map[string][]*front.StructInfo{}, done: map[string]bool{},
		lines: map[string][]string{}, lits: map[string]string{}, helpers: map[string]bool{}, whole: map[string][]*front.StructInfo{},
	}}
	for _, u := range units {
		for _, s := range u.Structs {
			if n := structName(s); s.Complete {
				g.whole[n] = append(g.whole[n], s)
			}
		}
	}
	for n, s := range o.Source {
		g.lines[n] = strings.Split(s, "\n")
	}
	for _, u := range units {
		if u.Relined {
			clear(g.lines)
		}
		g.o.MayAlias = g.o.MayAlias || u.MayAlias
	}
	defer func() {
		if e := recover(); e != nil {
			u, ok := e.(unsupported)
			if !ok {
				panic(e)
			}
			files, err = nil, front.Errors{u.err}
		}
	}()
	g.link(units)
	g.fit()
	if len(g.errs) > 0 {
		return nil, g.errs
	}
	out := map[string]string{}
	for i, u := range units {
		name := strings.TrimSuffix(filepath.Base(u.Name), filepath.Ext(u.Name))
		name = fileName(name)
		if out[name+".go"] != "" || name == "program" {
			name = fmt.Sprintf("%s_%d", name, i)
		}
		out[name+".go"] = g.unit(u)
	}
	if len(g.errs) > 0 {
		return nil, g.errs
	}
	out["program.go"] = g.program(units)
	files = map[string]File{}
	for n, s := range out {
		b, err := format.Source([]byte(s))
		if err != nil {
			return nil, fmt.Errorf("gen: %s does not parse: %w\n%s", n, err, s)
		}
		if files[n], err = located(b); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// fileName is name as the name of a Go file, which says nothing of systems or tests.
func fileName(name string) string {
	s := []byte("upc_")
	for i := range len(name) {
		c := name[i]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if c < '0' || c > '9' {
				c = '_'
			}
		}
		s = append(s, c)
	}
	return string(append(s, "_c"...))
}

// unsupported is the value of the panic where no code can be made.
type unsupported struct{ err *front.Error }

func (g *module) refuse(p front.Pos, format string, args ...any) {
	panic(unsupported{&front.Error{Pos: p, Msg: fmt.Sprintf("not supported: "+format, args...)}})
}

// module is what all functions of a program have in common.
type module struct {
	o        Options
	errs     front.Errors
	funcs    map[string]*front.Sym // functions that are defined, by name
	vars     map[string]*front.Sym // variables, by name
	names    map[string]bool       // names of package main that are taken
	globals  []*front.Sym          // private
	shared   []*front.Sym
	structs  map[*front.StructInfo]string
	whole    map[string][]*front.StructInfo // complete structures, by kind and tag
	variants map[string][]*front.StructInfo // those that have a type, which differ
	types    []*ir.Code                     // definitions
	done     map[string]bool
	lines    map[string][]string
	lits     map[string]string // string constants
	litDefs  ir.Block
	helpers  map[string]bool
}

// gen is a function, or a part of one, being generated.
type gen struct {
	*module

	out    *ir.Block
	fn     *front.Sym
	temps  int
	hoist  *ir.Block                 // declarations at the top of a function with labels
	locals map[string]int            // names in use in the function
	labels map[*front.LabelInfo]bool // those of the function that are emitted, and whether a goto is
	line   front.Pos
	breaks []*int // for each loop and switch, how many breaks leave it
	local  *localLoop

	renamed map[*front.Sym]exp // local variables that have another name in what is being generated

	windows  map[string]*window // of the loops that are being generated
	held     map[string]exp     // constants in variables, of these loops
	holding  ir.Block           // their declarations
	blocks   *opt.Blocks
	stripped *stripped
	rowed    *rowed
	group    *group
	unused   bool // the value of the call that is generated is not used
	watched  int  // in how many conditions of loops, which may wait for another thread's write
}

// reserved are the names that variables and functions of C do not get.
var reserved = map[string]bool{}

func init() {
	for _, s := range strings.Fields(`break case chan const continue default defer else fallthrough for func go goto if import
		interface map package range return select struct switch type var
		any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8
		uint16 uint32 uint64 uintptr true false iota nil append cap clear close complex copy delete imag len make max min new
		panic print println real recover init main upc libc rt math cmplx unsafe os thread globals sharedData
		part static getAny putAny getAnyStrict putAnyStrict _`) {
		reserved[s] = true
	}
}

// ident is a name of C in Go.
func ident(s string) string {
	if reserved[s] || strings.HasSuffix(s, "_") || numbered(s, "tmp") || numbered(s, "lit") ||
		strings.HasPrefix(s, "struct_") || strings.HasPrefix(s, "union_") || strings.HasPrefix(s, "upc") {
		return s + "_"
	}
	return s
}

func numbered(s, prefix string) bool {
	rest := strings.TrimPrefix(s, prefix)
	return rest != s && strings.Trim(rest, "0123456789") == ""
}

func (g *module) fresh(name string) string {
	n := name
	for i := 2; g.names[n]; i++ {
		n = fmt.Sprintf("%s_%d", name, i)
	}
	g.names[n] = true
	return n
}

// link gives the symbols of file scope their names, one for those of several files that are
// the same.
func (g *module) link(units []*front.Unit) {
	errorf := func(p front.Pos, format string, args ...any) *front.Error {
		e := &front.Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
		g.errs = append(g.errs, e)
		return e
	}
	note := func(o *front.Sym, format string, args ...any) front.Errors {
		return front.Errors{{Pos: o.Pos, Msg: fmt.Sprintf(format, args...)}}
	}
	declared := map[string]*front.Sym{}
	for _, u := range units {
		for _, s := range u.Syms {
			if s.Static || s.Header && !s.Defined {
				continue
			}
			if o := declared[s.Name]; o != nil && !front.Same(o.Type, s.Type) {
				errorf(s.Pos, "conflicting types for '%s'; have '%v'", s.Name, s.Type).Notes = note(o, "another declaration of '%s' with type '%v'", s.Name, o.Type)
			}
			declared[s.Name] = s
			m := g.vars
			if s.Storage == front.Function {
				m = g.funcs
			}
			if o := m[s.Name]; o != nil && o.Defined {
				if s.Defined && (s.Storage == front.Function || s.Init != nil && o.Init != nil) {
					errorf(s.Pos, "multiple definition of '%s'", s.Name).Notes = note(o, "first defined here")
				}
				if s.Init == nil {
					continue
				}
			}
			if s.Defined {
				m[s.Name] = s
			}
		}
	}
	for _, u := range units {
		for _, s := range u.Syms {
			d := s
			if !s.Static {
				if s.Storage == front.Function {
					d = g.funcs[s.Name]
				} else {
					d = g.vars[s.Name]
				}
			}
			switch {
			case s.Header && d == nil:
				continue
			case d == nil || !d.Defined:
				if s.Used {
					errorf(s.Pos, "undefined reference to '%s'", s.Name)
				}
				continue
			case d.Go == "":
				name := ident(s.Name)
				if s.Func != nil {
					name = ident(s.Func.Name + "_" + s.Name)
				}
				d.Go = g.fresh(name)
				switch {
				case d.Storage == front.Function:
				case d.Type.IsShared():
					g.shared = append(g.shared, d)
				default:
					g.globals = append(g.globals, d)
				}
			}
			if s.Header && s.Storage == front.Function && !front.Same(s.Type, d.Type) {
				errorf(d.Pos, "conflicting types for '%s'; have '%v', and at %v '%v', as the library's", s.Name, d.Type, s.Pos, s.Type)
			}
			s.Go, s.Def = d.Go, d
		}
	}
	if m := g.funcs["main"]; m == nil {
		errorf(front.Pos{File: units[0].Name, Line: 1, Col: 1}, "undefined reference to 'main'")
	} else if !g.starts(m.Type) {
		errorf(m.Pos, "not supported: main of type '%v': it takes nothing, or int and char **, and returns int or void", m.Type)
	}
}

// starts reports whether main may have type t: with up to three parameters, of which the last is the environment.
func (g *module) starts(t *front.Type) bool {
	for i, p := range t.Params {
		if want := [3]string{"int32", "**int8", "**int8"}; i > 2 || g.goType(p).String() != want[i] {
			return false
		}
	}
	return !t.Variadic && (t.Elem.Integer() || t.Elem.Kind == front.Void)
}

// MaxSegment is rt.MaxShared, the largest shared memory of a thread, bytes.
const MaxSegment = 1 << 34

// fit checks that the shared objects have room in a thread's segment, as far as their sizes are
// known: that of an array with THREADS in a dimension is what a thread has at least.
func (g *module) fit() {
	limit := g.o.Segment
	if limit == 0 {
		limit = MaxSegment
	}
	var sum uint64
	for _, s := range g.shared {
		size, ok := part(s.Type, int64(g.o.Threads))
		if ok {
			sum += uint64(size)
		}
		if ok && sum <= limit {
			continue
		}
		beside := ""
		if ok && uint64(size) <= limit {
			beside = " with those before it"
		}
		g.errs = append(g.errs, &front.Error{Pos: s.Pos, Msg: fmt.Sprintf("size of shared variable '%s'%s is too large for the segment of a thread, which has %d bytes", s.Name, beside, limit)})
		return
	}
}

// part is how many bytes of an object of type t one thread has at least; false if they cannot
// be counted.
func part(t *front.Type, threads int64) (int64, bool) {
	n, size := int64(1), t.Base().Size()
	for a := t; a.Kind == front.Array; a = a.Elem {
		if a.Len > math.MaxInt64/n {
			return 0, false
		}
		n *= a.Len
	}
	if b := t.Base().Block; b > 0 && !t.PerThread() {
		if threads == 0 {
			threads = 1 // of an object that is no array
		}
		n = ((n+b-1)/b + threads - 1) / threads * b
	}
	if size > 0 && n > math.MaxInt64/size {
		return 0, false
	}
	return n * size, true
}

// file is a Go file of body.
func goFile(from string, body *ir.Code) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Code generated by upc from %s; DO NOT EDIT.\n\npackage main\n\n", clean(from))
	if paths := body.Packages.Paths(); len(paths) > 0 {
		b.WriteString("import (\n")
		own := true
		for _, p := range paths {
			if std := !strings.Contains(p, "."); std == own {
				own = !own
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%q\n", p)
		}
		b.WriteString(")\n\n")
	}
	return b.String() + body.String()
}

// unit is the file of a source file's functions.
func (g *gen) unit(u *front.Unit) string {
	c := ir.Code{Notes: g.o.Notes}
	for _, s := range u.Syms {
		if s.Storage == front.Function && s.Body != nil && s.Go != "" && !g.done[s.Go] {
			g.done[s.Go] = true
			g.function(s, &c)
			c.WriteByte('\n')
		}
	}
	return goFile(filepath.Base(u.Name), &c)
}

// goType is a type in Go.
func (g *module) goType(t *front.Type) ir.Type {
	switch t.Kind {
	case front.Void:
		return ir.Named("struct{}")
	case front.Bool:
		return goUint8
	case front.Char, front.Short, front.Int, front.Long, front.LongLong:
		s := fmt.Sprintf("int%d", t.Size()*8)
		if t.Unsigned {
			s = "u" + s
		}
		return ir.Named(s)
	case front.Float:
		return ir.Named("float32")
	case front.Double:
		return ir.Named("float64")
	case front.FloatComplex:
		return ir.Named("complex64")
	case front.DoubleComplex:
		return ir.Named("complex128")
	case front.Pointer:
		switch {
		case t.ToShared():
			return ir.Named("rt." + pointerKind(t))
		case t.Elem.Kind == front.Void:
			return goPtr
		case t.Elem.Kind == front.Func:
			return ir.FuncOf(g.params(t.Elem, nil), g.result(t.Elem))
		case t.Elem.Variable():
			return ir.PointerTo(g.goType(t.Elem.Base()))
		}
		return ir.PointerTo(g.goType(t.Elem))
	case front.Array:
		n := t.Len
		if n < 0 { // behind a pointer, which its bounds do not stop
			n = 1 << 40 / max(t.Elem.Size(), 1)
		}
		return ir.ArrayOf(n, g.goType(t.Elem))
	case front.Struct, front.Union:
		return ir.Named(g.structure(t.Info))
	}
	panic("gen: no Go type for " + t.String())
}

// phased is the kind of pointers-to-shared that have a phase.
const phased = "Phased"

// pointerKind is the type of package rt of a pointer-to-shared.
func pointerKind(t *front.Type) string {
	if b := t.Elem.Base(); b.Kind == front.Void || b.Block > 1 {
		return phased
	}
	return "Phaseless"
}

// variadic is where a function has its variable arguments, each in a word.
const variadic = "variadic_"

// params are the parameters of a function in Go.
func (g *module) params(f *front.Type, names []exp) []ir.Param {
	all := []ir.Param{{Name: "upc", Type: ir.PointerTo(ir.Named("thread"))}}
	for i, p := range f.Params {
		n := "_"
		if names != nil {
			n = names[i].String()
		}
		all = append(all, ir.Param{Name: n, Type: g.goType(p)})
	}
	if f.Variadic {
		all = append(all, ir.Param{Name: variadic, Type: ir.PointerTo(goUint64)})
	}
	return all
}

// result is what a function returns, no type if nothing.
func (g *module) result(f *front.Type) ir.Type {
	if f.Elem.Kind == front.Void {
		return ir.Type{}
	}
	return g.goType(f.Elem)
}

// structName is a structure's kind and tag, or its place if it has none.
func structName(s *front.StructInfo) string {
	kind := "struct_"
	if s.Union {
		kind = "union_"
	}
	if s.Tag == "" {
		return fmt.Sprintf("%s%d_%d", kind, s.Pos.Line, s.Pos.Col)
	}
	return kind + s.Tag
}

// structure is the name of a structure's type.
func (g *module) structure(s *front.StructInfo) string {
	if n := g.structs[s]; n != "" {
		return n
	}
	name := structName(s)
	if w := g.whole[name]; !s.Complete && len(w) > 0 {
		// Another file says what it is.
		for _, o := range w[1:] {
			if !alikeStructs(w[0], o, map[[2]*front.StructInfo]bool{}) {
				g.refuse(s.Pos, "two different structures with the tag '%s', and another file that has only its name", s.Tag)
			}
		}
		g.structs[s] = g.structure(w[0])
		return g.structs[s]
	}
	for _, o := range g.variants[name] {
		if alikeStructs(s, o, map[[2]*front.StructInfo]bool{}) {
			g.structs[s] = g.structs[o]
			return g.structs[s]
		}
	}
	g.variants[name] = append(g.variants[name], s)
	name = g.fresh(name)
	g.structs[s] = name // members may point to it
	var c ir.Code
	c.Printf("// %s is of %v.\ntype %s ", name, at(s.Pos), name)
	switch {
	case !s.Complete:
		c.WriteString("struct{ _ uint64 }")
	case s.Packed:
		c.Printf("struct{ words [%d]uint%d }", s.Size/s.Word(), 8*s.Word())
	default:
		c.WriteString("struct {\n")
		for _, f := range s.Fields {
			c.Printf("%s %s\n", ident(f.Name), g.goType(f.Type))
		}
		c.WriteString("}")
	}
	c.WriteByte('\n')
	g.types = append(g.types, &c)
	return name
}

// alikeStructs reports whether two structures, of other files or scopes, are the same type in Go: they
// have the same name and members that are alike. Those in same are, if it turns out so.
func alikeStructs(a, b *front.StructInfo, same map[[2]*front.StructInfo]bool) bool {
	if a == b || same[[2]*front.StructInfo{a, b}] {
		return true
	}
	if structName(a) != structName(b) {
		return false
	}
	if !a.Complete || !b.Complete {
		return true
	}
	if a.Size != b.Size || a.Packed != b.Packed || len(a.Fields) != len(b.Fields) {
		return false
	}
	same[[2]*front.StructInfo{a, b}] = true
	for i, f := range a.Fields {
		if o := b.Fields[i]; f.Name != o.Name || f.Offset != o.Offset || f.Bits != o.Bits || f.Shift != o.Shift || !alike(f.Type, o.Type, same) {
			return false
		}
	}
	return true
}

// alike reports whether two types are the same in Go.
func alike(a, b *front.Type, same map[[2]*front.StructInfo]bool) bool {
	if a.Kind != b.Kind || a.Unsigned != b.Unsigned || a.Len != b.Len || len(a.Params) != len(b.Params) {
		return false
	}
	switch a.Kind {
	case front.Struct, front.Union:
		return alikeStructs(a.Info, b.Info, same)
	case front.Pointer:
		if a.ToShared() || b.ToShared() {
			return a.ToShared() && b.ToShared() && pointerKind(a) == pointerKind(b)
		}
	case front.Func:
		if a.Variadic != b.Variadic {
			return false
		}
		for i := range a.Params {
			if !alike(a.Params[i], b.Params[i], same) {
				return false
			}
		}
	case front.Array:
	default:
		return true
	}
	return alike(a.Elem, b.Elem, same)
}

// aligned reports whether a variable with static storage lies by itself, for its alignment.
func aligned(s *front.Sym) bool { return s.Align > s.Type.GoAlign() }

// literal is a string constant: a variable of package main.
func (g *module) literal(s string) exp {
	n := g.lits[s]
	if n == "" {
		n = fmt.Sprintf("lit%d", len(g.lits)+1)
		g.lits[s] = n
		g.litDefs = append(g.litDefs, ir.Set(ir.Name(n), ir.CallTo("libc.Str", ir.Lit(strconv.Quote(s)))))
	}
	return ir.Name(n)
}

// program is program.go.
func (g *gen) program(units []*front.Unit) string {
	var names []string
	for _, u := range units {
		names = append(names, filepath.Base(u.Name))
	}
	// Initialisers first: they may need string constants and types.
	var inits ir.Block
	g.fn = nil
	sharedInit := false
	for _, s := range append(append([]*front.Sym(nil), g.globals...), g.shared...) {
		if len(s.Init) == 0 {
			continue
		}
		one := g.capture(func() {
			for _, n := range s.Init {
				if n.Op != front.Zero {
					g.discard(n)
				}
			}
		})
		if s.Type.IsShared() {
			sharedInit = true
			one = ir.Block{ir.When(ir.Op(myThread, "==", num(0)), one, nil)}
		}
		inits = append(inits, one...)
	}
	b := &ir.Code{Packages: ir.RT | ir.LibC}
	b.WriteString("// thread is a thread of the program.\ntype thread struct {\n*rt.Thread\nc libc.C // its library\n")
	if len(g.globals) > 0 {
		b.WriteString("g *globals // its variables with static storage\n")
	}
	if len(g.shared) > 0 {
		b.WriteString("s sharedData // where shared variables begin\n")
	}
	b.WriteString("forall int // how many upc_forall loops with affinity are under way\n}\n\n")
	if len(g.globals) > 0 {
		b.WriteString("type globals struct {\n")
		for _, s := range g.globals {
			t := g.goType(s.Type)
			if aligned(s) {
				t = ir.PointerTo(t)
			}
			b.Printf("%s %s // %v\n", s.Go, t, at(s.Pos))
		}
		b.WriteString("}\n\n")
	}
	if len(g.shared) > 0 {
		b.WriteString("type sharedData struct {\n")
		for _, s := range g.shared {
			b.Printf("%s rt.%s // %v: %s\n", s.Go, pointerKind(&front.Type{Kind: front.Pointer, Elem: s.Type}), at(s.Pos), s.Type)
		}
		b.WriteString("}\n\nvar (\n")
		for _, s := range g.shared {
			base := s.Type.Base()
			b.Printf("static_%s = rt.Static(rt.Object{Name: %q, Size: %d, Block: %d, Count: %d", s.Go, s.Name, base.Size(), base.Block, s.Type.Elems())
			if s.Type.PerThread() {
				b.WriteString(", TimesThreads: true")
			}
			if s.Align > 64 { // as all shared objects are
				b.Printf(", Align: %d", s.Align)
			}
			b.WriteString("})\n")
		}
		b.WriteString(")\n\n")
	}
	if len(g.litDefs) > 0 {
		b.WriteString("var (\n")
		b.Print(g.litDefs)
		b.WriteString(")\n\n")
	}
	for i, t := range g.types {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.Printf("%v", t)
	}
	b.Printf("\nfunc main() {\nrt.Main(rt.Config{Static: %d}, func(r *rt.Thread) {\n", g.o.Threads)
	b.WriteString("upc := &thread{Thread: r, c: libc.New(r.Node().Now)}\n")
	if len(g.globals) > 0 {
		b.WriteString("upc.g = libc.Static[globals]()\n")
	}
	for _, s := range g.globals {
		if aligned(s) {
			b.Printf("upc.g.%s = libc.StaticAligned[%s](%d)\n", s.Go, g.goType(s.Type), s.Align)
		}
	}
	for _, s := range g.shared {
		method := "Base"
		if pointerKind(&front.Type{Kind: front.Pointer, Elem: s.Type}) == "Phased" {
			method = "BasePhased"
		}
		b.Printf("upc.s.%s = r.%s(static_%s)\n", s.Go, method, s.Go)
	}
	b.Print(inits)
	if sharedInit {
		b.WriteString("upc.BarrierAny()\n")
	}
	m := g.funcs["main"]
	args := []string{"upc", "int32(len(os.Args))", "libc.Args(os.Args)", "libc.Args(os.Environ())"}
	if len(m.Type.Params) > 0 {
		b.Packages |= ir.OS
	}
	call := m.Go + "(" + strings.Join(args[:1+len(m.Type.Params)], ", ") + ")"
	if m.Type.Elem.Kind == front.Void {
		b.Printf("status, aborted := upc.c.Run(func() int32 {\n%s\nreturn 0\n})\n", call)
	} else {
		b.Printf("status, aborted := upc.c.Run(func() int32 { return int32(%s) })\n", call)
	}
	b.WriteString("if aborted {\nr.GlobalExit(int(status))\n}\nr.Status(int(status))\n})\n}\n")
	g.addHelpers(b)
	return goFile(strings.Join(names, ", "), b)
}
