package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/sandbox"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// envMain makes the test binary behave as gasrun.
const envMain = "GASRUN_TEST_MAIN"

// envStopped is the rank of gasrun -check that stops before it begins.
const envStopped = "GASRUN_TEST_STOPPED"

func TestMain(m *testing.M) {
	enterLimits()
	sandbox.Enter()
	if dir := os.Getenv(envSiteGuard); dir != "" {
		guardSite(dir, os.Stdin)
		return
	}
	ofCheck := len(os.Args) > 1 && os.Args[1] == "measure-networks" // a rank of gasrun itself
	if at := os.Getenv(envStopped); ofCheck && at != "" && at == os.Getenv(jobenv.Rank) {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	if ofCheck || os.Getenv(envMain) != "" || os.Getenv(launch.EnvGuard) != "" || os.Getenv(launch.EnvDeputy) != "" {
		os.Unsetenv(envMain)
		launch.DefaultAnswerGrace, launch.DefaultAskTime, launch.SettleTime = time.Minute, time.Minute, time.Minute
		launch.DeathGrace = 10 * time.Second
		main()
		return
	}
	status := testmain.Run(m)
	for _, dir := range []string{gasprog.dir, simprogs.dir} {
		if dir != "" {
			os.RemoveAll(dir)
		}
	}
	os.Exit(status)
}

// command is gasrun with args, in a directory for temporary files of its own.
func command(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp = t.TempDir()
	cmd = exec.Command(self, args...)
	cmd.Env = append(os.Environ(), envMain+"=1", "TMPDIR="+temp)
	t.Cleanup(func() { // of a test that gave up
		if cmd.Process != nil && cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, temp
}

type result struct {
	status         int
	stdout, stderr string
	stacks         string // of the file that stderr names
}

var stacksFile = regexp.MustCompile(`(?m)^gasrun: the stacks of the goroutines are in (.*)$`)

func gasrun(t *testing.T, args ...string) result {
	t.Helper()
	cmd, _ := command(t, args...)
	return finish(t, cmd)
}

// finish runs cmd and checks that it leaves no temporary files.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Start(); e != nil {
		t.Fatal(e)
	}
	return await(t, cmd, &out, &err)
}

func await(t *testing.T, cmd *exec.Cmd, out, err *bytes.Buffer) result {
	t.Helper()
	e := cmd.Wait()
	var ee *exec.ExitError
	if e != nil && !errors.As(e, &ee) {
		t.Fatal(e)
	}
	r := result{status: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: err.String()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		r.status = -int(ws.Signal())
	}
	if m := stacksFile.FindStringSubmatch(r.stderr); m != nil {
		b, err := os.ReadFile(m[1])
		if err != nil {
			t.Error(err)
		}
		r.stacks = "\n" + string(b)
		_ = os.Remove(m[1]) // it is there
	}
	temp := ""
	for _, kv := range cmd.Env {
		if dir, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
			temp = dir // the last one counts: ours, after that of the environment
		}
	}
	if left, _ := filepath.Glob(temp + "/*"); temp != "" && len(left) > 0 && r.status >= 0 {
		t.Errorf("gasrun left %v", left)
	}
	return r
}

func (r result) want(t *testing.T, status int, stderr ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d", r.status, status)
	}
	for _, s := range stderr {
		if !strings.Contains(r.stderr, s) {
			t.Errorf("%q is missing", s)
		}
	}
	if t.Failed() {
		t.Logf("status %d\nstdout: %s\nstderr: %s%s", r.status, r.stdout, r.stderr, r.stacks)
	}
}

