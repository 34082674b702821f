package gen

import (
	"fmt"
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// mathFuncs are functions of one or two numbers, in Go's package math or in libc.
var mathFuncs = map[string]string{
	"sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "atan2": "Atan2",
	"sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "exp": "Exp", "log": "Log", "log10": "Log10", "log2": "Log2",
	"log1p": "Log1p", "expm1": "Expm1", "exp2": "Exp2", "pow": "Pow", "sqrt": "Sqrt", "cbrt": "Cbrt", "fabs": "Abs",
	"floor": "Floor", "ceil": "Ceil", "trunc": "Trunc", "round": "Round", "fmod": "Mod", "hypot": "Hypot",
	"fmax": "libc.Fmax", "fmin": "libc.Fmin", "acosh": "Acosh", "asinh": "Asinh", "atanh": "Atanh", "rint": "RoundToEven",
	"nearbyint": "RoundToEven", "erf": "Erf", "erfc": "Erfc", "tgamma": "Gamma", "lgamma": "libc.Lgamma", "logb": "Logb",
	"copysign": "Copysign", "nextafter": "Nextafter", "remainder": "Remainder", "fdim": "libc.Fdim", "fma": "FMA",
}

// services are the functions of UPC: forms with the arguments, and imports.
var services = map[string]string{
	"upc_threadof":     "uint64($1.Thread())",
	"upc_phaseof":      "uint64($1.Phase())",
	"upc_addrfield":    "$1.AddrField()",
	"upc_resetphase":   "$1.ResetPhase()",
	"upc_affinitysize": "uint64(rt.AffinitySize(int($1), int($2), int($3), upc.Threads()))",
	"upc_all_alloc":    "upc.AllAlloc($1, $2).Phased()",
	"upc_global_alloc": "upc.GlobalAlloc($1, $2).Phased()",
	"upc_alloc":        "upc.Alloc($1).Phased()",
	"upc_free":         "upc.Free($1.Phaseless())",
	"upc_all_free":     "upc.AllFree($1.Phaseless())",
	"upc_memcpy":       "upc.MemCpy($1.Phaseless(), $2.Phaseless(), int($3))",
	"upc_memget":       "upc.MemGet(libc.Bytes($1, $3), $2.Phaseless())",
	"upc_memput":       "upc.MemPut($1.Phaseless(), libc.Bytes($2, $3))",
	"upc_memset":       "upc.MemSet($1.Phaseless(), libc.Byte($2), int($3))",
	"upc_global_exit":  "upc.exit($1)",
	"upc_ticks_now":    "upc.TicksNow()",
	"upc_ticks_to_ns":  "rt.TicksToNS($1)",

	"upc_all_lock_alloc":    "rt.Phaseless(upc.AllLockAlloc())",
	"upc_global_lock_alloc": "rt.Phaseless(upc.GlobalLockAlloc())",
	"upc_lock":              "upc.Lock(rt.Lock($1))",
	"upc_unlock":            "upc.Unlock(rt.Lock($1))",
	"upc_lock_attempt":      "libc.Bool(upc.LockAttempt(rt.Lock($1)))",
	"upc_lock_free":         "upc.LockFree(rt.Lock($1))",
	"upc_all_lock_free":     "upc.AllLockFree(rt.Lock($1))",

	"upc_all_broadcast":  "upc.AllBroadcast($1.Phaseless(), $2.Phaseless(), int($3), rt.SyncFlags($4))",
	"upc_all_scatter":    "upc.AllScatter($1.Phaseless(), $2.Phaseless(), int($3), rt.SyncFlags($4))",
	"upc_all_gather":     "upc.AllGather($1.Phaseless(), $2.Phaseless(), int($3), rt.SyncFlags($4))",
	"upc_all_gather_all": "upc.AllGatherAll($1.Phaseless(), $2.Phaseless(), int($3), rt.SyncFlags($4))",
	"upc_all_exchange":   "upc.AllExchange($1.Phaseless(), $2.Phaseless(), int($3), rt.SyncFlags($4))",
	"upc_all_permute":    "upc.AllPermute($1.Phaseless(), $2.Phaseless(), $3, int($4), rt.SyncFlags($5))",
	"upc_all_sort":       "upc.AllSort($1, int($2), int($3), int($4), $5, rt.SyncFlags($6))",

	"upc_all_atomicdomain_alloc": "rt.Phaseless(upc.AllDomainAlloc(rt.AtomicType($1), rt.Op($2)))",
	"upc_all_atomicdomain_free":  "upc.AllDomainFree(rt.Domain($1))",
	"upc_atomic_isfast":          "libc.Bool(upc.AtomicIsFast(rt.AtomicType($1), rt.Op($2), $3.Phaseless()))",

	"upc_memcpy_nb":     "uint64(upc.MemCpyNB($1.Phaseless(), $2.Phaseless(), int($3)))",
	"upc_memget_nb":     "uint64(upc.MemGetNB(libc.Bytes($1, $3), $2.Phaseless()))",
	"upc_memput_nb":     "uint64(upc.MemPutNB($1.Phaseless(), libc.Bytes($2, $3)))",
	"upc_memset_nb":     "uint64(upc.MemSetNB($1.Phaseless(), libc.Byte($2), int($3)))",
	"upc_memcpy_nbi":    "upc.MemCpyNBI($1.Phaseless(), $2.Phaseless(), int($3))",
	"upc_memget_nbi":    "upc.MemGetNBI(libc.Bytes($1, $3), $2.Phaseless())",
	"upc_memput_nbi":    "upc.MemPutNBI($1.Phaseless(), libc.Bytes($2, $3))",
	"upc_memset_nbi":    "upc.MemSetNBI($1.Phaseless(), libc.Byte($2), int($3))",
	"upc_sync":          "upc.Sync(rt.Handle($1))",
	"upc_sync_attempt":  "libc.Bool(upc.SyncAttempt(rt.Handle($1)))",
	"upc_synci":         "upc.SyncI()",
	"upc_synci_attempt": "libc.Bool(upc.SyncIAttempt())",

	"upc_cast": "upc.Cast($1.Phaseless(), 1)",
}

// libraryNames are the functions of package libc, as methods of libc.C.
var libraryNames = map[string]string{
	"__assert_fail": "AssertFail", "__upc_stdin": "Stdin", "__upc_stdout": "Stdout", "__upc_stderr": "Stderr",
}

func init() {
	for _, n := range strings.Fields(`malloc calloc realloc free memcpy memmove memset memcmp strlen strcmp strncmp strcpy strncpy
		strcat strdup strstr strchr strrchr atoi atol atoll atof strtol strtoul strtod isalpha isdigit isalnum isspace isupper
		islower toupper tolower printf fprintf sprintf snprintf puts fputs putchar fflush exit abort rand srand abs labs time
		clock gettimeofday getenv fopen fclose fgetc getc getchar ungetc fgets fputc putc fread fwrite feof ferror fseek ftell
		rewind remove fscanf scanf sscanf strncat strpbrk strtok strspn strcspn memchr strcasecmp strncasecmp isblank iscntrl
		isgraph isprint ispunct isxdigit strtof strtoll strtoull llabs drand48 lrand48 srand48 ldexp scalbn frexp modf ilogb
		lround lrint llround llrint vprintf vfprintf vsprintf vsnprintf`) {
		libraryNames[n] = strings.ToUpper(n[:1]) + n[1:]
	}
}

// mathFunc is a value of mathFuncs with its package.
func mathFunc(m string) string {
	if strings.Contains(m, ".") {
		return m
	}
	return "math." + m
}

// library is a call of a function that a header of the compiler declares.
func (g *gen) library(n *front.Node, name string, values []exp) exp {
	args := texts(values)
	if m := mathFuncs[name]; m != "" {
		return exp{mathFunc(m) + "(" + strings.Join(args, ", ") + ")", 7}
	}
	if name == "nextafterf" { // the next float, not the float of the next double
		return exp{"math.Nextafter32(" + strings.Join(args, ", ") + ")", 7}
	}
	if m := mathFuncs[strings.TrimSuffix(name, "f")]; m != "" {
		for i, a := range args {
			args[i] = "float64(" + a + ")"
		}
		return exp{"float32(" + mathFunc(m) + "(" + strings.Join(args, ", ") + "))", 7}
	}
	switch name {
	case "isnan", "__upc_isnan":
		return exp{fmt.Sprintf("libc.Bool(math.IsNaN(%s))", args[0]), 7}
	case "isinf", "__upc_isinf":
		return exp{fmt.Sprintf("libc.Bool(math.IsInf(%s, 0))", args[0]), 7}
	case "__upc_va_start":
		return exp{variadic, 7}
	case "__upc_isfinite":
		return exp{fmt.Sprintf("libc.Bool(!math.IsInf(%s, 0) && !math.IsNaN(%s))", args[0], args[0]), 7}
	case "__upc_signbit":
		return exp{fmt.Sprintf("libc.Bool(math.Signbit(%s))", args[0]), 7}
	case "qsort":
		args[3] = g.callback(n.List[3], args[3], "%s")
		return exp{"upc.c.Qsort(" + strings.Join(args, ", ") + ")", 7}
	case "bsearch":
		args[4] = g.callback(n.List[4], args[4], "%s")
		return exp{"upc.c.Bsearch(" + strings.Join(args, ", ") + ")", 7}
	case "upc_all_sort":
		args[4] = fmt.Sprintf("func(a, b rt.Phaseless) int { return int(%s(a.Phased(), b.Phased())) }", g.callback(n.List[4], args[4], "(%s)"))
	case "upc_thread_info":
		info := g.temp("rt.ThreadInfo", "upc.Info(int("+args[0]+"))")
		return exp{fmt.Sprintf("%s{int32(%s.Guaranteed), int32(%s.Probable)}", g.goType(n.Type), info, info), 7}
	}
	form := services[name]
	if r, ok := reduction(name); ok {
		form = r
		args[5] = g.callback(n.List[5], args[5], "%s")
	}
	if name == "upc_atomic_strict" || name == "upc_atomic_relaxed" {
		form = atomic(n, name == "upc_atomic_strict")
	}
	if form != "" {
		for i := len(args); i > 0; i-- {
			at := fmt.Sprintf("$%d", i)
			a := args[i-1]
			if strings.Contains(form, at+".") {
				if constant(n.List[i-1]) {
					values[i-1] = g.typed(n.List[i-1])
				}
				a = g.operand(values[i-1], 7)
			}
			form = strings.ReplaceAll(form, at, a)
		}
		if h, _, ok := strings.Cut(strings.TrimPrefix(form, "upc."), "("); ok && helperSource[h] != "" {
			g.helpers[h] = true
		}
		return exp{form, 7}
	}
	if m := libraryNames[name]; m != "" {
		return exp{"upc.c." + m + "(" + strings.Join(args, ", ") + ")", 7}
	}
	g.refuse(n.Pos, "library function '%s'", name)
	return exp{}
}

// libraryFunc is the function of Go that calls the library function whose address f is.
func (g *gen) libraryFunc(f *front.Node) string {
	s := f.L.Sym
	name := "library_" + s.Name + "_"
	if g.done[name] {
		return name
	}
	if s.Type.Variadic {
		g.refuse(f.Pos, "the address of library function '%s'", s.Name)
	}
	g.done[name] = true
	call := &front.Node{Op: front.Call, Pos: f.Pos, Type: s.Type.Elem, L: f}
	var names []string
	var values []exp
	for i, t := range s.Type.Params {
		p := &front.Sym{Name: string(rune('a' + i)), Type: t, Storage: front.Local}
		p.Go = p.Name
		names = append(names, p.Go)
		values = append(values, exp{p.Go, 7})
		call.List = append(call.List, &front.Node{Op: front.Var, Pos: f.Pos, Type: t, Sym: p})
	}
	hoist := g.hoist
	g.hoist = nil
	body := g.capture(func() {
		e := g.library(call, s.Name, values).s
		if s.Type.Elem.Kind != front.Void {
			e = "return " + e
		}
		g.emit("%s", e)
	})
	g.hoist = hoist
	g.types = append(g.types, fmt.Sprintf("func %s%s {\n%s}\n", name, strings.TrimPrefix(g.signature(s.Type, names), "func"), body))
	return name
}

// callback is a function that the library calls, of C's value f, which is arg: without the
// thread that functions of the program take first.
func (g *gen) callback(f *front.Node, arg, form string) string {
	if constant(f) {
		return "nil"
	}
	t := f.Type.Elem
	if f.Op != front.Decay {
		arg = g.temp(g.goType(f.Type), arg)
	}
	var params, names []string
	for i, p := range t.Params {
		names = append(names, string(rune('a'+i)))
		params = append(params, names[i]+" "+g.goType(p))
	}
	return fmt.Sprintf(form, fmt.Sprintf("func(%s) %s { return %s(upc, %s) }", strings.Join(params, ", "), g.goType(t.Elem), arg, strings.Join(names, ", ")))
}

// reductionTypes are the types of reductions, in Go, by the ends of their names.
var reductionTypes = map[string]string{
	"C": "int8", "UC": "uint8", "S": "int16", "US": "uint16", "I": "int32", "UI": "uint32",
	"L": "int64", "UL": "uint64", "F": "float32", "D": "float64", "LD": "float64",
}

// reduction is the call for a reduction of the library, if name is one.
func reduction(name string) (form string, ok bool) {
	f, dst := "AllReduce", "$1.Phaseless()"
	end, ok := strings.CutPrefix(name, "upc_all_reduce")
	if !ok {
		f, dst = "AllPrefixReduce", "$1"
		end, ok = strings.CutPrefix(name, "upc_all_prefix_reduce")
	}
	t := reductionTypes[end]
	return fmt.Sprintf("rt.%s[%s](upc.Thread, %s, $2, rt.Op($3), int($4), int($5), $6, rt.SyncFlags($7))", f, t, dst), ok && t != ""
}

// atomic is the call for upc_atomic_strict or upc_atomic_relaxed. Pointers-to-shared in the
// memory that they name are packed as the type of the target says.
func atomic(n *front.Node, strict bool) string {
	packed := "Phased"
	target := n.List[3]
	for target.Op == front.Cast && target.Type.Elem.Kind == front.Void {
		target = target.L
	}
	if t := target.Type.Elem; t != nil && t.ToShared() {
		packed = pointerKind(t)
	}
	return fmt.Sprintf("rt.AtomicAt[rt.%s](upc.Thread, rt.Domain($1), %t, $2, rt.Op($3), $4.Phaseless(), $5, $6)", packed, strict)
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
func (g *gen) addHelpers(b *strings.Builder) {
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
		b.WriteString(helperSource[h])
	}
}
