package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	flagFunctions = flag.Int("upc.functions", 60, "how many functions each random program of TestRandom has")
	flagRandom    = flag.Int("upc.random", 1, "how many random programs TestRandom compiles, and TestCsmith")
	flagSeed      = flag.Uint64("upc.seed", 1, "what they are drawn from: the first of so many seeds")
)

// array is a shared array of a random program.
type array struct {
	name, block string
	dims        []string // "" is M
	elem        string
}

func (a array) float() bool { return a.elem == "double" || a.elem == "float" }

// program is a random program that a C compiler takes as well, with -DREF: it does what one thread does
// then. Functions have a loop each, or a nest of them, over arrays in blocks of all kinds. Every index
// is in range: near i, which is in [8, M-10) or [1, 14), or behind a guard, or wrapped.
type program struct {
	*rand.Rand
	strings.Builder
	one, two, three []array

	// Of the function that is being written.
	depth  int    // of the nest
	narrow bool   // i stays where i+4 is in range
	odd    bool   // has jumps, calls, and writes of what bounds and indices are made of
	forall bool   // iterations are of several threads: they write only
	writes string // which no other iteration reads, but where not is
	not    string
}

func (p *program) pick(s ...string) string { return s[p.IntN(len(s))] }

func (p *program) chance(percent int) bool { return p.IntN(100) < percent }