// lastLine is the last line of s.
func lastLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func TestBadInput(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"nothing", nil, []string{"no program given", "gasrun -help"}},
		{"only flags", []string{"-n", "2", "--"}, []string{"no program given"}},
		{"unknown flag", []string{"-np", "2", "true"}, []string{"-np"}},
		{"n 0", []string{"-n", "0", "true"}, []string{`"0"`, "-n", "1 to 65536"}},
		{"n x", []string{"-n", "x", "true"}, []string{`"x"`, "-n", "1 to 65536"}},
		{"n -1", []string{"-n", "-1", "true"}, []string{`"-1"`, "-n", "1 to 65536"}},
		{"n large", []string{"-n", "65537", "true"}, []string{`"65537"`, "-n", "1 to 65536"}},
		{"n huge", []string{"-n", "99999999999999999999", "true"}, []string{"-n", "1 to 65536"}},
		{"no such program", []string{"no-such-program"}, []string{`"no-such-program"`, "PATH"}},
		{"no such file", []string{"./no/such/program"}, []string{"./no/such/program", "no such file"}},
		{"not executable", []string{plain}, []string{plain, "permission denied"}},
		{"does not build", []string{"./testdata/broken"}, []string{"undefinedFunction", "main.go:4", "./testdata/broken does not build"}},
		{"not main", []string{"./testdata/library"}, []string{"./testdata/library is not a main package"}},
		{"no such package", []string{"github.com/argon-go/argon/nothing/here"}, []string{"github.com/argon-go/argon/nothing/here does not build"}},
		{"not main by path", []string{"github.com/argon-go/argon/segment"}, []string{"argon/segment is not a main package"}},
		{"no Go file", []string{"no-such.go"}, []string{"no-such.go", "no such file"}},
		{"no Go files", []string{"./testdata/empty"}, []string{"./testdata/empty", "without Go files"}},
		{"empty program", []string{""}, []string{"name is empty"}},
		{"segment", []string{"-segment", "1Q", "true"}, []string{`"1Q"`, "-segment", "K, M, G"}},
		{"pinnable", []string{"-pinnable", "much", "true"}, []string{`"much"`, "-pinnable", "K, M, G"}},
		{"pin-bucket", []string{"-pin-bucket", "96K", "true"}, []string{"98304", "-pin-bucket", "power of two pages"}},
		{"segment 0", []string{"-segment", "0", "true"}, []string{`"0"`, "-segment"}},
		{"x nothing", []string{"-x", "", "true"}, []string{"-x", "VARIABLE=VALUE"}},
		{"x no name", []string{"-x", "=1", "true"}, []string{`"=1"`, "-x"}},
		{"x not set", []string{"-x", "SURELY_NOT_SET", "true"}, []string{"SURELY_NOT_SET", "-x", "not set"}},
		{"x ours", []string{"-x", "ARGON_RANK=1", "true"}, []string{"ARGON_RANK", "-x"}},
		{"x unknown", []string{"-x", "ARGON_SEGMNET=1M", "true"}, []string{"gasrun: ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT? (-x)\n"}},
		{"x unused", []string{"-x", "ARGON_AUTH=none", "true"}, []string{`ARGON_AUTH="none"`, "conduit shm", "udp and hybrid", "-x"}},
		{"x of a simulation", []string{"-x", "ARGON_SIM=seed=1", "true"}, []string{"ARGON_SIM", "conduit shm", "-x"}},
		{"x of a simulation's flags", []string{"-conduit", "sim", "-x", "ARGON_SIM=seed=1", "true"}, []string{"-x ARGON_SIM", "-sim"}},
		{"freeze", []string{"-n", "2", "-freeze", "2", "true"}, []string{"rank 2", "0..1", "-freeze"}},
		{"freeze -1", []string{"-freeze", "-1", "true"}, []string{"rank -1", "-freeze"}},
		{"freeze x", []string{"-freeze", "x", "true"}, []string{`"x"`, "-freeze"}},
		{"wdir", []string{"-wdir", plain + "/none", "true"}, []string{"/none", "-wdir"}},
		{"wdir file", []string{"-wdir", plain, "true"}, []string{"not a directory", "-wdir"}},
		{"wdir empty", []string{"-wdir", "", "true"}, []string{"-wdir", "empty"}},
		{"output-dir empty", []string{"-output-dir", "", "true"}, []string{"-output-dir", "empty"}},
		{"bind", []string{"-bind", "socket", "true"}, []string{`"socket"`, "-bind", "spread, core, numa and none"}},
		{"conduit", []string{"-conduit", "pigeon", "true"}, []string{`"pigeon"`, "known: ", "shm"}},
		{"conduit empty", []string{"-conduit", "", "true"}, []string{"-conduit", "empty", "known: ", "shm"}},
		{"x newline", []string{"-x", "A\nB=1", "true"}, []string{`"A\nB"`, "-x", "no name"}},
		{"x newline without value", []string{"-x", "A\nB", "true"}, []string{`"A\nB"`, "-x"}},
		{"tmpdir empty", []string{"-tmpdir", "", "true"}, []string{"-tmpdir", "empty"}},
		{"tmpdir relative", []string{"-tmpdir", "here", "true"}, []string{"-tmpdir", `"here"`, "absolute"}},
		{"tmpdir to quote", []string{"-tmpdir", "/a b", "true"}, []string{"-tmpdir", `"/a b"`}},
		{"timeout", []string{"-timeout", "5", "true"}, []string{`"5"`, "-timeout", "such as 90s"}},
		{"timeout 0", []string{"-timeout", "0", "true"}, []string{"-timeout"}},
		{"kill-grace x", []string{"-kill-grace", "soon", "true"}, []string{`"soon"`, "-kill-grace", "such as 90s"}},
		{"kill-grace", []string{"-kill-grace", "-1s", "true"}, []string{"negative"}},
		{"v and q", []string{"-v", "-q", "true"}, []string{"-v and -q"}},
		{"two faults", []string{"-freeze", "7", "-conduit", "x", "true"}, []string{"rank 7", `"x"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := gasrun(t, tc.args...)
			r.want(t, jobenv.StatusUsage, tc.want...)
			for _, l := range strings.Split(strings.TrimSpace(r.stderr), "\n") {
				if strings.HasPrefix(l, "gasrun: launch:") || strings.Contains(l, "goroutine") {
					t.Errorf("line %q", l)
				}
			}
		})
	}
}

// TestBadEnvironment: what cannot be meant in gasrun's own environment is one line,
// and nothing runs.
func TestBadEnvironment(t *testing.T) {
	for _, tc := range []struct {
		env  string
		args []string
		want string
	}{
		{"ARGON_SEGMNET=1M", nil, "gasrun: ARGON_SEGMNET is no variable of argon; did you mean ARGON_SEGMENT?\n"},
		{"ARGON_GUARD=1", nil, "gasrun: ARGON_GUARD=1 is set by hand; gasrun sets it for processes of its own, and no job starts with it: unset it\n"},
		{"ARGON_DEPUTY=1", nil, "gasrun: ARGON_DEPUTY=1 is set by hand; gasrun sets it for processes of its own, and no job starts with it: unset it\n"},
		{"ARGON_HOST=a\nb", nil, "gasrun: ARGON_HOST=\"a\\nb\"; allowed: printable text on one line\n"},
		{"ARGON_SIM=seed=1", nil, "gasrun: ARGON_SIM=\"seed=1\" is not used by conduit shm, but by sim (-conduit, ARGON_CONDUIT)\n"},
		{"ARGON_SHM_PROCESS_VM=maybe", nil, "gasrun: ARGON_SHM_PROCESS_VM=\"maybe\" is not 0 or 1\n"},
		{"ARGON_SIM_AGAIN=file", []string{"-conduit", "sim"}, "gasrun: ARGON_SIM_AGAIN=\"file\" is for programs that run without gasrun, whose flag is -again\ngasrun: see gasrun -help\n"},
	} {
		cmd, _ := command(t, append(tc.args, "echo", "runs")...)
		cmd.Env = append(cmd.Env, tc.env)
		r := finish(t, cmd)
		r.want(t, jobenv.StatusUsage)
		if r.stderr != tc.want || r.stdout != "" {
			t.Errorf("%s: %q, want %q; output %q", tc.env, r.stderr, tc.want, r.stdout)
		}
	}
}

// TestEnvironmentOfSites: what gasrun's environment says for other jobs is no error.
func TestEnvironmentOfSites(t *testing.T) {
	cmd, _ := command(t, "-t", "-n", "1", "true")
	cmd.Env = append(cmd.Env, "ARGON_IFACE=eth7", "ARGON_AUTH=encrypted", "ARGON_DATAGRAM=9000", "ARGON_RENDEZVOUS=a:1", "ARGON_SIM=")
	finish(t, cmd).want(t, 0)
}

func TestTooLargeSegment(t *testing.T) {
	gasrun(t, "-segment", "1000000T", "true").want(t, jobenv.StatusFailed, "-segment")
}

func TestHelp(t *testing.T) {
	r := gasrun(t, "-help")
	r.want(t, 0)
	for _, f := range []string{"-n ", "-conduit ", "-segment ", "-segment-large ", "-pinnable ", "-pin-local ", "-pin-bucket ", "-l ", "-output-dir ", "-x ", "-wdir ", "-bind ", "-timeout ", "-kill-grace ", "-freeze ", "-t ", "-v,", "-q ", "shm"} {
		if !strings.Contains(r.stdout, f) {
			t.Errorf("%q is missing", f)
		}
	}
}

// A package is built from a directory, a file or an import path, in whatever
// module the directory lies, and nothing is left of it.
func TestBuildAndRun(t *testing.T) {
	other := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module other\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"other\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(other, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := "rank 0 of 2: -n|a b|\nrank 1 of 2: -n|a b|\n"
	for _, p := range []string{"testdata/hello", "testdata/hello/main.go", "github.com/argon-go/argon/cmd/gasrun/testdata/hello"} {
		r := gasrun(t, "-n", "2", p, "-n", "a b", "")
		r.want(t, 0)
		if sorted(r.stdout) != want || r.stderr != "" {
			t.Errorf("%s wrote %q and %q, want %q", p, r.stdout, r.stderr, want)
		}
	}
	r := gasrun(t, "--", other)
	r.want(t, jobenv.StatusFailed, "probably not an argon program")
	if r.stdout != "other\n" {
		t.Errorf("wrote %q", r.stdout)
	}
}

// sorted sorts the lines of s.
func sorted(s string) string {
	l := strings.SplitAfter(s, "\n")
	for i := range l {
		for k := i; k > 0 && l[k] != "" && l[k] < l[k-1]; k-- {
			l[k], l[k-1] = l[k-1], l[k]
		}
	}
	return strings.Join(l, "")
}

func TestStatusAndFinalLine(t *testing.T) {
	testmain.Long(t)
	r := gasrun(t, "-n", "3", "-kill-grace", "1h", "sh", "-c", `if [ $ARGON_RANK = 1 ]; then echo first >&2; echo the reason >&2; exit 7; fi; exec sleep 10000`)
	r.want(t, 7, "gasrun:   first\n")
	if l := lastLine(r.stderr); !strings.HasPrefix(l, "gasrun: rank 1 (pid ") || !strings.HasSuffix(l, ") exited with status 7: the reason") {
		t.Errorf("the last line is %q", l)
	}
	r = gasrun(t, "-n", "2", "sh", "-c", `if [ $ARGON_RANK = 1 ]; then printf unfinished >&2; kill -9 $$; fi; exec sleep 10000`)
	r.want(t, 137, "unfinished\n")
	if l := lastLine(r.stderr); !strings.HasPrefix(l, "gasrun: rank 1 (pid ") || !strings.HasSuffix(l, ") killed by SIGKILL") {
		t.Errorf("the last line is %q", l)
	}
}

func TestLabelsAndDirectories(t *testing.T) {
	dir := t.TempDir()
	r := gasrun(t, "-n", "2", "-l", "-wdir", dir, "-x", "GREETING=good day", "-x", "HOME", "-output-dir", filepath.Join(dir, "out"),
		"sh", "-c", `echo $GREETING; pwd >&2; printf end`)
	r.want(t, jobenv.StatusFailed)
	if want := "[0] end\n[0] good day\n[1] end\n[1] good day\n"; sorted(r.stdout) != want {
		t.Errorf("wrote %q, want %q", sorted(r.stdout), want)
	}
	for _, f := range []string{"rank-0", "rank-1"} {
		o, err1 := os.ReadFile(filepath.Join(dir, "out", f+".out"))
		e, err2 := os.ReadFile(filepath.Join(dir, "out", f+".err"))
		if err1 != nil || err2 != nil || string(o) != "good day\nend" || strings.TrimSpace(string(e)) != dir {
			t.Errorf("files of %s hold %q and %q, %v, %v", f, o, e, err1, err2)
		}
	}
}

func TestDryRun(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	r := gasrun(t, "-t", "-n", "2", "-x", "A=it's", "-segment", "2M", "-freeze", "1", "touch", mark)
	r.want(t, 0)
	want := `rank 0: env 'A=it'\''s' ARGON_RANK=0 ARGON_SIZE=2 ARGON_LOCAL_RANK=0 ARGON_LOCAL_SIZE=2 ARGON_CONDUIT=shm ARGON_SEGMENT=2097152 touch ` + mark + `
rank 1: env 'A=it'\''s' ARGON_RANK=1 ARGON_SIZE=2 ARGON_LOCAL_RANK=1 ARGON_LOCAL_SIZE=2 ARGON_CONDUIT=shm ARGON_SEGMENT=2097152 ARGON_FREEZE=1 touch ` + mark + "\n"
	if r.stdout != want {
		t.Errorf("wrote\n%s, want\n%s", r.stdout, want)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program has run")
	}
	r = gasrun(t, "-t", "-segment-large", "-segment", "3G", "-pinnable", "1M", "-pin-local", "8K", "-pin-bucket", "4K", "touch", mark)
	r.want(t, 0)
	want = "rank 0: env ARGON_PINNABLE=1M ARGON_PIN_LOCAL=8K ARGON_PIN_BUCKET=4K ARGON_RANK=0 ARGON_SIZE=1 ARGON_LOCAL_RANK=0 ARGON_LOCAL_SIZE=1 ARGON_CONDUIT=shm ARGON_SEGMENT=3221225472 ARGON_SEGMENT_LARGE=1 touch " + mark + "\n"
	if r.stdout != want {
		t.Errorf("wrote\n%s, want\n%s", r.stdout, want)
	}
	r = gasrun(t, "-t", "./testdata/broken", "arg")
	r.want(t, 0)
	if !strings.HasPrefix(r.stdout, "build: go build -C ./testdata/broken ") || !strings.HasSuffix(r.stdout, " TEMPORARY arg\n") {
		t.Errorf("wrote %q", r.stdout)
	}
}

func TestFreezeIsAnnounced(t *testing.T) {
	r := gasrun(t, "-n", "2", "-freeze", "1", "sh", "-c", `echo "$ARGON_RANK,$ARGON_FREEZE"`)
	r.want(t, jobenv.StatusFailed, "gasrun: rank 1 (pid ", "dlv attach ", "kill -CONT ")
	if got := sorted(r.stdout); got != "0,\n1,1\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestOtherLaunchersAreNamed(t *testing.T) {
	for _, tc := range []struct{ rank, size, want string }{
		{"SLURM_PROCID=3", "SLURM_NTASKS=8", "started by Slurm (SLURM_PROCID=3, SLURM_NTASKS=8)"},
		{"PMI_RANK=1", "PMI_SIZE=", "started by PMI (PMI_RANK=1)"},
		{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "started by Open MPI (OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=2)"},
	} {
		cmd, _ := command(t, "-v", "true")
		cmd.Env = append(cmd.Env, tc.rank, tc.size)
		r := finish(t, cmd)
		r.want(t, jobenv.StatusFailed, tc.want, "rank 0 is pid ", "ended with status 0, not attached")
	}
	if r := gasrun(t, "true"); strings.Contains(r.stderr, "started by") {
		t.Errorf("wrote %q", r.stderr)
	}
}

func TestStdin(t *testing.T) {
	cat := []string{"-n", "2", "sh", "-c", `cat; echo end $ARGON_RANK`}
	want := "end 0\nend 1\nline"
	t.Run("pipe", func(t *testing.T) {
		cmd, _ := command(t, cat...)
		cmd.Stdin = strings.NewReader("line\n")
		if r := finish(t, cmd); sorted(r.stdout) != want+"\n" {
			t.Errorf("wrote %q", r.stdout)
		}
	})
	t.Run("file", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(name, []byte("line\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd, _ := command(t, cat...)
		cmd.Stdin = f
		if r := finish(t, cmd); sorted(r.stdout) != want+"\n" {
			t.Errorf("wrote %q", r.stdout)
		}
	})
	t.Run("closed", func(t *testing.T) {
		cmd, _ := command(t, cat...)
		sh := exec.Command("/bin/sh", append([]string{"-c", `exec "$0" "$@" <&-`, cmd.Path}, cat...)...)
		sh.Env = cmd.Env
		if r := finish(t, sh); sorted(r.stdout) != "end 0\nend 1\n" {
			t.Errorf("wrote %q", r.stdout)
		}
	})
	// When rank 0 is gone no process holds the reading end any more.
	t.Run("writer learns", func(t *testing.T) {
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := command(t, "-n", "2", "sh", "-c", `if [ $ARGON_RANK = 0 ]; then read x; echo $x; else read x < `+fifo+`; fi`)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &out, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		block := make([]byte, 4096)
		copy(block, "hello\n")
		for err == nil { // until the pipe is full, then until it breaks
			_, err = w.Write(block)
		}
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing ended with %v", err)
		}
		if err := os.WriteFile(fifo, []byte("go\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if res := await(t, cmd, &out, &errs); res.stdout != "hello\n" {
			t.Errorf("wrote %q", res.stdout)
		}
	})
}

// script starts gasrun with ranks that write "ready" to standard output, and
// returns when all have done so.
func script(t *testing.T, n int, text string, flags ...string) (cmd *exec.Cmd, rest *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	args := append([]string{"-n", fmt.Sprint(n)}, flags...)
	cmd, rest, stderr = started(t, append(args, "sh", "-c", text)...)
	awaitReady(t, n, rest, stderr)
	return cmd, rest, stderr
}

// awaitReady returns when n ranks have written "ready".
func awaitReady(t *testing.T, n int, rest *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	for range n {
		if l, err := rest.ReadString('\n'); err != nil || !strings.HasSuffix(l, "ready\n") {
			t.Fatalf("read %q, %v; %s", l, err, stderr)
		}
	}
}

// started starts gasrun; rest is its standard output, of which the test has the only
// reading end.
func started(t *testing.T, args ...string) (cmd *exec.Cmd, rest *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	cmd, r, stderr := piped(t, args...)
	return cmd, bufio.NewReader(r), stderr
}

// piped is started for a test that closes the reading end.
func piped(t *testing.T, args ...string) (cmd *exec.Cmd, r *os.File, stderr *bytes.Buffer) {
	t.Helper()
	cmd, _ = command(t, args...)
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, output(t, cmd), stderr
}

// output starts cmd. What it writes to those outputs that the test has not set comes from r, the only reading end.
func output(t *testing.T, cmd *exec.Cmd) (r *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if cmd.Stdout == nil {
		cmd.Stdout = w
	}
	if cmd.Stderr == nil {
		cmd.Stderr = w
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return r
}

// send sends sig to cmd.
func send(t *testing.T, cmd *exec.Cmd, sig os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// interrupted is how cmd ends by SIGINT, with the rest of what it writes to both outputs as standard error.
func interrupted(t *testing.T, cmd *exec.Cmd, out *bufio.Scanner) result {
	t.Helper()
	send(t, cmd, syscall.SIGINT)
	var rest bytes.Buffer
	for out.Scan() {
		rest.WriteString(out.Text() + "\n")
	}
	r := await(t, cmd, &bytes.Buffer{}, &rest)
	r.want(t, 130, "gasrun: ended by SIGINT")
	return r
}

// A signal ends the build of a package, and with it gasrun.
func TestInterruptedBuild(t *testing.T) {
	testmain.Long(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sys.SignalName(sig), func(t *testing.T) {
			path := t.TempDir() // a go command that does not end
			testmain.Executable(t, filepath.Join(path, "go"), "#!/bin/sh\necho building\nexec sleep 10000\n")
			cmd, _ := command(t, "-n", "2", "./testdata/hello")
			cmd.Env = append(cmd.Env, "PATH="+path+":"+os.Getenv("PATH"))
			rest := bufio.NewReader(output(t, cmd))
			if l, err := rest.ReadString('\n'); l != "building\n" {
				t.Fatalf("read %q, %v", l, err)
			}
			send(t, cmd, sig)
			said, err := io.ReadAll(rest) // to the end of sleep, too
			if err != nil {
				t.Fatal(err)
			}
			await(t, cmd, &bytes.Buffer{}, bytes.NewBuffer(said)).want(t, 128+int(sig), "ended by "+sys.SignalName(sig))
		})
	}
}

func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		sig    syscall.Signal
		text   string
		status int
		want   string
	}{
		{syscall.SIGINT, "echo ready; exec sleep 10000", 130, "ended by SIGINT"},
		{syscall.SIGTERM, "echo ready; exec sleep 10000", 143, "ended by SIGTERM"},
		{syscall.SIGHUP, "echo ready; exec sleep 10000", 129, "ended by SIGHUP"},
		{syscall.SIGINT, "trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done", 3, "exited with status 3"},
		{syscall.SIGUSR2, "trap 'exit 5' USR2; echo ready; while :; do sleep 0.01; done", 5, "exited with status 5"},
		{syscall.SIGQUIT, "echo ready; exec sleep 10000", 131, "where each rank waits"},
	} {
		t.Run(fmt.Sprint(sys.SignalName(tc.sig), tc.status), func(t *testing.T) {
			t.Parallel()
			cmd, rest, stderr := script(t, 3, tc.text, "-kill-grace", "1h")
			send(t, cmd, tc.sig)
			await(t, cmd, &bytes.Buffer{}, stderr).want(t, tc.status, tc.want)
			if more, err := io.ReadAll(rest); err != nil || len(more) > 0 {
				t.Errorf("then came %q, %v", more, err)
			}
		})
	}
}

// gasrun status says in another terminal where the ranks of a job wait, which goes on, or of several which there are.
func TestStatus(t *testing.T) {
	var jobs []*exec.Cmd
	for _, flags := range [][]string{{"-n", "2"}, {"-hosts", "localhost:1,localhost:1"}} {
		cmd, rest, stderr := started(t, append(flags, program(t), "wait")...)
		awaitReady(t, 2, rest, stderr)
		jobs = append(jobs, cmd)
		defer func() {
			send(t, cmd, syscall.SIGINT)
			r := await(t, cmd, &bytes.Buffer{}, stderr)
			r.want(t, 130)
			if strings.Contains(r.stderr, ": job ") {
				t.Errorf("the job says what it was asked: %s", r.stderr)
			}
		}()
	}
	all := gasrun(t, "status") // whose status tells of others' jobs, too
	for _, cmd := range jobs {
		pid := cmd.Process.Pid
		if line := regexp.MustCompile(fmt.Sprintf(`(?m)^job %d: gasprog.*, ranks 0\.\.1, for \d+s$`, pid)); !line.MatchString(all.stdout) {
			t.Errorf("no line for job %d: %s", pid, all.stdout)
		}
		want := regexp.MustCompile(fmt.Sprintf(`^gasrun: job %d: gasprog.*, ranks 0\.\.1, for \d+s: rank 0 .*, which rank 1 waits for, sleeps .* at main\.go:\d+.*\ngasrun:   rank 0 .*\ngasrun:   rank 1 .*barrier.*\n$`, pid))
		for { // ranks may not have come there yet, or not answer in time
			r := gasrun(t, "status", strconv.Itoa(pid))
			if r.status != 0 || !strings.Contains(r.stdout, "\ngasrun:   rank 1 ") {
				t.Fatalf("status %d, %s%s", r.status, r.stdout, r.stderr)
			}
			if want.MatchString(r.stdout) {
				break
			}
		}
	}
	gasrun(t, "status", "1").want(t, jobenv.StatusUsage, "no job is 1; there are ", strconv.Itoa(jobs[0].Process.Pid))
	gasrun(t, "status", "-n").want(t, jobenv.StatusUsage, "usage: gasrun status [JOB]")
}

// SIGUSR1 to gasrun says where ranks wait, as often as it comes, and the job goes on; an
// interrupt says so before it ends the job, unless -q is given.
func TestAskedAndInterrupted(t *testing.T) {
	for name, flags := range map[string][]string{
		"shm":   {"-n", "3"},
		"quiet": {"-n", "3", "-q"},
		"hosts": {"-hosts", "localhost:2,localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, _ := command(t, append(flags, program(t), "wait")...)
			out := bufio.NewScanner(output(t, cmd))
			next := func() string {
				if !out.Scan() {
					t.Fatalf("the output has ended: %v", out.Err())
				}
				return out.Text()
			}
			for range 3 {
				for next() != "ready" {
				}
			}
			for reports, answered := 0, 0; answered < 2; reports++ {
				send(t, cmd, syscall.SIGUSR1)
				if s := next(); !strings.HasPrefix(s, "gasrun: SIGUSR1") {
					t.Fatalf("report %d begins with %q", reports, s)
				}
				for r, where := range []string{"sleeps (time.Sleep) at main.go:", "barrier", "barrier"} {
					line := next()
					if strings.HasPrefix(line, fmt.Sprintf("gasrun:   rank %d (pid ", r)) && strings.Contains(line, "): "+where) {
						continue
					}
					if !strings.Contains(line, "does not answer") && !strings.Contains(line, "at main.go:") { // yet, on a machine with much to do
						t.Fatalf("line for rank %d is %q", r, line)
					}
					answered--
				}
				answered++
			}
			rest := interrupted(t, cmd, out).stderr
			if told := regexp.MustCompile(`gasrun: SIGINT: rank 0 \(pid \d+[^)]*\), which ranks 1-2 wait for, sleeps .time.Sleep. at main.go:\d+.*\ngasrun:   rank 0 \(pid `).MatchString(rest); told != (name != "quiet") {
				t.Errorf("it says %q", rest)
			}
		})
	}
}

