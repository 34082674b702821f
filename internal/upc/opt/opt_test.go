package opt

import (
	"os"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/upc/front"
)

// prototypes are the functions that the headers of the compiler declare.
func prototypes(t *testing.T) map[string]*front.Type {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"", "sys/"} {
		files, err := os.ReadDir("../front/include/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), ".h") && f.Name() != "upc_strict.h" {
				b.WriteString("#include <" + dir + f.Name() + ">\n")
			}
		}
	}
	u, err := front.Parse(&front.Config{}, "headers.upc", b.String())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*front.Type{}
	for _, s := range u.Syms {
		if s.Header && !s.Defined && (s.Storage == front.Function || s.Storage == front.Global) {
			all[s.Name] = s.Type
		}
	}
	return all
}

// TestLibraryEffects: each function and variable of a header has a row, and each row a declaration; a function's effects are not less than its
// prototype says: what takes a pointer to constant memory reads it, what takes another one writes there, and what
// takes a function calls it.
func TestLibraryEffects(t *testing.T) {
	all := prototypes(t)
	for name := range library {
		if all[name] == nil {
			t.Errorf("library.txt has %s, which no header declares", name)
		}
	}
	// Their pointers are streams, of which they only look at the state.
	looks := map[string]bool{"feof": true, "ferror": true, "ftell": true, "fileno": true}
	for name, f := range all {
		r, ok := library[name]
		if !ok {
			t.Errorf("library.txt has no row for %s", name)
			continue
		}
		for i, p := range f.Params {
			least := Effects(0)
			switch {
			case p.Kind != front.Pointer:
			case p.Elem.Kind == front.Func:
				least = Calls
			case p.ToShared():
			case p.Elem.Const || looks[name]:
				least = Reads
			default:
				least = Writes
			}
			if r.Effects&least != least {
				t.Errorf("%s: argument %d, '%v', has effects that its row does not", name, i+1, p)
			}
		}
		if r.Effects == 0 && f.Kind == front.Func && f.Elem.Kind == front.Void {
			t.Errorf("%s is pure and has no value", name)
		}
	}
}

// loopOf is the last statement of a function.
func loopOf(t *testing.T, source string) *front.Node {
	t.Helper()
	u, err := front.Parse(&front.Config{}, "loop.upc", `#include <upc_relaxed.h>
#include <stdlib.h>
#include <string.h>
shared int cyclic[64*THREADS]; shared [] int whole[64]; shared [4] int blocks[64*THREADS];
int n, list[64]; struct { double m; } s; volatile int v; int f(int); int *q; char text[8];
void g(int k, shared [] int *p) { int i, j; `+source+` }`)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	list := u.Syms[len(u.Syms)-1].Body.List
	return list[len(list)-1]
}

