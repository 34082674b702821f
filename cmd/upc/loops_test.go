package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoops compares what the compiler makes of the loops of testdata/loops.upc, after each pass, with what
// lies beside them: an optimisation that ceases to apply is a difference.
func TestLoops(t *testing.T) {
	for pass := range passes {
		var out, errs strings.Builder
		if status := run([]string{"build", "-d", pass, "testdata/loops.upc"}, &out, &errs); status != 0 || errs.String() != "" {
			t.Errorf("-d %s: status %d: %s", pass, status, errs.String())
			continue
		}
		golden(t, "testdata/loops."+pass+".txt", out.String())
	}
}

// TestFileName: a file may have any name; comments of Go have it without what would end them.
func TestFileName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a\nfunc init() {\r*.upc")
	source := "shared int s[THREADS];\nstatic struct p { int x; } v;\nint main(void) { v.x = s[MYTHREAD]; return v.x; }\n"
	if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	files, _, err := compile(&options{files: []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range files {
		if bytes.Contains(f.Text, []byte("\nfunc init")) {
			t.Errorf("%s has code of the file's name:\n%s", name, f.Text)
		}
	}
}
