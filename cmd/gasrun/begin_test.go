package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// under is gasrun with args, run by a shell after script; "$@" of script is the command.
func under(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	cmd, _ := command(t, args...)
	cmd.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, args...)
	cmd.Path = "/bin/sh"
	return cmd
}

// TestDeletedDirectory: a working directory that is gone has a message, unless no rank
// works there and the program has an absolute name.
func TestDeletedDirectory(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	for _, tc := range []struct {
		args []string
		want string // "" if the job runs
	}{
		{[]string{"-n", "2", prog, "good"}, "or name one (-wdir)"},
		{[]string{"-hosts", "localhost:1,localhost:1", prog, "good"}, "or name one (-wdir)"},
		{[]string{"-wdir", "sub", prog, "good"}, "or name one (-wdir)"},
		{[]string{"./prog"}, "or give an absolute path"},
		{[]string{"-wdir", "/", "./prog"}, "or give an absolute path"},
		{[]string{"-wdir", "/", "dir/prog"}, "or give an absolute path"},
		{[]string{"-wdir", "/", "-n", "2", prog, "good"}, ""},
		{[]string{"-wdir", "/", "-hosts", "localhost:1,localhost:1", prog, "good"}, ""},
	} {
		dir := filepath.Join(t.TempDir(), "gone")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r := finish(t, under(t, `cd `+dir+` && rmdir `+dir+` && exec "$@"`, tc.args...))
		switch {
		case tc.want == "":
			r.want(t, 0)
		case strings.Count(r.stderr, "\n") != 1:
			t.Errorf("%q: wrote %q", tc.args, r.stderr)
			fallthrough
		default:
			r.want(t, jobenv.StatusUsage, "working directory "+dir, "has been deleted", tc.want)
		}
	}
}

// TestStartErrors: what the system refuses is the error of what it is about.
func TestStartErrors(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	script, locked := filepath.Join(dir, "script"), filepath.Join(dir, "locked")
	testmain.Executable(t, script, "#!/nonexistent/sh\n")
	if err := os.Mkdir(locked, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, hosts := range [][]string{nil, {"-hosts", "localhost:1"}} {
		r := gasrun(t, append(hosts, script)...)
		r.want(t, jobenv.StatusFailed, script+": the interpreter that it names is not there")
		r = gasrun(t, append(hosts, "-wdir", script, "true")...)
		if want := "working directory (-wdir): " + script + " is not a directory"; r.status == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: status %d, %q; want %q", hosts, r.status, r.stderr, want)
		}
		if os.Geteuid() == 0 { // root may enter any directory
			continue
		}
		r = gasrun(t, append(hosts, "-wdir", locked, "true")...)
		if want := locked + " cannot be entered: permission denied"; r.status == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: status %d, %q; want %q", hosts, r.status, r.stderr, want)
		}
	}
}

// TestLoopbackFamilies: jobs on this machine run where lo has one family of addresses alone,
// and localhost has a name for it.
func TestLoopbackFamilies(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	for i, address := range []string{"127.0.0.1/8", "::1/128"} {
		t.Run(address, func(t *testing.T) {
			n := netns.New(t, 1)
			h := n.Hosts[0]
			for _, args := range [][]string{
				{"link", "set", "eth0", "down"},
				{"addr", "flush", "dev", "eth0"},
				{"link", "set", "lo", "up"},
				{"addr", "flush", "dev", "lo"},
				{"addr", "add", address, "dev", "lo"},
			} {
				if out, err := h.Command(t.Context(), "ip", args...).CombinedOutput(); err != nil {
					t.Skipf("ip %v: %v, %s", args, err, out)
				}
			}
			for _, hosts := range []string{
				"", []string{"127.0.0.1:1,127.0.0.1:1", "[::1]:2"}[i],
				"localhost:1,localhost:1", []string{"127.0.0.2", "::1"}[i] + ",localhost", "ip6-localhost:1,localhost:1",
			} {
				for _, conduit := range []string{"udp", "hybrid"} {
					args := []string{"-n", "2", "-conduit", conduit, "-timeout", "2m", prog, "good"}
					if hosts != "" {
						args = append([]string{"-hosts", hosts}, args...)
					}
					cmd, _ := command(t, args...)
					in := h.Command(t.Context(), cmd.Path, args...)
					in.Env = cmd.Env
					if r := finish(t, in); r.status != 0 || r.stdout != "ready\nready\n" {
						t.Errorf("-hosts %q on %s: status %d, %q, %q", hosts, conduit, r.status, r.stdout, r.stderr)
					}
				}
			}
		})
	}
}

