package gas

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostNames is how many functions, methods and types this package and those in its folder
// export, all together. A change that adds one takes another away, or says here why not.
// Of these, 14 are package window's, which has the calls of MPI-2, and 3 of transfers that are prepared. Ptr.GetSignal tells
// an owner that it was read, which nothing else does. 5 are package gastest's, for tests of programs.
// With and Context have the waits of package context in place of a second form of each; Team.Must is Node.Must by a Group.
// The last 7 are what programs wrote themselves: Pool (4), Array.Blocks, AccumulateNBI (which was package window's) and Logger.
const mostNames = 349 + 14 + 3 + 1 + 5 + 3 + 7

// TestNames counts what users have to know.
func TestNames(t *testing.T) {
	count := map[string]int{}
	all := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		k := names(f)
		count[filepath.Dir(path)] += k
		all += k
		return nil
	})
	if err != nil || count["."] == 0 || count["dist"] == 0 {
		t.Fatalf("%v: %v", count, err)
	}
	if all > mostNames {
		t.Errorf("%d exported functions, methods and types, by folder %v; at most %d", all, count, mostNames)
	}
	t.Logf("%d of %d: %v", all, mostNames, count)
}

// names is how many functions, methods of exported types and types f exports.
func names(f *ast.File) (k int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(typeOf(d.Recv.List[0].Type))) {
				k++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
					k++
				}
			}
		}
	}
	return k
}

// typeOf is the name of a receiver's type.
func typeOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeOf(x.X)
	case *ast.IndexExpr:
		return typeOf(x.X)
	case *ast.IndexListExpr:
		return typeOf(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
