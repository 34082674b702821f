package shm

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// TestLiesOnNode has the memory that a rank reads prefer a node, as the system tells
// (proc_pid_numa_maps(5)), and that of its peer not.
func TestLiesOnNode(t *testing.T) {
	const segment = 16 * page
	m, err := CreateJob(2, conduits.Config{MaxSegment: segment})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ep, err := JoinPart(int(m.File().Fd()), 1, 2, whole(2))
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	j := ep.j
	if err := sys.PreferNode(unsafe.Add(j.base, j.segmentOffset(1)), segment, 0); err != nil {
		t.Skip(err)
	}
	j.lieOn(0, 1)
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		t.Skip(err)
	}
	// A line begins where the policy changes.
	policy := map[uintptr]string{}
	for line := range strings.Lines(string(maps)) {
		var at uintptr
		var how string
		if n, _ := fmt.Sscanf(line, "%x %s", &at, &how); n == 2 {
			policy[at] = how
		}
	}
	at := func(offset int64) string { return policy[uintptr(j.base)+uintptr(offset)] }
	for name, offset := range map[string]int64{
		"control block": j.ctlOffset(1), "registry": j.regOffset(1), "segment": j.segmentOffset(1), "requests of rank 0": j.talkOffset(0, 1, 0),
	} {
		if got := at(offset); !strings.HasPrefix(got, "prefer") {
			t.Errorf("the %s of rank 1 lies where %q says, want node 0", name, got)
		}
	}
	for name, offset := range map[string]int64{"registry": j.regOffset(0), "segment": j.segmentOffset(0), "requests of rank 1": j.talkOffset(1, 0, 0)} {
		if got := at(offset); strings.HasPrefix(got, "prefer") {
			t.Errorf("the %s of rank 0 lies where %q says", name, got)
		}
	}
}
