package testmain

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/job/live"
)

// envVictim names the test that a child of TestWatchdog is to run.
const envVictim = "ARGONTEST_VICTIM"

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// again runs one test of this program in a process of its own.
func again(t *testing.T, name string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^"+name+"$", "-test.timeout", "5m")
	c.Env = append(append(os.Environ(), envVictim+"=1"), env...)
	return c
}

func victim(t *testing.T) {
	if os.Getenv(envVictim) == "" {
		t.Skip("is run by others")
	}
}

// TestHangs hangs: nothing runs.
func TestHangs(t *testing.T) {
	victim(t)
	t.Run("child", func(t *testing.T) {
		live.Add(&live.Job{Waiting: func() string { return "rank 7: waits for Godot" }})
		live.Add(&live.Job{Waiting: func() string { panic("a broken job") }})
		live.Add(&live.Job{Waiting: func() string { select {} }})
		if err := exec.Command("sleep", "10000").Start(); err != nil {
			t.Fatal(err)
		}
		select {}
	})
}

// TestSpins hangs and uses a processor.
func TestSpins(t *testing.T) {
	victim(t)
	for n := 0; ; n++ {
		_ = n
	}
}

// TestLasts is one of tests that together last longer than the patience.
func TestLasts(t *testing.T) {
	victim(t)
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if err := exec.Command("sleep", "0.7").Run(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, patience string
		want           []string
	}{
		{"TestHangs", "1s", []string{
			"TestHangs.func1", "testmain_test.go:", "select", "rank 7: waits for Godot", "cannot be asked: a broken job",
			"does not answer", `("sleep")`, "goroutine 1 [chan receive",
		}},
		{"TestSpins", "500ms", []string{"testmain.TestSpins"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := again(t, c.name, "ARGONTEST_WATCHDOG="+c.patience)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != status {
				t.Errorf("ends with %v, want status %d", err, status)
			}
			for _, w := range append(c.want, "watchdog: no test has begun or ended") {
				if !strings.Contains(string(out), w) {
					t.Errorf("does not say %q:\n%s", w, out)
				}
			}
		})
	}
}

// The end of a test is a movement, and it can be turned off.
func TestNoFalseAlarm(t *testing.T) {
	t.Parallel()
	for _, patience := range []string{"3s", "off"} {
		if out, err := again(t, "TestLasts", "ARGONTEST_WATCHDOG="+patience).CombinedOutput(); err != nil {
			t.Errorf("patience %s: %v\n%s", patience, err, out)
		}
	}
	if out, err := again(t, "TestLasts", "ARGONTEST_WATCHDOG=soon").CombinedOutput(); err == nil {
		t.Errorf("a patience of %q is accepted: %s", "soon", out)
	}
}

// TestSignalled runs where signals were ignored at its start.
func TestSignalled(t *testing.T) {
	victim(t)
	if err := exec.Command("sh", "-c", "kill -HUP $$; kill -INT $$; exit 7").Run(); err == nil || err.Error() != "signal: hangup" {
		t.Errorf("a program that the test starts ends with %v, want by SIGHUP", err)
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Error(err)
		}
	}
}

// TestIgnoredSignals starts the tests as nohup and a shell's & do.
func TestIgnoredSignals(t *testing.T) {
	cmd := again(t, "TestSignalled")
	sh := exec.Command("sh", append([]string{"-c", `trap '' HUP INT; exec "$@"`, "sh"}, cmd.Args...)...)
	sh.Env = cmd.Env
	if out, err := sh.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
