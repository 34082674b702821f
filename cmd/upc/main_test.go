package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/gen"
	"github.com/argon-go/argon/upc/rt"
)

func TestMain(m *testing.M) {
	if p := os.Getenv("UPC_TEST_START"); p != "" {
		os.Exit(start(&options{args: []string{"-c", p}}, "", "/bin/sh", os.Stdout, os.Stderr))
	}
	os.Exit(testmain.Run(m))
}

// TestInterrupt: an interrupt of the terminal, which all processes get, ends a program that
// waits for input.
func TestInterrupt(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "UPC_TEST_START=echo ready; exec cat")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	// A program that ignores the interrupt ends here, with status 0.
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "signal: interrupt") {
		t.Errorf("%v: %s", err, errs.String())
	}
}

// TestSeeds: each simulation of a search finds the files and the standard input that the first one found, whether programs read
// it or not.
func TestSeeds(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *os.File) { os.Stdin = was }(os.Stdin)
	os.Stdin = r
	if _, err := w.WriteString("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ARGON_SIM_FILES", "")
	var out, errs strings.Builder
	script := `case $ARGON_SIM in seed=2,*) exit 0; esac; read a; read b; test "$a-$b-$ARGON_SIM_FILES" = one-two-memory`
	if code := search(&options{seeds: 4, n: 1, args: []string{"-c", script}}, "/bin/sh", &out, &errs); code != 0 {
		t.Errorf("status %d: %s%s", code, out.String(), errs.String())
	}
	w.Close()
	script = `test "$(cat)" != "one
two" && exit 5; case $ARGON_SIM in seed=3,*) exit 3; esac`
	os.Stdin, w, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		w.WriteString("one\ntwo\n")
		w.Close()
	}()
	const says = "upc: exit status 3 with seed 3 (ARGON_CONDUIT=sim ARGON_SIM_FILES=memory ARGON_SIM=seed=3,jitter=2us)\n"
	if code := search(&options{seeds: 4, n: 1, args: []string{"-c", script}}, "/bin/sh", &out, &errs); code != 1 || errs.String() != says {
		t.Errorf("status %d: %s, not %s", code, errs.String(), says)
	}
}

// golden compares got with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *write {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	if len(want) < 1<<11 {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
		return
	}
	is, was := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	n := 0
	for n < len(is)-1 && n < len(was)-1 && is[n] == was[n] {
		n++
	}
	t.Errorf("%s, from line %d on:\n%s\nwant:\n%s", file, n+1, strings.Join(is[n:min(n+20, len(is))], "\n"), strings.Join(was[n:min(n+20, len(was))], "\n"))
}

// TestErrors compares the errors and warnings of wrong programs, each part of a file that begins
// with a comment "// ----", with those in a file beside it. They are compiled for any number of
// threads, or for three if a part begins with a comment that says so.
func TestErrors(t *testing.T) {
	b, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i, src := range strings.Split(string(b), "// ----\n")[1:] {
		o := options{files: []string{filepath.Join(t.TempDir(), "e.upc")}}
		if strings.HasPrefix(src, "// -T 3\n") {
			o.threads = 3
		}
		if err := os.WriteFile(o.files[0], []byte(src), 0o666); err != nil {
			t.Fatal(err)
		}
		_, found, err := compile(&o)
		var errs front.Errors
		if errors.As(err, &errs) {
			found = append(found, errs...)
		}
		if len(found) == 0 {
			t.Errorf("part %d has no errors: %v\n%s", i+1, err, src)
			continue
		}
		fmt.Fprintf(&got, "// ----\n%s", src)
		for _, l := range strings.Split(strings.ReplaceAll(found.Error(), o.files[0], "e.upc"), "\n") {
			got.WriteString("// " + l + "\n")
		}
	}
	golden(t, "testdata/errors.golden", got.String())
}

