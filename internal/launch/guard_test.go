package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The guard kills what belongs to a job whose launcher is gone, and nothing
// else; if the launcher has ended in good order it does nothing.
func TestGuard(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "temporary")
	start := func(env string, group bool) *exec.Cmd {
		t.Helper()
		c := exec.Command("sleep", "10000")
		c.Env = []string{env}
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	marked := start("ARGON_JOBID=guarded", false)
	grouped := start("X=1", true)
	reaped := start("X=1", true)
	other := start("ARGON_JOBID=another", true)
	alive := func(c *exec.Cmd) bool {
		p, ok := readProcess(c.Process.Pid)
		return ok && p.state != 'Z'
	}
	check := func(when string, want map[*exec.Cmd]bool, wantDir bool) {
		t.Helper()
		for c, w := range want {
			if alive(c) != w {
				t.Errorf("%s: process %d with %v lives: %v, want %v", when, c.Process.Pid, c.Env, !w, w)
			}
		}
		if _, err := os.Stat(dir); (err == nil) != wantDir {
			t.Errorf("%s: the directory: %v", when, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("job guarded\ndir %s\n+ %d\n+ %d\n- %d\n", dir, grouped.Process.Pid, reaped.Process.Pid, reaped.Process.Pid)
	watch(strings.NewReader(said + "end\n"))
	check("end", map[*exec.Cmd]bool{marked: true, grouped: true, reaped: true, other: true}, true)
	watch(strings.NewReader(said))
	check("gone", map[*exec.Cmd]bool{marked: false, grouped: false, reaped: true, other: true}, false)
}
