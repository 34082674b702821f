package front

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: whatever a file says, it is parsed or has errors with places in it.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../../cmd/upc/testdata/*.upc")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, n := range files {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), 0)
		f.Add(string(b), 3)
	}
	b, err := os.ReadFile("../../../cmd/upc/testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for s := range strings.SplitSeq(string(b), "// ----\n") {
		f.Add(s, 0)
	}
	f.Add("#define f(x) x f(x) ## f\n#if f(1) + defined f\nf(f)(1)\n#elif 1\n#else\n", 1)
	f.Add("#define A B\n#define B A\nint A, B = 'a' '\\x41' 0x1p3 1e+;\n/*", 1)
	f.Fuzz(func(t *testing.T, src string, threads int) {
		u, err := Parse(&Config{Threads: threads & 7}, "f.upc", src)
		if (u == nil) == (err == nil) {
			t.Fatal(u, err)
		}
		if err == nil {
			return
		}
		var l Errors
		if !errors.As(err, &l) || len(l) == 0 {
			t.Fatalf("%T", err)
		}
		lines := strings.Count(src, "\n") + 1
		for _, e := range l {
			if e.Pos.File == "f.upc" && !strings.Contains(src, "#") && (e.Pos.Line < 1 || e.Pos.Line > lines || e.Pos.Col < 1) || e.Msg == "" {
				t.Errorf("of %d lines: %v", lines, e)
			}
		}
	})
}

// TestPreprocess: what a source is after preprocessing.
func TestPreprocess(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"#define X 1\nX X1 \"X\"", `1 X1 "X"`},
		{"#define F(a) [a]\nF(F(2)) F (3) F", "[ [ 2 ] ] [ 3 ] F"},
		{"#define S(a) #a\n#define G(a, b) a##b\nS(x  \"y\\n\") G(x, 1) G(, 2)", `"x \"y\\n\"" x1 2`},
		{"#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2) V(h)", "g ( 1 , 2 ) h ( )"},
		{"#define V(f, a...) f(0, ##a) x##a\nV(g) V(h, 1, 2)", "g ( 0 ) x h ( 0 , 1 , 2 ) x1 , 2"},
		{"#define V(...) x##__VA_ARGS__\n#define W(a, ...) a, ##__VA_ARGS__\nV(1, 2) W(3) W((4), 5)", "x1 , 2 3 ( 4 ) , 5"},
		{"#if 0\ndon't \"\n#endif\n#define U isn't\nok", "ok"},
		{"#define A A B\n#define B A\nA", "A A"},
		{"#if defined(X) || 2 * 3 == 6 && !0\nyes\n#else\nno\n#endif", "yes"},
		{"#ifdef X\n#if 1\na\n#elif 1\nb\n#endif\n#elif 0\nc\n#else\nd\n#endif", "d"},
		{"#if (1 ? 2 : 0) == 2 && 'a' == 97 && -1 < 0 && 7 % 4 == 3 && 1 << 3 == 010\nok\n#endif", "ok"},
		{"a\\\nb /* c\n */ d // e\n__LINE__", "ab d 4"},
		{"#define X 1\n#undef X\n#ifndef X\nX\n#endif", "X"},
		{"#define F() 5\nF() F(\n)", "5 5"},
		{"#define G(a, b, c) x a##b##c y\nG(,2,3) G(1,,3) G(,,3) G(,2,) G(,,) G(1,,)", "x 23 y x 13 y x 3 y x 2 y x y x 1 y"},
		{"#if 18446744073709551615UL > 4294967295UL && -1 > 0u && 9223372036854775808 > 0\nok\n#endif", "ok"},
		{"#if -1 >> 1 == -1 && (-1 + 0u) >> 63 == 1 && (1 ? -1 : 0u) > 0 && (1u < 2) - 2 < 0\nok\n#endif", "ok"},
		{"#if (0 && 1 / 0) || (1 || 1 % 0) && (1 ? 1 : 1 / 0)\nok\n#endif", "ok"},
	} {
		r := &reporter{}
		var got []string
		toks, _ := preprocess(r, &Config{}, "p.upc", c.src)
		for _, k := range toks {
			if k.kind != tEOF {
				got = append(got, k.text)
			}
		}
		if s := strings.Join(got, " "); s != c.want || len(r.errs) > 0 {
			t.Errorf("%q is\n%s, not\n%s %v", c.src, s, c.want, r.errs)
		}
	}
}