// TestStrips: a loop's elements of windows and spreads are in strips if its variable counts up to a bound that stays the same.
func TestStrips(t *testing.T) {
	o := Options{}
	for source, want := range map[string]int{
		"for (i = 0; i < n; i++) whole[i] = 1;":                               1,
		"for (i = 0; i <= k + 3; i += 1) whole[i] = whole[i + 2];":            1,
		"for (i = 0; i < n; i++) whole[i] = strlen(text);":                    1,
		"for (i = 0; i < n; i++) whole[i] = abs(i);":                          1,
		"for (i = 0; i < n; i++) { whole[i] = 1; f(i); }":                     0, // may change n
		"for (i = 0; i < n; i++) { whole[i] = 1; memset(text, 0, 8); }":       0,
		"for (i = 0; i < n; i++) { whole[i] = 1; *q = 2; }":                   0,
		"for (i = 0; i < n; i++) { whole[i] = 1; n--; }":                      0,
		"for (i = 0; i < v; i++) whole[i] = 1;":                               0,
		"for (i = 0; i < k; i++) { whole[i] = 1; f(i); }":                     1,
		"for (i = 0; i < k; i++) { whole[i] = 1; i += k; }":                   0,
		"for (i = 0; i < k; i += 2) whole[i] = 1;":                            0,
		"for (i = k; i > 0; i--) whole[i] = 1;":                               0,
		"for (i = 0; i < k; i++) { whole[i] = 1; if (k) break; }":             0,
		"for (i = 0; i < k; i++) { whole[i] = 1; for (j = 0; j < k; j++) ; }": 0,
		"for (i = 0; i < k; i++) whole[2 * i] = 1;":                           0,
		"for (i = 0; i < k; i++) cyclic[i] = 1;":                              1,
		"for (i = 0; i < k; i++) cyclic[i + j + 1] = cyclic[1 + i + j - 3];":  1,
		"for (i = 0; i < k; i++) cyclic[i + j] = cyclic[i + k];":              2,
		"for (i = 0; i < k; i++) cyclic[i - j] = 1;":                          1,
		"for (i = 0; i < k; i++) cyclic[j - i] = 1;":                          0,
		"for (i = 0; i < k; i++) { cyclic[i + j] = 1; j++; }":                 0,
		"for (i = 0; i < k; i++) cyclic[i + list[0]] = 1;":                    0,
		"for (i = 0; i < k; i++) cyclic[i + (char)i] = 1;":                    0,
		"for (i = 0; i < k; i++) cyclic[i + n] = 1;":                          1,
		"for (i = 0; i < k; i++) { cyclic[i + n] = 1; f(i); }":                0,
		"for (i = 0; i < k; i++) p[i] = p[i - 1] + p[i + 1];":                 1,
		"{ unsigned u; for (u = 0; u < 9u; u++) whole[u] = 1; }":              1,
		"{ unsigned u; for (u = 0; u <= k; u++) whole[u] = 1; }":              0,
		"{ unsigned u; for (u = 1; u < k; u++) whole[u - 1] = 1; }":           1,
		"{ unsigned u; for (u = 0; u < k; u++) whole[u - 1] = 1; }":           0,
		"{ unsigned u, w; for (u = 0; u < 9u; u++) cyclic[u + w] = 1; }":      0,
	} {
		n := loopOf(t, source)
		if n.Op == front.Block {
			n = n.List[len(n.List)-1]
		}
		var all []*Strip
		if i, ok := o.Counted(n); ok {
			all = o.Strips(n.R, i, ChangesOf(n), func(string) bool { return true })
		}
		if len(all) != want {
			t.Errorf("%s: %d strips, not %d", source, len(all), want)
		}
	}
}

// TestAhead: gets are done ahead if nothing in the loop synchronises, jumps or changes what they read or where.
func TestAhead(t *testing.T) {
	for source, want := range map[string]string{
		"for (i = 0; i < k; i++) s.m += cyclic[list[i]];":                       "0",
		"for (i = 0; i < k; i++) s.m += cyclic[cyclic[i]];":                     "01",
		"for (i = 0; i < k; i++) { j = list[i]; s.m += cyclic[j]; }":            "0",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + upc_threadof(&cyclic[i]);":  "0",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + upc_addrfield(&cyclic[i]);": "0",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + upc_phaseof(&blocks[i]);":   "0",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + abs(i);":                    "0",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + rand();":                    "none",
		"for (i = 0; i < k; i++) s.m += cyclic[i] + strlen(text);":              "none", // of memory that is written, perhaps
		"for (i = 0; i < k; i++) { s.m += cyclic[i]; upc_fence; }":              "none",
		"for (i = 0; i < k; i++) { if (j) break; s.m += cyclic[i]; }":           "none",
		"for (i = 0; i < k; i++) { s.m += cyclic[j]; j = cyclic[i]; }":          "0", // not that at j
		"for (i = 0; i < k; i++) blocks[i] = cyclic[i];":                        "0",
		"for (i = 0; i < k; i++) cyclic[i] = cyclic[i + 1];":                    "", // puts only: they may be what is read
		"for (i = 0; i < k; i++) if (j) s.m += cyclic[i];":                      "none",
		"for (i = 0; i < k; i++) list[i + 1] = cyclic[list[i]];":                "none",
	} {
		a, ok := AheadOf(loopOf(t, source), func(*front.Node) bool { return false }, nil, false)
		got := "none"
		if ok {
			got = ""
			for _, g := range a.Gets {
				got += string(rune('0' + g.Stage))
			}
		}
		if got != want {
			t.Errorf("%s: stages of gets %q, not %q", source, got, want)
		}
	}
}