// TestShow: errors and warnings are printed in the order of the source, with its lines, a caret, and the other places that they
// are about, of files that include others, too; at most 20 errors are.
func TestShow(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"e.h": "\nint h(int);\n  int h(long);\n",
		"e.upc": "int f(int a);\nint main(void) {\n\tf(1, \"\u00e4\" \"b\", 2);\n  return 1 << 40;\n}\n#include \"e.h\"\nint i = j;\n" +
			"#line 7 \"other.y\"\nint k = l;\n",
		"link.upc": "int f(int a) { return a; }\nint main(void) { return f(1); }\n",
		"link2.c":  "\nint f(int a) { return -a; }\n",
		"many.upc": "int main(void) {" + strings.Repeat("\n  a;", 30) + "\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(names ...string) string {
		args := []string{"vet"}
		for _, n := range names {
			args = append(args, filepath.Join(dir, n))
		}
		var errs strings.Builder
		if code := run(args, io.Discard, &errs); code != 1 {
			t.Errorf("upc %q: status %d", args, code)
		}
		return strings.ReplaceAll(errs.String(), dir+"/", "")
	}
	if got, want := shown("e.upc"), `e.upc:3:2: error: too many arguments to function 'f'
	f(1, "ä" "b", 2);
	^
e.upc:1:5: note: declared here
int f(int a);
    ^
e.upc:4:12: warning: shift count 40 is negative or >= width of type 'int'
  return 1 << 40;
           ^
e.h:3:7: error: conflicting types for 'h'; have 'int(long)'
  int h(long);
      ^
e.h:2:5: note: previous declaration of 'h' with type 'int(int)'
int h(int);
    ^
e.upc:7:9: error: 'j' undeclared
int i = j;
        ^
other.y:7:9: error: 'l' undeclared
int k = l;
        ^
`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := shown("link.upc", "link2.c"), `link2.c:2:5: error: multiple definition of 'f'
int f(int a) { return -a; }
    ^
link.upc:1:5: note: first defined here
int f(int a) { return a; }
    ^
`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	got := shown("many.upc")
	if n := strings.Count(got, ": error: "); n != 20 || !strings.HasSuffix(got, "  ^\nmany.upc:21:3: error: 'a' undeclared\n  a;\n  ^\ntoo many errors: the others are not printed\n") {
		t.Errorf("%d errors:\n%s", n, got)
	}
}

// TestOwnHeader: a header of the compiler's name in a folder of -I is the one that is included, and its functions are the
// program's.
func TestOwnHeader(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"upc_io.h": "typedef struct { int fd; } upc_file_t;\nupc_file_t *upc_all_fopen(const char *name);\n",
		"a.upc":    "#include <upc_io.h>\nint main(void) { return upc_all_fopen(\"a\")->fd; }\n",
		"b.c":      "#include <upc_io.h>\nupc_file_t *upc_all_fopen(const char *name) { static upc_file_t f; return &f; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o := options{files: []string{filepath.Join(dir, "a.upc"), filepath.Join(dir, "b.c")}, include: list{dir}}
	files, warnings, err := compile(&o)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if text := passes["go"](&o, files); strings.Contains(text, "rt.AllFOpen") || !strings.Contains(text, "func upc_all_fopen") {
		t.Errorf("the compiler's function is called:\n%s", text)
	}
}

