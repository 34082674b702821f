// Package lint checks the rules of the source tree that a compiler does not:
// which package may import which, where unsafe and system calls may stand, that
// what is exported is documented, that comments and names say which thing does what,
// that files are formatted, and that nothing in the tree depends on the machine it was
// written on. Its test runs them on the
// whole tree, so that `go test ./...` is all there is to remember.
//
// [Check] reads files of all platforms and build tags, and needs neither the
// network nor a build.
package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the tree's root.
const Module = "github.com/argon-go/argon"

// A Problem is one place where a rule is broken.
type Problem struct {
	File string // slash-separated, relative to the root; a folder for a whole package
	Line int    // from 1; 0 for the whole file
	Text string
}

// String is the form that editors and terminals link to the line.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// A layer of the tree. A package imports packages of lower layers only.
type layer int

const (
	leaf      layer = iota // internal/*: what any package may use
	segments               // segment
	contract               // conduits
	adapter                // conduits/adapt: what transports leave out
	conduit                // conduits/*
	composed               // conduits/hybrid/*: conduits that are made of others
	starter                // conduits/boot: what runs a rank's function
	tools                  // internal/launch: starting jobs, on any conduit that is registered
	core                   // am
	caches                 // firehose
	services               // extended, barrier
	user                   // gas
	forms                  // gas/*: made of what gas exports
	languages              // upc/*: runtimes of compilers, which start ranks by gas
	kit                    // test*, *test: what tests share, and packages of tests alone
	command                // launch: gasrun as a function
	program                // cmd/*, examples/*
)

// layerOf places the package in folder dir. Programs and packages at places
// that have not been thought of come last: everything is at hand for them, and
// no package imports them.
func layerOf(dir string) layer {
	if isKit(dir) {
		return kit
	}
	switch dir {
	case "segment":
		return segments
	case "conduits":
		return contract
	case "conduits/adapt", "conduits/traffic":
		return adapter
	case "conduits/hybrid/shmudp", "conduits/hybrid/shmofi", "conduits/sim/replay":
		return composed
	case "conduits/boot":
		return starter
	case "am":
		return core
	case "firehose":
		return caches
	case "extended", "barrier":
		return services
	case "gas":
		return user
	case "internal/launch":
		return tools
	case "launch":
		return command
	}
	switch first, _, _ := strings.Cut(dir, "/"); first {
	case "conduits":
		return conduit
	case "internal":
		return leaf
	case "extended":
		return services
	case "gas":
		return forms
	case "upc":
		return languages
	}
	return program
}

// isKit reports whether the package in dir is for tests, which its name says, as the
// standard library's nettest and fstest do, or its folder, conformance: it may use all layers,
// and only tests and other kits import it.
func isKit(dir string) bool {
	if dir == "conformance" || strings.HasPrefix(dir, "conformance/") {
		return true
	}
	name := path.Base(dir)
	return strings.HasPrefix(name, "test") || strings.HasSuffix(name, "test")
}

// mayImport says why a file of the package in dir may not import the package in
// target, or "". blank is an import for its side effect alone.
func mayImport(dir, target string, test, blank bool) string {
	from, to := layerOf(dir), layerOf(target)
	switch {
	case dir == target:
		return ""
	case to == program:
		return "nothing imports a program"
	case to == command && from != program:
		return "starting jobs is the launcher's business"
	case to == kit:
		if test || from == kit {
			return ""
		}
		return "only tests import what is for tests"
	case from >= kit:
		return "" // everything is at hand for them
	case strings.HasPrefix(target, dir+"/") && from == to:
		return "" // a package may be made of others in its own folder
	case test && (to == conduit || to == composed || to == tools):
		return "" // a test opens a job to run on
	case test && (from == conduit || from == composed || from == starter) && to != program:
		return "" // a conduit's tests may run the layers above on it
	case to == starter && from != user && !test:
		return "the layers are given an endpoint: programs and gas start ranks"
	case test && from == services && to == services, test && from == segments && to == contract:
		return "" // a test may have to wait for all ranks, or reach memory as they do
	case (to == conduit || to == composed) && from > composed:
		if from == starter && blank {
			return "" // fills the registry with the conduits there are
		}
		if from == tools {
			return "the launcher knows a conduit by what it registers (conduits.Launch)"
		}
		return "nothing above conduits/ knows which conduit runs"
	case to == tools && from > tools:
		return "starting jobs is the launcher's business"
	case from == to && from != leaf && from != tools:
		return "packages of one layer do not import each other"
	case to > from:
		return "imports point down: gas, then extended and barrier, firehose, am, conduits, segment, internal"
	}
	return ""
}