// -top shows what ranks do, without an end of the job, and no answer of theirs is in the output.
func TestTop(t *testing.T) {
	t.Parallel()
	cmd, _ := command(t, "-top", "-stall", "0", "-hosts", "localhost:2,localhost:1", program(t), "wait")
	out := bufio.NewScanner(output(t, cmd))
	missing := []*regexp.Regexp{
		regexp.MustCompile(`^3 ranks +\d+ +\d+ +\d+ +\d+\.\d\d +[1-9][0-9.]*M +waits 2, goes on 1$`),
		regexp.MustCompile(`^localhost#2 .* waits 1$`),
		regexp.MustCompile(`^rank 0 +goes on .*M +(\d+s)? +sleeps \(time.Sleep\) at main.go:\d+$`),
		regexp.MustCompile(`^rank 2 +waits +0 +0 .*M +[1-9][0-9hms]*s  barrier .*waiting for rank 0.*, at main.go:\d+ `),
	}
	for len(missing) > 0 {
		if !out.Scan() {
			t.Fatalf("the output has ended: %v", out.Err())
		}
		if strings.Contains(out.Text(), "argon: where rank") {
			t.Errorf("the output has %q", out.Text())
		}
		missing = slices.DeleteFunc(missing, func(m *regexp.Regexp) bool { return m.MatchString(out.Text()) })
	}
	interrupted(t, cmd, out)
}

