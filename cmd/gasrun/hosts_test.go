package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var long = flag.Bool("gasrun.long", false, "run tests that wait for half a minute, too")

// The parts of scripts that stand for ssh. A host is this machine once more.
const (
	sshHere = `exec sh -c "$2"`
	// Nothing is where the launcher has it, and the environment is another one.
	sshElsewhere = `c=$(printf %s "$2" | sed 's,p="/[^"]*",p="/nonexistent/gasrun",'); exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR" sh -c "$c"`
)

// fakeSSH is a script to be called in place of ssh: $1 is the host, $2 the
// command.
func fakeSSH(t *testing.T, body string) string {
	t.Helper()
	return testmain.Executable(t, filepath.Join(t.TempDir(), "ssh"), "#!/bin/sh\n"+body+"\n")
}

// onHosts are the ways to have two hosts.
func onHosts(t *testing.T) map[string][]string {
	return map[string][]string{
		"localhost": {"-hosts", "localhost:2,localhost:2"},
		"ssh":       {"-hosts", "a:2,b:2", "-ssh", fakeSSH(t, sshHere)},
		"elsewhere": {"-hosts", "localhost:2,user@b:2", "-ssh", fakeSSH(t, sshElsewhere)},
	}
}

func TestHosts(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	for name, hosts := range onHosts(t) {
		for _, conduit := range []string{"udp", "hybrid"} {
			t.Run(name+" "+conduit, func(t *testing.T) {
				r := gasrun(t, append(hosts, "-conduit", conduit, prog, "good")...)
				r.want(t, 0)
				if r.stdout != "ready\nready\nready\nready\n" || r.stderr != "" {
					t.Errorf("wrote %q and %q", r.stdout, r.stderr)
				}
			})
		}
	}
	for _, conduit := range []string{"udp", "hybrid"} {
		t.Run("no hosts "+conduit, func(t *testing.T) {
			gasrun(t, "-n", "3", "-conduit", conduit, prog, "good").want(t, 0)
		})
	}
}

// TestUglyCause: of a cause that holds control characters, line ends and a
// megabyte, gasrun and the other ranks print bounded lines that do nothing to a
// terminal. On the standard error of the rank itself it stays as it is.
func TestUglyCause(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	for name, args := range map[string][]string{
		"shm":    {"-n", "3"},
		"udp":    {"-n", "3", "-conduit", "udp"},
		"hosts":  {"-hosts", "localhost:2,localhost:1", "-conduit", "udp"},
		"hybrid": {"-hosts", "localhost:2,localhost:1", "-conduit", "hybrid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gasrun(t, append(args, "-l", "-kill-grace", "1h", prog, "ugly")...)
			if r.status != 1 {
				t.Errorf("status %d", r.status)
			}
			own, others := false, 0
			for _, l := range strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n") {
				if rest, ok := strings.CutPrefix(l, "[1] "); ok {
					own = own || strings.Contains(rest, "\x1b[2J")
					continue
				}
				if len(l) > 8<<10 || strings.ContainsAny(l, "\x1b\a\r") {
					t.Errorf("%d bytes: %.200q", len(l), l)
				}
				if !strings.HasPrefix(l, "gasrun: ") && !strings.HasPrefix(l, "[0] argon: ") && !strings.HasPrefix(l, "[2] argon: ") {
					t.Errorf("a line that nobody begins so: %.200q", l)
				}
				if strings.Contains(l, `out of luck\nin \x1b[2J\x1b]0;owned\a lines`) {
					others++
				}
			}
			if l := lastLine(r.stderr); !own || others == 0 || !strings.HasPrefix(l, "gasrun: rank 1 (pid ") || !strings.Contains(l, `\x1b[31mend`) {
				t.Errorf("own %v, others %d, last line %.300q", own, others, l)
			}
		})
	}
}

// TestStoppedWhileHostsStart: a launcher that is stopped for longer than hosts may
// take to start gives them their time when it goes on.
func TestStoppedWhileHostsStart(t *testing.T) {
	testmain.Long(t)
	if !*long {
		t.Skip("half a minute, since a busy machine takes seconds to start a host: -gasrun.long")
	}
	t.Parallel()
	ssh := fakeSSH(t, "kill -STOP $PPID; sleep 25; kill -CONT $PPID\n"+sshHere)
	r := gasrun(t, "-start-timeout", "20s", "-hosts", "a", "-ssh", ssh, program(t), "good")
	r.want(t, 0)
}

