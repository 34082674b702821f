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
		{"-beside nothing,loop,nice,pulse,loop*2", ""},
		{"-beside loops", "-beside loops: known: nothing, loop, nice, pulse"},
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

// running are the neighbours that this process has started, and the niceness of each: the
// 4th and 19th field of /proc/PID/stat.
func running() map[int]string {
	l := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(env, []byte("\x00"+envNeighbour+"=")) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if _, rest, ok := bytes.Cut(stat, []byte(") ")); ok {
			if s := strings.Fields(string(rest)); s[1] == strconv.Itoa(os.Getpid()) {
				l[pid] = s[16]
			}
		}
	}
	return l
}

// TestBeside: neighbours of each kind run while rows do, and neither before nor after.
func TestBeside(t *testing.T) {
	for text, want := range map[string][]string{"nothing": nil, "loop": {"0"}, "nice": {"10"}, "pulse*2": {"0", "0"}} {
		l, err := parseBeside(text)
		if err != nil {
			t.Fatal(err)
		}
		err = l[0].with(func() error {
			var got []string
			for _, nice := range running() {
				got = append(got, nice)
			}
			if !slices.Equal(got, want) {
				t.Errorf("beside %s run processes of niceness %v, want %v", text, got, want)
			}
			return io.ErrUnexpectedEOF
		})
		if err != io.ErrUnexpectedEOF {
			t.Errorf("beside %s: an error came back as %v", text, err)
		}
		if left := running(); len(left) > 0 {
			t.Errorf("beside %s: %v are left", text, left)
		}
	}
	err := beside{text: "loop", kind: besideLoop, count: 1}.with(func() error {
		for pid := range running() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			sys.AwaitExit(pid, time.Minute)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "a neighbour has ended before the rows") {
		t.Errorf("rows whose neighbour has ended: %v", err)
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

// dies is a program that is killed while it has neighbours, whose process numbers it prints.
func dies() {
	testjob.Check(beside{text: "loop*2", kind: besideLoop, count: 2}.with(func() error {
		for pid := range running() {
			fmt.Println(pid)
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}))
}

// TestBesideKilled: neighbours do not outlive a gasbench that is killed.
func TestBesideKilled(t *testing.T) {
	defer testjob.AssertNoLeftovers(t)
	r := testjob.Run(t, 1, "dies")
	pids := strings.Fields(r.Stdout[0])
	if len(pids) != 2 {
		t.Fatalf("it had neighbours %v", pids)
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if !sys.AwaitExit(pid, time.Minute) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("neighbour %d still runs a minute after gasbench was killed", pid)
		}
	}
}