func (p *program) line(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

func (p *program) declare() {
	elem := func() string {
		return p.pick("int", "unsigned", "unsigned char", "short", "long", "double", "float", "signed char", "unsigned short", "long long", "_Bool")
	}
	add := func(to *[]array, block string, dims ...string) {
		a := array{fmt.Sprintf("%c%d", 'a'+len(dims), len(*to)), block, dims, elem()}
		*to = append(*to, a)
	}
	for _, b := range []string{"", "[3]", "[7]", "[16]", "[]", "[*]", "[20]", "[1]"} {
		add(&p.one, b, "M")
	}
	for _, b := range []string{"[16]", "", "[32]", "[7]", "[]", "[48]", "[4]", "[24]"} {
		add(&p.two, b, "R", "16")
	}
	for _, b := range []string{"[16]", "[5]", ""} {
		add(&p.two, b, "3", "C")
	}
	for _, b := range []string{"[64]", "[16]", "", "[3]", "[]", "[128]"} {
		add(&p.three, b, "THREADS", "4", "16")
	}
	p.WriteString(randomHead)
	for _, a := range slices.Concat(p.one, p.two, p.three) {
		d := "[" + strings.Join(a.dims, "][") + "]"
		if a.block == "[]" { // all of one thread: of a size that is known
			d = strings.NewReplacer("M", "192", "R", "12", "THREADS", "4").Replace(d)
		}
		p.line("shared B(%s) %s %s%s;", a.block, a.elem, a.name, d)
	}
	for i, a := range p.one {
		if a.block != "[*]" {
			p.line("static shared B(%s) %s *p%d;", a.block, a.elem, i)
		}
	}
	p.line("static %s *q;", p.one[0].elem)
	p.line("#ifdef REF\n#define Q(k) %[1]s[(k) * THREADS + MYTHREAD]\n#else\n#define Q(k) q[k]\n#endif", p.one[0].name)
	p.line("static void begin(void) {\n  int i, j, k;\n  upc_barrier;")
	// Each thread fills its own elements, and adds them up: one that did it for all would take most of the time.
	walk := func(a array, do string) {
		subscripts := ""
		for i, d := range a.dims {
			v := string("ijk"[i])
			if subscripts += "[" + v + "]"; i == len(a.dims)-1 {
				p.line("  FORALL (%[1]s = 0, %[1]s < %[2]s, %[1]s++, &%[3]s)", v, d, a.name+subscripts)
			} else {
				p.line("  for (%[1]s = 0; %[1]s < %[2]s; %[1]s++)", v, d)
			}
		}
		at := []string{"i", "i * C + j", "i * 64 + j * 16 + k"}[len(a.dims)-1]
		p.line("    %s", strings.NewReplacer("@", a.name+subscripts, "AT", at).Replace(do))
	}
	for n, a := range slices.Concat(p.one, p.two, p.three) {
		walk(a, fmt.Sprintf("@ = ((AT) * %d + (AT) %s + %d) %% 101;", 5+2*n, p.pick("/ 3", "% 5"), n))
	}
	p.line("  fresh();")
	for i, a := range p.one {
		if a.block != "[*]" {
			p.line("  p%d = &%s[%d];", i, a.name, p.IntN(4))
		}
	}
	p.line("  q = (%s *)&%s[MYTHREAD];\n  upc_barrier;\n}", p.one[0].elem, p.one[0].name)
	// end prints a sum of all that is shared, which a C compiler's program prints as well, and what threads have.
	p.line("static void end(int which, int forall) {\n  int i, j, k;\n  mine();\n  upc_barrier;\n  sum = 0;")
	for _, a := range slices.Concat(p.one, p.two, p.three) {
		if a.float() {
			walk(a, "number(AT, @);")
		} else {
			walk(a, "add(AT, (unsigned)@);")
		}
	}
	p.WriteString(randomEnd)
	p.line("static void fw(int i) { gj ^= 1; %s[(i + 5) %% M] = i & 63; %s[(i + 1) %% M] += 1; }", p.one[3].name, p.one[0].name)
	p.line("static int fr(int i) { return (int)%s[(i + 3) %% M] + gk; }", p.one[2].name)
	p.line("static void fp(void) { p3 = &%s[(gl + 3) %% 4]; p0 = &%s[3]; p1 = &%s[gl]; gl = (gl + 1) %% 3; }", p.one[3].name, p.one[0].name, p.one[1].name)
	p.line("static void fs(shared B([7]) %s *to, int n) { while (n-- > 0) *to++ += n; }", p.one[2].elem)
}

// small is in [0, 3].
func (p *program) small() string {
	return p.pick("j", "j", "gj", "m", "2", "1", "0", "(unsigned char)j", "gk - 1", "(long)j", "gl")
}

// index is an index of a line of M elements, which may be out of range unless safe.
func (p *program) index(safe bool) string {
	s := p.small()
	switch n := p.IntN(100); {
	case n < 28:
		return "i"
	case n < 50:
		return fmt.Sprintf(p.pick("i + %d", "i - %d", "%d + i"), p.IntN(5))
	case n < 56:
		return "i" + p.pick(" + 1u", " - 1u", " + 2L", " - 1L", " + (size_t)1", " - 3ul")
	case n < 72:
		return strings.ReplaceAll(p.pick("i + @", "@ + i", "i - @", "i + @ - 1", "i + @ + 2", "1 + i + @", "(long)i + @ - 2", "i - 1 + @", "(size_t)i + @", "i + (@ - 1)", "i + 2 * @",
			"(int)i - @ + 1", "(i + @) - (1 - j)"), "@", s)
	case n < 78:
		return fmt.Sprint(p.IntN(40))
	case n < 84:
		return fmt.Sprintf("(%s + %du) %% M", p.pick("i", "j", "i * 3", "(int)priv[i & 63]", "gk"), p.IntN(10))
	case safe:
		return p.pick("i", "i + 1", "M - 1 - i", "i - 2")
	}
	return p.pick("2 * i - 5", "j - i", "n - i", "M - 1 - i", "(char)i", "(signed char)(i + 1)", "i * j", "3 * i", "i + gl * 2 - 6", "i - 20", "i + 30", "-i", "~i", "(short)i + j", "(unsigned short)i",
		"i + 4294967295u")
}

// last is a last index of a grid.
func (p *program) last() string {
	switch n := p.IntN(100); {
	case n < 40:
		return "i"
	case n < 70:
		return p.pick("i + 1", "i - 1", "1 + i", "i + 2", "(long)i - 1")
	case n < 85:
		return p.pick(fmt.Sprint(p.IntN(16)), "j", "gj", "m", "j + 1")
	}
	return p.pick("15 - i", "i + j - j", "i ^ 1", "(i + j) & 15", "i - j + j")
}

func guard(index, limit string) string {
	return fmt.Sprintf("(unsigned long)(long)(%s) < (unsigned long)(%s)", index, limit)
}

// place is a place of memory: which array it is of, and under which condition it is one, if any.
func (p *program) place() (place string, of array, condition string) {
	other := func(s string) (string, array, string) { return s, array{elem: "int"}, "" }
	switch n := p.IntN(100); {
	case n < 4:
		return other("priv[(unsigned)(i) & 127]")
	case n < 10:
		return other(p.pick("ss[(unsigned)(i) % (2 * THREADS)]", "s2[1]", "s2[(unsigned)j % THREADS]", "ps[1]", "(*ps)") + p.pick(".x", ".y[2]", ".y[(unsigned)i % 6]", ".in.s", ".f", ".g"))
	case n < 12 && p.narrow && p.depth == 1:
		return other(p.pick("sx[i]", "vx[i + 1]"))
	case n < 16:
		return "Q((unsigned)(" + p.pick("i", "i + 1", "j") + ") % (M / THREADS))", p.one[0], ""
	}
	var conditions []string
	switch d := p.depth; {
	case d == 1 || d == 2 && p.chance(25):
		k := p.IntN(len(p.one))
		of = p.one[k]
		index := p.index(p.narrow && d == 1)
		guarded := !p.narrow || d > 1
		if of.block != "[*]" && !p.forall && p.chance(30) {
			if guarded {
				conditions = append(conditions, guard(index, "M - 3"))
			}
			place = fmt.Sprintf(p.pick("p%d[%s]", "p%d[%s]", "p%d[%s]", "(*(p%d + (%s)))"), k, index)
		} else {
			if guarded {
				conditions = append(conditions, guard(index, "M"))
			}
			place = of.name + "[" + index + "]"
		}
	case d == 2:
		of = p.two[p.IntN(len(p.two))]
		row, index := p.pick("jj", "jj", "jj + 1", "jj - 1", "1", "2", "j"), p.last()
		if p.chance(7) {
			row, index = p.pick("i % 3", "i & 1"), p.pick("jj", "i", "2")
		}
		conditions = []string{guard(row, of.dims[0]), guard(index, of.dims[1])}
		place = fmt.Sprintf("%s[%s][%s]", of.name, row, index)
	default:
		of = p.three[p.IntN(len(p.three))]
		row, index := p.pick("jj", "jj + 1", "jj - 1", "2", "j"), p.last()
		conditions = []string{guard(row, "4"), guard(index, "16")}
		place = fmt.Sprintf("%s[%s][%s][%s]", of.name, p.pick("0", "THREADS - 1", "kk"), row, index)
	}
	if p.narrow && len(conditions) == 2 && !strings.ContainsAny(place, "%^&-") && !strings.Contains(place, "+ 2]") {
		conditions = nil // i and jj keep off the edges
		if strings.Contains(place, "[j]") {
			conditions = []string{"j < 3"}
		}
	}
	return place, of, strings.Join(conditions, " && ")
}

func (p *program) read() string {
	place, of, condition := p.place()
	// In upc_forall no iteration reads what others write, by whatever name.
	for p.forall && (of.name == p.not || of.name == "" && !strings.HasPrefix(place, "priv") || strings.HasPrefix(place, "Q")) {
		place, of, condition = p.place()
	}
	e := "(long)" + place
	if p.chance(6) {
		e = "(long)sizeof(" + place + ")"
		if strings.Contains(place, ".f") || strings.Contains(place, ".g") {
			e = "8"
		}
	}
	if condition != "" {
		return fmt.Sprintf("(%s ? %s : -7)", condition, e)
	}
	return e
}

// value is an expression of integers, number one of floating point.
func (p *program) value(depth int) string {
	n := p.IntN(100)
	switch {
	case depth <= 0 || n < 10:
		return p.pick("i", "3", "j", "u", "v", "7", "m")
	case n < 40:
		return fmt.Sprintf("(%s %s %s)", p.value(depth-1), p.pick("+", "-", "^", "*", "&", "|"), p.value(depth-1))
	case n < 46:
		return fmt.Sprintf("((%s) & 1 ? %s : %s)", p.value(1), p.value(depth-1), p.value(depth-1))
	case n < 50:
		return fmt.Sprintf("((%s) > 20 %s (%s) < 90)", p.value(1), p.pick("&&", "||"), p.value(1))
	case n < 54:
		return fmt.Sprintf("((%s) %s %d)", p.value(depth-1), p.pick("%", "/", ">>"), 1+p.IntN(9))
	}
	return p.read()
}

func (p *program) number(depth int) string {
	n := p.IntN(100)
	switch {
	case depth <= 0 || n < 20:
		return p.pick("x", "y", "0.37", "1.1f", "-0.0", "0.0", "2.0", "0.1f", "1e-3", "(float)0.7", ".5", "-1.5", "0x1p-3")
	case n < 70:
		return fmt.Sprintf("(%s %s %s)", p.number(depth-1), p.pick("+", "-", "*"), p.number(depth-1))
	case n < 75:
		return fmt.Sprintf("(%s / %s)", p.number(depth-1), p.pick("3.0", "4.0", "0.7f", "2.0"))
	case n < 80:
		return fmt.Sprintf("(%s %s %s ? %s : %s)", p.number(1), p.pick("<", ">", "<=", "!="), p.number(1), p.number(1), p.number(1))
	}
	return "(double)" + p.read()
}

func (p *program) statement(depth int) {
	switch n := p.IntN(100); {
	case n < 12 && depth > 0:
		p.line("if ((%s) & %d) {", p.value(1), 1<<p.IntN(3))
		p.statement(depth - 1)
		if p.chance(40) {
			p.line("} else {")
			p.statement(depth - 1)
		}
		p.line("}")
		return
	case n < 25:
		p.line("%s %s= %s;", p.pick("u", "v"), p.pick("", "+", "^"), p.value(2))
		return
	case n < 38:
		p.line("%s = (%s) * %s + %s * %s;", p.pick("x", "y"), p.number(2), p.pick("0.25", "0.125f", "1e-2"), p.pick("x", "y"), p.pick("0.3", "0.3f", "0.5"))
		return
	case n < 45 && p.odd && !p.forall:
		s := p.pick("fw((int)i & 255);", "v += fr((int)(unsigned char)i);", "m = (m + 1) & 3;", "gj = (gj + 1) & 3;", "j = (j + 1) & 3;", "upc_fence;", "upc_lock(lock); u += 3; upc_unlock(lock);", "fp();",
			"p3 = &"+p.one[3].name+"[(unsigned)i % 4];", "p0 = &"+p.one[0].name+"[(unsigned)i % 4];", "p2 = p2 == &"+p.one[2].name+"[0] ? &"+p.one[2].name+"[1] : &"+p.one[2].name+"[0];", "n = n;", "Q(1) = 3;",
			"bound--;", "switch (i & 3) { case 1: u++; break; case 2: v += 3; default: u ^= 5; }", "switch ((int)i & 1) { case 1: u += 7; continue; }", "{ int i = 3; u += i; }", "{ static int count; v += count++ & 7; count &= 63; }",
			"ss[1] = s2[(unsigned)i % THREADS];", "{ struct record r = *ps; r.y[1] += 3; r.z *= 0.5; s2[0] = r; }", "fs(&"+p.one[2].name+"[(unsigned)i % 9], 12);", "u += p0 - &"+p.one[0].name+"[0];", "ps = ps == &ss[0] ? &ss[1 % THREADS] : &ss[0];",
			"{ int part[4]; upc_memget(part, &whole[(unsigned)i % 4], sizeof part); part[1] += u & 7; upc_memput(&whole[(unsigned)j & 3], part, sizeof part); v += whole[3]; }", "upc_memset(&whole[(unsigned)i & 7], 1, 8);",
			"do { int k = 2; u += k; } while (0);", "(i & 1 ? fw : fv)((int)i & 255);", "gl = (gl + 1) % 3;")
		if p.chance(50) {
			s = fmt.Sprintf("if ((%s) & 1) { %s }", p.value(1), s)
		}
		p.line("%s", s)
		return
	case n < 49 && p.odd:
		ends := []string{"continue;"}
		if !p.forall {
			ends = append(ends, "break;", "return;", "goto out;")
		}
		p.line("if ((%s) %% %s == %d) %s", p.value(1), p.pick("7", "13", "29"), p.IntN(7), p.pick(ends...))
		return
	}
	place, of, condition := p.place()
	if p.forall {
		place, condition = p.writes, ""
		of = array{}
		for _, a := range slices.Concat(p.one, p.two, p.three) {
			if a.name == p.not {
				of = a
			}
		}
	}
	if condition != "" {
		condition = "if (" + condition + ") "
	}
	change := []string{"+", "-"}
	if !of.float() {
		change = append(change, "^", "|")
	}
	switch n := p.IntN(100); {
	case of.float() && n < 60:
		p.line("%s%s = (%s) * 0.125 + 1.5f;", condition, place, p.number(2))
	case n < 25:
		p.line("%s%s %s= (%s) & 15;", condition, place, p.pick(change...), p.value(1))
	case n < 33 && of.elem != "_Bool":
		p.line("%s%s%s%s;", condition, p.pick("u += (long)", "", ""), place, p.pick("++", "--"))
	default:
		p.line("%s%s = (%s) & %s;", condition, place, p.value(2), p.pick("63", "127"))
	}
}

// function writes a function with a loop, or a nest, and reports whether all threads are to call it.
func (p *program) function(k int) (forall bool) {
	p.depth = []int{1, 1, 1, 2, 2, 3}[p.IntN(6)]
	p.narrow, p.odd, p.forall = p.chance(60), p.chance(55), p.chance(25)
	kind := p.pick("int", "int", "int", "int", "int", "long", "long", "unsigned", "size_t", "short", "unsigned char", "long long")
	if p.depth > 1 && p.chance(10) {
		kind = "char"
	}
	p.line("static void loop%d(void) {\n%s i = 0; int j = gj, m = %d, jj = 1, kk = 0, bound; unsigned u = 5, v = 9; double x = 0.5, y = -0.25; long nn = n;", k, kind, p.IntN(3))
	if p.chance(50) {
		p.line("j = %d;", p.IntN(3))
	}
	unsigned := slices.Contains([]string{"unsigned", "size_t", "unsigned char"}, kind)
	var from, to string
	switch {
	case p.depth == 1 && p.narrow:
		from, to = p.pick("8", "9", "10", "8 + j"), p.pick("n", "M - 10", "nn", "n - 1", "bound", "38", "20", "8", "M - 12")
	case p.depth == 1:
		from, to = p.pick("0", "-6", "3", "-1", "j"), p.pick("n", "M + 5", "M", "bound", "n + 12", "M - 1", "4")
	case p.narrow:
		from, to = p.pick("1", "1", "2"), p.pick("14", "13", "bound", "14")
	default:
		from, to = p.pick("0", "-2", "1"), p.pick("16", "15", "18", "bound", "C + 2")
	}
	if unsigned && from[0] == '-' {
		from = "0"
	}
	p.line("bound = %s;", map[bool]string{true: "M - 11", false: "14"}[p.depth == 1])
	ends := ""
	if p.depth > 1 {
		p.line("for (jj = 1; jj < %d; jj++) {", p.depth)
		ends += "}"
	}
	if p.depth == 3 && p.chance(30) {
		p.line("for (kk = 0; kk < THREADS; kk++) {")
		ends += "}"
	}
	compare := fmt.Sprintf(p.pick("i < %s", "i < %s", "i < %s", "i <= %s - 1", "(%s) > i"), to)
	if unsigned { // to may be of another sign
		compare = "i < " + to
	}
	step := p.pick("i++", "i++", "i++", "++i", "i += 1", "i += 2", "i += 3", "i = i + 1")
	odd := ""
	switch n := p.IntN(100); {
	case p.forall:
		p.affinity(step)
	case n < 68:
		p.line("for (i = %s; %s; %s) {", from, compare, step)
		if p.odd && p.chance(6) {
			odd = "if (u & 1) i++;"
		}
	case n < 80 && unsigned:
		p.line("for (i = %s; i-- > %s;) {", to, from)
	case n < 80:
		p.line("for (i = %s; i >= %s; %s) {", to, from, p.pick("i--", "--i", "i -= 1", "i -= 2"))
	case n < 90:
		p.line("i = %s; while (i < %s) { i++;", from, to)
	default:
		p.line("for (i = %s; i < %s && u != 77777; i++) {", from, to)
	}
	p.line("%s", odd)
	if p.chance(20) {
		p.line("long t = %s; u += t;", p.value(1))
	}
	for range 1 + p.IntN(5) {
		p.statement(2)
	}
	p.line("}%s\ngoto out;\nout: out += u * 3 + v * 5 + (unsigned)i + j + m * 7 + bound * 11;\nif (x == x) ds += x;\nif (y == y) ds = ds * .5 + y;\n}", ends)
	return p.forall
}

// affinity begins an upc_forall: each iteration writes one element, by the thread that the clause says.
func (p *program) affinity(step string) {
	from, to := "8", "M - 10"
	at := "i"
	if p.narrow {
		at = p.pick("i", "i", "i + 1", "i - 1")
	}
	var of array
	switch p.depth {
	case 1:
		of = p.one[p.IntN(len(p.one))]
		p.writes = of.name + "[" + at + "]"
	case 2:
		of = p.two[p.IntN(len(p.two))]
		p.writes = of.name + "[jj][" + at + "]"
		from, to = "1", "15"
	default:
		of = p.three[p.IntN(len(p.three))]
		p.writes = of.name + "[kk][jj][" + at + "]"
		from, to = "1", "15"
	}
	if !p.narrow {
		from, to = "0", strings.Replace(to, "15", "16", 1)
	}
	p.not = of.name
	clause := p.pick("&"+p.writes, "&"+p.writes, "&"+p.writes, "i", "i + j", "3 * i", "(long)i", "MYTHREAD", "&"+p.one[p.IntN(len(p.one))].name+"[i]", "&"+p.two[p.IntN(len(p.two))].name+"[jj][i % 16]",
		"&"+p.three[p.IntN(len(p.three))].name+"[0][jj][i % 16]")
	if clause == "MYTHREAD" { // all threads do all
		p.writes, p.not = "priv[(unsigned)(i) & 127]", ""
	}
	p.line("FORALL (i = %s, i < %s, %s, %s) {", from, to, step, clause)
}

const randomHead = `#include <stddef.h>
#include <stdio.h>
#include <string.h>
#ifdef REF
#define shared
#define strict
#define THREADS REF
#define MYTHREAD 0
#define B(x)
#define FORALL(a, b, c, d) for (a; b; c)
#define upc_barrier
#define upc_fence
#define upc_lock(x)
#define upc_unlock(x)
#define upc_memget memcpy
#define upc_memput memcpy
#define upc_memset memset
#else
#include <upc_relaxed.h>
#define B(x) x
#define FORALL(a, b, c, d) upc_forall (a; b; c; d)
static upc_lock_t *lock;
#endif
#define M (48 * THREADS)
#define R (3 * THREADS)
#define C (16 * THREADS)
struct record { char x; unsigned y[6]; double z; struct { short s; float f; } in; int f : 5; unsigned g : 11; };
shared struct record ss[2 * THREADS];
shared B([2]) struct record s2[2 * THREADS];
static shared struct record *ps;
strict shared B([3]) int sx[M];
shared B([16]) volatile int vx[M];
shared B([]) int whole[16];
static unsigned priv[200], out, sum;
static double dp[200], ds;
static int n, gj, gk;
static long gl;
shared unsigned sums[THREADS], parts[THREADS];
static void records(int i) {
  int j;
  ss[i].x = i + 2, s2[i].x = i * 3;
  ss[i].z = s2[i].z = i * 1.5;
  for (j = 0; j < 6; j++) ss[i].y[j] = s2[i].y[j] = i * 3 + j;
  ss[i].in.s = i, s2[i].in.s = -i;
  ss[i].f = ss[i].g = s2[i].f = s2[i].g = i & 7;
}
static void fresh(void) {
  int i;
  FORALL (i = 0, i < M, i++, &sx[i]) sx[i] = i * 3 % 31;
  FORALL (i = 0, i < M, i++, &vx[i]) vx[i] = i * 3 % 31;
  if (MYTHREAD == 0) {
    for (i = 0; i < 16; i++) whole[i] = i;
    for (i = 0; i < 2 * THREADS; i++) records(i);
  }
  for (i = 0; i < 200; i++) priv[i] = (i * 3 + MYTHREAD) % 31, dp[i] = i * 0.75;
  n = M - 10, gj = 2, gk = 3, gl = 1, out = 0, ds = 0.5, ps = &ss[0];
}
static void add(int at, unsigned n) { sum += n * (at * 2654435761u | 1); }
static void number(int at, double d) {
  union { double d; unsigned u[2]; } both;
  both.d = d;
  if (d == d) add(at, both.u[0] * 7 + both.u[1]);
}
static void mine(void) {
  int i;
  for (i = 0; i < 200; i++) out = out * 31 + priv[i] + (unsigned)(int)dp[i];
  sum = out * 31 + gj * 3 + gk + gl;
  number(1, ds);
  sums[MYTHREAD] = sum;
}
static void fv(int i) { gj = i & 1; }
`

const randomEnd = `  FORALL (i = 0, i < M, i++, &sx[i]) add(i, sx[i]);
  FORALL (i = 0, i < M, i++, &vx[i]) add(i, vx[i]);
  parts[MYTHREAD] = sum;
  upc_barrier;
  if (MYTHREAD == 0) {
    sum = parts[0];
#ifndef REF
    for (i = 1; i < THREADS; i++) sum += parts[i];
#endif
    for (i = 0; i < 16; i++) add(i, whole[i]);
    for (i = 0; i < 2 * THREADS; i++) {
      add(i, ss[i].x + s2[i].x * 3 + ss[i].in.s + s2[i].in.s * 5 + ss[i].f + s2[i].f * 3 + ss[i].g + s2[i].g * 3);
      for (j = 0; j < 6; j++) add(i + j, ss[i].y[j] + s2[i].y[j] * 3);
      number(i, ss[i].z), number(i + 3, s2[i].z);
    }
#ifdef REF
    if (forall && THREADS > 1) return; /* threads have their own u and v */
#endif
    printf("%d: %u", which, sum);
    if (!forall) printf(" %u", sums[0]);
#ifndef REF
    for (i = !forall; i < THREADS; i++) printf(" %u", sums[i]);
#endif
    printf("\n");
  }
}
`

// random is the text of a random program.
func random(seed uint64, functions int) string {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 0))}
	p.declare()
	var calls strings.Builder
	for k := range functions {
		if p.function(k) {
			fmt.Fprintf(&calls, "  begin(); loop%[1]d(); upc_barrier; end(%[1]d, 1);\n", k)
		} else {
			fmt.Fprintf(&calls, "  begin(); if (MYTHREAD == 0) loop%[1]d(); upc_barrier; end(%[1]d, 0);\n", k)
		}
	}
	p.line("int main(void) {\n#ifndef REF\n  lock = upc_all_lock_alloc();\n#endif\n%s  return 0;\n}", calls.String())
	return p.String()
}

