package sandbox

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/sys"
)

// OnTwoProcessors calls f on a goroutine such that the processes which it starts have two
// processors, cpus, and a network namespace of their own, where jobs see no other's claims of
// processors. It returns when f has. The test is skipped where that cannot be.
func OnTwoProcessors(t *testing.T, f func(cpus []int)) {
	t.Helper()
	failed := make(chan string, 1)
	go func() { // its thread ends with it, for it is not unlocked
		defer close(failed)
		runtime.LockOSThread()
		cpus, err := sys.Affinity()
		if err != nil || len(cpus) < 2 {
			failed <- "there is one processor"
			return
		}
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			failed <- "no network namespace: " + err.Error()
			return
		}
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			failed <- "no loopback: " + err.Error() + " " + string(out)
			return
		}
		if err := sys.SetAffinity(cpus[:2]); err != nil {
			failed <- err.Error()
			return
		}
		f(cpus[:2])
	}()
	if why, ok := <-failed; ok {
		t.Skip("sandbox: ", why)
	}
}
