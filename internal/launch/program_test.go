package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{
		"pkg/main.go": 0o644, "pk[g]/x.go": 0o644, "empty/README": 0o644, "tool": 0o755, "data": 0o644, "one.go": 0o644, "bin/onpath": 0o755, "onpath/main.go": 0o644,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	for arg, want := range map[string]Target{
		"./pkg":             {Dir: "./pkg", Package: []string{"."}},
		"./pkg/":            {Dir: "./pkg/", Package: []string{"."}},
		dir + "/pkg":        {Dir: dir + "/pkg", Package: []string{"."}},
		"pkg":               {Dir: "pkg", Package: []string{"."}},
		"./pk[g]":           {Dir: "./pk[g]", Package: []string{"."}},
		"pkg/main.go":       {Dir: "pkg", Package: []string{"main.go"}},
		"one.go":            {Dir: ".", Package: []string{"one.go"}},
		"./tool":            {Program: "./tool"},
		dir + "/tool":       {Program: dir + "/tool"},
		"onpath":            {Program: "onpath"}, // PATH before a directory
		"./onpath":          {Dir: "./onpath", Package: []string{"."}},
		"example.com/x/cmd": {Package: []string{"example.com/x/cmd"}},
	} {
		if got, err := Resolve(arg); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Resolve(%q) = %+v, %v; want %+v", arg, got, err, want)
		}
	}
	for arg, want := range map[string]string{
		"":          "empty",
		"tool":      "did you mean ./tool",
		"./data":    "permission denied",
		"./empty":   "without Go files",
		"empty":     "without Go files",
		"none":      `"none"`,
		"./none":    "./none",
		"../none":   "../none",
		"/none/at":  "/none/at",
		"none.go":   "none.go",
		"./one.go/": "./one.go/",
	} {
		if got, err := Resolve(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q) = %+v, %v; want an error with %q", arg, got, err, want)
		}
	}
}

// A directory that begins like a flag is no flag of the go command.
func TestBuildCommand(t *testing.T) {
	got := strings.Join(Target{Dir: "-x", Package: []string{"."}}.command("out"), " ")
	if got != "go build -C -x -o out -- ." {
		t.Errorf("got %q", got)
	}
	got = strings.Join(Target{Package: []string{"-toolexec=evil/x"}}.command("out"), " ")
	if got != "go build -o out -- -toolexec=evil/x" {
		t.Errorf("got %q", got)
	}
}

func TestBuildNothing(t *testing.T) {
	var out bytes.Buffer
	if got, err := (Target{Program: "ls"}).Build(t.Context(), "/nowhere", &out); got != "ls" || err != nil || out.Len() > 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestBuild builds a package and a file, in a directory for temporary files that keeps no
// more than the program, and names packages and files that do not make one.
func TestBuild(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n", "lib/lib.go": "package lib\n", "bad/main.go": "package main\n\nfunc main() { x }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		target Target
		want   string // of the program's path, or the error
		fails  bool
	}{
		{Target{Dir: src, Package: []string{"."}, Tags: "some"}, filepath.Join(dir, filepath.Base(src)), false},
		{Target{Dir: src, Package: []string{"main.go"}}, filepath.Join(dir, "main"), false},
		{Target{Dir: filepath.Join(src, "lib"), Package: []string{"."}}, "the package in " + filepath.Join(src, "lib") + " is not a main package", true},
		{Target{Dir: filepath.Join(src, "bad"), Package: []string{"."}}, "the package in " + filepath.Join(src, "bad") + " does not build (go build -C ", true},
		{Target{Dir: src, Package: []string{"none.go"}}, filepath.Join(src, "none.go") + " does not build", true},
	} {
		var out bytes.Buffer
		got, err := tc.target.Build(t.Context(), dir, &out)
		if tc.fails != (err != nil) || err != nil && !strings.Contains(err.Error(), tc.want) || err == nil && got != tc.want {
			t.Errorf("%v: %q, %v, %s", tc.target, got, err, &out)
		}
		if err == nil {
			if err := Runnable(got); err != nil {
				t.Error(err)
			}
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Target{Package: []string{"x"}}).Build(over, dir, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if err := Runnable(filepath.Join(src, "main.go")); err == nil || !strings.Contains(err.Error(), "-tmpdir") {
		t.Errorf("what is not executable: %v", err)
	}
	if s := (Target{Program: "p"}).String(); s != "p" {
		t.Errorf("%q", s)
	}
	if s := (Target{Dir: "d", Package: []string{"."}}).String(); s != "go build -C d -o TEMPORARY -- ." {
		t.Errorf("%q", s)
	}
}