// TestOwnNames: functions of a program that have names of the library's are its own wherever they are defined, and the
// library's if they are not, or in another file are static.
func TestOwnNames(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rng.h": "double random(void);\nint truncate(double *, int);\nlong ffs(long);\nint abs(int);\n",
		"a.upc": "#include \"rng.h\"\nint main(void) { double d = random(); return truncate(&d, 1) + (int)ffs(1L << 40) + abs(-1); }\n",
		"old.c": "int early(void) { char *p = malloc(8); return index(3) + (p == 0) + rename(); }\n",
		"rng.c": "#include \"rng.h\"\nstatic int one(void) { return 1; }\ndouble random(void) { return .5; }\n" +
			"int truncate(double *p, int n) { return n + (int)*p + one(); }\nlong ffs(long v) { return v; }\n",
		"c.c": "static int abs(int v) { return v; }\nint other(void) { return abs(2); }\nint index(int v) { return v; }\nint rename() { return 1; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o := options{files: []string{filepath.Join(dir, "a.upc"), filepath.Join(dir, "rng.c"), filepath.Join(dir, "c.c")}}
	files, warnings, err := compile(&o)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	for _, want := range []string{"func random(", "func truncate(", "func ffs("} {
		if text := passes["go"](&o, files); !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	o = options{files: o.files[:1], object: true} // of which the others are not known
	if _, warnings, err := compile(&o); err != nil || len(warnings) > 0 {
		t.Error(err, warnings)
	}
	// Those that are called without a declaration are the program's, too; of an object, if the library's take other arguments.
	for _, o := range []options{{files: []string{filepath.Join(dir, "a.upc"), filepath.Join(dir, "rng.c"), filepath.Join(dir, "c.c"), filepath.Join(dir, "old.c")}}, {files: []string{filepath.Join(dir, "old.c")}, object: true}} {
		_, warnings, err := compile(&o)
		if want := "'malloc', which <stdlib.h> declares"; err != nil || len(warnings) != 3 || !strings.Contains(warnings.Error(), want) {
			t.Errorf("%v, not three warnings with %q: %v", err, want, warnings)
		}
	}
}

// TestForeignModule: a folder with a module of the user's stays as it is.
func TestForeignModule(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(file, []byte("module mine\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := writeModule(dir, map[string]gen.File{"program.go": {}}); err == nil || !strings.Contains(err.Error(), "upc has not made") {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "module mine\n" {
		t.Errorf("go.mod is %q, %v", b, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	again := t.TempDir()
	for range 2 { // over what it has made itself
		if err := writeModule(again, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestLines: what is said of a running program names lines of its source, in headers too; the Go
// that -S keeps has no directives.
func TestLines(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	for name, text := range map[string]string{
		"index.h": "static int at(int *a, int i)\n{\n\treturn\n\t\ta[i];\n}\n",
		"lines.upc": `#include <upc.h>
#include "index.h"
int table[4];
shared int *nowhere;
int main(int argc, char **argv)
{
	if (argc > 2)
		*nowhere = 1;
	else if (argc > 1)
		return at(0, 3);
	for (int i = 0; ; i++)
		table[i] +=
			i;
	return 0;
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "lines")
	var errs strings.Builder
	if code := run([]string{"build", "-S", kept, "-o", program, filepath.Join(dir, "lines.upc")}, io.Discard, &errs); code != 0 {
		t.Fatalf("status %d: %s", code, errs.String())
	}
	for _, c := range []struct{ args, says string }{
		{"", "panic: lines.upc:12: runtime error: index out of range [4] with length 4"},
		{"", filepath.Join(dir, "lines.upc") + ":12"},
		{"1", "panic: index.h:3: runtime error: invalid memory address or nil pointer dereference"},
		{"1", filepath.Join(dir, "index.h") + ":3"},
		{"1 2", "lines.upc:8: upc: write through a null pointer-to-shared"},
	} {
		out, err := output(dir, nil, program, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(out, c.says) {
			t.Errorf("with arguments %q: %v, not %q:\n%s", c.args, err, c.says, out)
		}
	}
	made, err := filepath.Glob(filepath.Join(kept, "*.go"))
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	for _, f := range made {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "//line") {
			t.Errorf("%v, %s:\n%s", err, f, b)
		}
	}
}

func TestUsage(t *testing.T) {
	if gen.MaxSegment != rt.MaxShared {
		t.Errorf("the compiler takes segments of %d bytes for the largest, and the runtime those of %d", uint64(gen.MaxSegment), uint64(rt.MaxShared))
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "usage: upc"},
		{"help", 2, "usage: upc"},
		{"frob", 2, `unknown command "frob"; there are build, run and vet`},
		{"run", 2, "no input files"},
		{"build hello.txt", 2, `no input files: "hello.txt" ends neither in .upc nor in .c`},
		{"vet testdata/hello.upc x", 2, `unexpected argument "x"`},
		{"run -T 3 -n 4 a.upc", 2, "-T 3 and -n 4 differ"},
		{"run -n -1 a.upc", 2, "-n -1: a number of threads is at least 1"},
		{"run -n 0 a.upc", 2, "-n 0: a number of threads is at least 1"},
		{"vet -T 2000 a.upc", 2, "-T 2000: there are at most 1024 threads"},
		{"run -seeds -1 a.upc", 2, "-seeds -1: a number of seeds is at least 1"},
		{"vet testdata/none.upc", 2, "upc: open testdata/none.upc: no such file"},
		{"vet -D 1x=2 testdata/hello.upc", 2, "-D 1x=2: a macro's name is an identifier"},
		{"vet testdata/hello.upc", 0, ""},
		{"vet testdata/wrong/deadlock.upc", 1, "deadlock.upc:4:57: warning: upc_barrier while lock 'a' is held"},
		{"vet -segment 4Q testdata/hello.upc", 2, "-segment: "},
		{"run -n 2 testdata/wrong/large.upc", 1, "large.upc:3:19: error: size of shared variable 'c' with those before it is too large for the segment of a thread, which has 67108864 bytes"},
		{"vet -segment 20M testdata/wrong/large.upc", 1, "large.upc:2:12: error: size of shared variable 'b' is too large for the segment of a thread, which has 20971520 bytes"},
		{"vet -segment 1G testdata/wrong/large.upc", 0, ""},
	} {
		var out, errs strings.Builder
		if code := run(strings.Fields(c.args), &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("upc %s: %d, %s", c.args, code, errs.String())
		}
	}
}