// reference is what a C compiler's program prints: of a random program the one thread, of so many threads'
// memory. It is false if that does not end in time, which csmith's need not.
func reference(t *testing.T, file string, flags ...string) (string, bool) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "reference")
	args := append([]string{"-x", "c", "-w", "-O1", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-o", bin, file}, flags...)
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	want, err := output(t.TempDir(), nil, "timeout", "10", bin)
	return want, err == nil
}

// differ compares what functions print, a line each: those that want has, or their beginnings. It shows
// the first that is another.
func differ(t *testing.T, what, text, want, got string) {
	t.Helper()
	lines := map[string]string{}
	for line := range strings.Lines(got) {
		which, rest, _ := strings.Cut(line, ": ")
		lines[which] = strings.TrimSpace(rest)
	}
	for line := range strings.Lines(want) {
		which, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(lines[which]+" ", rest+" ") {
			continue
		}
		k, err := strconv.Atoi(which)
		if err != nil {
			t.Fatalf("%s: %s, want %s", what, got, want)
		}
		t.Errorf("%s, function %d: %q, want %q:\nstatic void loop%s", what, k, lines[which], rest, strings.Split(text, "static void loop")[k+1])
		return
	}
}

// compilers skips a test if one of them is not here.
func compilers(t *testing.T, names ...string) {
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skip(err)
		}
	}
}