// TestExpansion: macros that expand for ever end, and files are as long as they are.
func TestExpansion(t *testing.T) {
	long := strings.Repeat("int f(int);\n", maxWork/4)
	if _, err := Parse(&Config{}, "l.upc", long); err != nil {
		t.Error(err)
	}
	for _, src := range []string{
		"#define F(a) a a\n" + strings.Repeat("F(", 40) + "1" + strings.Repeat(")", 40),
		"#define E\n#define F(a) a a\n" + strings.Repeat("F(", 40) + "E" + strings.Repeat(")", 40),
	} {
		if _, err := Parse(&Config{}, "l.upc", src); err == nil || !strings.Contains(err.Error(), "macro expansion too long") {
			t.Error(err)
		}
	}
}

// TestAutoType: an initialiser of __auto_type is read once, so that nested macros take no time; qualifiers may follow the word.
func TestAutoType(t *testing.T) {
	e := "k"
	for range 40 {
		e = "({ __auto_type a = (" + e + "); __auto_type const volatile b = 2.5; a < b ? a : b; })"
	}
	u, err := Parse(&Config{}, "auto.upc", "int main(void) { int k = 1; return "+e+"; }")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range u.Syms {
		if s.Name == "main" && len(s.Locals) != 81 {
			t.Errorf("%s has %d variables, not 81", s.Name, len(s.Locals))
		}
		for _, l := range s.Locals {
			if l.Name == "b" && !(l.Type.Kind == Double && l.Type.Const && l.Type.Volatile) {
				t.Errorf("a variable is '%v'", l.Type)
			}
		}
	}
}

// TestMayAlias: a program says by an attribute, or a flag, that its objects are written as what they are not.
func TestMayAlias(t *testing.T) {
	for source, c := range map[string]Config{
		"typedef long __attribute__((may_alias)) word;":     {},
		"typedef long __attribute__((__may_alias__)) word;": {},
		"typedef long word;":                                {Define: []string{"NDEBUG", MayAlias}},
	} {
		if u, err := Parse(&c, "alias.upc", source); err != nil || !u.MayAlias {
			t.Errorf("%s: %v", source, err)
		}
	}
	if u, err := Parse(&Config{}, "alias.upc", "typedef long word;"); err != nil || u.MayAlias {
		t.Error("a program without it", err)
	}
}

// TestTypes: declarations, and their types as they are printed.
func TestTypes(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"int *x[3];", "int *[3]"},
		{"int (*x)[3];", "int (*)[3]"},
		{"char *(*x)(int, char **);", "char *(*)(int, char **)"},
		{"shared [4] double x[8 * THREADS];", "shared [4] double[8*THREADS]"},
		{"shared [] int * shared x;", "shared [] int *shared"},
		{"typedef shared [2] int row[4]; shared [2] row *x;", "shared [2] int (*)[4]"},
		{"shared [*] int x[10 * THREADS];", "shared [10] int[10*THREADS]"},
		{"strict shared int x;", "strict shared int"},
		{"unsigned long long int x;", "unsigned long long"},
		{"const char *const x = 0;", "const char *const"},
		{"int x[] = {1, 2, [5] = 3, 4};", "int[7]"},
		{"char x[] = \"abc\";", "char[4]"},
		{"enum { A = 3, B }; int x[B][A + 1];", "int[4][4]"},
		{"struct s { char c; double d; short h; }; int x[sizeof(struct s)];", "int[24]"},
	} {
		u, err := Parse(&Config{}, "t.upc", c.src)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if s := u.Syms[len(u.Syms)-1]; s.Name != "x" || s.Type.String() != c.want {
			t.Errorf("%s: %s is %v, not %s", c.src, s.Name, s.Type, c.want)
		}
	}
}