// Ranks on hosts get what those of this machine do, and a place of their own.
func TestHostsEnvironment(t *testing.T) {
	testmain.Long(t)
	script := `echo "$ARGON_RANK/$ARGON_SIZE $ARGON_LOCAL_RANK/$ARGON_LOCAL_SIZE $ARGON_HOST $ARGON_CONDUIT $ARGON_IFACE $ARGON_AUTH [$X] $1 $(umask) $(pwd) $ARGON_DEPUTY$ARGON_JOB_KEY"`
	hosts := onHosts(t)["elsewhere"]
	// What no user would say, and what would be taken apart by a careless shell.
	odd := "a b\n\\'\"$HOME \xff;*"
	cmd, temp := command(t, append(hosts, "-n", "3", "-iface", "lo", "-x", "X="+odd, "sh", "-c", script, "sh", odd)...)
	cmd.Env = append(cmd.Env, "ARGON_AUTH=none", "ARGON_JOB_KEY="+strings.Repeat("0123", 16))
	cmd.Dir = temp
	r := finish(t, cmd)
	r.want(t, jobenv.StatusFailed, "no rank of sh attached")
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	for _, want := range []string{
		"0/3 0/2 0.localhost", "1/3 1/2 0.localhost", "2/3 0/1 1.user@b",
	} {
		want += fmt.Sprintf(" hybrid lo none [%s] %s %04o %s \n", odd, odd, umask, temp)
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no rank has written %q: %q", want, r.stdout)
		}
	}
}

// Output comes in whole lines, labelled and copied, and input goes to rank 0,
// however much there is of both.
func TestHostsStreams(t *testing.T) {
	testmain.Long(t)
	const lines = 20000
	script := `i=0; while read -r line; do echo "$line"; done; echo "end of $ARGON_RANK"; printf unfinished`
	var in bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&in, "line %d of what rank 0 reads\n", i)
	}
	dir := t.TempDir()
	cmd, _ := command(t, append(onHosts(t)["ssh"], "-l", "-output-dir", dir, "sh", "-c", script)...)
	cmd.Stdin = bytes.NewReader(in.Bytes())
	r := finish(t, cmd)
	r.want(t, jobenv.StatusFailed, "no rank of sh attached")
	var own []string
	for _, l := range strings.Split(r.stdout, "\n") {
		if rest, ok := strings.CutPrefix(l, "[0] "); ok {
			own = append(own, rest)
		} else if l != "" && !regexp.MustCompile(`^\[[123]\] (end of [123]|unfinished)$`).MatchString(l) {
			t.Fatalf("line %q", l)
		}
	}
	want := in.String() + "end of 0\nunfinished"
	if got := strings.Join(own, "\n"); got != want {
		t.Errorf("rank 0 has written %d bytes, want %d", len(got), len(want))
	}
	if b, err := os.ReadFile(filepath.Join(dir, "rank-0.out")); err != nil || string(b) != want {
		t.Errorf("the copy of rank 0's output has %d bytes, %v", len(b), err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "rank-3.out")); err != nil || string(b) != "end of 3\nunfinished" {
		t.Errorf("the copy of rank 3's output is %q, %v", b, err)
	}
}