var (
	// endpoint is the type of an endpoint that may be of any conduit.
	endpoint   = regexp.MustCompile(`^conduits\.(Near|Far)?Endpoint$`)
	unsafeName = regexp.MustCompile(`_unsafe(_[a-z0-9]+)*\.go$`)

	// The patterns are put together here so that they do not match themselves.
	machine = regexp.MustCompile(strings.Join([]string{
		`(^|[^\w.~])/` + `(root|work|farm)/`,
		`\b` + `GO` + `(PROXY|SUMDB|NOSUMDB|NOPROXY|PRIVATE|INSECURE|NOSUMCHECK)\b`,
		`proxy\.` + `golang`,
		`(?i)\b(https?|all)` + `_proxy\b`,
		`(?i)index-` + `url`,
	}, "|"))

	persons = regexp.MustCompile(`(?i)\b(who|whom|whoever|somebody|someone|anybody|anyone|nobody|everybody|everyone)\b|\bin vain\b`)

	// vague are names of functions that have stood for a dozen things each. Of their
	// kin begin starts an operation, take removes from a queue, leave is a rank's.
	vague = []string{"settle", "settled", "end"}

	clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
)

// Check returns what is wrong in the tree under fsys, the module's root, in
// order of files and lines. The error is one of reading.
func Check(fsys fs.FS) ([]Problem, error) {
	return newChecker().tree(fsys)
}

func newChecker() *checker {
	return &checker{
		fset: token.NewFileSet(), documented: map[string]bool{},
		calls: map[string]*calls{}, hangs: map[string]string{}, watched: map[string]bool{},
		has: Budget{}, methods: map[string]map[string]bool{}, arrows: map[arrow]Problem{}, wraps: map[string]Problem{},
	}
}

// tree is Check.
func (c *checker) tree(fsys fs.FS) ([]Problem, error) {
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "out"}, name):
			return fs.SkipDir
		case !d.Type().IsRegular(), name == ".git": // a file in a further worktree
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		c.text(name, src)
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			c.source(name, src)
		}
		return nil
	})
	for dir, ok := range c.documented {
		if !ok {
			c.add(dir, 0, "the package has no doc comment")
		}
	}
	for dir, name := range c.hangs {
		if !c.watched[dir] {
			c.add(name, 0, "tests that start jobs or goroutines need a TestMain that calls testmain.Run or testjob.Main, for the watchdog")
		}
	}
	c.checkCollective()
	c.checkRooms()
	for t, where := range c.wraps {
		if !c.methods[t]["Abilities"] {
			c.add(where.File, where.Line, "%s embeds an Endpoint, and hides what that can do besides: make it a conduits.Wrapping", t)
		}
	}
	c.checkBudget(fsys)
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return c.problems, err
}

type checker struct {
	fset       *token.FileSet
	problems   []Problem
	documented map[string]bool // by folder: a file of the package has a doc comment

	calls map[string]*calls // of package gas, by function

	hangs   map[string]string // by folder: a file whose tests start jobs or goroutines
	watched map[string]bool   // by folder: the tests are run by package testmain

	has     Budget
	methods map[string]map[string]bool // names, by FOLDER.TYPE
	arrows  map[arrow]Problem          // an import for each
	wraps   map[string]Problem         // types that embed an endpoint, by FOLDER.TYPE
}

func (c *checker) add(name string, line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{name, line, fmt.Sprintf(format, args...)})
}

// text checks a file of any kind.
func (c *checker) text(name string, src []byte) {
	if bytes.IndexByte(src, 0) >= 0 {
		return // not text
	}
	for i, line := range bytes.Split(src, []byte("\n")) {
		if m := machine.Find(line); m != nil {
			c.add(name, i+1, "%q ties the tree to one machine or network", m)
		}
	}
}