// -monitor-record writes what ranks do as it is seen, with their peers, until Ctrl-C; of a file that takes nothing it tells, and the
// job goes on.
func TestMonitorRecord(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	gasrun(t, "-monitor-record", name, program(t), "good").want(t, 2, "-monitor-record") // no process reads it
	pipe, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	open, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0) // until gasrun has, so that it has no end
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	cmd, _ := command(t, "-monitor-record", name, "-stall", "0", "-hosts", "localhost:2,localhost:1", program(t), "wait")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("read %q, %v", line, err)
		}
		if regexp.MustCompile(`^\{"view":.*"state":"waits 2, goes on 1".*"pairs":\[\{"from":\d,"to":\d,"count":[1-9].*"report":".*; to rank \d: [1-9]`).MatchString(line) {
			break
		}
	}
	send(t, cmd, syscall.SIGINT)
	open.Close()
	rest, err := io.ReadAll(in)
	await(t, cmd, &bytes.Buffer{}, &stderr).want(t, 130, "gasrun: ended by SIGINT", "recorded in "+name)
	if err != nil || len(rest) > 0 && rest[len(rest)-1] != '\n' {
		t.Errorf("the recording ends with %q, %v", rest, err)
	}

	gasrun(t, "-monitor-record", "/dev/full", program(t), "good").want(t, 0, "no space left")
	gasrun(t, "-monitor-record", "", program(t), "good").want(t, 2, "the name is empty")
	gasrun(t, "monitor").want(t, 2, "usage: gasrun monitor FILE")
	gasrun(t, "monitor", name+"2").want(t, 2, name+"2")
}

