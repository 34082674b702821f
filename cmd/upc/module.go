package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/argon-go/argon/internal/upc/gen"
)

const module = "github.com/argon-go/argon"

// writeModule writes a module of a program's files, which requires the checkout that this
// command stands in, or the version that it was built from.
func writeModule(dir string, files map[string]gen.File) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	old, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	switch {
	case err == nil && !bytes.HasPrefix(old, []byte(ownLine)):
		return fmt.Errorf("%s has a module that upc has not made: its go.mod does not begin with %q", dir, strings.TrimSpace(ownLine))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return writeFiles(dir, files)
}

// ownLine begins the go.mod of a program.
const ownLine = "module upcprogram\n"

func writeFiles(dir string, files map[string]gen.File) error {
	// Files of an earlier program are not part of this one.
	old, err := filepath.Glob(filepath.Join(dir, "upc_*_c.go"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	mod, sum, err := moduleFile()
	if err != nil {
		return err
	}
	out := map[string][]byte{"go.mod": []byte(mod), "go.sum": sum}
	for n, b := range files {
		out[n] = b.Text
	}
	for n, b := range out {
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// moduleFile is the go.mod and go.sum of a program.
func moduleFile() (mod string, sum []byte, err error) {
	root, version, err := ownModule()
	if err != nil {
		return "", nil, err
	}
	mod = ownLine + "\ngo 1.26.0\n\nrequire " + module + " " + version + "\n"
	if root == "" {
		return mod, nil, nil
	}
	mod += fmt.Sprintf("\nreplace %s => %s\n", module, root)
	sum, err = os.ReadFile(filepath.Join(root, "go.sum"))
	return mod, sum, err
}

// ownModule is the folder of this command's module, or its version if there is none.
func ownModule() (root, version string, err error) {
	c := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	c.Env = append(os.Environ(), "GOFLAGS=")
	if b, err := c.Output(); err == nil {
		if dir := strings.TrimSpace(string(b)); dir != "" {
			return dir, "v0.0.0", nil
		}
	}
	if root := builtIn; root != "" {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root, "v0.0.0", nil
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == module && info.Main.Version != "(devel)" && info.Main.Version != "" {
		return "", info.Main.Version, nil
	}
	return "", "", errors.New("where is " + module + "? Run upc in a checkout of it, or install it at a version")
}

// builtIn is the checkout that this command was built in, for calls from other folders; set
// by -ldflags "-X main.builtIn=DIR".
var builtIn string
