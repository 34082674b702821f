package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/sandbox"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// contained runs cmd in namespaces of its own that a shell has prepared: flags are
// unshare's.
func contained(t *testing.T, cmd *exec.Cmd, flags, setup string) result {
	t.Helper()
	if flags != "" {
		flags := strings.Fields(flags)
		if out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
			t.Skipf("no namespaces can be made here: %v: %s", err, out)
		}
		args := append(append([]string{"unshare"}, flags...), "sh", "-ec", setup+"\n"+`exec "$@"`, "sh")
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip(err)
		}
		cmd.Path, cmd.Args = path, append(args, cmd.Args...)
	}
	return finish(t, cmd)
}

// TestContainers: the lines of docs/containers.md.
func TestContainers(t *testing.T) {
	testmain.Long(t)
	page, err := os.ReadFile("../../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	prog := program(t)
	const (
		mount  = "--mount --propagation private"
		shm64  = "mount -t tmpfs -o size=64m none /dev/shm"
		shm1   = "mount -t tmpfs -o size=1m none /dev/shm"
		full   = shm64 + "\ndd if=/dev/zero of=/dev/shm/full bs=1M count=70 2>/dev/null || true"
		noSize = "mount -t tmpfs -o ro none /dev/shm"
		where  = "/dev/shm allows 64 MiB"
	)
	for _, c := range []struct {
		name, line   string // of the page
		flags, setup string
		calls        string // that are forbidden
		env, args    string
		status       int
		says         []string // else nothing is to be said
	}{
		{name: "no shm", line: "| `/dev/shm` is small (64 MB in Docker), read-only or missing |", flags: mount, setup: noSize, args: "-n 2"},
		{name: "small shm", line: "which lies in no file system |", flags: mount, setup: shm1, args: "-n 4"},
		{name: "small shm, hybrid", line: "which lies in no file system |", flags: mount, setup: shm1, args: "-n 2 -conduit hybrid"},
		{
			name: "shm named", line: "`ARGON_SHM_DIR` names it |", flags: mount, setup: shm64, env: "ARGON_SHM_DIR=/dev/shm", args: "-n 2",
			says: []string{"segments have at most 26 MiB a rank", where, "--shm-size", "without ARGON_SHM_DIR"},
		},
		{
			name: "shm named, too large", line: "`--shm-size`", flags: mount, setup: shm64, env: "ARGON_SHM_DIR=/dev/shm", args: "-n 2 -segment 64M", status: 1,
			says: []string{"2 segments of 67108864 bytes", where, "at most 319", "--shm-size"},
		},
		{name: "shm named, 1 MB", line: "`--shm-size`", flags: mount, setup: shm1, env: "ARGON_SHM_DIR=/dev/shm", args: "-n 2", status: 1, says: []string{"/dev/shm allows 1 MiB", "--shm-size"}},
		{name: "shm named, full", line: "`--shm-size`", flags: mount, setup: full, env: "ARGON_SHM_DIR=/dev/shm", args: "-n 2", status: 1, says: []string{where + ", of which 0 bytes are left", "--shm-size"}},
		{name: "shm named, read-only", line: "`--shm-size`", flags: mount, setup: noSize, env: "ARGON_SHM_DIR=/dev/shm", args: "-n 2 -segment 64K", status: 1, says: []string{"/dev/shm", "read-only", "ARGON_SHM_DIR"}},
		{name: "read-only", line: "| a file system that is read-only, `/tmp` included |", flags: mount, setup: "mount -o remount,bind,ro /\n! touch /tmp/argontest-ro 2>/dev/null || exit 77", args: "-n 2"},
		{name: "another user", line: "| a user without an entry in `/etc/passwd`, without capabilities |", env: envLimits + "=uid=64999", args: "-n 2"},
		{name: "no network, shm", line: "| no network but `lo` |", flags: "--net", setup: ":", args: "-n 2"},
		{name: "no network, udp", line: "and udp says `ip link set lo up` |", flags: "--net", setup: ":", args: "-n 2 -conduit udp", status: 1, says: []string{"ip link set lo up"}},
		{name: "lo alone", line: "jobs run on every conduit", flags: "--net", setup: "ip link set lo up", args: "-n 2 -conduit udp"},
		{name: "no membarrier", line: "forbids `membarrier` or `process_vm_readv` |", calls: "membarrier process_vm_readv", args: "-n 2"},
		{name: "no memfd", line: "| a seccomp filter that forbids `memfd_create` |", flags: mount, setup: "mount -t tmpfs -o size=400m none /dev/shm", calls: "memfd_create", args: "-n 2"},
		{
			name: "no memfd, small", line: "if `memfd_create` is forbidden", flags: mount, setup: shm64, calls: "memfd_create", args: "-n 2",
			says: []string{"at most 26 MiB a rank", where, "--shm-size", "memfd_create: operation not permitted"},
		},
		{
			name: "no memfd, nothing", line: "if `memfd_create` is forbidden", flags: mount, setup: noSize, calls: "memfd_create", args: "-n 2", status: 1,
			says: []string{"/dev/shm", "memfd_create: operation not permitted", "ARGON_SHM_DIR"},
		},
		{name: "no /proc", line: "gasrun says that it needs `/proc` |", flags: mount, setup: "umount -l /proc", args: "-n 2", status: 1, says: []string{"there is no /proc", "mount it"}},
		{name: "no /proc, by itself", line: "| a program by itself runs its ranks", flags: mount, setup: "umount -l /proc", env: "ARGON_RANKS=2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !bytes.Contains(page, []byte(c.line)) {
				t.Errorf("docs/containers.md has no line with %q", c.line)
			}
			if strings.HasPrefix(c.env, envLimits) && os.Getuid() != 0 {
				t.Skip("only root can be another user")
			}
			var cmd *exec.Cmd
			if c.args == "" {
				cmd, _ = command(t)
				cmd.Path, cmd.Args = prog, []string{prog, "use"}
			} else {
				cmd, _ = command(t, append(strings.Fields(c.args), prog, "use")...)
			}
			if c.env != "" {
				open(t, cmd, prog)
				cmd.Env = append(cmd.Env, c.env)
			}
			if c.calls != "" {
				cmd = sandbox.Command(cmd, strings.Fields(c.calls)...)
			}
			r := contained(t, cmd, c.flags, c.setup)
			if r.status == 77 || r.status == 32 || r.status == statusLimits { // 32 is mount's, see mount(8)
				t.Skipf("this cannot be set up here: %s", r.stderr)
			}
			r.want(t, c.status, c.says...)
			if c.status == 0 && strings.Count(r.stdout, "used\n") < 2 {
				t.Errorf("not all ranks have done their part: %s", r.stdout)
			}
			if len(c.says) == 0 && r.stderr != "" {
				t.Errorf("it says: %s", r.stderr)
			}
		})
	}
}

