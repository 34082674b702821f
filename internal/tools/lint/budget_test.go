package lint

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	write  = flag.Bool("write", false, "write the budget as the tree is, no higher than it was")
	reason = flag.String("reason", "", "with -write, why packages may have more lines than before")
)

// TestBudget writes the budget if it is told to; TestTree compares the tree with it.
func TestBudget(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	file := filepath.Join(root, BudgetFile)
	src, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var b Budget
	if err == nil {
		if b, err = ParseBudget(src); err != nil {
			t.Fatal(err)
		}
		if b.String() != string(src) {
			t.Errorf("%s is not sorted, or not as -write writes it", BudgetFile)
		}
		for m, l := range b {
			if m.Kind == "methods" && l.N <= mostMethods {
				t.Errorf("%s may have %d methods, which needs no line", m.Of, l.N)
			}
		}
	}
	if !*write {
		return
	}
	c := newChecker()
	if _, err := c.tree(os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	if b, err = b.Fit(c.has, *reason); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBudgetReasons compares the budget with that of the last commit and that of the one
// before: what is higher has a reason of its own.
func TestBudgetReasons(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", "..", BudgetFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, commit := range []string{"HEAD", "HEAD~1"} {
		cmd := exec.Command("git", "show", commit+":"+BudgetFile)
		cmd.Dir = filepath.Join("..", "..", "..")
		old, err := cmd.Output()
		if err != nil {
			t.Skipf("no budget of %s, or no git here: %v", commit, err)
		}
		before, err := ParseBudget(old)
		if err != nil {
			t.Fatalf("%s: %v", commit, err)
		}
		now, err := ParseBudget(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range now.Unreasoned(before) {
			t.Errorf("%s of %s are %d, and %d in %s, without a reason of this change (methods are never raised)", m.Kind, m.Of, now[m].N, before[m].N, commit)
		}
		src = old
	}
}

// TestBudgets: what a budget takes and what it refuses.
func TestBudgets(t *testing.T) {
	lines, methods := Measure{"lines", "am"}, Measure{"methods", "am.Endpoint"}
	old := Budget{lines: {100, ""}, methods: {70, ""}}
	for _, tc := range []struct {
		name   string
		has    Budget
		reason string
		want   string // the budget then, or a part of the error
		over   []Measure
	}{
		{"the same", Budget{lines: {N: 100}, methods: {N: 70}}, "", "lines\tam\t100\nmethods\tam.Endpoint\t70\n", nil},
		{"less", Budget{lines: {N: 49}, methods: {N: 65}}, "", "lines\tam\t50\nmethods\tam.Endpoint\t65\n", nil},
		{"a little less", Budget{lines: {N: 99}}, "", "lines\tam\t100\n", nil},
		{"more lines", Budget{lines: {N: 101}}, "", "am has 101 lines that are no tests, at most 100: say why by -reason", []Measure{lines}},
		{"more lines for a reason", Budget{lines: {N: 101}}, "tags need it", "lines\tam\t150\ttags need it\n", []Measure{lines}},
		{"more methods", Budget{methods: {N: 71}}, "why not", "am.Endpoint has 71 methods, at most 70", []Measure{methods}},
		{"another package", Budget{{"lines", "an"}: {N: 1}}, "", "an has 1 lines", []Measure{{"lines", "an"}}},
		{"another type", Budget{{"methods", "am.T"}: {N: 61}}, "why not", "am.T has 61 methods, at most 60", []Measure{{"methods", "am.T"}}},
	} {
		b, err := old.Fit(tc.has, tc.reason)
		if got := b.String(); err == nil && got != tc.want || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
		if over := old.Over(tc.has); !slices.Equal(over, tc.over) {
			t.Errorf("%s: over %v, want %v", tc.name, over, tc.over)
		}
		if err != nil {
			continue
		}
		read, err := ParseBudget([]byte(b.String()))
		if err != nil || read.String() != b.String() {
			t.Errorf("%s: %q is read as %q, %v", tc.name, b, read, err)
		}
	}
	raised := Budget{lines: {150, ""}, methods: {71, "why not"}}
	if got := raised.Unreasoned(old); !slices.Equal(got, []Measure{lines, methods}) {
		t.Errorf("raised without a reason: %v", got)
	}
	if got := (Budget{lines: {150, "tags need it"}, methods: {60, ""}}).Unreasoned(old); got != nil {
		t.Errorf("with a reason: %v", got)
	}
	if got := (Budget{lines: {200, "tags need it"}}).Unreasoned(Budget{lines: {150, "tags need it"}}); !slices.Equal(got, []Measure{lines}) {
		t.Errorf("with the reason of the raise before: %v", got)
	}
	if _, err := ParseBudget([]byte("lines am 3\n")); err == nil {
		t.Error("a line without tabs is taken for one")
	}
}

// TestSizes counts what is in a tree: lines of what is no test, and methods of a type once,
// in whichever file.
func TestSizes(t *testing.T) {
	const doc = "// Package p is here.\npackage p\n"
	var many strings.Builder
	for i := range mostMethods + 1 {
		many.WriteString("\nfunc (*t[A]) m" + strings.Repeat("m", i) + "() {}\n")
	}
	tree := fstest.MapFS{
		"am/a.go":            {Data: []byte(doc + many.String())},
		"am/b.go":            {Data: []byte("package p\n\nfunc (*t[A]) m() {}\n")},
		"am/a_test.go":       {Data: []byte("package p\n\nfunc (*u) m() {}\n")},
		"am/testdata/a/a.go": {Data: []byte("package q\n")},
		BudgetFile:           {Data: []byte("lines\tam\t120\n")},
	}
	problems, err := Check(tree)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	for i, want := range []string{"am: 127 lines, at most 120", "am.t: 61 methods, at most 60"} {
		if len(all) != 2 || !strings.HasPrefix(all[i], want) {
			t.Fatalf("%q, want %q", all, want)
		}
	}
}

// TestCircle: a circle of rooms is found, and what leads to one is none.
func TestCircle(t *testing.T) {
	const doc = "// Package p is here.\npackage p\n\nimport _ \"" + Module + "/"
	tree := fstest.MapFS{
		"internal/a/a.go":      {Data: []byte(doc + "internal/b/x\"\n")},
		"internal/b/x/a.go":    {Data: []byte(doc + "internal/c\"\n")},
		"internal/c/y/a.go":    {Data: []byte(doc + "internal/a\"\n")},
		"internal/d/a.go":      {Data: []byte(doc + "internal/a\"\n")},
		"internal/b/a_test.go": {Data: []byte("package p\n\nimport _ \"" + Module + "/internal/d\"\n")},
	}
	problems, err := Check(tree)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.File)
	}
	if want := []string{"internal/a/a.go", "internal/b/x/a.go", "internal/c/y/a.go"}; !slices.Equal(all, want) {
		t.Errorf("%v, want a circle in %v", problems, want)
	}
}
