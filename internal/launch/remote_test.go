package launch_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// A safe buffer is written to by launchers whose jobs a test looks at.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// ssh is a script that stands for ssh: $1 is the host, $2 the command.
func ssh(t *testing.T, body string) []string {
	t.Helper()
	return []string{testmain.Executable(t, filepath.Join(t.TempDir(), "ssh"), "#!/bin/sh\n"+body+"\n")}
}

const (
	sshHere = `exec sh -c "$2"` // this machine once more
	// Another one, which has none of the launcher's files.
	sshElsewhere = `c=$(printf %s "$2" | sed 's,p="/[^"]*",p="/nonexistent/gasrun",'); exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR" sh -c "$c"`
)

// onTwo places n ranks on each of two hosts, this machine or one that ssh reaches.
func onTwo(t *testing.T, c *launch.Config, here bool, n int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		c.Hosts = append(c.Hosts, launch.Host{Name: name, Slots: n, Here: here})
	}
	c.Deputy, c.Size = self, 0
}

// TestHosts runs jobs on hosts that are this machine, and that ssh reaches: what ranks
// write arrives, what rank 0 reads, and what the launcher says of it.
func TestHosts(t *testing.T) {
	for _, tc := range []struct {
		name, ssh, conduit string
		log                string
	}{
		{"here", "", "udp", "host a: its ranks find the others at 127.0.0.1:"},
		{"here", "", "hybrid", "rank 2 is pid "},
		{"by ssh", "echo 'Welcome to $1'; echo advice >&2;" + sshHere, "hybrid", "gasrun: a: Welcome to "},
		{"elsewhere", "TMPDIR=$TMPDIR; export TMPDIR;" + sshElsewhere, "udp", "there is no directory /surely/not/there; its ranks work in "},
	} {
		t.Run(tc.name+" "+tc.conduit, func(t *testing.T) {
			t.Parallel()
			var log safe
			r := testjob.RunConfig(t, 4, "ring", testjob.Config{Args: []string{"5"}, Launch: func(c *launch.Config) {
				onTwo(t, c, tc.ssh == "", 2)
				c.Conduit, c.Log, c.Verbose, c.Quiet = tc.conduit, &log, true, false
				if tc.ssh != "" {
					c.SSH = ssh(t, tc.ssh)
				}
				if tc.name == "elsewhere" {
					c.TempDir = t.TempDir()
					t.Cleanup(func() {
						if left, _ := filepath.Glob(c.TempDir + "/*"); len(left) > 0 {
							t.Errorf("%v is left", left)
						}
					})
				}
			}}).Want(t, 0)
			for i, s := range r.Stdout {
				if s != "attached\n" {
					t.Errorf("rank %d wrote %q", i, s)
				}
			}
			if !strings.Contains(log.String(), tc.log) && tc.name != "elsewhere" {
				t.Errorf("the log lacks %q: %s", tc.log, log.String())
			}
		})
	}
}

// cat copies standard input, of which rank 0 alone has any.
func cat() {
	ep, b := attach()
	in := make([]byte, 1<<16)
	for {
		n, err := os.Stdin.Read(in)
		os.Stdout.Write(in[:n])
		if err != nil {
			break
		}
	}
	pass(ep, b, 1)
	testjob.Check(ep.Close())
}

// TestHostsInput: more input than is ever under way at once reaches rank 0 unchanged, and
// comes back.
func TestHostsInput(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	r := testjob.RunConfig(t, 2, "cat", testjob.Config{Stdin: text, Launch: func(c *launch.Config) { onTwo(t, c, true, 1) }}).Want(t, 0)
	if r.Stdout[0] != text || r.Stdout[1] != "" {
		t.Errorf("%d and %d bytes came back of %d", len(r.Stdout[0]), len(r.Stdout[1]), len(text))
	}
}

