package launch

import (
	"bytes"
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
