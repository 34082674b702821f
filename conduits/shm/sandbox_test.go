package shm

import (
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/sandbox"
)

// TestWithoutMembarrier: where membarrier(2) is forbidden senders make the fence
// instead of sleepers, and no sleeper is missed.
func TestWithoutMembarrier(t *testing.T) {
	if sandbox.Inside() {
		eps, err := Local(1, conduits.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if e := eps[0].(*Endpoint); e.fence != conc.PlainRelease {
			t.Errorf("senders make a fence: %v; it takes one: %v", e.fence, conc.PlainRelease)
		}
		if err := eps[0].Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	out := sandbox.Self(t, "^Test(WithoutMembarrier|Conformance)$/^contract$/^(messages|wake_by_many|wake_by_memory|close_wakes)$")
	// One of the four is skipped under the race detector.
	ran := strings.Count(out, "--- PASS: TestConformance/contract/") + strings.Count(out, "--- SKIP: TestConformance/contract/wake_by_memory")
	if !strings.Contains(out, "--- PASS: TestWithoutMembarrier") || ran != 4 {
		t.Errorf("the tests in the sandbox did not run:\n%s", out)
	}
}
