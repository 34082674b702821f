package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCC: the command takes what Makefiles give a C compiler. Objects have all that they were compiled from, and a library gives
// what is missing.
func TestCC(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cc := func(want int, says, args string) {
		t.Helper()
		var out, errs strings.Builder
		if got := run(words(args), &out, &errs); got != want || !strings.Contains(errs.String(), says) {
			t.Errorf("upc %s: status %d, not %d with %q:\n%s%s", args, got, want, says, out.String(), errs.String())
		}
	}
	write("work.h", "extern shared int total[THREADS];\nint work(int n), util(int), more(int);\n")
	write("main.upc", `#include <upc.h>
#include "work.h"
#if defined GONE || SCALE != 3 || ADD(1, 2) != 3
#error flags
#endif
shared int total[THREADS];
int main(void) { return work(SCALE) + util(1); }
`)
	write("work.upc", "#include <upc.h>\n#include <work.h>\nint work(int n) { return total[MYTHREAD] = n; }\n")
	write("util.c", "int util(int n) { return n; }\n")
	write("main2.c", "int main(void) { return 1; }\n")
	write("wrong.c", "int f(void) { return x; }\n")
	write("broken.o", objectLine)
	write("flags", "-T 2 -O2 -g -Wall\n-std=c99 -DSCALE=3 '-DADD(a, b)=((a) + (b))' -D GONE -UGONE\n")
	cc(0, "", "@flags -c main.upc -o main.o")
	cc(0, "", "cc @flags -MMD -MF work.d -I. -c work.upc util.c main2.c")
	cc(1, "'x' undeclared", "-c wrong.c")
	cc(1, "undefined reference to 'util'", "-o prog main.o work.o -lm")
	cc(1, "multiple definition of 'main'", "-o prog main.o work.o util.o main2.o")
	cc(1, "compiled for 2 threads, and not for 3", "-T3 -o prog main.o work.o")
	cc(2, "unknown flag or file \"-x\"", "-x main.o")
	cc(1, "unexpected end of JSON", "-o prog broken.o")
	// Preprocessed text is a source, too; -S and -d are of a whole program.
	write("own.c", "#include <stdio.h>\n#pragma pack(1)\nint use(void) { return printf(\"%d\", index(1, 2.5)); }\n")
	cc(0, "which <strings.h> declares", "-c own.c")
	cc(0, "", "@flags -E -o own.i own.c")
	cc(0, "", "-c own.i")
	b, err := os.ReadFile("own.i")
	if err != nil || !strings.Contains(string(b), "\n#pragma pack(1)\n\n# 3 \"own.c\"\nint use(void) { return printf(\"%d\", index(1, 2.5)); }\n") {
		t.Errorf("%v: own.c is preprocessed to %s", err, b)
	}
	cc(1, "undefined reference to 'main'", "-S util.c")
	cc(1, "undefined reference to 'work'", "-S main.o util.o")
	cc(2, "-d middle: the passes are", "-d middle main2.c")
	cc(0, "", "-S main2.c")
	var dump, errs strings.Builder
	if b, err = os.ReadFile("main2.go"); err != nil || !strings.Contains(string(b), "func main_(upc *thread) int32 {") || run([]string{"-d", "typed", "main2.c"}, &dump, &errs) != 0 || dump.String() != "main: int(void)\n  return 1\n" {
		t.Errorf("%v, %s%s: main2.c is compiled to\n%s", err, dump.String(), errs.String(), b)
	}
	var library bytes.Buffer
	library.WriteString("!<arch>\n")
	for _, f := range []string{"main2.o", "util.o"} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&library, "%-16s%-12d%-6d%-6d%-8o%-10d`\n%s", f+"/", 0, 0, 0, 0o644, len(b), b)
		if len(b)%2 > 0 {
			library.WriteByte('\n')
		}
	}
	write("libutil.a", library.String())
	if err := os.Remove("work.h"); err != nil { // which the objects have
		t.Error(err)
	}
	o := options{files: []string{"main.o", "work.o", "libutil.a"}}
	files, warnings, err := compile(&o)
	if err != nil || len(warnings) > 0 || o.threads != 2 {
		t.Fatalf("%v, %v, for %d threads", err, warnings, o.threads)
	}
	var names []string
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "program.go upc_main_c.go upc_util_c.go upc_work_c.go" {
		t.Errorf("the program is made of %s", got)
	}
}
