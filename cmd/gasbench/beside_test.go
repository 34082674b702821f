package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestParseBeside(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{"-beside nothing,loop,nice,pulse,build,job,loop*2", ""},
		{"-beside loops", "-beside loops: known: nothing, loop, nice, pulse, build, job"},
		{"-beside loop,", "-beside : known"},
		{"-beside loop*0", `-beside loop*0: "0" is not a number from 1 to 1024`},
		{"-beside loop*", `-beside loop*: "" is not a number`},
		{"-beside loop,loop", "-beside loop: it is there twice"},
		{"-beside loop -conduit sim", "-beside is not for simulated jobs"},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
	o, err := parse(strings.Fields("-conduit shm -beside loop"), io.Discard)
	if err != nil || !slices.Contains(o.jobs.args, "-beside") {
		t.Errorf("ranks of -conduit shm get %+v, %v", o.jobs, err)
	}
}

// envTag is in the environment of all that a test starts.
const envTag = "GASBENCH_TEST_TAG"

// tagged are the processes that a neighbour of this test process is, or has started, and the niceness of those that are
// its children: the 4th and 19th field of /proc/PID/stat.
func tagged() (all []int, children []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("\x00"+envNeighbour+"=")) || !bytes.Contains(env, []byte("\x00"+envTag+"="+os.Getenv(envTag)+"\x00")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if s := sys.ProcStat(pid); len(s) > 0 && s[0] != "Z" {
			if all = append(all, pid); s[1] == strconv.Itoa(os.Getpid()) {
				children = append(children, s[16])
			}
		}
	}
	return all, children
}

// sameAgain are the arguments of a neighbour that is a job, which is this binary once more.
func sameAgain(set func(key, value string)) []string {
	set("ARGONTEST_JOB", "gasbench")
	return strings.Fields("-conduit shm -run am/short -time 10s")
}

// TestBeside: neighbours of each kind run while rows do, and neither before nor after.
func TestBeside(t *testing.T) {
	defer testjob.AssertNoLeftovers(t)
	t.Setenv(envTag, strconv.Itoa(os.Getpid()))
	t.Setenv("TMPDIR", t.TempDir())
	args := sameAgain(t.Setenv)
	prio, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // 20 less the niceness (getpriority(2))
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(20 - prio)
	for _, c := range []struct {
		text string
		more int // processes beside the neighbours, at least
		want []string
	}{
		{"nothing", 0, nil},
		{"loop", 0, []string{own}},
		{"nice", 0, []string{"10"}},
		{"pulse*2", 0, []string{own, own}},
		{"build", 1, []string{own}},
		{"job", 2, []string{own}},
	} {
		l, err := parseBeside(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if why := l[0].lacks(); why != "" {
			t.Logf("no %s here: %s", c.text, why)
			continue
		}
		err = l[0].with(args, func() error {
			all, children := tagged()
			if !slices.Equal(children, c.want) || len(all) < len(c.want)+c.more {
				t.Errorf("beside %s run processes of niceness %v, want %v, and %d in all", c.text, children, c.want, len(all))
			}
			return io.ErrUnexpectedEOF
		})
		if err != io.ErrUnexpectedEOF {
			t.Errorf("beside %s: an error came back as %v", c.text, err)
		}
		all, _ := tagged()
		for _, pid := range all { // compilers that were killed, until the system has taken them
			if !sys.AwaitExit(pid, time.Minute) {
				t.Errorf("beside %s: process %d is left", c.text, pid)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "gasbench-build-*")); left != nil {
			t.Errorf("beside %s: %v are left", c.text, left)
		}
	}
	err = beside{text: "loop", kind: besideLoop, count: 1}.with(nil, func() error {
		all, _ := tagged()
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			sys.AwaitExit(pid, time.Minute)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "a neighbour has ended before the rows") {
		t.Errorf("rows whose neighbour has ended: %v", err)
	}
}

// TestBesideLacks: without a go command rows beside builds are left out, and the report tells why.
func TestBesideLacks(t *testing.T) {
	r := testjob.RunConfig(t, 2, "gasbench", testjob.Config{
		Args: strings.Fields("-json -time 1us -bursts 1 -run rma/get -size 64 -beside build,nothing"), Env: []string{"PATH=/nonexistent"},
	}).Want(t, 0)
	if out := r.Stdout[0]; strings.Contains(out, `"beside":"build"`) || !strings.Contains(out, `"beside":"nothing"`) || !strings.Contains(r.Stderr[0], "gasbench: -beside build is left out: ") {
		t.Errorf("it writes\n%s\n%s", out, r.Stderr[0])
	}
}

// TestBesideRows: each row is there once for each neighbour, which it names.
func TestBesideRows(t *testing.T) {
	for _, format := range []string{"-json", "-json=false"} {
		r := testjob.RunConfig(t, 2, "gasbench", testjob.Config{
			Args: []string{format, "-time", "1us", "-bursts", "1", "-run", "rma/get", "-size", "64", "-beside", "nothing,loop"},
		}).Want(t, 0)
		out := r.Stdout[0]
		if format != "-json" {
			out = strings.NewReplacer("nothing ", `"beside":"nothing"`, "loop ", `"beside":"loop"`).Replace(out)
			if !strings.Contains(out, "\nbeside ") {
				t.Errorf("the table has no such column:\n%s", out)
			}
		}
		for _, b := range []string{"nothing", "loop"} {
			if k := strings.Count(out, `"beside":"`+b+`"`); k != 2 { // latency and bandwidth
				t.Errorf("%s: %d rows beside %s, want 2:\n%s", format, k, b, out)
			}
		}
	}
}

// dies is a program that is killed while it has neighbours, of the kind that its argument names. It prints
// the numbers of their processes.
func dies() {
	set := func(key, value string) { testjob.Check(os.Setenv(key, value)) }
	set(envTag, strconv.Itoa(os.Getpid()))
	args := sameAgain(set)
	l, err := parseBeside(os.Args[1])
	testjob.Check(err)
	testjob.Check(l[0].with(args, func() error {
		all, _ := tagged()
		for _, pid := range all {
			fmt.Println(pid)
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}))
}

// TestBesideKilled: neighbours, and what they have started, do not outlive a gasbench that is killed.
func TestBesideKilled(t *testing.T) {
	defer testjob.AssertNoLeftovers(t)
	t.Setenv("TMPDIR", t.TempDir())
	for kind, least := range map[string]int{"loop*2": 2, "build": 2, "job": 3} {
		if l, _ := parseBeside(kind); l[0].lacks() != "" {
			continue
		}
		r := testjob.RunConfig(t, 1, "dies", testjob.Config{Args: []string{kind}})
		pids := strings.Fields(r.Stdout[0])
		if len(pids) < least {
			t.Fatalf("beside %s it had neighbours %v", kind, pids)
		}
		for _, text := range pids {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			if !sys.AwaitExit(pid, time.Minute) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("beside %s: process %d still runs a minute after gasbench was killed", kind, pid)
			}
		}
	}
}