// source checks a Go file.
func (c *checker) source(name string, src []byte) {
	f, err := parser.ParseFile(c.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		c.add(name, 0, "%v", err)
		return
	}
	if formatted, err := format.Source(src); err != nil || !bytes.Equal(formatted, src) {
		c.add(name, 0, "not formatted with gofmt")
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	c.comments(name, f)
	c.imports(name, dir, test, f)
	if !test && dir != "internal/sys" {
		c.limits(name, f)
	}
	if test {
		c.watchdog(name, dir, f)
		return
	}
	c.measure(dir, src, f)
	c.wrapping(name, dir, f)
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && slices.Contains(vague, d.Name.Name) {
			c.add(name, c.fset.Position(d.Pos()).Line, "%s says too little: flush, drain, finish, release, unmap, ...", d.Name.Name)
		}
	}
	if !slices.ContainsFunc(f.Comments, isBuildIgnore) {
		c.documented[dir] = c.documented[dir] || f.Doc.Text() != ""
	}
	if f.Name.Name != "main" {
		c.exported(name, f)
	}
	l := layerOf(dir)
	switch l {
	case segments, core, services, languages:
		c.time(name, f, true)
	case starter:
		c.time(name, f, false)
	case user:
		c.time(name, f, false)
		c.collective(name, f)
	}
	switch l {
	case core, services, user:
		c.order(name, f)
	}
	switch l {
	case segments, contract, adapter, conduit, composed, core, caches, services, user, forms, languages:
		c.copies(name, f)
	}
}

// wrapping notes types that embed an endpoint of any conduit.
func (c *checker) wrapping(name, dir string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		t, _ := n.(*ast.TypeSpec)
		if t == nil {
			return true
		}
		s, is := t.Type.(*ast.StructType)
		if is && slices.ContainsFunc(s.Fields.List, func(l *ast.Field) bool { return len(l.Names) == 0 && endpoint.MatchString(types.ExprString(l.Type)) }) {
			c.wraps[dir+"."+t.Name.Name] = Problem{File: name, Line: c.fset.Position(t.Pos()).Line}
		}
		return false
	})
}

// isBuildIgnore reports whether a comment makes its file belong to no package.
func isBuildIgnore(g *ast.CommentGroup) bool {
	return len(g.List) > 0 && g.List[0].Text == "//go:build ignore"
}

// comments sees that sentences are about things of the program: the poller, the owner,
// the sender. Indented lines are code or tables.
func (c *checker) comments(name string, f *ast.File) {
	for _, g := range f.Comments {
		for _, l := range g.List {
			line := c.fset.Position(l.Pos()).Line
			for i, text := range strings.Split(l.Text, "\n") {
				if strings.HasPrefix(text, "//\t") {
					continue
				}
				if w := persons.FindString(text); w != "" {
					c.add(name, line+i, "%q in a comment: name the thing of the program that acts", w)
				}
			}
		}
	}
}

func (c *checker) imports(name, dir string, test bool, f *ast.File) {
	for _, spec := range f.Imports {
		line := c.fset.Position(spec.Pos()).Line
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			c.add(name, line, "import %s: %v", spec.Path.Value, err)
			continue
		}
		switch {
		case target == "unsafe" && !unsafeName.MatchString(name):
			c.add(name, line, "unsafe outside a file named *_unsafe.go")
		case target == "golang.org/x/sys/unix" && dir != "internal/sys":
			c.add(name, line, "only internal/sys imports %s", target)
		case strings.HasPrefix(target, "github.com/puzpuzpuz/xsync/") && dir != "internal/conc":
			c.add(name, line, "only internal/conc imports %s", target)
		case (target == "gonum.org/v1/plot" || strings.HasPrefix(target, "gonum.org/v1/plot/")) && dir != "cmd/gasbench/plot":
			c.add(name, line, "only cmd/gasbench/plot, a module of its own, draws: what imports the runtime gets no %s", target)
		case strings.HasPrefix(target, Module+"/"):
			local := strings.TrimPrefix(target, Module+"/")
			blank := spec.Name != nil && spec.Name.Name == "_"
			if a := (arrow{roomOf(dir), roomOf(local)}); !test && a.from != a.to {
				c.arrows[a] = Problem{File: name, Line: line}
			}
			if strings.HasSuffix(name, "/example_test.go") {
				continue // an example may show a package with those above it
			}
			if why := mayImport(dir, local, test, blank); why != "" {
				c.add(name, line, "%s must not import %s: %s", dir, local, why)
			}
		}
	}
}

