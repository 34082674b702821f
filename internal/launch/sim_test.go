package launch

import (
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// TestSimulatedMemory: what the process of a simulated job has written of it is the state
// of the job, and names the rank that failed.
func TestSimulatedMemory(t *testing.T) {
	const head = "argon-sim-record 1\nranks 4\noptions seed=7\n"
	const job = head + "job 1 4 seed=7\nat 1 1024 0000000000000001 81250000\n"
	const end = job + "end 1 1733 0000000000000002 99125000 "
	for _, tc := range []struct {
		name, text string
		state      State
		err        RankError // as the launcher knows it
		rank       int
		status     int
		cause      string
	}{
		{"nothing", "", Starting, RankError{Status: 2, Cause: "exited with status 2"}, -1, 2, "exited with status 2"},
		{"garbage", "GET /", Starting, RankError{Status: 2, Cause: "exited with status 2"}, -1, 2, "exited with status 2"},
		{"no job", head, Starting, RankError{Status: 3, Cause: "exited with status 3"}, -1, 3, "exited with status 3"},
		{"amid", job, Attached, RankError{Status: 2, Cause: "exited with status 2"}, -1, 2, "exited with status 2 (after more than 1024 steps and 81.25µs of virtual time)"},
		{"killed", job, Attached, RankError{Status: 137, Signal: syscall.SIGKILL, Cause: "killed by SIGKILL"}, -1, 137, "killed by SIGKILL, using 5 MiB of memory (after more than 1024 steps and 81.25µs of virtual time)"},
		{"good", end + "ok\n", Finished, RankError{Status: 1, Cause: "exited with status 1"}, -1, 1, "exited with status 1"},
		{"failed", end + "failed 3 \"out of\\nluck\"\n", Failed, RankError{Status: jobenv.StatusPeerFailed, Cause: "exited"}, 3, 1, "failed at 99.125µs of virtual time: out of\nluck"},
	} {
		m, err := newSimMemory()
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := m.File().WriteString(tc.text); err != nil {
			t.Fatal(err)
		}
		if s := m.State(0); s != tc.state {
			t.Errorf("%s: state %v, want %v", tc.name, s, tc.state)
		}
		if _, _, _, ok := m.Failure(); ok {
			t.Errorf("%s: a failure before one is noted", tc.name)
		}
		e := tc.err
		m.explain(&e, 5<<20)
		if e.Rank != tc.rank || e.Status != tc.status || e.Cause != tc.cause {
			t.Errorf("%s: rank %d, status %d, %q, want %d, %d, %q", tc.name, e.Rank, e.Status, e.Cause, tc.rank, tc.status, tc.cause)
		}
	}
	m, err := newSimMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.File().WriteString(end + "exited 3 5\n"); err != nil {
		t.Fatal(err)
	}
	rank, status, cause, ok := m.Failure()
	if code, exited := errs.CarriedExit(status); rank != 3 || code != 5 || !exited || !ok || !strings.Contains(cause, "status 5") {
		t.Errorf("an Exit: rank %d, status %d, %q, %v", rank, status, cause, ok)
	}
}