// TestRandom: random programs give on shared memory what a C compiler's one thread gives, and with
// messages, which overtake each other in the simulation and go other ways in the code that is made, the same.
func TestRandom(t *testing.T) {
	b := newBundle(t)
	compilers(t, "cc")
	dir, texts := t.TempDir(), map[string]string{}
	for k := range *flagRandom {
		seed := *flagSeed + uint64(k)
		name := fmt.Sprint("seed", seed)
		file := filepath.Join(dir, name+".upc")
		texts[name] = random(seed, *flagFunctions)
		if err := os.WriteFile(file, []byte(texts[name]), 0o666); err != nil {
			t.Fatal(err)
		}
		b.add(t, name, 0, file)
	}
	b.build(t)
	for name, text := range texts {
		for _, threads := range []int{1, 3} {
			what := fmt.Sprintf("%s, %d threads", name, threads)
			got, err := b.run(t, "shm", threads, name)
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, got)
			}
			want, ends := reference(t, filepath.Join(dir, name+".upc"), fmt.Sprint("-DREF=", threads))
			if !ends {
				t.Fatalf("%s: the reference has not ended, or failed:\n%s", what, want)
			}
			differ(t, what+", beside C", text, want, got)
			for _, e := range []string{"ARGON_CONDUIT=udp", "ARGON_CONDUIT=sim ARGON_SIM=seed=1,jitter=20us"} {
				if threads == 1 {
					continue
				}
				far, err := output(t.TempDir(), append(strings.Fields(e), fmt.Sprint("ARGON_RANKS=", threads)), b.bin(name))
				if err != nil {
					t.Fatalf("%s, %s: %v\n%s", what, e, err, far)
				}
				differ(t, what+", "+e, text, got, far)
			}
		}
	}
}

// TestCsmith: programs of csmith, which are plain C, print what a C compiler's print.
func TestCsmith(t *testing.T) {
	b := newBundle(t)
	compilers(t, "cc", "csmith")
	const include = "/usr/include/csmith"
	if _, err := os.Stat(include); err != nil {
		t.Skip(err) // Debian's libcsmith-dev
	}
	want := map[string]string{}
	for k := range *flagRandom {
		seed := fmt.Sprint(*flagSeed + uint64(k))
		file := filepath.Join(t.TempDir(), seed+".c")
		if out, err := exec.Command("csmith", "--seed", seed, "-o", file).CombinedOutput(); err != nil {
			t.Fatalf("csmith: %v\n%s", err, out)
		}
		if text, ends := reference(t, file, "-I", include); ends {
			want["csmith"+seed] = text
			b.addWith(t, "csmith"+seed, &options{files: []string{file}, include: list{include}})
		}
	}
	b.build(t)
	for name, text := range want {
		if got, err := b.run(t, "shm", 1, name); err != nil || got != text {
			t.Errorf("%s: %s, %v, want %s", name, got, err, text)
		}
	}
}
