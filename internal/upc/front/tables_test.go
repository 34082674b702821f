package front

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// kindNames are types as the tables have them.
var kindNames = map[string]string{
	"b": "_Bool", "c": "char", "sc": "signed char", "uc": "unsigned char", "s": "short", "us": "unsigned short", "i": "int", "u": "unsigned int",
	"l": "long", "ul": "unsigned long", "ll": "long long", "ull": "unsigned long long", "f": "float", "d": "double",
}

// expressions are the entries of constants.txt: expressions, and what gcc makes of them.
func expressions(t *testing.T) (all [][2]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/constants.txt")
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case line[0] == '#':
			continue
		case line[0] == '@':
			args = f[1:]
			continue
		case len(f) != len(args)+1:
			t.Fatalf("%q has %d fields, not %d", line, len(f), len(args)+1)
		}
		for i, want := range f[1:] {
			if want != "~" {
				all = append(all, [2]string{strings.ReplaceAll(f[0], "@", args[i]), want})
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("constants.txt is empty")
	}
	return all
}

// TestConstants: constant expressions have the types and the values that they have with gcc.
func TestConstants(t *testing.T) {
	wrong := 0
	for _, c := range expressions(t) {
		kind, value, _ := strings.Cut(c[1], " ")
		u, err := Parse(&Config{}, "t.upc", "void f(void) { ("+c[0]+"); }")
		if err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		e := u.Syms[0].Body.List[0].L
		got := fmt.Sprint("no constant, of operation ", e.Op)
		switch {
		case e.Op == Num && e.Type.Unsigned:
			got = strconv.FormatUint(uint64(e.I), 10)
		case e.Op == Num:
			got = strconv.FormatInt(e.I, 10)
		case e.Op == FNum:
			got = strconv.FormatFloat(e.F, 'x', -1, 64)
			if f, err := strconv.ParseFloat(value, 64); err == nil && math.Float64bits(f) == math.Float64bits(e.F) || math.IsInf(f, 0) && f == e.F {
				got = value
			}
		}
		if e.Type.plain().String() != kindNames[kind] || got != value {
			if wrong++; wrong <= 40 {
				t.Errorf("%s is %v %s, not %s %s", c[0], e.Type, got, kindNames[kind], value)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d are wrong", wrong)
	}
}

// TestLayouts: structures and unions have the sizes that they have with gcc, and their members the places.
func TestLayouts(t *testing.T) {
	b, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if line[0] == '#' {
			continue
		}
		decl, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		kind, members, _ := strings.Cut(decl, " ")
		u, err := Parse(&Config{}, "t.upc", kind+" s {"+members+"} x;")
		if err != nil {
			t.Errorf("%s: %v", decl, err)
			continue
		}
		n++
		s := u.Syms[len(u.Syms)-1].Type
		got := fmt.Sprint(s.Size(), " ", s.Align())
		for _, f := range s.Info.Fields {
			if got += fmt.Sprintf(" %s=%d", f.Name, 8*f.Offset+f.Shift); f.Bits > 0 {
				got += fmt.Sprintf(":%d", f.Bits)
			}
		}
		if got != want {
			t.Errorf("%s {%s}: size, alignment and members are %s, not %s", kind, members, got, want)
		}
	}
	if n < 100 {
		t.Errorf("layouts.txt has %d structures", n)
	}
}