// TestHostsEnd has ranks on hosts end in several ways, by themselves and by the launcher's
// doing.
func TestHostsEnd(t *testing.T) {
	for _, tc := range []struct {
		name, program string
		args          []string
		change        func(t *testing.T, c *launch.Config, log *safe)
		status        int
		want          string // of the error or the log
	}{
		{"status", "exit", []string{"1", "7"}, nil, 7, `rank 1 \(pid \d+ on b\) exited with status 7: the reason`},
		{"panic", "exit", []string{"0", "panic"}, nil, 2, `rank 0 \(pid \d+ on a\) exited with status 2: panic: boom, at .*/job_test.go:\d+ \(.*exit\)`},
		{"early", "early", []string{"after"}, nil, 1, "rank 1 .* exited with status 0 before it left the job"},
		{"killed", "ring", []string{"0"}, func(t *testing.T, c *launch.Config, _ *safe) {
			c.Started = func(pids []int) { syscall.Kill(pids[1], syscall.SIGKILL) }
		}, 137, "rank 1 .* killed by SIGKILL"},
		{"signal", "ring", []string{"0"}, func(t *testing.T, c *launch.Config, _ *safe) {
			sig := make(chan os.Signal, 1)
			c.Signals, c.Stdout = sig, onOutput("attached\n", 2, func() { sig <- syscall.SIGTERM })
		}, 143, "ended by SIGTERM"},
		{"question", "answer", nil, func(t *testing.T, c *launch.Config, _ *safe) {
			sig := make(chan os.Signal, 1)
			c.Signals, c.AnswerGrace = sig, never
			c.Stdout = onOutput("ready\n", 2, func() { sig <- syscall.SIGQUIT })
		}, jobenv.StatusQuit, `gasrun:   rank 0 \(pid \d+ on a\): for 10\n`},
		{"stubborn", "stubborn", nil, func(t *testing.T, c *launch.Config, _ *safe) {
			sig := make(chan os.Signal, 2)
			c.Signals, c.Stdout = sig, onOutput("ready\n", 2, func() { sig <- syscall.SIGINT; sig <- syscall.SIGINT })
		}, 130, "ended by SIGINT"},
		{"frozen", "ring", []string{"1"}, func(t *testing.T, c *launch.Config, log *safe) {
			c.Freeze, c.Quiet = []int{1}, false
			c.Started = func(pids []int) {
				for { // it stops itself
					if f := sys.ProcStat(pids[1]); len(f) == 0 || f[0] == "T" {
						break
					}
					time.Sleep(time.Millisecond)
				}
				syscall.Kill(pids[1], syscall.SIGCONT)
			}
		}, 0, `rank 1 \(pid \d+ on b\) stops before it runs`},
		{"host lost", "ring", []string{"0"}, func(t *testing.T, c *launch.Config, _ *safe) {
			c.SSH = ssh(t, sshHere)
			for i := range c.Hosts {
				c.Hosts[i].Here = false
			}
			c.Started = func(pids []int) { // the parent of rank 1
				f := sys.ProcStat(pids[1])
				if len(f) == 0 {
					t.Error("rank 1 has ended")
					return
				}
				ppid, _ := strconv.Atoi(f[1])
				syscall.Kill(ppid, syscall.SIGKILL)
			}
		}, 1, `host b: the connection was lost \(.*ssh was killed by SIGKILL\)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var log safe
			r := testjob.RunConfig(t, 2, tc.program, testjob.Config{Args: tc.args, KillGrace: never, Launch: func(c *launch.Config) {
				onTwo(t, c, true, 1)
				c.Log, c.Stderr = &log, &log
				if tc.change != nil {
					tc.change(t, c, &log)
				}
			}}).Want(t, tc.status)
			launch.Report(&log, r.Err)
			if !regexp.MustCompile(tc.want).MatchString(log.String()) {
				t.Errorf("%q is missing from %s", tc.want, log.String())
			}
		})
	}
}

// TestHostsCannotStart: if one host cannot start its ranks none runs, and the error names
// the host and what it has said.
func TestHostsCannotStart(t *testing.T) {
	testmain.Long(t)
	for _, tc := range []struct {
		name   string
		ssh    string
		change func(c *launch.Config)
		status int
		want   string
	}{
		{"no ssh", "", func(c *launch.Config) { c.SSH = []string{"/surely/not/there"} }, 1, `host a: cannot start /surely/not/there: .*no such file or directory \(-ssh\)`},
		{"fails", "echo no route to $1 >&2; exit 255", nil, 1, `host b: no route to b \(.*/ssh exited with status 255\)`},
		{"silent", "exit 0", nil, 1, `host a: ended before it could be used`},
		{"babbles", "yes", nil, 1, `host a: its login writes more than 262144 bytes and nothing that gasrun's script would, such as "y"`},
		{"another machine", `set -- $1 "$(printf %s "$2" | sed 's,p="/[^"]*",p="/none",; s,$(uname -m),pdp11,g')"; ` + sshHere, nil, 1, `host a: is a pdp11 machine: the executables here are for `},
		{"no room", `c=$(printf %s "$2" | sed 's,p="/[^"]*",p="",'); TMPDIR=/nonexistent exec sh -c "$c"`, nil, 1, `host a: mktemp: .*; no room for gasrun here \(-tmpdir, TMPDIR\)`},
		{"not gasrun", `printf '%s' "$2" | sed 's/.*token=\([^;]*\);.*/\1 have x86_64/'; echo; echo GET / HTTP/1.0; exec sleep 10000`, nil, 1, `host a: does not answer as gasrun does`},
		{"slow", "exec sleep 10000", func(c *launch.Config) { c.StartLimit = 50 * time.Millisecond }, 1, `host a: no answer in time \(50ms, -start-timeout\)`},
		{"no directory", sshHere, func(c *launch.Config) { c.Dir = "/surely/not/there" }, 1, `host a: working directory \(-wdir\): stat /surely/not/there: no such file or directory`},
		{"too much", sshHere, func(c *launch.Config) { c.Args = []string{strings.Repeat("x", 17<<20)} }, 1, `host a: arguments and environment of the ranks have \d+ bytes, at most 16777216`},
		{"other interface", sshHere, func(c *launch.Config) { c.Iface = "surely-none" }, 2, "surely-none"},
		{"not executable", sshHere, func(c *launch.Config) { c.Program = "/surely/not/there" }, 2, `/surely/not/there`},
		{"no deputy", sshHere, func(c *launch.Config) { c.Deputy = "/surely/not/there" }, 1, `cannot read gasrun's executable`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			c := launch.Config{Program: self, Env: []string{"ARGONTEST_JOB=ring"}, Args: []string{"1"}, Segment: 1 << 20}
			onTwo(t, &c, false, 1)
			c.SSH = ssh(t, tc.ssh)
			if tc.change != nil {
				tc.change(&c)
			}
			res, err := launch.Run(t.Context(), c)
			if res.Status != tc.status || err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) {
				t.Errorf("status %d, %v, want %d and %q", res.Status, err, tc.status, tc.want)
			}
		})
	}
}