// closers are processes between gasrun and the program that take descriptors away, as the
// shell's script that ends in running "$@".
var closers = map[string]string{
	"closed":   `exec 3<&- 4<&- 5<&- 6<&-; "$@"`, // as Python's subprocess does, and sudo
	"replaced": `exec 3</dev/null 4<"$0" 5<"$0" 6<"$0"; "$@"`,
	"moved":    `exec 9<&3 3<&4 4<&9 9<&-; exec "$@"`,
	"child":    `"$@"`,
}

// TestClosers: a job runs whatever becomes of the descriptors on the way to its program, on
// every conduit and through deputies.
func TestClosers(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, script := range closers {
		for _, on := range [][]string{
			{"-n", "2", "-conduit", "shm"},
			{"-n", "2", "-conduit", "udp"},
			{"-n", "2", "-conduit", "hybrid"},
			{"-n", "2", "-conduit", "sim"},
			{"-hosts", "localhost:1,localhost:1"},
		} {
			if what == "moved" && on[len(on)-1] == "sim" {
				continue // has one file
			}
			t.Run(what+" "+on[len(on)-1], func(t *testing.T) {
				r := gasrun(t, append(on, "sh", "-c", script, file, prog, "place")...)
				r.want(t, 0)
				if r.stdout != "rank 0 of 2\nrank 1 of 2\n" && r.stdout != "rank 1 of 2\nrank 0 of 2\n" {
					t.Errorf("wrote %q", r.stdout)
				}
			})
		}
	}
}

// TestOtherUser: a process of gasrun's that has become another user's joins the job, also
// with the job's key, whose file is its maker's.
func TestOtherUser(t *testing.T) {
	testmain.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	prog := program(t)
	for dir := filepath.Dir(prog); dir != "/"; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm()&0o001 == 0 {
			if err := os.Chmod(dir, fi.Mode().Perm()|0o011); err != nil {
				t.Skip(err)
			}
		}
	}
	for _, conduit := range []string{"shm", "udp", "hybrid"} {
		for _, script := range []string{`exec "$@"`, closers["closed"]} {
			r := gasrun(t, "-n", "2", "-conduit", conduit, "setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", script, "sh", prog, "good")
			r.want(t, 0)
		}
	}
}

// TestOtherNetwork: where a process has both closed the files and left the network, the rank
// says so; either alone is no harm.
func TestOtherNetwork(t *testing.T) {
	testmain.Long(t)
	if out, err := exec.Command("unshare", "-n", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare -n: %v, %s", err, out)
	}
	prog := program(t)
	gasrun(t, "-n", "2", "unshare", "-n", prog, "good").want(t, 0)
	r := gasrun(t, "-n", "2", "unshare", "-n", "sh", "-c", closers["closed"], "sh", prog, "good")
	r.want(t, jobenv.StatusUsage, "a process between gasrun and the program has closed files of the job (3, 4)", "docker run --network=host")
	r = gasrun(t, "-n", "2", "unshare", "-n", "sh", "-c", closers["replaced"], "/dev/null", prog, "good")
	r.want(t, jobenv.StatusUsage, "has closed files of the job (3, 4), or put others in their place")
}

