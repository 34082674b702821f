package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// BudgetFile has the sizes that packages and types may have, relative to the root. Its lines
// are
//
//	lines    FOLDER        how many lines that are no tests    why it was raised
//	methods  FOLDER.TYPE   how many methods, if more than 60
//
// with tabs between. `go test ./internal/tools/lint -run TestBudget -write` lowers what is
// more than there is, and with -reason raises lines; methods are never raised.
const BudgetFile = "internal/tools/lint/budget.txt"

const (
	mostMethods = 60 // of a type that the budget does not list
	step        = 50 // lines are rounded up to a multiple of it, so that a small change is none of the budget
)

// A Budget has the limits of the tree, or its counts.
type Budget map[Measure]Limit

// A Measure names a count: "lines" of a folder, or "methods" of a type.
type Measure struct{ Kind, Of string }

// A Limit is a count, and why it was raised, "" if it never was.
type Limit struct {
	N   int
	Why string
}

// ParseBudget reads what Budget.String has written.
func ParseBudget(src []byte) (Budget, error) {
	b := Budget{}
	for line := range strings.Lines(string(src)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4)
		if len(f) < 3 || f[0] != "lines" && f[0] != "methods" {
			return nil, fmt.Errorf("lint: %q is no line of a budget", line)
		}
		n, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, fmt.Errorf("lint: %q is no line of a budget: %v", line, err)
		}
		l := Limit{N: n}
		if len(f) == 4 {
			l.Why = f[3]
		}
		b[Measure{f[0], f[1]}] = l
	}
	return b, nil
}

// sorted lists what b has, in the order of the file.
func (b Budget) sorted() []Measure {
	return slices.SortedFunc(maps.Keys(b), func(x, y Measure) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Of, y.Of))
	})
}

// String is b as the file has it.
func (b Budget) String() string {
	var s strings.Builder
	for _, m := range b.sorted() {
		fmt.Fprintf(&s, "%s\t%s\t%d", m.Kind, m.Of, b[m].N)
		if b[m].Why != "" {
			fmt.Fprintf(&s, "\t%s", b[m].Why)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// Over lists what there is more of in has than b allows.
func (b Budget) Over(has Budget) (all []Measure) {
	for _, m := range has.sorted() {
		if has[m].N > b[m].N {
			all = append(all, m)
		}
	}
	return all
}

// Fit is b lowered to what there is, and raised, if reason is not "", where lines are over.
// The error names what cannot be raised. A nil b takes all that there is.
func (b Budget) Fit(has Budget, reason string) (Budget, error) {
	fitted := Budget{}
	for m, l := range has {
		n := l.N
		if m.Kind == "lines" {
			n = (n + step - 1) / step * step
		}
		old, listed := b[m]
		switch {
		case b == nil, listed && old.N >= l.N:
			fitted[m] = Limit{N: n, Why: old.Why}
			if listed {
				fitted[m] = Limit{min(n, old.N), old.Why}
			}
		case m.Kind == "methods":
			return nil, fmt.Errorf("lint: %s has %d methods, at most %d: methods are not raised, but the type divided", m.Of, l.N, max(old.N, mostMethods))
		case reason == "":
			return nil, fmt.Errorf("lint: %s has %d lines that are no tests, at most %d: say why by -reason", m.Of, l.N, old.N)
		default:
			fitted[m] = Limit{n, reason}
		}
	}
	return fitted, nil
}

// Unreasoned lists what is higher in b than before without another reason than before, and
// methods that are higher at all.
func (b Budget) Unreasoned(before Budget) (all []Measure) {
	for _, m := range b.sorted() {
		if l, old := b[m], before[m]; l.N > old.N && (m.Kind == "methods" || l.Why == "" || l.Why == old.Why) {
			all = append(all, m)
		}
	}
	return all
}

// measure counts the lines of a file that is no test, and the methods that it has.
func (c *checker) measure(dir string, src []byte, f *ast.File) {
	of := Measure{"lines", dir}
	c.has[of] = Limit{N: c.has[of].N + bytes.Count(src, []byte("\n"))}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
			t := dir + "." + receiver(d)
			if c.methods[t] == nil {
				c.methods[t] = map[string]bool{}
			}
			c.methods[t][d.Name.Name] = true // once, although platforms have their own
		}
	}
}

// checkBudget compares the tree with its budget; a tree without one has none.
func (c *checker) checkBudget(fsys fs.FS) {
	for t, names := range c.methods {
		if len(names) > mostMethods {
			c.has[Measure{"methods", t}] = Limit{N: len(names)}
		}
	}
	src, err := fs.ReadFile(fsys, BudgetFile)
	if err != nil {
		return
	}
	b, err := ParseBudget(src)
	if err != nil {
		c.add(BudgetFile, 0, "%v", err)
		return
	}
	for _, m := range b.Over(c.has) {
		most := b[m].N
		if m.Kind == "methods" {
			most = max(most, mostMethods)
		}
		c.add(m.Of, 0, "%d %s, at most %d (%s: take away, or go test ./internal/tools/lint -run TestBudget -write -reason WHY)",
			c.has[m].N, m.Kind, most, BudgetFile)
	}
}

// roomOf is the part of the tree that a folder belongs to: one at the top, or one of internal.
func roomOf(dir string) string {
	first, rest, _ := strings.Cut(dir, "/")
	if first == "internal" {
		second, _, _ := strings.Cut(rest, "/")
		return first + "/" + second
	}
	return first
}

// An arrow is an import from one room to another.
type arrow struct{ from, to string }

// checkRooms finds imports that run up: those of a circle of rooms.
func (c *checker) checkRooms() {
	reaches := map[arrow]bool{}
	var walk func(from, at string)
	walk = func(from, at string) {
		for a := range c.arrows {
			if a.from == at && !reaches[arrow{from, a.to}] {
				reaches[arrow{from, a.to}] = true
				walk(from, a.to)
			}
		}
	}
	for a := range c.arrows {
		walk(a.from, a.from)
	}
	for a, where := range c.arrows {
		if reaches[arrow{a.to, a.from}] {
			c.add(where.File, where.Line, "%s imports %s, which imports it in turn, or what it imports does: rooms have no circles", a.from, a.to)
		}
	}
}