// TestHostsInterruptedStart: a signal ends a job whose hosts have not answered yet.
func TestHostsInterruptedStart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sig := make(chan os.Signal, 1)
	sig <- syscall.SIGINT
	c := launch.Config{Program: self, Segment: 1 << 20, Signals: sig, SSH: ssh(t, "exec sleep 10000")}
	onTwo(t, &c, false, 1)
	res, err := launch.Run(t.Context(), c)
	if res.Status != 130 || err == nil || err.Error() != "ended by SIGINT, before the ranks were started" {
		t.Errorf("status %d, %v", res.Status, err)
	}
}

// TestPlan: what -t shows of a job on hosts.
func TestPlan(t *testing.T) {
	c := launch.Config{Program: "p", Size: 3, Conduit: "udp", Env: []string{"A=b"}, Freeze: []int{2}}
	onTwo(t, &c, true, 2)
	c.Size = 3
	plan := c.Plan()
	want := []string{"A=b", "ARGON_RANK=2", "ARGON_SIZE=3", "ARGON_LOCAL_RANK=0", "ARGON_LOCAL_SIZE=1", "ARGON_CONDUIT=udp", "ARGON_FREEZE=1"}
	if len(plan) != 3 || !slices.Equal(plan[2], want) {
		t.Errorf("plan %q, want %q last", plan, want)
	}
	if names := c.PlanHosts(); !slices.Equal(names, []string{"a", "a", "b"}) {
		t.Errorf("hosts %q", names)
	}
	if names := (&launch.Config{Size: 2}).PlanHosts(); names != nil {
		t.Errorf("hosts %q of a job without", names)
	}
}

// TestReport: the lines with which gasrun ends.
func TestReport(t *testing.T) {
	last := []string{"first", "second"}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errs.BadArg("launch: no \x1b[2J"), `gasrun: no \x1b[2J` + "\n"},
		{errors.Join(errors.New("one"), errors.New("launch: two")), "gasrun: one\ngasrun: two\n"},
		{&launch.RankError{Rank: 3, Pid: 7, Cause: "killed", Last: last}, "gasrun: last lines of rank 3 on standard error:\ngasrun:   first\ngasrun:   second\ngasrun: rank 3 (pid 7) killed\n"},
		{&launch.RankError{Rank: 3, Pid: 7, Host: "h", Cause: "killed", Last: last[:1]}, "gasrun: rank 3 (pid 7 on h) killed\n"},
		{&launch.RankError{Rank: -1, Pid: 7, Cause: "killed", Last: last}, "gasrun: the simulated job (pid 7) killed\n"},
	} {
		var b bytes.Buffer
		if launch.Report(&b, tc.err); b.String() != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, b.String(), tc.want)
		}
	}
	if !errors.Is(&launch.RankError{}, errs.ErrPeer) {
		t.Error("a RankError is no ErrPeer")
	}
}
