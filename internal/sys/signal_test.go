package sys

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestCatch: of the signals that a process is to catch, those that were ignored when
// it started have no effect, and the others arrive.
func TestCatch(t *testing.T) {
	const inside = "ARGONTEST_CATCH"
	if os.Getenv(inside) != "" {
		ch := make(chan os.Signal, 4)
		signal.Reset(syscall.SIGHUP, syscall.SIGINT) // the watchdog's catch
		signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
		Catch(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
			if err := syscall.Kill(os.Getpid(), s); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-ch; got != syscall.SIGTERM {
			t.Fatalf("%v arrived", got)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^TestCatch$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestCatch") {
		t.Errorf("%v\n%s", err, out)
	}
}