// open lets other users run prog, and use the directory for temporary files.
func open(t *testing.T, cmd *exec.Cmd, prog string) {
	t.Helper()
	dirs := []string{filepath.Dir(prog)}
	for _, kv := range cmd.Env {
		if dir, ok := strings.CutPrefix(kv, "TMPDIR="); ok && strings.HasPrefix(dir, os.TempDir()+"/") {
			dirs = append(dirs, dir, filepath.Dir(dir))
		}
	}
	for _, dir := range dirs {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemoryGroup: a limit on the group above that of the job is seen, pages of files do not count
// as used, and the last line names the group that a rank has run out of memory in.
func TestMemoryGroup(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	dir := sandbox.Group(t, "memory", "memory.limit_in_bytes", "memory.max", "104857600")
	name := filepath.Base(filepath.Dir(dir)) + " (memory."
	file := filepath.Join(t.TempDir(), "large")
	out, err := exec.Command("sh", "-ec", `echo $$ >"$0/cgroup.procs"; head -c 130000000 /dev/zero >"$1"; sync "$1"; cat "$1" >/dev/null`, dir, file).CombinedOutput()
	if err != nil { // as where temporary files are memory
		t.Skipf("no large file can be read in a control group: %v: %s", err, out)
	}
	limits := "group=" + dir
	r := within(t, limits, "shm", 2, prog, "use")
	r.want(t, 0, "segments have at most ", "less than the usual 64 MiB: the memory group ", name, "allows 100 MiB", "--memory")
	if strings.Contains(r.stderr, "KiB a rank") {
		t.Errorf("files' pages count as used: %s", r.stderr)
	}
	if r := within(t, limits, "hybrid", 2, prog, "use"); strings.Count(r.stderr, "less than the usual") != 1 {
		t.Errorf("it is not said once: %s", r.stderr)
	}
	within(t, limits, "", 4, prog, "use").want(t, 0, "argon: gas: segments have at most ", name)
	within(t, limits, "shm", 2, "-segment", "64M", prog, "use").want(t, 1, "2 segments of 67108864 bytes", name, "allows 100 MiB")
	within(t, limits, "shm", 2, "-segment", "4M", prog, "use").want(t, 0)
	r = within(t, limits, "shm", 2, "-segment", "1M", prog, "eat")
	r.want(t, 137)
	if last := lastLine(r.stderr); !strings.HasPrefix(last, "gasrun: rank 1 (pid ") || !strings.Contains(last, ") killed by SIGKILL: the memory group ") ||
		!strings.HasSuffix(last, filepath.Base(filepath.Dir(dir))+" (limit 100 MiB) ran out of memory") {
		t.Errorf("the last line: %s", last)
	}
}

// TestProcessorGroup: a limit of processor time on the group above counts.
func TestProcessorGroup(t *testing.T) {
	testmain.Long(t)
	dir := sandbox.Group(t, "cpu", "cpu.cfs_quota_us", "cpu.max", "100000") // of a period of so many microseconds
	if r := within(t, "group="+dir, "", 1, program(t), "processors"); r.stdout != "1 processors\n" {
		t.Errorf("%d: %s%s", r.status, r.stdout, r.stderr)
	}
}

// TestTaskGroup: a limit of processes and threads is named, before or after the ranks' runtime
// runs into it.
func TestTaskGroup(t *testing.T) {
	testmain.Long(t)
	prog := program(t)
	dir := sandbox.Group(t, "pids", "pids.max", "pids.max", "28")
	within(t, "group="+dir, "shm", 2, prog, "use").want(t, 1, "2 ranks have ", "threads or more", filepath.Base(filepath.Dir(dir))+" (pids.max) allows 28", "--pids-limit")
}
