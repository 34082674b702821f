package sandbox

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Group makes a control group with a limit, and one below it without, which it returns: a
// process joins that by writing its number to the file cgroup.procs there. file1 and file2
// are the limit's files in versions 1 and 2. Both groups go when the test ends, with the
// processes in them. The test is skipped where there can be no such groups.
func Group(t testing.TB, controller, file1, file2, limit string) (dir string) {
	t.Helper()
	above, file := parent(t, controller, file1, file2)
	top, err := os.MkdirTemp(above, "argontest-")
	if err != nil {
		t.Skipf("sandbox: no control groups can be made here: %v", err)
	}
	dir = filepath.Join(top, "step")
	t.Cleanup(func() {
		for _, d := range []string{dir, top} {
			if err := removeGroup(d); err != nil {
				t.Errorf("sandbox: %v", err)
			}
		}
	})
	if err := os.WriteFile(filepath.Join(top, file), []byte(limit), 0); err != nil {
		t.Skipf("sandbox: control group %s has no limits of %s: %v", top, controller, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("sandbox: no control groups can be made here: %v", err)
	}
	return dir
}

// parent is the group in which others can be made, and the file that limits them.
func parent(t testing.TB, controller, file1, file2 string) (dir, file string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("sandbox: ", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return path.Join("/sys/fs/cgroup", f[1], f[2]), file1
		}
	}
	// Of version 2 a group with processes has none below it that are limited, but the first.
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		b, err := os.ReadFile(root + "/cgroup.subtree_control")
		if err == nil && slices.Contains(strings.Fields(string(b)), controller) {
			return root, file2
		}
	}
	t.Skipf("sandbox: no control groups for %s here", controller)
	return "", ""
}

// removeGroup ends what is in a group and removes it.
func removeGroup(dir string) error {
	for tries := 0; ; tries++ {
		err := syscall.Rmdir(dir)
		if err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || tries == 3000 {
			return &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		time.Sleep(10 * time.Millisecond) // a process that has been killed leaves its group a moment later
	}
}