// limits checks that a file leaves the asking for the system's limits to internal/sys,
// which knows all of them and what to call them.
func (c *checker) limits(name string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			if ok && x.Name == "syscall" && slices.Contains([]string{"Getrlimit", "Statfs", "Fstatfs", "Sysinfo"}, s.Sel.Name) {
				c.add(name, c.fset.Position(n.Pos()).Line, "only internal/sys asks for limits: syscall.%s", s.Sel.Name)
			}
		}
		return true
	})
}

// starts are the packages through which tests start jobs or processes, beside kits.
var starts = []string{"conduits", "conduits/boot", "gas", "internal/launch"}

// watchdog notes whether the tests of a package may hang, and whether they are
// looked after then.
func (c *checker) watchdog(name, dir string, f *ast.File) {
	if dir == "examples/transport" {
		return // a module of its own, which has nothing internal
	}
	for _, spec := range f.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		if local, ok := strings.CutPrefix(target, Module+"/"); ok && (slices.Contains(starts, local) || isKit(local)) || target == "os/exec" {
			c.hangs[dir] = name
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.hangs[dir] = name
		case *ast.FuncDecl:
			if n.Name.Name == "TestMain" && n.Recv == nil && n.Body != nil {
				c.watched[dir] = c.watched[dir] || callsTestmain(dir, n.Body)
			}
		}
		return true
	})
}

// callsTestmain reports whether body calls testmain.Run or testjob.Main, which those
// packages themselves call without their names.
func callsTestmain(dir string, body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fn := call.Fun.(type) {
		case *ast.SelectorExpr:
			x, ok := fn.X.(*ast.Ident)
			found = found || ok && (x.Name == "testmain" && fn.Sel.Name == "Run" || x.Name == "testjob" && fn.Sel.Name == "Main")
		case *ast.Ident:
			found = found || dir == "internal/testkit/testmain" && fn.Name == "Run" || dir == "internal/testkit/testjob" && fn.Name == "Main"
		}
		return true
	})
	return found
}

// exported checks that every exported name has a doc comment. In a group of
// constants or variables the group's comment, or one at the end of the line, is
// enough.
func (c *checker) exported(name string, f *ast.File) {
	missing := func(id *ast.Ident) {
		c.add(name, c.fset.Position(id.Pos()).Line, "exported %s has no doc comment", id.Name)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc.Text() == "" && (d.Recv == nil || ast.IsExported(receiver(d))) {
				missing(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc.Text() == "" && s.Doc.Text() == "" && s.Comment.Text() == "" {
						missing(s.Name)
					}
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.IsExported() && d.Doc.Text() == "" && s.Doc.Text() == "" && s.Comment.Text() == "" {
							missing(id)
						}
					}
				}
			}
		}
	}
}

// receiver is the name of the type that d is a method of.
func receiver(d *ast.FuncDecl) string {
	for t := d.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// order checks that exported functions and methods that take an address of a rank,
// and local memory or a place for a result, take them in one order: rank, address,
// memory. Of two places the first counts: the rank and address of the other follow.
func (c *checker) order(name string, f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() && (n.Recv == nil || ast.IsExported(receiver(n))) { // else an interface has it so
				c.parameters(name, n.Name, n.Type)
			}
			return false
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				if t, ok := m.Type.(*ast.FuncType); ok {
					c.parameters(name, m.Names[0], t)
				}
			}
		}
		return true
	})
}

func (c *checker) parameters(name string, fn *ast.Ident, t *ast.FuncType) {
	const none = -1
	rank, addr, memory, i := none, none, none, 0 // the first of each: a second place follows the first one
	for _, p := range t.Params.List {
		var x bytes.Buffer
		_ = format.Node(&x, c.fset, p.Type) // it has been parsed
		for _, id := range p.Names {
			switch typ := x.String(); {
			case typ == "int" && rank == none && slices.Contains([]string{"rank", "dst", "src"}, id.Name):
				rank = i
			case typ == "segment.NLA" && addr == none:
				addr = i
			case (typ == "[]byte" || resultPlace.MatchString(typ)) && memory == none:
				memory = i
			}
			i++
		}
	}
	if addr != none && (rank > addr || memory != none && memory < max(addr, rank)) {
		c.add(name, c.fset.Position(fn.Pos()).Line, "%s: parameters are in the order rank, address, memory", fn.Name)
	}
}

