package gen

import (
	"fmt"
	"sort"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
)

// mathFuncs are functions of one or two numbers in Go's package math.
var mathFuncs = map[string]string{
	"sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "atan2": "Atan2",
	"sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "exp": "Exp", "log": "Log", "log10": "Log10", "log2": "Log2",
	"log1p": "Log1p", "expm1": "Expm1", "exp2": "Exp2", "pow": "Pow", "sqrt": "Sqrt", "cbrt": "Cbrt", "fabs": "Abs",
	"floor": "Floor", "ceil": "Ceil", "trunc": "Trunc", "round": "Round", "fmod": "Mod", "hypot": "Hypot",
	"fmax": "Max", "fmin": "Min",
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
	"upc_ticks_now":    "upc.c.Ticks()",
	"upc_ticks_to_ns":  "uint64($1)",

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
}

// libraryNames are the functions of package libc, as methods of libc.C.
var libraryNames = map[string]string{
	"__assert_fail": "AssertFail", "__upc_stdout": "Stdout", "__upc_stderr": "Stderr",
}

func init() {
	for _, n := range strings.Fields(`malloc calloc realloc free memcpy memmove memset memcmp strlen strcmp strncmp strcpy strncpy
		strcat strdup strstr strchr strrchr atoi atol atoll atof strtol strtoul strtod isalpha isdigit isalnum isspace isupper
		islower toupper tolower printf fprintf sprintf snprintf puts fputs putchar fflush exit abort rand srand abs labs time
		clock gettimeofday getenv`) {
		libraryNames[n] = strings.ToUpper(n[:1]) + n[1:]
	}
}

// library is a call of a function that a header of the compiler declares.
func (g *gen) library(n *front.Node, name string, args []string) exp {
	if m := mathFuncs[name]; m != "" {
		return exp{"math." + m + "(" + strings.Join(args, ", ") + ")", 7}
	}
	if m := mathFuncs[strings.TrimSuffix(name, "f")]; m != "" {
		for i, a := range args {
			args[i] = "float64(" + a + ")"
		}
		return exp{"float32(" + "math." + m + "(" + strings.Join(args, ", ") + "))", 7}
	}
	switch name {
	case "isnan", "__upc_isnan":
		return exp{fmt.Sprintf("libc.Bool(math.IsNaN(%s))", args[0]), 7}
	case "isinf", "__upc_isinf":
		return exp{fmt.Sprintf("libc.Bool(math.IsInf(%s, 0))", args[0]), 7}
	case "qsort":
		if n.List[3].Op != front.Decay && n.List[3].Op != front.Var {
			g.refuse(n.Pos, "a computed function as an argument of qsort")
		}
		args[3] = fmt.Sprintf("func(a, b unsafe.Pointer) int32 { return %s(upc, a, b) }", args[3])
		return exp{"upc.c.Qsort(" + strings.Join(args, ", ") + ")", 7}
	}
	if form := services[name]; form != "" {
		for i := len(args); i > 0; i-- {
			at := fmt.Sprintf("$%d", i)
			a := args[i-1]
			if strings.Contains(form, at+".") {
				if constant(n.List[i-1]) {
					a = g.typed(n.List[i-1]).s
				}
				a = g.operand(exp{a, 7}, 7)
				if strings.ContainsAny(a, " ") && !strings.HasSuffix(a, ")") {
					a = "(" + a + ")"
				}
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

// helperSource is what program.go has of the services that package rt leaves to programs.
var helperSource = map[string]string{
	"mine": `
// mine says whether iterations with affinity i are this thread's.
func (upc *thread) mine(i int64) bool {
	n := int64(upc.Threads())
	return (i%n+n)%n == int64(upc.MyThread())
}
`,
	"exit": `
func (upc *thread) exit(status int32) {
	upc.c.Flush()
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