// Input that rank 0 does not read holds nothing up.
func TestHostsUnreadInput(t *testing.T) {
	testmain.Long(t)
	cmd, _ := command(t, "-hosts", "localhost,localhost", "sh", "-c", `exec <&-; exit 3`)
	cmd.Stdin = io.LimitReader(zeros{}, 64<<20)
	finish(t, cmd).want(t, 3)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A rank that writes much to one stream does not keep its other one, its end or
// its neighbours from being noticed when no process takes it.
func TestHostsSlowReader(t *testing.T) {
	testmain.Long(t)
	cmd, _ := command(t, "-hosts", "localhost:2,localhost:2", "-kill-grace", "0", "sh", "-c",
		`if [ $ARGON_RANK = 3 ]; then read x <`+fifo(t)+`; exit 7; fi; echo stderr >&2; yes`)
	errR, errW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer errR.Close()
	cmd.Stderr = errW
	r := output(t, cmd)
	errW.Close()
	var stderr bytes.Buffer
	for strings.Count(stderr.String(), "stderr") < 3 { // although standard output is stuck by now or soon
		buf := make([]byte, 4096)
		n, err := errR.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		stderr.Write(buf[:n])
	}
	if err := os.WriteFile(fifoOf(cmd), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	for len(jobOf(cmd)) > 0 { // the ranks end while no process reads
		runtime.Gosched()
	}
	go io.Copy(io.Discard, r)
	rest, _ := io.ReadAll(errR)
	stderr.Write(rest)
	await(t, cmd, &bytes.Buffer{}, &stderr).want(t, 7, "rank 3 (pid ", "on localhost#2) exited with status 7")
}

// fifo makes a named pipe.
func fifo(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// fifoOf is the pipe that cmd's script reads from.
func fifoOf(cmd *exec.Cmd) string {
	last := cmd.Args[len(cmd.Args)-1]
	_, name, _ := strings.Cut(last, "<")
	name, _, _ = strings.Cut(name, ";")
	return name
}

func TestHostsBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"-hosts", ""}, []string{"-hosts", `"" is no host`}},
		{[]string{"-hosts", "a,,b"}, []string{"-hosts", `"" is no host`}},
		{[]string{"-hosts", "a:0"}, []string{`"a:0"`, `"0" slots`, "-hosts"}},
		{[]string{"-hosts", "a:x"}, []string{`"x" slots`}},
		{[]string{"-hosts", "a:99999"}, []string{`"99999" slots`, "65536"}},
		{[]string{"-hosts", "-oProxyCommand=x"}, []string{`"-oProxyCommand=x" is no host`}},
		{[]string{"-hosts", "u@-x"}, []string{`"u@-x" is no host`}},
		{[]string{"-hosts", "[::1:3"}, []string{"brackets hold an IPv6 address"}},
		{[]string{"-hosts", "a;b"}, []string{`"a;b" is no host`}},
		{[]string{"-hostfile", dir + "/none"}, []string{"no such file", "-hostfile"}},
		{[]string{"-hostfile", dir}, []string{"is a directory", "-hostfile"}},
		{[]string{"-hostfile", file("empty", "")}, []string{"there is no host in it", "empty", "-hostfile"}},
		{[]string{"-hostfile", file("comments", "# a\n\n   # b\n")}, []string{"there is no host in it"}},
		{[]string{"-hostfile", file("wrong", "a\nb slots=x # c\n")}, []string{"line 2", `"x" slots`}},
		{[]string{"-hostfile", file("twice", "a:2 slots=2\n")}, []string{"line 1", "slots twice"}},
		{[]string{"-hostfile", file("more", "a max_slots=2\n")}, []string{"line 1", "slots=N"}},
		{[]string{"-hosts", "a", "-hosts", "b"}, []string{"-hosts", "given already"}},
		{[]string{"-hosts", "a", "-hostfile", file("a", "a")}, []string{"-hostfile", "given already"}},
		{[]string{"-hosts", "a:2,b:3", "-n", "6"}, []string{"6 ranks for 5 slots on 2 hosts", "-n"}},
		{[]string{"-hosts", "a:2,b:3", "-n", "0"}, []string{`"0"`, "-n"}},
		{[]string{"-hosts", "a:2,b:3", "-ppn", "3"}, []string{"host a has 2 slots, fewer than 3", "-ppn"}},
		{[]string{"-hosts", "a:65536,b"}, []string{"65537 slots", "65536"}},
		{[]string{"-hosts", "a", "-ppn", "0"}, []string{`"0"`, "-ppn"}},
		{[]string{"-ppn", "2"}, []string{"no hosts are given", "-ppn"}},
		{[]string{"-hosts", "a", "-conduit", "shm"}, []string{"shm does not span hosts", "hybrid"}},
		{[]string{"-hosts", "a", "-conduit", "sim"}, []string{"sim does not span hosts"}},
		{[]string{"-hosts", "a", "-ssh", ""}, []string{"-ssh", "empty"}},
		{[]string{"-hosts", "a", "-ssh", "ssh 'x"}, []string{"-ssh", "not closed"}},
		{[]string{"-ssh", "x"}, []string{"-ssh", "-hosts"}},
		{[]string{"-hosts", "a", "-start-timeout", "0"}, []string{"-start-timeout"}},
		{[]string{"-hosts", "a", "-iface", "nonesuch0"}, []string{`"nonesuch0"`, "lo (127.0.0.1", "-iface"}},
		{[]string{"-hosts", "a", "-iface", "198.51.100.77"}, []string{`"198.51.100.77" is neither an address`, "lo (127.0.0.1", "-iface"}},
		{[]string{"-n", "2", "-conduit", "udp", "-iface", "fe80::1"}, []string{"fe80::1 is an address of one link", "-iface"}},
		{[]string{"-iface", "lo"}, []string{`"lo"`, "uses no network", "-iface"}},
		{[]string{"-measure", "x", "-hosts", "a,b"}, []string{"-measure", "no program", "-networks"}},
		{[]string{"-measure", "", "-hosts", "a,b"}, []string{"-measure", "empty"}},
		{[]string{"-measure", "x", "-hosts", "a,b", "-n", "2"}, []string{"-n and -measure"}},
		{[]string{"-hosts", "a", "-x", "ARGON_HOST=b"}, []string{"ARGON_HOST"}},
		{[]string{"-hosts", "a", "-x", "ARGON_JOB_KEY_FILE=b"}, []string{"ARGON_JOB_KEY_FILE"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			gasrun(t, append(tc.args, "true")...).want(t, jobenv.StatusUsage, tc.want...)
		})
	}
}

func TestHostsDryRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("a # first\nb:2\n\n[fd00::5] slots=3\nuser@c slots=1\na:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := gasrun(t, "-t", "-hostfile", file, "-n", "8", "true")
	r.want(t, 0)
	var got []string
	for _, l := range strings.Split(r.stdout, "\n") {
		if m := regexp.MustCompile(`^rank (\d) on (.*): env ARGON_RANK=(\d) ARGON_SIZE=8 ARGON_LOCAL_RANK=(\d) ARGON_LOCAL_SIZE=(\d) ARGON_CONDUIT=hybrid true$`).FindStringSubmatch(l); m != nil && m[1] == m[3] {
			got = append(got, m[2]+" "+m[4]+"/"+m[5])
		}
	}
	want := []string{"a 0/3", "a 1/3", "a 2/3", "b 0/2", "b 1/2", "fd00::5 0/3", "fd00::5 1/3", "fd00::5 2/3"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ranks are on %v, want %v\n%s", got, want, r.stdout)
	}
}

// If some hosts cannot be had all of those are named, with ssh's own words, and
// nothing is started on any.
func TestHostsUnresolvable(t *testing.T) {
	testmain.Long(t)
	mark := filepath.Join(t.TempDir(), "mark")
	ssh := fakeSSH(t, `case $1 in b|d|user@f) echo "ssh: Could not resolve hostname $1: Name or service not known" >&2; exit 255;; esac
`+sshHere)
	r := gasrun(t, "-hosts", "a,b:2,c,d,localhost,user@f", "-ssh", ssh, "-start-timeout", "2h", "touch", mark)
	r.want(t, jobenv.StatusFailed)
	for _, h := range []string{"b", "d", "user@f"} {
		said := "ssh: Could not resolve hostname " + h + ": Name or service not known"
		for _, l := range []string{"gasrun: " + h + ": " + said, "gasrun: host " + h + ": " + said + " (" + ssh + " exited with status 255)"} {
			if strings.Count(r.stderr, l+"\n") != 1 {
				t.Errorf("%q is missing", l)
			}
		}
	}
	// A slow machine may not have started the others when they are given up.
	late := regexp.MustCompile(`(?m)^gasrun: host (a|c|localhost): .*had not answered when other hosts had failed.*\n`)
	if n := strings.Count(late.ReplaceAllString(r.stderr, ""), "\n"); n != 6 {
		t.Errorf("%d lines, want 6:\n%s", n, r.stderr)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a rank has run")
	}
}