// resultPlace are the types of parameters that results are written to.
var resultPlace = regexp.MustCompile(`^\*(bool|T|u?int(32|64)|float(32|64))$`)

// calls has the calls of a function of package gas, as far as its text shows them.
type calls struct {
	file   string
	line   int
	first  string // line of the doc comment
	public bool   // programs call it, with a Node
	joins  bool   // all ranks make the call, or the function waits for ever
	to     []string
}

// saysCollective is how a doc comment begins that says so.
var saysCollective = regexp.MustCompile(`^\w+ is collective\b`)

// collective notes which functions of a file call which, for checkCollective.
// Functions and methods that are not exported are known by their names alone.
func (c *checker) collective(name string, f *ast.File) {
	for _, d := range f.Decls {
		d, ok := d.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		k := &calls{file: name, line: c.fset.Position(d.Name.Pos()).Line, public: d.Name.IsExported() && takesNode(d)}
		k.first, _, _ = strings.Cut(d.Doc.Text(), "\n")
		key := d.Name.Name
		if d.Recv != nil && d.Name.IsExported() {
			key = receiver(d) + "." + key
			k.public = k.public && ast.IsExported(receiver(d))
		}
		ast.Inspect(d.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun := call.Fun
			switch x := fun.(type) { // of a generic function
			case *ast.IndexExpr:
				fun = x.X
			case *ast.IndexListExpr:
				fun = x.X
			}
			switch fun := fun.(type) {
			case *ast.Ident:
				k.to = append(k.to, fun.Name)
			case *ast.SelectorExpr:
				if !fun.Sel.IsExported() {
					k.to = append(k.to, fun.Sel.Name)
				}
				k.joins = k.joins || joins(fun)
			}
			return true
		})
		c.calls[key] = k
	}
}

// takesNode reports whether the function is told which rank calls it.
func takesNode(d *ast.FuncDecl) bool {
	if d.Recv != nil && receiver(d) == "Node" {
		return true
	}
	return slices.ContainsFunc(d.Type.Params.List, func(p *ast.Field) bool {
		if id, ok := p.Type.(*ast.Ident); ok {
			return id.Name == "Group"
		}
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		id, ok := star.X.(*ast.Ident)
		return ok && id.Name == "Node"
	})
}

// joins reports whether a call is one that all ranks make: of the barrier, the field b
// of a Node, of package collective, the field coll, or Sync of package aggregate, the
// field agg.
func joins(fun *ast.SelectorExpr) bool {
	x, ok := fun.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch fun.Sel.Name {
	case "Barrier", "Notify", "Wait", "Try":
		return x.Sel.Name == "b"
	case "Sync":
		return x.Sel.Name == "agg"
	case "Handlers", "Bind", "Mismatch", "Blocked":
		return false
	}
	return x.Sel.Name == "coll"
}

// checkCollective checks that what is collective in package gas, and nothing else,
// says so in the first line of its doc comment.
func (c *checker) checkCollective() {
	for again := true; again; {
		again = false
		for _, k := range c.calls {
			if !k.joins && slices.ContainsFunc(k.to, func(to string) bool { return c.calls[to] != nil && c.calls[to].joins }) {
				k.joins, again = true, true
			}
		}
	}
	for name, k := range c.calls {
		switch says := saysCollective.MatchString(k.first); {
		case k.public && k.joins && !says:
			c.add(k.file, k.line, "%s waits for all ranks to call it: the doc comment begins with \"... is collective\"", name)
		case k.public && !k.joins && says:
			c.add(k.file, k.line, "%s says that it is collective, and calls no barrier and nothing collective", name)
		}
	}
}

// time checks that a package above the conduits takes time and waiting from its
// endpoint, and starts goroutines only if it may.
func (c *checker) time(name string, f *ast.File, noGoroutines bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		line := func() int { return c.fset.Position(n.Pos()).Line }
		switch n := n.(type) {
		case *ast.GoStmt:
			if noGoroutines {
				c.add(name, line(), "goroutine above the conduits: they cannot run in virtual time")
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && noGoroutines && s.Sel.Name == "Go" {
				c.add(name, line(), "goroutine above the conduits: they cannot run in virtual time")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				c.add(name, line(), "time.%s above the conduits: time comes from the endpoint", n.Sel.Name)
			}
		}
		return true
	})
}
