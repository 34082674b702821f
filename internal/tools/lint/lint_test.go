package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTree(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	problems, err := Check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// TestTreeIsRead makes sure that TestTree looks at something.
func TestTreeIsRead(t *testing.T) {
	seen := map[string]bool{}
	_, err := Check(recorder{os.DirFS(filepath.Join("..", "..", "..")), seen})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "segment/nla.go", "conduits/doc.go", "internal/tools/lint/lint_test.go", ".ci/run"} {
		if !seen[name] {
			t.Errorf("%s was not read", name)
		}
	}
}

type recorder struct {
	fs.FS
	seen map[string]bool
}

func (r recorder) Open(name string) (fs.File, error) {
	r.seen[name] = true
	return r.FS.Open(name)
}

// TestRules breaks every rule once, and keeps it once where that is close.
func TestRules(t *testing.T) {
	const (
		doc     = "// Package p is here.\npackage p\n"
		watched = "\nfunc TestMain() { testmain.Run(m) }\n"
	)
	imports := func(paths ...string) string {
		s := doc + "\nimport (\n"
		slices.SortFunc(paths, func(a, b string) int {
			return strings.Compare(a[strings.Index(a, " ")+1:], b[strings.Index(b, " ")+1:])
		})
		for _, p := range paths {
			name, p, named := strings.Cut(p, " ")
			if !named {
				name, p = "", name
			} else {
				name += " "
			}
			s += "\t" + name + `"` + strings.Replace(p, "./", Module+"/", 1) + "\"\n"
		}
		return s + ")\n"
	}
	for _, c := range []struct {
		name, file, src, want string
	}{
		{"unsafe", "am/a.go", imports("unsafe"), "am/a.go:5: unsafe outside"},
		{"unsafe in a test", "am/a_test.go", imports("unsafe"), "am/a_test.go:5: unsafe outside"},
		{"unsafe in its place", "am/a_unsafe.go", imports("unsafe"), ""},
		{"unsafe in a test's place", "am/a_unsafe_test.go", imports("unsafe"), ""},
		{"unsafe for one architecture", "am/a_unsafe_amd64.go", imports("unsafe"), ""},
		{"unix", "conduits/shm/a.go", imports("golang.org/x/sys/unix"), "only internal/sys imports"},
		{"tables", "gas/a.go", imports("github.com/puzpuzpuz/xsync/v3"), "only internal/conc imports"},
		{"tables in their place", "internal/conc/a.go", imports("github.com/puzpuzpuz/xsync/v3"), ""},
		{"a limit", "conduits/shm/a.go", imports("syscall") + "\nvar _ = syscall.Getrlimit\n", "only internal/sys asks for limits: syscall.Getrlimit"},
		{"a limit in its place", "internal/sys/a.go", imports("syscall") + "\nvar _ = syscall.Statfs\n", ""},
		{"a limit in a test", "am/a_test.go", imports("syscall") + "\nvar _ = syscall.Statfs\n", ""},
		{"drawing", "gas/a.go", imports("gonum.org/v1/plot/plotter"), "only cmd/gasbench/plot"},
		{"drawing in its place", "cmd/gasbench/plot/a.go", imports("gonum.org/v1/plot/plotter"), ""},
		{"unix in its place", "internal/sys/a.go", imports("golang.org/x/sys/unix"), ""},

		{"up in an example", "am/example_test.go", imports("./barrier", "./extended"), ""},
		{"up in a test", "am/a_test.go", imports("./barrier"), "am must not import barrier"},
		{"down", "gas/a.go", imports("./extended", "./barrier", "./am", "./conduits", "./segment", "./internal/errs"), ""},
		{"am up", "am/a.go", imports("./barrier"), "am must not import barrier: imports point down"},
		{"am up in a test", "am/a_test.go", imports("./gas") + watched, "am must not import gas: imports point down"},
		{"sideways", "extended/a.go", imports("./barrier"), "do not import each other"},
		{"sideways in a test", "extended/a_test.go", imports("./barrier"), ""},
		{"a room of extended", "extended/a.go", imports("./extended/internal/x"), ""},
		{"a room of extended from beside", "barrier/a.go", imports("./extended/internal/x"), "do not import each other"},
		{"a room of extended up", "extended/internal/x/a.go", imports("./gas"), "imports point down"},
		{"firehoses under extended", "extended/a.go", imports("./firehose"), ""},
		{"extended under firehoses", "firehose/a.go", imports("./extended"), "imports point down"},
		{"a segment's test", "segment/a_test.go", imports("./conduits") + watched, ""},
		{"a segment up", "segment/a.go", imports("./conduits"), "imports point down"},
		{"contract up", "conduits/a.go", imports("./am"), "imports point down"},
		{"contract to conduit", "conduits/a.go", imports("./conduits/shm"), "imports point down"},
		{"segment up", "segment/a.go", imports("./conduits"), "imports point down"},
		{"conduit up", "conduits/shm/a.go", imports("./am"), "imports point down"},
		{"conduit to conduit", "conduits/udp/a.go", imports("./conduits/shm"), "do not import each other"},
		{"hybrid names no conduit", "conduits/hybrid/a.go", imports("./conduits/shm"), "do not import each other"},
		{"what is made of two names them", "conduits/hybrid/shmudp/a.go", imports("./conduits/hybrid", "./conduits/shm", "./conduits/udp"), ""},
		{"a conduit of no others", "conduits/shm/a.go", imports("./conduits/hybrid/shmudp"), "imports point down"},
		{"boot registers what is made of two", "conduits/boot/a.go", imports("_ ./conduits/hybrid/shmudp", "./conduits", "./segment"), ""},
		{"hybrid is part of nothing", "conduits/udp/a.go", imports("./conduits/hybrid"), "do not import each other"},
		{"leaf up", "internal/sys/a.go", imports("./segment"), "imports point down"},
		{"leaf to leaf", "internal/sys/a.go", imports("./internal/errs"), ""},
		{"a conduit by name", "barrier/a.go", imports("./conduits/shm"), "nothing above conduits/ knows"},
		{"a conduit by name, blank", "barrier/a.go", imports("_ ./conduits/shm"), "nothing above conduits/ knows"},
		{"a conduit in a test", "barrier/a_test.go", imports("_ ./conduits/shm", "./internal/testkit/testjob") + watched, ""},
		{"gas names a conduit", "gas/a.go", imports("./conduits/shm"), "nothing above conduits/ knows"},
		{"gas fills no registry", "gas/a.go", imports("_ ./conduits/shm"), "nothing above conduits/ knows"},
		{"boot fills the registry", "conduits/boot/a.go", imports("_ ./conduits/shm"), ""},
		{"boot names a conduit", "conduits/boot/a.go", imports("./conduits/shm"), "nothing above conduits/ knows"},
		{"boot up", "conduits/boot/a.go", imports("./am"), "imports point down"},
		{"boot's tests run the layers", "conduits/boot/a_test.go", imports("./am", "./barrier") + watched, ""},
		{"gasrun by its function", "cmd/x/a.go", imports("./launch"), ""},
		{"the runtime starts no gasrun", "gas/a.go", imports("./launch"), "the launcher's business"},
		{"containers", "gas/dist/a.go", imports("./gas"), ""},
		{"a language's runtime", "upc/rt/a.go", imports("./gas", "./extended", "./am"), ""},
		{"a language under gas", "gas/dist/a.go", imports("./upc/rt"), "imports point down"},
		{"a language beside another", "upc/rt/a.go", imports("./upc/libc"), "do not import each other"},
		{"a language names a conduit", "upc/rt/a.go", imports("./conduits/shm"), "nothing above conduits/ knows"},
		{"containers name no conduit", "gas/dist/a.go", imports("./conduits/shm"), "nothing above conduits/ knows"},
		{"gas has no containers", "gas/a.go", imports("./gas/dist"), "imports point down"},
		{"a program has containers", "examples/x/a.go", imports("./gas/dist", "./gas"), ""},
		{"gas boots", "gas/a.go", imports("./conduits/boot"), ""},
		{"a layer boots", "am/a.go", imports("./conduits/boot"), "programs and gas start ranks"},
		{"a layer's test boots", "am/a_test.go", imports("./conduits/boot") + watched, ""},
		{"a conduit boots", "conduits/udp/a.go", imports("./conduits/boot"), "programs and gas start ranks"},
		{"a program boots", "examples/x/a.go", imports("./conduits/boot", "./am"), ""},
		{"gas is launched", "gas/a.go", imports("./internal/launch"), "the launcher's business"},
		{"gas tests itself", "gas/a.go", imports("./internal/testkit/testjob"), "only tests import"},
		{"a kit tests all layers", "conduits/mytest/a.go", imports("./gas", "./conduits/shm"), ""},
		{"a kit in a kit", "internal/testmy/a.go", imports("./internal/testkit/testjob"), ""},
		{"a conduit's room in a kit's folder", "conduits/mytest/contract/a.go", imports("./am"), "imports point down"},
		{"a kit in a test", "am/a_test.go", imports("./conduits/mytest") + watched, ""},
		{"a kit in a conduit", "conduits/shm/a.go", imports("./conduits/mytest"), "only tests import"},
		{"a program in a kit", "internal/testmy/a.go", imports("./cmd/x"), "nothing imports a program"},
		{"a program tests", "cmd/x/a.go", imports("./internal/testkit/testjob"), "only tests import"},
		{"am is launched", "am/a.go", imports("./internal/launch"), "the launcher's business"},
		{"launcher", "internal/launch/a.go", imports("./conduits", "./internal/sys"), ""},
		{"launcher of a conduit", "internal/launch/a.go", imports("./conduits/sim"), "by what it registers"},
		{"launcher's tests", "internal/launch/a_test.go", imports("./conduits/shm"), ""},
		{"launcher's test help", "internal/testkit/testjob/a.go", imports("./internal/launch"), ""},
		{"conduit is launched", "conduits/x/a.go", imports("./internal/launch"), "imports point down"},
		{"launcher up", "internal/launch/a.go", imports("./am"), "imports point down"},
		{"program", "cmd/x/a.go", imports("./gas", "./internal/launch", "./conduits/shm"), ""},
		{"program to program", "cmd/x/a.go", imports("./examples/y"), "nothing imports a program"},

		{"a machine's path", "README.md", "run " + "/wo" + "rk/main/x\n", "README.md:1: \" /wo" + "rk/\" ties the tree"},
		{"a registry", ".ci/run", "#!/bin/sh\nexport GO" + "PROXY=off\n", ".ci/run:2: "},
		{"a proxy", "x.yaml", "HTTPS" + "_PROXY: 1\n", "x.yaml:1: "},
		{"not text", "x.bin", "\x00/wo" + "rk/\n", ""},
		{"an ordinary path", "README.md", "see am/wo" + "rk/x and /proc/self/root\n", ""},

		{"a wrapper", "internal/a/a.go", doc + "\ntype w struct{ conduits.Endpoint }\n", "internal/a/a.go:4: internal/a.w embeds"},
		{"a wrapper of a part", "internal/a/a.go", doc + "\ntype w struct {\n\tn int\n\tconduits.FarEndpoint\n}\n", "internal/a/a.go:4: internal/a.w embeds"},
		{"a wrapper with abilities", "internal/a/a.go", doc + "\ntype w struct{ conduits.Endpoint }\n\nfunc (w) Abilities() {}\n", ""},
		{"an endpoint kept", "internal/a/a.go", doc + "\ntype w struct{ ep conduits.Endpoint }\n", ""},

		{"no package comment", "am/a.go", "package p\n", "am: the package has no doc comment"},
		{"program without comment", "cmd/x/a.go", "package main\n", "cmd/x: the package has no doc comment"},
		{"file of no package", "am/a.go", "//go:build ignore\n\npackage main\n", ""},
		{"format", "am/a.go", doc + "\nfunc  f() {}\n", "am/a.go: not formatted"},
		{"syntax", "am/a.go", doc + "\nfunc {\n", "am/a.go: "},
		{"test data", "am/testdata/a.go", "package\n", ""},
		{"a vague name", "am/a.go", doc + "\nfunc (q *t) end() {}\n", "am/a.go:4: end says too little"},
		{"a vague name in a test", "am/a_test.go", "package am\n\nfunc settle() {}\n", ""},
		{"a person", "am/a.go", doc + "\n// f wakes what\n// Whoever waits for.\nfunc f() {}\n", "am/a.go:5: \"Whoever\" in a comment"},
		{"a person beside code", "am/a_test.go", "package am\n\nvar i int // who has it\n", "am/a_test.go:3: \"who\" in a comment"},
		{"no person", "am/a.go", doc + "\n// set if nobody waits\nvar i int\n", "am/a.go:4: \"nobody\" in a comment"},
		{"in vain", "am/a.go", doc + "\n// looks in vain\nvar i int\n", "am/a.go:4: \"in vain\" in a comment"},
		{"a person in a block", "am/a.go", doc + "\n/*\nof somebody\n*/\nvar i int\n", "am/a.go:5: \"somebody\" in a comment"},
		{"no person", "am/a.go", doc + "\n// f of a rank whose owner acts as a whole.\nfunc f() { who(\"anybody\") }\n", ""},
		{"a person in a table", "am/a.go", doc + "\n// Frames are\n//\n//\twho (a question)\nvar i int\n", ""},
		{"function", "am/a.go", doc + "\nfunc F() {}\n", "am/a.go:4: exported F has no"},
		{"method", "am/a.go", doc + "\n// T is.\ntype T[K any] struct{}\n\nfunc (t *T[K]) M() {}\n", "exported M has no"},
		{"method of an unexported type", "am/a.go", doc + "\ntype t struct{}\n\nfunc (t) M() {}\n", ""},
		{"type", "am/a.go", doc + "\ntype T int\n", "exported T has no"},
		{"constant", "am/a.go", doc + "\nconst (\n\tA = 1 // fine\n\tB = 2\n)\n", "am/a.go:6: exported B has no"},
		{"group", "am/a.go", doc + "\n// The values.\nconst (\n\tA = 1\n\tB = 2\n)\n", ""},
		{"directive is no comment", "am/a.go", doc + "\n//go:noinline\nfunc F() {}\n", "exported F has no"},

		{"memory before its address", "am/a.go", doc + "\n// F is.\nfunc F(dst int, b []byte, to segment.NLA) {}\n", "am/a.go:5: F: parameters are in the order"},
		{"a result before the rank", "extended/a.go", doc + "\n// F is.\nfunc F(r *uint64, rank int, to segment.NLA) {}\n", "F: parameters are"},
		{"an address before its rank", "gas/a.go", doc + "\n// F is.\nfunc F(to segment.NLA, rank int) {}\n", "F: parameters are"},
		{"in an interface", "am/a.go", doc + "\n// I is.\ntype I interface {\n\tF(b []byte, dst int, to segment.NLA)\n}\n", "F: parameters are"},
		{"in order", "am/a.go", doc + "\n// F is.\nfunc F(dst, n int, to segment.NLA, b []byte, sig segment.NLA, r *bool) {}\n", ""},
		{"memory alone", "am/a.go", doc + "\n// F is.\nfunc F(mem []byte, rights int, rank int) (a segment.NLA) { return a }\n", ""},

		{"a barrier", "gas/a.go", doc + "\n// F waits.\nfunc F(n *Node) { n.b.Wait() }\n", "gas/a.go:5: F waits for all ranks"},
		{"a barrier that says so", "gas/a.go", doc + "\n// F is collective: it waits.\nfunc F(n *Node) { n.b.Wait() }\n", ""},
		{"a barrier said too late", "gas/a.go", doc + "\n// M waits.\n// M is collective.\nfunc (n *Node) M() { n.b.Barrier() }\n", "Node.M waits for all ranks"},
		{"a barrier deep down", "gas/a.go", doc + "\n// F waits.\nfunc F[T any](n *Node) { G[T](n) }\n\n// G is collective.\nfunc G[T any](n *Node) { n.f() }\n\nfunc (n *Node) f() { n.coll.Scan(nil, nil) }\n", "F waits for all ranks"},
		{"what is not a call of all", "gas/a.go", doc + "\n// F looks.\nfunc F(n *Node) { n.coll.Mismatch() }\n", ""},
		{"of a group", "gas/a.go", doc + "\n// F waits.\nfunc F(g Group) { m := g.members(); m.coll.Scan() }\n", "F waits for all ranks"},
		{"a barrier of the end", "gas/a.go", doc + "\n// Run runs.\nfunc Run() { n.b.Barrier() }\n", ""},
		{"another wait", "gas/a.go", doc + "\n// F waits.\nfunc F(n *Node) { n.e.Wait() }\n", ""},
		{"not collective", "gas/a.go", doc + "\n// F is collective.\nfunc F(n *Node) {}\n", "F says that it is collective"},

		{"clock", "am/a.go", imports("time") + "\nvar t = time.Now()\n", "am/a.go:8: time.Now above"},
		{"clock in gas", "gas/a.go", imports("time") + "\nvar t = time.Now()\n", "time.Now above"},
		{"duration", "am/a.go", imports("time") + "\nvar t time.Duration\n", ""},
		{"goroutine", "barrier/a.go", doc + "\nfunc f() { go f() }\n", "goroutine above"},
		{"goroutine in a group", "barrier/a.go", imports("sync") + "\nvar w sync.WaitGroup\n\nfunc f() { w.Go(f) }\n", "goroutine above"},
		{"clock in boot", "conduits/boot/a.go", imports("time") + "\nvar t = time.Now()\n", "time.Now above"},
		{"goroutine in gas", "gas/a.go", doc + "\nfunc f() { go f() }\n", ""},
		{"no watchdog", "am/a_test.go", "package am\n\nfunc f() { go f() }\n", "am/a_test.go: tests that start"},
		{"no watchdog over a job", "barrier/a_test.go", "package barrier\n\nimport _ \"" + Module + "/conduits\"\n", "barrier/a_test.go: tests that start"},
		{"no watchdog in TestMain", "am/a_test.go", "package am\n\nfunc TestMain() { go m.Run() }\n", "am/a_test.go: tests that start"},
		{"watchdog", "am/a_test.go", "package am\n\nfunc f() { go f() }\n\nfunc TestMain() { os.Exit(testmain.Run(m)) }\n", ""},
		{"nothing to watch", "am/a_test.go", "package am\n\nfunc f() { f() }\n", ""},
		{"copy", "conduits/shm/a.go", doc + "\nfunc f(a, b []byte) { copy(a, b) }\n", "conduits/shm/a.go:4: the built-in copy cannot be preempted"},
		{"clear in a function of a function", "gas/a.go", doc + "\nfunc f(a []byte) { g(func() { clear(a) }) }\n", "the built-in clear cannot be preempted"},
		{"copy in a program", "cmd/p/a.go", "// Package main is here.\npackage main\n\nfunc f(a, b []byte) { copy(a, b) }\n", ""},
		{"copy by a method", "gas/a.go", doc + "\nfunc f(a, b t) { a.copy(b) }\n", ""},
		{"a brief copy", "am/prepare.go", doc + "\n// Commit commits.\nfunc Commit(a, b []uint32) { copy(a, b) }\n", ""},
		{"no brief copy any more", "am/prepare.go", doc + "\n// Commit commits.\nfunc Commit() {}\n", "lists Commit"},
		{"clock in a conduit", "conduits/shm/a.go", imports("time") + "\nvar t = time.Now()\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Check(fstest.MapFS{c.file: {Data: []byte(c.src)}})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("%v", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), c.want)):
				t.Errorf("%v, want one problem with %q", got, c.want)
			}
		})
	}
}
