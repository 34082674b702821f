package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var gasprog struct {
	once sync.Once
	path string
	dir  string
	err  error
}

// program is testdata/gasprog, built once.
func program(t *testing.T) string {
	t.Helper()
	g := &gasprog
	g.once.Do(func() {
		var target launch.Target
		if g.dir, g.err = os.MkdirTemp("", "gasrun-test-"); g.err != nil {
			return
		}
		if target, g.err = launch.Resolve("./testdata/gasprog"); g.err != nil {
			return
		}
		var out bytes.Buffer
		if g.path, g.err = target.Build(context.Background(), g.dir, &out); g.err != nil {
			g.err = fmt.Errorf("%w\n%s", g.err, &out)
		}
	})
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.path
}

func TestGasPrograms(t *testing.T) {
	prog := program(t)
	for _, tc := range []struct {
		what   string
		status int
		last   string // pattern of the last line
	}{
		{"good", 0, `^$`},
		{"error", 1, `^gasrun: rank 1 \(pid \d+\) exited with status 1: argon: .*out of luck`},
		{"exit", 1, `^gasrun: rank 1 \(pid \d+\) exited with status 0 before it left the job`},
		{"early", 1, `^gasrun: rank 1 \(pid \d+\) exited with status 0 before it attached`},
		{"panic", 1, `^gasrun: rank 1 \(pid \d+\) exited with status 1: argon: rank 1: panic: boom, at .*/gasprog/main.go:\d+ \(main.run.func1\)$`},
		{"kill", 137, `^gasrun: rank 1 \(pid \d+\) killed by SIGKILL$`},
		{"polite", 137, `^gasrun: rank 1 \(pid \d+\) killed by SIGKILL$`},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel()
			r := gasrun(t, "-n", "3", "-kill-grace", "1h", prog, tc.what)
			r.want(t, tc.status)
			if l := lastLine(r.stderr); !regexp.MustCompile(tc.last).MatchString(l) {
				t.Errorf("the last line is %q, want %q\n%s", l, tc.last, r.stderr)
			}
			if tc.what == "panic" && !strings.Contains(r.stderr, "boom") {
				t.Errorf("the panic is not told: %s", r.stderr)
			}
			if tc.what == "polite" && strings.Count(r.stderr, "rank 1 failed: killed by SIGKILL") < 2 {
				t.Errorf("the other ranks do not tell why they end: %s", r.stderr)
			}
		})
	}
}

// TestCrashes: gasrun's last line has the first cause of a crash and the line of the
// program where it happened, also if other lines, of stacks or registers, come last.
func TestCrashes(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	const at = `, at \S*/gasprog/main.go:\d+ \(main.broken\)`
	for how, want := range map[string]string{
		"here nil":      `rank 1 .* status 1: argon: rank 1: panic: runtime error: invalid memory address or nil pointer dereference` + at,
		"here lines":    `rank 1 .* status 1: argon: rank 1: panic: several; lines` + at,
		"here again":    `rank 1 .* status 1: argon: rank 1: panic: again: first` + at + `, then at \S*/main.go:\d+ \(main.broken.func1\)`,
		"here library":  `rank 1 .* status 1: argon: rank 1: panic: strings: negative Repeat count` + at,
		"here goexit":   `rank 1 .* status 1: argon: rank 1: the rank's function ended its goroutine \(runtime.Goexit\)`,
		"here bus":      `rank 1 .* status 2: unexpected fault address 0x[0-9a-f]+; fatal error: fault; \[signal SIGBUS: bus error code=0x2\]` + at + ` \(no memory for a mapped file: /dev/shm, .*\)`,
		"here abort":    `rank 1 .* status 2: SIGABRT: abort.*`,
		"go lines":      `rank 1 .* status 2: panic: several; lines` + at,
		"go again":      `rank 1 .* status 2: panic: first \[recovered\]; panic: again: first` + at + `, then at \S*/main.go:\d+ \(main.broken.func1\)`,
		"go fatal":      `rank 1 .* status 2: fatal error: sync: unlock of unlocked mutex` + at,
		"call nil":      `rank 1 .* status 1: argon: rank 1: gas: gasprog.crasher on rank 0 panicked: runtime error: invalid memory address or nil pointer dereference` + at,
		"call lines":    `rank 1 .* status 1: argon: rank 1: gas: gasprog.crasher on rank 0 panicked: several; lines` + at,
		"handler lines": `rank 0 .* status 1: argon: rank 0: panic: several; lines` + at,
		"return":        `rank 1 .* status 1: argon: rank 1: several lines:; one; two`,
		"log":           `rank 1 .* status 1: \d.* several; lines`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := gasrun(t, "-n", "2", "-kill-grace", "1h", prog, "crash", how)
			if l := lastLine(r.stderr); !regexp.MustCompile(`^gasrun: ` + want + `$`).MatchString(l) {
				t.Errorf("the last line is %q, want %q\n%s", l, want, r.stderr)
			}
		})
	}
}