// Whatever becomes of ssh while a host gets ready, the job does not start, and
// says why.
func TestHostsBadSSH(t *testing.T) {
	testmain.Long(t)
	for name, tc := range map[string]struct {
		body string
		want string
	}{
		"permission":  {`echo "Permission denied (publickey)." >&2; exit 255`, `host b: Permission denied \(publickey\)\. \(.*/ssh exited with status 255\)`},
		"silent":      {`exit 0`, `host b: ended before it could be used`},
		"dies":        {`kill -KILL $$`, `host b: ended before it could be used \(.*/ssh was killed by SIGKILL\)`},
		"noise":       {`echo "You have mail."; exit 1`, `host b: You have mail\. \(.*/ssh exited with status 1\)`},
		"endless":     {`yes`, `host b: its login writes more than \d+ bytes and nothing that gasrun's script would, such as "y"`},
		"garbage":     {`set -- $(printf %s "$2" | sed 's,.*token=\([^;]*\);.*,\1,'); echo "$1 have $(uname -m)"; yes`, `host b: does not answer as gasrun does`},
		"hello":       {`set -- $(printf %s "$2" | sed 's,.*token=\([^;]*\);.*,\1,'); echo "$1 have $(uname -m)"; printf 'h\0\0\0\003\001\002\0'; yes`, `host b: the connection was lost: a malformed message`},
		"machine":     {`set -- $(printf %s "$2" | sed 's,.*token=\([^;]*\);.*,\1,'); echo "$1 need pdp11"; cat >/dev/null`, `host b: is a pdp11 machine: the executables here are for `},
		"cut short":   {`c=$(printf %s "$2" | sed 's,p="/[^"]*",p="",'); head -c 100000 | sh -c "$c"`, `host b: gasrun arrived incomplete`},
		"no room":     {`c=$(printf %s "$2" | sed 's,p="/[^"]*",p="",'); TMPDIR=/nonexistent exec sh -c "$c"`, `host b: mktemp: .*nonexistent.* \(.*/ssh exited with status 1\)`},
		"hangs":       {`exec sleep 1000`, `host b: no answer in time \(.*, -start-timeout\)`},
		"hangs aloud": {`echo "connecting" >&2; exec sleep 1000`, `host b: no answer in time \(.*, -start-timeout\); it has said: connecting`},
		"no ssh":      {``, `host b: cannot start /nonexistent/ssh: .* \(-ssh\)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ssh, limit := fakeSSH(t, tc.body), "1h"
			if name == "no ssh" {
				ssh = "/nonexistent/ssh"
			}
			if name == "hangs" {
				limit = "200ms"
			} else if name == "hangs aloud" { // and has the time to
				limit = "10s"
			}
			r := gasrun(t, "-hosts", "b", "-start-timeout", limit, "-ssh", ssh, "echo", "ran")
			r.want(t, jobenv.StatusFailed)
			if !regexp.MustCompile(`(?m)^gasrun: ` + tc.want).MatchString(r.stderr) {
				t.Errorf("%q is missing in %q", tc.want, r.stderr)
			}
			if r.stdout != "" {
				t.Errorf("a rank has run and written %q", r.stdout)
			}
		})
	}
}

// What a login prints before the script is no harm.
func TestHostsNoisyLogin(t *testing.T) {
	testmain.Long(t)
	ssh := fakeSSH(t, `echo "Welcome to $1"; echo "last login: today" >&2; printf 'no newline'
`+sshHere)
	r := gasrun(t, "-hosts", "b", "-ssh", ssh, program(t), "good")
	r.want(t, 0, "gasrun: b: last login: today\n")
	if r.stdout != "ready\n" {
		t.Errorf("wrote %q", r.stdout)
	}
}

// Without the launcher's directory ranks work in the home directory, unless
// a flag says otherwise.
func TestHostsWorkingDirectory(t *testing.T) {
	testmain.Long(t)
	for _, insist := range []bool{false, true} {
		gone := filepath.Join(t.TempDir(), "gone")
		if err := os.Mkdir(gone, 0o700); err != nil {
			t.Fatal(err)
		}
		home := t.TempDir()
		args := []string{"-hosts", "b", "-ssh", fakeSSH(t, "rmdir "+gone+"; export HOME="+home+"\n"+sshHere)}
		if insist {
			args = append(args, "-wdir", gone)
		}
		cmd, _ := command(t, append(args, "pwd", "-P")...)
		cmd.Dir = gone
		r := finish(t, cmd)
		switch {
		case insist:
			r.want(t, jobenv.StatusFailed, "host b: working directory (-wdir): stat "+gone)
		case r.stdout != home+"\n":
			t.Errorf("worked in %q, want %q", r.stdout, home)
			fallthrough
		default:
			r.want(t, jobenv.StatusFailed, "gasrun: host b: there is no directory "+gone+"; its ranks work in "+home+" (-wdir)")
		}
	}
}

// Half a hundred hosts at once.
func TestManyHosts(t *testing.T) {
	testmain.Long(t)
	if testing.Short() {
		t.Skip("starts 128 processes")
	}
	list := strings.TrimSuffix(strings.Repeat("localhost,", 64), ",")
	r := gasrun(t, "-hosts", list, "sh", "-c", `echo "$ARGON_RANK $ARGON_HOST"`)
	r.want(t, jobenv.StatusFailed, "no rank of sh attached")
	for i := range 64 {
		if want := fmt.Sprintf("%d %d.localhost#%d\n", i, i, i+1); !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// start starts gasrun with hosts and awaits a line of each of n ranks.
func start(t *testing.T, n int, args ...string) (cmd *exec.Cmd, rest *os.File, stderr *bytes.Buffer) {
	t.Helper()
	cmd, r, stderr := piped(t, args...)
	if _, err := io.ReadFull(r, make([]byte, n*len("ready\n"))); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%v: %s", err, stderr)
	}
	return cmd, r, stderr
}

// deputies lists the deputies that cmd has started, in the order of their hosts,
// of which each has a rank.
func deputies(t *testing.T, cmd *exec.Cmd) (pids []int) {
	t.Helper()
	byHost := map[string]int{}
	hosts := 0
	for _, pid := range jobOf(cmd) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		_, host, _ := bytes.Cut(b, []byte("ARGON_HOST="))
		host, _, _ = bytes.Cut(host, []byte("."))
		parent := parentOf(t, pid)
		i, _ := strconv.Atoi(string(host))
		byHost[string(host)] = parent
		hosts = max(hosts, i+1)
	}
	for i := range hosts {
		pids = append(pids, byHost[strconv.Itoa(i)])
	}
	return pids
}

// family lists cmd's descendants and the guards of its deputies.
func family(cmd *exec.Cmd) (pids []int) {
	parent := map[int]int{}
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, n := range names {
		pid, _ := strconv.Atoi(filepath.Base(n))
		if f := sys.ProcStat(pid); len(f) > 1 {
			parent[pid], _ = strconv.Atoi(f[1])
		}
	}
	for pid := range parent {
		for p := pid; p > 1; p = parent[p] {
			if p == cmd.Process.Pid && pid != p {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// awaitEnd waits until none of the processes is there.
func awaitEnd(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for {
			if f := sys.ProcStat(pid); len(f) == 0 || f[0] == "Z" {
				break
			}
			runtime.Gosched()
		}
	}
}

// A rank on another host that is killed ends the job on all hosts.
func TestHostsRankKilled(t *testing.T) {
	testmain.Long(t)
	for name, hosts := range onHosts(t) {
		for _, conduit := range []string{"udp", "hybrid"} {
			t.Run(name+" "+conduit, func(t *testing.T) {
				t.Parallel()
				cmd, _, stderr := start(t, 4, append(hosts, "-conduit", conduit, "-kill-grace", "1h", program(t), "wait")...)
				var victim int
				for _, pid := range jobOf(cmd) {
					if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); bytes.Contains(b, []byte("ARGON_RANK=3\x00")) {
						victim = pid
					}
				}
				all := family(cmd)
				if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				r := await(t, cmd, &bytes.Buffer{}, stderr)
				r.want(t, 137)
				want := fmt.Sprintf(`^gasrun: rank 3 \(pid %d on (localhost#2|b|user@b)\) killed by SIGKILL$`, victim)
				if l := lastLine(r.stderr); !regexp.MustCompile(want).MatchString(l) {
					t.Errorf("the last line is %q, want %q\n%s", l, want, r.stderr)
				}
				awaitEnd(t, all)
			})
		}
	}
}

