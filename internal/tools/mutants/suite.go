package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// runner runs the suite on mutants.
type runner struct {
	root    string
	scratch string
	limit   time.Duration
	logs    string // folder, or ""
}

// outcome is the suite's result for a mutant.
type outcome struct {
	m   mutant
	on  []verdict
	err error // it could not be tried
}

// verdict is the suite's result on one conduit.
type verdict struct {
	conduit string
	checks  []string // that failed, without groups of them
	crash   string   // how the suite ended before its end, or ""
	unrun   int      // checks that time was not left for: they have noticed nothing
}

func (v verdict) caught() bool { return len(v.checks) > 0 || v.crash != "" }

func (v verdict) String() string {
	if !v.caught() && v.unrun > 0 {
		return fmt.Sprintf("%s: SURVIVES, with no time for %d checks (-limit)", v.conduit, v.unrun)
	}
	if !v.caught() {
		return v.conduit + ": SURVIVES"
	}
	return v.conduit + ": " + strings.Join(v.all(), ", ")
}

// all lists the checks and the crash.
func (v verdict) all() []string {
	if v.crash == "" {
		return v.checks
	}
	return append(slices.Clip(v.checks), v.crash)
}

func (o outcome) caught() bool {
	return o.err == nil && !slices.ContainsFunc(o.on, func(v verdict) bool { return !v.caught() })
}

func (o outcome) String() string {
	if o.err != nil {
		return "cannot be tried: " + o.err.Error()
	}
	var l []string
	for _, v := range o.on {
		l = append(l, v.String())
	}
	return strings.Join(l, "; ")
}

// try builds and runs the suite with m in the tree.
func (r *runner) try(ctx context.Context, m mutant) (outcome, error) {
	o := outcome{m: m}
	dir := filepath.Join(r.scratch, m.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.overlay(dir, m)
	if err != nil {
		return o, err
	}
	for _, c := range m.places() {
		binary := filepath.Join(dir, path.Base(c)+".test")
		pkg, pattern := m.place(c)
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", m.tags, "-overlay", overlay, "-o", binary, "./"+pkg)
		build.Dir = r.root
		if out, err := build.CombinedOutput(); err != nil {
			return o, fmt.Errorf("%s does not compile: %v\n%s", m.name, err, out)
		}
		var v verdict
		for i := 0; i < max(1, m.tries) && !v.caught(); i++ {
			out, err := r.suite(ctx, dir, binary, pattern)
			if r.logs != "" {
				if err := os.WriteFile(filepath.Join(r.logs, m.name+"."+path.Base(c)), out, 0o644); err != nil {
					return o, err
				}
			}
			if ctx.Err() != nil {
				return o, ctx.Err()
			}
			v = judge(c, string(out), err)
		}
		o.on = append(o.on, v)
	}
	return o, nil
}

// places are the conduits and packages whose tests have to notice m.
func (m *mutant) places() []string {
	if pkg, _, ok := strings.Cut(m.test, " "); ok {
		return append(slices.Clip(m.on), pkg)
	}
	return m.on
}

// place is the folder of one of places, and which tests to run there.
func (m *mutant) place(where string) (pkg, pattern string) {
	if pkg, pattern, ok := strings.Cut(m.test, " "); ok && pkg == where {
		return pkg, pattern
	}
	return suiteOf(where), "Conformance"
}

// overlay writes the file that tells go build what m replaces, and where.
func (r *runner) overlay(dir string, m mutant) (string, error) {
	var replace struct{ Replace map[string]string }
	replace.Replace = map[string]string{}
	if m.file != "" {
		b, err := m.mutated(r.root)
		if err != nil {
			return "", err
		}
		patched := filepath.Join(dir, filepath.Base(m.file))
		if err := os.WriteFile(patched, b, 0o644); err != nil {
			return "", err
		}
		replace.Replace[filepath.Join(r.root, filepath.FromSlash(m.file))] = patched
	}
	b, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o644)
}

// suite runs a test binary. Its own time limit lets it say where it hangs; a
// binary that does not even end then is killed.
func (r *runner) suite(ctx context.Context, dir, binary, pattern string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit+r.limit/2)
	defer cancel()
	// In this mode a check's failure is printed when it ends, not only when all
	// others of its group have, which they do not when time runs out.
	args := []string{"-test.run=" + pattern, "-test.v=test2json", fmt.Sprintf("-test.timeout=%v", r.limit)}
	if pattern == "Conformance" {
		args = append(args, "-rapid.shrinktime=1s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return bytes.ReplaceAll(out.Bytes(), []byte{0x16}, nil), err // without its marks
}

var (
	running = regexp.MustCompile(`^=== (?:RUN|NAME) +(\S+)`)
	failing = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	crashes = regexp.MustCompile(`^(panic: |fatal error: |SIG[A-Z]+: |unexpected fault address)`)
)

// What the suite says when it ends a job that hangs, see conformance, and of each
// check that time is not left for then; what package testing says if that did not
// help.
const (
	hangs    = "still runs when the test's time is nearly over"
	notRun   = "not run: the test's time (-timeout) is nearly over"
	timedOut = "panic: test timed out"
)

// judge reads the output of a suite, which ended with err.
func judge(conduit, out string, err error) verdict {
	v := verdict{conduit: conduit}
	if err == nil {
		return v
	}
	now := "" // the check that runs
	hung, unrun := map[string]bool{}, map[string]bool{}
	var failed, order []string // order: those of hung
	timeout := false
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := running.FindStringSubmatch(line); m != nil {
			now = m[1]
		}
		if m := failing.FindStringSubmatch(line); m != nil {
			failed = append(failed, m[1])
		}
		if strings.Contains(line, hangs) && !hung[now] {
			hung[now] = true
			order = append(order, now)
		}
		if strings.Contains(line, notRun) {
			unrun[now] = true
		}
		if v.crash == "" && crashes.MatchString(line) {
			v.crash = short(now) + " (crash)"
			if strings.HasPrefix(line, timedOut) {
				v.crash = short(now) + " (does not end)"
			}
		}
		timeout = timeout || strings.HasPrefix(line, timedOut)
	}
	// The check that time ran out for has failed although it did not end.
	for _, name := range order {
		if !slices.Contains(failed, name) {
			failed = append(failed, name)
		}
	}
	if timeout && len(failed) > 0 {
		v.crash = "" // one hang after another
	}
	for _, name := range failed {
		group := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if slices.ContainsFunc(failed, group) || unrun[name] {
			continue
		}
		s := short(name)
		if hung[name] {
			s += " (time limit)"
		}
		if !slices.Contains(v.checks, s) {
			v.checks = append(v.checks, s)
		}
	}
	v.unrun = len(unrun)
	if len(v.checks) == 0 && v.crash == "" && v.unrun == 0 {
		v.crash = fmt.Sprintf("%s (%v)", short(now), err)
	}
	// A check that panics is reported as failed too.
	if i := strings.Index(v.crash, " ("); i > 0 && slices.Contains(v.checks, v.crash[:i]) {
		v.checks = slices.DeleteFunc(v.checks, func(s string) bool { return s == v.crash[:i] })
	}
	return v
}

// short is a check's name without that of the test, which itself fails when the
// suite finds out what a conduit offers.
func short(name string) string {
	if _, after, ok := strings.Cut(name, "/"); ok {
		return after
	}
	if !strings.Contains(name, "Conformance") {
		return name
	}
	return "the first look"
}

// suiteOf is the folder whose tests run the suite on a conduit.
func suiteOf(conduit string) string {
	if conduit == "chaos" {
		return "conformance/chaos"
	}
	return "conduits/" + conduit
}