// TestNested: what a rank starts, or a shell on the way to it, is a job of its own or says why
// it is none.
func TestNested(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inner := []string{"env", envMain + "=1", self, "-n", "2"}
	for name, tc := range map[string]struct {
		args   []string
		stdout string // lines of the two ranks, sorted
		status int
		stderr string
	}{
		"program":       {[]string{prog, "nest", prog, "place"}, strings.Repeat("rank 0 of 1\n", 2), 0, ""},
		"early":         {[]string{prog, "nest-early", prog, "place"}, strings.Repeat("rank 0 of 1\n", 2), 0, ""},
		"deep":          {[]string{prog, "nest", "sh", "-c", `"$0" nest "$0" place`, prog}, strings.Repeat("rank 0 of 1\n", 2), 0, ""},
		"ranks":         {[]string{prog, "nest", "env", "ARGON_RANKS=2", prog, "place"}, strings.Repeat("rank 0 of 2\n", 2) + strings.Repeat("rank 1 of 2\n", 2), 0, ""},
		"gasrun":        {append([]string{prog, "nest"}, append(inner, prog, "place")...), strings.Repeat("rank 0 of 2\n", 2) + strings.Repeat("rank 1 of 2\n", 2), 0, ""},
		"gasrun early":  {append([]string{prog, "nest-early"}, append(inner, prog, "place")...), strings.Repeat("rank 0 of 2\n", 2) + strings.Repeat("rank 1 of 2\n", 2), 0, ""},
		"gasrun hosts":  {append([]string{prog, "nest"}, append(inner, "-hosts", "localhost:1,localhost:1", prog, "place")...), strings.Repeat("rank 0 of 2\n", 2) + strings.Repeat("rank 1 of 2\n", 2), 0, ""},
		"two programs":  {[]string{"sh", "-c", `"$0" place; "$0" place`, prog}, "rank 0 of 2\nrank 1 of 2\n", jobenv.StatusUsage, "a rank is one process that joins the job once"},
		"a shell first": {[]string{"sh", "-c", `echo x; "$0" place`, prog}, "rank 0 of 2\nrank 1 of 2\nx\nx\n", 0, ""},
	} {
		for _, on := range [][]string{{"-n", "2"}, {"-hosts", "localhost:1,localhost:1"}} {
			t.Run(name+on[0], func(t *testing.T) {
				r := gasrun(t, append(on, tc.args...)...)
				r.want(t, tc.status, tc.stderr)
				lines := strings.SplitAfter(strings.TrimSuffix(r.stdout, "\n"), "\n")
				lines[len(lines)-1] += "\n"
				slices.Sort(lines)
				if got := strings.Join(lines, ""); got != tc.stdout {
					t.Errorf("wrote %q, want %q", got, tc.stdout)
				}
			})
		}
	}
	t.Run("sim", func(t *testing.T) {
		r := gasrun(t, "-n", "2", "-conduit", "sim", prog, "nest", prog, "place")
		r.want(t, 0)
		if r.stdout != strings.Repeat("rank 0 of 1\n", 2) {
			t.Errorf("wrote %q", r.stdout)
		}
	})
	t.Run("-v", func(t *testing.T) {
		trace := filepath.Join(t.TempDir(), "trace")
		r := gasrun(t, "-v", "-n", "1", "-trace", trace, prog, "nest", prog, "place")
		r.want(t, 0, "is a job of its own: rank 0 has started it")
		if k := bytes.Count(read(t, trace), []byte("rank 0")); k != 1 {
			t.Errorf("%d jobs have written to the trace of one", k)
		}
		r = gasrun(t, append([]string{"-n", "1", prog, "nest"}, append(inner, "-v", prog, "place")...)...)
		r.want(t, 0, "gasrun: started by rank 0 of job ")
	})
}

// TestEmptyEnvironment: gasrun prints a likely reason for a program that never joined.
func TestEmptyEnvironment(t *testing.T) {
	r := gasrun(t, "-n", "2", "env", "-i", program(t), "place")
	r.want(t, jobenv.StatusFailed, "env -i")
	if r.stdout != strings.Repeat("rank 0 of 1\n", 2) {
		t.Errorf("wrote %q", r.stdout)
	}
}

// TestInputOfLoops: gasrun, and what it starts, leave input that no rank asks for to the loop
// of a shell that reads from the same file or pipe.
func TestInputOfLoops(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ssh := fakeSSH(t, sshHere)
	for name, on := range map[string][]string{
		"here": {"-n", "2"}, "deputy": {"-hosts", "localhost,localhost"}, "ssh": {"-hosts", "a:2", "-ssh", ssh},
	} {
		for from, script := range map[string]string{
			"file": `while read x; do echo "$x"; "$@"; done <` + list,
			"pipe": `cat ` + list + ` | while read x; do echo "$x"; "$@"; done`,
		} {
			t.Run(name+" "+from, func(t *testing.T) {
				r := finish(t, under(t, script, append(on, "-conduit", "udp", prog, "good")...))
				r.want(t, 0)
				if want := "a\nready\nready\nb\nready\nready\nc\nready\nready\n"; r.stdout != want {
					t.Errorf("wrote %q, want %q", r.stdout, want)
				}
				cmd := under(t, `cat `+list+` | "$@"`, append(on, "sh", "-c", `[ $ARGON_RANK = 1 ] || cat`)...)
				if r := finish(t, cmd); r.stdout != "a\nb\nc\n" {
					t.Errorf("rank 0 has read %q", r.stdout)
				}
			})
		}
	}
}

// TestSilentHost: a host whose deputy falls silent once its ranks run is lost 5 s after the
// dead time, and no later.
func TestSilentHost(t *testing.T) {
	testmain.Long(t)
	// The input's end comes by the loop of a deputy that has said that its ranks run.
	cmd, _, stderr := start(t, 1, "-hosts", "a", "-ssh", fakeSSH(t, sshHere), "-conduit", "udp", "-x", "ARGON_DEADTIME=1s",
		"sh", "-c", `read x; echo ready; exec sleep 10000`)
	if err := syscall.Kill(deputies(t, cmd)[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, cmd, &bytes.Buffer{}, stderr).want(t, jobenv.StatusFailed, "gasrun: host a: no sign of life for 6s")
}