func TestSecondInterruptKills(t *testing.T) {
	cmd, rest, stderr := script(t, 2, "trap 'echo again' INT; echo ready; while :; do sleep 0.01; done", "-kill-grace", "1h")
	send(t, cmd, syscall.SIGINT)
	for range 2 {
		if l, err := rest.ReadString('\n'); err != nil || l != "again\n" {
			t.Fatalf("read %q, %v", l, err)
		}
	}
	send(t, cmd, syscall.SIGINT)
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, 130, "ended by SIGINT")
}

// Where a sandbox forbids membarrier(2), jobs run without it, and -v says so.
func TestWithoutMembarrier(t *testing.T) {
	testmain.Long(t)
	for _, verbose := range []bool{false, true} {
		args := []string{"-n", "3", program(t), "good"}
		if verbose {
			args = append([]string{"-v"}, args...)
		}
		cmd, _ := command(t, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := sandbox.Command(cmd).Run(); err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		said := strings.Contains(stderr.String(), "gasrun: no membarrier(2) here (operation not permitted): ")
		if said != verbose || !verbose && stderr.Len() > 0 {
			t.Errorf("with -v %v it writes %q", verbose, &stderr)
		}
	}
}

// A program that no process reads from ends, quietly.
func TestNobodyReads(t *testing.T) {
	cmd, r, stderr := piped(t, "-n", "2", "sh", "-c", "while :; do echo yes; done")
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if res := await(t, cmd, &bytes.Buffer{}, stderr); res.status != 141 || res.stderr != "" {
		t.Errorf("status %d, wrote %q", res.status, res.stderr)
	}
}

// TestFullOutput: where standard output or error cannot be written to, the job ends with a
// status and, if there is where to, a message.
func TestFullOutput(t *testing.T) {
	for _, name := range []string{"stdout", "stderr", "both"} {
		t.Run(name, func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip(err)
			}
			defer full.Close()
			cmd, _ := command(t, "-n", "2", "sh", "-c", "echo yes; echo no >&2; exec sleep 10000")
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if name != "stderr" {
				cmd.Stdout = full
			}
			if name != "stdout" {
				cmd.Stderr = full
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r := await(t, cmd, &out, &stderr)
			r.want(t, jobenv.StatusFailed)
			if name == "stdout" && !strings.HasPrefix(lastLine(r.stderr), "gasrun: cannot write the output: write /dev/stdout: no space left on device") {
				t.Errorf("it says %q", r.stderr)
			}
		})
	}
}

