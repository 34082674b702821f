package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// envLimits has a process begin again within limits: fields such as "9=4096", a resource of
// setrlimit(2) and its value, "group=DIR", a control group to join, and "uid=N".
const envLimits = "ARGONTEST_LIMITS"

// statusLimits is how a process ends that may not set its limits.
const statusLimits = 125

// Resources of setrlimit(2) that package syscall does not name (<asm-generic/resource.h>).
const (
	rlimitNproc   = 6
	rlimitMemlock = 8
)

// enterLimits begins this process again within its limits if envLimits has any: Go's
// runtime, too, is to begin there.
func enterLimits() {
	text := os.Getenv(envLimits)
	if text == "" {
		return
	}
	os.Unsetenv(envLimits)
	uid, err := 0, error(nil)
	for _, f := range strings.Fields(text) {
		key, value, _ := strings.Cut(f, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "group":
			err = os.WriteFile(filepath.Join(value, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		case "uid":
			uid = n
		default:
			var resource int
			if resource, err = strconv.Atoi(key); err == nil {
				err = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)})
			}
		}
		if err != nil {
			break
		}
	}
	if err == nil && uid != 0 {
		if err = syscall.Setgroups(nil); err == nil {
			err = syscall.Setuid(uid)
		}
	}
	program := "/proc/self/exe"
	if os.Getenv(envMain) == "" { // a program by itself
		program = os.Args[1]
		os.Args = os.Args[1:]
	}
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "limits:", err)
	os.Exit(statusLimits)
}

// within runs the job of prog, of n ranks on a conduit ("" for one process), in limits.
func within(t *testing.T, limits, conduit string, n int, prog ...string) result {
	t.Helper()
	var cmd *exec.Cmd
	if conduit == "" {
		cmd, _ = command(t, prog...)
		cmd.Env = append(cmd.Env, envMain+"=", "ARGON_RANKS="+strconv.Itoa(n))
	} else {
		cmd, _ = command(t, append([]string{"-n", strconv.Itoa(n), "-conduit", conduit, "-timeout", "5m"}, prog...)...)
	}
	cmd.Env = append(cmd.Env, envLimits+"="+limits)
	open(t, cmd, program(t))
	return finish(t, cmd)
}

// ways are where a job may run: its conduit, "" for ranks of one process.
var ways = []string{"shm", "udp", "hybrid", ""}

// TestLimits: under each limit a job either runs right or ends with an error that names the
// limit and what sets it, from much down to too little.
func TestLimits(t *testing.T) {
	testmain.Long(t)
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	prog := program(t)
	for _, c := range []struct {
		name, knob, also string
		resource         int
		values           []int // the first is enough
		enough           int   // so many of them
	}{
		{"addresses", "ulimit -v", "", syscall.RLIMIT_AS, []int{16 * gib, 4 * gib, 3 * gib, 2 * gib, 1700 * mib, 1600 * mib}, 3},
		{"data", "ulimit -d", "", syscall.RLIMIT_DATA, []int{4 * gib, gib, 400 * mib, 150 * mib}, 2},
		{"file size", "ulimit -f", "", syscall.RLIMIT_FSIZE, []int{gib, 64 * mib, 8 * mib, 2 * mib, 100 * kib, kib}, 3},
		{"files", "ulimit -n", "", syscall.RLIMIT_NOFILE, []int{256, 64, 32, 26, 22, 18, 14, 11, 9}, 2},
		{"tasks", "ulimit -u", " uid=", rlimitNproc, []int{1000, 100, 50, 30, 20, 15}, 1},
		{"locked memory", "ulimit -l", "", rlimitMemlock, []int{64 * kib, 0}, 2},
	} {
		for i, v := range c.values {
			for k, way := range ways {
				t.Run(fmt.Sprintf("%s/%d/%s", c.name, v, way), func(t *testing.T) {
					t.Parallel()
					if conc.Race && c.knob == "ulimit -v" {
						t.Skip("the race detector maps more than any limit of addresses")
					}
					if c.also != "" && os.Getuid() != 0 {
						t.Skip("only root can be another user")
					}
					ranks := 2 + 2*((i+k)%2)
					limits := fmt.Sprintf("%d=%d", c.resource, v)
					if c.also != "" { // a user for each job, whose processes all count
						limits += c.also + strconv.Itoa(64000+4*i+k)
					}
					r := within(t, limits, way, ranks, prog, "use")
					if r.status == statusLimits {
						t.Skip(r.stderr)
					}
					if i < c.enough || r.status == 0 {
						r.want(t, 0)
						if got := strings.Count(r.stdout, "used\n"); got != ranks {
							t.Errorf("%d ranks of %d have done their part", got, ranks)
						}
						if strings.Contains(r.stderr, "less than the usual") && !strings.Contains(r.stderr, c.knob) {
							t.Errorf("a segment that had to shrink: %s", r.stderr)
						}
						return
					}
					if last := lastLine(r.stderr); r.status < 0 || !strings.Contains(last, c.knob) || !strings.Contains(last, "allows") && !strings.Contains(last, "may open") {
						t.Errorf("status %d; the last line names no limit, or not %s: %s", r.status, c.knob, r.stderr)
					}
					for _, crash := range []string{"fatal error:", "SIGABRT", "goroutine ", "pthread_create"} {
						if strings.Contains(r.stderr, crash) {
							t.Errorf("a runtime has crashed: %s", r.stderr)
							break
						}
					}
				})
			}
		}
	}
}

// TestLimitOfRank: a limit that a rank alone has, or that its runtime runs into, is in the last line.
func TestLimitOfRank(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	if !conc.Race {
		r := within(t, "", "shm", 2, "-segment", "1G", "sh", "-c", `ulimit -v 3000000 && exec "$0" use`, prog)
		r.want(t, 1)
		if last := lastLine(r.stderr); !strings.Contains(last, "allows 2.9 GiB, of which ") || !strings.Contains(last, "(ulimit -v)") || !strings.Contains(last, "-segment") {
			t.Errorf("the last line: %s", last)
		}
	}
	for _, c := range []struct{ limits, says, knob string }{
		{"6=200 uid=64998", "runtime/cgo: pthread_create failed: Resource temporarily unavailable", "allows 200 (ulimit -u)"},
		{"6=200 uid=64997", "runtime: failed to create new OS thread (have 5 already; errno=11)", "allows 200 (ulimit -u)"},
		{"7=200", "argon: socket: too many open files", "allows 200 (ulimit -n)"},
		{"7=200", "argon: socket: too many open files: it allows 7 (ulimit -n)", "it allows 7 (ulimit -n)"},
		{"2=4294967296", "fatal error: runtime: out of memory", "allows 4 GiB (ulimit -d)"},
		{"2=4294967296", "argon: nothing of the kind", "argon: nothing of the kind"},
	} {
		if strings.Contains(c.limits, "uid=") && os.Getuid() != 0 {
			continue // only root can be another user
		}
		r := within(t, c.limits, "shm", 1, "sh", "-c", `echo "$0" >&2; exit 2`, c.says)
		r.want(t, 2)
		if last := lastLine(r.stderr); !strings.HasSuffix(last, c.knob) {
			t.Errorf("%s: the last line: %s", c.says, last)
		}
	}
}
