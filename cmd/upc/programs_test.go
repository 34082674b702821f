package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "write what the programs print, and the errors, to testdata")

// threads is how many threads the programs in testdata run on.
const threads = 4

// bundle is several UPC programs in one program of Go, which is linked once: it runs the one
// that its own file is called. Each lies in a package of its own; their shared objects are in
// one table.
type bundle struct {
	dir   string
	names []string
	races bool // the programs look for their own
}

func newBundle(t *testing.T) *bundle {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	return &bundle{dir: moduleDir(t)}
}

// moduleDir is a folder with an empty module for a test's programs. It is the same in each run of a
// test in one checkout, since a package's folder is part of what go build knows it by: packages that are what they were
// are taken from its cache. A lock of testdata keeps a second run from it until the test is over.
func moduleDir(tb testing.TB) string {
	tb.Helper()
	lock, err := os.Open("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		tb.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("upc-%d-%x", os.Getuid(), sha256.Sum256([]byte(here)))[:32], tb.Name())
	tb.Cleanup(func() {
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			tb.Error(err)
		}
		lock.Close()
	})
	err = os.RemoveAll(dir) // a run that was killed may have left it
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = writeModule(dir, nil)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// add compiles a program for so many threads, or any number if 0.
func (b *bundle) add(t *testing.T, name string, threads int, sources ...string) {
	t.Helper()
	b.addWith(t, name, &options{files: sources, threads: threads, races: b.races})
}

func (b *bundle) addWith(t *testing.T, name string, o *options) {
	t.Helper()
	files, warnings, err := compile(o)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if len(warnings) > 0 {
		t.Logf("%s: %v", name, warnings) // of which TestErrors has all
	}
	b.names = append(b.names, name)
	to := filepath.Join(b.dir, name)
	if err := os.MkdirAll(to, 0o777); err != nil {
		t.Fatal(err)
	}
	for n, f := range files {
		text := bytes.Replace(f.Located, []byte("\npackage main\n"), []byte("\npackage program\n"), 1)
		text = bytes.Replace(text, []byte("\nfunc main() {\n"), []byte("\nfunc Main() {\n"), 1)
		if err := os.WriteFile(filepath.Join(to, n), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds the programs, with more flags of go build.
func (b *bundle) build(t *testing.T, flags ...string) {
	t.Helper()
	var imports, cases strings.Builder
	for i, n := range b.names {
		fmt.Fprintf(&imports, "\tp%d %q\n", i, "upcprogram/"+n)
		fmt.Fprintf(&cases, "\tcase %q:\n\t\tp%d.Main()\n", n, i)
	}
	text := "package main\n\nimport (\n\t\"os\"\n\t\"path/filepath\"\n\n" + imports.String() + ")\n\nfunc main() {\n\tswitch filepath.Base(os.Args[0]) {\n" + cases.String() + "\t}\n}\n"
	if err := os.WriteFile(filepath.Join(b.dir, "main.go"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(b.dir, "bundle")
	if err := goBuild(b.dir, all, ".", os.Stderr, flags...); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.names {
		if err := os.Symlink(all, b.bin(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// bin is the file of a program.
func (b *bundle) bin(name string) string { return filepath.Join(b.dir, "bin", name) }

// vet has go vet look at all programs.
func (b *bundle) vet(t *testing.T) {
	t.Helper()
	vet := exec.Command("go", "vet", "-mod=mod", "./...")
	vet.Dir = b.dir
	vet.Env = append(os.Environ(), "GOWORK=off")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// limit ends what hangs.
const limit = 15 * time.Minute

// output is the output of a command in a folder, its lines sorted, since threads print side by
// side.
func output(dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("it hangs"))
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	c.Dir = dir
	c.Stdin = strings.NewReader("from standard input 42\n")
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	lines := strings.SplitAfter(string(out), "\n")
	slices.Sort(lines)
	return strings.Join(lines, ""), err
}

// run runs a program with so many threads, in one process.
func (b *bundle) run(t *testing.T, conduit string, threads int, name string, args ...string) (string, error) {
	t.Helper()
	return output(t.TempDir(), []string{fmt.Sprintf("ARGON_RANKS=%d", threads), "ARGON_CONDUIT=" + conduit}, b.bin(name), args...)
}

// sources is the files of a program in testdata.
func sources(t *testing.T, name string) []string {
	t.Helper()
	more, err := filepath.Glob("testdata/" + name + "/*.c")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"testdata/" + name + ".upc"}, more...)
}

// TestPrograms compiles all programs in testdata, has vet look at them, and compares what they
// print with what lies beside them. Of some it says more with other arguments.
func TestPrograms(t *testing.T) {
	b := newBundle(t)
	files, err := filepath.Glob("testdata/*.upc")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".upc")
		names = append(names, name)
		b.add(t, name, 0, sources(t, name)...)
	}
	// What the simulator says of programs that are wrong, and their statuses.
	wrong := map[string]string{
		"status":   "thread 0 went on\nthread 2 went on\nexit status 4",
		"outside":  "outside.upc:6: ",
		"mismatch": "different expressions: 0 by thread 0 at mismatch.upc:3, and 1 by thread 1 at mismatch.upc:3: barrier: ",
		"deadlock": "deadlock.upc:4: sim: deadlock at",
		"handler":  "handler.upc:6: libc: longjmp from the handler of signal 12, which runs beside its thread\nexit status 134",
		"fault":    "fault.upc:5: in the handler of signal 8, which runs when the functions of its thread have ended: libc: longjmp to",
	}
	for name := range wrong {
		b.add(t, "wrong_"+name, 0, "testdata/wrong/"+name+".upc")
	}
	b.build(t)
	b.vet(t)
	for name, says := range wrong {
		if out, err := b.run(t, "sim", 3, "wrong_"+name); err == nil || !strings.Contains(fmt.Sprint(out, err), says) {
			t.Errorf("%s: %v, not %q:\n%s", name, err, says, out)
		}
	}
	if out, err := b.run(t, "shm", threads, "wrong_outside"); err == nil || !strings.Contains(out, wrong["outside"]) {
		t.Errorf("in shared memory: %v, not %q:\n%s", err, wrong["outside"], out)
	}
	for _, conduit := range []string{"shm", "sim"} {
		for _, name := range names {
			t.Run(conduit+"/"+name, func(t *testing.T) {
				out, err := b.run(t, conduit, threads, name)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				golden(t, "testdata/"+name+".out", out)
			})
		}
	}
	// As processes, started by gasrun: all messages by datagrams, and two on each of two hosts.
	launcher := filepath.Join(b.dir, "gasrun")
	if err := goBuild(b.dir, launcher, module+"/cmd/gasrun", os.Stderr); err != nil {
		t.Fatal(err)
	}
	for conduit, flags := range map[string]string{"udp": "-n 4", "hybrid": "-hosts localhost:2,localhost:2"} {
		for _, name := range []string{"hashtable", "heat", "pointers", "samplesort", "steal", "torture", "atomic", "collective", "io"} {
			t.Run("gasrun/"+conduit+"/"+name, func(t *testing.T) {
				args := append(strings.Fields(flags), "-conduit", conduit, "--", b.bin(name))
				out, err := output(t.TempDir(), nil, launcher, args...)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				golden(t, "testdata/"+name+".out", out)
			})
		}
	}
	for _, c := range []struct {
		threads int
		command string
		says    string
	}{
		{2, "cg S", "cg: verified"},
		{3, "ep 24", "13176389 pairs, verified"},
		{3, "is 16 11", "65536 keys below 2048: verified"},
		{1, "steal 9", "352 solutions for 9 queens, right"},
		{3, "steal 10 4 v", `steal: [1-9]\d* boards were stolen`},
		{5, "samplesort 3000", "15000 keys, all there"},
		{3, "fft 128", "16384 points, by definition right, back again right"},
		{7, "torture 50", "thread 6: 0 wrong"},
	} {
		t.Run(c.command, func(t *testing.T) {
			args := strings.Fields(c.command)
			out, err := b.run(t, "shm", c.threads, args[0], args[1:]...)
			if err != nil || !regexp.MustCompile(c.says).MatchString(out) {
				t.Errorf("%v, not %q:\n%s", err, c.says, out)
			}
		})
	}
}

// TestStaticThreads: programs that were compiled for so many threads print the same, and run on
// no other number.
func TestStaticThreads(t *testing.T) {
	b := newBundle(t)
	names := []string{"forall", "matmul", "pointers"}
	for _, n := range names {
		b.add(t, n, threads, sources(t, n)...)
	}
	b.build(t)
	for _, n := range names {
		out, err := b.run(t, "shm", threads, n)
		if err != nil {
			t.Errorf("%s: %v\n%s", n, err, out)
			continue
		}
		golden(t, "testdata/"+n+".out", out)
	}
	if out, err := b.run(t, "shm", threads-1, "forall"); err == nil || !strings.Contains(out, "compiled for 4 threads") {
		t.Errorf("on another number of threads: %v\n%s", err, out)
	}
}

// TestRace has the race detector look at programs without strict accesses, which it would take
// for races, and at one that has a race.
func TestRace(t *testing.T) {
	b := newBundle(t)
	names := []string{"fft", "hashtable", "heat", "samplesort"}
	for _, n := range names {
		b.add(t, n, 0, sources(t, n)...)
	}
	b.add(t, "wrong_update", 0, "testdata/wrong/update.upc")
	b.build(t, "-race")
	for _, n := range names {
		t.Run(n, func(t *testing.T) {
			out, err := b.run(t, "shm", threads, n)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			golden(t, "testdata/"+n+".out", out)
		})
	}
	if out, err := b.run(t, "shm", threads, "wrong_update"); err == nil || !strings.Contains(out, "WARNING: DATA RACE") || !strings.Contains(out, "testdata/wrong/update.upc:7") {
		t.Errorf("no race is found in an update without a lock, at its line: %v\n%s", err, out)
	}
}

// clause is a program of testdata/clauses, as a name.
func clause(file string) string {
	return "clause_" + strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".upc"), ".", "_")
}

// TestClauses runs a program for each clause of the specification's language and libraries,
// named by it, which checks what the clause says. Those that look whether THREADS is static
// are compiled in both ways. A file *.refused has programs which the clause's constraints
// forbid, each after a comment with words of the first error.
func TestClauses(t *testing.T) {
	b := newBundle(t)
	files, err := filepath.Glob("testdata/clauses/*.upc")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b.add(t, clause(f), 0, f)
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "__UPC_STATIC_THREADS__") {
			b.add(t, clause(f)+"_static", threads, f)
		}
	}
	// Go's optimizations, of which the programs of testdata have all, would take half as long again.
	b.build(t, "-gcflags=upcprogram/...=-N -l")
	checked := regexp.MustCompile(`(?m)^[1-9]\d* checks$`)
	for _, name := range b.names {
		for _, conduit := range []string{"shm", "sim"} {
			t.Run(conduit+"/"+name, func(t *testing.T) {
				out, err := b.run(t, conduit, threads, name)
				if err != nil || !checked.MatchString(out) {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
	// In memory, files leave nothing behind.
	dir := t.TempDir()
	out, err := output(dir, []string{fmt.Sprintf("ARGON_RANKS=%d", threads), "ARGON_CONDUIT=sim", "ARGON_SIM_FILES=memory"}, b.bin("clause_7_8"))
	if left, failed := os.ReadDir(dir); err != nil || failed != nil || len(left) > 0 || !checked.MatchString(out) {
		t.Errorf("in memory: %v, %v, %v\n%s", err, left, failed, out)
	}
	files, err = filepath.Glob("testdata/clauses/*.refused")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "// ----\n") {
			first, source, _ := strings.Cut(part, "\n")
			says := strings.TrimPrefix(first, "// ")
			err := errorsOf(t, source)
			if err == nil {
				t.Errorf("%s, part %d, is compiled; it wants an error with %q", f, i+1, says)
			} else if line, _, _ := strings.Cut(err.Error(), "\n"); says == first || !strings.Contains(line, says) {
				t.Errorf("%s, part %d: not %q: %v", f, i+1, says, err)
			}
		}
	}
}

// errorsOf is the compiler's error for a file e.upc, without warnings.
func errorsOf(t *testing.T, source string) error {
	t.Helper()
	o := options{files: []string{filepath.Join(t.TempDir(), "e.upc")}}
	if err := os.WriteFile(o.files[0], []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, err := compile(&o)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), o.files[0], "e.upc"))
}