// state is the state of the process in /proc.
func state(t *testing.T, pid int) byte {
	f := sys.ProcStat(pid)
	if len(f) == 0 {
		t.Fatalf("process %d has ended", pid)
	}
	return f[0][0]
}

// jobOf lists the processes of the job that cmd runs.
func jobOf(cmd *exec.Cmd) (pids []int) {
	for pid, id := range launch.JobProcesses() {
		if strings.HasPrefix(id, fmt.Sprintf("%d.", cmd.Process.Pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestStopAndContinue(t *testing.T) {
	cmd, _, stderr := script(t, 2, "echo ready; exec sleep 10000")
	pids := jobOf(cmd)
	pids = append(pids, cmd.Process.Pid)
	until := func(stopped bool) {
		for _, pid := range pids {
			for (state(t, pid) == 'T') != stopped {
				runtime.Gosched()
			}
		}
	}
	send(t, cmd, syscall.SIGTSTP)
	until(true)
	send(t, cmd, syscall.SIGCONT)
	until(false)
	send(t, cmd, syscall.SIGTERM)
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, 143)
}

// On a terminal rank 0 reads what is typed, and Ctrl-C ends the job.
func TestTerminal(t *testing.T) {
	master, slave, err := openTerminal()
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer master.Close()
	cmd, _ := command(t, "-n", "2", "-l", "-kill-grace", "1h", "sh", "-c", `read x; echo "got <$x>"; exec sleep 10000`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	in := bufio.NewReader(master)
	until := func(text string) {
		t.Helper()
		for {
			l, err := in.ReadString('\n')
			if strings.Contains(l, text) {
				return
			}
			if err != nil {
				t.Fatalf("%q did not come: %q, %v", text, l, err)
			}
		}
	}
	until("[1] got <>")
	if _, err := master.Write([]byte("typed\n")); err != nil {
		t.Fatal(err)
	}
	until("[0] got <typed>")
	if _, err := master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	until("ended by SIGINT")
	await(t, cmd, &bytes.Buffer{}, &bytes.Buffer{}).want(t, 130)
}

// TestPrompt: part of a line, on either stream, is shown while its rank waits for the
// answer to it. The other end of the pipe answers only when it has read the question.
func TestPrompt(t *testing.T) {
	testmain.Long(t)
	ssh := fakeSSH(t, sshElsewhere)
	for name, args := range map[string][]string{
		"one":      {"-n", "1"},
		"several":  {"-n", "4"},
		"labels":   {"-n", "2", "-l"},
		"hosts":    {"-hosts", "localhost,localhost", "-conduit", "udp"},
		"by ssh":   {"-hosts", "a,b", "-ssh", ssh, "-l"},
		"in a dir": {"-n", "2", "-output-dir", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const script = `if [ $ARGON_RANK != 0 ]; then exit; fi; printf 'How many? '; read x; printf "$x, really? " >&2; read y; echo "$y"`
			cmd, _ := command(t, append(args, "sh", "-c", script)...)
			var err [3]error
			var in io.WriteCloser
			var stdout, stderr io.ReadCloser
			in, err[0] = cmd.StdinPipe()
			stdout, err[1] = cmd.StdoutPipe()
			stderr, err[2] = cmd.StderrPipe()
			if e := errors.Join(append(err[:], cmd.Start())...); e != nil {
				t.Fatal(e)
			}
			until := func(r io.Reader, text string) (got string) {
				for b := make([]byte, 1); !strings.HasSuffix(got, text); got += string(b) {
					if _, err := r.Read(b); err != nil {
						t.Fatalf("%q and %v, want %q", got, err, text)
					}
				}
				return got
			}
			label := ""
			if slices.Contains(args, "-l") {
				label = "[0] "
			}
			if got := until(stdout, "? "); got != label+"How many? " {
				t.Errorf("it asks %q", got)
			}
			io.WriteString(in, "5\n")
			until(stderr, label+"5, really? ")
			io.WriteString(in, "yes\n")
			until(stdout, "yes\n")
			rest, e := io.ReadAll(stderr)
			if e != nil || !strings.HasPrefix(string(rest), "\ngasrun: ") {
				t.Errorf("the launcher's own line is not one of its own: %q, %v", rest, e)
			}
			if cmd.Wait(); cmd.ProcessState.ExitCode() != jobenv.StatusFailed { // none attaches
				t.Errorf("%v", cmd.ProcessState)
			}
		})
	}
}

// After kill -9 of gasrun itself nothing of the job is left: not its ranks, not
// what they have started, not the program that was built.
func TestKilledItself(t *testing.T) {
	cmd, rest, _ := script(t, 3, "sleep 10000 & setsid sleep 10000 & echo ready; wait")
	cmd2, temp := command(t, "./testdata/spawn")
	out, err := cmd2.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd2.Start(); err != nil {
		t.Fatal(err)
	}
	if l, err := bufio.NewReader(out).ReadString('\n'); err != nil || l != "ready\n" {
		t.Fatalf("read %q, %v", l, err)
	}
	if built, _ := filepath.Glob(temp + "/*"); len(built) != 1 {
		t.Errorf("temporary files %v, want one directory", built)
	}
	ours := func() []int { return append(jobOf(cmd), jobOf(cmd2)...) }
	for len(ours()) < 3*3+2 { // the second job has said that one rank is there
		runtime.Gosched()
	}
	for _, c := range []*exec.Cmd{cmd, cmd2} {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	// Nothing tells when the guard has finished, so look until it has.
	for len(ours()) > 0 {
		runtime.Gosched()
	}
	for {
		if built, _ := filepath.Glob(temp + "/*"); len(built) == 0 {
			break
		}
		runtime.Gosched()
	}
	if more, err := io.ReadAll(rest); err != nil || len(more) > 0 {
		t.Errorf("then came %q, %v", more, err)
	}
}
