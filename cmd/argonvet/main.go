// Command argonvet finds what programs of package gas drop by mistake, beside what go vet finds:
//
//	go build -o argonvet github.com/argon-go/argon/cmd/argonvet
//	go vet -vettool=./argonvet ./...
//
// It reports the error that a call of argon's packages returns last and the statement does not look at; a Handle or a Future that such a
// call returns and nothing keeps, so that nothing can wait for what was begun; and results that are given to
// the blank identifier for such a Handle or Future; and the end of a span, as in defer n.Span("step"), which begins one at the end. An error that is meant to be dropped is assigned to _; those of deferred calls are left alone.
package main

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

const module = "github.com/argon-go/argon"

// dropped is the analyzer.
var dropped = &analysis.Analyzer{
	Name:     "argondropped",
	Doc:      "report errors, Handles and Futures of argon's calls that are dropped",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

func main() { unitchecker.Main(dropped) }

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	kinds := []ast.Node{(*ast.DeferStmt)(nil), (*ast.ExprStmt)(nil), (*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil)}
	in.Preorder(kinds, func(node ast.Node) {
		switch s := node.(type) {
		case *ast.DeferStmt:
			checkSpan(pass, s.Call)
		case *ast.ExprStmt:
			checkSpan(pass, s.X)
			checkCall(pass, s.X, nil)
		case *ast.AssignStmt:
			if len(s.Rhs) == 1 {
				checkCall(pass, s.Rhs[0], s.Lhs)
			}
		case *ast.ValueSpec:
			if len(s.Values) == 1 {
				var names []ast.Expr
				for _, n := range s.Names {
					names = append(names, n)
				}
				checkCall(pass, s.Values[0], names)
			}
		}
	})
	return nil, nil
}

// checkSpan reports x, a call in a statement, if it begins a span that nothing ends.
func checkSpan(pass *analysis.Pass, x ast.Expr) {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return
	}
	if fn := typeutil.Callee(pass.TypesInfo, call); fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == module+"/gas" && fn.Name() == "Span" {
		pass.Reportf(call.Pos(), "the end of the span is dropped: call what Span returns, as in defer n.Span(name)()")
	}
}

// checkCall reports what x, a call in a statement, returns and to does not keep; to is nil if that keeps nothing.
func checkCall(pass *analysis.Pass, x ast.Expr, to []ast.Expr) {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return
	}
	fn := typeutil.Callee(pass.TypesInfo, call)
	if fn == nil || fn.Pkg() == nil || !ours(fn.Pkg().Path()) {
		return
	}
	sig, ok := pass.TypesInfo.TypeOf(call.Fun).(*types.Signature) // of a generic function as it is called
	if !ok {
		return
	}
	results := sig.Results()
	for i := range results.Len() {
		name, kept := begun(results.At(i).Type()), to != nil && i < len(to) && !blank(to[i])
		switch {
		case name != "" && !kept:
			pass.Reportf(call.Pos(), "the %s that %s returns is dropped: nothing can wait for what it begins", name, fn.Name())
			return
		case to == nil && i == results.Len()-1 && isError(results.At(i).Type()):
			pass.Reportf(call.Pos(), "the error that %s returns is dropped", fn.Name())
		}
	}
}

// ours reports whether a package is argon's.
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// begun is the name of a type that stands for an operation under way; "" for others.
func begun(t types.Type) string {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || !ours(n.Obj().Pkg().Path()) {
		return ""
	}
	switch name := n.Obj().Name(); name {
	case "Handle", "Future":
		return name
	}
	return ""
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// blank reports whether x is the blank identifier.
func blank(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "_"
}