// TestExit has one rank end the job with a status, 0 included, while others wait or
// compute.
func TestExit(t *testing.T) {
	prog := program(t)
	for _, conduit := range []string{"shm", "udp", "hybrid", "sim"} {
		for _, tc := range []struct {
			how    string
			status string
			least  int // the job's status is one of these
			most   int
		}{
			{"main", "0", 0, 0},
			{"main", "3", 3, 3},
			{"main", "255", 255, 255},
			{"both", "7", 7, 8},
			{"both", "0", 0, 1},
			{"handler", "0", 0, 0},
			{"handler", "3", 3, 3},
			{"leave", "0", 0, 0},
			{"leave", "3", 3, 3},
			{"toil", "0", 0, 0},
			{"toil", "3", 3, 3},
			{"lost", "0", 0, 0},
			{"lost", "3", 3, 3},
		} {
			if conduit == "sim" && (tc.how == "toil" || tc.how == "lost" || tc.how == "leave") {
				continue // one process that computes, or ends, takes all ranks with it
			}
			t.Run(conduit+" "+tc.how+" "+tc.status, func(t *testing.T) {
				r := gasrun(t, "-n", "3", "-conduit", conduit, "-kill-grace", "500ms", prog, "end", tc.how, tc.status)
				if r.status < tc.least || r.status > tc.most {
					t.Errorf("the status is %d, want %d to %d\n%s", r.status, tc.least, tc.most, r.stderr)
				}
				line := ""
				if r.status != 0 {
					line = fmt.Sprintf(`^gasrun: rank [12] \(pid \d+\) ended the job with status %d \(Exit\)\n$`, r.status)
				}
				if r.stderr != "" && line == "" || !regexp.MustCompile(line).MatchString(r.stderr) {
					t.Errorf("standard error is %q, want %s", r.stderr, line)
				}
			})
		}
	}
}

// Programs that a rank runs get neither the job's key nor its memory.
func TestInheritedFiles(t *testing.T) {
	testmain.Long(t)
	for _, conduit := range []string{"shm", "udp", "hybrid"} {
		r := gasrun(t, "-n", "2", "-conduit", conduit, program(t), "files")
		r.want(t, 0)
		if strings.Count(r.stdout, " 1 -> ") != 2 || strings.Contains(r.stdout, "argon") {
			t.Errorf("%s: they have\n%s", conduit, r.stdout)
		}
	}
}

// A rank that announces its failure is named even if it does not get to end by
// itself, while others have ended because of it.
func TestAnnouncedFailure(t *testing.T) {
	testmain.Long(t)
	r := gasrun(t, "-n", "3", "-kill-grace", "10ms", program(t), "linger")
	r.want(t, 1)
	if l := lastLine(r.stderr); !regexp.MustCompile(`^gasrun: rank 1 \(pid \d+\) failed: .*out of luck`).MatchString(l) {
		t.Errorf("the last line is %q", l)
	}
}

// A signal that the ranks do not handle decides the status, also where ranks
// learn of each other's end before their own.
func TestInterruptedGasProgram(t *testing.T) {
	testmain.Long(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, rest, stderr := started(t, "-n", "5", "-kill-grace", "1h", program(t), "deaf")
		awaitReady(t, 5, rest, stderr)
		send(t, cmd, sig)
		await(t, cmd, &bytes.Buffer{}, stderr).want(t, 128+int(sig), "gasrun: ended by ")
	}
}

// A job that hangs tells for each rank where it waits; the stacks go to a file, which it names, and with -q nowhere.
func TestHangIsDiagnosed(t *testing.T) {
	for _, flag := range []string{"", "-q"} {
		args := slices.DeleteFunc([]string{flag, "-n", "3", program(t), "deaf"}, func(s string) bool { return s == "" })
		cmd, rest, stderr := started(t, args...)
		awaitReady(t, 3, rest, stderr)
		send(t, cmd, syscall.SIGQUIT)
		res := await(t, cmd, &bytes.Buffer{}, stderr)
		res.want(t, jobenv.StatusQuit)
		for i := range 3 {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^gasrun:   rank %d \(pid \d+\): (.+ at main\.go:\d+.*)$`, i)).MatchString(res.stderr) {
				t.Errorf("no line for rank %d: %s", i, res.stderr)
			}
			if n := strings.Count(res.stacks, fmt.Sprintf("gasrun: rank %d (pid ", i)); flag == "" && n != 1 {
				t.Errorf("%d headings for the stacks of rank %d, want 1", n, i)
			}
		}
		if strings.Contains(res.stderr, "goroutine ") {
			t.Errorf("stacks are on the screen: %s", res.stderr)
		}
		if strings.Contains(stacksOf(res.stacks, 1), "main.deaf(") != (flag == "") {
			t.Errorf("with %q the file has %q", flag, res.stacks)
		}
		left, err := filepath.Glob(fmt.Sprintf("*-%d.stacks", cmd.Process.Pid))
		if err != nil || len(left) > 0 {
			t.Errorf("with %q there are %v, %v", flag, left, err)
		}
	}
}

// stacksOf is what is below the heading of a rank's stacks.
func stacksOf(stacks string, rank int) string {
	_, rest, _ := strings.Cut(stacks, fmt.Sprintf("\ngasrun: rank %d (pid ", rank))
	rest, _, _ = strings.Cut(rest, "\ngasrun: ")
	return rest
}

// A frozen rank stands still before it joins, until it is let go.
func TestFreeze(t *testing.T) {
	cmd, _ := command(t, "-n", "3", "-freeze", "1", program(t), "good")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	r := output(t, cmd)
	var pid int
	line := make([]byte, 4096)
	k, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(line[:k]), "gasrun: rank 1 (pid %d) stops", &pid); err != nil {
		t.Fatalf("%q: %v", line[:k], err)
	}
	for state(t, pid) != 'T' {
		runtime.Gosched()
	}
	// The others wait for it: all ranks are there still.
	if pids := jobOf(cmd); len(pids) != 3 {
		t.Errorf("processes %v of the job, want 3", pids)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	await(t, cmd, &stdout, bytes.NewBuffer(rest)).want(t, 0)
	if got := stdout.String(); got != "ready\nready\nready\n" {
		t.Errorf("wrote %q", got)
	}
}