// A host that is lost ends the job on the others.
func TestHostsDeputyKilled(t *testing.T) {
	testmain.Long(t)
	for name, hosts := range onHosts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, _, stderr := start(t, 4, append(hosts, "-kill-grace", "1h", program(t), "wait")...)
			all := family(cmd)
			if err := syscall.Kill(deputies(t, cmd)[1], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			awaitEnd(t, all) // the guards are among them, which remove folders
			r := await(t, cmd, &bytes.Buffer{}, stderr)
			r.want(t, jobenv.StatusFailed)
			if l := lastLine(r.stderr); !regexp.MustCompile(`^gasrun: host (localhost#2|b|user@b): .*(was killed by SIGKILL|status 137)`).MatchString(l) {
				t.Errorf("the last line is %q\n%s", l, r.stderr)
			}
		})
	}
}

// Where all that was to clean up is killed, the guard does.
func TestHostsAllKilled(t *testing.T) {
	testmain.Long(t)
	cmd, _, stderr := start(t, 2, "-hosts", "b:2", "-ssh", fakeSSH(t, sshElsewhere), "-kill-grace", "1h", program(t), "wait")
	all := family(cmd)
	deputy := deputies(t, cmd)[0]
	shell := parentOf(t, deputy)
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", shell)); !strings.HasSuffix(exe, "sh") {
		t.Fatalf("the parent of the deputy is %s", exe)
	}
	for _, pid := range []int{shell, deputy} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	awaitEnd(t, all) // the guard is among them
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, jobenv.StatusFailed, "gasrun: host b: ", "killed by SIGKILL")
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	f := sys.ProcStat(pid)
	if len(f) < 2 {
		t.Fatalf("process %d has ended", pid)
	}
	parent, _ := strconv.Atoi(f[1])
	return parent
}

