package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/internal/tools/lint"
)

// TestList: there are as many mutants as promised, and their rows can be written.
func TestList(t *testing.T) {
	if n := len(mutants); n < 25 {
		t.Errorf("%d mutants; at least 25 are promised", n)
	}
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.name] || m.name == "" || strings.ContainsAny(m.name, " /|") {
			t.Errorf("name %q: used twice, or no name for a folder", m.name)
		}
		seen[m.name] = true
		if m.defect == "" || strings.Contains(m.defect, "|") {
			t.Errorf("%s: no description, or one with a bar", m.name)
		}
		if pkg, pattern, ok := strings.Cut(m.test, " "); ok && !hasTest(t, pkg, pattern) || !ok && m.test != "" {
			t.Errorf("%s: there is no test %q", m.name, m.test)
		}
		if len(m.places()) == 0 {
			t.Errorf("%s: no conduit", m.name)
		}
		for _, c := range m.on {
			if !hasSuite(t, c) {
				t.Errorf("%s: conduit %q has no suite", m.name, c)
			}
		}
		if m.old == m.new {
			t.Errorf("%s changes nothing", m.name)
		}
	}
}

// hasSuite reports whether a conduit's tests run the suite.
func hasSuite(t *testing.T, conduit string) bool {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(suiteOf(conduit)), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte("\nfunc TestConformance("))
	})
}

// hasTest reports whether a package has a test that pattern matches.
func hasTest(t *testing.T, pkg, pattern string) bool {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	pattern, _, _ = strings.Cut(pattern, "/") // of subtests
	want, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(testFunc.FindAllStringSubmatch(string(b), -1), func(m []string) bool { return want.MatchString(m[1]) })
	})
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestPatches: every patch still fits the tree, and what it makes is a program:
// it is parsed and its types are checked, which takes less than to compile it.
func TestPatches(t *testing.T) {
	testmain.Long(t)
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for tags, l := range byTags() {
		t.Run(tags, func(t *testing.T) { checkPatches(t, root, tags, l) })
	}
}

// byTags is the mutants by the tags of their builds.
func byTags() map[string][]mutant {
	all := map[string][]mutant{}
	for _, m := range mutants {
		all[m.tags] = append(all[m.tags], m)
	}
	return all
}

// checkPatches has the types of the mutants l be checked, which a build with tags has.
func checkPatches(t *testing.T, root, tags string, l []mutant) {
	pkgs := listPackages(t, root, tags, l)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		p := pkgs[name]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("no export data of %s", name)
		}
		return os.Open(p.Export)
	})
	parsed := map[string]*ast.File{}
	for _, m := range l {
		src, err := m.mutated(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if pkgs == nil {
			continue // it fits; whether it compiles is not known here
		}
		p := pkgs[path.Join(lint.Module, path.Dir(m.file))]
		if p == nil || !slices.Contains(p.GoFiles, path.Base(m.file)) {
			t.Errorf("%s: %s is in no package", m.name, m.file)
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			full := filepath.Join(p.Dir, name)
			var f *ast.File
			if name == path.Base(m.file) {
				f, err = parser.ParseFile(fset, m.name, src, parser.SkipObjectResolution)
			} else if f = parsed[full]; f == nil {
				f, err = parser.ParseFile(fset, full, nil, parser.SkipObjectResolution)
				parsed[full] = f
			}
			if err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			files = append(files, f)
		}
		conf := types.Config{Importer: imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}
		if _, err := conf.Check(p.ImportPath, fset, files, nil); err != nil {
			t.Errorf("%s does not compile: %v", m.name, err)
		}
	}
}

// goPackage is a package as go list prints it.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listPackages finds the packages that have mutants l, and all that they import,
// with export data; nil where what a build with tags needs is not installed.
func listPackages(t *testing.T, root, tags string, l []mutant) map[string]*goPackage {
	args := []string{"list", "-tags", tags, "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, m := range l {
		if dir := "./" + path.Dir(m.file); !slices.Contains(args, dir) {
			args = append(args, dir)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var diagnosis bytes.Buffer
	cmd.Stderr = &diagnosis
	out, err := cmd.Output()
	if err != nil && tags != "" {
		t.Logf("types are not checked: go list -tags %s: %v\n%s", tags, err, &diagnosis)
		return nil
	}
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &diagnosis)
	}
	pkgs := map[string]*goPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(goPackage)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[p.ImportPath] = p
	}
	return pkgs
}

var flagMutants = flag.Bool("mutants", false, "run the conformance suite on every mutant, which takes a quarter of an hour and more: go test -mutants -timeout 0")

// TestMutants: the suite notices every defect, and finds none without.
func TestMutants(t *testing.T) {
	if !*flagMutants {
		t.Skip("runs with -mutants")
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{root: root, scratch: t.TempDir(), limit: *flagLimit}
	if err := r.base(t.Context(), mutants); err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			o, err := r.try(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if t.Log(o); !o.caught() {
				t.Errorf("%s: the suite does not notice that %s", m.file, m.defect)
			}
		})
	}
}

// TestDocs: the page has a row for each mutant, in which each conduit catches it.
func TestDocs(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), tableBegin)
	table, _, ok := strings.Cut(rest, tableEnd)
	if !ok {
		t.Fatal("docs/mutants.md has no table")
	}
	rows := tableRows(table)
	for _, m := range mutants {
		cells := strings.Split(rows[m.name], " | ")
		switch {
		case rows[m.name] == "":
			t.Errorf("docs/mutants.md has no row for %s: run with -table docs/mutants.md", m.name)
		case len(cells) != 5 || cells[1] != m.defect || cells[2] != m.file || cells[3] != strings.Join(m.places(), ", "):
			t.Errorf("docs/mutants.md: the row of %s is out of date: %s", m.name, rows[m.name])
		case strings.Contains(cells[4], "nothing"):
			t.Errorf("docs/mutants.md says that %s survives", m.name)
		}
	}
}
