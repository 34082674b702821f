package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/netns"
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
	dir := t.TempDir()
	script, locked := filepath.Join(dir, "script"), filepath.Join(dir, "locked")
	if err := os.WriteFile(script, []byte("#!/nonexistent/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
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