// A deputy that is told to end cleans up and says why.
func TestHostsDeputyTerminated(t *testing.T) {
	testmain.Long(t)
	cmd, _, stderr := start(t, 4, "-hosts", "localhost:2,localhost:2", "-kill-grace", "1h", program(t), "wait")
	all := family(cmd)
	if err := syscall.Kill(deputies(t, cmd)[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := await(t, cmd, &bytes.Buffer{}, stderr)
	r.want(t, jobenv.StatusFailed, "gasrun: host localhost#1: deputy of gasrun: ended by SIGTERM")
	awaitEnd(t, all)
}

// Nothing outlives a launcher that is killed, and no file is left.
func TestHostsLauncherKilled(t *testing.T) {
	testmain.Long(t)
	for name, hosts := range onHosts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, r, _ := start(t, 4, append(hosts, program(t), "wait")...)
			all := family(cmd)
			if len(all) < 8 {
				t.Errorf("the family is %v", all)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			awaitEnd(t, all)
			io.Copy(io.Discard, r)
			temp := ""
			for _, kv := range cmd.Env {
				if d, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
					temp = d
				}
			}
			for { // a guard whose deputy is gone has no parent that we know
				left, _ := filepath.Glob(temp + "/*")
				if len(left) == 0 {
					break
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// Signals reach the ranks of all hosts.
func TestHostsSignals(t *testing.T) {
	cmd, r, stderr := start(t, 4, "-hosts", "localhost:2,localhost:2", "sh", "-c",
		`trap 'echo USR2' USR2; trap 'echo INT; exit 0' INT; echo ready; while :; do sleep 1000 & wait $!; done`)
	all := family(cmd)
	send(t, cmd, syscall.SIGUSR2)
	got := make([]byte, 4*len("USR2\n"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != strings.Repeat("USR2\n", 4) {
		t.Fatalf("ranks have written %q, %v", got, err)
	}
	send(t, cmd, syscall.SIGINT)
	rest, _ := io.ReadAll(r)
	if string(rest) != strings.Repeat("INT\n", 4) {
		t.Errorf("ranks have written %q", rest)
	}
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, 130, "gasrun: ended by SIGINT")
	awaitEnd(t, all)
}

// An interrupt ends the start, too.
func TestHostsInterruptedStart(t *testing.T) {
	testmain.Long(t)
	name := fifo(t)
	cmd, _ := command(t, "-hosts", "a,b", "-ssh", fakeSSH(t, "echo >"+name+"; exec sleep 1000"), "true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0) // without end while there is no writer
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	all := family(cmd)
	send(t, cmd, syscall.SIGTERM)
	await(t, cmd, &bytes.Buffer{}, &stderr).want(t, 143, "gasrun: ended by SIGTERM, before the ranks were started")
	awaitEnd(t, all)
}

// SIGQUIT asks the ranks of all hosts where they wait.
func TestHostsDiagnosis(t *testing.T) {
	testmain.Long(t)
	cmd, _, stderr := start(t, 4, "-hosts", "localhost:2,localhost:2", program(t), "deaf")
	all := family(cmd)
	send(t, cmd, syscall.SIGQUIT)
	r := await(t, cmd, &bytes.Buffer{}, stderr)
	r.want(t, jobenv.StatusQuit)
	if !strings.Contains(stacksOf(r.stacks, 1), "main.deaf(") {
		t.Errorf("the stack of the deaf rank is missing: %s", r.stacks)
	}
	for i := range 4 {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^gasrun:   rank %d \(pid \d+ on localhost#%d\): .+ at main\.go:\d+.*$`, i, i/2+1)).MatchString(r.stderr) {
			t.Errorf("no line for rank %d", i)
		}
	}
	awaitEnd(t, all)
}

// Ctrl-Z stops the ranks of all hosts, and they go on with the launcher.
func TestHostsStopAndContinue(t *testing.T) {
	testmain.Long(t)
	cmd, r, stderr := start(t, 4, "-hosts", "localhost:2,localhost:2", "sh", "-c",
		`trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 1000 & wait $!; done`)
	all := family(cmd)
	ranks := jobOf(cmd)
	send(t, cmd, syscall.SIGTSTP)
	for _, pid := range append(ranks, cmd.Process.Pid) {
		for state(t, pid) != 'T' {
			runtime.Gosched()
		}
	}
	send(t, cmd, syscall.SIGCONT)
	for _, pid := range append(ranks, cmd.Process.Pid) {
		for state(t, pid) == 'T' {
			runtime.Gosched()
		}
	}
	send(t, cmd, syscall.SIGTERM)
	rest, _ := io.ReadAll(r)
	if string(rest) != strings.Repeat("ended\n", 4) {
		t.Errorf("ranks have written %q", rest)
	}
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, 143)
	awaitEnd(t, all)
}

// What ranks leave behind on hosts is killed.
func TestHostsOrphans(t *testing.T) {
	r := gasrun(t, "-v", "-hosts", "localhost,localhost", "sh", "-c", `sleep 10000 & setsid sleep 10000 & env -i sleep 10000 & exit 0`)
	r.want(t, jobenv.StatusFailed, "processes that ranks had left behind on localhost#1", "processes that ranks had left behind on localhost#2",
		"gasrun: host localhost#1: its ranks find the others at 127.0.0.1:", "gasrun: host localhost#2: its ranks find the others at 127.0.0.1:")
}

// A rank with another key does not get in, and the others learn that it is gone.
func TestHostsWrongKey(t *testing.T) {
	testmain.Long(t)
	wrong := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(wrong, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := gasrun(t, "-hosts", "localhost,localhost", "-conduit", "udp", "sh", "-c",
		`[ $ARGON_RANK = 1 ] && export ARGON_JOB_KEY_FILE=`+wrong+`; exec `+program(t)+` good`)
	r.want(t, 1)
	if l := lastLine(r.stderr); !regexp.MustCompile(`^gasrun: rank 1 \(pid \d+ on localhost#2\) exited with status 1: .*key`).MatchString(l) {
		t.Errorf("the last line is %q\n%s", l, r.stderr)
	}
}

// The job's key is in no command line and no environment.
func TestKeyIsNowhere(t *testing.T) {
	testmain.Long(t)
	cmd, r, stderr := start(t, 0, "-v", "-hosts", "localhost,b", "-ssh", fakeSSH(t, sshElsewhere), "sh", "-c",
		`trap 'exit 0' TERM; cat "$ARGON_JOB_KEY_FILE"; echo; while :; do sleep 1000 & wait $!; done`)
	key := make([]byte, 2*(64+1)) // of each rank
	if _, err := io.ReadFull(r, key); err != nil || !regexp.MustCompile(`^([0-9a-f]{64}\n){2}$`).Match(key) {
		t.Fatalf("the key is %q, %v", key, err)
	}
	for _, pid := range append(family(cmd), cmd.Process.Pid) {
		for _, f := range []string{"cmdline", "environ"} {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f)); bytes.Contains(b, key[:64]) {
				t.Errorf("the key is in the %s of process %d", f, pid)
			}
		}
	}
	send(t, cmd, syscall.SIGTERM)
	if res := await(t, cmd, &bytes.Buffer{}, stderr); strings.Contains(res.stderr, string(key[:64])) {
		t.Error("the key is in the log")
	}
}

// A host takes gasrun's executable from where it is here only if no other user can
// have put it there, and gets it sent otherwise, whatever the path is like.
func TestHostsExecutable(t *testing.T) {
	testmain.Long(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	for i, tc := range []struct {
		name  string
		mode  os.FileMode
		owner int
		want  string
	}{
		{"plain", 0o755, -1, "have"},
		{"private", 0o700, -1, "have"},
		{"open", 0o757, -1, "need"},
		{"open to a group", 0o775, -1, "need"},
		{"of another", 0o755, 4711, "need"},
		{`with spaces, "quotes' and $HOME;`, 0o755, -1, "need"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "gasrun")
			if strings.Contains(tc.name, "$") {
				path = filepath.Join(filepath.Dir(path), tc.name)
			}
			if err := os.WriteFile(path, self, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tc.mode); err != nil {
				t.Fatal(err)
			}
			if tc.owner >= 0 {
				if os.Getuid() != 0 {
					t.Skip("only root gives files away")
				}
				if err := os.Chown(path, tc.owner, tc.owner); err != nil {
					t.Fatal(err)
				}
			}
			log := filepath.Join(logs, fmt.Sprint(i))
			cmd, _ := command(t, "-hosts", "b", "-ssh", fakeSSH(t, `sh -c "$2" | tee `+log), "sh", "-c", `[ -e /proc/self/fd/9 ] && echo leaked; exit 3`)
			cmd.Path = path
			r := finish(t, cmd)
			r.want(t, 3)
			if b, err := os.ReadFile(log); err != nil || !regexp.MustCompile(`^gasrun-[0-9a-f]{16} `+tc.want+` `).Match(b) {
				t.Errorf("the host has answered %.60q, %v; want %s", b, err, tc.want)
			}
			if r.stdout != "" {
				t.Errorf("wrote %q", r.stdout)
			}
		})
	}
}

// TestNoexec has directories for temporary files from which nothing can be run: each
// side says so and names the flag, and with another directory the job runs.
func TestNoexec(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_NOEXEC, ""); err != nil {
		t.Skipf("cannot mount a file system noexec here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 2) }) // MNT_DETACH
	other := t.TempDir()
	hosts := []string{"-hosts", "user@b:2", "-ssh", fakeSSH(t, strings.Replace(sshElsewhere, `TMPDIR="$TMPDIR"`, "TMPDIR="+dir, 1))}
	for name, c := range map[string][]string{
		"build": {"-tmpdir", dir, "./testdata/gasprog", "good"},
		"host":  append(hosts, program(t), "good"),
	} {
		r := gasrun(t, c...)
		if r.status != jobenv.StatusUsage && r.status != jobenv.StatusFailed || !strings.Contains(r.stderr, "-tmpdir") || !strings.Contains(r.stderr, "noexec") {
			t.Errorf("%s: status %d, %s", name, r.status, r.stderr)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	gasrun(t, append(append(hosts, "-tmpdir", other), program(t), "good")...).want(t, 0)
}
