package rendezvous_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/rendezvous"
)

// TestThisHost: ranks that have not been told the name of their host know it, and know
// one another host's ranks from theirs.
func TestThisHost(t *testing.T) {
	if os.Getenv("RENDEZVOUS_TEST_HOST") != "" {
		os.Stdout.WriteString("host " + rendezvous.ThisHost() + "\n")
		return
	}
	here := rendezvous.ThisHost()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || !strings.Contains(here, strings.TrimSpace(string(boot))) || len(here) > rendezvous.MaxHost {
		t.Errorf("this host is %q, %v", here, err)
	}
	there := func(wrap ...string) string {
		args := append(wrap, os.Args[0], "-test.run=^TestThisHost$")
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "RENDEZVOUS_TEST_HOST=1")
		cmd.WaitDelay = time.Minute
		out, err := cmd.Output()
		_, name, ok := strings.Cut(string(out), "host ")
		if name, _, _ = strings.Cut(name, "\n"); !ok || err != nil {
			return ""
		}
		return name
	}
	if got := there(); got != here {
		t.Errorf("another process is on %q, this one on %q", got, here)
	}
	t.Run("container", func(t *testing.T) {
		switch got := there("unshare", "--fork", "--pid"); got {
		case "":
			t.Skip("no other name spaces of processes here (unshare --pid)")
		case here:
			t.Errorf("a container is taken for its host, %q", here)
		}
	})
}
