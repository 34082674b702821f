package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/upc/front"
)

// typing checks the types of Go that the compiler has made, without building it.
type typing struct {
	fset     *token.FileSet
	packages types.Importer
}

func newTyping(t *testing.T) *typing {
	t.Helper()
	if testing.Short() {
		t.Skip("builds package rt")
	}
	c := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", module+"/upc/rt", module+"/upc/libc", "math/cmplx")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exported[name] = file
	}
	fset := token.NewFileSet()
	return &typing{fset, importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exported[name]) })}
}

// check compiles files and checks the types of what comes of it. The error is the compiler's.
func (y *typing) check(t *testing.T, name string, o options) error {
	t.Helper()
	files, _, err := compile(&o)
	if err != nil {
		return err
	}
	var list []*ast.File
	for n, f := range files {
		a, err := parser.ParseFile(y.fset, name+"/"+n, f.Text, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		list = append(list, a)
	}
	c := types.Config{Importer: y.packages, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			p := y.fset.Position(e.Pos)
			line := bytes.Split(files[filepath.Base(p.Filename)].Text, []byte("\n"))[p.Line-1]
			t.Errorf("%s: Go does not take this, at %v: %s\n%s", name, p, e.Msg, line)
		}
	}}
	c.Check("main", y.fset, list, nil) // Error has reported what is wrong
	return nil
}

// TestTyped: Go takes what the compiler makes of each program that it does not refuse: those of testdata, the parts of
// accepted.txt, of which it refuses none, and those of errors.txt of which it only warns.
func TestTyped(t *testing.T) {
	y := newTyping(t)
	for _, pattern := range []string{"testdata/*.upc", "testdata/clauses/*.upc", "testdata/wrong/*.upc", "testdata/speed/*.upc"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			all := []string{f}
			if pattern == "testdata/*.upc" {
				all = sources(t, strings.TrimSuffix(filepath.Base(f), ".upc"))
			}
			for _, n := range []int{0, threads} {
				if err := y.check(t, f, options{files: all, threads: n}); err != nil {
					t.Errorf("%s: %v", f, err)
				}
			}
		}
	}
	for _, file := range []string{"testdata/accepted.txt", "testdata/errors.txt"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, src := range strings.Split(string(b), "// ----\n")[1:] {
			o := options{files: []string{filepath.Join(t.TempDir(), "e.upc")}}
			if err := os.WriteFile(o.files[0], []byte(src), 0o666); err != nil {
				t.Fatal(err)
			}
			err := y.check(t, src, o)
			if file == "testdata/accepted.txt" && err != nil {
				t.Errorf("is refused: %v\n%s", err, src)
			} else if err != nil && !errors.As(err, new(front.Errors)) {
				t.Errorf("%v\n%s", err, src)
			}
		}
	}
}
