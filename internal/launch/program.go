package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Target is the program to run: an executable, or a package to build.
type Target struct {
	Program string   // executable, if nothing is to be built
	Dir     string   // where to run the go command; "" means here
	Package []string // what to build; nil if Program is an executable
	Tags    string   // build tags, separated by commas; "" for those of GOFLAGS
}

// Resolve finds out what arg means, in this order: a .go file, a directory with
// Go files, an executable (with a slash: that file; without: one in PATH), a
// directory of this name here, the import path of a package.
func Resolve(arg string) (Target, error) {
	fi, err := os.Stat(arg)
	exists := err == nil
	slash := strings.ContainsRune(arg, filepath.Separator)
	gone := deletedDir("give an absolute path")
	switch {
	case gone != nil && slash && !filepath.IsAbs(arg):
		return Target{}, errs.BadArg("launch: cannot look for %s: %s", arg, bare(gone))
	case arg == "":
		return Target{}, errs.BadArg("launch: the program's name is empty")
	case strings.HasSuffix(arg, ".go") && (!exists || fi.Mode().IsRegular()):
		if !exists {
			return Target{}, errs.BadArg("launch: no Go file %s: %v", arg, errs.Cause(err))
		}
		return Target{Dir: filepath.Dir(arg), Package: []string{filepath.Base(arg)}}, nil
	case exists && fi.IsDir() && slash:
		return resolveDir(arg)
	case exists && slash:
		if _, err := lookProgram(arg, ""); err != nil {
			return Target{}, err
		}
		return Target{Program: arg}, nil
	case slash && (arg[0] == '/' || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")):
		return Target{}, errs.BadArg("launch: no program or package directory %s: %v", arg, errs.Cause(err))
	case !slash:
		_, perr := lookProgram(arg, "")
		if perr == nil {
			return Target{Program: arg}, nil
		}
		if exists && fi.IsDir() {
			return resolveDir(arg)
		}
		if exists {
			return Target{}, errs.BadArg("launch: no program %q in PATH; did you mean ./%s", arg, arg)
		}
		return Target{}, perr
	}
	return Target{Package: []string{arg}}, nil
}

func resolveDir(dir string) (Target, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	if err != nil || len(files) == 0 {
		return Target{}, errs.BadArg("launch: %s is a directory without Go files", dir)
	}
	return Target{Dir: dir, Package: []string{"."}}, nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// command is the go command that builds t into out.
func (t Target) command(out string) []string {
	args := []string{"go", "build"}
	if t.Dir != "" {
		args = append(args, "-C", t.Dir)
	}
	if t.Tags != "" {
		args = append(args, "-tags", t.Tags)
	}
	return append(append(args, "-o", out, "--"), t.Package...)
}

// String shows how the program comes about.
func (t Target) String() string {
	if t.Package == nil {
		return t.Program
	}
	return strings.Join(t.command("TEMPORARY"), " ")
}

// Build builds t's package into the directory dir and returns the executable's
// path; the compiler's messages go to w. If there is nothing to build it returns
// t.Program. What else it leaves in dir when ctx ends it is temporary.
func (t Target) Build(ctx context.Context, dir string, w io.Writer) (string, error) {
	if t.Package == nil {
		return t.Program, nil
	}
	name := t.Package[0]
	if name == "." {
		if abs, err := filepath.Abs(t.Dir); err == nil {
			name = abs
		}
	}
	out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".go"))
	if filepath.Base(name) == string(filepath.Separator) {
		out = filepath.Join(dir, "program")
	}
	args := t.command(out)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = w, w
	// The go command does not always remove its temporary files if it is
	// interrupted. In dir they go with it.
	if os.Getenv("GOTMPDIR") == "" {
		cmd.Env = append(os.Environ(), "GOTMPDIR="+dir)
	}
	// A signal that lets it wait for the compilers that it runs.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			return "", errs.BadArg("launch: %s does not build (%s)", t.what(), strings.Join(args, " "))
		}
		return "", errs.BadArg("launch: cannot build %s: %v", t.what(), err)
	}
	// The go command writes an archive if the package is not main.
	f, err := os.Open(out)
	if err != nil {
		return "", errs.BadArg("launch: %s is not one main package: %v", t.what(), errs.Cause(err))
	}
	defer f.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(f, head); err != nil || string(head) == "!<arch>\n" {
		return "", errs.BadArg("launch: %s is not a main package, so there is nothing to run", t.what())
	}
	return out, nil
}

func (t Target) what() string {
	if t.Dir != "" && t.Package[0] == "." {
		return "the package in " + t.Dir
	}
	if t.Dir != "" {
		return filepath.Join(t.Dir, t.Package[0])
	}
	return fmt.Sprintf("package %s", t.Package[0])
}
