package launch

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
)

// TestAmidExec: a process belongs to its job also while it replaces its program, when it has no
// environment for a while. What sweeps up after a job would leave it behind.
func TestAmidExec(t *testing.T) {
	again := `[ $1 -eq 0 ] || exec sh -c "$0" "$0" $(($1 - 1)); read x`
	cmd := exec.Command("sh", "-c", again, again, strconv.Itoa(200))
	cmd.Env = append(cmd.Environ(), jobenv.JobID+"=exec")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if id := jobOf(cmd.Process.Pid); id != "exec" {
			t.Errorf("job %q", id)
			break
		}
	}
	in.Close()
	cmd.Wait()
}
